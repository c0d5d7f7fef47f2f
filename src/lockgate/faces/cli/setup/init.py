"""`lockgate init`: set a repository up."""

import json
import sys
from collections.abc import Callable

import click

from lockgate.bootstrap import config_schema
from lockgate.bootstrap.gates import measurement
from lockgate.core.config.baseline import Baseline
from lockgate.errors import LockgateError
from lockgate.faces.cli.output import app, echo, here, interruptible, json_option, note_idle, show
from lockgate.faces.words import setup, task
from lockgate.services.setup.init import Wanted

# The commands of a repository on its base, as `init` has them run.


def measured(
    work: Callable[[Callable[[], bool]], tuple[Baseline, ...]], base: str
) -> tuple[Baseline, ...]:
    """What the commands come to on base; none where they cannot be run."""
    try:
        return interruptible(work)
    except LockgateError as error:
        echo(f"note: the commands were not run on {base}: {task.one_line(str(error))}", err=True)
        return ()


def _say(text: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"▸ {task.one_line(text)}", err=True)


FORMULAS = ("plain", "solo", "code-review", "security-audit", "quick-review", "none")


@click.command()
@click.option(
    "--formula",
    type=click.Choice(FORMULAS),
    help="Default: solo, or plain where the test command does not name its tests.",
)
@click.option("--agent", default="claude", show_default=True, help="Who works on tasks.")
@click.option("--no-commit", is_flag=True, help="Write the file and leave committing to you.")
@click.option("--force", is_flag=True, help="Overwrite a configuration that is there.")
@click.option(
    "--baseline",
    default=1,
    show_default=True,
    type=click.IntRange(0),
    metavar="N",
    help="Run each command so often on base; 2 or more find flaky ones, 0 runs none.",
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of the file, and do no more.")
@json_option
def init(
    *,
    formula: str | None,
    agent: str,
    no_commit: bool,
    force: bool,
    baseline: int,
    schema: bool,
    as_json: bool,
) -> None:
    """Write .lockgate/config.toml from what the repository shows, and commit that one file.

    Before that the commands are run on base, and what is red, flaky or slow there is told.
    """
    if schema:
        click.echo(json.dumps(config_schema(), indent=2))
        return
    it = app()
    project = it.projects.here(here())
    wanted = Wanted(formula=formula or "", agent=agent, force=force, commit=not no_commit)

    def measure(text: str, base: str) -> tuple[Baseline, ...]:
        return measured(measurement(it, project, (text, base), baseline, _say), base)

    made = it.initialiser.init(project, wanted, it.caller, measure if baseline else None)
    note_idle(made.settings)
    show(setup.initialised_facts(made), setup.initialised_text(made), as_json=as_json)
