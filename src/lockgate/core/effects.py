"""Effects: what the world must be asked to do after a decision is on disk. Each is safe to do twice."""

from dataclasses import dataclass

from lockgate.core.limits import Strategy
from lockgate.core.model import REVIEWS, Pinned, Role, Task


@dataclass(frozen=True, slots=True)
class MirrorTask:
    """Write the row's frontmatter into TASK.md and its events into history.jsonl.

    `body` is the text of the accepted artifacts where it differs from what the file has.
    """

    body: str | None = None


@dataclass(frozen=True, slots=True)
class PrepareWorkspace:
    """Make the task's clone, unless it is there."""


@dataclass(frozen=True, slots=True)
class SpawnAgent:
    """Start the session of this generation, unless it lives."""

    role: Role
    generation: int
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class EvaluateGates:
    """Run the task's gates, from the first."""

    iteration: int


@dataclass(frozen=True, slots=True)
class NotifyHuman:
    """Tell a human that the task waits for one, and why."""

    why: str


@dataclass(frozen=True, slots=True)
class EndSessions:
    """End every session of the task."""


@dataclass(frozen=True, slots=True)
class ReleaseWorkspace:
    """Give the workspace back, after its snapshot."""


@dataclass(frozen=True, slots=True)
class DiscardTask:
    """Put the files of a deleted task aside."""


Effect = (
    MirrorTask
    | PrepareWorkspace
    | SpawnAgent
    | EvaluateGates
    | NotifyHuman
    | EndSessions
    | ReleaseWorkspace
    | DiscardTask
)


# What the rows of the map set off, made for the task as it arrives.


def prepare(_task: Task) -> Effect:
    return PrepareWorkspace()


def worker(task: Task) -> Effect:
    return SpawnAgent(Role.WORKER, task.rev, fresh=_wants_fresh(task))


def judges(task: Task) -> Effect:
    """The evaluation: straight to the reviewer where the first gate is a review."""
    if reviews_first(task.pinned):
        return SpawnAgent(Role.REVIEWER, task.rev)
    return EvaluateGates(task.iteration)


def human(task: Task) -> Effect:
    return NotifyHuman(f"{task.status}: {task.cause}" if task.cause else str(task.status))


def end(_task: Task) -> Effect:
    return EndSessions()


def release(_task: Task) -> Effect:
    return ReleaseWorkspace()


def reviews_first(rules: Pinned | None) -> bool:
    return bool(rules and rules.gates and rules.gates[0].kind in REVIEWS)


def _wants_fresh(task: Task) -> bool:
    """By count alone; an exhausted context or repeated findings are asked about where they are seen."""
    if task.pinned is None or task.iteration <= 1:
        return False
    retry = task.pinned.retry
    match retry.strategy:
        case Strategy.SAME:
            return False
        case Strategy.FRESH:
            return True
        case Strategy.AUTO:
            return task.iteration - 1 >= retry.fresh_after_failures
