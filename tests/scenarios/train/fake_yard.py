"""Git as small sets: a commit is what it contains, a merge is a union, some pairs do not merge."""

import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha1
from pathlib import Path
from typing import Any

from lockgate.adapters.store.train_log import SqlTrainLog
from lockgate.core.config.settings import MergeStrategy, Settings
from lockgate.core.config.trust import Request
from lockgate.core.lifecycle.needs import Trouble
from lockgate.core.model import gates
from lockgate.core.model.gates import CommandGate
from lockgate.core.model.results import ReportRead, Unreadable
from lockgate.core.model.task import Pinned, ProjectId, Status, Task, TaskId
from lockgate.core.train.model import Built, Commit, Conflict, Term, Tree
from lockgate.errors import NotesBroken
from lockgate.ports import (
    Arrived,
    Attempt,
    Change,
    Cut,
    Elsewhere,
    GateRun,
    InTheWay,
    Leave,
    Load,
    Project,
    Target,
)
from lockgate.ports.train import ANYBODY, Reverts, Span
from lockgate.services.gates.runner import GateRunner
from lockgate.services.task.projects import BaseConfiguration
from lockgate.services.train.control import Queueing
from lockgate.services.train.landing import Lander
from lockgate.services.train.queue import MergeQueue, TrainTests
from lockgate.services.train.undo import Undoing
from lockgate.services.train.view import TrainView
from tests.given import HANDOFF
from tests.scenarios.stage import FakeWorkspaces, Stage

START = Commit("start")
FIRST = Term()
CONFIG = """\
[project]
agent = "scripted"
slots = 9
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "true"
attempts = 1
[limits]
call_attempts = 1
[merge]
mode = "MODE"
window = 4
batch = BATCH
"""

Content = frozenset[str]


def never(_content: Content) -> str:
    return "pass"


def nothing() -> None:
    """What happens while the target is moved."""


@dataclass
class FakeYard:
    """`history` is every commit that the target was ever at."""

    content: dict[str, Content] = field(default_factory=lambda: {START: frozenset[str]()})
    history: list[Commit] = field(default_factory=lambda: [START])
    clashing: set[frozenset[str]] = field(default_factory=set)
    taken_back: dict[str, Content] = field(default_factory=dict)  # by each revert
    notes: dict[str, str] = field(default_factory=dict)
    in_the_way: InTheWay | None = None
    at_landing: Callable[[], None] = nothing
    kept: Sequence[Commit] = ()
    shuts_out: bool = True  # as a branch of this machine does, or a fence
    notes_lost: bool = False  # as after a gc of the user's beside a landing
    adds_nothing: bool = False  # as a change that is squashed onto what has it already

    def tree(self, commit: str) -> Tree:
        return Tree(sha1(" ".join(sorted(self.content[commit])).encode()).hexdigest())  # noqa: S324

    def change(self, *features: str) -> Commit:
        """A commit that has these on top of the start."""
        commit = Commit(f"change {' '.join(features)}")
        self.content[commit] = frozenset(features)
        return commit

    def stranger_pushes(self, *features: str) -> None:
        commit = Commit(f"{self.history[-1]} > {' '.join(features)} by a stranger")
        self.content[commit] = self.content[self.history[-1]] | set(features)
        self.history.append(commit)

    def tip(self, target: Target) -> Built:
        return Built(self.history[-1], self.tree(self.history[-1]))

    def build(
        self, target: Target, onto: Commit, loads: Sequence[Load], strategy: MergeStrategy
    ) -> Built | Conflict:
        front = onto
        for load in loads:
            files = self._clash(front, load.commit)
            if files:
                return Conflict(load.task, files=files)
            if self.adds_nothing:
                continue
            built = Commit(f"{front} > {load.commit}")
            both = self.content[front] | self.content[load.commit]
            self.content[built] = both - self.taken_back.get(load.commit, frozenset())
            front = built
        return Built(front, self.tree(front))

    def revert(self, target: Target, onto: Commit, it: Reverts) -> Built | Conflict:
        change = self.content[it.change]
        left = self.content[onto] - change
        if left == self.content[onto]:
            return Built(onto, self.tree(onto))
        made = Commit(f"{onto} < {it.change}")
        self.content[made], self.taken_back[made] = left, change
        files = self._clash(it.change, made)
        return Conflict(it.task, files=files) if files else Built(made, self.tree(made))

    def land(
        self, target: Target, expected: Commit, commit: Commit, leave: Leave = ANYBODY
    ) -> Arrived | Elsewhere | InTheWay:
        self.at_landing()
        leave.check()
        if self.in_the_way:
            return self.in_the_way
        if self.history[-1] != expected:
            return Elsewhere()
        self.history.append(commit)
        return Arrived()

    def shut_out(self, target: Target, leave: Leave) -> bool:
        return self.shuts_out

    def has(self, target: Target, commit: Commit) -> bool:
        return commit in self.history

    def lend(self, target: Target, commit: Commit) -> None: ...

    def prune(self, target: Target, keep: Sequence[Commit]) -> None:
        self.kept = keep

    def overlap(self, project: Project, one: Span, other: Span) -> tuple[str, ...]:
        return self._clash(one.commit, other.commit)

    def _clash(self, one: Commit, other: Commit) -> tuple[str, ...]:
        pairs = (sorted(it) for it in self.clashing)
        a, b = self.content[one], self.content[other]
        return tuple(f"{x}{y}.txt" for x, y in pairs if (x in a and y in b) or (y in a and x in b))

    def note(self, project: Project, commit: Commit, text: str) -> None:
        if self.notes_lost:
            raise NotesBroken(project.name, "bad object")
        self.notes[commit] = text

    def notes_sound(self, project: Project) -> bool:
        return not self.notes_lost

    def rewrite_notes(self, project: Project, notes: Mapping[Commit, str]) -> int:
        self.notes_lost = False
        self.notes = {str(it): text for it, text in notes.items()}
        return len(notes)

    def note_of(self, project: Project, name: str) -> tuple[Commit, str | None] | None:
        return (Commit(name), self.notes.get(name)) if name in self.content else None


class Works(FakeWorkspaces):
    """Each task's work is a feature of its branch's name; a second try has a dash more."""

    def __init__(self, home: Path, yard: FakeYard) -> None:
        super().__init__(home)
        self.yard = yard
        self.tries: dict[TaskId, int] = {}

    def take(self, project: Project, task: Task) -> Change:
        commit = self.yard.change(f"{task.branch}{'-' * self.tries.get(task.id, 0)}")
        return Change(commit, (f"{task.branch}.txt",), f"patch of {commit}")

    def adopt(self, project: Project, task: Task) -> Change | None:
        """The plain revert, unless somebody has deleted its branch."""
        commit = task.reverts.commit if task.reverts else ""
        there = commit in self.published
        return Change(commit, (f"{task.branch}.txt",), f"patch of {commit}") if there else None

    def tree(self, project: Project, commit: str) -> str:
        return self.yard.tree(commit)

    def discard(self, directory: Path) -> None:
        shutil.rmtree(directory, ignore_errors=True)


@dataclass
class Inspector:
    """The gates look at what a commit has in it."""

    yard: FakeYard
    verdict: Callable[[Content], str] = never
    tested: list[Content] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def attempt(self, gate: CommandGate, run: GateRun, cancelled: Callable[[], bool]) -> Attempt:
        content = self.yard.content[run.commit]
        said = self.verdict(content)
        with self._lock:
            self.tested.append(content)
        broken = said not in {"pass", "fail"}
        return Attempt(
            exit_code=125 if broken else int(said == "fail"),
            cut=Cut.BOX if broken else None,
            why=said if broken else "",
            out=f"{sorted(content)} do not go together" if said == "fail" else "",
            err="",
            report_dir=None,
            seconds=0.1,
            level="none",
        )

    def read(self, attempt: Attempt, wanted: gates.Report | None) -> ReportRead | Unreadable:
        return ReportRead(format=gates.Report.GENERIC)


@dataclass
class TipRules:
    """Every commit has the rules that the real repository's main had when it was first asked."""

    real: BaseConfiguration
    settings: Settings | None = None
    pinned: Pinned | None = None

    def settings_of(self, project: Project) -> Settings:
        self.settings = self.settings or self.real.settings_of(project)
        return self.settings

    def settings_at(self, project: Project, commit: str) -> Settings:
        return self.settings_of(project)

    def allowed_of(self, project: Project) -> Settings:
        self.settings = self.settings or self.real.allowed_of(project)
        return self.settings

    def allowed_at(self, project: Project, commit: str) -> Settings:
        return self.allowed_of(project)

    def settings_for(self, task: Task, project: Project) -> Settings:
        return self.settings_of(project)

    def allowed_for(self, task: Task, project: Project) -> Settings:
        return self.allowed_of(project)

    def refused(self, project: Project) -> tuple[Request, ...]:
        return self.real.refused(project)

    def noted(self) -> tuple[ProjectId, ...]:
        return self.real.noted()

    def landed(self, project: Project, before: str, after: str, by: Sequence[Task]) -> None:
        """No change here edits the rules."""

    def rules_of(self, project: Project) -> Pinned:
        self.pinned = self.pinned or self.real.rules_of(project)
        return self.pinned

    def rules_at(self, project: Project, commit: str, base: str) -> Pinned:
        return self.rules_of(project)

    def forget(self) -> None:
        self.settings = self.pinned = None


class Parked:
    """A train that does not leave yet."""

    def due(self) -> tuple[Project, ...]:
        return ()


class Railway:
    """A stage whose changes wait until `opens`; `restart` forgets all that is not on disk."""

    def __init__(
        self, place: Path, mode: str = "auto", batch: int = 1, slots: int = 9, more: str = ""
    ) -> None:
        config = CONFIG.replace("MODE", mode).replace("BATCH", str(batch)) + more
        config = config.replace("slots = 9", f"slots = {slots}")
        self.stage = Stage(place, config)
        self.yard = FakeYard()
        self.stage.workspaces = Works(self.stage.world.home, self.yard)
        self.gates = Inspector(self.yard)
        self.stage.gates = self.gates  # type: ignore[assignment]  # another fake of the same port
        self.rules = TipRules(self.stage.app.configuration)
        self.open = False
        self.restart()

    def restart(self) -> None:
        self.stage.app.store.close()
        self.stage.restart()
        self.held: dict[str, Trouble] = {}
        self.trains = self.made()
        self.park()

    def park(self) -> None:
        self.stage.loop.crew.trains = self.trains if self.open else Parked()  # type: ignore[assignment]  # only asked what is due

    def made(
        self, log: Any = None, coordinator: Any = None, yard: Any = None, term: Term = FIRST
    ) -> MergeQueue:
        app, time = self.stage.app, self.stage.time
        view = self.view(log, yard)
        runner = GateRunner(
            home=self.stage.world.home,
            workspaces=self.stage.workspaces,
            gates=self.gates,
            conditions=self.stage.loop.crew.judge.runner.conditions,
            delay=self.stage.loop.crew.judge.runner.delay,
            differential=self.stage.differential,
        )
        return MergeQueue(
            view=view,
            lander=Lander(view, coordinator or app.coordinator, time, term),
            tests=TrainTests(self.stage.workspaces, runner),
            elapsed=time.elapsed,
            held=self.held,
        )

    def view(self, log: Any = None, yard: Any = None) -> TrainView:
        app = self.stage.app
        return TrainView(app.store, log or self.log, yard or self.yard, self.rules)

    @property
    def log(self) -> SqlTrainLog:
        return SqlTrainLog(self.stage.app.store.database)

    @property
    def queueing(self) -> Queueing:
        app = self.stage.app
        return Queueing(self.view(), app.coordinator, app.projects.repository)

    @property
    def undoing(self) -> Undoing:
        app = self.stage.app
        return Undoing(self.view(), app.tasks, app.coordinator, self.stage.workspaces)

    @property
    def project(self) -> Project:
        return self.stage.world.project()

    def opens(self, seconds: float = 0.0) -> None:
        self.open = True
        self.park()
        self.turn(seconds)

    def turn(self, seconds: float = 0.0) -> None:
        for _ in range(3):
            self.stage.turn(seconds)
            seconds = 0.0

    def ready(self, branch: str, **fields: object) -> TaskId:
        """A change that has passed its gates."""
        id = self.stage.world.create(branch, **fields)
        self.stage.turn()
        self.hands_off(id)
        return id

    def hands_off(self, id: TaskId) -> Task:
        self.stage.time.at += 1
        number = len(self.stage.app.store.sessions(id))
        place = self.stage.workspaces.place(id) / "TASK.md"
        place.write_text(HANDOFF.replace("redirect", f"redirect {number}"))
        [session] = self.stage.alive(id)
        self.stage.dies(session)
        self.stage.event(session)
        self.stage.turn()
        return self.task(id)

    def tries_again(self, id: TaskId) -> Task:
        works = self.stage.workspaces
        assert isinstance(works, Works)
        works.tries[id] = works.tries.get(id, 0) + 1
        return self.hands_off(id)

    def task(self, id: TaskId) -> Task:
        return self.stage.world.task(id)

    def statuses(self, *ids: TaskId) -> list[Status]:
        return [self.task(id).status for id in ids]

    def contents(self) -> list[set[str]]:
        """What the target had in it, commit by commit."""
        return [set(self.yard.content[it]) for it in self.yard.history]

    def told(self, id: TaskId) -> str:
        """What its newest agent was told."""
        return self.stage.harnesses.jobs[-1].prompt

    def close(self) -> None:
        self.stage.app.store.close()


def opened(place: Path, mode: str = "auto", batch: int = 1) -> Iterator[Railway]:
    it = Railway(place, mode, batch)
    yield it
    it.close()
