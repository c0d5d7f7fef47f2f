"""`lockgate status`: who is at work, what waits for a human."""

import time

import click

from lockgate.bootstrap import orchestrator_pid
from lockgate.core.model.task import Status
from lockgate.faces.cli.look.tasks import landing_by_itself
from lockgate.faces.cli.output import app, columns, json_option, show
from lockgate.faces.words import board
from lockgate.services.task.callers import must_be_human
from lockgate.services.task.views import session_facts


@click.command()
@json_option
def status(*, as_json: bool) -> None:
    """Show what needs you, in all projects, and who is at work."""
    it = app()
    must_be_human(it.caller, "nothing was shown")
    seen = it.views.overview(landing_by_itself(it), it.troubles)
    pid = orchestrator_pid(it.home)
    facts = {
        "orchestrator": pid,
        "tasks": {status.value: seen.counts[status] for status in Status if seen.counts[status]},
        "troubles": {lane: trouble.why for lane, trouble in it.troubles.items()},
        "agents": [session_facts(session) for session in seen.alive],
        "needs_human": [
            *({"task": task.id, "status": task.status, "why": why} for task, why in seen.humans),
            *(
                {"project": it.root, "status": "untrusted", "why": why}
                for it, why in seen.untrusted
            ),
            *({"lane": lane, "why": why} for lane, why in seen.lanes),
        ],
    }
    text = board.status_text(pid, seen, it.troubles, time.time(), columns())
    show(facts, text, as_json=as_json)
