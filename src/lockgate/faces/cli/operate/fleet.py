"""`lockgate worker` and `lockgate fleet`: several hosts that share the work of one database."""

import os
import signal
from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext
from functools import partial
from typing import Protocol

import click
from msgspec.structs import replace

from lockgate.bootstrap import App
from lockgate.bootstrap.assistants import kept_warm, mcp_child
from lockgate.bootstrap.fleet import Look, check_fleet, host_settings, hubs_of, open_host
from lockgate.bootstrap.gates import Benches
from lockgate.bootstrap.orchestrator import feed_of, web_child
from lockgate.core.fleet import FleetSeen, FleetSettings, HostRole, HostSeen, JobSeen
from lockgate.core.hosts import clock_trouble
from lockgate.core.model.facts import json_facts
from lockgate.errors import Refused, Unavailable
from lockgate.faces.cli.operate.web import origin_of, served_at
from lockgate.faces.cli.output import app, here, json_option, report, show
from lockgate.faces.cli.serve import answer
from lockgate.faces.words.fleet import state_text
from lockgate.faces.words.task import one_line, table

HOST = click.argument("host")


class Closing(Protocol):
    def close(self) -> None: ...


@click.command()
@click.option("--name", default="", help="Of this host; default: the machine's.")
@click.option("--label", "labels", multiple=True, help="What it has that jobs may need: gpu.")
@click.option("--slots", type=int, help="Agents at work at once.")
@click.option("--judges", type=int, help="Gates and tests at once.")
@click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice([it.value for it in HostRole]),
    help="What it does: hands, lead, api; default: all.",
)
@click.option(
    "--listen", default="", metavar="HOST:PORT", help="Serve laptops there, in the role api."
)
def worker(
    *,
    name: str,
    labels: tuple[str, ...],
    slots: int | None,
    judges: int | None,
    roles: tuple[str, ...],
    listen: str,
) -> None:
    """Do the jobs of a fleet on this host.

    When it is stopped, its agents live on. fleet.toml of the home says where Temporal is and how
    this host takes part; options come first.
    """
    it = app()
    settings = host_settings(it.home, name, labels, slots, judges, roles)
    serve_host(it, settings, listen)


def serve_host(it: App, settings: FleetSettings, listen: str = "") -> None:
    own = replace(settings.host, listen=listen or settings.host.listen)
    settings = replace(settings, host=own)
    served, board = replace(it, troubles={}), board_of(it, settings)
    served = replace(served, feed=feed_of(served, report))
    with (
        closing(Benches(it.home)) as benches,
        kept_warm(mcp_child(it.home), it.home) as mcp,
        open_host(served, settings, partial(answer, served, benches, mcp), report) as host,
    ):
        if host is None:
            why, fix = "another process serves this home", "stop it: lockgate down"
            raise Refused("the host was not started", why=why, fix=fix)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda _number, _frame: host.stop())
        with closing(board()) if board else nullcontext():
            host.run()
        report(f"host {host.me.name} stops (process {os.getpid()}); agents keep working")


def board_of(it: App, settings: FleetSettings) -> Callable[[], Closing] | None:
    """What serves people on other machines, as `up --listen` does; None where it does not."""
    own = settings.host
    if not own.listen or HostRole.API not in own.roles:
        return None
    host, port = served_at(it, own.listen)
    api = origin_of(own.api, "nothing was started", f"[host] api in {it.home}/fleet.toml")
    more = ("--api", api) if api else ()
    return partial(web_child, port, report, ("--team", "--listen", host, *more))


@click.command()
@json_option
def status(*, as_json: bool) -> None:
    """Show who leads, the hosts, and the jobs that wait for one and why."""
    it = app()
    seen = it.hosts.status(it.caller)
    show(json_facts(seen), _fleet_text(seen), as_json=as_json)


@click.command()
@HOST
@click.option("--move", is_flag=True, help="Its tasks go on elsewhere from what was kept last.")
@json_option
def drain(*, host: str, move: bool, as_json: bool) -> None:
    """Place nothing new on a host; it goes on with what it has."""
    it = app()
    moved = it.hosts.drain(host, it.caller, move=move)
    text = f"{host} gets nothing new" + (f"; {moved} tasks go on elsewhere" if move else "")
    show({"host": host, "state": "draining", "tasks": moved}, text, as_json=as_json)


@click.command()
@HOST
@json_option
def undrain(*, host: str, as_json: bool) -> None:
    """Place jobs on a host again."""
    it = app()
    it.hosts.undrain(host, it.caller)
    show({"host": host, "state": "up"}, f"{host} gets jobs again", as_json=as_json)


@click.command()
@HOST
@json_option
def forget(*, host: str, as_json: bool) -> None:
    """Count a host as lost now: its tasks go on elsewhere.

    If it still works, it ends its agents and stops. When it is started again, it is a new host
    that gets jobs: to keep it away, stop its service, or drain it instead.
    """
    it = app()
    moved = it.hosts.forget(host, it.caller)
    text = f"{host} is forgotten; {moved} tasks go on elsewhere"
    show({"host": host, "tasks": moved}, text, as_json=as_json)


@click.command()
@click.argument("url")
@json_option
def hub(*, url: str, as_json: bool) -> None:
    """Give this project the bare repository by which hosts exchange its commits.

    By ssh, by https, or a path where all hosts are one machine. "none" takes it away again.
    """
    it = app()
    project = it.projects.here(here())
    if url == "none":
        hubs_of(it).take_away(project, it.caller)
    else:
        hubs_of(it).give(project, url, it.caller)
    text = f"{project.name} has {'no hub' if url == 'none' else f'the hub {url}'}"
    show({"project": project.name, "hub": url}, text, as_json=as_json)


@click.command()
@json_option
def check(*, as_json: bool) -> None:
    """Check what a fleet needs: database, Temporal, hosts, hubs."""
    found = check_fleet(app)
    facts = [{"what": it, "trouble": look.trouble, "note": look.note} for it, look in found.items()]
    show(facts, _check_text(found), as_json=as_json)
    wrong = [what for what, look in found.items() if look.trouble]
    if wrong:
        fix = "see to that, then run it again"
        raise Unavailable("the fleet is not in order", why=", ".join(wrong), fix=fix)


def _fleet_text(seen: FleetSeen) -> str:
    if not seen.hosts:
        return "no host: start one with lockgate worker"
    lead = f"{seen.leader} leads (epoch {seen.epoch}) for {seen.led:.0f} s"
    lead = lead if seen.leader else "nobody leads"
    lead += f"; the oldest job waits for {seen.oldest:.0f} s" if seen.oldest else ""
    head = ("HOST", "STATE", "SEEN", "AGENTS", "GATES", "REFUSED", "LABELS", "VERSION")
    parts = [lead, table([head, *map(_host, seen.hosts)])]
    parts += [why for it in seen.hosts if (why := clock_trouble(it.host.name, it.host.ahead))]
    if seen.jobs:
        parts.append(table([("WAITING", "NEEDS", "FOR", "WHY"), *map(_job, seen.jobs)]))
    return "\n\n".join(parts)


def _check_text(found: Mapping[str, Look]) -> str:
    """One line for a part that is in order; else what is wrong, and what works with a limit."""
    lines = [
        f"{mark}  {what}{text and f': {one_line(text)}'}"
        for what, look in found.items()
        for mark, text in _marked(look)
    ]
    return "\n".join(lines)


def _marked(look: Look) -> tuple[tuple[str, str], ...]:
    said = tuple(it for it in (("!!", look.trouble), ("--", look.note)) if it[1])
    return said or (("ok", ""),)


def _host(row: HostSeen) -> tuple[str, ...]:
    it = row.host
    return (
        one_line(it.name),
        state_text(row),
        f"{row.silent:.0f} s ago",
        f"{row.agents}/{it.slots}",
        f"{row.gates}/{it.judges}",
        str(it.refused),
        one_line(" ".join(it.labels)) or "–",
        one_line(it.version),
    )


def _job(row: JobSeen) -> tuple[str, ...]:
    return one_line(row.lane), one_line(row.needs), f"{row.since:.0f} s", one_line(row.why) or "–"
