"""The task commands that only look."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from lockgate.bootstrap import App
from lockgate.core.lifecycle.advice import needs_human
from lockgate.core.model.facts import event_line
from lockgate.core.model.task import Actor, ProjectId, Role, Status, Task, TaskId
from lockgate.core.text.task_file import shown_to
from lockgate.faces.cli.choices import StatusChoice
from lockgate.faces.cli.output import app, columns, here, json_option, named, show
from lockgate.faces.words import task as words
from lockgate.services.task.views import (
    LIVE,
    PAGE,
    Glance,
    Views,
    gate_facts,
    pending_facts,
    session_facts,
    task_facts,
    why_facts,
)

if TYPE_CHECKING:  # a task is shown without loading the train
    from lockgate.services.train.control import Forecast


@click.command("list")
@click.option("--all", "everywhere", is_flag=True, help="The tasks of every project.")
@click.option("--ended", is_flag=True, help="Also those that have landed or were cancelled.")
@click.option("--status", "statuses", multiple=True, type=StatusChoice(), help="Only these.")
@click.option("--after", metavar="ID", help="The page after this task.")
@click.option("--limit", default=PAGE, type=click.IntRange(1, 1000), help="Tasks a page.")
@json_option
def list_tasks(
    *,
    everywhere: bool = False,
    ended: bool = False,
    statuses: tuple[Status, ...] = (),
    after: str | None = None,
    limit: int = PAGE,
    as_json: bool = False,
) -> None:
    """Show the board: what needs you first, then what goes on.

    With --json one page of all tasks is listed, newest first. A session sees its own task.
    """
    it = app()
    start = None if after is None else named(it, after)
    if it.caller.session:
        seen = Glance(needs=(), rows=it.views.board_of(it.caller.session.task).rows)
    elif as_json:
        found = it.views.board(_project(it, everywhere), statuses, start, limit)
        seen = Glance(needs=(), rows=found.rows, after=found.after)
    else:
        which = frozenset(statuses or (Status if ended else LIVE))
        lands = landing_by_itself(it)
        seen = it.views.glance(_project(it, everywhere), which, start, limit, lands)
    tasks = [row.task for row in (*seen.needs, *seen.rows)]
    conflicts, lines = _clashes(it, [task for task in tasks if task.candidate])
    own = bool(it.caller.session)
    untrusted = () if own else it.views.untrusted(task.project for task in tasks)
    facts = {
        "tasks": [{**task_facts(row.task), "trouble": row.trouble} for row in seen.rows],
        "after": seen.after,
        "conflicts": conflicts,
        "untrusted": [{"project": it.root, "why": why} for it, why in untrusted],
    }
    if as_json:
        show(facts, "", as_json=True)
        return
    from lockgate.faces.words.board import glance_text

    text = glance_text(seen, time.time(), columns())
    show(facts, "\n".join((text, *lines, *words.untrusted_lines(untrusted))), as_json=False)


def landing_by_itself(it: App) -> Callable[[Task], bool]:
    """Loaded where a change waits to land: a board without one needs no configuration."""

    def lands(task: Task) -> bool:
        from lockgate.faces.cli.look.follow import lands_by_itself

        return lands_by_itself(it, task)

    return lands


def _project(it: App, everywhere: bool) -> ProjectId | None:  # noqa: FBT001 - an option, passed on
    return None if everywhere else it.projects.here(here()).id


def _clashes(it: App, tasks: Sequence[Task]) -> tuple[list[Mapping[str, object]], list[str]]:
    """Which of these changes would not merge with each other; git is asked only of several."""
    if len(tasks) < 2:  # noqa: PLR2004 - it takes two
        return [], []
    from lockgate.faces.words import queue

    clashes = it.queue.clashes(tasks)
    return queue.clash_facts(clashes), queue.clash_lines(clashes)


@click.command("show")
@click.argument("name", metavar="[ID]", required=False)
@json_option
def show_task(*, name: str | None, as_json: bool) -> None:
    """Show all about a task: its state, gates, change, sessions and cost."""
    it = app()
    view = it.views.task(named(it, name))
    if it.caller.actor is Actor.REVIEWER:
        _show_little(view.task, as_json=as_json)
        return
    from lockgate.faces.words import queue

    where = it.views.place(view.task.id)
    forecast = _forecast(it, view.task)
    facts = {
        **task_facts(view.task),
        "trouble": view.trouble,
        "file": where,
        "sessions": [session_facts(session) for session in view.sessions],
        "pending": [pending_facts(pending) for pending in view.pending],
        "gates": [gate_facts(gate) for gate in view.gates],
        **queue.queue_facts_of(view.task, forecast),
    }
    told = queue.queue_lines_of(view.task, forecast)
    show(facts, words.task_text(view, where, told), as_json=as_json)


def _forecast(it: App, task: Task) -> "tuple[Forecast, ...]":
    """An agent has nothing to do with the changes of others."""
    if not task.candidate or it.caller.actor is not Actor.HUMAN:
        return ()
    return it.queue.forecast(task)


def _show_little(task: Task, *, as_json: bool) -> None:
    """A reviewer gets neither its author's story nor what other reviewers found."""
    asked = ("id", "summary", "branch", "status", "review_round")
    facts = {key: task_facts(shown_to(task, Role.REVIEWER))[key] for key in asked}
    text = "\n".join(f"{key}: {words.one_line(str(value))}" for key, value in facts.items())
    show(facts, text, as_json=as_json)


@click.command()
@click.argument("name", metavar="[ID]", required=False)
@json_option
def log(*, name: str | None, as_json: bool) -> None:
    """Show what happened to a task, oldest first."""
    it = app()
    events = it.views.all_events(named(it, name))
    if as_json:
        show([words.event_facts(event) for event in events], "", as_json=True)
    else:
        show(None, "\n".join(words.event_text(event) for event in events), as_json=False)


@click.command()
@click.argument("name", metavar="[ID]", required=False)
@json_option
def why(*, name: str | None, as_json: bool) -> None:
    """Explain why a task is where it is, and which command moves it on."""
    it = app()
    troubles = it.troubles if it.caller.actor is Actor.HUMAN else {}
    seen = it.views.why(named(it, name), troubles)
    facts = {
        "task": seen.task.id,
        "status": seen.task.status,
        "needs_human": needs_human(seen.task) or None,
        "next": {"why": seen.advice.why, "command": seen.advice.command or None},
        "arrows": [why_facts(row) for row in seen.moves],
    }
    show(facts, words.why_text(seen), as_json=as_json)


# `lockgate events`: the log of everything that happened.


BATCH = 500
PAUSE = 0.25
LAST = 2**63 - 1


@click.command()
@click.argument("name", metavar="[ID]", required=False)
@click.option(
    "--since",
    default=0,
    type=click.IntRange(0, LAST),
    metavar="SEQ",
    help="Only events after this number.",
)
@click.option("--follow", is_flag=True, help="Follow new events until Ctrl-C.")
@json_option
def events(*, name: str | None, since: int, follow: bool, as_json: bool) -> None:
    """Show everything that happened, oldest first.

    With --json each event is one JSON object in a line. A session sees the events of its task.
    """
    it = app()
    id = named(it, name) if name is not None or it.caller.session else None
    while True:
        seen = _print(it.views, id, since, as_json=as_json)
        if seen == since:
            if not follow:
                return
            time.sleep(PAUSE)
        since = seen


def _print(views: Views, id: TaskId | None, since: int, *, as_json: bool) -> int:
    """Print one batch; the seq of its last event. What is hashed is the line as a pipe gets it."""
    for event in views.events(id, since, BATCH):
        line = event_line(event) if as_json else words.event_text(event)
        click.echo(words.escaped(line) if sys.stdout.isatty() else line)
        since = event.seq
    return since
