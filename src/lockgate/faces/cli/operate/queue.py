"""`lockgate queue` and `verify`: what waits to land, what landed, a human's word on it."""

import sys

import click

from lockgate.bootstrap import App, orchestrator_pid
from lockgate.core.model.people import Right
from lockgate.core.model.task import Task, TaskId
from lockgate.errors import Refused, RevertConflicts, TargetIsRed
from lockgate.faces.cli.output import app, echo, here, json_option, named, show, terminal
from lockgate.faces.words import queue
from lockgate.services.task.callers import must_be_human
from lockgate.services.task.views import task_facts


@click.command("list")
@json_option
def list_queue(*, as_json: bool) -> None:
    """Show the merge queue of this project, in the order of landing."""
    it = app()
    must_be_human(it.caller, "the queue was not shown", Right.LOOK)
    project = it.projects.here(here())
    seen = it.queue.listed(project, acting=orchestrator_pid(it.home) is not None)
    holds = _told(it, project.name) or seen.holds
    facts = queue.queue_facts(seen, holds)
    show(facts, queue.queue_text(seen, holds), as_json=as_json)


@click.command()
@click.argument("commit")
@json_option
def verify(*, commit: str, as_json: bool) -> None:
    """Show which gates checked a commit that landed.

    The evidence is the commit's note in refs/notes/lockgate; the output also says whether the log
    on this machine has the landing. Exits 1 if the commit did not come through the merge queue, or
    if its evidence is of another commit.
    """
    it = app()
    must_be_human(it.caller, "nothing was verified", Right.LOOK)
    found = it.queue.verify(it.projects.here(here()), commit)
    if found is None:
        raise Refused(
            "nothing was verified",
            why=f"this repository has no commit {commit!r}",
            fix="name one of this repository: git log --oneline",
        )
    if found.problem:
        raise Refused(
            f"commit {found.commit[:12]} is not verified",
            why=found.problem,
            fix=f"see what it is: git show {found.commit[:12]}",
        )
    facts = {"commit": found.commit, "in_log": found.in_log, "evidence": found.evidence}
    show(facts, queue.evidence_text(found), as_json=as_json)


def _told(it: App, project: str) -> tuple[str, ...]:
    """Why nothing lands, as the orchestrator itself has it, where it is the one that answers."""
    trouble = it.troubles.get(f"queue of {project}")
    return (trouble.why,) if trouble else ()


# What people do with the queue: let a change land, keep it back, send it back.


ID = click.argument("name", metavar="ID")
WHY = click.option("-m", "--message", required=True, metavar="TEXT", help="Why.")


@click.command()
@ID
@click.option(
    "--change",
    "patch",
    default="",
    metavar="PATCH",
    help="Refuse if the change is not this one (`change` in `task show`).",
)
@json_option
def approve(*, name: str, patch: str, as_json: bool) -> None:
    """Approve a change for landing, also one that was held.

    The merge train merges it onto the target branch, tests the result, and moves the branch to
    exactly the commit that was tested. `lockgate approve` does the same.
    """
    it = app()
    id = named(it, name)
    task = it.queue.approve(id, patch or it.views.load(id).patch, it.caller)
    _tell(task, as_json=as_json)


@click.command()
@ID
@WHY
@json_option
def hold(*, name: str, message: str, as_json: bool) -> None:
    """Keep a change from landing until somebody approves it again."""
    it = app()
    _tell(it.queue.hold(named(it, name), message, it.caller), as_json=as_json)


@click.command()
@ID
@WHY
@json_option
def drop(*, name: str, message: str, as_json: bool) -> None:
    """Take a change out of the queue; its agent gets your reason and works on.

    It counts one failed attempt, as lockgate reject does.
    """
    it = app()
    _tell(it.queue.drop(named(it, name), message, it.caller), as_json=as_json)


@click.command()
@ID
@click.option("--now", is_flag=True, help="On a red target: land the plain revert, unjudged.")
@click.option("--yes", is_flag=True, help="Let an agent make the revert where it conflicts.")
@json_option
def undo(*, name: str, now: bool, yes: bool, as_json: bool) -> None:
    """Revert what a task landed, as a new task that passes the gates.

    A plain revert needs no agent. Where it conflicts with later changes an agent makes it, once you
    agree. Where the target is red its gates cannot judge a revert: --now lands the plain revert
    without them, and its commit, its task and the log say that nothing judged it.
    """
    it = app()
    task = _undone(it, named(it, name), now=now, yes=yes, asks=not as_json)
    show(task_facts(task), queue.undone_text(task), as_json=as_json)


def _undone(it: App, id: TaskId, *, now: bool, yes: bool, asks: bool) -> Task:
    undoing = it.undoing
    try:
        return undoing.undo_now(id, it.caller) if now else undoing.undo(id, it.caller)
    except TargetIsRed as error:
        _ask(error, "Land the plain revert now, judged by no gate?", asks=asks)
        return undoing.undo_now(id, it.caller)
    except RevertConflicts as error:
        if now or not yes:
            _ask(error, "Let an agent make the revert?", asks=asks and not now)
        return undoing.undo_by_agent(id, it.caller)


def _ask(error: Refused, question: str, *, asks: bool) -> None:
    """Raise the error again where nobody is there to say yes."""
    if not asks or terminal() or not sys.stdin.isatty():
        raise error
    echo(f"{error.what}: {error.why}", err=True)
    click.confirm(question, abort=True, err=True)


def _tell(task: Task, *, as_json: bool) -> None:
    show(task_facts(task), queue.steered_text(task), as_json=as_json)
