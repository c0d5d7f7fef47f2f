"""`lockgate init`: set a repository up."""

import json
import sys
from pathlib import Path

import click
from msgspec.structs import replace

from lockgate import __version__
from lockgate.bootstrap import App
from lockgate.bootstrap.gates import commissioned, rehearsed
from lockgate.bootstrap.rules import config_schema
from lockgate.core.discovery.found import Seen
from lockgate.errors import Refused
from lockgate.faces.cli.output import (
    app,
    echo,
    here,
    interruptible,
    json_option,
    show,
)
from lockgate.faces.cli.setup.mcp import register_all
from lockgate.faces.cli.setup.progress import progress
from lockgate.faces.words import setup
from lockgate.faces.words.task import one_line
from lockgate.services.setup.init import Initialised, Wanted

FORMULAS = ("plain", "solo", "code-review", "security-audit", "quick-review", "none")
PLACE = ".github/workflows/lockgate.yml"
WORKFLOW = f"""\
# Judges every pull request by the rules of the branch that it goes to. No agent, no secret.
name: Lockgate
on:
  pull_request:
  merge_group:
permissions:
  contents: read
jobs:
  lockgate:
    runs-on: ubuntu-latest
    timeout-minutes: 60
    steps:
      - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683  # v4.2.2
        with:
          fetch-depth: 0
          persist-credentials: false
      - uses: lockgate/lockgate@v{__version__}
"""
NEXT = (
    "commit it, and have GitHub require the check «lockgate» on the base branch; a change to"
    f" {PLACE} can switch it off, so have its owners review it"
)


@click.command()
@click.option(
    "--formula",
    type=click.Choice(FORMULAS),
    help="Default: solo, or plain where the test command does not name its tests.",
)
@click.option("--agent", default="claude", show_default=True, help="Who works on tasks.")
@click.option("--test-command", "test", default="", metavar="CMD", help="How the tests are run.")
@click.option("--setup", "prepare", default="", metavar="CMD", help="What installs what they need.")
@click.option(
    "--with",
    "author",
    default="",
    metavar="AGENT",
    help="Let this agent find the commands, in the sandbox; kept only if they pass and fail.",
)
@click.option("--yes", is_flag=True, help="Ask nothing: take the first of what could be meant.")
@click.option("--dry-run", is_flag=True, help="Print the file and why; run and write nothing.")
@click.option("--no-commit", is_flag=True, help="Write the file and leave committing to you.")
@click.option("--force", is_flag=True, help="Overwrite an existing configuration.")
@click.option(
    "--baseline",
    default=1,
    show_default=True,
    type=click.IntRange(0),
    metavar="N",
    help="Run each command so often on base; 2 or more find flaky ones, 0 runs none.",
)
@click.option("--schema", is_flag=True, help="Only print the JSON Schema of the file.")
@click.option("--mcp", is_flag=True, help="Only tell the installed assistants of lockgate mcp.")
@click.option("--action", is_flag=True, help="Only write the workflow for GitHub Actions.")
@json_option
def init(
    *,
    formula: str | None,
    agent: str,
    test: str,
    prepare: str,
    author: str,
    yes: bool,
    dry_run: bool,
    no_commit: bool,
    force: bool,
    baseline: int,
    schema: bool,
    mcp: bool,
    action: bool,
    as_json: bool,
) -> None:
    """Find how this repository is tested, and set Lockgate up for it.

    It runs the commands that it finds on the base branch, in the sandbox, and commits
    .lockgate/config.toml. A command that fails is tried again with the usual repairs, then left
    out. At the end it breaks a source file, in the sandbox only: the configuration is ready if the
    tests notice that.
    """
    if schema:
        click.echo(json.dumps(config_schema(), indent=2))
        return
    if mcp:
        register_all(as_json=as_json)
        return
    if action:
        _write_workflow(force=force, dry_run=dry_run, as_json=as_json)
        return
    wanted = Wanted(
        formula=formula or "",
        agent=agent,
        force=force or dry_run,
        commit=not no_commit,
        test=test,
        setup=prepare,
        yes=yes,
        choose=None if as_json or author or not _at_a_terminal() else _choose,
        author=author,
    )
    _set_up(wanted, baseline, dry_run=dry_run, as_json=as_json)


def _write_workflow(*, force: bool, dry_run: bool, as_json: bool) -> None:
    """For `lockgate init --action`: overwrites nothing without --force, and commits nothing."""
    if dry_run:
        show({"file": PLACE, "text": WORKFLOW}, WORKFLOW.rstrip("\n"), as_json=as_json)
        return
    _write_new(Path(app().projects.clone_at(here()).root) / PLACE, force=force)
    show({"file": PLACE, "next": NEXT}, f"wrote {PLACE}\n  {NEXT}", as_json=as_json)


def _write_new(file: Path, *, force: bool) -> None:
    what = f"{PLACE} was not written"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w" if force else "x", encoding="utf-8") as stream:
            stream.write(WORKFLOW)
    except FileExistsError as error:
        fix = "lockgate init --action --dry-run shows it; --force overwrites the file"
        raise Refused(what, why="the file exists", fix=fix) from error
    except OSError as error:
        why, fix = error.strerror or str(error), "make the folder writable"
        raise Refused(what, why=why, fix=fix) from error


def _set_up(wanted: Wanted, baseline: int, *, dry_run: bool, as_json: bool) -> None:
    project = (it := app()).projects.clone_at(here())
    site = it.initialiser.site(project, wanted, it.caller)
    if not dry_run and _offers_pulls(it, site.base, wanted):
        wanted = replace(wanted, pulls=True)
    proposed = it.initialiser.propose(project, wanted, site)
    if dry_run:
        show(setup.proposed_facts(proposed), setup.proposed_text(proposed), as_json=as_json)
        return
    if wanted.author:
        if not as_json:
            echo(f"asking {one_line(wanted.author)} to write the set-up, in the sandbox", err=True)
        with progress() as line:
            asked = commissioned(it, project, (wanted, site, proposed), line.say)
            proposed = interruptible(line.listening(asked))
    for said in () if as_json else setup.found_lines(proposed):
        echo(said)
    with progress() as line:
        work = rehearsed(it, project, (wanted, site, proposed), baseline, line.say)
        made = interruptible(line.listening(work))
    _tell(made, as_json=as_json)
    if not wanted.pulls and (advice := it.pull_requests.advised(project, made.base)):
        echo(advice, err=True)


def _offers_pulls(it: App, base: str, wanted: Wanted) -> bool:
    """Where the base branch takes no push, and the user says yes to pull requests."""
    project, asked = it.projects.clone_at(here()), wanted.yes or wanted.choose is not None
    if not asked or not it.pull_requests.takes_no_push(project, base):
        return False
    question = f"{one_line(base)} takes pull requests only. Land changes by pull requests?"
    return wanted.yes or click.confirm(question, default=True, err=True)


def _tell(made: Initialised, *, as_json: bool) -> None:
    show(setup.initialised_facts(made), setup.initialised_text(made), as_json=as_json)


def _at_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _choose(choices: tuple[Seen, ...]) -> str:
    """One short question; an empty answer is none of them."""
    for number, it in enumerate(choices, start=1):
        echo(f"  {number}. {it.command} (found in {it.by})", err=True)
    first = choices[0].command if choices else ""
    otherwise = "a number or a command; Enter: the first" if choices else "Enter: none"
    asked = f"Which command tests this repository? ({otherwise})"
    said = str(click.prompt(asked, default=first, show_default=bool(first), err=True)).strip()
    if said.isdigit() and 0 < int(said) <= len(choices):
        return choices[int(said) - 1].command
    return said
