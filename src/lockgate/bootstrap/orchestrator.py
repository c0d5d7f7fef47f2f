"""Puts the orchestrator together, and starts one in the background."""

import os
import sys
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from msgspec.structs import replace

from lockgate.adapters.run import start_detached
from lockgate.adapters.sessions.runner.command_socket import Door, Line, Request
from lockgate.adapters.sessions.sessions import Watch
from lockgate.adapters.system import SystemChance, SystemClock, holding, sweep
from lockgate.bootstrap.app import App
from lockgate.core.lifecycle.advice import Trouble
from lockgate.core.train.model import Term
from lockgate.ports import Call
from lockgate.services.agents.spawner import NO_LIMIT, Desks, Monitor, Spawner
from lockgate.services.gates.runner import GateRunner, Judge
from lockgate.services.orchestrator.effects import Hands, Housekeeper, Starter
from lockgate.services.orchestrator.loop import Loop
from lockgate.services.task.projects import Branches
from lockgate.services.train.landing import Lander
from lockgate.services.train.queue import MergeQueue, TrainTests

# Puts the merge train together.


def merge_queue(
    it: App,
    runner: GateRunner,
    stopping: Callable[[], bool],
    held: dict[str, Trouble],
) -> MergeQueue:
    """The train for the orchestrator, which alone acts."""
    view, now = it.train, SystemClock().now
    term = Term(view.log.raise_epoch(), now())
    return MergeQueue(
        view=view,
        lander=Lander(view, it.coordinator, now, term),
        tests=TrainTests(it.workspaces, runner),
        now=now,
        stopping=stopping,
        held=held,
    )


LANES = 16  # tasks and evaluations that are attended to at once


@contextmanager
def orchestrating(
    it: App, answer: Callable[[Call], None], report: Callable[[str], None]
) -> Generator[Loop | None]:
    """The loop with its door open; None where another orchestrator serves this home.

    A call that gets no answer is the caller's own to carry out.
    """
    with holding(it.home) as ours:
        if not ours:
            yield None
            return
        sweep()
        watch = Watch()
        with ThreadPoolExecutor(LANES) as pool:
            loop = _loop(it, watch, pool, report)

            door = Door(str(it.home / "door.sock"), _answering(answer, loop))
            door.serve()
            try:
                yield loop
            finally:
                loop.stop()
                pool.shutdown()  # an agent that it still starts finds the door open
                door.close()
        watch.close()


def _answering(answer: Callable[[Call], None], loop: Loop) -> Callable[[Request, Line], None]:
    """Whoever asked has the answer before the loop looks what it was about."""
    visits = set[Line]()
    loop.visited = lambda: bool(visits)

    def heard(asked: Request, line: Line) -> None:
        visits.add(line)
        try:
            answer(_call(asked, line))
        finally:
            visits.discard(line)
            loop.watch.wake()

    return heard


def _call(asked: Request, line: Line) -> Call:
    return Call(
        argv=asked.argv,
        token=asked.token,
        directory=Path(asked.cwd),
        stdin=asked.stdin,
        path=asked.path,
        lively=asked.lively,
        line=line,
        columns=asked.columns,
    )


def _loop(it: App, watch: Watch, pool: ThreadPoolExecutor, report: Callable[[str], None]) -> Loop:
    clock, spawner, runner, stopping = SystemClock(), _spawner(it), _gate_runner(it), Event()
    judge = Judge(
        store=it.store,
        coordinator=it.coordinator,
        workspaces=it.workspaces,
        runner=runner,
        configuration=it.configuration,
        signals=it.signals,
    )
    return Loop(
        store=it.store,
        starter=Starter(
            store=it.store,
            coordinator=it.coordinator,
            configuration=it.configuration,
            logins=it.logins,
            clock=clock,
        ),
        hands=Hands(
            store=it.store,
            coordinator=it.coordinator,
            branches=Branches(it.store, it.projects.repository, it.configuration),
            workspaces=it.workspaces,
            sessions=it.sessions,
            spawner=spawner,
            configuration=it.configuration,
            judge=judge,
        ),
        judge=judge,
        monitor=Monitor(it.store, it.attendance, it.sessions, it.harnesses, it.configuration),
        housekeeper=Housekeeper(
            it.store, it.workspaces, _bytes_in("LOCKGATE_POOL_GB"), _bytes_in("LOCKGATE_SET_UPS_GB")
        ),
        trains=merge_queue(it, runner, stopping.is_set, it.troubles),
        stopping=stopping,
        sessions=it.sessions,
        watch=watch,
        pool=pool,
        clock=clock,
        report=report,
        troubles=it.troubles,
    )


def _gate_runner(it: App) -> GateRunner:
    """Imported here because only an orchestrator judges."""
    from lockgate.adapters.gate_commands import CommandGates
    from lockgate.adapters.reports import read_reports
    from lockgate.bootstrap.gates import gate_runner

    runner = gate_runner(it.home, it.workspaces, CommandGates(read_reports, it.home))
    return replace(runner, secrets=it.coordinator.witness.secrets)


def _spawner(it: App) -> Spawner:
    return Spawner(
        home=it.home,
        store=it.store,
        attendance=it.attendance,
        workspaces=it.workspaces,
        sessions=it.sessions,
        harnesses=it.harnesses,
        files=it.views.files,
        desks=Desks(it.home, it.store, it.workspaces, it.views.files),
        configuration=it.configuration,
        credentials=it.credentials,
        logins=it.logins,
        secrets=it.coordinator.witness.secrets,
        clock=SystemClock(),
        chance=SystemChance(),
        wall_seconds=number_said(os.environ, "LOCKGATE_WALL_SECONDS", NO_LIMIT),
    )


def number_said(environ: Mapping[str, str], name: str, otherwise: float) -> float:
    said = environ.get(name, "")
    return float(said) if said.replace(".", "", 1).isdecimal() else otherwise


def start_orchestrator(home: Path, idle_seconds: float | None) -> None:
    """One in the background, which ends when it has been idle for so long."""
    idle = () if idle_seconds is None else ("--idle", str(idle_seconds))
    argv = (sys.executable, "-m", "lockgate", "up", *idle)
    start_detached(argv, home / "logs" / "orchestrator.log")


def _bytes_in(variable: str) -> int:
    return int(number_said(os.environ, variable, 20) * 10**9)
