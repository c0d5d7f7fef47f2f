"""Many agents under one orchestrator: how soon an end is recorded, what watching costs, how fast
the commands are that agents and hooks call.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.harness import AtMost, Measure, Work, clocked, interleave, main, say
from bench.home import add_task, make_home, move
from bench.transition import appending
from lockgate.bootstrap import App
from lockgate.core.model.task import Session, SessionId, Status, Task
from lockgate.services.task.callers import HUMAN
from lockgate.services.task.tasks import NewTask

SESSIONS = 200
ROUNDS = 40
TASKS = 20
IDLE_SECONDS = 60.0
TICKS = os.sysconf("SC_CLK_TCK")
FLOOR, BARE = "fdatasync of 4 KiB", "python -c pass"
END, POLL = "a session's end, recorded", "the 30 s poll alone (mean, by arithmetic)"
CONFIG = f"""\
[project]
agent = "sleeper"
slots = {SESSIONS * 2}
respawn = "manual"
[gates]
formula = "none"
[sandbox]
level = "none"
[limits]
crashes = 9
escalation_threshold = 9
[agents.sleeper]
command = ["sleep", "3600"]
"""


def bench(where: Path) -> list[Measure]:
    say(f"\nsessions, {SESSIONS} at once")
    app, project = make_home(where, CONFIG)
    for number in range(SESSIONS):
        add_task(app, project, f"Task number {number}")
    with _orchestrator(where, app, SESSIONS) as pid:
        idle = _idle(pid)
        with appending(where / "floor") as floor:
            found = interleave({FLOOR: floor, END: lambda: _ended(app)}, ROUNDS)
    commands = _commands(where / "quiet")
    fdatasync = found[FLOOR]
    return [
        Measure(name=END, ours=found[END], peer=FLOOR, theirs=fdatasync, target=AtMost(10)),
        Measure(name=END, ours=found[END], peer=POLL, theirs=15.0),
        Measure(
            name="CPU while all of them wait",
            ours=idle,
            peer="the time",
            theirs=IDLE_SECONDS,
            target=AtMost(0.01),
        ),
        *commands,
    ]


@contextlib.contextmanager
def _orchestrator(where: Path, app: App, agents: int) -> Iterator[int]:
    with (where / "orchestrator.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "lockgate", "up"],
            cwd=where / "repository",
            env=os.environ | {"LOCKGATE_HOME": str(app.home)},
            stdout=log,
            stderr=log,
        )
    try:
        begin = time.monotonic()
        while len(_running(app)) < agents or not (app.home / "door.sock").exists():
            time.sleep(0.2)
        say(f"  {agents} agents started in {time.monotonic() - begin:.0f} s")
        yield process.pid
    finally:
        process.terminate()
        process.wait(60)
        for session in app.store.sessions_alive():
            app.sessions.end(session.id, 0.0)
        app.store.close()


def _running(app: App) -> list[Session]:
    return [it for it in app.store.sessions_alive() if app.sessions.started(it.id)]


def _idle(pid: int) -> float:
    """Seconds of a core that the orchestrator takes while nothing happens."""
    time.sleep(2)
    before = _cpu(pid)
    time.sleep(IDLE_SECONDS)
    return _cpu(pid) - before


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _ended(app: App) -> float:
    """Kill an agent; from the moment its runner has ended to the row that says so."""
    session = _running(app)[0]
    runner = app.sessions.watch(session.id)
    assert runner is not None, session  # noqa: S101  it runs
    try:
        os.kill(_agent(app, session.id), signal.SIGKILL)
        select.select([runner], [], [])
        begin = time.perf_counter()
        while (row := app.store.session(session.id)) and row.ended is None:
            pass
        return time.perf_counter() - begin
    finally:
        os.close(runner)


def _agent(app: App, id: SessionId) -> int:
    """The program that a runner keeps: its child."""
    run = json.loads((app.home / "sessions" / id / "run.json").read_text(encoding="utf-8"))
    children = Path(f"/proc/{run['pid']}/task/{run['pid']}/children").read_text(encoding="ascii")
    return int(children.split()[0])


def _commands(where: Path) -> list[Measure]:
    """In a home with some tasks and an orchestrator that has nothing else to do."""
    app, project = make_home(where)
    names = [f"waits-{it}" for it in range(TASKS)]
    asked = [NewTask(branch=it, summary="Waits", auto_start=False) for it in names]
    tasks = [app.tasks.create(project, it, HUMAN) for it in asked]
    move(app, tasks[0].id, Status.WORKING)  # started, as a task is that an agent calls for
    task = move(app, tasks[0].id, Status.STUCK)
    with _orchestrator(where, app, 0):
        return _timed(where, app, task)


def _timed(where: Path, app: App, task: Task) -> list[Measure]:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        "LOCKGATE_HOME": str(app.home),
    }
    summaries = (f"Summary number {number}" for number in range(10**6))

    def run(*argv: str) -> None:
        subprocess.run(argv, cwd=where, env=environment, check=True, capture_output=True)

    def updated() -> None:
        run(lockgate, "task", "update", task.id, "--summary", next(summaries))

    lockgate = str(Path(sys.executable).with_name("lockgate"))
    contenders: dict[str, Work] = {
        BARE: clocked(lambda: run(sys.executable, "-c", "pass")),
        "lockgate status": clocked(lambda: run(lockgate, "status")),
        "lockgate task update": clocked(updated),
    }
    found = interleave(contenders, ROUNDS)
    names = [name for name in contenders if name != BARE]
    return [
        Measure(name=name, ours=found[name], peer=BARE, theirs=found[BARE], target=AtMost(2.5))
        for name in names
    ]


if __name__ == "__main__":
    main(bench)
