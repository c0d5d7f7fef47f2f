"""One wake of the orchestrator's loop, by CPU time, with ever more tasks that wait for others."""

import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec.structs import replace

from bench.harness import AtMost, Measure, Work, interleave, main, say
from bench.home import add_task, make_home
from lockgate.adapters.engine import LocalEngine
from lockgate.adapters.sessions.sessions import Watch
from lockgate.adapters.store import rows, sql
from lockgate.bootstrap.orchestrator import _loop
from lockgate.core.model.task import Status, Task, TaskId

ROUNDS = 40
COUNTS = (1_000, 10_000, 100_000)
IDLE, CHANGED = "a wake, nothing new", "a wake after a change"


def bench(where: Path) -> list[Measure]:
    say("\nwakes of the loop (CPU time); all tasks but one wait for that one")
    with ThreadPoolExecutor(4) as pool:
        made = {count: _contenders(where / str(count), count, pool) for count in COUNTS}
        found = interleave(
            {f"{name}, {count}": it[name] for count, it in made.items() for name in it}, ROUNDS
        )
    few, *more = COUNTS
    return [
        Measure(
            name=f"{name}, {count:,} tasks",
            ours=found[f"{name}, {count}"],
            peer=f"with {few:,}",
            theirs=found[f"{name}, {few}"],
            target=AtMost(1.5),
        )
        for count in more
        for name in (IDLE, CHANGED)
    ]


def _contenders(where: Path, count: int, pool: ThreadPoolExecutor) -> dict[str, Work]:
    app, project = make_home(where)
    pattern = app.store.load(add_task(app, project).id)
    _fill(where / "home" / "lockgate.db", pattern, count - 1)
    engine = LocalEngine(pool)
    loop = _loop(app, Watch(), engine, lambda _: None)
    engine.stop()  # what is put is not begun: the planning alone is measured
    for _ in range(3):
        loop.turn()

    def changed() -> None:
        loop._turn = -1  # noqa: SLF001 - as if somebody had written since
        loop.turn()

    return {IDLE: _by_cpu(loop.turn), CHANGED: _by_cpu(changed)}


def _by_cpu(work: Callable[[], object]) -> Work:
    def timed() -> float:
        begun = time.thread_time()
        work()
        return time.thread_time() - begun

    return timed


def _fill(path: Path, pattern: Task, count: int) -> None:
    """Pending tasks, each of which waits for the first one, which is at work."""
    connection = sqlite3.connect(path)
    with connection:
        for number in range(count):
            task = replace(
                pattern,
                id=TaskId(f"waits-{number:06d}"),
                branch=f"waits-{number}",
                status=Status.PENDING,
                depends_on=(pattern.id,),
                created=pattern.created + number,
                pinned=None,
            )
            connection.execute(sql.INSERT_TASK, rows.task_to_row(task))
            connection.execute(sql.PUT_DEPENDENCY, {"task": task.id, "needs": pattern.id})
        connection.execute(sql.COUNT_NEEDS_ON, {"id": pattern.id})
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


if __name__ == "__main__":
    main(bench)
