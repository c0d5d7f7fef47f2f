"""Jobs: what the loop has done, as data; where each may be done, and whose turn it is."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import ClassVar

from msgspec import Struct

from lockgate.core.model.task import ProjectId, Session, SessionId, Task, TaskId
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


class Attend(Struct, frozen=True):
    """Wait for the end of a session, keep what it has done meanwhile, and record its end."""

    session: SessionId
    task: TaskId
    project: ProjectId


class HostLost(Struct, frozen=True):
    """Go on elsewhere with a task whose host does not answer any more, or gives it away."""

    task: TaskId
    project: ProjectId
    host: str
    moves: bool = False  # the host is there, and keeps what was done before it gives it away


class Lead(Struct, frozen=True):
    """Plan for all hosts: start what is ready, turn the trains, land, hand out jobs."""


FleetJob = Attend | HostLost | Lead  # what several hosts have done besides
Job = CarryOut | Evaluate | TurnTrain | TestTree | SyncForge | Tidy | FleetJob


class Kind(StrEnum):
    """Jobs of one kind share a limit, so that no kind waits for another."""

    START = "start"
    JUDGE = "judge"
    LAND = "land"
    TEST = "test"
    FORGE = "forge"
    TIDY = "tidy"
    ATTEND = "attend"
    LEAD = "lead"


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
    Kind.ATTEND: Limit(64, 48),
    Kind.LEAD: Limit(1, 1),
}


_KINDS: Mapping[type[Job], Kind] = {
    CarryOut: Kind.START,
    HostLost: Kind.START,
    Evaluate: Kind.JUDGE,
    TurnTrain: Kind.LAND,
    TestTree: Kind.TEST,
    SyncForge: Kind.FORGE,
    Tidy: Kind.TIDY,
    Attend: Kind.ATTEND,
    Lead: Kind.LEAD,
}


def kind_of(job: Job) -> Kind:
    return _KINDS[type(job)]


def stops_early(job: Job) -> bool:
    """Whether it stops before its end when it is called off, so that its answer does not count."""
    match job:
        case Evaluate() | TestTree() | Attend() | Lead():
            return True
        case CarryOut() | HostLost() | TurnTrain() | SyncForge() | Tidy():
            return False


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
        case Attend() | HostLost() | Lead():
            return _lane_of_fleet(job)


def _lane_of_fleet(job: FleetJob) -> str:
    match job:
        case Attend(session):
            return f"session {session}"
        case HostLost(task):
            return f"lost {task}"
        case Lead():
            return LEAD


def task_of(job: Job) -> TaskId | None:
    match job:
        case CarryOut(task) | Evaluate(task) | HostLost(task):
            return task
        case Attend(_, task):
            return task
        case TurnTrain() | TestTree() | SyncForge() | Tidy() | Lead():
            return None


def session_of(job: Job) -> SessionId | None:
    return job.session if isinstance(job, Attend) else None


def project_of(job: Job) -> ProjectId:
    match job:
        case CarryOut(_, project) | Evaluate(_, project) | HostLost(_, project):
            return project
        case Attend(_, _, project):
            return project
        case TurnTrain(project) | TestTree(project) | SyncForge(project):
            return project
        case Tidy() | Lead():
            return ProjectId("")


# Where a job may be done, where there are several hosts.


class On(Struct, frozen=True):
    """On this host alone: what it works on is there."""

    host: str


class Anywhere(Struct, frozen=True):
    """On every host that has all of these labels; the label of an agent is `agent:<name>`."""

    needs: tuple[str, ...] = ()


class Here(Struct, frozen=True):
    """In the process that asks for it: the leader's trains, a host's own disk."""


Place = On | Anywhere | Here
AGENT = "agent:"  # begins the label of an agent
ANY = "any"  # the class of jobs that every host can do
LEAD = "lead"  # the lane of the leader, and the label of hosts that may lead


def place_of(
    job: Job, task: Task | None, needs: Iterable[str] = (), *, session: Session | None = None
) -> Place:
    """`task` and `session` are the job's own, if it has them.

    `needs` is what its project and its gates ask for.
    """
    match job:
        case CarryOut():
            return _at_clone(task) or Anywhere((*needs, *_agent_of(task)))
        case Evaluate():
            judged = task is not None and task.candidate
            return (None if judged else _at_clone(task)) or Anywhere(tuple(needs))
        case TestTree():
            return Anywhere(tuple(needs))
        case Attend():
            host = host_of(session, task)
            return On(host) if host else Anywhere()
        case HostLost(_, _, host, moves):
            return On(host) if moves else Anywhere()
        case Lead():
            return Anywhere((LEAD,))
        case TurnTrain() | SyncForge() | Tidy():
            return Here()


def host_of(session: Session | None, task: Task | None) -> str:
    """The host on which a session runs; empty where no host has it or its task."""
    return (session.host if session else "") or (task.host if task else "")


def class_of(needs: Iterable[str]) -> str:
    """One name for all jobs that need the same: hosts ask for jobs by it."""
    return "+".join(sorted(set(needs))) or ANY


def covers(labels: Iterable[str], of_class: str) -> bool:
    """Whether a host with these labels can do the jobs of a class."""
    return of_class == ANY or set(of_class.split("+")) <= set(labels)


def _at_clone(task: Task | None) -> On | None:
    return On(task.host) if task is not None and task.host else None


def _agent_of(task: Task | None) -> tuple[str, ...]:
    return () if task is None else (f"{AGENT}{task.agent}",)


# Whose turn it is.


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
