"""`lockgate trust`: what this repository asks for beyond the sandbox, and the user's yes."""

import sys
from collections.abc import Iterator

import click

from lockgate.bootstrap import App
from lockgate.bootstrap.gates import rulebook
from lockgate.core.config.trust import Question
from lockgate.core.model.people import Right
from lockgate.errors import Refused
from lockgate.faces.cli.choices import asked
from lockgate.faces.cli.output import app, echo, here, json_option, show, wake
from lockgate.faces.words import task as words
from lockgate.ports import Project
from lockgate.services.task.callers import must_be_human

WHAT = "nothing was agreed to"


@click.command()
@click.option("--show", "only_show", is_flag=True, help="Say what is asked for, and ask nothing.")
@click.option("--yes", metavar="DIGEST", help="Agree to what has this digest, without a question.")
@click.option("--forget", is_flag=True, help="Take back what was agreed to.")
@click.option(
    "--assistant",
    metavar="NAME",
    help="Let this assistant (by MCP) ask you for a yes; with --forget, no longer.",
)
@click.option("--base", metavar="REV", help="Where the rules are read; default: base branch.")
@json_option
def trust(
    *,
    only_show: bool,
    yes: str | None,
    forget: bool,
    assistant: str | None,
    base: str | None,
    as_json: bool,
) -> None:
    """Show what this repository asks for beyond the sandbox; agree.

    Nothing of a repository runs before you have agreed to what its .lockgate/config.toml asks for:
    no gate, no set-up, no agent, no landing. You are asked again only when it asks for more.

    An assistant is not you: by MCP it can approve, reject and land nothing. With --assistant it may
    ask you to, in a form that its program shows, each time. That is for this user, not for a
    repository.
    """
    it = app()
    must_be_human(it.caller, WHAT, Right.ADMIN)
    if assistant is not None:
        _let_ask(it, assistant, forget=forget, only_show=only_show)
        names = it.assistants.granted()
        show({"assistants": names}, _assistants_text(names), as_json=as_json)
        return
    trusts, project = it.configuration.trust, it.projects.here(here())
    if forget:
        trusts.forget(project)
        show(
            {"forgotten": project.root}, f"nothing is agreed to for {project.name}", as_json=as_json
        )
        return
    question, refused = _questions(project, base)
    if yes is not None:
        question = _meant(yes, question, refused)
    elif not only_show and question.new:
        _ask(project, question)
    if not only_show:
        trusts.grant(project, question)
        question, waiting = _questions(project, base)[0], bool(refused.new)
        if waiting:
            wake()
    show(_facts(project, question), _text(project, question), as_json=as_json)


def _let_ask(it: App, name: str, *, forget: bool, only_show: bool) -> None:
    """Granted at a terminal only: a caller without one may be the assistant itself."""
    if only_show:
        return
    if forget:
        it.assistants.forget(name, it.caller)
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        fix = f"run it in a terminal: lockgate trust --assistant {name!r}"
        raise Refused(WHAT, why="there is no terminal to ask you at", fix=fix)
    echo(
        f"{words.one_line(name)} may then ask you to approve, reject and land, each time in a form."
    )
    if not click.confirm("Let it?", default=False):
        raise Refused(WHAT, why="you said no", fix="run it again")
    it.assistants.grant(name, it.caller)


def _assistants_text(names: tuple[str, ...]) -> str:
    told = ", ".join(words.one_line(it) for it in names)
    return f"may ask you for a yes: {told}" if told else "no assistant may ask you for a yes"


def _questions(project: Project, base: str | None) -> tuple[Question, Question]:
    """What is asked for now, and what something was refused for, perhaps by an older commit."""
    book = rulebook(app().configuration)
    refused = book.configuration.trust.refused(project)
    _, question = book.question(here(), asked(base))
    return (question if question.new or not refused.new else refused), refused


def _meant(digest: str, *questions: Question) -> Question:
    for question in questions:
        if question.digest == digest and question.asked:
            return question
    raise Refused(
        WHAT,
        why=f"{digest} is not the digest of what this repository asks for now",
        fix="see what that is: lockgate trust --show",
    )


def _ask(project: Project, question: Question) -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        fix = f"read it: lockgate trust --show; then: lockgate trust --yes {question.digest}"
        raise Refused(WHAT, why="there is no terminal to ask you at", fix=fix)
    echo(words.safe(_text(project, question)))
    if not click.confirm("Agree?", default=False):
        fix = "change .lockgate/config.toml, or run it again"
        raise Refused(WHAT, why="you said no", fix=fix)


def _facts(project: Project, question: Question) -> dict[str, object]:
    new = {it.key for it in question.new}
    return {
        "project": project.root,
        "origin": question.origin,
        "digest": question.digest if question.asked else None,
        "trusted": not new,
        "asks": [{"says": it.says, "agreed": it.key not in new} for it in question.asked],
    }


def _text(project: Project, question: Question) -> str:
    return "\n".join(_lines(project, question))


def _lines(project: Project, question: Question) -> Iterator[str]:
    name = words.one_line(project.name)
    if not question.asked:
        yield f"{name} asks for nothing beyond the sandbox"
        return
    whose = f" (from {words.one_line(question.origin)})" if question.origin else ""
    yield f"{name}{whose} wants to"
    new = {it.key for it in question.new}
    yield from (
        f"  {'?' if it.key in new else '✓'} {words.one_line(it.says)}" for it in question.asked
    )
    yield f"digest: {question.digest}"
    yield "not agreed to: what is marked with ?" if new else "agreed to"
