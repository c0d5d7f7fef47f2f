"""`lockgate resume`: take a paused task up again."""

import click

from lockgate.faces import words
from lockgate.faces.cli.output import app, json_option, named, show
from lockgate.services.views import task_facts


@click.command()
@click.argument("name", metavar="ID")
@click.option("--directive", default="", help="What the next agent is told.")
@json_option
def resume(*, name: str, directive: str, as_json: bool) -> None:
    """Take a task out of paused-for-intervention; its failed attempts are counted from nought."""
    it = app()
    task = it.runner.resume(named(it, name), directive, it.caller)
    show(task_facts(task), words.moved_text(task), as_json=as_json)
