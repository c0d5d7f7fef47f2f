"""Runs a step's command on a clean checkout of a task's work, by S1's protocol."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from pathlib import Path

from lockgate.core.config.settings import Expect, Settings, Step, steps_in_order
from lockgate.core.lifecycle import steps
from lockgate.core.lifecycle.binary_gate import GateResult, evaluate, expect_failure
from lockgate.core.model.reports import FAILING, ReportRead, Unreadable
from lockgate.core.model.task import Task, TaskId
from lockgate.errors import Refused, Unavailable
from lockgate.ports import Attempt, Configuration, GateRuns, Project, Unfit, Workspaces
from lockgate.services.command_gate import Patience, Tries, all_tries, unjudged
from lockgate.services.gate_runner import Evaluation, checked_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A step that was run, on which commit, its attempts, and what the last one's exit comes to."""

    step: Step
    commit: str
    made: tuple[Attempt, ...]
    result: GateResult


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSandbox:
    home: Path
    workspaces: Workspaces
    gates: GateRuns
    configuration: Configuration
    delay: Callable[[float], Coroutine[None, None, None]]

    def steps_of(self, project: Project, task: Task) -> tuple[Step, ...]:
        """In the order in which they are run."""
        known = {step.name: step for step in self._settings(project, task).steps}
        return tuple(known[name] for name in steps_in_order(tuple(known.values())))

    def run(self, project: Project, task: Task, node: str, called_off: Callable[[], bool]) -> Tried:
        """All work in the workspace is judged, committed or not; Unavailable where it cannot be."""
        settings = self._allowed(project, task)
        step = next(it for it in settings.steps if it.name == node)
        if not self.workspaces.place(task.id).is_dir():
            raise not_run(task.id, "it has no workspace", f"lockgate task respawn {task.id}")
        change = self.workspaces.take(project, task)
        if isinstance(change, Unfit):
            found = "; ".join(it.issue for it in change.findings)
            raise not_run(task.id, found, "mend that, then run it again")
        it = Evaluation(project, replace(task, candidate=change.commit), change.files, settings)
        made = self._attempts(it, step, called_off)
        read = self.gates.read(made[-1], None)
        why = unjudged(made[-1])
        if why is not None:
            what = f"step {node} could not be judged, and nothing is counted"
            raise Unavailable(what, why=why, fix="mend that, then run it again")
        result = _result(step, made[-1].exit_code, read)
        return Tried(step=step, commit=change.commit, made=made, result=result)

    def _attempts(
        self, it: Evaluation, step: Step, called_off: Callable[[], bool]
    ) -> tuple[Attempt, ...]:
        place = self.home / "runs" / it.task.id / f"step-{step.name}"
        limits = it.settings.limits
        try:
            run = checked_out(self.workspaces, it, place)
            patience = Patience(self.delay, called_off)
            tries = Tries(self.gates, steps.as_gate(step, limits), run, patience)
            return all_tries(tries, limits, step.phase)
        finally:
            self.workspaces.discard(place)

    def _allowed(self, project: Project, task: Task) -> Settings:
        if task.pinned is None:
            return self.configuration.allowed_of(project)
        return self.configuration.allowed_at(project, task.pinned.base_commit)

    def _settings(self, project: Project, task: Task) -> Settings:
        if task.pinned is None:
            return self.configuration.settings_of(project)
        return self.configuration.settings_at(project, task.pinned.base_commit)


def not_run(id: TaskId, why: str, fix: str) -> Refused:
    return Refused(f"no step of task {id} was run", why=why, fix=fix)


def _result(step: Step, exit_code: int | None, read: ReportRead | Unreadable) -> GateResult:
    if step.expect is Expect.PASS:
        return evaluate(exit_code)
    return evaluate(expect_failure(exit_code, failed_tests=_failed(read)))


def _failed(read: ReportRead | Unreadable) -> int | None:
    """How many tests a report says have failed; None where none names tests."""
    if isinstance(read, Unreadable) or read.tests is None:
        return None
    return sum(it.outcome in FAILING for it in read.tests)
