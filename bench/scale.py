"""A home with very many tasks: transitions, wakes, memory and the start after a kill -9.

`python -m bench.scale`. Pending tasks wait for one that is at work; of the 1,000 at work 100 have
real runners, the others are behind the sessions port. CPU time, so that a busy machine counts less.
"""

import contextlib
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bench.harness import AtMost, Measure, arguments, place, say, table
from bench.home import add_task, make_home, move
from lockgate.adapters.engine import LocalEngine
from lockgate.adapters.sessions.sessions import Watch
from lockgate.adapters.store import rows, sql
from lockgate.adapters.system import allow_many_files
from lockgate.bootstrap import App, open_app
from lockgate.bootstrap.orchestrator import _loop
from lockgate.core.model.agents import Exit
from lockgate.core.model.task import Role, Session, SessionId, Status, Task, TaskId
from lockgate.ports import Sessions

ROUNDS = 60
REAL = 100  # sessions with runners of their own
RUNNING = 1_000
COUNTS = (1_000, 10_000, 100_000)  # pending tasks
PATIENCE = 300.0
BEHIND = "runs-"  # how tasks begin whose sessions are behind the port
CONFIG = """\
[project]
agent = "sleeper"
slots = 1000
respawn = "manual"
[gates]
formula = "none"
[[gates.list]]
name = "review"
type = "parallel_review"
dimensions = ["general"]
[sandbox]
level = "none"
[agents.sleeper]
command = ["sleep", "3600"]
"""


class Found(Struct, frozen=True, kw_only=True):
    """Of one home, measured in a process of its own; seconds of CPU but for `start_wall`."""

    start: float
    start_wall: float
    wake: float
    changed: float
    check: float
    transition: float
    memory: float  # bytes


def bench(where: Path, counts: tuple[int, ...] = COUNTS, real: int = REAL) -> list[Measure]:
    say(f"\na large home; {RUNNING:,} at work, {real} of them with a runner of their own")
    empty = _measured(_made(where / "empty", 0, 0))
    _tell("empty", empty)
    found: dict[int, Found] = {}
    for count in counts:
        home = _made(where / str(count), count, RUNNING - real - 1)
        with _killed_orchestrator(home, real if count == counts[1] else 0):
            found[count] = _measured(home)
        _tell(f"{count:,} pending", found[count])
    return [it for count in counts for it in _lines(count, found[count], empty)]


def _lines(count: int, it: Found, empty: Found) -> Iterator[Measure]:
    def line(name: str, ours: float, peer: str, theirs: float, times: float) -> Measure:
        name = f"{name}, {count:,} pending"
        return Measure(name=name, ours=ours, peer=peer, theirs=theirs, target=AtMost(times))

    yield line("a transition", it.transition, "in an empty home", empty.transition, 3)
    yield line("a wake, nothing new", it.wake, "10 ms", 0.010, 1)
    yield line("a wake after a change", it.changed, "10 ms", 0.010, 1)
    yield line("a wake with the health check", it.check, "10 ms", 0.010, 1)
    yield line("the start until all sessions are looked at", it.start, "2 s", 2.0, 1)
    each = max(1.0, (it.memory - empty.memory) / (count + RUNNING))
    yield line("memory of a task (1 ms stands for 1 KB)", each / 1e6, "3 KB", 0.003, 1)


def _tell(name: str, it: Found) -> None:
    said = f"start {it.start:.2f} s of CPU ({it.start_wall:.2f} s), wake {1000 * it.wake:.3f} ms"
    more = f"after a change {1000 * it.changed:.3f} ms, health check {1000 * it.check:.1f} ms"
    last = f"transition {1000 * it.transition:.2f} ms, {it.memory / 1e6:.1f} MB"
    say(f"  {name}: {said}, {more}, {last}")


# Making a home.


def _made(where: Path, pending: int, running: int) -> Path:
    app, project = make_home(where, CONFIG)
    pattern = app.store.load(add_task(app, project, "The first").id)
    first = move(app, pattern.id, Status.WORKING)
    app.store.close()
    connection = sqlite3.connect(where / "home" / "lockgate.db")
    with connection:
        for number in range(pending):
            task = _filler(pattern, f"waits-{number:06d}", number)
            task = replace(task, depends_on=(first.id,))
            connection.execute(sql.INSERT_TASK, rows.task_to_row(task))
            connection.execute(sql.PUT_DEPENDENCY, {"task": task.id, "needs": first.id})
        connection.execute(sql.COUNT_NEEDS_ON, {"id": first.id})
        for number in range(running):
            task = replace(_filler(pattern, f"{BEHIND}{number:06d}", number), status=Status.WORKING)
            connection.execute(sql.INSERT_TASK, rows.task_to_row(task))
            connection.execute(sql.PUT_SESSION, rows.session_to_row(_session(task)))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return where


def _filler(pattern: Task, name: str, number: int) -> Task:
    made = pattern.created + number
    return replace(pattern, id=TaskId(name), branch=name, created=made, pinned=None)


def _session(task: Task) -> Session:
    return Session(
        id=SessionId(f"{task.id}.1"),
        task=task.id,
        role=Role.WORKER,
        round=0,
        generation=1,
        token_hash=f"hash of {task.id}",
        started=task.created,
        agent="sleeper",
    )


@contextlib.contextmanager
def _killed_orchestrator(where: Path, real: int) -> Iterator[None]:
    """It has started so many real sessions, which outlive it; then it was killed."""
    app = open_app({"LOCKGATE_HOME": str(where / "home")})
    project = app.projects.here(where / "repository")
    if real:
        for number in range(real):
            add_task(app, project, f"Real number {number}")
        _started_and_killed(where, app, real)
    try:
        yield
    finally:
        for session in app.store.sessions_alive():
            if not session.id.startswith(BEHIND):
                app.sessions.end(session.id, 0.0)
        app.store.close()


def _started_and_killed(where: Path, app: App, real: int) -> None:
    """By a loop of ours with the port before it, so that those behind it are not taken for dead."""
    argv = (sys.executable, "-m", "bench.scale", "--starts", str(real), "--home", str(where))
    process = subprocess.Popen(argv)
    last = time.monotonic() + PATIENCE
    while time.monotonic() < last and process.poll() is None:
        alive = [it for it in app.store.sessions_alive() if not it.id.startswith(BEHIND)]
        if sum(app.sessions.started(it.id) for it in alive) >= real:
            break
        time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.wait()


# In a process of its own.


class Behind:
    """The sessions port: most are only said to run, the others are real."""

    def __init__(self, real: Sessions) -> None:
        self.real = real

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the real one has
        return getattr(self.real, name)

    def exit_of(self, id: SessionId) -> Exit | None:
        return None if id.startswith(BEHIND) else self.real.exit_of(id)

    def started(self, id: SessionId) -> bool:
        return id.startswith(BEHIND) or self.real.started(id)

    def watch(self, id: SessionId) -> int | None:
        return os.eventfd(0) if id.startswith(BEHIND) else self.real.watch(id)


def _opened(where: Path, pool: ThreadPoolExecutor) -> tuple[App, Any, LocalEngine]:
    allow_many_files()
    app = open_app({"LOCKGATE_HOME": str(where / "home")})
    engine = LocalEngine(pool)
    loop = _loop(app, Watch(), engine, lambda _: None)
    loop.sessions = Behind(loop.sessions)
    return app, loop, engine


def _starts(where: Path) -> None:
    with ThreadPoolExecutor(64) as pool:
        _, loop, _ = _opened(where, pool)
        loop.run()


def _measure(where: Path) -> Found:
    began = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        app, loop, engine = _opened(where, pool)
        engine.stop()  # what is put is not begun: the planning alone is measured
        loop.turn()
        while loop._unseen:  # noqa: SLF001 - it looks at its sessions in steps
            loop.turn()
        start, wall = time.process_time(), time.monotonic() - began
        wake = _by_cpu(loop.turn)

        def changed() -> None:
            loop._turn = -1  # noqa: SLF001 - as if somebody had written since
            loop.turn()

        def check() -> None:
            loop._checked = -1e9  # noqa: SLF001 - as if half a minute had passed
            loop.turn()

        after, checks = _by_cpu(changed), _by_cpu(check, 5)
        memory = _resident()
        project = app.projects.here(where / "repository")
        task = move(app, add_task(app, project, "Walks to and fro").id, Status.WORKING)
        targets = (Status.CLARIFICATION, Status.WORKING)
        steps = iter(targets * ROUNDS)
        return Found(
            start=start,
            start_wall=wall,
            wake=wake,
            changed=after,
            check=checks,
            transition=_by_cpu(lambda: move(app, task.id, next(steps))),
            memory=memory,
        )


def _by_cpu(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    taken: list[float] = []
    for _ in range(rounds):
        begun = time.thread_time()
        work()
        taken.append(time.thread_time() - begun)
    return median(taken)


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return float(pages * resource.getpagesize())


def _measured(where: Path) -> Found:
    argv = (sys.executable, "-m", "bench.scale", "--measure", "--home", str(where))
    done = subprocess.run(argv, check=True, capture_output=True)
    return Found(**json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    import argparse  # noqa: PLC0415 - a child measures without it

    parser = argparse.ArgumentParser()
    parser.add_argument("--home", type=Path)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--starts", type=int, default=0)
    parser.add_argument("--counts", type=int, nargs="+", default=list(COUNTS))
    parser.add_argument("--real", type=int, default=REAL)
    asked = arguments(parser)
    if asked.starts:
        _starts(asked.home)
    elif asked.measure:
        found = _measure(asked.home)
        say(json.dumps({name: getattr(found, name) for name in found.__struct_fields__}))
    else:
        with place(asked.dir) as where:
            say(table(bench(where, tuple(asked.counts), asked.real)))


if __name__ == "__main__":
    main()
