"""Runs a command for somebody who called at the orchestrator's door."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from io import TextIOBase
from threading import BoundedSemaphore
from typing import TextIO, cast

from msgspec.structs import replace

from lockgate.bootstrap import App
from lockgate.bootstrap.gates import Benches
from lockgate.errors import LockgateError
from lockgate.faces.cli import output
from lockgate.ports import Call

# What agents, hooks and people call often, or what only we can tell.
SERVED = {(it,) for it in ("checkpoint", "gate", "queue", "review", "status", "task")}
# The names of the variables that we have, and no value: agents are given theirs from here.
ENVIRONMENT = ("environment",)
# It takes as long as its gates, and must not keep the door from others. By another PATH than ours
# its commands might be other programs.
JUDGING = ("gate", "run")
JUDGED_AT_ONCE = BoundedSemaphore(4)


class Said(TextIOBase):
    """A stream whose words go down the line as they are written."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def write(self, text: str) -> int:
        self._say(text)
        return len(text)


def answer(it: App, benches: Benches, asked: Call) -> None:
    """Down the line. What is not ours to do, or what we have no time for, they do themselves."""
    if asked.argv == ("wake",):
        asked.line.end(0)
    elif asked.argv == ENVIRONMENT and not asked.token:
        asked.line.out(" ".join(sorted(name for name, value in os.environ.items() if value)))
        asked.line.end(0)
    elif asked.argv[:1] not in SERVED:
        asked.line.err("not served here\n")
        asked.line.end(1)
    elif asked.argv[:2] != JUDGING:
        _run(it, benches, asked)
    elif asked.path == os.environ.get("PATH") and JUDGED_AT_ONCE.acquire(blocking=False):
        try:
            _run(it, benches, asked)
        finally:
            JUDGED_AT_ONCE.release()


def _run(it: App, benches: Benches, asked: Call) -> None:
    with ExitStack() as afterwards:
        to = _terminal(it, benches, asked, afterwards)
        asked.line.end(_ended(it, to, asked))


def _terminal(it: App, benches: Benches, asked: Call, afterwards: ExitStack) -> output.Terminal:
    return output.Terminal(
        app=it,
        directory=asked.directory,
        stdin=asked.stdin,
        out=_stream(asked.line.out),
        err=_stream(asked.line.err),
        benches=benches,
        afterwards=afterwards,
        lively=asked.lively,
        columns=asked.columns,
        gone=asked.line.gone,
    )


def _ended(it: App, to: output.Terminal, asked: Call) -> int:
    """The exit code of the command, which is whoever's its token makes it."""
    from lockgate.faces.cli.app import run

    try:
        to = replace(to, app=it.called_by(asked.token or None))
    except LockgateError as error:
        return output.fail(error, to, as_json="--json" in asked.argv)
    return run(list(asked.argv), to)


def _stream(say: Callable[[str], None]) -> TextIO:
    return cast("TextIO", Said(say))
