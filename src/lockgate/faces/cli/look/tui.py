"""`lockgate tui`, and `lockgate` alone on a terminal: the board."""

import os
import signal
import sys
import termios
from importlib.util import find_spec

import click

from lockgate.errors import Refused
from lockgate.faces.cli.commands import SAYS
from lockgate.faces.cli.output import app, here, terminal
from lockgate.services.task.callers import must_be_human

NEEDED = "textual"
NOT_OPENED = "the board was not opened"
INSTALL = "pip install 'lockgate[tui]'"
# Out of the other screen, and off with all that Textual turns on: the mouse, focus, paste, keys.
MODES = (1000, 1002, 1003, 1004, 1006, 1015, 1016, 2004, 2026, 2048, 1049)
RESET = "".join(f"\x1b[?{mode}l" for mode in MODES) + "\x1b[<u\x1b[?25h\x1b[0m\r\n"
HANDED_ON = (signal.SIGTERM, signal.SIGHUP)
BY_A_SIGNAL = 128


@click.command()
@click.option("--all", "everywhere", is_flag=True, help="The tasks of every project.")
@click.option("--read-only", is_flag=True, help="Look only: no key changes anything.")
def tui(*, everywhere: bool = False, read_only: bool = False) -> None:
    """Open the board: what needs you first, and the key that answers it.

    It is what lockgate opens on a terminal. Press ? for the keys. The board needs textual, which
    pip install 'lockgate[tui]' brings.
    """
    must_open()
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


# The terminal is given back as it was, also where the board is ended by what no program can catch:
# a process that has loaded nothing of it waits for its end.


def guard(then: str = "nothing else was") -> int:
    """Goes on in a child, and returns there what is at its end once the parent is gone.

    The parent waits for the child and ends as it does; where the child was killed, it puts the
    terminal right first, and says what happens then.
    """
    before = termios.tcgetattr(sys.stdin.fileno())
    seen, held = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(held)
        return seen
    os.close(seen)
    for number in HANDED_ON:
        signal.signal(number, lambda got, _: os.kill(child, got))
    signal.signal(signal.SIGINT, _left_to_the_board)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        _put_right(before, -code, then)
        code = BY_A_SIGNAL - code
    raise click.exceptions.Exit(code)


def _left_to_the_board(*_: object) -> None:
    """It has a key for Ctrl-C."""


def _put_right(before: list[int | list[bytes | int]], number: int, then: str) -> None:
    """Also where the terminal is another's by now: then a write would stop us."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)
    told = f"lockgate: the board was ended by {signal.Signals(number).name}; {then}\n"
    os.write(sys.stdout.fileno(), f"{RESET}{told}".encode())
