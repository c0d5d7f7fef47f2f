"""People: their names, what each may do, how one is known, and what one drafts."""

import re
from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from lockgate.core.model.findings import Priority
from lockgate.core.model.task import TaskId

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


class Right(StrEnum):
    """What somebody may do; each has all that stand before it."""

    LOOK = "look"
    WORK = "work"  # create, answer, move and send back
    LAND = "land"  # say yes: to a gate, to a landing, to a revert
    ADMIN = "admin"  # people, logins, what a repository may ask for


class Person(Struct, frozen=True, kw_only=True):
    """Somebody with a name. `uid` is the user of this machine that they are, if they are one.

    `token_hash` is that of a token by which they are known elsewhere.
    """

    name: str
    may: Right
    uid: int | None = None
    token_hash: str | None = None
    added: float = 0.0
    added_by: str = ""


class Draft(Struct, frozen=True, kw_only=True):
    """A comment that somebody has yet to send: on a line of a file, as the change had it.

    `side` is `old` or `new`; `quote` is the line itself, by which it is found again.
    """

    id: str = ""
    task: TaskId
    patch: str
    person: str = ""
    file: str
    side: str = "new"
    line: int
    quote: str
    text: str
    priority: str = "P1"
    time: float = 0.0


def is_note(draft: Draft) -> bool:
    """Whether it asks for nothing: a yes keeps it, and it holds up no change."""
    return draft.priority == Priority.P3_SUGGESTION


def noted(drafts: Iterable[Draft]) -> str:
    """What a yes says besides: the notes among the drafts, each with its place."""
    return "; ".join(f"{it.file}:{it.line}: {it.text}" for it in drafts if is_note(it))


_ORDER = {right: place for place, right in enumerate(Right)}


def allows(has: Right, wanted: Right) -> bool:
    return _ORDER[has] >= _ORDER[wanted]


def good_name(name: str) -> bool:
    """Letters, digits, `.`, `_`, `@` and `-`, so that nobody's name looks like another's."""
    return _NAME.fullmatch(name) is not None
