"""A task in one row of the board, with what it needs; what several rows share is read once."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.core.config.settings import MergeMode, MergeTarget
from lockgate.core.lifecycle.needs import (
    Around,
    Need,
    Trouble,
    Whole,
    lane_need,
    need_of,
    untrusted,
)
from lockgate.core.model.dag import reached, turned_round
from lockgate.core.model.facts import json_facts
from lockgate.core.model.landings import PullShown
from lockgate.core.model.limits import MAX_ITERATIONS, MAX_REVIEW_ROUNDS
from lockgate.core.model.task import (
    Evaluating,
    NeedsFixes,
    ProjectId,
    Status,
    Stuck,
    Task,
    TaskId,
)
from lockgate.core.text.steering import unseen
from lockgate.errors import LockgateError
from lockgate.ports import Clock, Configuration, Project, Store, TaskFilter, of_project
from lockgate.services.task.projects import unagreed

if TYPE_CHECKING:  # a list of tasks is shown without loading the train
    from lockgate.core.train.model import Standings

MOST = 1000
ENDED = frozenset({Status.DONE, Status.CANCELLED})
LIVE = frozenset(Status) - ENDED
NO_PULLS: Mapping[TaskId, PullShown] = {}
NO_STANDINGS: "Standings" = {}
NO_QUEUES: "Mapping[ProjectId, Standings]" = {}


class Cell(Struct, frozen=True):
    """A gate of a row; its state is passed, running, waiting, failed or todo."""

    gate: str
    state: str


class RowSize(Struct, frozen=True):
    """How much a change is: commits, files, and the lines that come and go."""

    commits: int = 0
    files: int = 0
    added: int = 0
    removed: int = 0


class BoardRow(Struct, frozen=True, kw_only=True):
    """A task as a list shows it; `session` is active, crashed, human or none."""

    id: TaskId
    project: ProjectId
    project_name: str
    summary: str
    branch: str
    agent: str
    status: Status
    phase: str
    priority: int
    iteration: int
    max_iterations: int
    review_round: int
    max_rounds: int
    usd: float
    tokens: int
    updated: float
    rev: int
    session: str
    gates: tuple[Cell, ...]
    need: Need | None
    place: tuple[int, str] | None
    entered: float
    size: RowSize
    waits_for: tuple[TaskId, ...] = ()
    not_before: float = 0.0
    pull: PullShown | None = None
    host: str = ""  # of a fleet, where its clone is
    task: Task  # the row that all this is of; not among the facts

    def facts(self) -> dict[str, object]:
        found = json_facts(self)
        del found["task"]
        return found


class Beside(Struct, frozen=True, kw_only=True):
    """What a row shows that is not in the task's own."""

    project_name: str = ""
    session: str = "none"
    need: Need | None = None
    place: tuple[int, str] | None = None
    waits_for: tuple[TaskId, ...] = ()
    pull: PullShown | None = None


class Board(Struct, frozen=True, kw_only=True):
    """Needs first, then what lives by its last change, what has ended last.

    `needs` are all there are of the projects asked for; `after` asks for the next rows.
    """

    rows: tuple[BoardRow, ...]
    after: str | None
    counts: Mapping[Status, int]
    needs: tuple[Need, ...]
    seq: int

    def facts(self) -> dict[str, object]:
        return {
            "rows": [it.facts() for it in self.rows],
            "after": self.after,
            "counts": {status.value: count for status, count in self.counts.items()},
            "needs": [it.facts() for it in self.needs],
            "seq": self.seq,
        }


class Live(Struct, frozen=True):
    """What only the orchestrator knows: what its lanes fail to do, who stands where in a queue."""

    troubles: Mapping[str, Trouble] = field(default_factory=dict[str, Trouble])
    standings: "Mapping[ProjectId, Standings]" = field(default_factory=lambda: NO_QUEUES)


class Source(Struct, frozen=True, kw_only=True):
    """Where rows and needs are read; `person` is who looks: what they have seen is dimmed."""

    store: Store
    configuration: Configuration
    clock: Clock
    live: Live
    person: str = ""
    pulls: Callable[[], Mapping[TaskId, PullShown]] = lambda: NO_PULLS  # of tasks that live

    def look(self) -> "Look":
        return Look(self, self.store.head())


class Look(Struct):
    """One look at the home: what several rows share is read once."""

    of: Source
    seq: int
    _tasks: dict[TaskId, Task] = field(default_factory=dict[TaskId, Task])
    _projects: dict[ProjectId, Project] = field(default_factory=dict[ProjectId, Project])
    _modes: dict[ProjectId, MergeMode | None] = field(
        default_factory=dict[ProjectId, MergeMode | None]
    )
    _alive: frozenset[TaskId] | None = None
    _waits: "_Waits | None" = None
    _seen: Mapping[str, float] | None = None
    _pulls: Mapping[TaskId, PullShown] | None = None

    def needed(self, projects: frozenset[ProjectId]) -> dict[TaskId, Need]:
        """What tasks need, each task once."""
        tasks = {it.id: it for it in self.of.store.needs(projects)}
        self._tasks |= tasks
        needs = ((it.id, self.need(it)) for it in tasks.values())
        return {id: need for id, need in needs if need}

    def rows_of(self, needs: Iterable[Need], which: TaskFilter) -> list[BoardRow]:
        """The rows of these needs that are wanted, in their order."""
        tasks = (self._tasks[it.task] for it in needs if it.task)
        return [self.row(it) for it in tasks if which.has(it)]

    def of_projects(self, projects: frozenset[ProjectId]) -> Iterator[Need]:
        """What projects and the loop need."""
        for need in (*self._untrusted(), *self._lanes()):
            if not projects or need.project in projects or not need.project:
                yield self._dimmed(need)

    def need(self, task: Task) -> Need | None:
        behind = self._waiting().behind(task.id)
        around = Around(blocks=behind, lands_alone=self._lands_alone(task))
        need = need_of(task, around)
        return need and self._dimmed(replace(need, pull=self._pull(task.id)))

    def row(self, task: Task) -> BoardRow:
        beside = Beside(
            project_name=self._project(task.project).name,
            session=self._session(task),
            need=self.need(task),
            place=self._place(task),
            waits_for=self._waiting().unfinished(task) if task.depends_on else (),
            pull=self._pull(task.id),
        )
        return row_of(task, beside)

    def _project(self, id: ProjectId) -> Project:
        if id not in self._projects:
            self._projects[id] = self.of.store.project(id)
        return self._projects[id]

    def _session(self, task: Task) -> str:
        if task.taken_over:
            return "human"
        if self._alive is None:
            self._alive = frozenset(it.task for it in self.of.store.sessions_alive())
        return "active" if task.id in self._alive else "crashed" if task.dead else "none"

    def _pull(self, id: TaskId) -> PullShown | None:
        if self._pulls is None:
            self._pulls = self.of.pulls()
        return self._pulls.get(id)

    def _place(self, task: Task) -> tuple[int, str] | None:
        if task.status is not Status.REVIEWING:
            return None
        return self.of.live.standings.get(task.project, NO_STANDINGS).get(task.id)

    def _lands_alone(self, task: Task) -> bool:
        """As its target's configuration has it now, which is what the train goes by."""
        if task.status is not Status.REVIEWING or task.held or task.to_land:
            return False
        if task.project not in self._modes:
            self._modes[task.project] = self._mode(task.project)
        return self._modes[task.project] is MergeMode.AUTO and not unseen(task)

    def _mode(self, id: ProjectId) -> MergeMode | None:
        try:
            merge = self.of.configuration.settings_of(self._project(id)).merge
        except LockgateError:
            return None
        by_forge = merge.target is MergeTarget.PULL_REQUEST  # it is offered with no human
        return MergeMode.AUTO if by_forge else merge.mode

    def _waiting(self) -> "_Waits":
        if self._waits is None:
            self._waits = _Waits.of(self.of.store)
        return self._waits

    def _untrusted(self) -> Iterator[Need]:
        for id in self.of.configuration.noted():
            newest = self.of.store.page(of_project(id, LIVE), None, 1).tasks
            if newest:
                project = self._project(id)
                why, fix = unagreed(self.of.configuration, project)
                if why:
                    command = f"cd {project.root} && {fix}"
                    yield untrusted(_whole(project), why, command, newest[0].created)

    def _lanes(self) -> Iterator[Need]:
        for lane, trouble in list(self.of.live.troubles.items()):
            project = self._project(trouble.project) if trouble.project else None
            need = lane_need(lane, trouble, _whole(project) if project else None)
            if need:
                behind = _queued(self.of.store, trouble.project) if trouble.kind else 0
                yield replace(need, blocks=behind)

    def _dimmed(self, need: Need) -> Need:
        if self._seen is None:
            self._seen = self.of.store.seen(self.of.person) if self.of.person else {}
        until = self._seen.get(need.key)
        hidden = until is not None and (until == 0 or self.of.clock.now() < until)
        return replace(need, dimmed=True) if hidden else need


class _Waits(Struct, frozen=True):
    """Which tasks wait for which, and where those stand that are waited for."""

    before: Mapping[TaskId, Sequence[TaskId]]
    statuses: Mapping[TaskId, Status]

    @staticmethod
    def of(store: Store) -> "_Waits":
        waits = store.waits()
        return _Waits(
            before=turned_round({it.id: it.depends_on for it in waits}),
            statuses=store.statuses(id for it in waits for id in it.depends_on),
        )

    def behind(self, id: TaskId) -> int:
        """How many tasks wait for this one, and for those that wait for it."""
        return len(reached(self.before, id))

    def unfinished(self, task: Task) -> tuple[TaskId, ...]:
        stand = self.statuses
        return tuple(it for it in task.depends_on if stand.get(it) is not Status.DONE)


def row_of(task: Task, beside: Beside) -> BoardRow:
    rules, size = task.pinned, task.size
    return BoardRow(
        id=task.id,
        project=task.project,
        project_name=beside.project_name,
        summary=task.summary,
        branch=task.branch,
        agent=task.agent,
        status=task.status,
        phase=type(task.phase).__name__ if task.phase else "",
        priority=task.priority,
        iteration=task.iteration,
        max_iterations=rules.retry.max_iterations if rules else MAX_ITERATIONS,
        review_round=task.review_round,
        max_rounds=rules.limits.review_rounds if rules else MAX_REVIEW_ROUNDS,
        usd=task.usd,
        tokens=task.tokens,
        updated=task.updated,
        rev=task.rev,
        session=beside.session,
        gates=tuple(gate_cells(task)),
        need=beside.need,
        place=beside.place,
        entered=task.entered,
        size=RowSize(size.commits, size.files, size.lines_added, size.lines_removed),
        waits_for=beside.waits_for,
        not_before=task.not_before,
        pull=beside.pull,
        host=task.host,
        task=task,
    )


def gate_cells(task: Task) -> Iterator[Cell]:
    """The gates that the task started with, as they stand."""
    failed = _failed_gate(task)
    gates = task.pinned.gates if task.pinned else ()
    running = task.phase.gate_index if isinstance(task.phase, Evaluating) else -1
    for number, gate in enumerate(gates):
        if gate.name in task.passed:
            yield Cell(gate.name, "passed")
        elif task.status is Status.AGENT_REVIEW and task.waiting == gate.name:
            yield Cell(gate.name, "waiting")
        elif gate.name == failed:
            yield Cell(gate.name, "failed")
        else:
            at_it = task.status is Status.AGENT_REVIEW and number == running
            yield Cell(gate.name, "running" if at_it else "todo")


def _failed_gate(task: Task) -> str:
    """The gate that the last evaluation failed at; empty while another one goes on."""
    if isinstance(task.phase, NeedsFixes):
        return task.phase.feedback.gate_name
    return task.phase.last_feedback.gate_name if isinstance(task.phase, Stuck) else ""


def _queued(store: Store, project: ProjectId | None) -> int:
    """The changes that would land, if their queue could move."""
    waiting = store.page(of_project(project, {Status.REVIEWING}), None, MOST).tasks
    return sum(1 for it in waiting if it.to_land and not it.held)


def _whole(project: Project) -> Whole:
    return Whole(id=project.id, name=project.name, root=project.root)
