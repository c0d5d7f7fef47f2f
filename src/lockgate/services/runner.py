"""S4's task runner: attempts until the work is handed on, and stops at the threshold."""

from collections.abc import Callable
from dataclasses import dataclass

from lockgate.core.model.escalation import EscalationGuard, escalation_guard
from lockgate.core.model.task import Status, Task, TaskId
from lockgate.services.callers import HUMAN, Caller
from lockgate.services.coordinator import Coordinator

# One attempt at a task's work; the answer is why it failed, or None where it handed on.
Implementer = Callable[[Task], str | None]


@dataclass(frozen=True, slots=True)
class TaskRunner:
    """The guard holds no truth: it is loaded from the task's row before it is asked."""

    coordinator: Coordinator
    guard: EscalationGuard = escalation_guard

    def run(self, id: TaskId, implement: Implementer) -> Task:
        """Attempt the task while it is working; no attempt is scheduled that the guard forbids."""
        task = self._loaded(id)
        while task.status is Status.WORKING and not self.guard.should_escalate(id):
            failure = implement(task)
            if failure is not None:
                self.coordinator.attempt_failed(id, failure)
            task = self._loaded(id)
            if failure is None:
                break
        return task

    def resume(self, id: TaskId, directive: str = "", caller: Caller = HUMAN) -> Task:
        """Out of the pause and back into the queue: the row first, then the guard's memory."""
        task = self.coordinator.resume(id, directive, caller)
        self.guard.reset(id)
        return task

    def _loaded(self, id: TaskId) -> Task:
        task = self.coordinator.store.load(id)
        threshold = task.pinned.limits.escalation_threshold if task.pinned else None
        self.guard.load(id, task.failed_attempts, threshold)
        return task
