"""The task commands that only look."""

import time
from collections.abc import Mapping, Sequence

import click

from lockgate.bootstrap import App
from lockgate.core.model.task import Actor, Role, Status, Task
from lockgate.core.text.task_file import shown_to
from lockgate.faces.cli.choices import StatusChoice
from lockgate.faces.cli.output import app, columns, here, json_option, named, show
from lockgate.faces.words import task as words
from lockgate.services.task.boards import PAGE, BoardFilter
from lockgate.services.task.rows import LIVE
from lockgate.services.task.views import task_facts, why_facts


@click.command("list")
@click.option("--all", "everywhere", is_flag=True, help="The tasks of every project.")
@click.option("--ended", is_flag=True, help="Also those that have landed or were cancelled.")
@click.option("--status", "statuses", multiple=True, type=StatusChoice(), help="Only these.")
@click.option("--agent", default="", metavar="NAME", help="Only those of this agent.")
@click.option("--search", default="", metavar="TEXT", help="Only with this text in a name.")
@click.option("--needs", is_flag=True, help="Only those that need you.")
@click.option("--after", metavar="PLACE", help="The next page: what the page before named.")
@click.option("--limit", default=PAGE, type=click.IntRange(1, 1000), help="Tasks a page.")
@json_option
def list_tasks(
    *,
    everywhere: bool = False,
    ended: bool = False,
    statuses: tuple[Status, ...] = (),
    agent: str = "",
    search: str = "",
    needs: bool = False,
    after: str | None = None,
    limit: int = PAGE,
    as_json: bool = False,
) -> None:
    """Show the board: what needs you first, then what goes on.

    --search looks in ids, branches and summaries. With --json the ended tasks are listed too, last.
    A session sees its own task.
    """
    it = app()
    if it.caller.session:
        seen = it.boards.board_of(it.caller.session.task)
    else:
        which = BoardFilter(
            projects=frozenset() if everywhere else frozenset({it.projects.here(here()).id}),
            statuses=frozenset(statuses or (() if ended or as_json else LIVE)),
            agent=agent,
            text=search,
            needs=needs,
        )
        seen = it.boards.board(which, after, limit)
    tasks = [row.task for row in seen.rows]
    conflicts, lines = _clashes(it, [task for task in tasks if task.candidate])
    if as_json:
        show({**seen.facts(), "conflicts": conflicts}, "", as_json=True)
        return
    from lockgate.faces.words.board import board_text

    text = board_text(seen, time.time(), columns(), live=not (ended or statuses))
    show(None, "\n".join((text, *lines)), as_json=False)


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
    id = named(it, name)
    if it.caller.actor is Actor.REVIEWER:
        _show_little(it.views.load(id), as_json=as_json)
        return
    from lockgate.faces.words import queue

    seen = it.boards.page(id)
    lines = queue.queue_lines_of(seen)
    if seen.pull:
        from lockgate.faces.words import forge

        lines += forge.pull_lines(seen.pull)
    show(seen.facts(), words.task_text(seen, lines), as_json=as_json)


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
        "need": seen.need.facts() if seen.need else None,
        "next": {"why": seen.advice.why, "command": seen.advice.command or None},
        "arrows": [why_facts(row) for row in seen.moves],
    }
    text = words.why_text(seen)
    if pull := it.pull_of(seen.task.id):
        from lockgate.faces.words import forge

        facts |= {"pull_request": it.pull_requests.facts(seen.task.id)}
        text = f"{text}\n{forge.pull_text(pull)}"
    show(facts, text, as_json=as_json)
