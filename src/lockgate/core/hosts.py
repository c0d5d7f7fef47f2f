"""The hosts of a fleet: what each has, which jobs it can do, and why a job waits for one."""

from collections.abc import Iterable, Sequence
from enum import StrEnum

from msgspec import Struct

from lockgate.core.jobs import AGENT, ANY, LEAD, covers

HOST = "host:"  # begins the label that only one host has
HANDS = "hands"  # the role of a host that does jobs
SILENT_AFTER = 15.0  # seconds; a host says every 5 that it is there
LOOKS_AT_HUBS = 5.0  # seconds between two fetches from the hubs
LEAST_FREE = 16 << 20  # bytes, below which a disk is full
FULL_RESTS = 15.0  # seconds that a host with a full disk gets nothing new
FULL_TIMES = 3  # so often within FULL_WITHIN seconds: it drains itself
FULL_WITHIN = 3600.0
CLOCKS_DIFFER = 5.0  # seconds, above which people are told
NO_SPACE = "no space left on device"  # as every program says it


class HostState(StrEnum):
    UP = "up"
    DRAINING = "draining"  # goes on with what it has, and gets nothing new
    GONE = "gone"


class Host(Struct, frozen=True, kw_only=True):
    name: str
    labels: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()  # whose program and login are there
    roles: tuple[str, ...] = ()
    slots: int = 0  # agents at work at once
    judges: int = 0  # evaluations and tests at once
    boot: str = ""  # which start of which machine it is
    version: str = ""
    ssh: str = ""  # how people's terminals reach it
    api: str = ""  # how other hosts reach it
    state: HostState = HostState.UP
    seen: float = 0.0  # by the database's clock
    ahead: float = 0.0  # seconds that its own clock is ahead of the database's
    refused: int = 0  # late answers of its that did not count: another had the job by then
    why: str = ""  # why it gets nothing new, where that was not a person's word


def next_look_at_hubs(hosts: int, *, leads: bool) -> float:
    """In how many seconds a host fetches from the hubs again.

    The leader plans from what is there. The others fetch what a job needs when they do it.
    """
    return LOOKS_AT_HUBS if leads else shared_look(LOOKS_AT_HUBS, hosts)


def shared_look(seconds: float, hosts: int) -> float:
    """How often each of so many hosts looks at what one of them could look at alone.

    Together they do so about once a second, however many they are.
    """
    return max(seconds, float(hosts))


def has_hands(host: Host) -> bool:
    """Whether it does jobs; a host may also only lead, or only serve laptops."""
    return not host.roles or HANDS in host.roles


def offers(host: Host) -> frozenset[str]:
    """All that a job may need of a host, itself among it; one that only leads does no jobs."""
    if not has_hands(host):
        return frozenset(host.roles)
    agents = (f"{AGENT}{it}" for it in host.agents)
    return frozenset((*host.labels, *host.roles, *agents, f"{HOST}{host.name}"))


def host_in(of_class: str) -> str:
    """The only host that may do the jobs of a class; empty where others may too."""
    alone = of_class.startswith(HOST) and "+" not in of_class
    return of_class.removeprefix(HOST) if alone else ""


def why_waiting(of_class: str, hosts: Iterable[Host]) -> str:
    """Why nobody can do a job of this class now, for people; empty where somebody can."""
    known = tuple(hosts)
    having = [it for it in known if covers(offers(it), of_class)]
    there = [it for it in having if it.state is not HostState.GONE]
    bound = host_in(of_class)  # what is there already goes on while its host is drained
    if any(bound or it.state is HostState.UP for it in there):
        return ""
    idle = [it.name for it in known if _named_in(of_class, it) and not has_hands(it)]
    if idle:
        return f"waits: host {idle[0]} does not have the role hands"
    if bound:
        return f"waits: host {bound} is gone"
    if there:
        return f"waits: {' and '.join(it.name for it in there)} may get nothing new"
    return (
        "waits: no host is there" if of_class == ANY else f"waits: no host has {_words(of_class)}"
    )


def agents_in(of_class: str) -> tuple[str, ...]:
    """The agents that a host must have for the jobs of a class."""
    named = (it for it in of_class.split("+") if it.startswith(AGENT))
    return tuple(it.removeprefix(AGENT) for it in named)


def free_slots(host: Host, at_work: int) -> int:
    return max(0, host.slots - at_work)


def why_not_taken(host: Host, at_work: int, lacking: Sequence[str]) -> str:
    """Why a task that has no host yet gets none of a host's slots; empty where it gets one."""
    if lacking:
        return f"host {host.name} has no {lacking[0]} that is installed and logged in"
    if free_slots(host, at_work):
        return ""
    slots = "as many slots" if at_work == host.slots else f"{host.slots} slots"
    return f"host {host.name} has {at_work} agents at work, and {slots}"


def state_at_start(known: Host | None) -> HostState:
    """A person's word outlives a restart: who was drained gets nothing new."""
    drained = known is not None and known.state is HostState.DRAINING
    return HostState.DRAINING if drained else HostState.UP


def name_taken(known: Host | None, boot: str, now: float) -> str:
    """Why a host may not use a name, for people; empty where it may.

    The same machine may start again at once; another one waits until the first is silent.
    """
    if known is None or known.boot == boot or known.state is HostState.GONE:
        return ""
    silent = now - known.seen
    if silent >= SILENT_AFTER:
        return ""
    return f"another machine has the name {known.name!r} and was seen {max(0.0, silent):.0f} s ago"


def name_lost(known: Host | None, boot: str) -> str:
    """Why a host that is not known any more must stop, for people; empty where it was forgotten."""
    if known is None or known.boot == boot:
        return ""
    return f"another machine has the name {known.name!r} now: this one was silent for too long"


# Clocks that differ: what hosts tell each other as a time is by the database's clock.


def zero_of(known: float | None, sent: float, told: float, received: float) -> float:
    """The database's time at which this machine's count of seconds was 0.

    The question was sent and answered at these counts. What differs from what is known by no more
    than the answer's way may have taken changes nothing.
    """
    found, unsure = told - (sent + received) / 2, (received - sent) / 2
    return found if known is None or abs(found - known) > unsure else known


def clock_trouble(name: str, ahead: float) -> str:
    """What is wrong with the clock of a machine, for people; empty where nothing is."""
    if abs(ahead) <= CLOCKS_DIFFER:
        return ""
    way = "ahead of" if ahead > 0 else "behind"
    return (
        f"the clock of {name} is {abs(ahead):.0f} s {way} the database's: hosts go by the"
        f" database's (set the clocks of both by NTP: timedatectl set-ntp true)"
    )


# A disk that is full.


class Disk(Struct, frozen=True):
    """When it was full lately, and until when its host gets nothing new for that."""

    times: tuple[float, ...] = ()
    until: float = 0.0

    @property
    def drains(self) -> bool:
        """Whether the host drains itself: it was full too often."""
        return len(self.times) >= FULL_TIMES


def looked_at(disk: Disk, free: int, now: float) -> Disk:
    """After a look that found so many bytes free; who rests already is not counted again."""
    if free >= LEAST_FREE or now < disk.until:
        return disk
    lately = (it for it in disk.times if now - it < FULL_WITHIN)
    return Disk((*lately, now), now + FULL_RESTS)


def was_full(why: str) -> bool:
    """Whether a job failed for want of disk space."""
    return NO_SPACE in why.casefold()


def why_drained(disk: Disk) -> str:
    return f"its disk was full {len(disk.times)} times"


def another_may_lead(name: str, hosts: Iterable[Host], now: float) -> bool:
    """Whether one was seen a moment ago that may lead while this one may not."""
    return any(
        LEAD in it.roles and it.state is HostState.UP and now - it.seen < SILENT_AFTER
        for it in hosts
        if it.name != name
    )


def _named_in(of_class: str, host: Host) -> bool:
    return host.state is not HostState.GONE and f"{HOST}{host.name}" in of_class.split("+")


def _words(of_class: str) -> str:
    named = (it.replace(HOST, "the name ", 1) for it in of_class.split("+"))
    return " and ".join(named)
