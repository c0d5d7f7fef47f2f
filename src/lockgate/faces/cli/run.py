"""`lockgate run`: a task from its summary to its end, in one command."""

import click

from lockgate.bootstrap import sandbox_trouble
from lockgate.core.model.task import Status
from lockgate.faces import words
from lockgate.faces.cli.ending import ending_text
from lockgate.faces.cli.following import follow
from lockgate.faces.cli.output import app, echo, here, json_option, note_idle, show, wake
from lockgate.faces.cli.task_write import read_context
from lockgate.services.setup.init import Readiness
from lockgate.services.task.tasks import NewTask
from lockgate.services.task.views import task_facts


@click.command()
@click.argument("summary")
@click.option("--agent", help="Which agent works on it; default: the project's.")
@click.option("--context", metavar="FILE|-", help="What the agent must know; - reads stdin.")
@click.option("--branch", help="Default: made of the summary.")
@click.option("--no-wait", is_flag=True, help="Print the task's id and leave it to its agent.")
@json_option
def run(
    *,
    summary: str,
    agent: str | None,
    context: str | None,
    branch: str | None,
    no_wait: bool,
    as_json: bool,
) -> None:
    """Create a task, start it and follow it to its end.

    Exits 0 when the task is done: its change has landed. Where landing is manual ([merge] mode),
    the last step is yours: then it exits 0 when every gate has passed, and says how to let it land.
    Exits 1 when the task needs a human before that, or was cancelled. Ctrl-C stops following; the
    task goes on.
    """
    it = app()
    project = it.projects.here(here())
    ready = Readiness(
        it.store, it.projects.repository, it.configuration, it.harnesses, sandbox_trouble
    )
    note_idle(ready.check(project, agent))
    asked = NewTask(
        branch=branch or ready.branch_for(project, summary),
        summary=summary,
        context=read_context(context),
        agent=agent,
    )
    task = it.tasks.create(project, asked, it.caller)
    wake()
    if no_wait:
        show(task_facts(task), task.id, as_json=as_json)
        return
    echo(f"{task.id}: branch {words.one_line(task.branch)}, agent {task.agent}", err=True)
    task = follow(it, task.id, quietly=as_json)
    show(task_facts(task), ending_text(it, task), as_json=as_json)
    passed = task.status is Status.REVIEWING and not (task.held or task.troubled)
    if not passed and task.status is not Status.DONE:
        raise click.exceptions.Exit(1)
