"""A human's answer to a gate that waits for one."""

from collections.abc import Sequence
from dataclasses import dataclass

from lockgate.core import answers
from lockgate.core.decision import Decision, Evidence, Refusal
from lockgate.core.findings import Finding
from lockgate.core.model import Task, TaskId
from lockgate.services.callers import Caller, must_be_human
from lockgate.services.coordinator import Coordinator


@dataclass(frozen=True, slots=True)
class Approvals:
    coordinator: Coordinator

    def approve(self, id: TaskId, comment: str, patch: str, caller: Caller) -> Task:
        """Yes to the gate that waits, for the change that was shown."""
        must_be_human(caller, f"task {id} was not approved")
        return self.coordinator.turn(
            id, lambda seen: answers.approved(seen, comment, patch), caller
        )

    def reject(
        self, id: TaskId, comment: str, findings: Sequence[Finding], patch: str, caller: Caller
    ) -> Task:
        must_be_human(caller, f"task {id} was not rejected")

        def decide(seen: Evidence) -> Decision | Refusal:
            return answers.rejected(seen, comment, findings, patch)

        return self.coordinator.turn(id, decide, caller)

    def comment(self, id: TaskId, text: str, caller: Caller) -> Task:
        must_be_human(caller, f"nothing was said of task {id}")
        return self.coordinator.turn(id, lambda seen: answers.commented(seen, text), caller)
