"""S0's orchestrator: results alone move a run along its graph; failures in a row escalate."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from lockgate.core.lifecycle.binary_gate import GatePassed, GateResult, NonZeroExit, ProcessKilled
from lockgate.core.model.dag import TaskDAG
from lockgate.core.model.limits import MAX_CONSECUTIVE_FAILURES


class RunState(StrEnum):
    RUNNING = "RUNNING"
    ESCALATION = "ESCALATION"


class Advance(Struct, frozen=True):
    next_node_id: str


class Complete(Struct, frozen=True):
    """The last node passed."""


class Stay(Struct, frozen=True):
    reason: str


class Escalate(Struct, frozen=True):
    """The run is over; a human is asked."""


TransitionResult = Advance | Complete | Stay | Escalate


class GateLogger(Protocol):
    def __call__(self, entry: Mapping[str, object], /) -> None: ...


def as_json(result: TransitionResult) -> dict[str, object]:
    """The result in S0's shape, with S0's spelling of the keys."""
    match result:
        case Advance(next_node_id):
            return {"advance": True, "nextNodeId": next_node_id}
        case Complete():
            return {"complete": True}
        case Stay(reason):
            return {"stay": True, "reason": reason}
        case Escalate():
            return {"escalate": True}


class BinaryGateOrchestrator:
    """One run. Its count may start where the task's row has it; at the limit it is over already.

    An escalated run stays escalated: a later pass moves nothing, a later failure is counted and
    logged, and ESCALATION_TRIGGERED is not said twice.
    """

    def __init__(
        self,
        dag: TaskDAG[str],
        logger: GateLogger,
        max_consecutive_failures: int = MAX_CONSECUTIVE_FAILURES,
        *,
        consecutive_failures: int = 0,
    ) -> None:
        self._dag = dag
        self._log = logger
        self._limit = max_consecutive_failures
        self._failures = consecutive_failures
        over = consecutive_failures >= max_consecutive_failures
        self._state = RunState.ESCALATION if over else RunState.RUNNING

    @property
    def consecutive_failures(self) -> int:
        return self._failures

    @property
    def state(self) -> RunState:
        return self._state

    def transition(self, current_node_id: str, result: GateResult) -> TransitionResult:
        match result:
            case GatePassed():
                return self._pass(current_node_id)
            case NonZeroExit() | ProcessKilled():
                return self._fail(current_node_id, result.reason)

    def _pass(self, node_id: str) -> TransitionResult:
        if self._state is RunState.ESCALATION:
            return Escalate()
        following = self._dag.next_after(node_id)
        self._failures = 0
        return Complete() if following is None else Advance(following)

    def _fail(self, node_id: str, reason: str) -> TransitionResult:
        failures = self._failures + 1
        facts = {"nodeId": node_id, "reason": reason, "consecutiveFailures": failures}
        self._log({"event": "GATE_FAILED", **facts})
        if failures >= self._limit and self._state is RunState.RUNNING:
            # Said before anything changes, so that the log holds the reason even if we die here.
            self._log({"event": "ESCALATION_TRIGGERED", **facts})
            self._state = RunState.ESCALATION
        self._failures = failures
        return Escalate() if self._state is RunState.ESCALATION else Stay(reason)
