"""Events of an evaluation: what gates and humans said of a change."""

from dataclasses import dataclass

from lockgate.core.findings import GateFeedback
from lockgate.core.model import Checkpoint, TaskId


@dataclass(frozen=True, slots=True)
class TaskCompletionSignaled:
    """S3: an agent says that it is done."""

    task_id: TaskId
    checkpoint: Checkpoint


@dataclass(frozen=True, slots=True)
class PublishSkipped:
    """The task's branch in the user's repository was left as it is."""

    branch: str
    commit: str
    why: str


@dataclass(frozen=True, slots=True)
class ChangeTaken:
    """All work in the workspace became one commit, which is what is judged."""

    commit: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChangeMended:
    """Lockgate has made the author's commits again as one, because git refuses them as they are."""

    commit: str
    why: str


@dataclass(frozen=True, slots=True)
class GateEvaluationStarted:
    task_id: TaskId
    iteration: int


@dataclass(frozen=True, slots=True)
class GateCompleted:
    """S3: a gate gave its result, which `why` explains."""

    task_id: TaskId
    gate_name: str
    result: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class ReviewSubmitted:
    """A reviewer handed in what it found."""

    gate: str
    dimension: str


@dataclass(frozen=True, slots=True)
class HumanReviewRequested:
    """S3: a gate waits for a human."""

    task_id: TaskId
    prompt: str


@dataclass(frozen=True, slots=True)
class HumanReviewCompleted:
    """S3: a human has answered."""

    task_id: TaskId
    approved: bool
    comment: str


@dataclass(frozen=True, slots=True)
class HumanCommented:
    """A human said something and left the gate open."""

    comment: str


@dataclass(frozen=True, slots=True)
class AllGatesPassed:
    task_id: TaskId
    iteration: int


@dataclass(frozen=True, slots=True)
class TaskGatesPassed:
    task_id: TaskId
    change_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFailedRetrying:
    task_id: TaskId
    gate_name: str
    feedback: GateFeedback
    iteration: int


@dataclass(frozen=True, slots=True)
class GateFailedMaxIterations:
    task_id: TaskId
    feedback: GateFeedback
    iterations: int
