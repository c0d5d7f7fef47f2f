"""The world outside of Lockgate, simulated: processes of agents, git, gates, disks, clocks.

It keeps the truth that a program could only find out by asking, so that the invariants are judged
by what happened and not by what was said.
"""

import shutil
import sqlite3
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from lockgate.adapters.config.load import config_hash, load_config
from lockgate.adapters.store.database import Work, migrations_after, newest_version
from lockgate.adapters.store.json_forms import Row
from lockgate.adapters.store.rows import Values
from lockgate.adapters.store.sqlite import _row, migrate
from lockgate.core.config.settings import Branch, Settings, pin
from lockgate.core.model import gates
from lockgate.core.model.agents import Ending, Exit
from lockgate.core.model.gates import CommandGate
from lockgate.core.model.results import ReportRead, Unreadable
from lockgate.core.model.secrets import Secret
from lockgate.core.model.task import Pinned, Session, SessionId, Task, TaskId
from lockgate.core.train.model import PUSH_WITHIN, Commit
from lockgate.errors import Overtaken, Refused, Unavailable
from lockgate.ports import (
    Arrived,
    Attempt,
    Candidate,
    Change,
    Cut,
    Elsewhere,
    GateRun,
    InTheWay,
    Leave,
    Project,
    Start,
    Target,
)
from lockgate.ports.train import ANYBODY
from tests.scenarios.stage import FakeWorkspaces
from tests.scenarios.train.fake_yard import START, Content, FakeYard, nothing
from tests.simulation.scheduler import Fibre, Process, Scheduler

BAD = "!"  # ends the name of a feature that no gate lets pass
SPINS = 300
WALL = 1_800_000_000.0


def luck(*parts: object) -> float:
    """The same for the same names, between 0 and 1: how the world is, not what happens in it."""
    return int(sha256(repr(parts).encode()).hexdigest()[:12], 16) / 16**12


@dataclass
class Clock:
    """People's time, which jumps; the scheduler's does not."""

    scheduler: Scheduler
    offset: float = WALL

    def now(self) -> float:
        return self.scheduler.now + self.offset

    def elapsed(self) -> float:
        return self.scheduler.now

    def true(self) -> float:
        """What it would say if it had never jumped."""
        return self.scheduler.now + WALL

    def put_right(self) -> None:
        self.offset = WALL


class MemoryDatabase:
    """The real schema and statements on one connection; a transaction is one step of the world."""

    shown = "in memory"
    known = newest_version("sqlite")

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        _template().backup(self.connection)
        self.connection.row_factory = _row

    def read(self, statement: str, values: Values) -> Sequence[Row]:
        with _our_errors():
            return self.connection.execute(statement, values).fetchall()

    def write(self, work: Work) -> None:
        with _our_errors():
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                work(self.connection.execute)
                self.connection.execute("COMMIT")
            except BaseException:
                self.connection.execute("ROLLBACK")
                raise

    write_lightly = write

    def still_there(self) -> None:
        """Nobody takes it away."""

    def close(self) -> None:
        self.connection.close()


@cache
def _template() -> sqlite3.Connection:
    made = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    made.row_factory = _row
    for migration in migrations_after("sqlite", 0):
        migrate(made, migration)
    return made


@contextmanager
def _our_errors() -> Generator[None]:
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise Refused("the database was not changed", why=str(error), fix="report it") from error


def unavailable(what: str) -> Unavailable:
    return Unavailable(what, why="the simulation has it fail", fix="try again")


# Git, as sets of features.


class Yard(FakeYard):
    """A remote branch with a fence, or with the time limit of a push, as adapters/train has it."""

    def __init__(self, scheduler: Scheduler, seed: int, *, fenced: bool) -> None:
        super().__init__()
        self.scheduler, self.seed, self.fenced = scheduler, seed, fenced
        self.fence = 0
        self.landings: list[Commit] = []  # by Lockgate, in their order
        self.checks_lease = self.checks_fence = True
        self.at_push: Callable[[], None] = nothing

    def land(
        self, target: Target, expected: Commit, commit: Commit, leave: Leave = ANYBODY
    ) -> Arrived | Elsewhere | InTheWay:
        fence, began = self.fence, self.scheduler.now
        leave.check()
        self.at_push()
        self.scheduler.point("git push")
        if self.checks_lease and self.history[-1] != expected:
            return Elsewhere()
        if self.checks_fence and self.fenced and self.fence != fence:
            raise Overtaken
        if self.checks_fence and not self.fenced and self.scheduler.now > began + PUSH_WITHIN:
            raise unavailable("the push was ended")
        self.fence += 1
        self.history.append(commit)
        self.landings.append(commit)
        return Arrived()

    def shut_out(self, target: Target, leave: Leave) -> bool:
        leave.check()
        if self.fenced:
            self.fence += 1
        return self.fenced

    def _clash(self, one: Commit, other: Commit) -> tuple[str, ...]:
        a, b = self.content[one], self.content[other]
        pairs = [(x, y) for x in sorted(a - b) for y in sorted(b - a)]
        return tuple(f"{x}-{y}.txt" for x, y in pairs if luck(self.seed, *sorted((x, y))) < 0.06)

    def is_good(self, content: Content) -> bool:
        """Whether the gates' command passes on it, each time."""
        if any(it.endswith(BAD) for it in content):
            return False
        pairs = [(x, y) for x in content for y in content if x < y]
        return all(luck("together", self.seed, *pair) >= 0.06 for pair in pairs)


@dataclass
class Gates:
    """Takes its time, and looks at what a commit has in it."""

    yard: Yard
    scheduler: Scheduler
    broken: Callable[[], bool]
    passed: set[Content] = field(default_factory=set)

    def attempt(self, gate: CommandGate, run: GateRun, cancelled: Callable[[], bool]) -> Attempt:
        content = self.yard.content[run.commit]
        for _ in range(self.scheduler.chance.choice((1, 1, 2, 6))):
            self.scheduler.sleep(self.scheduler.chance.uniform(0.2, 15.0))
            if cancelled():
                return _attempt(125, Cut.CANCELLED, "it was called off")
        if self.broken():
            return _attempt(125, Cut.BOX, "the sandbox was killed")
        if not self.yard.is_good(content):
            return _attempt(1, None, "")
        self.passed.add(content)
        return _attempt(0, None, "")

    def read(self, attempt: Attempt, wanted: gates.Report | None) -> ReportRead | Unreadable:
        return ReportRead(format=gates.Report.GENERIC)


def _attempt(code: int, cut: Cut | None, why: str) -> Attempt:
    return Attempt(
        exit_code=code,
        cut=cut,
        why=why,
        out="two things do not go together" if code == 1 else "",
        err="",
        report_dir=None,
        seconds=0.1,
        level="none",
    )


class Works(FakeWorkspaces):
    """The work in a task's clone is the version that its newest agent wrote."""

    def __init__(self, home: Path, yard: Yard) -> None:
        super().__init__(home)
        self.yard = yard
        self.written: dict[TaskId, str] = {}

    def take(self, project: Project, task: Task) -> Change:
        return self._change(self.written.get(task.id, f"{task.id}.0"))

    def change(self, it: Candidate) -> Change:
        return Change(it.commit, ("a.txt",), f"patch of {it.commit}")

    def checkout_for_review(
        self, project: Project, task: Task, commit: str, directory: Path, named: Sequence[str]
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)

    def tree(self, project: Project, commit: str) -> str:
        return self.yard.tree(commit)

    def discard(self, directory: Path) -> None:
        shutil.rmtree(directory, ignore_errors=True)

    def release(self, project: Project, task: Task, *, counts: bool = True) -> None:
        shutil.rmtree(self.place(task.id), ignore_errors=True)

    def keep_within(
        self, limit_bytes: int, idle: Sequence[tuple[Project, Task]]
    ) -> tuple[TaskId, ...]:
        return ()

    def _change(self, feature: str) -> Change:
        commit = self.yard.change(feature)
        return Change(commit, (f"{feature}.txt",), f"patch of {commit}")


@dataclass
class Rules:
    """The configuration that every commit has."""

    settings: Settings
    digest: str
    repository: None = None

    @classmethod
    def of(cls, text: str) -> "Rules":
        settings = load_config(text, origin="the simulation")
        return cls(settings, config_hash(settings))

    def settings_of(self, project: Project) -> Settings:
        return self.settings

    def settings_at(self, project: Project, commit: str) -> Settings:
        return self.settings

    def settings_for(self, task: Task, project: Project) -> Settings:
        return self.settings

    allowed_of, allowed_at, allowed_for = settings_of, settings_at, settings_for

    def refused(self, project: Project) -> tuple[()]:
        return ()

    def noted(self) -> tuple[()]:
        return ()

    def landed(self, project: Project, before: str, after: str, by: Sequence[Task]) -> None:
        """No change edits the rules."""

    def rules_of(self, project: Project) -> Pinned:
        return self.rules_at(project, START, "main")

    def rules_at(self, project: Project, commit: str, base: str) -> Pinned:
        return replace(pin(self.settings, START, self.digest), base=base)


@dataclass
class Repository:
    """The user's clone."""

    yard: Yard

    def valid_branch(self, name: str) -> bool:
        return True

    def base_branch(self, project: Project) -> Branch:
        return Branch("main", self.yard.history[-1])

    def default_branches(self, project: Project) -> tuple[str, ...]:
        return ("main",)

    def signing_trouble(self, project: Project) -> None:
        return None

    def landed(self, project: Project, change: str, target: str) -> bool:
        mine = self.yard.content.get(change, frozenset())
        return bool(mine) and mine <= self.yard.content[self.yard.history[-1]]


class NoSecrets:
    def of(self, it: Candidate, agent: str) -> tuple[Secret, ...]:
        return ()


@dataclass
class Tokens:
    """Where ids come from: a counter, so that a seed gives the same ones."""

    number: int = 0

    def suffix(self) -> str:
        self.number += 1
        return f"{self.number:04}"

    def token(self) -> str:
        return f"token {self.suffix()}"


# The processes of agents.


@dataclass(eq=False)
class Run:
    """A session's program, and the runner that keeps it."""

    session: Session
    start: Start
    process: Process
    ended: Exit | None = None


class Watch:
    """Wakes the one fibre that waits, as a pipe would."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.added: set[SessionId] = set()
        self.ready: list[SessionId] = []
        self.news = 0.0  # when something last happened that the loop is to look at
        self.turns: list[float] = []  # when it last waited, as often as SPINS
        self._woken = False
        self._waits: Fibre | None = None

    def add(self, id: SessionId, descriptor: int) -> None:
        self.added.add(id)

    def wake(self) -> None:
        self._woken = True
        if self._waits:
            self.scheduler.wake(self._waits)

    def ended(self, id: SessionId) -> None:
        """The kernel's own word, which no program can lose."""
        if id in self.added:
            self.added.discard(id)
            self.ready.append(id)
            Watch.wake(self)

    def wait(self, seconds: float) -> tuple[SessionId, ...]:
        self.scheduler.point("waits")
        self.turns = [*self.turns[-SPINS:], self.scheduler.now]
        if not self._woken:
            self._waits = self.scheduler.current
            try:
                self.scheduler.sleep(seconds)
            finally:
                self._waits = None
        self._woken = False
        ended, self.ready = tuple(self.ready), []
        return ended

    def close(self) -> None: ...


class Machine:
    """Implements `Sessions`: a session starts once, and lives without the orchestrator."""

    def __init__(
        self,
        scheduler: Scheduler,
        row: Callable[[SessionId], Session | None],
        plays: Callable[["Machine", Run], None],
    ) -> None:
        self.scheduler, self._row, self._plays = scheduler, row, plays
        self.noted: dict[SessionId, Start] = {}
        self.runs: dict[SessionId, Run] = {}
        self.exits: dict[SessionId, Exit] = {}
        self.outputs: dict[SessionId, str] = {}
        self.watches: list[Watch] = []
        self.starts: list[SessionId] = []
        self.wrong: Callable[[str], None] = lambda _why: None

    def attach_command(self, id: SessionId) -> tuple[str, ...] | None:
        return None

    def note(self, start: Start) -> None:
        self.noted.setdefault(start.session, start)

    def start(self, start: Start) -> None:
        self.note(start)
        if start.session in self.runs or start.session in self.exits:
            return
        self.begin(self.noted[start.session])

    def begin(self, start: Start) -> None:
        session = self._row(start.session)
        if session is None:
            self.wrong(f"agent {start.session} was started, and no transaction had asked for it")
            return
        alive = [it.session for it in self.runs.values() if it.ended is None]
        same = [it.id for it in alive if _desk(it) == _desk(session)]
        if same:
            self.wrong(f"agent {start.session} was started while {same} lives")
        if start.session in self.starts:
            self.wrong(f"agent {start.session} was started twice")
        self.starts.append(start.session)
        process = Process(f"agent {start.session}")
        run = self.runs[start.session] = Run(session, start, process)
        self.scheduler.start(process, "program", lambda: self._plays(self, run))

    def exits_as(self, run: Run, exit: Exit) -> None:
        """Its runner writes the last word and ends, and the kernel tells who watches."""
        if run.ended is None:
            run.ended = self.exits[run.session.id] = exit
            self.scheduler.trace(run.process.name, f"EXITS {exit.ending} {exit.code}")
            self.scheduler.kill(run.process)
            for watch in self.watches:
                if run.session.id in watch.added:
                    watch.news = self.scheduler.now
                watch.ended(run.session.id)

    def token(self, id: SessionId) -> str | None:
        return self.noted[id].token if id in self.noted else None

    def started(self, id: SessionId) -> bool:
        return id in self.runs

    def exit_of(self, id: SessionId) -> Exit | None:
        return self.exits.get(id)

    def watch(self, id: SessionId) -> int | None:
        run = self.runs.get(id)
        return None if run is None or run.ended else 7

    def end(self, id: SessionId, grace: float) -> None:
        run = self.runs.get(id)
        if run is None:
            self.exits.setdefault(id, Exit(ending=Ending.ENDED))
        elif run.ended is None:
            self.scheduler.sleep(self.scheduler.chance.uniform(0.0, grace))
            self.exits_as(run, Exit(ending=Ending.ENDED))

    def output(self, id: SessionId) -> str:
        return self.outputs.get(id, "")

    def remove(self, id: SessionId) -> None:
        self.noted.pop(id, None)

    def alive(self) -> list[Run]:
        return [it for it in self.runs.values() if it.ended is None]


def _desk(session: Session) -> tuple[object, ...]:
    return session.task, session.role, session.seat


def text_in(files: Mapping[str, Any]) -> str:
    return "\n".join(f"## {title}\n\n{text}\n" for title, text in files.items())
