"""`lockgate review`: what a reviewer hands in."""

import os
import sys
from pathlib import Path

import click

from lockgate.errors import Refused
from lockgate.faces.cli.output import app, here, json_option, named, show, terminal
from lockgate.services.views import task_facts

LARGEST = 1 << 20

SHAPE = """{"verdict": "PASS", "summary": "...", "findings": [{"priority": "P1",
"file": "a.py", "line": 3, "issue": "...", "suggestion": "..."}]}"""


@click.group()
def review() -> None:
    """A reviewer's own commands."""


@review.command(epilog=f"The document: {SHAPE}")
@click.argument("name", metavar="[ID]", required=False)
@click.option(
    "--file", "path", required=True, metavar="FILE", help="The JSON document; - is stdin."
)
@json_option
def submit(*, name: str | None, path: str, as_json: bool) -> None:
    """Hand in a review: one JSON document with the verdict and all findings, at once.

    Only a reviewer's session may, and once. The verdict that counts is computed: any P0 or P1 is a
    FAIL. A document that is not taken changes nothing.
    """
    it = app()
    id = named(it, name)
    task = it.signals.review(id, _text(path), it.caller)
    show(task_facts(task), f"handed in; {task.id} is {task.status}", as_json=as_json)


def _text(path: str) -> str:
    """At most a megabyte. Through the orchestrator's door no file is read but the caller's own."""
    at_door = terminal()
    if at_door and path != "-":
        fix = "lockgate review submit --file - < FILE"
        raise Refused("nothing was handed in", why=f"{path} is not to be seen here", fix=fix)
    try:
        content = _stdin() if path == "-" else _plain(here() / path)
    except OSError as error:
        why = error.strerror or str(error)
        raise Refused(f"{path} was not read", why=why, fix="name a file, or - for stdin") from error
    if len(content) > LARGEST:
        raise Refused("nothing was handed in", why="it is more than 1 MB", fix="say what matters")
    return content.decode("utf-8", "replace")


def _stdin() -> bytes:
    it = terminal()
    if it:
        return it.stdin.encode("utf-8", "replace")
    return b"" if sys.stdin is None else sys.stdin.buffer.read(LARGEST + 1)


def _plain(path: Path) -> bytes:
    """Nobody waits for the other end of a pipe."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        return file.read(LARGEST + 1)
