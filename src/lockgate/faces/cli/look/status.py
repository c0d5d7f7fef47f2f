"""`lockgate status` and `inbox`: who is at work, and what needs you in all projects."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from lockgate.bootstrap import orchestrator_pid
from lockgate.core.model.facts import json_facts
from lockgate.core.model.people import Right
from lockgate.core.model.task import Status
from lockgate.faces.cli.output import app, columns, json_option, show
from lockgate.faces.words import board
from lockgate.services.task.boards import NEEDED
from lockgate.services.task.callers import must_be_human
from lockgate.services.task.views import session_facts

if TYPE_CHECKING:  # few homes have a fleet
    from lockgate.core.fleet import FleetSeen


@click.command()
@json_option
def status(*, as_json: bool) -> None:
    """Show what needs you, in all projects, and who is at work."""
    it = app()
    must_be_human(it.caller, "nothing was shown", Right.LOOK)
    fleet = it.fleet()
    seen = board.Home(
        pid=orchestrator_pid(it.home),
        board=it.boards.board(NEEDED),
        alive=it.views.alive(),
        limited=it.views.limited(),
        troubles=it.troubles,
        hosts=_hosts(fleet) if fleet else (),
    )
    kept = it.kept_sizes()
    facts = _facts(seen, kept) | _fleet(fleet) if as_json else {}
    text = board.status_text(seen, time.time(), columns())
    show(facts, "\n".join((text, *board.kept_lines(kept))), as_json=as_json)


def _facts(seen: board.Home, kept: Mapping[str, int]) -> dict[str, object]:
    counts = seen.board.counts
    return {
        "orchestrator": seen.pid,
        "tasks": {status.value: counts[status] for status in Status if counts[status]},
        "troubles": {lane: trouble.why for lane, trouble in seen.troubles.items()},
        "agents": [session_facts(session) for session in seen.alive],
        "needs": [need.facts() for need in seen.board.needs],
        "seq": seen.board.seq,
        "kept": dict(kept),
    }


def _hosts(fleet: "FleetSeen") -> tuple[str, ...]:
    from lockgate.faces.words.fleet import fleet_lines, fleet_text

    return (f"fleet: {fleet_text(fleet)}", *(f"  {it}" for it in fleet_lines(fleet)))


def _fleet(fleet: "FleetSeen | None") -> dict[str, object]:
    """Where this machine works alone, nothing."""
    return {"fleet": json_facts(fleet)} if fleet else {}


@click.command()
@json_option
def inbox(*, as_json: bool) -> None:
    """Show all that needs you, in all projects, the most urgent first."""
    it = app()
    must_be_human(it.caller, "nothing was shown", Right.LOOK)
    seen = it.boards.inbox()
    show(seen.facts(), board.inbox_text(seen.needs, time.time(), columns()), as_json=as_json)
