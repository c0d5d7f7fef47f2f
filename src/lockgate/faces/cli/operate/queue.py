"""`lockgate queue` and `verify`: what waits to land, what landed, a human's word on it."""

import click

from lockgate.bootstrap import App, orchestrator_pid
from lockgate.core.model.task import Task
from lockgate.errors import Refused
from lockgate.faces.cli.output import app, here, json_option, named, show
from lockgate.faces.words import queue
from lockgate.services.task.callers import must_be_human
from lockgate.services.task.views import task_facts


@click.command("list")
@json_option
def list_queue(*, as_json: bool) -> None:
    """Show the queue of the project you stand in, in the order in which changes would land."""
    it = app()
    must_be_human(it.caller, "the queue was not shown")
    project = it.projects.here(here())
    seen = it.queue.listed(project, acting=orchestrator_pid(it.home) is not None)
    holds = _told(it, project.name) or seen.holds
    facts = queue.queue_facts(seen, holds)
    show(facts, queue.queue_text(seen, holds), as_json=as_json)


@click.command()
@click.argument("commit")
@json_option
def verify(*, commit: str, as_json: bool) -> None:
    """Show which gates judged a landed commit, on which tree, by which rules.

    The evidence is the commit's note in refs/notes/lockgate; whether this home's own log has the
    landing too is said with it. Exits 1 where the commit did not come through the queue, and where
    its evidence does not fit it.
    """
    it = app()
    must_be_human(it.caller, "nothing was verified")
    found = it.queue.verify(it.projects.here(here()), commit)
    if found is None:
        raise Refused(
            "nothing was verified",
            why=f"git knows no commit {commit!r} here",
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
    help="Only the change that begins so, as `lockgate task show` has it.",
)
@json_option
def approve(*, name: str, patch: str, as_json: bool) -> None:
    """Let a change land that has passed its gates: in manual mode, or one that was held.

    The train merges it onto the target, tests what comes of that, and moves the target to exactly
    what was tested. A change that could not be judged is tried once more.
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
    """Keep a change from landing, until it is approved again."""
    it = app()
    _tell(it.queue.hold(named(it, name), message, it.caller), as_json=as_json)


@click.command()
@ID
@WHY
@json_option
def drop(*, name: str, message: str, as_json: bool) -> None:
    """Take a change out of the queue; its agent gets what you say, and works on.

    It counts one failed attempt, as lockgate reject does.
    """
    it = app()
    _tell(it.queue.drop(named(it, name), message, it.caller), as_json=as_json)


def _tell(task: Task, *, as_json: bool) -> None:
    show(task_facts(task), queue.steered_text(task), as_json=as_json)
