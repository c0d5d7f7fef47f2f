"""S4's guard: each task's failed attempts, and whether the next one needs a human first."""

from lockgate.core.model.limits import ESCALATION_THRESHOLD

__all__ = ["ESCALATION_THRESHOLD", "EscalationGuard", "escalation_guard"]


class EscalationGuard:
    """In memory and synchronous. The task's row is the truth; `load` brings its count in."""

    def __init__(self, *, threshold: int = ESCALATION_THRESHOLD) -> None:
        self._threshold = threshold
        self._attempts: dict[str, int] = {}
        self._own_thresholds: dict[str, int] = {}

    def load(self, task_id: str, count: int, threshold: int | None = None) -> None:
        """Take over what the task's row says, whatever was remembered before."""
        self._attempts[task_id] = count
        self._own_thresholds[task_id] = self._threshold if threshold is None else threshold

    def record_failed_attempt(self, task_id: str) -> None:
        self._attempts[task_id] = self.get_attempt_count(task_id) + 1

    def should_escalate(self, task_id: str) -> bool:
        threshold = self._own_thresholds.get(task_id, self._threshold)
        return self.get_attempt_count(task_id) >= threshold

    def get_attempt_count(self, task_id: str) -> int:
        return self._attempts.get(task_id, 0)

    def reset(self, task_id: str) -> None:
        self._attempts.pop(task_id, None)

    def get_escalated_tasks(self) -> list[str]:
        return [task_id for task_id in self._attempts if self.should_escalate(task_id)]


escalation_guard = EscalationGuard()
