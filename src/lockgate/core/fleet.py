"""Several hosts: how one is set up, which queue a job waits in, and which queues a host serves."""

import re
from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from lockgate.core.hosts import ANY, Host, class_of, classes_for
from lockgate.core.jobs import (
    LEAD,
    Anywhere,
    Attend,
    CarryOut,
    Evaluate,
    Here,
    HostLost,
    Job,
    Lead,
    On,
    Place,
    SyncForge,
    TestTree,
    Tidy,
    TurnTrain,
    place_of,
)
from lockgate.core.model.task import Task

# What `fleet.toml` of a host says.


class Role(StrEnum):
    HANDS = "hands"
    LEAD = "lead"
    API = "api"


class Cluster(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where Temporal is, and by which files a host shows it who it is."""

    address: str = "127.0.0.1:7233"
    namespace: str = "default"
    cert: str = ""
    key: str = ""
    ca: str = ""


class OwnFacts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str = ""  # the machine's, where it is empty
    labels: tuple[str, ...] = ()
    slots: int = 4  # agents at work at once
    judges: int = 2  # evaluations and tests at once
    roles: tuple[Role, ...] = tuple(Role)
    ssh: str = ""
    api: str = ""


class Times(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """In seconds."""

    beat: float = 10.0  # without a sign of life a job is tried elsewhere
    sessions_lost_after: float = 60.0  # a host that takes none of its own jobs is lost


class FleetSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    temporal: Cluster = Cluster()
    host: OwnFacts = OwnFacts()
    fleet: Times = Times()


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def problem_in(settings: FleetSettings) -> str:
    """Why a host cannot be set up so; empty where it can."""
    own, times = settings.host, settings.fleet
    wrong = [it for it in (own.name, *own.labels) if not _NAME.fullmatch(it)]
    if wrong:
        return f"{wrong[0]!r} is no name: letters, digits and . _ - are, at most 63 of them"
    if not own.roles:
        return f"roles is empty: a host has at least one of {', '.join(Role)}"
    if own.slots < 0 or own.judges < 0:
        return "slots and judges cannot be less than 0"
    if not 1 <= times.beat <= times.sessions_lost_after:
        return "beat must be at least 1 and no longer than sessions_lost_after"
    return ""


# Where jobs wait.


BOUND = "host:"  # the label that only one host has: `host:<name>`


class Pool(StrEnum):
    """Jobs that share the places of a host."""

    HANDS = "hands"  # workspaces, sessions: short
    GATES = "gates"  # evaluations and tests: long
    LEAD = "lead"
    OWN = "own"  # what only one host can do, without a limit: busy must not look lost


def pool_of(job: Job) -> Pool:
    match job:
        case Evaluate() | TestTree():
            return Pool.GATES
        case Lead():
            return Pool.LEAD
        case CarryOut() | Attend() | HostLost() | TurnTrain() | SyncForge() | Tidy():
            return Pool.HANDS


def needs_at(place: Place) -> str | None:
    """The class of hosts that may do what has this place; None where its asker does it itself."""
    match place:
        case On(host):
            return f"{BOUND}{host}"
        case Anywhere(needs):
            return class_of(needs)
        case Here():
            return None


def needs_of(job: Job, task: Task | None, *, hub: bool, leader: str) -> str | None:
    """As `needs_at`. Without a hub no other host has the project's commits: the leader's does it."""
    place = place_of(job, task)
    if isinstance(place, Anywhere) and not hub and not isinstance(job, HostLost | Lead):
        place = On(leader)
    return needs_at(place)


def host_in(needs: str) -> str:
    """The only host that may do what has these needs; empty where others may too."""
    return needs.removeprefix(BOUND) if needs.startswith(BOUND) else ""


def queue_of(pool: Pool, needs: str) -> str:
    """Its name in the engine."""
    own = Pool.OWN if host_in(needs) else pool
    return f"lockgate-{own}-{needs}"


class Queue(Struct, frozen=True):
    name: str
    pool: Pool


def queues_of(host: Host, classes: Iterable[str]) -> tuple[Queue, ...]:
    """Those that it serves, of the classes that are in use."""
    found = [Queue(queue_of(Pool.LEAD, LEAD), Pool.LEAD)] if Role.LEAD in host.roles else []
    if Role.HANDS not in host.roles:
        return tuple(found)
    found.append(Queue(queue_of(Pool.OWN, f"{BOUND}{host.name}"), Pool.OWN))
    for of_class in classes_for(host, {ANY, *classes} - {LEAD}):
        found += [Queue(queue_of(it, of_class), it) for it in (Pool.HANDS, Pool.GATES)]
    return tuple(found)
