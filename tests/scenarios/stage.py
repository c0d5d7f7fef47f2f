"""The loop on a real store and real files, with fakes for the doors to processes and clones."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from threading import Event
from typing import Any

from msgspec.structs import replace

from lockgate.adapters.engine import LocalEngine
from lockgate.adapters.store.checkpoints import SqlCheckpoints
from lockgate.adapters.store.notices import SqlNotices
from lockgate.adapters.store.train_log import SqlTrainLog
from lockgate.bootstrap import open_app
from lockgate.core.config.settings import Settings
from lockgate.core.model import gates
from lockgate.core.model.agents import Ending, Exit, Job, Launch, Report, Source, Usage
from lockgate.core.model.brought import Brought, SetUpFailed
from lockgate.core.model.gates import CommandGate, DifferentialGate
from lockgate.core.model.results import ReportRead, SingleGateResult, Unreadable
from lockgate.core.model.secrets import Secret
from lockgate.core.model.task import SessionId, Task, TaskId
from lockgate.errors import NotPrepared, Unavailable
from lockgate.ports import Attempt, Candidate, Change, Cut, GateRun, Project, Start, Unfit
from lockgate.services.agents.day_budget import DayBudget
from lockgate.services.agents.spawner import Desks, Monitor, Spawner
from lockgate.services.gates.judge import Judge
from lockgate.services.gates.runner import Evaluation, GateRunner
from lockgate.services.orchestrator.crew import Crew
from lockgate.services.orchestrator.effects import Hands, Housekeeper, Starter
from lockgate.services.orchestrator.loop import Loop
from lockgate.services.task.logins import Logins
from lockgate.services.task.projects import Branches
from lockgate.services.task.sessions import Checkpoints, Signals
from lockgate.services.train.landing import Lander
from lockgate.services.train.queue import MergeQueue, TrainTests
from lockgate.services.train.view import TrainView
from tests.scenarios.world import World

Differential = Callable[[Evaluation, DifferentialGate, Callable[[], bool]], SingleGateResult]


@dataclass
class Time:
    at: float = 1_800_000_000.0
    set_by: float = 0.0  # how far somebody has set the clock of the day

    def now(self) -> float:
        return self.at + self.set_by

    def elapsed(self) -> float:
        return self.at


class AtOnce(Executor):
    """Work is done where it is given."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@dataclass
class FakeSessions:
    """What was written down, what runs, what has ended; `dies` raises in the middle of a start."""

    noted: dict[SessionId, Start] = field(default_factory=dict)
    runs: list[SessionId] = field(default_factory=list)
    exits: dict[SessionId, Exit] = field(default_factory=dict)
    ended: list[SessionId] = field(default_factory=list)
    refuses: str = ""

    def attach_command(self, id: SessionId) -> tuple[str, ...] | None:
        return None

    def note(self, start: Start) -> None:
        self.noted.setdefault(start.session, start)

    def start(self, start: Start) -> None:
        if self.refuses:
            raise Unavailable("it was not started", why=self.refuses, fix="wait")
        self.note(start)
        if start.session not in self.runs and start.session not in self.exits:
            self.runs.append(start.session)

    def token(self, id: SessionId) -> str | None:
        return self.noted[id].token if id in self.noted else None

    def started(self, id: SessionId) -> bool:
        return id in self.runs

    def exit_of(self, id: SessionId) -> Exit | None:
        return self.exits.get(id)

    def watch(self, id: SessionId) -> int | None:
        return None if id in self.exits else 7

    def end(self, id: SessionId, grace: float) -> None:
        self.ended.append(id)
        self.exits.setdefault(id, Exit(ending=Ending.ENDED))

    def output(self, id: SessionId) -> str:
        return ""

    def remove(self, id: SessionId) -> None:
        self.noted.pop(id, None)


@dataclass
class FakeWatch:
    """Reports nothing by itself: a test says who has ended, or leaves it to the health check."""

    added: list[SessionId] = field(default_factory=list)
    ready: list[SessionId] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    def add(self, id: SessionId, descriptor: int) -> None:
        self.added.append(id)

    def wake(self) -> None: ...

    def wait(self, seconds: float) -> tuple[SessionId, ...]:
        self.waits.append(seconds)
        ended, self.ready = tuple(self.ready), []
        return ended


@dataclass
class FakeHarnesses:
    report: Report = field(default_factory=lambda: Report(native="n1", usage=Usage(0.5, 10)))
    jobs: list[Job] = field(default_factory=list)
    how: str | None = None
    resumes: bool = True
    needs: tuple[str, ...] = ()  # the variables of which one is a login
    keys_of: dict[str, str] = field(default_factory=dict)  # the variable each agent logs in by

    def logins(self, agent: str, settings: Settings) -> tuple[str, ...]:
        return tuple(self.keys_of.values())

    def login(self, agent: str, settings: Settings, given: Mapping[str, str]) -> str:
        return self.keys_of.get(agent, "")

    def keep(self, file: Path) -> str:
        return file.name

    def missing(self, agent: str, settings: Settings) -> str | None:
        return self.how

    def launch(self, agent: str, settings: Settings, job: Job) -> Launch:
        self.jobs.append(job)
        return Launch(argv=("true",))

    def keys(self, agent: str, settings: Settings) -> tuple[str, ...]:
        return self.needs

    def can_resume(self, agent: str, settings: Settings) -> bool:
        return self.resumes

    def read(self, agent: str, settings: Settings, output: str, exit: Exit) -> Report:
        return self.report

    def paths(self, agent: str, settings: Settings) -> tuple[str, ...]:
        return ()

    def variables(self, agent: str, settings: Settings) -> tuple[str, ...]:
        return ()


@dataclass
class FakeWorkspaces:
    home: Path
    released: list[TaskId] = field(default_factory=list)
    published: list[str] = field(default_factory=list)
    files: dict[Path, Mapping[str, str]] = field(default_factory=dict)
    broken: str = ""
    not_taken: str = ""
    taken: list[TaskId] = field(default_factory=list)
    in_the_way: str = ""
    not_prepared: str = ""
    unfit: Unfit | None = None
    brings: Brought | SetUpFailed | None = None
    set_ups_within: int | None = None
    not_checked_out: list[str] = field(default_factory=list)  # why, once each
    work: Change = field(default_factory=lambda: Change("c" * 40, ("a.txt",), "p" * 64))

    def prepare(self, project: Project, task: Task) -> Path:
        if self.broken:
            raise Unavailable("no clone was made", why=self.broken, fix="mend it")
        self.place(task.id).mkdir(parents=True, exist_ok=True)
        return self.place(task.id)

    def place(self, id: TaskId) -> Path:
        return self.home / "workspaces" / id

    def base(self, project: Project) -> Path:
        return self.home

    def write(self, directory: Path, files: Mapping[str, str], *, sandboxed: bool = True) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (directory / name).write_text(text)

    def read(self, directory: Path, name: str) -> str | None:
        file = directory / name
        return file.read_text() if file.is_file() else None

    def take(self, project: Project, task: Task) -> Change | Unfit:
        if self.not_taken:
            raise Unavailable("the work was not taken", why=self.not_taken, fix="wait")
        self.taken.append(task.id)
        return self.unfit or self.work

    def adopt(self, project: Project, task: Task) -> Change | None:
        return None

    def change(self, it: Candidate) -> Change:
        return replace(self.work, commit=it.commit)

    def changed_files(self, it: Candidate) -> tuple[str, ...]:
        return self.work.files

    def diff(self, project: Project, task: Task, commit: str) -> str:
        return "diff"

    def checkout(self, it: Candidate, directory: Path) -> str:
        if self.not_checked_out:
            why = self.not_checked_out.pop(0)
            raise Unavailable("the change was not checked out", why=why, fix="wait")
        directory.mkdir(parents=True)
        return self.tree(it.project, it.commit)

    def checkout_for_review(
        self, project: Project, task: Task, commit: str, directory: Path, named: Sequence[str]
    ) -> None:
        directory.mkdir(parents=True)

    def squashed(self, project: Project, task: Task, commit: str) -> str:
        return f"squashed-{commit}"

    def tree(self, project: Project, commit: str) -> str:
        return "t" * 40

    def discard(self, directory: Path) -> None:
        shutil.rmtree(directory, ignore_errors=True)

    def publish(self, project: Project, task: Task, commit: str) -> str | None:
        if not self.in_the_way:
            self.published.append(commit)
        return self.in_the_way or None

    def release(self, project: Project, task: Task, *, counts: bool = True) -> None:
        self.released.append(task.id)

    def set_up(
        self, it: Candidate, settings: Settings, directory: Path, *, own: bool = False
    ) -> None: ...

    def brought(self, it: Candidate, settings: Settings) -> Brought | SetUpFailed | None:
        if self.broken:
            raise Unavailable("the set-up did not finish", why=self.broken, fix="mend it")
        return self.brings

    def service_data(self, it: Candidate, settings: Settings, commit: str) -> Path | None:
        if commit and self.not_prepared:
            raise NotPrepared("no data was prepared", why=self.not_prepared, fix="mend it")
        return self.home / f"data-of-{commit}" if settings.services else None

    def keep_within(
        self, limit_bytes: int, idle: Sequence[tuple[Project, Task]]
    ) -> tuple[TaskId, ...]:
        return tuple(task.id for _, task in idle)

    def keep_set_ups_within(self, limit_bytes: int) -> None:
        self.set_ups_within = limit_bytes

    def sizes(self) -> Mapping[str, int]:
        return {}


@dataclass
class FakeGates:
    """Each run takes the next result; the last one stays."""

    results: list[str] = field(default_factory=lambda: ["pass"])

    def attempt(self, gate: CommandGate, run: GateRun, cancelled: Callable[[], bool]) -> Attempt:
        result = self.results.pop(0) if len(self.results) > 1 else self.results[0]
        known = {"pass": 0, "fail": 1, "killed": 137, "segfault": 139}
        cuts = {"memory": Cut.MEMORY}
        broken = result not in known
        return Attempt(
            exit_code=known.get(result, 125),
            cut=cuts.get(result, Cut.BOX) if broken else None,
            why=result if broken else "",
            out="",
            err="",
            report_dir=None,
            seconds=0.1,
            level="none",
        )

    def read(self, attempt: Attempt, wanted: gates.Report | None) -> ReportRead | Unreadable:
        return ReportRead(format=gates.Report.GENERIC)


def no_differential(
    it: Evaluation, gate: DifferentialGate, cancelled: Callable[[], bool]
) -> SingleGateResult:
    raise AssertionError("these gates compare nothing")


def no_wait(milliseconds: float) -> None:
    """Time is the test's own."""


class Always:
    def hold(self, when: str, task: Mapping[str, object], change: Mapping[str, object]) -> bool:
        return True


@dataclass
class FakeLogins:
    """Each variable has the value that a test gave it."""

    given: dict[str, str] = field(default_factory=dict)

    def store(self, agent: str, name: str, *, value: str = "", variable: str = "") -> Path:
        raise AssertionError("nobody stores a login here")

    def forget(self, agent: str) -> tuple[str, ...]:
        raise AssertionError("nobody forgets a login here")

    def of(self, agent: str, names: Sequence[str]) -> Mapping[str, str]:
        return {name: self.given[name] for name in names if name in self.given}

    def sources(self, agent: str, names: Sequence[str]) -> Mapping[str, Source]:
        return {it: Source.STORED if it in self.given else Source.NONE for it in names}

    def names(self, agent: str) -> tuple[str, ...]:
        return ()

    def in_files(self, root: Path, names: Sequence[str]) -> tuple[Secret, ...]:
        return ()


class Stage:
    """A world whose orchestrator is a loop that a test turns by hand; `restart` forgets all."""

    def __init__(self, place: Path, config: str, database: str = "") -> None:
        self.world, self.database = World.at(place, config), database
        self.time, self.reports = Time(), list[str]()
        self.sessions, self.harnesses, self.gates = FakeSessions(), FakeHarnesses(), FakeGates()
        self.workspaces, self.credentials = FakeWorkspaces(self.world.home), FakeLogins()
        self.yard: Any = None
        self.pool: Executor = AtOnce()
        self.differential: Differential = no_differential
        self.restart()

    def restart(self) -> None:
        self.watch = FakeWatch()
        named = {"LOCKGATE_DATABASE": self.database} if self.database else {}
        app = open_app({"LOCKGATE_HOME": str(self.world.home), **named})
        logins = Logins(self.harnesses, self.credentials)
        witness = replace(app.witness, harnesses=self.harnesses, logins=logins, clock=self.time)
        views = replace(app.views, witness=witness)
        app = self.world.app = self.app = replace(app, witness=witness, views=views)
        self.budget = DayBudget(
            log=SqlNotices(app.store.database),
            configuration=app.configuration,
            clock=self.time,
            zone=UTC,
            troubles=app.troubles,
        )
        checkpoints = Checkpoints(SqlCheckpoints(app.store.database), witness.files)
        self.spawner = Spawner(
            home=self.world.home,
            store=app.store,
            attendance=app.attendance,
            workspaces=self.workspaces,
            sessions=self.sessions,
            harnesses=self.harnesses,
            checkpoints=checkpoints,
            desks=Desks(self.world.home, app.store, self.workspaces, witness.files),
            configuration=app.configuration,
            credentials=self.credentials,
            logins=logins,
            secrets=witness.secrets,
            clock=self.time,
            chance=app.tasks.chance,
            budget=self.budget,
        )
        self.signals = Signals(
            store=app.store,
            coordinator=app.coordinator,
            workspaces=self.workspaces,
            files=witness.files,
            checkpoints=checkpoints,
            clock=self.time,
        )
        self.loop = self._loop()

    def _trains(self, runner: GateRunner) -> MergeQueue:
        """Where nobody lets a change land, git is not asked."""
        app = self.app
        view = TrainView(app.store, SqlTrainLog(app.store.database), self.yard, app.configuration)
        return MergeQueue(
            view=view,
            lander=Lander(view, app.coordinator, self.time),
            tests=TrainTests(self.workspaces, runner),
            elapsed=self.time.elapsed,
            held={},
        )

    def _loop(self) -> Loop:
        app = self.app
        runner = GateRunner(
            home=self.world.home,
            workspaces=self.workspaces,
            gates=self.gates,
            conditions=Always(),
            delay=no_wait,
            differential=self.differential,
        )
        judge = Judge(
            store=app.store,
            coordinator=app.coordinator,
            workspaces=self.workspaces,
            runner=runner,
            configuration=app.configuration,
            signals=self.signals,
        )
        engine, stopping = LocalEngine(self.pool, self.time.elapsed), Event()
        crew = Crew(
            store=app.store,
            hands=Hands(
                store=app.store,
                coordinator=app.coordinator,
                branches=Branches(app.store, app.projects.repository, app.configuration),
                workspaces=self.workspaces,
                sessions=self.sessions,
                spawner=self.spawner,
                configuration=app.configuration,
                judge=judge,
            ),
            judge=judge,
            housekeeper=Housekeeper(app.store, self.workspaces, 0, 7),
            trains=self._trains(runner),
            engine=engine,
            stopping=stopping,
            clock=self.time,
            report=self.reports.append,
        )
        engine.begin(crew.do, self.watch.wake)
        return Loop(
            store=app.store,
            starter=Starter(
                store=app.store,
                coordinator=app.coordinator,
                configuration=app.configuration,
                logins=self.spawner.logins,
                clock=self.time,
                budget=self.budget,
            ),
            crew=crew,
            monitor=Monitor(
                app.store, app.attendance, self.sessions, self.harnesses, app.configuration
            ),
            sessions=self.sessions,
            watch=self.watch,
            engine=engine,
            clock=self.time,
            report=self.reports.append,
            stopping=stopping,
        )

    def turn(self, seconds: float = 0.0) -> None:
        """Let so much time pass, then turn until nothing new comes of it."""
        self.time.at += seconds
        for _ in range(4):
            self.loop.turn()

    def alive(self, id: TaskId) -> list[SessionId]:
        return [it.id for it in self.app.store.sessions(id) if it.ended is None]

    def dies(self, id: SessionId, ending: Ending = Ending.EXITED, code: int | None = 0) -> None:
        self.sessions.exits[id] = Exit(ending=ending, code=code, seconds=60.0)

    def event(self, id: SessionId) -> None:
        """The kernel says that the session's runner has ended."""
        self.watch.ready.append(id)
        self.loop.wait(0)
