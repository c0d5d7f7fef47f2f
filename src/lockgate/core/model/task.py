"""The nouns: a task, its status and phase, its sessions and reviewers, and who acts on it."""

from enum import StrEnum
from typing import NewType

from msgspec import Struct, field

from lockgate.core.model.commits import Author
from lockgate.core.model.findings import GateFeedback
from lockgate.core.model.limits import LARGE_BYTES, LARGE_FILES, Limits, RetryConfig

# Seats: the reviewers that an evaluation has asked for, and what became of each.


class Seat(Struct, frozen=True, kw_only=True):
    """One reviewer of one gate: a dimension, a pass, or the synthesis."""

    gate: str
    dimension: str
    generation: int  # of the session that was asked for last
    agent: str = ""  # another harness than the author's
    said: str = ""  # what it handed in, as JSON
    lost: bool = False  # its session ended without a verdict

    @property
    def name(self) -> str:
        return f"{self.gate}.{self.dimension}"


TaskId = NewType("TaskId", str)
ProjectId = NewType("ProjectId", str)
SessionId = NewType("SessionId", str)


class Status(StrEnum):
    """Where a task stands on the map. The value is what people read, the name what is stored."""

    PENDING = "pending"
    CLARIFICATION = "clarification"
    WORKING = "working"
    AGENT_REVIEW = "agent-review"
    REVIEWING = "reviewing"
    STUCK = "stuck"
    PAUSED_FOR_INTERVENTION = "paused-for-intervention"
    DONE = "done"
    CANCELLED = "cancelled"


class Role(StrEnum):
    """What an agent is on a task."""

    WORKER = "worker"
    REVIEWER = "reviewer"


class Actor(StrEnum):
    """Who asks for a move: a session's token makes an agent of its role, no token a human."""

    WORKER = "worker"
    REVIEWER = "reviewer"
    HUMAN = "human"
    ORCHESTRATOR = "orchestrator"


class AgentPhase(StrEnum):
    """A step's phase (S0, S1); only GREEN and VERIFY are retried."""

    RED = "RED"
    GREEN = "GREEN"
    REFACTOR = "REFACTOR"
    VERIFY = "VERIFY"


class Cause(StrEnum):
    """Why the orchestrator moved a task, where the arrow alone does not say."""

    CRASH_THRESHOLD = "crash-threshold"
    REVIEW_ROUNDS = "review-rounds"
    MAX_ITERATIONS = "max-iterations"
    FAIL_FAST = "fail-fast"
    GATE_BROKEN = "gate-broken"
    BUDGET = "budget"
    LOGIN = "login"  # the agent's login was refused
    SERVICE = "service"  # what the agent needs beside it was not ready
    ESCALATION_THRESHOLD = "escalation-threshold"
    DROPPED_FROM_TRAIN = "dropped-from-train"
    UNJUDGED = "unjudged"  # a human has a revert land at once, because the target is red


class GateKind(StrEnum):
    COMMAND = "command"
    DIFFERENTIAL = "differential"
    PARALLEL_REVIEW = "parallel_review"
    MULTIPASS_REVIEW = "multipass_review"
    HUMAN = "human"


REVIEWS = frozenset({GateKind.PARALLEL_REVIEW, GateKind.MULTIPASS_REVIEW})


class Working(Struct, frozen=True):
    """An agent works on the task."""

    agent_id: str
    iteration: int


class Evaluating(Struct, frozen=True):
    """The agent signalled that it is done; gates are being evaluated."""

    agent_id: str
    iteration: int
    gate_index: int


class NeedsFixes(Struct, frozen=True):
    """A gate failed; its feedback goes back to an agent."""

    agent_id: str
    iteration: int
    feedback: GateFeedback


class GatesPassed(Struct, frozen=True):
    """Every gate passed; ready for the merge queue."""

    agent_id: str
    completed_at: float


class Stuck(Struct, frozen=True):
    """A limit was reached; a human is needed."""

    agent_id: str
    iterations: int
    last_feedback: GateFeedback


class Failed(Struct, frozen=True):
    """Not to be retried."""

    reason: str


TaskPhase = Working | Evaluating | NeedsFixes | GatesPassed | Stuck | Failed


class IterationOutcome(StrEnum):
    PASSED = "Passed"
    FAILED_WITH_RETRY = "FailedWithRetry"
    FAILED_MAX_ITERATIONS = "FailedMaxIterations"


class IterationRecord(Struct, frozen=True, kw_only=True):
    """One iteration as it ended: who worked, and what the gates said."""

    iteration: int
    agent_id: str
    outcome: IterationOutcome
    feedback: GateFeedback | None = None


class GateRef(Struct, frozen=True):
    """A configured gate, as much of it as a decision needs."""

    name: str
    kind: GateKind
    fail_fast: bool = False
    serial: bool = False
    conditional: bool = False  # it has a `when` or `paths`, which somebody has to look at first
    reviewers: tuple[str, ...] = ()  # a parallel review's dimensions, the advisory ones among them
    advisory: tuple[str, ...] = ()
    agent: str = ""  # the reviewers' harness, where it is not the author's
    approvers: tuple[str, ...] = ()  # whose yes a human's gate takes; anybody's where empty


class Budget(Struct, frozen=True):
    """What a task's agents may use up; 0 is no limit."""

    usd: float = 0.0
    tokens: int = 0
    minutes: int = 0


class Approval(Struct, frozen=True):
    """A human's yes to one gate; it holds for this patch and no other."""

    gate: str
    patch: str
    comment: str = ""
    by: str = ""  # who said yes; empty where that was before names were kept
    how: str = ""  # how they were known: the user of the socket's peer, a login, a token


class Size(Struct, frozen=True):
    """How much a change is: the files that differ, and the bytes that it adds to them.

    Lines are those that come and go; a binary file has none.
    """

    files: int = 0
    added: int = 0
    commits: int = 0
    lines_added: int = 0
    lines_removed: int = 0

    @property
    def large(self) -> bool:
        return self.files > LARGE_FILES or self.added > LARGE_BYTES


class Word(Struct, frozen=True):
    """What a human has to say to a task's agent, until the agent has heard it."""

    number: int  # the rev that queued it: unique in the task's life, and rising
    text: str
    said: float  # when


class Checkpoint(Struct, frozen=True, kw_only=True):
    """What was there when an agent, or its hook, called; the files are seen, the rest is said."""

    sequence: int
    type: str
    files_modified: tuple[str, ...]
    work_summary: str
    confidence: float | None


class Pinned(Struct, frozen=True, kw_only=True):
    """The rules a task started with. They do not move while it runs."""

    base_commit: str
    config_hash: str
    base: str = "main"  # the branch that the change is to land on
    limits: Limits = Limits()
    retry: RetryConfig = RetryConfig()
    gates: tuple[GateRef, ...] = ()
    respawn: bool = True
    resume: bool = True  # it goes on by itself when a usage limit is over
    protect: tuple[str, ...] = ()
    lands_alone: bool = False  # `[merge] mode = "auto"`: a human is asked of what steers
    budget: Budget = Budget()
    sandboxed: bool = True
    author: Author = Author.USER  # whose name the work carries
    steps: tuple[str, ...] = ()  # their names, each behind those that it comes after


class Revert(Struct, frozen=True, kw_only=True):
    """What a task takes back: the change that another task landed."""

    task: TaskId
    landed: str  # the commit that brought it
    commit: str = ""  # the plain revert as Lockgate made it; empty where an agent has to
    unjudged: str = ""  # why a human lets it land without its gates


class Task(Struct, frozen=True, kw_only=True):
    """One piece of work: one TASK.md, one branch, one workspace. Its row holds every counter."""

    id: TaskId
    project: ProjectId
    summary: str  # one line for people; an agent may rewrite it
    goal: str  # what a human asked for; no agent writes it
    branch: str
    agent: str  # who works on it now
    created: float
    updated: float
    rev: int = 0
    status: Status = Status.PENDING
    phase: TaskPhase | None = None
    priority: int = 3
    auto_start: bool = True
    depends_on: tuple[TaskId, ...] = ()
    iteration: int = 0
    review_round: int = 0
    crash_count: int = 0
    failed_attempts: int = 0
    generation: int = 0  # the rev that asked for the current worker; an older one is not heard
    since: int = 0  # the rev at which it came to its status
    entered: float = 0.0  # when that was
    dead: bool = False
    taken_over: bool = False  # a human sits in its workspace; no agent is started
    taken_at: float = 0.0  # when a human took it over
    not_before: float = 0.0  # no agent is started before this time: a usage limit
    exhausted: bool = False  # the last agent's context is full
    usd: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    candidate: str = ""  # the commit that is judged
    patch: str = ""  # what it changes, whatever it is based on: approvals are bound to that
    size: Size = Size()
    protected: tuple[str, ...] = ()  # the files of it that a human sees first
    passed: tuple[str, ...] = ()  # the gates that have passed on it
    waiting: str = ""  # the gate that waits for a human
    asked: str = ""  # what the gate asks that waits, or waited last
    approvals: tuple[Approval, ...] = ()
    seats: tuple[Seat, ...] = ()  # the reviewers of this evaluation
    steps_passed: tuple[str, ...] = ()
    step_failures: int = 0  # in a row, of the worker that is at it now
    escalated: str = ""  # how its steps failed a worker, until one passes or a human takes part
    troubled: str = ""  # what Lockgate keeps failing to do for it
    to_land: bool = False  # a human said yes to landing it
    held: str = ""  # why it is kept from landing
    landed: str = ""  # the commit that brings it, once the target is about to be moved there
    cause: Cause | None = None
    directive: str = ""
    question: str = ""  # what its agent asks a human, until the agent has the answer
    words: tuple[Word, ...] = ()  # what its agent has yet to hear, the oldest first
    last_words: str = ""  # of a worker that stopped without handing in, until one hands in
    history: tuple[IterationRecord, ...] = ()  # since the iterations were last counted from one
    spent: frozenset[str] = field(default_factory=frozenset[str])
    in_vain: str = ""  # which of its dependencies will not be done by themselves, and why
    instead_of: str = ""  # the agent that a human chose, while another stands in for it
    pinned: Pinned | None = None
    reverts: Revert | None = None
    host: str = ""  # where its clone is; empty where there is one host alone


class Session(Struct, frozen=True, kw_only=True):
    """One run of an agent. Its token, kept as a hash, lets it act as its role on its task."""

    id: SessionId
    task: TaskId
    role: Role
    round: int
    generation: int
    token_hash: str
    started: float
    directory: str | None = None
    ended: float | None = None
    agent: str = ""
    native: str = ""  # the id by which the agent's own program resumes it
    interactive: bool = False
    usd: float = 0.0  # as its program reported it
    tokens: int = 0
    seat: str = ""  # a reviewer's
    asked: bool = False  # it has been asked once, after it stopped, to hand in or to ask
    login: str = ""  # what it logged in with, as a digest; the same for agents that share a login
    limited_until: float = 0.0  # when the usage limit ends that it hit; 0 where it hit none
    host: str = ""  # where it runs; empty where there is one host alone
