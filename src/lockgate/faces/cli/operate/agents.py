"""The task commands about its agents: start one, ask for another, watch it, sit down at it."""

import os
import sys
import time
from collections.abc import Iterator
from typing import NoReturn

import click

from lockgate.bootstrap import App
from lockgate.core.lifecycle.moves import Move
from lockgate.core.model.task import Session, SessionId, Status, TaskId
from lockgate.errors import Refused
from lockgate.faces.cli.output import app, echo, json_option, named, show, show_moved, terminal
from lockgate.faces.words import task as words
from lockgate.faces.words.output import readable
from lockgate.services.task.callers import must_be_human
from lockgate.services.task.views import session_facts

LINES = 40
PAUSE = 0.3
ID = click.argument("name", metavar="ID")
DIRECTIVE = click.option("--directive", default="", help="A hint for the agent.")


@click.command()
@ID
@DIRECTIVE
@json_option
def start(*, name: str, directive: str, as_json: bool) -> None:
    """Start a task now: the same as update --status working."""
    it = app()
    id = named(it, name)
    must_be_human(it.caller, f"task {id} was not started")
    move = Move(Status.WORKING, directive=directive)
    show_moved(it, it.signals.move(id, move, it.caller), as_json=as_json)


@click.command()
@ID
@DIRECTIVE
@json_option
def respawn(*, name: str, directive: str, as_json: bool) -> None:
    """Restart an agent that is not running, in the same workspace."""
    it = app()
    id = named(it, name)
    must_be_human(it.caller, f"no agent was started for task {id}")
    show_moved(it, it.attendance.respawn(id, directive, it.caller), as_json=as_json)


@click.command()
@ID
@json_option
def repin(*, name: str, as_json: bool) -> None:
    """Give a task the configuration that its base branch has now.

    Otherwise a task keeps the one that it started with. Its gates start again from the first; its
    change stays the same.
    """
    it = app()
    show_moved(it, it.repinning.repin(named(it, name), it.caller), as_json=as_json)


@click.command()
@ID
@click.option("--follow", is_flag=True, help="Follow until the session ends.")
@click.option("--lines", default=LINES, show_default=True, type=click.IntRange(1), metavar="N")
@click.option("--session", "which", metavar="S", help="Another one, as lockgate task show has it.")
@json_option
def peek(*, name: str, follow: bool, lines: int, which: str | None, as_json: bool) -> None:
    """Show the newest output of a task's agent: what it said, which tools it used.

    With --session any session of the task, by its id or by what follows the task's id in it. What
    a session printed otherwise is shown as it is.
    """
    if follow and as_json:
        raise click.UsageError("--follow tells lines as they come; --json is one document")
    it = app()
    session = _session(it, named(it, name), which)
    if follow:
        _follow(it, session, lines)
        return
    newest = "\n".join(list(readable(it.agents.output(session)))[-lines:])
    facts = {**session_facts(session), "alive": not it.agents.is_over(session), "output": newest}
    show(facts, newest or _silent(session), as_json=as_json)


@click.command()
@ID
def attach(*, name: str) -> None:
    """Join an interactive session; follow the output of any other.

    Ctrl-q leaves an interactive session without ending it.
    """
    it = app()
    id = named(it, name)
    session = _session(it, id)
    if it.agents.is_over(session):
        why, fix = f"session {session.id} has ended", f"lockgate task respawn {id}"
        raise Refused("nothing was attached", why=why, fix=fix)
    command = it.agents.attach_command(session.id)
    if command:
        sit_at(command)
    told = f"{session.id} is not interactive; this is its output. To work in it yourself: "
    echo(f"{told}lockgate takeover {id}", err=True)
    _follow(it, session, LINES)


def sit_at(command: tuple[str, ...]) -> NoReturn:
    """Give this terminal to that program."""
    must_be_at_terminal(f"run it in one: {' '.join(command)}")
    os.execvp(command[0], command)  # noqa: S606 - an argument list of ours, no shell


def must_be_at_terminal(fix: str) -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Refused("nothing was attached", why="there is no terminal here", fix=fix)


def _session(it: App, id: TaskId, which: str | None = None) -> Session:
    """The newest one, or the one that is named. No agent reads what another one said."""
    what = f"nothing of task {id} was shown"
    must_be_human(it.caller, what)
    found = {session.id: session for session in it.agents.of(id)}
    if not found:
        why, fix = "no agent has worked on it yet", f"lockgate task show {id}"
        raise Refused(what, why=why, fix=fix)
    if which is None:
        return list(found.values())[-1]
    asked = found.get(SessionId(which)) or found.get(SessionId(f"{id}.{which}"))
    if asked is None:
        why, known = f"it has no session {which}", ", ".join(found)
        raise Refused(what, why=why, fix=f"name one of its sessions: {known}")
    return asked


def _silent(session: Session) -> str:
    if session.interactive:
        return f"{session.id} is interactive; see it: lockgate task attach {session.task}"
    return f"{session.id} has said nothing yet"


def _follow(it: App, session: Session, lines: int) -> None:
    if terminal():
        why, fix = "it would never end", "leave --follow out"
        raise Refused("nothing was followed", why=why, fix=fix)
    shown: list[str] = []
    for new in _growing(it, session):
        told = list(readable(new))
        echo_lines(told if shown else told[-lines:])
        shown += told
    echo(f"{session.id} has ended", err=True)


def _growing(it: App, session: Session) -> Iterator[list[str]]:
    """The lines that have come since; what it writes to stderr lies below its stdout."""
    before: list[str] = []
    while True:
        over = it.agents.is_over(session)
        now = it.agents.output(session)
        yield _added(before, now)
        if over:
            return
        before = now
        time.sleep(PAUSE)


def _added(before: list[str], now: list[str]) -> list[str]:
    if before == now:
        return []
    least = min(len(before), len(now))
    head = next((n for n in range(least) if before[n] != now[n]), least)
    most = least - head
    tail = next((n for n in range(most) if before[-1 - n] != now[-1 - n]), most)
    return now[head : len(now) - tail]


def echo_lines(lines: list[str]) -> None:
    for line in lines:
        echo(words.safe(line))
