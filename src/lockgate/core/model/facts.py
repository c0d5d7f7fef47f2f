"""What holds for every value: its facts as plain dictionaries, and it without secrets.

An event is such facts in the log: numbered without gaps, each with the hash of the one before.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from hashlib import sha256
from typing import TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.model.secrets import Hide
from lockgate.core.model.task import TaskId

FIRST_PREV = "0" * 64


# A value as the store, the events and `--json` write it.


def as_facts(it: Struct) -> dict[str, object]:
    """Its fields by name, and so for every value inside it; enums and sets stay as they are."""
    return {name: _plain(getattr(it, name)) for name in it.__struct_fields__}


def _plain(it: object) -> object:
    if isinstance(it, Struct):
        return as_facts(it)
    if isinstance(it, (tuple, list)):
        parts = cast("tuple[object, ...] | list[object]", it)
        return type(parts)(_plain(part) for part in parts)
    if isinstance(it, dict):
        pairs = cast("dict[object, object]", it)
        return {key: _plain(value) for key, value in pairs.items()}
    return it


def json_facts(it: Struct) -> dict[str, object]:
    """As JSON has it when it is read again: lists, texts, and keys that are texts."""
    return {name: _json(getattr(it, name)) for name in it.__struct_fields__}


def _json(it: object) -> object:
    if isinstance(it, Enum):
        return it.value
    if isinstance(it, Struct):
        return json_facts(it)
    if isinstance(it, Mapping):
        pairs = cast("Mapping[object, object]", it)
        return {str(_json(key)): _json(value) for key, value in pairs.items()}
    if isinstance(it, (tuple, list, set, frozenset)):
        parts = [_json(part) for part in cast("Iterable[object]", it)]
        return sorted(parts, key=str) if isinstance(it, (set, frozenset)) else parts
    return it


# A value without the secrets in it, however deep they lie.


T = TypeVar("T")
_SEVERAL: tuple[type[Collection[object]], ...] = (tuple, list, frozenset, set)


def redacted(it: T, hide: Hide) -> T:
    """The same value with every text in it hidden."""
    return _redacted(it, hide)  # type: ignore[return-value]  # of the type that it was given


def _redacted(it: object, hide: Hide) -> object:
    if isinstance(it, str):
        return it if isinstance(it, Enum) else hide(it)
    if isinstance(it, dict):
        pairs = cast("dict[object, object]", it)
        return {key: _redacted(value, hide) for key, value in pairs.items()}
    for kind in _SEVERAL:
        if isinstance(it, kind):
            make = cast("Callable[[Iterable[object]], object]", kind)
            return make(_redacted(part, hide) for part in cast("Iterable[object]", it))
    if isinstance(it, Struct):
        return _redacted_fields(it, hide)
    return it


def _redacted_fields(it: Struct, hide: Hide) -> Struct:
    """The very object where nothing in it changes."""
    before = {name: getattr(it, name) for name in it.__struct_fields__}
    after = {name: _redacted(value, hide) for name, value in before.items()}
    changed = {name: value for name, value in after.items() if value != before[name]}
    return replace(it, **changed) if changed else it


# An event as the log holds it.


class StoredEvent(Struct, frozen=True, kw_only=True):
    seq: int
    time: float
    task: TaskId
    type: str
    prev: str
    data: Mapping[str, object]


_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True
)


def canonical(value: object) -> str:
    """The same value is always the same text."""
    return _ENCODER.encode(value)


def event_line(event: StoredEvent) -> str:
    """One line of JSON: what the hash is taken of, and what is exported."""
    return (
        f'{{"seq":{event.seq},"time":{canonical(float(event.time))},"task":{canonical(event.task)},'
        f'"type":{canonical(event.type)},"prev":{canonical(event.prev)},'
        f'"data":{canonical(event.data)}}}'
    )


def event_hash(event: StoredEvent) -> str:
    return sha256(event_line(event).encode(errors="replace")).hexdigest()
