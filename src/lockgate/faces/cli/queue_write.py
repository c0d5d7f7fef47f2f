"""What people do with the queue: let a change land, keep it back, send it back."""

import click

from lockgate.bootstrap.train import queueing
from lockgate.core.model.task import Task
from lockgate.faces import queue_words
from lockgate.faces.cli.output import app, json_option, named, show
from lockgate.services.task.views import task_facts

ID = click.argument("name", metavar="ID")
WHY = click.option("-m", "--message", required=True, metavar="TEXT", help="Why.")


@click.command()
@ID
@click.option(
    "--change",
    "patch",
    default="",
    metavar="PATCH",
    help="Only the change that begins so, as `lockgate task show` has it.",
)
@json_option
def approve(*, name: str, patch: str, as_json: bool) -> None:
    """Let a change land that has passed its gates: in manual mode, or one that was held.

    The train merges it onto the target, tests what comes of that, and moves the target to exactly
    what was tested. A change that could not be judged is tried once more.
    """
    it = app()
    id = named(it, name)
    task = queueing(it).approve(id, patch or it.store.load(id).patch, it.caller)
    _tell(task, as_json=as_json)


@click.command()
@ID
@WHY
@json_option
def hold(*, name: str, message: str, as_json: bool) -> None:
    """Keep a change from landing, until it is approved again."""
    it = app()
    _tell(queueing(it).hold(named(it, name), message, it.caller), as_json=as_json)


@click.command()
@ID
@WHY
@json_option
def drop(*, name: str, message: str, as_json: bool) -> None:
    """Take a change out of the queue; its agent gets what you say, and works on.

    It counts one failed attempt, as lockgate reject does.
    """
    it = app()
    _tell(queueing(it).drop(named(it, name), message, it.caller), as_json=as_json)


def _tell(task: Task, *, as_json: bool) -> None:
    show(task_facts(task), queue_words.steered_text(task), as_json=as_json)
