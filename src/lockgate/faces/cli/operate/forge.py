"""`lockgate forge`, `pr` and `issue`: pull requests and issues, as people see and steer them."""

import sys

import click

from lockgate.bootstrap import App, orchestrator_pid
from lockgate.core.model.people import Right
from lockgate.errors import Refused
from lockgate.faces.cli.output import app, here, json_option, named, show
from lockgate.faces.words import forge as words
from lockgate.services.task.callers import must_be_human

ID = click.argument("name", metavar="ID")


@click.command()
@json_option
def check(*, as_json: bool) -> None:
    """Show what the login may do at the forge, what the target asks for, and what is missing."""
    it = app()
    must_be_human(it.caller, "the forge was not checked", Right.LOOK)
    found = it.pull_requests.check(it.projects.here(here()))
    show(found.facts(), words.checked_text(found), as_json=as_json)


@click.command()
@click.option("--hint", is_flag=True, hidden=True, help="It is a webhook that asks.")
@json_option
def sync(*, hint: bool, as_json: bool) -> None:
    """Look at the pull requests and issues of this project now."""
    it = app()
    must_be_human(it.caller, "the forge was not looked at", Right.WORK)
    project = it.projects.here(here())
    _must_run(it)
    it.hints[project.id] = hint  # the loop wakes once this command is answered
    show({"project": project.name}, f"{project.name} is looked at now", as_json=as_json)


@click.command()
@click.option("--port", default=8787, show_default=True, help="On 127.0.0.1.")
@click.option("--secret-stdin", is_flag=True, required=True, help="Read its secret from stdin.")
@json_option
def listen(*, port: int, secret_stdin: bool, as_json: bool) -> None:
    """Take GitHub's webhooks on loopback; each genuine one has the pull requests looked at.

    Point `gh webhook forward` or any relay at it. It needs no trust: what is forged is refused.
    """
    it = app()
    must_be_human(it.caller, "nothing listens", Right.ADMIN)
    secret = sys.stdin.readline().strip() if secret_stdin else ""
    if not secret:
        raise Refused("nothing listens", why="the secret is empty", fix="give it on stdin")
    from lockgate.bootstrap.forge import listening

    server = listening(it.forge_parts, it.projects.here(here()), port, secret)
    where = f"127.0.0.1:{server.server_port}"
    show({"address": where}, f"listening on {where}", as_json=as_json)
    server.serve_forever()


@click.command("show")
@ID
@json_option
def show_pull(*, name: str, as_json: bool) -> None:
    """Show the pull request of a task: CI, reviews, and what it waits for."""
    it = app()
    id = named(it, name)
    must_be_human(it.caller, "the pull request was not shown", Right.LOOK)
    pull = it.pull_requests.of(id)
    show(it.pull_requests.facts(id), words.pull_text(pull), as_json=as_json)


@click.command()
@ID
@json_option
def adopt(*, name: str, as_json: bool) -> None:
    """Take what somebody pushed over Lockgate's commits; gates judge it next."""
    it = app()
    pull = it.pull_requests.adopt(named(it, name), it.caller)
    show({"number": pull.number}, f"pull request #{pull.number} is judged next", as_json=as_json)


@click.command()
@ID
@json_option
def restore(*, name: str, as_json: bool) -> None:
    """Put Lockgate's own commit back where somebody rewrote or deleted the branch."""
    it = app()
    pull = it.pull_requests.restore(named(it, name), it.caller)
    told = f"pull request #{pull.number} is at {pull.pushed[:12]} again"
    show({"number": pull.number, "head": pull.pushed}, told, as_json=as_json)


@click.command("list")
@json_option
def list_issues(*, as_json: bool) -> None:
    """Show the issues that have the label of [forge.intake], and what becomes of each."""
    it = app()
    must_be_human(it.caller, "the issues were not shown", Right.LOOK)
    found = it.pull_requests.issues(it.projects.here(here()))
    facts = [{"number": one.number, "title": one.title, "state": said} for one, said in found]
    show({"issues": facts}, words.issues_text(found), as_json=as_json)


@click.command()
@json_option
def take(*, as_json: bool) -> None:
    """Make tasks of the labelled issues now, without waiting for the next look."""
    it = app()
    it.pull_requests.take(it.projects.here(here()), it.caller)
    show({}, "the labelled issues are tasks now", as_json=as_json)


def _must_run(it: App) -> None:
    if orchestrator_pid(it.home) is None:
        raise Refused(
            "the forge was not looked at", why="no orchestrator runs", fix="start it: lockgate up"
        )
