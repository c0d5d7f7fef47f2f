"""`lockgate step`: the steps of a task, run one by one."""

import click

from lockgate.bootstrap import App
from lockgate.core.lifecycle.gate_orchestrator import Escalate
from lockgate.core.model.task import TaskId
from lockgate.errors import NoSuchTask, Refused
from lockgate.faces.cli.output import app, json_option, named, show, wake
from lockgate.faces.words import task as words
from lockgate.faces.words.setup import step_facts, step_text


@click.group()
def step() -> None:
    """Take a task through its steps, such as a failing test first.

    They are [[steps]] in .lockgate/config.toml. A task with steps can be handed in only after all
    of them have passed.
    """


@step.command("list")
@click.argument("name", metavar="[ID]", required=False)
@json_option
def list_steps(*, name: str | None, as_json: bool) -> None:
    """Show a task's steps in their order: which have passed, which is next."""
    it = app()
    id = named(it, name)
    rows = it.steps.listed(id)
    facts = [
        {
            "node": step.name,
            "phase": step.phase,
            "command": step.command,
            "expect": step.expect,
            "state": standing,
        }
        for step, standing in rows
    ]
    cells = [
        (step.name, str(standing), str(step.phase), f"must {step.expect}", step.command)
        for step, standing in rows
    ]
    head = ("STEP", "STATE", "PHASE", "EXPECT", "COMMAND")
    shown = [tuple(words.one_line(it) for it in row) for row in (head, *cells)]
    text = words.table(shown) if rows else f"{id} has no steps"
    show({"task": id, "steps": facts}, text, as_json=as_json)


@step.command("run")
@click.argument("node", metavar="[NODE]", required=False)
@click.argument("name", metavar="[ID]", required=False)
@json_option
def run_step(*, node: str | None, name: str | None, as_json: bool) -> None:
    """Run a step on the task's work as it is now: the next one, unless NODE names another.

    The command runs in the sandbox, on a clean checkout; its exit code alone decides. Exits 0
    when the step passed and 1 when it did not, or could not be judged. Only the next step moves
    the run on; any other is run to look, and counts for nothing.
    """
    it = app()
    id, node = _meant(it, node, name)
    ran = it.steps.run(id, node or "", it.caller)
    show(step_facts(ran), step_text(ran), as_json=as_json)
    if isinstance(ran.moved, Escalate):
        wake()
    if not ran.tried.result.passed:
        raise click.exceptions.Exit(1)


def _meant(it: App, node: str | None, name: str | None) -> tuple[TaskId, str | None]:
    """Where no task is at hand, a word alone names the task."""
    try:
        return named(it, name), node
    except (Refused, NoSuchTask):
        if name is not None or node is None:
            raise
        return named(it, node), None
