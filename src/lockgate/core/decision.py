"""What a decision looks at, and what comes out of it."""

from dataclasses import dataclass

from lockgate.core.artifacts import Artifacts
from lockgate.core.effects import Effect
from lockgate.core.evaluation import SingleGateResult
from lockgate.core.events import Event
from lockgate.core.model import Actor, Pinned, Session, Status, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that a rule may look at. The wheel gathers it; a caller cannot bring its own."""

    task: Task
    found: Artifacts
    rules: Pinned
    now: float
    actor: Actor = Actor.ORCHESTRATOR
    session: Session | None = None
    landed: bool = False
    misconfigured: str | None = None  # why base's configuration cannot be taken, if it cannot
    untrusted: str | None = None  # what its repository asks for that no human has agreed to
    agent_missing: str | None = None  # how to install its agent, where it is not there


@dataclass(frozen=True, slots=True)
class Decision:
    """The task as it is to be, the events that explain it, the effects that follow."""

    task: Task
    events: tuple[Event, ...] = ()
    effects: tuple[Effect, ...] = ()
    session: Session | None = None  # a session that begins or ends with this turn
    results: tuple[SingleGateResult, ...] = ()  # what gates said, kept with it
    body: str | None = None  # the text of TASK.md that it was made on
    review: str | None = None  # what Lockgate writes below `## Review`


@dataclass(frozen=True, slots=True)
class Declined:
    """Why a request that moves no task was not carried out, and what to do instead."""

    why: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a task did not move from `source` to `target`, which are two different statuses."""

    source: Status
    target: Status
    why: str
    fix: str = ""
