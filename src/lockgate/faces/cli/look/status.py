"""`lockgate status` and `inbox`: who is at work, and what needs you in all projects."""

import time
from collections.abc import Mapping

import click

from lockgate.bootstrap import orchestrator_pid
from lockgate.core.model.people import Right
from lockgate.core.model.task import Status
from lockgate.faces.cli.output import app, columns, json_option, show
from lockgate.faces.words import board
from lockgate.services.task.boards import NEEDED
from lockgate.services.task.callers import must_be_human
from lockgate.services.task.views import session_facts


@click.command()
@json_option
def status(*, as_json: bool) -> None:
    """Show what needs you, in all projects, and who is at work."""
    it = app()
    must_be_human(it.caller, "nothing was shown", Right.LOOK)
    seen = board.Home(
        pid=orchestrator_pid(it.home),
        board=it.boards.board(NEEDED),
        alive=it.views.alive(),
        limited=it.views.limited(),
        troubles=it.troubles,
    )
    kept = it.kept_sizes()
    facts = _facts(seen, kept) if as_json else {}
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


@click.command()
@json_option
def inbox(*, as_json: bool) -> None:
    """Show all that needs you, in all projects, the most urgent first."""
    it = app()
    must_be_human(it.caller, "nothing was shown", Right.LOOK)
    seen = it.boards.inbox()
    show(seen.facts(), board.inbox_text(seen.needs, time.time(), columns()), as_json=as_json)
