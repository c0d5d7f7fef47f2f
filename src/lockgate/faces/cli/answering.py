"""Runs a command for somebody who called at the orchestrator's door."""

from collections.abc import Callable
from dataclasses import replace
from io import TextIOBase
from threading import BoundedSemaphore
from typing import TextIO, cast

from lockgate.bootstrap import App
from lockgate.errors import LockgateError
from lockgate.faces.cli import output
from lockgate.ports import Call
from lockgate.services.callers import identify

# What agents, hooks and people call often, or what only we can tell.
SERVED = {"checkpoint", "gate", "queue", "review", "status", "task"}
JUDGING = ("gate", "run")  # takes as long as its gates, and must not keep the door from others
JUDGED_AT_ONCE = BoundedSemaphore(4)


class Said(TextIOBase):
    """A stream whose words go down the line as they are written."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def write(self, text: str) -> int:
        self._say(text)
        return len(text)


def answer(it: App, asked: Call) -> int | None:
    """The command's exit code, as whoever its token makes of them; None where we have no time."""
    if asked.argv[:1] == ("wake",):
        return 0
    if not asked.argv or asked.argv[0] not in SERVED:
        asked.line.err("not served here\n")
        return 1
    if asked.argv[:2] != JUDGING:
        return _ran(it, asked)
    if not JUDGED_AT_ONCE.acquire(blocking=False):
        return None
    try:
        return _ran(it, asked)
    finally:
        JUDGED_AT_ONCE.release()


def _ran(it: App, asked: Call) -> int:
    from lockgate.faces.cli.app import run

    to = output.Terminal(
        app=it,
        directory=asked.directory,
        stdin=asked.stdin,
        out=_stream(asked.line.out),
        err=_stream(asked.line.err),
        lively=asked.lively,
        gone=asked.line.gone,
    )
    try:
        to = replace(to, app=replace(it, caller=identify(it.store, asked.token or None)))
    except LockgateError as error:
        return output.fail(error, to, as_json="--json" in asked.argv)
    return run(list(asked.argv), to)


def _stream(say: Callable[[str], None]) -> TextIO:
    return cast("TextIO", Said(say))
