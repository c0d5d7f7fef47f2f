"""`lockgate events`: the log of everything that happened."""

import sys
import time

import click

from lockgate.core.model.event_log import event_line
from lockgate.core.model.task import TaskId
from lockgate.faces import words
from lockgate.faces.cli.output import app, json_option, named
from lockgate.services.task.views import Views

BATCH = 500
PAUSE = 0.25
LAST = 2**63 - 1


@click.command()
@click.argument("name", metavar="[ID]", required=False)
@click.option(
    "--since",
    default=0,
    type=click.IntRange(0, LAST),
    metavar="SEQ",
    help="Only events after this number.",
)
@click.option("--follow", is_flag=True, help="Go on with what happens next, until interrupted.")
@json_option
def events(*, name: str | None, since: int, follow: bool, as_json: bool) -> None:
    """Show events, oldest first: one JSON object a line with --json. A session sees its task's."""
    it = app()
    id = named(it, name) if name is not None or it.caller.session else None
    while True:
        seen = _print(it.views, id, since, as_json=as_json)
        if seen == since:
            if not follow:
                return
            time.sleep(PAUSE)
        since = seen


def _print(views: Views, id: TaskId | None, since: int, *, as_json: bool) -> int:
    """Print one batch; the seq of its last event. What is hashed is the line as a pipe gets it."""
    for event in views.events(id, since, BATCH):
        line = event_line(event) if as_json else words.event_text(event)
        click.echo(words.escaped(line) if sys.stdout.isatty() else line)
        since = event.seq
    return since
