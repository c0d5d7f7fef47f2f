"""JSON of unknown shape and origin, read without surprises."""

import json
from collections.abc import Mapping, Sequence
from typing import cast

VALUES = 3_000_000
_NOTHING: Mapping[str, object] = {}


class Refused(Exception):
    """Not JSON, cut off, or built to be expensive."""


def parsed(text: str) -> object:
    """The first JSON value of the text."""
    if text.count("{") + text.count("[") + text.count(",") > VALUES:
        raise Refused
    try:
        return cast("object", json.JSONDecoder(parse_float=_float).raw_decode(text)[0])
    except (ValueError, RecursionError, MemoryError) as error:
        raise Refused from error


def mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else _NOTHING


def items(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, list) else ()


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _float(digits: str) -> float:
    return float(digits[:40])
