"""Reading what an agent printed: JSON a line, in between anything at all, and cut anywhere."""

import json
from collections.abc import Iterator, Mapping
from typing import cast

from lockgate.core.model.agents import Ending, Exit

Event = Mapping[str, object]
SAID_CHARACTERS = 2000


def events(output: str) -> Iterator[Event]:
    """The lines that are whole JSON objects, in order; every other line is passed over."""
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                continue
            yield cast("Event", event)  # what begins with a brace and is JSON is an object


def last_line(output: str) -> str:
    """The last line that is no event: where a program that dies early says why."""
    for line in reversed(output.splitlines()):
        if line.strip() and not line.startswith("{"):
            return shortened(line.strip())
    return ""


def inner(event: Event, *keys: str) -> Event:
    """The object under these keys, one below the other; empty where there is none."""
    for key in keys:
        value = event.get(key)
        event = cast("Event", value) if isinstance(value, dict) else {}
    return event


def items(event: Event, key: str) -> list[Event]:
    """The objects of the list under this key."""
    value = event.get(key)
    found = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Event", it) for it in found if isinstance(it, dict)]


def text(event: Event, key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""


def number(event: Event, key: str) -> float:
    value = event.get(key)
    return float(value) if isinstance(value, int | float) and value == value else 0.0  # noqa: PLR0124 - not NaN


def whole(event: Event, *keys: str) -> int:
    """The sum of these fields."""
    return int(sum(number(event, key) for key in keys))


def shortened(words: str) -> str:
    """The end of what was said, where it is long."""
    return words if len(words) <= SAID_CHARACTERS else "…" + words[-SAID_CHARACTERS + 1 :]


def unexplained(exit: Exit, output: str, *, finished: bool) -> str:
    """Why a program that said nothing of a failure ended badly; empty where it did not.

    A session that we ended, or that the machine did, is no failure of its program.
    """
    if exit.ending is not Ending.EXITED or (finished and exit.code == 0):
        return ""
    ended = "a signal ended it" if exit.code is None else f"it exited {exit.code}"
    if exit.code == 0:
        ended = "it ended without a result"
    return last_line(output) or ended
