"""Puts the program together: the only file that chooses adapters."""

import os
import sys
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lockgate.adapters.clock import SystemChance, SystemClock
from lockgate.adapters.credentials import StoredCredentials
from lockgate.adapters.doctor import version_of
from lockgate.adapters.gate_commands import CommandGates
from lockgate.adapters.git import GitRepository
from lockgate.adapters.harnesses import Registry
from lockgate.adapters.harnesses.registry import NETWORK
from lockgate.adapters.lock import holder, holding
from lockgate.adapters.run import start_detached
from lockgate.adapters.sandbox import trouble
from lockgate.adapters.sessions.door import Answer, Door, Request
from lockgate.adapters.sessions.process import ProcessSessions
from lockgate.adapters.sessions.watch import Watch
from lockgate.adapters.store import open_store
from lockgate.adapters.task_file import TaskFiles
from lockgate.adapters.workspaces import GitWorkspaces
from lockgate.core.settings import Settings
from lockgate.ports import Answered, Call, Store
from lockgate.services.attendance import Attendance
from lockgate.services.callers import Caller, identify
from lockgate.services.configuration import BaseConfiguration
from lockgate.services.coordinator import Coordinator
from lockgate.services.desks import Desks
from lockgate.services.effector import Effector
from lockgate.services.evidence import Witness
from lockgate.services.hands import Hands
from lockgate.services.housekeeping import Housekeeper
from lockgate.services.imports import Imports
from lockgate.services.initialise import Initialiser, Proposal, Wanted
from lockgate.services.judge import Judge
from lockgate.services.loop import Loop
from lockgate.services.monitor import Monitor
from lockgate.services.people import People
from lockgate.services.projects import Projects
from lockgate.services.runner import TaskRunner
from lockgate.services.signals import Signals
from lockgate.services.spawner import NO_LIMIT, Spawner
from lockgate.services.starter import Starter
from lockgate.services.tasks import Tasks
from lockgate.services.views import Views

program_version, sandbox_trouble = version_of, trouble
LANES = 16  # tasks and evaluations that are attended to at once


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """The services, over one home."""

    home: Path
    store: Store
    coordinator: Coordinator
    attendance: Attendance
    tasks: Tasks
    imports: Imports
    initialiser: Initialiser
    projects: Projects
    runner: TaskRunner
    views: Views
    signals: Signals
    people: People
    workspaces: GitWorkspaces
    sessions: ProcessSessions
    harnesses: Registry
    credentials: StoredCredentials
    configuration: BaseConfiguration
    caller: Caller
    troubles: dict[str, str] = field(default_factory=dict[str, str])  # what the loop cannot do


def home_of(environ: Mapping[str, str]) -> Path:
    """LOCKGATE_HOME, else the platform's place for a user's state."""
    if environ.get("LOCKGATE_HOME"):
        return Path(environ["LOCKGATE_HOME"]).absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "lockgate"
    state = environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "lockgate"


def open_app(environ: Mapping[str, str] = os.environ) -> App:
    """LOCKGATE_DATABASE names a Postgres URL; without it the database is a file in the home."""
    home = home_of(environ)
    store = open_store(environ.get("LOCKGATE_DATABASE") or str(home / "lockgate.db"))
    files, clock, repository = TaskFiles(home), SystemClock(), GitRepository()
    configuration = BaseConfiguration(repository, _load_config, _config_hash)
    harnesses = Registry()
    witness = Witness(
        store=store,
        files=files,
        repository=repository,
        configuration=configuration,
        harnesses=harnesses,
        clock=clock,
    )
    coordinator = Coordinator(store, witness, Effector(store, files))
    tasks = _tasks(coordinator, repository, configuration)
    workspaces, attendance = GitWorkspaces(home), Attendance(coordinator)
    return App(
        home=home,
        store=store,
        coordinator=coordinator,
        attendance=attendance,
        tasks=tasks,
        imports=Imports(tasks, files),
        initialiser=Initialiser(repository, _propose),
        projects=Projects(store, repository, files),
        runner=TaskRunner(coordinator),
        views=Views(store, files, witness),
        signals=Signals(
            store=store, coordinator=coordinator, workspaces=workspaces, files=files, clock=clock
        ),
        people=People(store, attendance, workspaces, files),
        workspaces=workspaces,
        sessions=ProcessSessions(home),
        harnesses=harnesses,
        credentials=StoredCredentials(home, environ),
        configuration=configuration,
        caller=identify(store, environ.get("LOCKGATE_TOKEN")),
    )


def _tasks(
    coordinator: Coordinator, repository: GitRepository, configuration: BaseConfiguration
) -> Tasks:
    return Tasks(
        store=coordinator.store,
        coordinator=coordinator,
        repository=repository,
        configuration=configuration,
        clock=SystemClock(),
        chance=SystemChance(),
    )


@contextmanager
def orchestrating(
    it: App, answer: Callable[[Call], Answered], report: Callable[[str], None]
) -> Generator[Loop | None]:
    """The loop with its door open; None where another orchestrator serves this home."""
    with holding(it.home) as ours:
        if not ours:
            yield None
            return
        watch = Watch()
        with ThreadPoolExecutor(LANES) as pool:
            loop = _loop(it, watch, pool, report)

            def heard(asked: Request) -> Answer:
                call = Call(
                    argv=asked.argv, token=asked.token, directory=Path(asked.cwd), stdin=asked.stdin
                )
                answered = answer(call)
                watch.wake()
                return Answer(answered.code, answered.out, answered.err)

            door = Door(str(it.home / "door.sock"), heard)
            door.serve()
            try:
                yield loop
            finally:
                loop.stop()
                pool.shutdown()  # an agent that it still starts finds the door open
                door.close()
        watch.close()


def _loop(it: App, watch: Watch, pool: ThreadPoolExecutor, report: Callable[[str], None]) -> Loop:
    clock, spawner = SystemClock(), _spawner(it)
    judge = Judge(
        home=it.home,
        store=it.store,
        coordinator=it.coordinator,
        workspaces=it.workspaces,
        gates=CommandGates(),
        spawner=spawner,
    )
    return Loop(
        store=it.store,
        starter=Starter(
            store=it.store,
            coordinator=it.coordinator,
            configuration=it.configuration,
            clock=clock,
        ),
        hands=Hands(
            store=it.store,
            effector=it.coordinator.effector,
            workspaces=it.workspaces,
            sessions=it.sessions,
            spawner=spawner,
            judge=judge,
        ),
        judge=judge,
        monitor=Monitor(it.store, it.attendance, it.sessions, it.harnesses, spawner),
        housekeeper=Housekeeper(it.store, it.workspaces, pool_bytes(os.environ)),
        sessions=it.sessions,
        watch=watch,
        pool=pool,
        clock=clock,
        report=report,
        troubles=it.troubles,
    )


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
        clock=SystemClock(),
        chance=SystemChance(),
        wall_seconds=number_said(os.environ, "LOCKGATE_WALL_SECONDS", NO_LIMIT),
    )


def pool_bytes(environ: Mapping[str, str]) -> int:
    """What all workspaces together may take: LOCKGATE_POOL_GB, 20 where it says nothing."""
    return int(number_said(environ, "LOCKGATE_POOL_GB", 20) * 10**9)


def number_said(environ: Mapping[str, str], name: str, otherwise: float) -> float:
    said = environ.get(name, "")
    return float(said) if said.replace(".", "", 1).isdecimal() else otherwise


def orchestrator_pid(home: Path) -> int | None:
    return holder(home)


def start_orchestrator(home: Path, idle_seconds: float | None) -> None:
    """One in the background, which ends when it has been idle for so long."""
    idle = () if idle_seconds is None else ("--idle", str(idle_seconds))
    argv = (sys.executable, "-m", "lockgate", "up", *idle)
    start_detached(argv, home / "logs" / "orchestrator.log")


def login_variables(it: App, agent: str, settings: Settings) -> tuple[str, ...]:
    """Those that it takes its login and its model from."""
    return tuple(name for name in it.harnesses.variables(agent, settings) if name not in NETWORK)


def _load_config(text: str | None, origin: str) -> Settings:
    """Imported here because only a task that starts needs it, and pydantic is slow to load."""
    from lockgate.adapters.config.load import load_config

    return load_config(text, origin=origin)


def _config_hash(settings: Settings) -> str:
    from lockgate.adapters.config.load import config_hash

    return config_hash(settings)


def config_schema() -> dict[str, object]:
    """The JSON Schema of .lockgate/config.toml."""
    from lockgate.adapters.config.load import json_schema

    return json_schema()


def _propose(root: Path, wanted: Wanted, base: str) -> Proposal:
    from lockgate.adapters.config.detect import detect
    from lockgate.adapters.config.write import render_config

    seen = detect(root)
    parts = {"test": seen.test, "typecheck": seen.typecheck, "setup": seen.setup}
    found = {
        key: f"{part.command} (seen by {part.by})" if part else "not found"
        for key, part in parts.items()
    }
    text = render_config(seen, formula=wanted.formula, agent=wanted.agent, base=base)
    return Proposal(text, found)


def make_demo_repository(root: Path, seconds: float = 0.0) -> str | None:
    from lockgate.adapters.demo import make_repository

    return make_repository(root, seconds)


def merge_demo_branch(root: Path, branch: str) -> None:
    from lockgate.adapters.demo import merge_branch

    merge_branch(root, branch)


def run_demo_tests(root: Path) -> tuple[bool, str]:
    from lockgate.adapters.demo import run_tests

    return run_tests(root)
