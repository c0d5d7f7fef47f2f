"""What waits to land and what has landed, for whoever only looks."""

import click

from lockgate.bootstrap import App
from lockgate.bootstrap.background import orchestrator_pid
from lockgate.bootstrap.train import queueing
from lockgate.errors import Refused
from lockgate.faces import queue_words
from lockgate.faces.cli.output import app, here, json_option, show
from lockgate.ports import Project
from lockgate.services.task.callers import must_be_human


@click.command("list")
@json_option
def list_queue(*, as_json: bool) -> None:
    """Show the queue of the project you stand in, in the order in which changes would land."""
    it = app()
    must_be_human(it.caller, "the queue was not shown")
    project = it.projects.here(here())
    seen = queueing(it).listed(project, acting=orchestrator_pid(it.home) is not None)
    holds = _told(it, project) or seen.holds
    facts = queue_words.queue_facts(seen, holds)
    show(facts, queue_words.queue_text(seen, holds), as_json=as_json)


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
    found = queueing(it).verify(it.projects.here(here()), commit)
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
    show(facts, queue_words.evidence_text(found), as_json=as_json)


def _told(it: App, project: Project) -> tuple[str, ...]:
    """Why nothing lands, as the orchestrator itself has it, where it is the one that answers."""
    trouble = it.troubles.get(f"queue of {project.name}")
    return (trouble.why,) if trouble else ()
