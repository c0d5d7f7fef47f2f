"""What a decision looks at, and what comes out of it."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.model.agents import NoLogin, digest_in
from lockgate.core.model.events import Event
from lockgate.core.model.results import SingleGateResult
from lockgate.core.model.retry import RetryController
from lockgate.core.model.task import (
    REVIEWS,
    Actor,
    GateKind,
    GateRef,
    Pinned,
    Role,
    Seat,
    Session,
    Status,
    Task,
)
from lockgate.core.text.task_file import Artifacts

# Effects: what the world is asked to do once a decision is on disk; each is safe to do twice.


class MirrorTask(Struct, frozen=True):
    """Write the row's frontmatter into TASK.md and its events into history.jsonl.

    `accepted`: with the text that the decision was made on; else the file keeps the one it has.
    """

    accepted: bool = False


class PrepareWorkspace(Struct, frozen=True):
    """Make the task's clone, unless it is there."""


class SpawnAgent(Struct, frozen=True):
    """Start the session of this generation, unless it lives."""

    role: Role
    generation: int
    fresh: bool = False
    interactive: bool = False
    seat: str = ""  # a reviewer's
    agent: str = ""  # where it is not the task's own
    asks: bool = False  # the worker stopped politely: ask it to hand in or to ask
    insists: bool = False  # a human asks for it: no usage limit is waited for
    instead_of: str = ""  # whose login is limited, where `agent` stands in


class EvaluateGates(Struct, frozen=True):
    """Run the task's gates, from the first."""

    iteration: int


class NotifyHuman(Struct, frozen=True):
    """Tell a human that the task waits for one in this status, and why."""

    status: Status
    why: str


class EndSessions(Struct, frozen=True):
    """End every session of the task up to this generation; where a role is named, of it alone."""

    upto: int
    role: Role | None = None


class PublishChange(Struct, frozen=True):
    """Show the judged commit as the task's branch in the user's repository."""


class ReleaseWorkspace(Struct, frozen=True):
    """Give the workspace back, after its snapshot."""


class DiscardTask(Struct, frozen=True):
    """Put the files of a deleted task aside."""


Effect = (
    MirrorTask
    | PrepareWorkspace
    | SpawnAgent
    | EvaluateGates
    | NotifyHuman
    | EndSessions
    | PublishChange
    | ReleaseWorkspace
    | DiscardTask
)


Effects = tuple[Effect, ...]

# What the rows of the map set off, made for the task as it arrives.


def prepare(_task: Task) -> Effects:
    return (PrepareWorkspace(),)


def worker(task: Task) -> Effects:
    return (SpawnAgent(Role.WORKER, task.rev, fresh=wants_fresh(task)),)


def judges(task: Task) -> Effects:
    """The evaluation: straight to the reviewers where the first gate is a review."""
    return reviewers(task.seats) if task.seats else (EvaluateGates(task.iteration),)


def human(task: Task) -> Effects:
    why = f"{task.status}: {task.cause}" if task.cause else task.status
    return (NotifyHuman(task.status, why),)


def end(task: Task) -> Effects:
    return (EndSessions(task.rev),)


def publish(_task: Task) -> Effects:
    return (PublishChange(),)


def release(_task: Task) -> Effects:
    return (ReleaseWorkspace(),)


def reviewers(seats: Iterable[Seat]) -> tuple[SpawnAgent, ...]:
    return tuple(
        SpawnAgent(Role.REVIEWER, seat.generation, seat=seat.name, agent=seat.agent)
        for seat in seats
    )


def overtaken(effect: Effect, task: Task) -> bool:
    """Whether the task has moved on since, so that nobody needs this any more."""
    match effect:
        case SpawnAgent():
            return not _wanted(effect, task)
        case EvaluateGates():
            return task.status is not Status.AGENT_REVIEW or effect.iteration != task.iteration
        case NotifyHuman():
            return effect.status is not task.status
        case PrepareWorkspace():
            return task.status in _ENDED
        case PublishChange():
            return task.status is not Status.REVIEWING
        case MirrorTask() | EndSessions() | ReleaseWorkspace() | DiscardTask():
            return False


def _wanted(spawn: SpawnAgent, task: Task) -> bool:
    """The newest worker asked for, and a reviewer of this evaluation; in stuck, a human's own."""
    if spawn.role is Role.REVIEWER:
        sits = any(spawn.generation == it.generation for it in task.seats if it.name == spawn.seat)
        return task.status is Status.AGENT_REVIEW and sits
    if spawn.generation != task.generation:
        return False
    fresh = task.status is Status.STUCK and spawn.generation >= task.since
    return fresh or task.status in _WORKED_ON


_ENDED = frozenset({Status.DONE, Status.CANCELLED})
_WORKED_ON = frozenset({Status.WORKING, Status.CLARIFICATION})


def wants_fresh(task: Task) -> bool:
    if task.pinned is None or not (task.history or task.exhausted):
        return False
    retry = RetryController(task.id, task.pinned.retry, task.history)
    return retry.should_use_fresh_agent(context_exhausted=task.exhausted)


class Evidence(Struct, frozen=True, kw_only=True):
    """All that a rule may look at. The wheel gathers it; a caller cannot bring its own."""

    task: Task
    found: Artifacts
    rules: Pinned
    now: float
    actor: Actor = Actor.ORCHESTRATOR
    by: str = ""  # a human's name
    how: str = ""  # by what they are known
    session: Session | None = None
    landed: bool = False
    misconfigured: str | None = None  # why base's configuration cannot be taken, if it cannot
    untrusted: str | None = None  # what its repository asks for that no human has agreed to
    agent_missing: str | None = None  # how to install its agent, where it is not there
    reviewer: str = ""  # who reviews where a file is the worker; empty: no agent is there to do it
    login_missing: NoLogin | None = None  # of its agent or of a reviewer's
    hosts_have_agents: bool = False  # a host of a fleet does it, which has its agents, not this one
    unsigned: str | None = None  # why the commit that would land could not be signed


def rules_for(seen: Evidence, rules: Pinned) -> Pinned:
    """The rules as this task pins them: a file that works on it does not review its own change."""
    if digest_in(seen.task.agent) is None:
        return rules
    return replace(rules, gates=tuple(_by_another(it, seen.reviewer) for it in rules.gates))


def _by_another(gate: GateRef, reviewer: str) -> GateRef:
    """A review by `reviewer` where the gate names nobody; a human's gate where there is none."""
    if gate.kind not in REVIEWS or gate.agent:
        return gate
    if reviewer:
        return replace(gate, agent=reviewer)
    return GateRef(
        gate.name, GateKind.HUMAN, gate.fail_fast, serial=True, conditional=gate.conditional
    )


class Decision(Struct, frozen=True):
    """The task as it is to be, the events that explain it, the effects that follow."""

    task: Task
    events: tuple[Event, ...] = ()
    effects: tuple[Effect, ...] = ()
    session: Session | None = None  # a session that begins or ends with this turn
    slots: int = 0  # it begins only beside fewer of other tasks of its project; 0: beside any
    results: tuple[SingleGateResult, ...] = ()  # what gates said, kept with it
    body: str | None = None  # the text of TASK.md that it was made on
    review: str | None = None  # what Lockgate writes below `## Review`
    drops: str = ""  # a section of TASK.md that does not hold any more
    by: str = ""  # the human whose act it is, and how they are known
    how: str = ""


class Declined(Struct, frozen=True):
    """Why a request that moves no task was not carried out, and what to do instead."""

    why: str
    fix: str


class Refusal(Struct, frozen=True, kw_only=True):
    """Why a task did not move from `source` to `target`, which are two different statuses."""

    source: Status
    target: Status
    why: str
    fix: str = ""
