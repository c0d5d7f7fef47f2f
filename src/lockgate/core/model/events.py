"""Events: what happened, in the past tense, complete enough to explain itself years later."""

from msgspec import Struct

from lockgate.core.model import troubles
from lockgate.core.model.facts import as_facts
from lockgate.core.model.findings import GateFeedback
from lockgate.core.model.landings import (
    ChangeLanded,
    LandedUnjudged,
    LandingApproved,
    LandingEvent,
    LandingHeld,
    PullRequestChanged,
    RevertMade,
)
from lockgate.core.model.task import Actor, Cause, Checkpoint, Role, Status, TaskId

# Events of an evaluation: what gates and humans said of a change.


class TaskCompletionSignaled(Struct, frozen=True):
    """S3: an agent says that it is done."""

    task_id: TaskId
    checkpoint: Checkpoint


class PublishSkipped(Struct, frozen=True):
    """The task's branch in the user's repository was left as it is."""

    branch: str
    commit: str
    why: str


class ChangeTaken(Struct, frozen=True):
    """All work in the workspace became one commit, which is what is judged."""

    commit: str
    files: tuple[str, ...]


class ChangeMended(Struct, frozen=True):
    """Lockgate has made the author's commits again as one, because git refuses them as they are."""

    commit: str
    why: str


class GateEvaluationStarted(Struct, frozen=True):
    task_id: TaskId
    iteration: int


class GateCompleted(Struct, frozen=True):
    """S3: a gate gave its result, which `why` explains."""

    task_id: TaskId
    gate_name: str
    result: str
    why: str = ""
    seconds: float = 0.0  # that it took, where it ran
    iteration: int = 0


class ReviewSubmitted(Struct, frozen=True):
    """A reviewer handed in what it found."""

    gate: str
    dimension: str


class HumanReviewRequested(Struct, frozen=True):
    """S3: a gate waits for a human."""

    task_id: TaskId
    prompt: str


class HumanReviewCompleted(Struct, frozen=True):
    """S3: a human has answered."""

    task_id: TaskId
    approved: bool
    comment: str
    seconds: float = 0.0  # that it waited for them


class HumanCommented(Struct, frozen=True):
    """A human said something and left the gate open."""

    comment: str


class AllGatesPassed(Struct, frozen=True):
    task_id: TaskId
    iteration: int


class TaskGatesPassed(Struct, frozen=True):
    task_id: TaskId
    change_id: str


class GateFailedRetrying(Struct, frozen=True, kw_only=True):
    task_id: TaskId
    gate_name: str
    feedback: GateFeedback
    iteration: int


class GateFailedMaxIterations(Struct, frozen=True):
    task_id: TaskId
    feedback: GateFeedback
    iterations: int


# What happened to a task's steps; S0's names and keys are kept outside.


class StepPassed(Struct, frozen=True):
    """A step's exit was the one it wants, on this commit."""

    node_id: str
    commit: str


class StepFailed(Struct, frozen=True):
    """S0's GATE_FAILED; the count has this failure in it."""

    node_id: str
    reason: str
    consecutive_failures: int


class StepsEscalated(Struct, frozen=True):
    """S0's ESCALATION_TRIGGERED: so many failures in a row that the run is over."""

    node_id: str
    reason: str
    consecutive_failures: int


class UserEscalated(Struct, frozen=True):
    """S0's USER_ESCALATION: a human is told, in words."""

    node_id: str
    message: str
    consecutive_failures: int


StepEvent = StepPassed | StepFailed | StepsEscalated | UserEscalated
STEP_KEYS = {"node_id": "nodeId", "consecutive_failures": "consecutiveFailures"}


class TaskCreated(Struct, frozen=True, kw_only=True):
    summary: str
    branch: str
    agent: str
    priority: int
    depends_on: tuple[TaskId, ...]


class TaskImported(Struct, frozen=True, kw_only=True):
    """A TASK.md unknown to the database became a task."""

    summary: str
    branch: str
    status: Status
    crash_count: int


class SummaryChanged(Struct, frozen=True):
    summary: str


class GoalChanged(Struct, frozen=True):
    """A human said what the task is for; reviewers judge by that."""

    goal: str


class StatusChanged(Struct, frozen=True, kw_only=True):
    source: Status
    target: Status
    actor: Actor
    cause: Cause | None
    reason: str
    seconds: float = 0.0  # that it was in the status that it leaves


class MoveForced(Struct, frozen=True):
    """A human skipped what an arrow asks for; `missing` says what was not there."""

    target: Status
    missing: str
    reason: str


class AutoAdvanced(Struct, frozen=True):
    """S2: a session ended, its artifact was there, and the task moved."""

    source: Status
    target: Status
    reason: str


class AgentCrashed(Struct, frozen=True, kw_only=True):
    """S2: a session ended and its artifact is not there."""

    timestamp: str
    status: Status
    crash_count: int
    reason: str


class QuestionAsked(Struct, frozen=True):
    """An agent wants to know something from a human before it goes on."""

    question: str


class QuestionAnswered(Struct, frozen=True):
    """A human answered what the agent had asked."""

    answer: str


class ContextChanged(Struct, frozen=True):
    """A human changed what the agents must know of the task."""

    context: str


class WordSaid(Struct, frozen=True):
    """A human said something to the task's agent, to be heard at its next turn or at once."""

    text: str
    at_once: bool


class WordChanged(Struct, frozen=True):
    """A human changed a word before its agent heard it; an empty text took it out."""

    before: str
    text: str


class WordsHeard(Struct, frozen=True):
    """The agent of this session was told these words."""

    session: str
    words: tuple[str, ...]


class AgentAsked(Struct, frozen=True):
    """An agent stopped without handing in; it is asked once to hand in or to ask a question."""

    session: str
    said: str


class SessionStarted(Struct, frozen=True, kw_only=True):
    session: str
    role: Role
    round: int
    generation: int


class SessionEnded(Struct, frozen=True):
    """What it cost is what its program reported."""

    session: str
    role: Role
    agent: str = ""
    usd: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    crashed: bool = False  # what it was to hand in is not there


class SessionInterrupted(Struct, frozen=True):
    """The machine went down under it: nobody's fault, and it is taken up again."""

    session: str


class UsageLimited(Struct, frozen=True):
    """The agent's plan lets it do no more for now; the task goes on by itself."""

    session: str
    until: float
    skipped: str = ""  # fallbacks that are not installed


class UsageHeld(Struct, frozen=True):
    """No agent that may do it can work before then, and a human says when it goes on."""

    until: float


class AgentReplaced(Struct, frozen=True):
    """The agent's login is limited, and another agent goes on in its place."""

    before: str
    agent: str
    role: Role


class AgentRespawned(Struct, frozen=True):
    role: Role


class TaskTakenOver(Struct, frozen=True):
    """A human sits in the workspace now."""


class TaskHandedBack(Struct, frozen=True):
    """The human is done; the work is judged like any other."""


class TaskRepinned(Struct, frozen=True, kw_only=True):
    """A human gave it the rules of its base as it is now; `before` is the old ones' hash."""

    base_commit: str
    config_hash: str
    before: str


class ArtifactTampered(Struct, frozen=True):
    """TASK.md's frontmatter said something else than the row; it was put back."""

    found: str


class AttemptFailed(Struct, frozen=True):
    """One more failed attempt in the task's life (S4)."""

    attempts: int
    reason: str


class Escalation(Struct, frozen=True):
    """S4: the threshold is reached and the task waits for a human."""

    task_id: TaskId
    attempt_count: int
    state: str = Status.PAUSED_FOR_INTERVENTION.name


class Resumed(Struct, frozen=True):
    """A human took the task out of its pause."""

    directive: str


class TaskDeleted(Struct, frozen=True):
    """The task's last words: its whole row."""

    task: str


UsageEvent = UsageLimited | UsageHeld | AgentReplaced
TalkEvent = QuestionAsked | QuestionAnswered | ContextChanged | WordSaid | WordChanged | WordsHeard
SessionEvent = SessionStarted | SessionEnded | SessionInterrupted | UsageEvent
ChangeEvent = TaskCompletionSignaled | ChangeTaken | PublishSkipped | ChangeMended
GateEvent = (
    GateEvaluationStarted | GateCompleted | ReviewSubmitted | AllGatesPassed | TaskGatesPassed
)
PersonEvent = AgentRespawned | TaskTakenOver | TaskHandedBack | TaskRepinned
ChangedEvent = SummaryChanged | GoalChanged | StatusChanged | MoveForced | AutoAdvanced
HumanEvent = HumanReviewRequested | HumanReviewCompleted | HumanCommented
FailureEvent = GateFailedRetrying | GateFailedMaxIterations | AttemptFailed | Escalation
Event = (
    TaskCreated
    | TaskImported
    | ChangedEvent
    | AgentCrashed
    | AgentAsked
    | TalkEvent
    | SessionEvent
    | ChangeEvent
    | PersonEvent
    | ArtifactTampered
    | troubles.TroubleEvent
    | GateEvent
    | HumanEvent
    | FailureEvent
    | Resumed
    | TaskDeleted
    | StepEvent
    | LandingEvent
)

# The word each event is known by outside; a source's own name where a source names it.
TYPES: dict[type[Event], str] = {
    TaskCreated: "task.created",
    TaskImported: "task.imported",
    SummaryChanged: "summary.changed",
    GoalChanged: "goal.changed",
    StatusChanged: "status.changed",
    MoveForced: "move.forced",
    AutoAdvanced: "auto.advanced",
    AgentCrashed: "agent.crashed",
    AgentAsked: "agent.asked",
    QuestionAsked: "question.asked",
    QuestionAnswered: "question.answered",
    ContextChanged: "context.changed",
    WordSaid: "word.said",
    WordChanged: "word.changed",
    WordsHeard: "words.heard",
    SessionStarted: "session.started",
    SessionEnded: "session.ended",
    SessionInterrupted: "session.interrupted",
    UsageLimited: "usage.limited",
    UsageHeld: "usage.held",
    AgentReplaced: "agent.replaced",
    TaskCompletionSignaled: "TaskCompletionSignaled",
    ChangeTaken: "change.taken",
    PublishSkipped: "publish.skipped",
    ChangeMended: "change.mended",
    AgentRespawned: "agent.respawned",
    TaskTakenOver: "task.taken-over",
    TaskHandedBack: "task.handed-back",
    TaskRepinned: "task.repinned",
    ArtifactTampered: "artifact.tampered",
    troubles.TaskTroubled: "task.troubled",
    troubles.TaskRecovered: "task.recovered",
    troubles.DependencyLost: "dependency.lost",
    troubles.DependencyBack: "dependency.back",
    troubles.DependencyDropped: "dependency.dropped",
    GateEvaluationStarted: "GateEvaluationStarted",
    GateCompleted: "GateCompleted",
    ReviewSubmitted: "review.submitted",
    HumanReviewRequested: "HumanReviewRequested",
    HumanReviewCompleted: "HumanReviewCompleted",
    HumanCommented: "human.commented",
    AllGatesPassed: "AllGatesPassed",
    TaskGatesPassed: "TaskGatesPassed",
    GateFailedRetrying: "GateFailedRetrying",
    GateFailedMaxIterations: "GateFailedMaxIterations",
    AttemptFailed: "attempt.failed",
    Escalation: "escalation",
    Resumed: "task.resumed",
    TaskDeleted: "task.deleted",
    StepPassed: "step.passed",
    StepFailed: "GATE_FAILED",
    StepsEscalated: "ESCALATION_TRIGGERED",
    UserEscalated: "USER_ESCALATION",
    LandingApproved: "landing.approved",
    LandingHeld: "landing.held",
    ChangeLanded: "change.landed",
    LandedUnjudged: "landing.unjudged",
    RevertMade: "revert.made",
    PullRequestChanged: "pull.changed",
}

# Python's words on the left, the sources' on the right.
_SPELLING: dict[type[Event], dict[str, str]] = {
    StatusChanged: {"source": "from", "target": "to"},
    MoveForced: {"target": "to"},
    AutoAdvanced: {"source": "from", "target": "to"},
    Escalation: {"task_id": "taskId", "attempt_count": "attemptCount"},
    **dict.fromkeys((StepPassed, StepFailed, StepsEscalated, UserEscalated), STEP_KEYS),
}


def type_of(event: Event) -> str:
    return TYPES[type(event)]


def payload(event: Event) -> dict[str, object]:
    """The event's data as it leaves the program: the source's keys, statuses as stored."""
    spelling = _SPELLING.get(type(event), {})
    facts = as_facts(event).items()
    return {spelling.get(k, k): v.name if isinstance(v, Status) else v for k, v in facts}
