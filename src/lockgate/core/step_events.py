"""What happened to a task's steps; S0's names and keys are kept outside."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepPassed:
    """A step's exit was the one it wants, on this commit."""

    node_id: str
    commit: str


@dataclass(frozen=True, slots=True)
class StepFailed:
    """S0's GATE_FAILED; the count has this failure in it."""

    node_id: str
    reason: str
    consecutive_failures: int


@dataclass(frozen=True, slots=True)
class StepsEscalated:
    """S0's ESCALATION_TRIGGERED: so many failures in a row that the run is over."""

    node_id: str
    reason: str
    consecutive_failures: int


@dataclass(frozen=True, slots=True)
class UserEscalated:
    """S0's USER_ESCALATION: a human is told, in words."""

    node_id: str
    message: str
    consecutive_failures: int


StepEvent = StepPassed | StepFailed | StepsEscalated | UserEscalated
STEP_KEYS = {"node_id": "nodeId", "consecutive_failures": "consecutiveFailures"}
