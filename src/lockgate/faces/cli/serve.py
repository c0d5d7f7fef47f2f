"""Runs a command for somebody who called at the orchestrator's door."""

import os
from collections.abc import Callable
from io import TextIOBase
from pathlib import Path
from threading import BoundedSemaphore
from typing import TextIO, cast

import click
from msgspec.structs import replace

from lockgate.bootstrap import App
from lockgate.bootstrap.assistants import ServingChild, serve_mcp
from lockgate.bootstrap.gates import Benches
from lockgate.bootstrap.team import asked_from_afar, root_of_clone
from lockgate.core.model.task import ProjectId, SessionId
from lockgate.errors import LockgateError, Refused
from lockgate.faces.cli import output
from lockgate.faces.laptop.commands import is_far
from lockgate.faces.words import task as words
from lockgate.ports import Call, Line
from lockgate.services.orchestrator.feed import Wanted
from lockgate.services.task.callers import must_be_human

# What agents, hooks and people call often, or what only we can tell.
SERVED = {
    *((it,) for it in ("checkpoint", "gate", "inbox", "queue", "review", "status", "task")),
    ("forge", "sync"),
}
# The names of the variables that we have, and no value: agents are given theirs from here.
ENVIRONMENT = ("environment",)
# Lines of JSON from here on, for as long as they like to listen.
FEED = ("feed",)
VALUED, FLAGS = ("--since", "--project", "--task", "--output"), ("--every", "--needs")
USAGE = "feed [--since SEQ] [--project DIR] [--task ID] [--output SESSION]… [--every] [--needs]"
LAST, DIGITS = 2**63 - 1, 19
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


MCP = ("mcp",)


def answer(it: App, benches: Benches, mcp: ServingChild, asked: Call) -> None:
    """Down the line. What is not ours to do, or what we have no time for, they do themselves."""
    if asked.argv == ("wake",):
        asked.line.end(0)
    elif asked.argv == ENVIRONMENT and not asked.token:
        asked.line.out(" ".join(sorted(name for name, value in os.environ.items() if value)))
        asked.line.end(0)
    elif asked.argv[:1] == FEED:
        _let_follow(it, asked)
    elif asked.argv == MCP:
        serve_mcp(mcp, asked)
    elif not SERVED & {asked.argv[:1], asked.argv[:2]}:
        asked.line.err("not served here\n")
        asked.line.end(1)
    elif asked.argv[:2] != JUDGING:
        _run(it, benches, asked)
    elif asked.path == os.environ.get("PATH") and JUDGED_AT_ONCE.acquire(blocking=False):
        try:
            _run(it, benches, asked)
        finally:
            JUDGED_AT_ONCE.release()


def _let_follow(it: App, asked: Call) -> None:
    """A session gets no feed: it sees its own task only."""
    try:
        must_be_human(it.called_by(asked.token or None).caller, "no feed was opened")
        if it.feed is not None:
            it.feed.follow(_wanted(it, asked.argv[1:], asked.directory), asked.line)
    except LockgateError as error:
        asked.line.err(f"{words.error_text(error.what, error.why, error.fix)}\n")
        asked.line.end(error.exits_with)


def _wanted(it: App, argv: tuple[str, ...], directory: Path) -> Wanted:
    """As `USAGE` says; a directory is one as the caller names it."""
    said = _said(argv)
    since, tasks = _one(said, "--since"), _one(said, "--task")
    if since and not (since.isdecimal() and len(since) <= DIGITS and int(since) <= LAST):
        raise _unknown(f"{since!r} is not the number of an event")
    return Wanted(
        since=int(since) if since else None,
        project=_project(it, _one(said, "--project"), directory),
        task=it.projects.task_named(tasks, it.caller) if tasks else None,
        outputs=tuple(SessionId(value) for name, value in said if name == "--output"),
        every=("--every", "") in said,
        needs=("--needs", "") in said,
    )


def _said(argv: tuple[str, ...]) -> list[tuple[str, str]]:
    said, rest = list[tuple[str, str]](), list(argv)
    while rest:
        name = rest.pop(0)
        if name in FLAGS:
            said.append((name, ""))
        elif name in VALUED and rest:
            said.append((name, rest.pop(0)))
        else:
            raise _unknown(f"{name!r} is not known here")
    return said


def _one(said: list[tuple[str, str]], wanted: str) -> str:
    return next((value for name, value in reversed(said) if name == wanted), "")


def _project(it: App, named: str, directory: Path) -> ProjectId | None:
    if not named:
        return None
    if "/" in named or named == ".":
        return it.projects.here(directory / named).id
    return it.projects.with_id(ProjectId(named)).id


def _unknown(why: str) -> Refused:
    return Refused("no feed was opened", why=why, fix=USAGE)


def _run(it: App, benches: Benches, asked: Call) -> None:
    to = terminal_of(it, benches, asked)
    with to.afterwards:
        asked.line.end(_ended(it, to, asked))


def terminal_of(it: App, benches: Benches | None, asked: Call) -> output.Terminal:
    """Where the words of a command go that somebody called for."""
    return output.Terminal(
        app=it,
        directory=asked.directory,
        stdin=asked.stdin,
        out=_stream(asked.line.out),
        err=_stream(asked.line.err),
        benches=benches,
        lively=asked.lively,
        columns=asked.columns,
        gone=asked.line.gone,
    )


def _ended(it: App, to: output.Terminal, asked: Call) -> int:
    """The exit code of the command, run in the role that its token gives."""
    from lockgate.faces.cli.app import run

    try:
        to = replace(to, app=it.called_by(asked.token or None, asked.uid))
    except LockgateError as error:
        return output.fail(error, to, as_json="--json" in asked.argv)
    return run(list(asked.argv), to)


def _stream(say: Callable[[str], None]) -> TextIO:
    return cast("TextIO", Said(say))


# The same for people on other machines, whose web server has asked who they are.


def carry_out(app: App, raw: bytes, line: Line) -> bool:
    """Whether the orchestrator has something to do now. `app` is the person's."""
    from lockgate.faces.cli.app import ACTING, run

    found = asked_from_afar(raw, line)
    if found is None:
        line.err("nothing was done: the request was not understood\n  install the same version\n")
        line.end(1)
        return False
    asked, clone = found
    to = terminal_of(app, None, asked)
    with to.afterwards:
        if not is_far(list(asked.argv)) and not _is_mistyped(asked.argv):
            line.end(output.fail(_not_from_afar(asked.argv), to, as_json="--json" in asked.argv))
            return False
        code = run(list(asked.argv), replace(to, where=root_of_clone(app, clone)))
        words = [it for it in asked.argv if it != "--json"]
        line.end(code)
    return code == 0 and not ACTING.isdisjoint({words[0], " ".join(words[:2])})


def _is_mistyped(argv: tuple[str, ...]) -> bool:
    """Whether no command is called so: `run` then says which may be meant, and does nothing."""
    from lockgate.faces.cli.app import root

    words = [it for it in argv if it != "--json"][:2]
    if not words or any(it.startswith("-") for it in words):
        return False
    ctx = click.Context(root)
    found = root.get_command(ctx, words[0])
    below = found.get_command(ctx, words[-1]) if isinstance(found, click.Group) else found
    return found is None or (len(words) > 1 and below is None)


def _not_from_afar(argv: tuple[str, ...]) -> Refused:
    words = " ".join(argv[:2])
    why = f"{words!r} is not done for people on other machines"
    return Refused("nothing was done", why=why, fix="run it on the server's machine, by ssh")
