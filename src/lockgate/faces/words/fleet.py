"""The words for hosts of a fleet and the jobs that wait for them."""

from lockgate.core.fleet import FleetSeen, HostSeen, JobSeen
from lockgate.core.hosts import SILENT_AFTER
from lockgate.faces.words.task import one_line, table


def fleet_text(seen: FleetSeen) -> str:
    if not seen.hosts:
        return "no host: start one with lockgate worker"
    lead = f"{seen.leader} leads (epoch {seen.epoch})" if seen.leader else "nobody leads"
    head = ("HOST", "STATE", "SEEN", "AGENTS", "GATES", "LABELS", "VERSION")
    parts = [lead, table([head, *map(_host, seen.hosts)])]
    if seen.jobs:
        parts.append(table([("WAITING", "NEEDS", "FOR", "WHY"), *map(_job, seen.jobs)]))
    return "\n\n".join(parts)


def check_text(found: tuple[tuple[str, str], ...]) -> str:
    return "\n".join(
        f"{'!!' if why else 'ok'}  {what}{f': {one_line(why)}' if why else ''}"
        for what, why in found
    )


def _host(row: HostSeen) -> tuple[str, ...]:
    it = row.host
    state = "silent" if row.silent > SILENT_AFTER and it.state != "gone" else it.state.value
    return (
        one_line(it.name),
        state,
        f"{row.silent:.0f} s ago",
        f"{row.agents}/{it.slots}",
        f"{row.gates}/{it.judges}",
        one_line(" ".join(it.labels)) or "–",
        one_line(it.version),
    )


def _job(row: JobSeen) -> tuple[str, ...]:
    return one_line(row.lane), one_line(row.needs), f"{row.since:.0f} s", one_line(row.why) or "–"
