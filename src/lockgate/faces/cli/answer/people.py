"""How people answer: approve, reject, comment, take over, hand back, resume."""

import os
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import click

from lockgate.bootstrap import App
from lockgate.core.lifecycle.transition import session_id
from lockgate.core.model.findings import Finding, Location, Priority
from lockgate.core.model.people import Right
from lockgate.core.model.task import Task, TaskId
from lockgate.errors import Refused, Unavailable
from lockgate.faces.cli.operate.agents import must_be_at_terminal, sit_at
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
from lockgate.faces.words import task as words
from lockgate.services.task.callers import must_be_human
from lockgate.services.task.views import files_in_order, task_facts

PATIENCE = 60.0
PAUSE = 0.1
COLOURS = {"+": "green", "-": "red", "@": "cyan"}
ID = click.argument("name", metavar="ID")
OPTIONAL_ID = click.argument("name", metavar="[ID]", required=False)
DONE = click.option("-m", "--message", default="", metavar="TEXT", help="What you did.")


@click.command()
@OPTIONAL_ID
@json_option
def diff(*, name: str | None, as_json: bool) -> None:
    """Show the change of a task.

    It is the commit that the gates check or, while an agent works, the workspace as it is now.
    """
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
    """Open the change of a task in your editor.

    It is a copy of the whole checkout, opened with $VISUAL or $EDITOR. Without one, or in a pipe,
    only the directory is printed. Remove it when you are done.
    """
    it = app()
    task, change = it.people.change(named(it, name))
    place = Path(tempfile.mkdtemp(prefix="lockgate-")) / task.id
    it.people.check_out(task, change, place)
    echo(str(place))
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    if editor and sys.stdout.isatty():
        _edit([*editor, str(place)])


@click.command()
@ID
@click.option("-m", "--message", metavar="TEXT", help="Your answer; without it, see the question.")
@json_option
def answer(*, name: str, message: str | None, as_json: bool) -> None:
    """Answer the question of a task's agent.

    The agent continues with your answer. Without -m the question is shown.
    """
    it = app()
    id = named(it, name)
    if message is None:
        must_be_human(it.caller, f"no question of task {id} was shown", Right.LOOK)
        task = it.views.load(id)
        show(words.question_facts(task), words.question_text(task), as_json=as_json)
        return
    show_moved(it, it.people.answer(id, message, it.caller), words.state_text, as_json=as_json)


@click.command()
@ID
@DONE
@json_option
def handback(*, name: str, message: str, as_json: bool) -> None:
    """Give a task back that you took over; its gates check your work.

    The workspace is taken as it is, with your message (or the ## Handoff of its TASK.md) as the
    summary of the work. Your session ends.
    """
    it = app()
    task = it.people.hand_back(named(it, name), it.caller, message)
    show(task_facts(task), words.handed_back_text(task), as_json=as_json)


@click.command()
@ID
def takeover(*, name: str) -> None:
    """Work in a task's agent session yourself.

    The agent that works on it stops first. Ctrl-q leaves the session, lockgate task attach comes
    back to it, and lockgate handback gives the task back.
    """
    it = app()
    id = named(it, name)
    must_be_human(it.caller, f"task {id} was not taken over")
    if shutil.which("tmux") is None:
        why, fix = (
            "takeover needs tmux, which is not installed",
            "install it (Debian: apt install tmux)",
        )
        raise Refused(f"task {id} was not taken over", why=why, fix=fix)
    must_be_at_terminal(f"run it in one: lockgate takeover {id}")
    task = it.people.take_over(id, it.caller)
    wake()
    echo(words.yours_text(task), err=True)
    sit_at(_command(it, task))


@click.command()
@ID
@click.option("--read-only", is_flag=True, help="Look only; also while its agent works.")
@click.argument("command", nargs=-1, metavar="[-- COMMAND [ARGS]...]")
def shell(*, name: str, read_only: bool, command: tuple[str, ...]) -> None:
    """Open a shell in a task's workspace, in its agent's sandbox.

    What you change there belongs to the task, which is yours from then on: no agent is started for
    it until lockgate handback. While an agent works in it you can only look, by --read-only, or
    take the task over. After -- a command runs in place of a shell, also without a terminal. The
    exit code is the one of the shell or the command.
    """
    it = app()
    id = named(it, name)
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if terminal() or not (command or at_terminal):
        what = f"no shell was opened in the workspace of task {id}"
        fix = f"name a command: lockgate shell {id} -- git status"
        raise Refused(what, why="there is no terminal here", fix=fix)
    task, becomes = it.shells.open(
        id, it.caller, command, read_only=read_only, terminal=at_terminal
    )
    if not command:
        echo(words.shell_text(task, read_only=read_only), err=True)
    os.chdir(becomes.directory)
    _become(becomes.argv, becomes.env)


def _become(argv: tuple[str, ...], env: Mapping[str, str]) -> NoReturn:
    """Give this terminal to that program, with these variables alone."""
    try:
        os.execvpe(argv[0], argv, env)  # noqa: S606 - an argument list, no shell
    except OSError as error:
        why = f"{argv[0]}: {error.strerror}"
        raise Refused("nothing was run", why=why, fix="name a program that is there") from error


def _command(it: App, task: Task) -> tuple[str, ...]:
    """How to sit down at the session that was asked for, once it runs; its files are watched."""
    session, until = session_id(task.id, task.generation), time.monotonic() + PATIENCE
    while time.monotonic() < until:
        command = it.agents.attach_command(session)
        if command:
            return command
        if it.agents.has_ended(session):
            raise _not_begun(task.id, "it ended at once")
        time.sleep(PAUSE)
    raise _not_begun(task.id, f"it did not start in {PATIENCE:.0f} s")


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
        why, fix = (
            f"{argv[0]}: {error.strerror}",
            "set VISUAL or EDITOR to an editor that is installed",
        )
        raise Refused("no editor was opened", why=why, fix=fix) from error


# What people answer a gate that waits for one: yes, no with what is wrong, a word in between.


Files = tuple[str, ...]
# The first `:NUMBER=` ends the name of the file.
_PLACED = re.compile(r"(?P<file>.+?):(?P<line>[1-9][0-9]{0,8})=(?P<text>.+)", re.DOTALL)


class PlacedFinding(click.ParamType[Finding]):
    """What is wrong at one place, as FILE:LINE=TEXT."""

    name = "finding"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Finding:
        found = _PLACED.fullmatch(str(value))
        if found is None or not found["text"].strip():
            told = f"{value!r} is not FILE:LINE=TEXT, for example app.py:12='This loops.'"
            return self.fail(told, param, ctx)
        where = Location(found["file"], int(found["line"]))
        return Finding(Priority.P1_MAJOR, found["text"].strip(), where)


PATCH = click.option(
    "--patch",
    default="",
    metavar="P",
    help="Refuse if the change is not this one (`change` in `task show`).",
)


@click.command()
@ID
@click.option("-m", "--message", default="", metavar="TEXT", help="Your comment.")
@PATCH
@json_option
def approve(*, name: str, message: str, patch: str, as_json: bool) -> None:
    """Say yes to what waits for you: a gate of the task, or its landing.

    One yes answers one question. Where another one comes next (a second gate, then the landing),
    the last lines say so. A yes counts for the change that is there now, and for no other: read it
    first with lockgate diff.
    """
    it = app()
    shown, files = _shown(it, named(it, name))
    task = it.queue.say_yes(shown.id, message, patch or shown.patch, it.caller)
    _tell(shown, task, files, as_json=as_json)


@click.command()
@ID
@click.argument("places", nargs=-1, metavar="[FILE:LINE=TEXT]...", type=PlacedFinding())
@click.option("-m", "--message", required=True, metavar="TEXT", help="What is wrong with it.")
@PATCH
@json_option
def reject(
    *, name: str, places: tuple[Finding, ...], message: str, patch: str, as_json: bool
) -> None:
    """Say no to a change; its agent gets your reason and works on.

    It answers a gate that waits for you, and takes back a change that waits to land. FILE:LINE=TEXT
    puts a comment at a line.
    """
    it = app()
    shown, files = _shown(it, named(it, name))
    task = it.approvals.reject(shown.id, message, places, patch or shown.patch, it.caller)
    _tell(shown, task, files, as_json=as_json)


@click.command()
@ID
@click.option("-m", "--message", required=True, metavar="TEXT", help="Your comment.")
@json_option
def comment(*, name: str, message: str, as_json: bool) -> None:
    """Comment on a change that waits for you, and leave it waiting."""
    it = app()
    shown, files = _shown(it, named(it, name))
    _tell(shown, it.approvals.comment(shown.id, message, it.caller), files, as_json=as_json)


def _shown(it: App, id: TaskId) -> tuple[Task, Files]:
    """The task as it is, and the files of the change that is judged."""
    task = it.views.load(id)
    if not task.candidate:
        return task, ()
    return task, files_in_order(task, it.people.judged_files(task))


def _tell(shown: Task, task: Task, files: Files, *, as_json: bool) -> None:
    text = "\n".join((words.change_text(shown, files), *words.next_lines(task)))
    show({**task_facts(task), "files": files}, text, as_json=as_json)


# `lockgate resume`: take a paused task up again.


@click.command()
@click.argument("name", metavar="ID")
@click.option("--directive", default="", help="A hint for the next agent.")
@json_option
def resume(*, name: str, directive: str, as_json: bool) -> None:
    """Let a paused task continue, with its failed attempts reset."""
    it = app()
    task = it.runner.resume(named(it, name), directive, it.caller)
    show_moved(it, task, words.state_text, as_json=as_json)
