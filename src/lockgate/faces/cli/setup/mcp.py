"""`lockgate mcp`: how an assistant is told of it; the server itself is begun elsewhere."""

import os

import click

from lockgate.bootstrap.assistants import ASSISTANTS, register, way_of
from lockgate.errors import Refused
from lockgate.faces.cli.output import json_option, show
from lockgate.faces.words.task import one_line


@click.command()
@click.option(
    "--print",
    "assistant",
    type=click.Choice(ASSISTANTS),
    help="Only print how this assistant is told of it.",
)
@json_option
def mcp(*, assistant: str | None, as_json: bool) -> None:
    """Give assistants and agents these commands as tools, over MCP.

    Assistants start it themselves once they are told of it: --print shows how, and lockgate init
    --mcp tells all that are installed. In an agent's session it has the agent's own tools.
    """
    if assistant is None:
        from lockgate.faces import pipe

        raise click.exceptions.Exit(pipe.run())
    way = way_of(assistant)
    show({"assistant": assistant, "register": way}, way, as_json=as_json)


def register_all(*, as_json: bool) -> None:
    """For `lockgate init --mcp`."""
    told = register(os.environ)
    if not told:
        names = ", ".join(ASSISTANTS)
        raise Refused(
            "no assistant was told of Lockgate",
            why=f"none of {names} is on PATH",
            fix=f"install one, or see how: lockgate mcp --print {ASSISTANTS[0]}",
        )
    facts = [
        {"assistant": it.assistant, "register": it.how, "problem": it.problem or None}
        for it in told
    ]
    lines = [f"{it.assistant}: {_ended(it.problem)} ({it.how})" for it in told]
    show({"assistants": facts}, "\n".join(lines), as_json=as_json)
    if any(it.problem for it in told):
        raise click.exceptions.Exit(1)


def _ended(problem: str) -> str:
    return f"not told: {one_line(problem)}" if problem else "told"
