"""An event as the log holds it: numbered without gaps, each with the hash of the one before."""

import json
from collections.abc import Mapping
from hashlib import sha256

from msgspec import Struct

from lockgate.core.model.task import TaskId

FIRST_PREV = "0" * 64


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
