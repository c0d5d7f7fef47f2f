"""`lockgate auth`: how an agent logs in."""

import os
import re
import sys
from pathlib import Path

import click

from lockgate.bootstrap import App
from lockgate.core.config.settings import Settings
from lockgate.core.model.agents import REACHES_AGENTS, Source
from lockgate.core.model.people import Right
from lockgate.errors import Refused
from lockgate.faces.cli.output import app, echo, here, json_option, show
from lockgate.services.setup.doctor import settings_here
from lockgate.services.task.callers import must_be_human

LONGEST = 10_000
GITHUB, GITHUB_NAME = "github", "LOCKGATE_GITHUB_TOKEN"  # a login of Lockgate's, no agent's
APP_NAME, APP_KEY_NAME = "LOCKGATE_GITHUB_APP", "LOCKGATE_GITHUB_APP_KEY"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@click.command()
@click.argument("agent")
@click.option("--variable", metavar="NAME", help="Read it from this variable at each start.")
@click.option("--token-stdin", is_flag=True, help="Read a long-lived token from stdin.")
@click.option("--app", "app_id", default="", metavar="ID", help="Of github: an App's id.")
@click.option("--key", metavar="FILE", help="Of github: the App's private key (PEM).")
@click.option("--as", "target", metavar="NAME", help="The variable the agent's program reads.")
@click.option("--show", "instead", flag_value="show", help="Say what agents get, and no value.")
@click.option("--forget", "instead", flag_value="forget", help="Remove what is stored.")
@json_option
def auth(
    *,
    agent: str,
    variable: str | None,
    token_stdin: bool,
    app_id: str,
    key: str | None,
    target: str | None,
    instead: str | None,
    as_json: bool,
) -> None:
    """Store how an agent logs in: a token, a key or a variable's name.

    An agent works in a sandbox with its own HOME, so it does not see your own login. Files with
    refresh tokens are never copied.
    """
    it = app()
    must_be_human(it.caller, f"no login of {agent} was stored", Right.ADMIN)
    if agent == GITHUB and instead is not None:
        _of_github(it, instead, as_json=as_json)
        return
    if app_id or key is not None:
        _of_app(it, agent, app_id, key, as_json=as_json)
        return
    settings = settings_here(it.configuration, here())
    name = GITHUB_NAME
    if agent != GITHUB:
        name = _target(it, agent, settings, target) if instead is None else ""
    if instead == "show":
        _show(it, agent, settings, as_json=as_json)
        return
    if instead == "forget":
        _forget(it, agent, settings, as_json=as_json)
        return
    if variable is not None:
        path = it.logins.keep(agent, name, variable=_variable(agent, variable))
        told = f"{agent} gets {name} from the variable {variable}"
    else:
        token = _token(agent, name, from_stdin=token_stdin)
        path = it.logins.keep(agent, name, value=token)
        told = f"{agent} gets {name} from what you gave"
    facts = {"agent": agent, "name": name, "variable": variable, "path": str(path)}
    show(facts, f"{told}; stored in {path}", as_json=as_json)


def _show(it: App, agent: str, settings: Settings, *, as_json: bool) -> None:
    """What sessions get: the orchestrator's variables where one runs, and not this shell's."""
    stored, missing = it.logins.stored(agent), it.logins.missing(agent, settings)
    found = it.logins.sources(agent, settings)
    facts = {
        "agent": agent,
        "logged_in": missing is None,
        "names": {
            name: {"stored": name in stored, "set": source in REACHES_AGENTS, "source": source}
            for name, source in found.items()
        },
    }
    lines = [f"{name}: {SOURCES[source]}" for name, source in found.items()]
    lines += [missing.why, f"  {missing.fix}"] if missing else []
    show(facts, "\n".join(lines) or f"{agent} needs no login", as_json=as_json)


def _of_github(it: App, instead: str, *, as_json: bool) -> None:
    """Agents get none of it."""
    if instead == "forget":
        names = it.logins.forget(GITHUB)
        told = "removed the login at GitHub" if names else "no login at GitHub was stored"
        show({"agent": GITHUB, "forgotten": list(names)}, told, as_json=as_json)
        return
    stored = it.logins.stored(GITHUB)
    told = "a login at GitHub is stored" if stored else "no login at GitHub is stored"
    show({"agent": GITHUB, "stored": list(stored)}, told, as_json=as_json)


def _of_app(it: App, agent: str, id: str, key: str | None, *, as_json: bool) -> None:
    """The id and the private key of an App, which ask for the token of its installation."""
    what = "the App was not stored"
    if agent != GITHUB or not id.isalnum() or not key:
        raise Refused(what, why="github needs both", fix="lockgate auth github --app ID --key FILE")
    text = _key_in(key, what)
    it.logins.keep(agent, APP_NAME, value=id)
    path = it.logins.keep(agent, APP_KEY_NAME, value=text)
    show({"agent": agent, "app": id, "path": str(path)}, f"stored in {path}", as_json=as_json)


def _key_in(path: str, what: str) -> str:
    fix = "name the .pem file that GitHub gave you: lockgate auth github --app ID --key FILE"
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise Refused(what, why=f"there is no file {path}", fix=fix) from error
    except OSError as error:
        raise Refused(what, why=f"{path} cannot be read: {error.strerror}", fix=fix) from error
    except ValueError as error:
        raise Refused(what, why=f"{path} is no text", fix=fix) from error
    if "PRIVATE KEY-----" not in text:
        raise Refused(what, why=f"{path} has no private key", fix=fix)
    return text


SOURCES = {
    Source.STORED: "stored",
    Source.ENVIRONMENT: "from the environment",
    Source.SHELL: "set in this shell only; the orchestrator was started without it",
    Source.UNSET: "stored, but the variable it names is not set",
    Source.NONE: "not set",
}


def _forget(it: App, agent: str, settings: Settings, *, as_json: bool) -> None:
    it.logins.names(agent, settings)  # an agent that nobody knows is an error
    names = it.logins.forget(agent)
    told = f"removed what was stored for {agent}: {', '.join(names)}"
    facts = {"agent": agent, "forgotten": list(names)}
    show(facts, told if names else f"nothing was stored for {agent}", as_json=as_json)


def _target(it: App, agent: str, settings: Settings, asked: str | None) -> str:
    names = it.logins.names(agent, settings)
    first = it.logins.keys(agent, settings) or names
    if asked in names or (asked is None and first):
        return asked or first[0]
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
