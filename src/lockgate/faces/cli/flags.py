"""What every command may be asked for: JSON instead of text, and completion by a shell."""

from collections.abc import Callable

import click

COMPLETING = "_LOCKGATE_COMPLETE"  # set by the script that a shell has for completion
JSON = "lockgate.json"  # where a context keeps that a command of it was asked for JSON

Command = Callable[..., None]


def json_option(command: Command) -> Command:
    """`--json`, also where it stands before the command: then the group above has heard it."""
    says = "One JSON document on stdout."
    return click.option("--json", "as_json", is_flag=True, help=says, callback=_heard)(command)


def wants_json(ctx: click.Context) -> bool:
    return bool(ctx.meta.get(JSON))


def _heard(ctx: click.Context, _option: click.Parameter, value: object) -> bool:
    ctx.meta[JSON] = bool(value) or wants_json(ctx)
    return wants_json(ctx)
