"""Several hosts: how one is set up, which queue a job waits in, and which queues a host serves."""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from types import MappingProxyType

from msgspec import Struct

from lockgate.core.config.settings import OWN_LABELS, MergeFence, Settings
from lockgate.core.hosts import (
    HANDS,
    HOST,
    SILENT_AFTER,
    Host,
    HostState,
    clock_trouble,
    has_hands,
    host_in,
    offers,
    why_waiting,
)
from lockgate.core.jobs import (
    AGENT,
    ANY,
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
    class_of,
    covers,
    place_of,
)
from lockgate.core.model.gates import (
    CommandGate,
    DifferentialGate,
    MultipassReviewGate,
    ParallelReviewGate,
    Where,
)
from lockgate.core.model.task import Role, Session, Task

# What `fleet.toml` of a host says.


class HostRole(StrEnum):
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
    roles: tuple[HostRole, ...] = tuple(HostRole)
    ssh: str = ""
    api: str = ""  # by which other hosts reach it: its url
    listen: str = ""  # where a host of the role api serves laptops and other hosts: HOST:PORT


class Shared(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same on all hosts; times in seconds."""

    beat: float = 10.0  # without a sign of life a job goes on elsewhere
    sessions_lost_after: float = 60.0  # a host that takes none of its own jobs is lost
    snapshot_every: float = 60.0  # what an agent has done is kept; 0 is never
    fence: MergeFence = MergeFence.REF  # what keeps an earlier leader's push out of a hub

    def silence(self, *, bound: bool) -> float:
        """Without a sign of life, until a job is given to the next host.

        Where several can do it, that next one may be gone too: half a beat leaves time for a third.
        """
        return self.beat if bound else self.beat / 2

    @property
    def fenced(self) -> bool:
        """Whether landings rely on atomic pushes of the hub."""
        return self.fence is MergeFence.REF


class FleetSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    temporal: Cluster = Cluster()
    host: OwnFacts = OwnFacts()
    fleet: Shared = Shared()


SNAPSHOTS = 0.05  # of an agent's time, at most, goes into keeping what it has done


def next_snapshot(took: float, every: float) -> float:
    """In how many seconds to keep it again, where the last time took so long."""
    return max(every, took / SNAPSHOTS - took)


def is_at_work(session: Session, task: Task) -> bool:
    """Whether what is in the task's clone is this session's work."""
    newest = session.generation == task.generation
    return newest and session.role is Role.WORKER and session.ended is None


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def problem_in(settings: FleetSettings) -> str:
    """Why a host cannot be set up so; empty where it can."""
    own, times = settings.host, settings.fleet
    labels = (it.removeprefix("agent:") for it in own.labels)
    wrong = [it for it in (own.name, *labels) if not _NAME.fullmatch(it)]
    if wrong:
        return f"{wrong[0]!r} is no name: letters, digits and . _ - are, at most 63 of them"
    words = [it for it in own.labels if it in OWN_LABELS]
    if words:
        return f"{words[0]!r} is a word of Lockgate's own, and no label of a host"
    if not own.roles:
        return f"roles is empty: a host has at least one of {', '.join(HostRole)}"
    if own.slots < 0 or own.judges < 0:
        return "slots and judges cannot be less than 0"
    if not 1 <= times.beat <= times.sessions_lost_after:
        return "beat must be at least 1 and no longer than sessions_lost_after"
    if times.snapshot_every < 0:
        return "snapshot_every cannot be less than 0"
    return ""


# Where jobs wait.


class Pool(StrEnum):
    """Jobs that share the places of a host."""

    HANDS = "hands"  # workspaces, sessions: short
    GATES = "gates"  # evaluations and tests: long
    LEAD = "lead"  # to lead, and to record that a host is lost: never for long in want of a place
    OWN = "own"  # what only one host can do, without a limit: busy must not look lost


def pool_of(job: Job) -> Pool:
    match job:
        case Evaluate() | TestTree():
            return Pool.GATES
        case Lead() | HostLost():
            return Pool.LEAD
        case CarryOut() | Attend() | TurnTrain() | SyncForge() | Tidy():
            return Pool.HANDS


def needs_at(place: Place) -> str | None:
    """The class of hosts that may do what has this place; None where its asker does it itself."""
    match place:
        case On(host):
            return f"{HOST}{host}"
        case Anywhere(needs):
            return class_of(needs)
        case Here():
            return None


def asked_of_host(job: Job, settings: Settings) -> tuple[str, ...]:
    """The labels that its project asks for, and of gates those that the job runs.

    Reviewers work where the task's clone is, so its host has their agents.
    """
    match job:
        case CarryOut():
            return (*settings.needs, *_of_reviewers(settings))
        case Evaluate():
            return (*settings.needs, *_of_gates(settings, Where.CHANGE))
        case TestTree():
            return (*settings.needs, *_of_gates(settings, Where.TRAIN))
        case TurnTrain() | SyncForge() | Tidy() | Attend() | HostLost() | Lead():
            return ()


def needs_of(
    job: Job,
    task: Task | None,
    labels: Iterable[str],
    *,
    hub: bool,
    leader: Host,
    session: Session | None = None,
) -> str | None:
    """As `needs_at`. Without a hub no other host has the commits: the leader's does it all.

    Where that one lacks a label or the role hands, the job waits for it, and is done nowhere else.
    """
    asked = tuple(labels)
    place = place_of(job, task, asked, session=session)
    if isinstance(place, Anywhere) and not hub and not isinstance(job, HostLost | Lead):
        own = On(leader.name)
        more = (f"{HOST}{leader.name}",) if has_hands(leader) else (HANDS, f"{HOST}{leader.name}")
        place = own if is_able(leader, asked) else Anywhere((*asked, *more))
    return needs_at(place)


def is_able(host: Host, labels: Iterable[str]) -> bool:
    """Whether it does jobs, and has all of these labels."""
    return has_hands(host) and covers(offers(host), class_of(labels))


def _of_gates(settings: Settings, on: Where) -> tuple[str, ...]:
    """Those with a condition too: whether a change meets it is known when it is judged."""
    gates = (it for it in settings.gates if isinstance(it, CommandGate | DifferentialGate))
    return tuple(need for it in gates if on in it.place.on for need in it.needs)


def _of_reviewers(settings: Settings) -> tuple[str, ...]:
    reviews = (
        it for it in settings.gates if isinstance(it, ParallelReviewGate | MultipassReviewGate)
    )
    return tuple(f"{AGENT}{it.reviewer}" for it in reviews if it.reviewer)


def queue_of(pool: Pool, needs: str) -> str:
    """Its name in the engine."""
    own = Pool.OWN if host_in(needs) else pool
    return f"lockgate-{own}-{needs}"


class Queue(Struct, frozen=True):
    name: str
    pool: Pool


def queues_of(host: Host, classes: Iterable[str]) -> tuple[Queue, ...]:
    """Those that it serves, of the classes that are in use."""
    found = list[Queue]()
    if HostRole.LEAD in host.roles:
        found += [Queue(queue_of(Pool.LEAD, it), Pool.LEAD) for it in (LEAD, ANY)]
    if HostRole.HANDS not in host.roles:
        return tuple(found)
    found.append(Queue(queue_of(Pool.OWN, f"{HOST}{host.name}"), Pool.OWN))
    free = {it for it in classes if it != LEAD and not host_in(it) and covers(offers(host), it)}
    for of_class in sorted({ANY, *free}):
        found += [Queue(queue_of(it, of_class), it) for it in (Pool.HANDS, Pool.GATES)]
    return tuple(found)


# Which host has the files that a person's command needs.


class Needed(StrEnum):
    """What of a task a command needs, where one host alone may have it."""

    SESSION = "session"  # what an agent has said, and its terminal
    CLONE = "clone"
    CHANGE = "change"  # once it was handed in, every host has it


FILES: Mapping[tuple[str, ...], Needed] = MappingProxyType(
    {
        ("task", "peek"): Needed.SESSION,
        ("task", "attach"): Needed.SESSION,
        ("handback",): Needed.CLONE,
        ("takeover",): Needed.CLONE,
        ("shell",): Needed.CLONE,
        ("open",): Needed.CLONE,
        ("diff",): Needed.CHANGE,
    }
)
SESSION = "--session"
VALUED = frozenset({"-m", "--message", "--lines", SESSION})  # options of these, with a word behind


def task_with_files(argv: Sequence[str]) -> tuple[str, Needed] | None:
    """The task as it is named there, and what of it a command needs; None where it is nothing."""
    words = tuple(
        it
        for before, it in zip(("", *argv), argv, strict=False)
        if not it.startswith("-") and before not in VALUED
    )
    known = next((it for it in FILES if words[: len(it)] == it and len(words) > len(it)), None)
    return (words[len(known)], FILES[known]) if known else None


def host_with_files(
    argv: Sequence[str], task: Task, sessions: Sequence[Session], hosts: Iterable[Host]
) -> Host | None:
    """None where every host has what the command needs, or none of these."""
    asked = task_with_files(argv)
    name = files_at(asked[1], task, _meant(argv, task, sessions)) if asked else ""
    return next((it for it in hosts if name and it.name == name), None)


def files_at(needed: Needed, task: Task, session: Session | None = None) -> str:
    """The name of the host that alone has them; empty where there is none."""
    if needed is Needed.CHANGE and task.candidate:
        return ""
    own = session.host if session and needed is Needed.SESSION else ""
    return own or task.host


class Asked(Struct, frozen=True):
    """What a person asked for that needs the files of a task."""

    what: str  # that it was not done
    command: str
    page: str = ""  # of the web board, which shows the same


def ways_to(host: Host, asked: Asked) -> str:
    """How a person gets at the files of this host."""
    ways = [f"ssh -t {host.ssh} lockgate {asked.command}"] if host.ssh else []
    if host.api and asked.page:
        ways.append(f"open {host.api}{asked.page}")
    if host.api:
        ways.append(f"log in there, on a laptop: lockgate login {host.api}")
    return ", or ".join(ways) or f"on host {host.name}: lockgate {asked.command}"


def _meant(argv: Sequence[str], task: Task, sessions: Sequence[Session]) -> Session | None:
    """The one that an option names, else the newest."""
    joined = [it.partition("=")[2] for it in argv if it.startswith(f"{SESSION}=")]
    behind = [it for before, it in pairwise(argv) if before == SESSION]
    named = (*joined, *behind)
    ids = {id for it in named for id in (it, f"{task.id}.{it}")}
    return next((it for it in reversed(sessions) if not named or it.id in ids), None)


def host_at_work(hosts: Iterable[Host], now: float) -> str:
    """One that was seen a moment ago, for people: no orchestrator works beside a fleet."""
    up = (it for it in hosts if it.state is not HostState.GONE and now - it.seen < SILENT_AFTER)
    return next((f"host {it.name} of a fleet" for it in up), "")


def hosts_have_agents(hub: str, hosts: Iterable[Host], now: float) -> bool:
    """Whether a project's tasks go to hosts that have their agents, whatever this machine has.

    Without a hub the leader's host does them all.
    """
    return bool(hub) and bool(host_at_work(hosts, now))


# What people see of it.


class LaneRow(Struct, frozen=True, kw_only=True):
    """A lane that is not empty. Times are by the database's clock; no takeover compares them."""

    lane: str
    job: Job
    needs: str  # what a host must have: a class, "any" or labels joined by +
    epoch: int  # how often it was claimed
    token: str  # of the last claim, made by chance; empty where nobody claims it
    host: str  # who has claimed it
    asked: float
    since: float  # when it was claimed
    until: float  # when its rest ends; 0 where it does not rest
    why: str  # why it rests or waits


class HostSeen(Struct, frozen=True, kw_only=True):
    host: Host
    agents: int  # at work there
    gates: int
    leads: bool
    silent: float  # seconds since it was seen


class JobSeen(Struct, frozen=True, kw_only=True):
    lane: str
    needs: str
    host: str
    since: float  # seconds
    why: str  # why it waits or rests


class FleetSeen(Struct, frozen=True, kw_only=True):
    leader: str  # a host's name; empty where nobody leads
    epoch: int  # how often the lead was taken
    hosts: tuple[HostSeen, ...]
    jobs: tuple[JobSeen, ...]  # those that wait, the oldest first
    led: float = 0.0  # seconds since the leader took the lead; 0 where nobody leads
    oldest: float = 0.0  # seconds that the oldest job waits which does not rest


def seen_by(
    hosts: Iterable[Host],
    lanes: Iterable[LaneRow],
    now: float,
    aside: Mapping[str, str] = MappingProxyType({}),
) -> FleetSeen:
    """`aside` are lanes whose jobs cannot be read here, each with the reason."""
    known, rows = tuple(hosts), tuple(lanes)
    lead = next((it for it in rows if it.lane == LEAD), None)
    waiting = [it for it in rows if not it.host or it.until or why_held(it, known, now)]
    return FleetSeen(
        leader=lead.host if lead else "",
        epoch=lead.epoch if lead else 0,
        hosts=tuple(_host_seen(it, rows, now) for it in known),
        jobs=(
            *(_job_seen(it, known, now) for it in waiting),
            *(JobSeen(lane=it, needs="", host="", since=0.0, why=aside[it]) for it in aside),
        ),
        led=max(0.0, now - lead.since) if lead and lead.host else 0.0,
        oldest=max((now - it.asked for it in waiting if not it.until), default=0.0),
    )


def labels_lacking(settings: Settings, seen: FleetSeen, *, hub: bool) -> tuple[str, ...]:
    """Why jobs of such a project would wait for labels, for people; empty where none would.

    Without a hub the host that leads does them alone.
    """
    hosts = [it.host for it in seen.hosts if hub or it.leads or not seen.leader]
    own = settings.needs
    asked = (own, *((*own, *_of_gates(settings, it)) for it in Where))
    reasons = (why_waiting(class_of(it), hosts) for it in asked if it)
    return tuple(dict.fromkeys(it.removeprefix("waits: ") for it in reasons if it))


def trouble_among(seen: FleetSeen) -> tuple[str, ...]:
    """What is wrong with the hosts, for people."""
    versions = sorted({it.host.version for it in seen.hosts})
    silent = [it.host.name for it in seen.hosts if it.silent > SILENT_AFTER]
    found = list[str]()
    if len(versions) > 1:
        found.append(f"versions differ: {', '.join(versions)}")
    drained = (it.host for it in seen.hosts if it.host.why)
    found += [
        f"{it.name} gets nothing new: {it.why} (free space, then lockgate fleet undrain {it.name})"
        for it in drained
    ]
    if silent:
        found.append(f"{', '.join(silent)} was not seen for long (lockgate fleet forget HOST)")
    found += [why for it in seen.hosts if (why := clock_trouble(it.host.name, it.host.ahead))]
    if not seen.leader:
        found.append("nobody leads (lockgate worker --role lead)")
    return tuple(found)


def _host_seen(host: Host, rows: Iterable[LaneRow], now: float) -> HostSeen:
    own = [it for it in rows if it.host == host.name and not it.until]
    return HostSeen(
        host=host,
        agents=sum(isinstance(it.job, Attend) for it in own),
        gates=sum(pool_of(it.job) is Pool.GATES for it in own),
        leads=any(it.lane == LEAD for it in own),
        silent=max(0.0, now - host.seen),
    )


def _job_seen(row: LaneRow, hosts: tuple[Host, ...], now: float) -> JobSeen:
    return JobSeen(
        lane=row.lane,
        needs=row.needs,
        host=row.host,
        since=max(0.0, now - row.asked),
        why=row.why or why_held(row, hosts, now) or why_waiting(row.needs, hosts),
    )


def why_held(row: LaneRow, hosts: Iterable[Host], now: float) -> str:
    """Why a job that a host has does not go on, for people; empty where it does.

    The host says nothing any more, and no other can do the job: else it goes on there by itself.
    """
    there = {it.name: it for it in hosts if it.state is not HostState.GONE}
    heard = {name for name, it in there.items() if now - it.seen <= SILENT_AFTER}
    if not row.token or row.until or row.host in heard:
        return ""
    others = (it for name, it in there.items() if name in heard and it.state is HostState.UP)
    if any(covers(offers(it), row.needs) for it in others):
        return ""
    return f"waits: host {row.host}, which had it, is {'silent' if row.host in there else 'gone'}"
