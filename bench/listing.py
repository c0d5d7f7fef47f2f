"""A page of the board with 100,000 tasks in the database, beside the same with 1,000."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from bench.harness import AtMost, Measure, Work, clocked, interleave, main, say
from bench.home import add_task, make_home
from lockgate.adapters.store import rows, sql
from lockgate.bootstrap import App
from lockgate.core.model.task import Status, Task, TaskId
from lockgate.core.text.task_file import frontmatter
from lockgate.ports import TaskFilter
from lockgate.services.task.views import PAGE

ROUNDS = 60
FEW, MANY = 1_000, 100_000
BOARD, MIDDLE, STORE = "a page of task list", "a page from the middle", "store.page alone"
STATUSES = tuple(Status)


def bench(where: Path) -> list[Measure]:
    say("\nlisting")
    say(f"  {MANY} rows in one transaction; a TASK.md for the tasks that are shown, no others")
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
    pattern = add_task(app, project)
    _fill(where / "home" / "lockgate.db", pattern, count - 1)
    which = TaskFilter(project.id)
    middle = _id(count // 2)
    for after in (None, middle):
        _mirror(app, app.store.page(which, after, PAGE).tasks)
        board = app.views.board(project.id, after=after)
        troubles = [row.task.id for row in board.rows if row.trouble]
        assert len(board.rows) == PAGE and not troubles, troubles  # noqa: PT018, S101
    return {
        BOARD: clocked(lambda: app.views.board(project.id)),
        MIDDLE: clocked(lambda: app.views.board(project.id, after=middle)),
        STORE: clocked(lambda: app.store.page(which, None, PAGE)),
    }


def _fill(path: Path, pattern: Task, count: int) -> None:
    """By the store's own rows and statement, but all at once; their events are left out."""
    connection = sqlite3.connect(path)
    with connection:
        connection.executemany(sql.INSERT_TASK, _rows(pattern, count))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def _rows(pattern: Task, count: int) -> Iterator[rows.Values]:
    for number in range(count):
        task = replace(
            pattern,
            id=_id(number),
            summary=f"Task number {number}",
            status=STATUSES[number % len(STATUSES)],
            created=pattern.created - count + number,
        )
        yield rows.task_to_row(task)


def _mirror(app: App, tasks: tuple[Task, ...]) -> None:
    for task in tasks:
        app.views.files.write(task.id, frontmatter(task), "## Context\n")


def _id(number: int) -> TaskId:
    return TaskId(f"task-{number:06}")


if __name__ == "__main__":
    main(bench)
