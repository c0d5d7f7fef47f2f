"""Run as a program: commits to the real store of a home, and says of each that it is done."""

import os
import sys
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from lockgate.adapters.store.sqlite import SqliteDatabase, SqliteStore
from lockgate.core.lifecycle.decision import Decision, MirrorTask
from lockgate.core.lifecycle.records import renamed
from lockgate.core.model.events import TaskCreated
from lockgate.core.model.task import Actor, ProjectId, Task, TaskId
from lockgate.ports import Project

TASKS = 4
BODY = 30_000  # characters, so that the log of SQLite is written back now and then


def main() -> None:
    home, commits = Path(sys.argv[1]), int(sys.argv[2])
    if "careless" in sys.argv:  # to see that a loss is noticed
        connect = SqliteDatabase._connect
        careless: Any = lambda self, _how: connect(self, "OFF")  # noqa: E731
        SqliteDatabase._connect = careless  # type: ignore[method-assign]  # on purpose
    store = SqliteStore(home / "lockgate.db")
    store.add_project(Project(id=ProjectId("p1"), name="p", common_dir="/r/.git", root="/r"))
    tasks = [_made(store, number) for number in range(TASKS)]
    for number in range(commits):
        task = tasks[number % TASKS]
        decision = renamed(task, f"Do it {number}", Actor.HUMAN, float(number))
        body = f"{number} " + "x" * (BODY * (number % 3))
        store.commit(replace(decision, body=body, effects=(MirrorTask(),)))
        tasks[number % TASKS] = decision.task
        _acknowledge(store, decision.task)
        if number % 5 == 0:  # lightly: a power cut may undo this, and nothing else
            pending = store.pending_effects(decision.task.id, 100)
            store.effects_done([it.key for it in pending])
    store.close()


def _made(store: SqliteStore, number: int) -> Task:
    task = Task(
        id=TaskId(f"t{number}"),
        project=ProjectId("p1"),
        summary="Do it",
        goal="Do it",
        branch=f"t{number}",
        agent="scripted",
        created=float(number),
        updated=float(number),
    )
    created = TaskCreated(
        summary=task.summary, branch=task.branch, agent="scripted", priority=3, depends_on=()
    )
    store.create(Decision(task, events=(created,), effects=(MirrorTask(),)))
    _acknowledge(store, task)
    return task


def _acknowledge(store: SqliteStore, task: Task) -> None:
    os.write(1, f"ack {task.id} {task.rev} {store.head()}\n".encode())


if __name__ == "__main__":
    main()
