"""The steps of a task: run one, and let its result alone move the run."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.config.settings import Expect, Settings, Step, steps_in_order
from lockgate.core.lifecycle import steps
from lockgate.core.lifecycle.binary_gate import GateResult, evaluate, expect_failure
from lockgate.core.lifecycle.decision import Decision, Declined, Evidence
from lockgate.core.lifecycle.gate_orchestrator import TransitionResult
from lockgate.core.lifecycle.steps import Ran, stepped
from lockgate.core.model.results import FAILING, ReportRead, Unreadable
from lockgate.core.model.task import Task, TaskId
from lockgate.errors import Refused, Unavailable
from lockgate.ports import Attempt, Configuration, GateRuns, Project, Unfit, Workspaces
from lockgate.services.gates.command import Patience, Tries, all_tries, unjudged
from lockgate.services.gates.runner import Evaluation, checked_out, evaluation_of
from lockgate.services.task.callers import Caller
from lockgate.services.task.coordinator import Coordinator

# Runs a step's command on a clean checkout of a task's work, by S1's protocol.


class Tried(Struct, frozen=True, kw_only=True):
    """A step that was run, on which commit, its attempts, and what the last one's exit comes to."""

    step: Step
    commit: str
    made: tuple[Attempt, ...]
    result: GateResult


class StepSandbox(Struct, frozen=True, kw_only=True):
    home: Path
    workspaces: Workspaces
    gates: GateRuns
    configuration: Configuration
    delay: Callable[[float], object]

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
            raise not_run(task.id, found, "fix that, then run it again")
        judged = replace(task, candidate=change.commit)
        it = evaluation_of(project, judged, change.files, settings)
        made = self._attempts(it, step, called_off)
        read = self.gates.read(made[-1], None)
        why = unjudged(made[-1])
        if why is not None:
            what = f"step {node} could not be judged, and nothing is counted"
            raise Unavailable(what, why=why, fix="fix that, then run it again")
        result = _result(step, made[-1].exit_code, read)
        return Tried(step=step, commit=change.commit, made=made, result=result)

    def _attempts(
        self, it: Evaluation, step: Step, called_off: Callable[[], bool]
    ) -> tuple[Attempt, ...]:
        place = self.home / "runs" / it.candidate.name / f"step-{step.name}"
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


LOCK = "step.lock"


class StepRun(Struct, frozen=True):
    """`moved` is None where the step was not the next one: it was run to look."""

    task: Task
    tried: Tried
    moved: TransitionResult | None


class Steps(Struct, frozen=True, kw_only=True):
    """`alone` says whether nobody else runs a step of the same task."""

    home: Path
    coordinator: Coordinator
    sandbox: StepSandbox
    alone: Callable[[Path], AbstractContextManager[bool]]

    def listed(self, id: TaskId) -> tuple[tuple[Step, steps.Standing], ...]:
        """In the order in which they are run."""
        task = self.coordinator.store.load(id)
        known = self.sandbox.steps_of(self.coordinator.store.project(task.project), task)
        return tuple((step, steps.standing(task, step.name)) for step in known)

    def run(self, id: TaskId, asked: str, caller: Caller) -> StepRun:
        """The step that is asked for, else the next one; Unavailable where it was not judged."""
        with self.alone(self.home / "runs" / id / LOCK) as ours:
            if not ours:
                raise not_run(id, "another step of it is running", "wait until it has ended")
            seen = self._fresh(self.coordinator.witness.look(id, caller).evidence)
            node = steps.choose(seen, asked)
            if isinstance(node, Declined):
                raise not_run(id, node.why, node.fix)
            return self._judged(seen, node, caller)

    def _judged(self, seen: Evidence, node: str, caller: Caller) -> StepRun:
        id, session = seen.task.id, seen.session

        def called_off() -> bool:
            return steps.called_off(self.coordinator.store.find(id), session)

        project = self.coordinator.store.project(seen.task.project)
        tried = self.sandbox.run(project, seen.task, node, called_off)
        if steps.standing(seen.task, node) is not steps.Standing.NEXT:
            return StepRun(seen.task, tried, None)
        return self._turned(id, tried, caller)

    def _turned(self, id: TaskId, tried: Tried, caller: Caller) -> StepRun:
        ran = Ran(tried.step.name, tried.commit, tried.result)
        told: list[TransitionResult] = []

        def decide(seen: Evidence) -> Decision | Declined:
            answer = stepped(self._fresh(seen), ran)
            if isinstance(answer, Declined):
                return answer
            told.append(answer.moved)
            return answer.decision

        what = f"step {ran.node} ran, and counts for nothing"
        task = self.coordinator.turn(id, decide, caller, what)
        return StepRun(task, tried, told[-1])

    def _fresh(self, seen: Evidence) -> Evidence:
        """With the session as it is now: it may have ended while its step ran."""
        return replace(
            seen, session=seen.session and self.coordinator.store.session(seen.session.id)
        )
