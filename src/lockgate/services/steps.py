"""The steps of a task: run one, and let its result alone move the run."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from lockgate.core.config.settings import Step
from lockgate.core.lifecycle import steps
from lockgate.core.lifecycle.decision import Decision, Declined, Evidence
from lockgate.core.lifecycle.gate_orchestrator import TransitionResult
from lockgate.core.lifecycle.steps import Ran, stepped
from lockgate.core.model.task import Task, TaskId
from lockgate.services.callers import Caller
from lockgate.services.coordinator import Coordinator
from lockgate.services.step_sandbox import StepSandbox, Tried, not_run

LOCK = "step.lock"


@dataclass(frozen=True, slots=True)
class StepRun:
    """`moved` is None where the step was not the next one: it was run to look."""

    task: Task
    tried: Tried
    moved: TransitionResult | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
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
