"""`lockgate review`: what a reviewer hands in."""

import sys

import click

from lockgate.errors import Refused
from lockgate.faces.cli.output import app, json_option, named, show, terminal
from lockgate.services.task.views import task_facts

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
    """At most a megabyte. A file is read by the client in the session, which sends it as `-`."""
    if path != "-":
        why = "only - is taken as its file here: what it names may be another's"
        fix = "lockgate review submit --file - < FILE"
        raise Refused("nothing was handed in", why=why, fix=fix)
    content = _stdin()
    if len(content) > LARGEST:
        raise Refused("nothing was handed in", why="it is more than 1 MB", fix="say what matters")
    return content.decode("utf-8", "replace")


def _stdin() -> bytes:
    it = terminal()
    if it:
        return it.stdin.encode("utf-8", "replace")
    return b"" if sys.stdin is None else sys.stdin.buffer.read(LARGEST + 1)
