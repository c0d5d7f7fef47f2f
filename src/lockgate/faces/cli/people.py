"""What people do with a task besides moving it: read it, answer it, sit down at it."""

import os
import shlex
import shutil
import sys
import tempfile
import time
from pathlib import Path

import click

from lockgate.bootstrap import App
from lockgate.core.model.task import Session, Task, TaskId
from lockgate.errors import Refused, Unavailable
from lockgate.faces import words
from lockgate.faces.cli.output import (
    app,
    echo,
    json_option,
    named,
    show,
    show_moved,
    terminal,
    wake,
)
from lockgate.faces.cli.task_agents import must_be_at_terminal, sit_at
from lockgate.services.task.callers import must_be_human

PATIENCE = 60.0
PAUSE = 0.1
COLOURS = {"+": "green", "-": "red", "@": "cyan"}
ID = click.argument("name", metavar="ID")
OPTIONAL_ID = click.argument("name", metavar="[ID]", required=False)
TEXT = click.option("-m", "--message", required=True, metavar="TEXT", help="Your answer.")
DONE = click.option("-m", "--message", default="", metavar="TEXT", help="What you did.")


@click.command()
@OPTIONAL_ID
@json_option
def diff(*, name: str | None, as_json: bool) -> None:
    """Show what a task would change: as it is judged, or as it lies in its workspace now."""
    it = app()
    id = named(it, name)
    text = it.people.diff(id)
    if as_json:
        task, change = it.people.change(id)
        facts = {"task": task.id, "commit": change.commit, "files": change.files, "diff": text}
        show(facts, "", as_json=True)
    elif terminal() or not sys.stdout.isatty():
        echo(text.rstrip("\n"))  # as it is: somebody may want to apply it
    else:
        os.environ.setdefault("LESS", "FRX")  # as git does
        lines = map(_coloured, words.safe(text).splitlines())
        click.echo_via_pager("\n".join(lines), color=True)


@click.command("open")
@OPTIONAL_ID
def open_change(*, name: str | None) -> None:
    """Open a task's change in your editor ($VISUAL or $EDITOR): a copy of the whole checkout.

    Without an editor, or in a pipe, only the directory is printed. It is yours to remove.
    """
    it = app()
    task, change = it.people.change(named(it, name))
    place = Path(tempfile.mkdtemp(prefix="lockgate-")) / task.id
    it.workspaces.checkout(it.store.project(task.project), task, change.commit, place)
    echo(str(place))
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    if editor and sys.stdout.isatty():
        _edit([*editor, str(place)])


@click.command()
@ID
@TEXT
@json_option
def answer(*, name: str, message: str, as_json: bool) -> None:
    """Answer what a task's agent asked; it goes on with your answer."""
    it = app()
    show_moved(it, it.people.answer(named(it, name), message, it.caller), as_json=as_json)


@click.command()
@ID
@DONE
@json_option
def handback(*, name: str, message: str, as_json: bool) -> None:
    """Give a task back that you took over: your work is judged like any other.

    It takes the workspace as it is, with the ## Handoff of its TASK.md, or with your message as
    one. The session you sat at ends.
    """
    it = app()
    show_moved(it, it.people.hand_back(named(it, name), it.caller, message), as_json=as_json)


@click.command()
@ID
def takeover(*, name: str) -> None:
    """Sit down at a task yourself: its agent's session, interactive, in its workspace.

    The agent that works on it ends first. Leave by Ctrl-b d, come back by lockgate task attach,
    and give it back by lockgate handback.
    """
    it = app()
    id = named(it, name)
    must_be_human(it.caller, f"task {id} was not taken over")
    if shutil.which("tmux") is None:
        why, fix = "it needs tmux, which is not installed", "install it (Debian: apt install tmux)"
        raise Refused(f"task {id} was not taken over", why=why, fix=fix)
    must_be_at_terminal(f"run it in one: lockgate takeover {id}")
    task = it.people.take_over(id, it.caller)
    wake()
    echo(f"{id} is yours; its session starts", err=True)
    sit_at(_command(it, task))


def _command(it: App, task: Task) -> tuple[str, ...]:
    """How to sit down at the session that was asked for, once it runs."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        session = _mine(it, task.id, task.generation)
        command = it.sessions.attach_command(session.id) if session else None
        if command:
            return command
        if session and it.sessions.exit_of(session.id) is not None:
            raise _not_begun(task.id, "it ended at once")
        time.sleep(PAUSE)
    raise _not_begun(task.id, f"it did not start in {PATIENCE:.0f} s")


def _mine(it: App, id: TaskId, generation: int) -> Session | None:
    found = [session for session in it.store.sessions(id) if session.generation == generation]
    return found[-1] if found else None


def _not_begun(id: TaskId, why: str) -> Unavailable:
    fix = f"see logs/orchestrator.log, then: lockgate task attach {id}, or lockgate handback {id}"
    return Unavailable(f"task {id} is yours, but its session is not there", why=why, fix=fix)


def _coloured(line: str) -> str:
    colour = None if line.startswith(("+++", "---")) else COLOURS.get(line[:1])
    if colour is None or os.environ.get("NO_COLOR"):
        return line
    return click.style(line, fg=colour)


def _edit(argv: list[str]) -> None:
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - the user's own editor, no shell
    except OSError as error:
        why, fix = f"{argv[0]}: {error.strerror}", "set VISUAL or EDITOR to an editor that is there"
        raise Refused("no editor was opened", why=why, fix=fix) from error
