"""`lockgate run`: a task from its summary to its end, in one command."""

import click

from lockgate.bootstrap import App
from lockgate.core.lifecycle.needs import in_one_line, large_change, need_of
from lockgate.core.model.task import Status, Task
from lockgate.core.text.steering import told_of, unseen
from lockgate.faces.cli.look.follow import follow
from lockgate.faces.cli.operate.tasks import AGENT_HELP, FILE, agent_here, described
from lockgate.faces.cli.output import app, echo, here, json_option, show, wake
from lockgate.faces.words import task as words
from lockgate.services.task.tasks import NewTask
from lockgate.services.task.views import task_facts

# What is said of a task once nothing more happens by itself: how it ended, and what to do now.


def ending_text(it: App, task: Task) -> str:
    match task.status:
        case Status.DONE:
            how = f" as {task.landed[: words.SHORT]}" if task.landed else ""
            large = f" ({large_change(task)})" if large_change(task) else ""
            return f"{task.id} has landed{how}{large}"
        case Status.REVIEWING if not (task.held or task.troubled):
            return "\n".join(_to_land(it, task))
        case Status.CLARIFICATION:
            return words.question_text(task)
        case Status.REVIEWING | Status.AGENT_REVIEW | Status.PENDING | Status.WORKING:
            return _resting_text(task)
        case Status.STUCK | Status.PAUSED_FOR_INTERVENTION | Status.CANCELLED:
            return _resting_text(task)


def _resting_text(task: Task) -> str:
    need = need_of(task)
    told = words.state_text(task, needs=not need)
    told += f": {words.one_line(in_one_line(need))}" if need else ""
    return f"{told}\n  why: lockgate task why {task.id}"


def _to_land(it: App, task: Task) -> list[str]:
    branch = words.one_line(task.branch)
    lines = [f"{task.id} is ready to land: all gates passed"]
    lines += [
        f"  look first: {words.one_line(told_of(files))}" for files in (unseen(task),) if files
    ]
    lines += [f"  {it}" for it in (large_change(task),) if it]
    lines += [f"  {line}" for line in _stat(it, task)]
    lines += [f"  read it:   lockgate diff {task.id}"]
    lines += [f"  land it:   lockgate approve {task.id}"]
    lines += [f"  refuse it: lockgate reject {task.id} -m TEXT"]
    if it.projects.tip_of(task) != task.candidate:
        lines += [f"  branch {branch} in your repository is another commit and was left alone"]
    return lines


def _stat(it: App, task: Task) -> list[str]:
    """What the change comes to; of one that is large only its size is told."""
    return [] if task.size.large else words.diffstat(it.people.diff(task.id))


@click.command()
@click.argument("summary", required=False)
@FILE
@click.option("--agent", help=AGENT_HELP)
@click.option("--context", metavar="FILE|-", help="What the agent must know; - reads stdin.")
@click.option("--branch", help="Default: made of the summary.")
@click.option("--no-wait", is_flag=True, help="Print the task's id and leave it to its agent.")
@json_option
def run(
    *,
    summary: str | None,
    file: str | None,
    agent: str | None,
    context: str | None,
    branch: str | None,
    no_wait: bool,
    as_json: bool,
) -> None:
    """Create a task, start it, and follow it until it is ready to land.

    SUMMARY says what to do. Without it your editor opens, as for a commit message.

    Exits 0 when all gates have passed and the change is ready to land: lockgate approve lands it.
    With [merge] mode = "auto" it exits 0 when the change has landed. Exits 1 when the task needs
    you before that, or was cancelled. Ctrl-C stops only the output; the task goes on.
    """
    it = app()
    project = it.projects.here(here())
    ready = it.readiness
    ready.check(project, agent)
    goal, told = described(summary, file, context)
    asked = NewTask(
        branch=branch or ready.branch_for(project, goal),
        summary=goal,
        context=told,
        agent=agent_here(agent),
    )
    task = it.tasks.create(project, asked, it.caller)
    wake()
    if no_wait:
        show(task_facts(task), task.id, as_json=as_json)
        return
    echo(
        f"{task.id}: branch {words.one_line(task.branch)}, agent {words.agent_text(task.agent)}",
        err=True,
    )
    task = follow(it, task.id, quietly=as_json)
    show(task_facts(task), ending_text(it, task), as_json=as_json)
    passed = task.status is Status.REVIEWING and not (task.held or task.troubled)
    if not passed and task.status is not Status.DONE:
        raise click.exceptions.Exit(1)
