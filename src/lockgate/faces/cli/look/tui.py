"""`lockgate tui`, and `lockgate` alone on a terminal: the board."""

import os
import sys
from importlib.util import find_spec

import click

from lockgate.errors import Refused
from lockgate.faces.cli.commands import SAYS
from lockgate.faces.cli.output import app, here, terminal
from lockgate.services.task.callers import must_be_human

NEEDED = "textual"
NOT_OPENED = "the board was not opened"
INSTALL = "pip install 'lockgate[tui]'"


@click.command()
@click.option("--all", "everywhere", is_flag=True, help="The tasks of every project.")
@click.option("--read-only", is_flag=True, help="Look only: no key changes anything.")
def tui(*, everywhere: bool = False, read_only: bool = False) -> None:
    """Open the board: what needs you first, and the key that answers it.

    It is what lockgate opens on a terminal. Press ? for the keys. The board needs textual, which
    pip install 'lockgate[tui]' brings.
    """
    must_open()
    from lockgate.faces.tui.guard import guard

    parent = guard()
    it = app()
    must_be_human(it.caller, NOT_OPENED)
    from lockgate.faces.tui.app import Opening, open_board

    how = Opening(tuple(SAYS.items()), everywhere=everywhere, read_only=read_only, parent=parent)
    open_board(it, here(), how)


def must_open() -> None:
    """Refused where it cannot be drawn."""
    if not opens_here():
        why, fix = "there is no terminal here that it can draw on", "lockgate task list"
        raise Refused(NOT_OPENED, why=why, fix=fix)
    if not is_installed():
        raise Refused(NOT_OPENED, why=f"{NEEDED} is not installed", fix=INSTALL)


def opens_here() -> bool:
    """Whether this is a terminal of a person, which can move its cursor."""
    ours = terminal() is None and sys.stdin.isatty() and sys.stdout.isatty()
    asked = os.environ.get("LOCKGATE_TOKEN") or os.environ.get("LOCKGATE_SOCKET")
    return ours and not asked and os.environ.get("TERM", "dumb") != "dumb"


def is_installed() -> bool:
    return find_spec(NEEDED) is not None
