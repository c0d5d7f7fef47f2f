"""`lockgate resume`: take a paused task up again."""

import click

from lockgate.faces.cli.output import app, json_option, named, show_moved


@click.command()
@click.argument("name", metavar="ID")
@click.option("--directive", default="", help="What the next agent is told.")
@json_option
def resume(*, name: str, directive: str, as_json: bool) -> None:
    """Take a task out of paused-for-intervention; its failed attempts are counted from nought."""
    it = app()
    task = it.runner.resume(named(it, name), directive, it.caller)
    show_moved(it, task, as_json=as_json)
