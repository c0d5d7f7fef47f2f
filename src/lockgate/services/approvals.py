"""A human's answer to a gate that waits for one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lockgate.core.lifecycle import approvals
from lockgate.core.lifecycle.decision import Decision, Declined, Evidence
from lockgate.core.model.findings import Finding
from lockgate.core.model.task import Task, TaskId
from lockgate.services.callers import Caller, must_be_human
from lockgate.services.coordinator import Coordinator


@dataclass(frozen=True, slots=True)
class Approvals:
    """`patch` is the change that was shown, or how it begins; empty is the one that is there."""

    coordinator: Coordinator

    def approve(self, id: TaskId, comment: str, patch: str, caller: Caller) -> Task:
        def decide(seen: Evidence) -> Decision | Declined:
            return approvals.approved(seen, comment, patch)

        return self._answer(id, f"task {id} was not approved", decide, caller)

    def reject(
        self, id: TaskId, comment: str, findings: Sequence[Finding], patch: str, caller: Caller
    ) -> Task:
        def decide(seen: Evidence) -> Decision | Declined:
            return approvals.rejected(seen, comment, findings, patch)

        return self._answer(id, f"task {id} was not rejected", decide, caller)

    def comment(self, id: TaskId, text: str, caller: Caller) -> Task:
        def decide(seen: Evidence) -> Decision | Declined:
            return approvals.commented(seen, text)

        return self._answer(id, f"the comment on task {id} was not saved", decide, caller)

    def _answer(
        self,
        id: TaskId,
        otherwise: str,
        decide: Callable[[Evidence], Decision | Declined],
        caller: Caller,
    ) -> Task:
        must_be_human(caller, otherwise)
        return self.coordinator.turn(id, decide, caller, otherwise)
