"""Jobs: what the loop has done, as data, and whose turn it is when not all can be done at once."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import ClassVar

from msgspec import Struct

from lockgate.core.model.task import ProjectId, TaskId
from lockgate.core.train.model import Built, Commit


class CarryOut(Struct, frozen=True):
    """Do what decisions asked for: a workspace, a session, its end, a published branch."""

    task: TaskId
    project: ProjectId


class Evaluate(Struct, frozen=True):
    """Run the gates of a change; `key` names the effect that asked for it."""

    task: TaskId
    project: ProjectId
    key: str


class TurnTrain(Struct, frozen=True):
    """Plan the merge train of a project, and do what needs no test: build, send back, land."""

    project: ProjectId


class TestTree(Struct, frozen=True):
    """Run the command gates on a tree of the train, by the rules that its tip has."""

    __test__: ClassVar[bool] = False  # nothing that pytest should collect

    project: ProjectId
    target: str
    tip: Commit
    built: Built
    task: TaskId | None = None  # the last of those whose changes are in it


class SyncForge(Struct, frozen=True):
    """Offer changes as pull requests, look at those that are open, and do what follows."""

    project: ProjectId


class Tidy(Struct, frozen=True):
    """Free disk space that nothing needs."""


Job = CarryOut | Evaluate | TurnTrain | TestTree | SyncForge | Tidy


class Kind(StrEnum):
    """Jobs of one kind share a limit, so that no kind waits for another."""

    START = "start"
    JUDGE = "judge"
    LAND = "land"
    TEST = "test"
    FORGE = "forge"
    TIDY = "tidy"


class Limit(Struct, frozen=True):
    """How many jobs of a kind run at once: of all projects, and of one."""

    all: int
    of_project: int


# A project alone never takes every place: another one that comes finds some free.
LIMITS: Mapping[Kind, Limit] = {
    Kind.START: Limit(16, 12),
    Kind.JUDGE: Limit(24, 16),
    Kind.LAND: Limit(8, 1),
    Kind.TEST: Limit(24, 16),
    Kind.FORGE: Limit(4, 1),
    Kind.TIDY: Limit(1, 1),
}


def kind_of(job: Job) -> Kind:
    match job:
        case CarryOut():
            return Kind.START
        case Evaluate():
            return Kind.JUDGE
        case TurnTrain():
            return Kind.LAND
        case TestTree():
            return Kind.TEST
        case SyncForge():
            return Kind.FORGE
        case Tidy():
            return Kind.TIDY


def lane_of(job: Job) -> str:
    """What is in one lane happens in order: of two jobs in it the second one waits."""
    match job:
        case CarryOut(task):
            return f"task {task}"
        case Evaluate(task):
            return f"judge {task}"
        case TurnTrain(project):
            return f"train of {project}"
        case TestTree(_, target, _, built):
            return f"test {target} {built.tree}"
        case SyncForge(project):
            return f"forge of {project}"
        case Tidy():
            return "housekeeping"


def task_of(job: Job) -> TaskId | None:
    match job:
        case CarryOut(task) | Evaluate(task):
            return task
        case TurnTrain() | TestTree() | SyncForge() | Tidy():
            return None


def project_of(job: Job) -> ProjectId:
    match job:
        case CarryOut(_, project) | Evaluate(_, project):
            return project
        case TurnTrain(project) | TestTree(project) | SyncForge(project):
            return project
        case Tidy():
            return ProjectId("")


def next_project(
    waiting: Iterable[ProjectId],
    running: Mapping[ProjectId, int],
    served: Mapping[ProjectId, int],
    limit: Limit,
) -> ProjectId | None:
    """The project whose job of a kind begins next; None where no place is free for any.

    The one with the fewest running is first; of equals the one whose turn is longest ago.
    """
    if sum(running.values()) >= limit.all:
        return None
    free = [it for it in waiting if running.get(it, 0) < limit.of_project]
    return min(free, key=lambda it: (running.get(it, 0), served.get(it, 0), it), default=None)
