"""`lockgate login` and `logout`: at a team's server, from a laptop."""

import json
import platform
import re
import sys
from http.client import HTTPException
from urllib.parse import parse_qs, urlencode, urlsplit

import click

from lockgate.errors import LockgateError, Refused, Unavailable
from lockgate.faces.cli.output import echo, json_option, show
from lockgate.faces.laptop import server
from lockgate.faces.laptop.call import SEAT, SSH_NAME

WHAT = "nobody was logged in"
LOGIN, LOGOUT = "/login/laptop", "/people/logout"
LONGEST_NAME = 40
FACTS = ("token", "person", "may", "ssh", "name")  # of the answer to a code


@click.command()
@click.argument("url")
@click.option("--fingerprint", default="", metavar="SHA256", help="Of the server's certificate.")
@click.option("--ssh", default="", metavar="NAME", help="What ssh calls the server: USER@HOST.")
@click.option(
    "--same-as",
    "other",
    default="",
    metavar="URL",
    help="By the login at this other host of the same fleet, without a code.",
)
@json_option
def login(*, url: str, fingerprint: str, ssh: str, other: str, as_json: bool) -> None:
    """Log in at a team's server; commands are then done there.

    URL is https://HOST[:PORT]. A code that works once is read from stdin: somebody makes it on the
    server by lockgate web login. The whole link that is printed there does too, also as URL.
    The certificate is checked by the system's store, or is the one with the fingerprint that you
    name. The token is kept in login.json of the home, for you alone, and is good for 90 days.
    Where the server has a new certificate, name its fingerprint and give an empty line for the
    code: the login that you have goes on.
    """
    at = server.Login(
        url=_address(url),
        fingerprint=server.fingerprint(fingerprint) if fingerprint else "",
        ssh=ssh,
    )
    if ssh and not SSH_NAME.fullmatch(ssh):
        raise Refused(WHAT, why=f"{ssh!r} is no name for ssh", fix="--ssh USER@HOST")
    if other and _link_in(url):
        raise click.UsageError("a link and --same-as cannot be used together: leave one out")
    facts, text = _go_on(at, _known(other)) if other else _begin(at, _link_in(url))
    show(facts, text, as_json=as_json)


def _begin(at: server.Login, link: str) -> tuple[dict[str, str], str]:
    """By a code that works once; without one by the login there is, if a certificate is named."""
    known = server.kept_for(at.url) if at.fingerprint else None
    said = link or _asked(at.url, known).strip()
    if not said and known:
        return _go_on(at, known)
    code = link or _code_in(said)
    if not code:
        fix = "have one made on the server: lockgate web login --person NAME"
        raise Refused(WHAT, why="no code was given", fix=fix)
    body = urlencode({"link": code, "laptop": _laptop()}).encode()
    headers = {"Origin": at.url, "Content-Type": "application/x-www-form-urlencoded"}
    try:
        with server.asked(at, LOGIN, body, headers) as answer:
            told = _facts(answer.read(server.LARGEST_ANSWER), *FACTS)
    except (Unavailable, OSError, HTTPException) as error:
        fix = "log in again; where the code was used, with a new one"
        raise _not_logged_in(at, error, fix) from error
    kept = at._replace(token=told["token"], person=told["person"], ssh=at.ssh or told["ssh"])
    server.remember(kept)
    facts = {"url": kept.url, "person": kept.person, "may": told["may"], "name": told["name"]}
    return facts, f"you are {kept.person} at {kept.url}, and may {told['may']}"


def _go_on(at: server.Login, known: server.Login) -> tuple[dict[str, str], str]:
    """By a token that the person has, which is kept for this server where it is taken there."""
    kept = at._replace(token=known.token, person=known.person)
    try:
        with server.asked(kept, SEAT, b"") as answer:
            own = _facts(answer.read(server.LARGEST_ANSWER), "own")["own"]
    except (Unavailable, OSError, HTTPException) as error:
        raise _not_logged_in(at, error, "try again") from error
    before = known.ssh if known.url == at.url else ""
    server.remember(kept._replace(ssh=at.ssh or before or own), only_here=True)
    text = f"you are {kept.person} at {kept.url}, by the login at {known.url}"
    return {"url": kept.url, "person": kept.person}, text


def _known(url: str) -> server.Login:
    found = server.kept_for(_address(url))
    if found is None:
        why = f"there is no login at {_address(url)}"
        raise Refused(WHAT, why=why, fix="name a server where you are logged in, or no --same-as")
    return found


@click.command()
@json_option
def logout(*, as_json: bool) -> None:
    """Log out at the server; commands are then done here.

    The token is not taken any more, at no host of a fleet. Where the server is not reached, only
    this laptop forgets it.
    """
    kept = server.chosen()
    try:
        with server.asked(kept, LOGOUT, b""):
            pass
    except LockgateError as error:
        echo(f"note: the server did not hear of it: {error.why}", err=True)
    ended = server.forget(kept)
    show({"url": kept.url}, f"logged out at {' and '.join(ended)}", as_json=as_json)


def _not_logged_in(at: server.Login, error: Exception, fix: str) -> LockgateError:
    """The code may have been used where the server had the whole request."""
    if isinstance(error, Unavailable) and error.what != server.UNKNOWN:
        return error
    why = error.why if isinstance(error, Unavailable) else server.broken_off(at, error)
    return Unavailable(WHAT, why=why, fix=fix)


def _asked(url: str, known: server.Login | None) -> str:
    """One line; nothing is echoed that could be used a second time."""
    if sys.stdin.isatty():
        or_else = f" (an empty line: go on as {known.person})" if known else ""
        text = f"The code, or the link, that `lockgate web login` printed for {url}{or_else}: "
        echo(text, err=True)
    return sys.stdin.readline(1000)


def _code_in(text: str) -> str:
    """The code itself, also out of a link."""
    told = text.strip()
    if "://" not in told:
        return told if "/" not in told and "." not in told else ""
    return _link_in(told)


def _link_in(url: str) -> str:
    """The code in a link; empty where the address has none."""
    try:
        query = urlsplit(url if "://" in url else f"https://{url}").query
    except ValueError:
        return ""
    return parse_qs(query).get("link", [""])[0]


def _address(url: str) -> str:
    try:
        return server.address(url, WHAT)
    except Refused as error:
        raise click.UsageError(f"{error.why}; {error.fix}") from error


def _laptop() -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", platform.node()).strip("-")
    return name[:LONGEST_NAME] or "laptop"


def _facts(raw: bytes, *names: str) -> dict[str, str]:
    try:
        told = json.loads(raw)
        return {it: str(told[it]) for it in names}
    except (ValueError, KeyError, TypeError) as error:
        why = "the server's answer was not understood"
        raise Refused(WHAT, why=why, fix="see that the address is a Lockgate server's") from error
