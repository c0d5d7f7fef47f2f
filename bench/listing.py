"""The board and the inbox with 100,000 tasks in the database, beside the same with 1,000."""

import sqlite3
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from msgspec.structs import replace

from bench.harness import AtMost, Measure, Work, clocked, interleave, main, say
from bench.home import add_task, make_home
from lockgate.adapters.store import rows, sql
from lockgate.core.lifecycle.records import created
from lockgate.core.model.events import Event, GateCompleted, payload, type_of
from lockgate.core.model.facts import StoredEvent
from lockgate.core.model.task import Status, Task, TaskId
from lockgate.ports import TaskFilter, of_project
from lockgate.services.task.boards import PAGE

ROUNDS = 60
FEW, MANY = 1_000, 100_000
BATCH = 1_000  # rows in one transaction
NEEDED = 60  # tasks that need a human, in either home
LIVE = 200  # tasks at work, in either home; all others have ended
BOARD, MIDDLE, INBOX, STORE = "the board", "a page from the middle", "the inbox", "store.page alone"
ENDED = (Status.DONE, Status.CANCELLED)


def bench(where: Path) -> list[Measure]:
    say("\nlisting")
    say(f"  {MANY} tasks, {BATCH} in a transaction, each with its event in the chain")
    few, many = _contenders(where / "few", FEW), _contenders(where / "many", MANY)
    found = interleave(
        {f"{name}, {count}": it[name] for count, it in ((FEW, few), (MANY, many)) for name in it},
        ROUNDS,
    )
    return [
        Measure(
            name=f"{name}, {MANY:,} tasks",
            ours=found[f"{name}, {MANY}"],
            peer=f"with {FEW:,}",
            theirs=found[f"{name}, {FEW}"],
            target=AtMost(1.5),
        )
        for name in few
    ]


def _contenders(where: Path, count: int) -> dict[str, Work]:
    app, project = make_home(where)
    fill(where / "home" / "lockgate.db", add_task(app, project), count - 1)
    assert app.store.first_broken_event() is None  # noqa: S101
    boards, which = app.boards, TaskFilter(frozenset({project.id}))
    first = boards.board(which)
    assert len(first.needs) == NEEDED and first.after, first.needs  # noqa: PT018, S101
    middle = _id(count // 2)
    return {
        BOARD: clocked(lambda: boards.board(which)),
        MIDDLE: clocked(lambda: boards.board(which, f"ended:{float(count // 2)!r}:{middle}")),
        INBOX: clocked(boards.inbox),
        STORE: clocked(lambda: app.store.page(of_project(project.id), None, PAGE)),
    }


def fill(path: Path, pattern: Task, count: int, each: int = 1) -> None:
    """By the store's own rows and statements, each with the event that it was created by.

    Where `each` is more than one, every task has so many events.
    """
    connection = sqlite3.connect(path)
    seq, head = connection.execute(sql.HEAD).fetchone()
    tasks = _tasks(pattern, count)
    while batch := tuple(islice(tasks, BATCH)):
        events = list[rows.Values]()
        for of, event in ((task, it) for task in batch for it in _events(task, each)):
            stored = _stored(of, event, seq + len(events) + 1, head)
            events.append(rows.event_to_row(stored))
            head = str(events[-1]["hash"])
        seq += len(events)
        with connection:
            connection.executemany(sql.INSERT_TASK, map(rows.task_to_row, batch))
            connection.executemany(sql.INSERT_EVENT, events)
            connection.execute("UPDATE log_head SET seq = ?, hash = ?", (seq, head))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def _events(task: Task, count: int) -> Iterator[Event]:
    yield created(task).events[0]
    for number in range(1, count):
        yield GateCompleted(task.id, "tests", "passed", iteration=number)


def _stored(task: Task, event: Event, seq: int, prev: str) -> StoredEvent:
    data = payload(event)
    return StoredEvent(
        seq=seq, time=task.updated, task=task.id, type=type_of(event), prev=prev, data=data
    )


def _tasks(pattern: Task, count: int) -> Iterator[Task]:
    """Most have ended; some are at work, and some ask a question."""
    for number in range(count):
        status = ENDED[number % 2]
        if number < NEEDED:
            status = Status.CLARIFICATION
        elif number < NEEDED + LIVE:
            status = Status.WORKING
        yield replace(
            pattern,
            id=_id(number),
            summary=f"Task number {number}",
            question="Which page?" if status is Status.CLARIFICATION else "",
            status=status,
            created=pattern.created - count + number,
            updated=float(number),
        )


def _id(number: int) -> TaskId:
    return TaskId(f"task-{number:06}")


if __name__ == "__main__":
    main(bench)
