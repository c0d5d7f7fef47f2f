"""The hosts of a fleet in words: who leads, what each has at work, and which jobs wait for one."""

from collections.abc import Iterator

from lockgate.core.fleet import FleetSeen, HostSeen
from lockgate.core.hosts import SILENT_AFTER, HostState
from lockgate.faces.words.task import counted, one_line


def fleet_text(seen: FleetSeen) -> str:
    """All of it in a few words."""
    lead = f"{one_line(seen.leader)} leads" if seen.leader else "nobody leads"
    waiting = sum(1 for it in seen.jobs if it.why)
    jobs = f", {counted(waiting, 'job')} cannot go on" if waiting else ""
    return f"{counted(len(seen.hosts), 'host')}, {lead}{jobs}"


def fleet_lines(seen: FleetSeen) -> Iterator[str]:
    """Each host, then the jobs that wait or rest with the reason."""
    yield from map(host_text, seen.hosts)
    for it in seen.jobs:
        if it.why:
            yield f"{one_line(it.lane)}: {one_line(it.why)}"


def host_text(row: HostSeen) -> str:
    it = row.host
    state = "" if row.host.state is HostState.UP and not is_silent(row) else f", {state_text(row)}"
    work = f"{row.agents} of {it.slots} agents, {row.gates} of {it.judges} gates"
    return f"{one_line(it.name)}: {work}{state}"


def state_text(row: HostSeen) -> str:
    it = row.host
    state = "silent" if is_silent(row) else it.state.value
    return one_line(f"{state}: {it.why}" if it.why else state)


def is_silent(row: HostSeen) -> bool:
    """It says nothing any more, and nobody has forgotten it."""
    return row.silent > SILENT_AFTER and row.host.state is not HostState.GONE


def is_whole(seen: FleetSeen) -> bool:
    """Somebody leads, and every host is heard of."""
    return bool(seen.leader) and not any(map(is_silent, seen.hosts))
