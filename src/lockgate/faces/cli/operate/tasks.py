"""The task commands that change something."""

import sys
from errno import EACCES, EBADF
from pathlib import Path

import click

from lockgate.core.lifecycle.moves import Move
from lockgate.core.lifecycle.records import MAX_CONTEXT
from lockgate.core.model.agents import names_a_file
from lockgate.core.model.task import Status
from lockgate.errors import Refused
from lockgate.faces.cli.choices import StatusChoice
from lockgate.faces.cli.output import (
    app,
    here,
    is_far,
    json_option,
    named,
    show,
    show_moved,
    terminal,
)
from lockgate.services.task.plans import WHAT
from lockgate.services.task.tasks import NewTask
from lockgate.services.task.views import task_facts

MOST_BYTES = 4 * MAX_CONTEXT + 4  # of a text that is longer than allowed, in any alphabet
AGENT_HELP = "Which agent works on it: a name, or a file like ./agent.sh; default: the project's."
ID = click.argument("name", metavar="[ID]", required=False)
FILE = click.option(
    "--file",
    metavar="FILE|-",
    help="The description: its first line says what the task is, unless SUMMARY does; - is stdin.",
)


@click.command()
@click.argument("branch", required=False)
@click.argument("summary", required=False)
@FILE
@click.option("--plan", metavar="FILE", help="Create all tasks of a plan (TOML or JSON), or none.")
@click.option("--agent", help=AGENT_HELP)
@click.option("--priority", default=3, show_default=True, help="1 is first, 5 is last.")
@click.option("--depends-on", "depends_on", multiple=True, metavar="ID", help="Wait for this task.")
@click.option("--context", metavar="FILE|-", help="What the agent must know; - reads stdin.")
@click.option("--no-start", is_flag=True, help="Do not start it; start it later with task start.")
@json_option
def create(
    *,
    branch: str | None,
    summary: str | None,
    file: str | None,
    plan: str | None,
    agent: str | None,
    priority: int,
    depends_on: tuple[str, ...],
    context: str | None,
    no_start: bool,
    as_json: bool,
) -> None:
    """Create a task for BRANCH and print its id.

    Without a SUMMARY your editor opens for the whole description, as for a commit message. With
    --plan the file has the tasks: [[tasks]] with name and summary, and depends_on with the names of
    others; branch, agent, priority, context and start as the options here.
    """
    if plan is not None:
        if branch is not None:
            raise click.UsageError("--plan names the branches; leave BRANCH out")
        _create_planned(plan, as_json=as_json)
        return
    if branch is None:
        raise click.UsageError("Missing argument 'BRANCH'.")
    it = app()
    goal, told = described(summary, file, context)
    asked = NewTask(
        branch=branch,
        summary=goal,
        context=told,
        agent=agent_here(agent),
        priority=priority,
        depends_on=depends_on,
        auto_start=not no_start,
    )
    task = it.tasks.create(it.projects.here(here()), asked, it.caller)
    show(task_facts(task), task.id, as_json=as_json)


def _create_planned(source: str, *, as_json: bool) -> None:
    from lockgate.faces.mcp.plan import planned, read_plan

    it = app()
    plan = read_plan(read_context(source, WHAT, "plan"), source)
    tasks = it.plans.create(it.projects.here(here()), planned(plan), it.caller)
    facts = {"tasks": [task_facts(task) for task in tasks]}
    show(facts, "\n".join(task.id for task in tasks), as_json=as_json)


@click.command()
@ID
@click.option("--status", type=StatusChoice(), help="Where the task is to go.")
@click.option("--summary", help="What the task is, in one line; a human's is also its goal.")
@click.option("--force", is_flag=True, help="Skip a missing artifact; never a gate. Humans only.")
@click.option("--reason", default="", help="Why; asked for with --force.")
@click.option("--directive", default="", help="A hint for the next agent.")
@json_option
def update(
    *,
    name: str | None,
    status: Status | None,
    summary: str | None,
    force: bool,
    reason: str,
    directive: str,
    as_json: bool,
) -> None:
    """Move a task to another status, or change its summary. A refused move changes nothing."""
    if status is None and summary is None:
        raise click.UsageError("say what to change: --status STATUS or --summary TEXT")
    if force and not reason.strip():
        raise click.UsageError("--force needs --reason TEXT: the log keeps it")
    it = app()
    id = named(it, name)
    if summary is not None:
        it.tasks.check_rename(id, summary, it.caller)
    if status is not None:
        it.signals.move(id, Move(status, reason, directive, force), it.caller)
    if summary is not None:
        it.tasks.rename(id, summary, it.caller)
    show_moved(it, it.views.load(id), as_json=as_json)


@click.command()
@ID
@json_option
def complete(*, name: str | None, as_json: bool) -> None:
    """Hand the work in: the same as update --status agent-review."""
    _move(name, Move(Status.AGENT_REVIEW), as_json=as_json)


@click.command()
@click.argument("name", metavar="ID")
@click.option("--reason", default="", help="Why.")
@json_option
def cancel(*, name: str, reason: str, as_json: bool) -> None:
    """Cancel a task. Its branch and its history stay."""
    _move(name, Move(Status.CANCELLED, reason), as_json=as_json)


@click.command("drop-dependency")
@click.argument("name", metavar="ID")
@click.argument("needs", metavar="OTHER")
@json_option
def drop_dependency(*, name: str, needs: str, as_json: bool) -> None:
    """Let a task go on without waiting for task OTHER.

    For a task that waits for one which was cancelled, was deleted, or is stuck.
    """
    it = app()
    task = it.tasks.drop_dependency(named(it, name), needs, it.caller)
    left = ", ".join(task.depends_on)
    told = f"{task.id} waits for {left}" if left else f"{task.id} waits for no other task"
    show(task_facts(task), told, as_json=as_json)


@click.command()
@click.argument("name", metavar="ID")
@json_option
def delete(*, name: str, as_json: bool) -> None:
    """Delete an ended task from the board. Its events stay; its files are moved aside."""
    it = app()
    task = it.tasks.delete(named(it, name), it.caller)
    show({"deleted": task.id}, f"{task.id} is deleted", as_json=as_json)


@click.command("import")
@click.argument("path", type=click.Path(path_type=Path))
@json_option
def import_task(*, path: Path, as_json: bool) -> None:
    """Create a task from a TASK.md, or from a directory that has one."""
    it = app()
    task = it.imports.take(it.projects.here(here()), path, it.caller)
    show(task_facts(task), task.id, as_json=as_json)


def _move(name: str | None, asked: Move, *, as_json: bool) -> None:
    it = app()
    id = named(it, name)
    show_moved(it, it.signals.move(id, asked, it.caller), as_json=as_json)


def agent_here(agent: str | None) -> str | None:
    """A name as it is; a file by its whole path, from the directory that the user stands in."""
    if agent is None or is_far() or not names_a_file(agent):
        return agent
    return str(here() / Path(agent).expanduser())


# A long description: from a file, from standard input, or from the user's editor.

NOT_CREATED = "the task was not created"
CUT = "<!-- Nothing below this line is read. -->"
HOW = "The first line says what the task is. Below it: what its agent must know."


def described(summary: str | None, file: str | None, context: str | None) -> tuple[str, str]:
    """The goal and the Context of a task that is to be made."""
    if file is not None and context is not None:
        raise click.UsageError("--file and --context both say what the agent must know; name one")
    if summary is not None:
        return summary, read_context(file if file is not None else context)
    if file is not None:
        return split(read_context(file))
    if not _at_terminal():
        raise click.UsageError("say what the task is: SUMMARY, or --file FILE")
    goal, more = split(written("", HOW, NOT_CREATED))
    return goal, "\n\n".join(it for it in (more, read_context(context)) if it)


def split(text: str) -> tuple[str, str]:
    """The first line with something in it, and what is below it."""
    goal, _, more = text.strip().partition("\n")
    return goal.strip(), more.strip()


def written(text: str, how: str, what: str) -> str:
    """What the user makes of a text in $VISUAL or $EDITOR; Refused where nothing is left."""
    if not _at_terminal():
        why, fix = "there is no terminal to open an editor in", "name a file: --file FILE (or -)"
        raise Refused(what, why=why, fix=fix)
    made = click.edit(f"{text}\n\n{CUT}\n<!-- {how} -->\n", extension=".md", require_save=False)
    found = (made or "").partition(CUT)[0].strip()
    if not found:
        raise Refused(what, why="the text is empty", fix="write it, or name a file: --file FILE")
    return found


def _at_terminal() -> bool:
    return not terminal() and sys.stdin.isatty() and sys.stdout.isatty()


def read_context(source: str | None, what: str = NOT_CREATED, name: str = "context") -> str:
    """The text of a file or of stdin, empty where none is named; `name` says what it is for."""
    if source is None:
        return ""
    try:
        raw = _bytes(source)
        return raw.decode(errors="strict" if len(raw) < MOST_BYTES else "replace")
    except OSError as error:
        raise _unread(what, f"{name} could not be read from {source}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        why = f"{name} could not be read from {source}: byte {error.start} is not UTF-8"
        raise _unread(what, why) from error


def _bytes(source: str) -> bytes:
    """No more than it takes to see that the text is too long."""
    elsewhere = terminal()
    if source == "-" and elsewhere:
        return elsewhere.stdin.encode(errors="surrogateescape")[:MOST_BYTES]
    if is_far():
        raise OSError(EACCES, "it is on another machine than the server")
    if source != "-":
        with Path(source).open("rb") as file:
            return file.read(MOST_BYTES)
    if sys.stdin is None:
        raise OSError(EBADF, "stdin is closed")
    return sys.stdin.buffer.read(MOST_BYTES)


def _unread(what: str, why: str) -> Refused:
    return Refused(what, why=f"the {why}", fix="name a readable text file, or - for stdin")
