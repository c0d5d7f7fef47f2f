"""An evaluation from its change to its results, which the wheel then decides on."""

from collections.abc import Callable
from functools import partial

from msgspec import Struct

from lockgate.core.lifecycle import evaluation, moves
from lockgate.core.lifecycle.decision import Decision, Declined, Evidence
from lockgate.core.model.task import Task, TaskId
from lockgate.ports import (
    Change,
    Configuration,
    Project,
    Store,
    Unfit,
    Workspaces,
    candidate_of,
)
from lockgate.services.gates.runner import GateRunner, evaluation_of
from lockgate.services.task.coordinator import Coordinator
from lockgate.services.task.signals import NOTHING, Signals


class Judge(Struct, frozen=True, kw_only=True):
    store: Store
    coordinator: Coordinator
    workspaces: Workspaces
    runner: GateRunner
    configuration: Configuration
    signals: Signals

    def evaluate(self, id: TaskId, cancelled: Callable[[], bool]) -> None:
        """All gates up to the next review; nothing is said of an evaluation that was called off."""
        known = self.store.load(id)
        project = self.store.project(known.project)
        settings = self.configuration.allowed_for(known, project)
        task = self.with_change(known)
        if task is None:
            return
        files = self._files(project, task)
        results = self.runner.results(evaluation_of(project, task, files, settings), cancelled)
        if not cancelled():
            what = f"the results of the gates of task {id} were not kept"
            self.coordinator.turn(
                id, lambda seen: evaluation.judged(seen, results, task.since), what=what
            )

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
                return self.coordinator.turn(task.id, partial(_taken, change=change))

    def _work(self, project: Project, task: Task) -> Change | Unfit | None:
        if self.workspaces.place(task.id).is_dir():
            return self.workspaces.take(project, task)
        return self.workspaces.adopt(project, task)

    def _files(self, project: Project, task: Task) -> tuple[str, ...]:
        if not task.candidate:
            return ()
        return self.workspaces.change(candidate_of(project, task)).files


def _taken(seen: Evidence, change: Change) -> Decision | Declined:
    facts = moves.Facts(change.patch, change.added, change.mended)
    return moves.change_taken(seen, change.commit, change.files, facts)
