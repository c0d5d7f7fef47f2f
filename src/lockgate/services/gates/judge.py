"""An evaluation from its change to its results, which the wheel then decides on."""

from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.core.config.settings import Settings
from lockgate.core.lifecycle import evaluation, moves
from lockgate.core.lifecycle.decision import Decision, Declined, Evidence
from lockgate.core.model.results import Broken, Passed, SingleGateResult
from lockgate.core.model.spans import EVALUATION, UNTRACED, Context, Facts, told_by
from lockgate.core.model.task import Task, TaskId
from lockgate.errors import SurroundingsFailed
from lockgate.ports import Change, Configuration, Project, Store, Unfit, Workspaces, candidate_of
from lockgate.services.gates.runner import Cancelled, GateRunner, evaluation_of
from lockgate.services.task.coordinator import Coordinator
from lockgate.services.task.sessions import NOTHING, Signals

ALL = 100_000  # events of one task
Killed = tuple[int, frozenset[str]]  # an evaluation, and the gates whose command was killed in it


class Judge(Struct, frozen=True, kw_only=True):
    store: Store
    coordinator: Coordinator
    workspaces: Workspaces
    runner: GateRunner
    configuration: Configuration
    signals: Signals
    killed: dict[TaskId, Killed] = field(default_factory=dict[TaskId, Killed])

    def evaluate(self, id: TaskId, cancelled: Callable[[], bool]) -> None:
        """All gates up to the next review; nothing is said of an evaluation that was called off.

        SurroundingsFailed where no gate found anything and one of them could not run for a reason
        that may pass: the caller tries again later, and nobody is charged.
        """
        known = self.store.load(id)
        project = self.store.project(known.project)
        settings = self.configuration.allowed_for(known, project)
        task = self.with_change(known)
        if task is None:
            return
        results = self._results(project, task, settings, cancelled)
        if cancelled():
            return
        results = self._with_repeated(task, results)
        passing = evaluation.passing_trouble(results)
        if passing:
            raise SurroundingsFailed(passing.gate, passing.why)
        self.killed.pop(id, None)
        what = f"the results of the gates of task {id} were not kept"
        self.coordinator.turn(
            id, lambda seen: evaluation.judged(seen, results, task.since), what=what
        )

    def _results(
        self, project: Project, task: Task, settings: Settings, cancelled: Cancelled
    ) -> tuple[SingleGateResult, ...]:
        of = evaluation_of(project, task, self._files(project, task), settings)
        facts: Facts = {"lockgate.iteration": task.iteration}
        with self.runner.spans.span(EVALUATION, self._iteration(task), facts) as span:
            results = self.runner.results(replace(of, span=span.at), cancelled)
            span.failed = not all(isinstance(it, Passed) for it in results)
        return results

    def _iteration(self, task: Task) -> Context:
        """In which span it is judged; nothing is read where nobody looks."""
        if not self.runner.spans.wanted:
            return UNTRACED
        return told_by(self.store.events(task.id, 0, ALL)).iteration

    def _with_repeated(
        self, task: Task, results: Sequence[SingleGateResult]
    ) -> tuple[SingleGateResult, ...]:
        """A command that is killed a second time in one evaluation is a finding."""
        since, before = self.killed.get(task.id, (task.since, frozenset[str]()))
        known = before if since == task.since else frozenset[str]()
        now = frozenset(it.gate for it in results if isinstance(it, Broken) and it.if_repeated)
        self.killed[task.id] = (task.since, known | now)
        return evaluation.with_repeated(results, known)

    def with_change(self, task: Task) -> Task | None:
        """The task with the commit that is judged, taken now where its agent did not bring it.

        None where the work is unfit, and has gone back to its author.
        """
        if task.candidate:
            return task
        match self._work(self.store.project(task.project), task):
            case None:
                return task
            case Unfit(findings):
                self.signals.completed(task, NOTHING)
                refused = partial(evaluation.change_refused, findings=findings, since=task.since)
                self.coordinator.turn(task.id, refused)
                return None
            case Change() as change:
                self.signals.completed(task, change)
                return self.coordinator.turn(
                    task.id, partial(_taken, change=change, since=task.since)
                )

    def _work(self, project: Project, task: Task) -> Change | Unfit | None:
        if self.workspaces.place(task.id).is_dir():
            return self.workspaces.take(project, task)
        return self.workspaces.adopt(project, task)

    def _files(self, project: Project, task: Task) -> tuple[str, ...]:
        if not task.candidate:
            return ()
        return self.workspaces.change(candidate_of(project, task)).files


def _taken(seen: Evidence, change: Change, since: int) -> Decision | Declined:
    facts = moves.Facts(change.patch, change.size, change.mended)
    return moves.change_taken(seen, change.commit, change.files, since, facts)
