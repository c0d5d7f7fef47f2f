"""S3's retry controller: whether to try again, and with which agent."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lockgate.core.entropy import findings_repeat
from lockgate.core.limits import RetryConfig, Strategy
from lockgate.core.model import IterationOutcome, IterationRecord, TaskId

__all__ = ["IterationOutcome", "IterationRecord", "RetryController"]


@dataclass(frozen=True, slots=True)
class RetryController:
    task_id: TaskId
    config: RetryConfig
    history: tuple[IterationRecord, ...] = ()

    def should_retry(self) -> bool:
        """Whether another iteration may begin, by the number of the last one."""
        if not self.history:
            return self.config.max_iterations > 0
        last = self.history[-1]
        retryable = last.outcome is IterationOutcome.FAILED_WITH_RETRY
        return retryable and last.iteration < self.config.max_iterations

    def should_use_fresh_agent(
        self, *, context_exhausted: bool = False, call_repeats: bool = False
    ) -> bool:
        """`call_repeats` is the entropy of a call (S1); that of the findings is seen from here."""
        match self.config.strategy:
            case Strategy.SAME:
                return False
            case Strategy.FRESH:
                return True
            case Strategy.AUTO:
                return context_exhausted or call_repeats or self._agent_is_spent()

    def record_iteration(self, record: IterationRecord) -> "RetryController":
        return replace(self, history=(*self.history, record))

    def _agent_is_spent(self) -> bool:
        failed = tuple(self._failed_in_a_row())
        by_this_agent = [it for it in failed if it.agent_id == failed[0].agent_id]
        newest_first = [it.feedback for it in failed if it.feedback]
        return len(by_this_agent) >= self.config.fresh_after_failures or findings_repeat(
            newest_first[::-1]
        )

    def _failed_in_a_row(self) -> Iterator[IterationRecord]:
        """Newest first, back to the last pass."""
        for record in reversed(self.history):
            if record.outcome is IterationOutcome.PASSED:
                return
            yield record
