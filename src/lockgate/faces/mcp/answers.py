"""How a tool's answer is written: never too long, and a refusal in its three parts."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import ValidationError

from lockgate.errors import LockgateError
from lockgate.faces.words import task as words

MOST = 25_000  # characters of an answer
SHORT = 200  # characters that a text keeps at least
LARGEST = 1 << 20  # characters of the arguments of a call
LEFT_OUT = " … (cut)"
COMPLAINTS = 5  # that a refusal of arguments names

Plain = dict[str, Any]  # what JSON can hold


def plain(facts: Mapping[str, object]) -> Plain:
    """As JSON has it, with no character that moves a cursor in what agents and people wrote."""
    found: Plain = json.loads(json.dumps(facts, default=str))
    return cast("Plain", _safe(found))


def written(facts: Mapping[str, object]) -> str:
    return json.dumps(facts, ensure_ascii=False)


def fits(facts: Mapping[str, object]) -> bool:
    return len(written(plain(facts))) <= MOST


def fitted(facts: Plain) -> Plain:
    """With the longest texts and lists cut until it fits; `cut` says what was left out."""
    cut: dict[str, int] = {}
    while len(written(facts)) > MOST - len(written(cut)):
        size, name, holder, key = max(_cuttable(facts), key=lambda it: it[0], default=_NOTHING)
        if size <= SHORT:
            break
        held = holder[key]
        kept = len(held) // 2
        cut[name] = cut.get(name, 0) + len(held) - kept
        holder[key] = held[:kept] + LEFT_OUT if isinstance(held, str) else held[:kept]
    return facts | {"cut": cut} if cut else facts


_NOTHING: tuple[int, str, Any, Any] = (0, "", None, None)


def _cuttable(found: object, name: str = "") -> Iterator[tuple[int, str, Any, Any]]:
    """The size, the name and the place of each text and list that may be cut."""
    if isinstance(found, list):
        pairs: list[tuple[Any, object]] = list(enumerate(cast("list[object]", found)))
    elif isinstance(found, dict):
        pairs = list(cast("dict[str, object]", found).items())
    else:
        return
    for key, value in pairs:
        its = key if isinstance(key, str) else name
        size = _size(value)
        if size:
            yield size, its, found, key
        else:
            yield from _cuttable(value, its)


def _size(value: object) -> int:
    """Of a text, or of a list that has more than one item; 0 for all else."""
    if isinstance(value, str):
        return len(value)
    items = cast("list[object]", value) if isinstance(value, list) else []
    return len(written({"": items})) if len(items) > 1 else 0


def refusal(error: LockgateError) -> Plain:
    return {"what": error.what, "why": error.why, "fix": error.fix}


def bug(error: BaseException) -> Plain:
    why = f"this is a bug in Lockgate: {type(error).__name__}: {error}"
    return {"what": "the call did not finish", "why": why, "fix": "see logs/mcp.log in its home"}


def misused(name: str, error: ValidationError) -> Plain:
    told = [f"{_place(it['loc'])}: {it['msg']}" for it in error.errors(include_input=False)]
    more = f"; and {len(told) - COMPLAINTS} more" if len(told) > COMPLAINTS else ""
    why = "; ".join(told[:COMPLAINTS]) + more
    return {"what": f"{name} was not called", "why": why, "fix": f"see what {name} takes"}


def too_large(name: str) -> Plain:
    why = f"its arguments have more than {LARGEST} characters"
    return {"what": f"{name} was not called", "why": why, "fix": "say what matters"}


def _place(where: tuple[int | str, ...]) -> str:
    return ".".join(map(str, where)) or "the input"


def _safe(found: object) -> object:
    if isinstance(found, str):
        return words.safe(found)
    if isinstance(found, list):
        return [_safe(it) for it in cast("list[object]", found)]
    if isinstance(found, dict):
        return {key: _safe(it) for key, it in cast("dict[str, object]", found).items()}
    return found
