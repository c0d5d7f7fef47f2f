"""The event log: numbered without gaps, each event holding the hash of the one before."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lockgate.adapters.store import sql
from lockgate.adapters.store.database import Run
from lockgate.adapters.store.fields import Fields, Row
from lockgate.adapters.store.rows import event_from_row, event_to_row
from lockgate.core.lifecycle.decision import Decision
from lockgate.core.model.event_log import FIRST_PREV, StoredEvent, canonical, event_hash
from lockgate.core.model.events import payload, type_of
from lockgate.errors import Unavailable


@dataclass(frozen=True, slots=True)
class Head:
    """The last event: its number and its hash."""

    seq: int = 0
    hash: str = FIRST_PREV


def take_numbers(run: Run, decision: Decision) -> Head:
    """The head before this decision's events; nobody else can append until the transaction ends."""
    count = len(decision.events)
    taken = head_of(run(sql.TAKE_NUMBERS, {"count": count}).fetchone())
    return Head(taken.seq - count, taken.hash)


def append(run: Run, decision: Decision, head: Head) -> None:
    for event in decision.events:
        stored = StoredEvent(
            seq=head.seq + 1,
            time=float(decision.task.updated),
            task=decision.task.id,
            type=type_of(event),
            prev=head.hash,
            data=payload(event),
        )
        row = event_to_row(stored)
        run(sql.INSERT_EVENT, row)
        head = head_of(row)
    if decision.events:
        run(sql.MOVE_HEAD, {"hash": head.hash})


def head_of(row: Row | None) -> Head:
    it = Fields("the event log", row or {})
    return Head(it.whole("seq"), it.text("hash"))


def first_broken(
    read_head: Callable[[], Head], read_after: Callable[[int], Sequence[Row]]
) -> int | None:
    """Follow the chain from the first event to the head, while others may append."""
    seen = Head()
    while True:
        head = read_head()
        found = read_after(seen.seq)
        for row in found:
            if not _follows(row, seen):
                return seen.seq + 1
            seen = head_of(row)
        if found:
            continue
        if seen.seq != head.seq:
            return min(seen.seq, head.seq) + 1
        return None if seen == head else seen.seq


def _follows(row: Row, last: Head) -> bool:
    try:
        event = event_from_row(row)
    except Unavailable:
        return False
    return (
        (event.seq, event.prev) == (last.seq + 1, last.hash)
        and row["hash"] == event_hash(event)
        and row["data"] == canonical(event.data)
    )
