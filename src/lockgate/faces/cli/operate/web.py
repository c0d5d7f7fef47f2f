"""`lockgate web`: the board in a browser, on the desk and on the phone."""

import time
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

import click

from lockgate.bootstrap import App
from lockgate.bootstrap.outside import web_logins_of
from lockgate.bootstrap.team import serving_settings
from lockgate.core.model.people import Right
from lockgate.errors import BadConfig, Refused
from lockgate.faces.cli.output import app, echo, json_option, show, wake
from lockgate.faces.cli.serve import carry_out
from lockgate.faces.words.task import one_line, table
from lockgate.services.task.callers import must_be_human

WHAT = "the web board was not served"
INSTALL = "pip install 'lockgate[web]'"
LOOPBACK = "127.0.0.1"
LAST_PORT = 65535
EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - a url must say what people call it


@click.command(cls=click.Group, invoke_without_command=True)
@click.option("--port", default=8440, show_default=True, help="The port of this machine; 0: any.")
@click.option(
    "--socket",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="PATH",
    help="Listen at a unix socket, for a proxy in front of it.",
)
@click.option("--url", default="", help="Where people reach it, where a proxy or TLS is in front.")
@click.option("--person-header", "header", default="", metavar="NAME", help="A proxy's, with who.")
@click.option("--listen", default=LOOPBACK, metavar="ADDRESS", help="Of the network; needs TLS.")
@click.option("--cert", "certificate", default="", metavar="FILE", help="The TLS certificate.")
@click.option("--key", default="", metavar="FILE", help="The certificate's private key.")
@click.option("--team", is_flag=True, hidden=True)  # `up --listen`: by the home's settings
@click.option("--api", default="", hidden=True)  # of a host in a fleet, by its own settings
@click.option("--child", is_flag=True, hidden=True)
@click.pass_context
def web(
    ctx: click.Context,
    *,
    port: int,
    path: Path | None,
    url: str,
    header: str,
    listen: str,
    certificate: str,
    key: str,
    team: bool,
    api: str,
    child: bool,
) -> None:
    """Serve the board to a browser, on the desk and on the phone.

    It is reached at http://NAME.localhost:PORT, a name that only this board has. The printed link
    logs you in once; this browser then stays logged in for 30 days.
    """
    if ctx.invoked_subcommand is not None:
        return
    serving = web_server()
    it = app()
    if team:
        settings = serving_settings(it)
        certificate, key, url = settings.certificate, settings.key, settings.url
    at = serving.Listening(
        port=port,
        path=path,
        address=listen,
        url=origin_of(url, WHAT, _in_settings(it) if team else "--url"),
        api=api,
        certificate=certificate,
        key=key,
        header=header,
    )
    if not team:  # `up` has looked
        _check(listen, path, certificate, key, header)
    with serving.opened(at) as socket:
        number = port if path else int(socket.getsockname()[1])
        served = serving.served_at(at, web_logins_of(it).place().host, number)
        web_logins_of(it).reached_at(served.origin)
        _greet(it, served.origin, header, child=child)
        site = serving.site_of(it, served, wake, carry_out=carry_out)
        serving.serve(site, at, socket, with_parent=child)


@web.command()
@click.option("--qr", is_flag=True, help="Draw the link, for a phone's camera.")
@click.option("--person", default="", metavar="NAME", help="Somebody of `lockgate people`.")
@click.option("--minutes", default=1, type=click.IntRange(1, 1440), help="How long it is good.")
@json_option
def login(*, qr: bool, person: str, minutes: int, as_json: bool) -> None:
    """Print a link that logs a browser or a laptop in, once and within a minute.

    A browser opens it; lockgate login on a laptop takes it too. Only an admin makes one for
    somebody else.
    """
    it = app()
    url = web_logins_of(it).place().url
    if not url:
        what, why = "no link was made", "the web board has not been served yet"
        raise Refused(what, why=why, fix="lockgate web")
    made = web_logins_of(it).link(_person(it, person), it.caller, minutes * 60.0)
    link, within = f"{url}/login?link={made}", "a minute" if minutes == 1 else f"{minutes} minutes"
    show({"link": link}, f"{link}\n  it works once, within {within}", as_json=as_json)
    if qr and not as_json:
        echo(_drawn(link))


@web.command()
@click.argument("name")
@click.option("--read-only", is_flag=True, help="It may look, and change nothing.")
@click.option("--revoke", is_flag=True, help="The token of this name is not taken any more.")
@json_option
def token(*, name: str, read_only: bool, revoke: bool, as_json: bool) -> None:
    """Print a token for a program: for /api, /metrics and /mcp. It is shown once."""
    it = app()
    if revoke:
        web_logins_of(it).revoke(name, it.caller)
        show({"revoked": name}, f"token {name} is revoked", as_json=as_json)
        return
    made = web_logins_of(it).token(_person(it, ""), name, it.caller, read_only=read_only)
    show({"name": name, "token": made}, made, as_json=as_json)


@web.command("tokens")
@json_option
def list_tokens(*, as_json: bool) -> None:
    """List the tokens of programs and laptops, with whose they are."""
    it = app()
    must_be_human(it.caller, "no token was shown", Right.ADMIN)
    found = web_logins_of(it).tokens()
    facts = [
        {"name": key.name, "person": key.person, "read_only": key.read_only, "made": key.made}
        | {"expires": key.expires or None}
        for key in found
    ]
    rows = [(one_line(key.name), one_line(key.person), _until(key.expires)) for key in found]
    text = table([("NAME", "PERSON", "UNTIL"), *rows]) if rows else "there are no tokens"
    show(facts, text, as_json=as_json)


def _until(expires: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(expires)) if expires else "it is revoked"


def web_server() -> ModuleType:
    """Imported here because it is an extra, and slow to load."""
    try:
        from lockgate.faces.web import serve
    except ModuleNotFoundError as error:
        why = f"{error.name} is not installed"
        raise BadConfig(WHAT, why=why, fix=INSTALL) from error
    return serve


def _check(listen: str, path: Path | None, certificate: str, key: str, header: str) -> None:
    if header and path is None:
        why = "over TCP anybody can send a header, so that it says nothing of who comes"
        raise Refused(WHAT, why=why, fix="name a socket for the proxy: --socket PATH")
    if listen != LOOPBACK and not (certificate and key):
        why = "on the network a login must be encrypted"
        raise Refused(WHAT, why=why, fix="--cert FILE --key FILE, or --socket PATH and a proxy")


def origin_of(url: str, what: str, named: str) -> str:
    """As browsers say it in the header Host; Refused where it has more than that."""
    if not url:
        return ""
    from lockgate.faces.laptop.server import origin

    found, told = origin(url, what), urlsplit(url)
    fix = f"write {named} as https://HOST[:PORT]"
    if told.scheme not in {"http", "https"}:
        raise Refused(what, why=f"{url!r} is no address", fix=fix)
    if told.path.strip("/") or told.query or told.fragment:
        raise Refused(what, why=f"{url!r} has more than a host and a port", fix=fix)
    return found


def _in_settings(it: App) -> str:
    return f"[server] url in {it.home}/settings.toml"


def _greet(it: App, origin: str, header: str, *, child: bool) -> None:
    if child or header:
        echo(f"the web board is served at {origin}", err=True)
        return
    link = web_logins_of(it).link(_person(it, ""), it.caller)
    echo(f"the web board is served at {origin}\n  log in once: {origin}/login?link={link}")


def _person(it: App, name: str) -> str:
    """The caller, or the person that they name."""
    if not name:
        return it.caller.by
    known = [person.name for person in it.members.all(it.caller)]
    if name not in known:
        what, why = "no link was made", f"nobody is called {name!r}"
        raise Refused(what, why=why, fix=f"lockgate people add {name} --may work")
    return name


def _drawn(link: str) -> str:
    import io

    try:
        import segno
    except ModuleNotFoundError as error:
        raise BadConfig("no code was drawn", why="segno is missing", fix=INSTALL) from error
    out = io.StringIO()
    segno.make(link, error="l").terminal(out, compact=True)
    return out.getvalue()


def served_at(it: App, listen: str) -> tuple[str, int]:
    """The host and the port; Refused where people's logins would not be encrypted."""
    what = "nothing was started"
    host, _, number = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not number.isdecimal() or int(number) > LAST_PORT:
        fix = "name both, as in --listen 0.0.0.0:8443"
        raise Refused(what, why=f"{listen!r} is not HOST:PORT", fix=fix)
    web_server()  # BadConfig where it is not installed
    settings = serving_settings(it)
    if not settings.certificate and host != LOOPBACK:
        why = "on the network a login must be encrypted, and there is no certificate"
        fix = f'write to {it.home}/settings.toml: [server] certificate = "FILE", key = "FILE"'
        raise Refused(what, why=why, fix=fix)
    if host in EVERYWHERE and not settings.url:
        why = f"people reach {host} by a name that this command does not know"
        fix = f'write to {it.home}/settings.toml: [server] url = "https://lockgate.example.org"'
        raise Refused(what, why=why, fix=fix)
    if settings.url and not settings.url.lower().startswith("https://"):
        why = f"[server] url is {settings.url!r}, and must begin with https://"
        raise Refused(what, why=why, fix=f"change it in {it.home}/settings.toml")
    origin_of(settings.url, what, _in_settings(it))
    return host, int(number)
