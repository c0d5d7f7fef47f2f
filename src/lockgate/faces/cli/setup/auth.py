"""`lockgate auth`: how an agent logs in."""

import os
import re
import sys

import click

from lockgate.bootstrap import App
from lockgate.core.config.settings import Settings
from lockgate.errors import Refused
from lockgate.faces.cli.output import app, echo, here, json_option, show
from lockgate.services.setup.doctor import settings_here
from lockgate.services.task.callers import must_be_human

LONGEST = 10_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@click.command()
@click.argument("agent")
@click.option("--variable", metavar="NAME", help="Read it from this variable at each start.")
@click.option("--token-stdin", is_flag=True, help="Read a long-lived token from stdin.")
@click.option("--as", "target", metavar="NAME", help="The variable the agent's program reads.")
@click.option("--show", "only_show", is_flag=True, help="Say what is stored, and no value.")
@json_option
def auth(
    *,
    agent: str,
    variable: str | None,
    token_stdin: bool,
    target: str | None,
    only_show: bool,
    as_json: bool,
) -> None:
    """Store how AGENT logs in: a long-lived token or key, or the name of a variable that has one.

    Agents run with a HOME of their own and see no login of yours but this one. Files with refresh
    tokens are never copied.
    """
    it = app()
    must_be_human(it.caller, f"no login of {agent} was stored")
    names = it.logins.names(agent, _settings(it))
    if only_show:
        _show(it, agent, names, as_json=as_json)
        return
    name = _target(agent, names, target)
    if variable is not None:
        path = it.logins.keep(agent, name, variable=_variable(agent, variable))
        told = f"{agent} gets {name} from the variable {variable}"
    else:
        token = _token(agent, name, from_stdin=token_stdin)
        path = it.logins.keep(agent, name, value=token)
        told = f"{agent} gets {name} from what you gave"
    facts = {"agent": agent, "name": name, "variable": variable, "path": str(path)}
    show(facts, f"{told}; stored in {path}", as_json=as_json)


def _settings(it: App) -> Settings:
    return settings_here(it.configuration, here())


def _show(it: App, agent: str, names: tuple[str, ...], *, as_json: bool) -> None:
    stored = it.logins.stored(agent)
    given = it.logins.given(agent, names)
    facts = {
        "agent": agent,
        "names": {name: {"stored": name in stored, "set": name in given} for name in names},
    }
    lines = [f"{name}: {_state(name in stored, name in given)}" for name in names]
    show(facts, "\n".join(lines) or f"{agent} needs no login", as_json=as_json)


def _state(stored: bool, given: bool) -> str:  # noqa: FBT001 - the two are all it is about
    if stored:
        return "stored" if given else "stored, but the variable it names is not set here"
    return "from the environment" if given else "not set"


def _target(agent: str, names: tuple[str, ...], asked: str | None) -> str:
    if asked in names or (asked is None and names):
        return asked or names[0]
    why = f"{agent} reads no {asked}" if asked else f"{agent} reads no variable to log in with"
    fix = f"use one of {', '.join(names)}" if names else f"name it in [agents.{agent}] env"
    raise Refused(f"no login of {agent} was stored", why=why, fix=fix)


def _variable(agent: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        why, fix = f"{name!r} is no name of a variable", "give the name, not the value"
        raise Refused(f"no login of {agent} was stored", why=why, fix=fix)
    if not os.environ.get(name):
        echo(f"note: {name} is not set here; it must be where the orchestrator starts", err=True)
    return name


def _token(agent: str, name: str, *, from_stdin: bool) -> str:
    if from_stdin:
        text = sys.stdin.read(LONGEST + 1)
    elif sys.stdin.isatty():
        text = click.prompt(f"{name} for {agent}", hide_input=True, err=True)
    else:
        raise click.UsageError("say where it comes from: --variable NAME, or --token-stdin")
    token = text.strip()
    if not token or len(token) > LONGEST or not token.isprintable() or " " in token:
        raise Refused(
            f"no login of {agent} was stored",
            why="what was given is not one line without spaces, as a token is",
            fix="give a long-lived token or a key, never a file of refresh tokens",
        )
    return token
