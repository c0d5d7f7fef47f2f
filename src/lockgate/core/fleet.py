"""Several hosts: which queue a job waits in, and which queues a host serves."""

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
)

BOUND = "host:"  # the label that only one host has: `host:<name>`


class Pool(StrEnum):
    """Jobs that share the places of a host."""

    HANDS = "hands"  # workspaces, sessions: short
    GATES = "gates"  # evaluations and tests: long
    LEAD = "lead"
    OWN = "own"  # what only one host can do, without a limit: busy must not look lost


class Role(StrEnum):
    HANDS = "hands"
    LEAD = "lead"
    API = "api"


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
