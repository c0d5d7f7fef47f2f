"""`lockgate init`: set a repository up."""

import json

import click

from lockgate.bootstrap import config_schema
from lockgate.faces import words
from lockgate.faces.cli.output import app, here, json_option, show
from lockgate.services.initialise import Wanted

FORMULAS = ("plain", "solo", "code-review", "security-audit", "quick-review", "none")


@click.command()
@click.option("--formula", default="plain", show_default=True, type=click.Choice(FORMULAS))
@click.option("--agent", default="claude", show_default=True, help="Who works on tasks.")
@click.option("--no-commit", is_flag=True, help="Write the file and leave committing to you.")
@click.option("--force", is_flag=True, help="Overwrite a configuration that is there.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of the file, and do no more.")
@json_option
def init(
    *, formula: str, agent: str, no_commit: bool, force: bool, schema: bool, as_json: bool
) -> None:
    """Write .lockgate/config.toml from what the repository shows, and commit that one file."""
    if schema:
        click.echo(json.dumps(config_schema(), indent=2))
        return
    it = app()
    wanted = Wanted(formula=formula, agent=agent, force=force, commit=not no_commit)
    made = it.initialiser.init(it.projects.here(here()), wanted, it.caller)
    facts = {
        "path": made.path,
        "base": made.base,
        "branch": made.branch,
        "found": dict(made.found),
    }
    show(facts, words.initialised_text(made), as_json=as_json)
