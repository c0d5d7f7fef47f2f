"""A team's server: how it is set up, and what people on other machines ask it for."""

import ssl
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from lockgate.adapters.forwarding import sent_on
from lockgate.adapters.sessions.runner.command_socket import parsed_request
from lockgate.adapters.user_files import serving_of
from lockgate.bootstrap.app import App
from lockgate.bootstrap.hosts import start_of
from lockgate.core.config.clones import Clone
from lockgate.core.hosts import Host
from lockgate.errors import BadConfig, Refused
from lockgate.ports import Call, Line
from lockgate.ports.keys import Serving


def serving_settings(it: App) -> Serving:
    """`[server]` of settings.toml; BadConfig where its certificate cannot be used."""
    found = serving_of(it.home)
    if found.certificate or found.key:
        check_certificate(found.certificate, found.key)
    return found


def ssh_of(it: App) -> str:
    """What ssh calls this machine; its certificate is not looked at."""
    return serving_of(it.home).ssh


def check_certificate(certificate: str, key: str) -> None:
    what, fix = "nothing was served", "see certificate and key of [server] in settings.toml"
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            certificate, key or None, password=lambda: ""
        )
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        told = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        why = f"certificate {certificate!r} with key {key!r} cannot be used: {told}"
        raise BadConfig(what, why=why, fix=fix) from error


def asked_from_afar(raw: bytes, line: Line) -> tuple[Call, Clone] | None:
    """The same request as at the door; the token in it counts for nothing."""
    asked = parsed_request(raw)
    if asked is None:
        return None
    call = Call(
        argv=asked.argv,
        token="",
        directory=Path("/"),
        stdin=asked.stdin,
        path="",
        lively=asked.lively,
        line=line,
        columns=asked.columns,
    )
    return call, clone_in(asked.cwd)


def clone_in(query: str) -> Clone:
    """What a laptop tells of the clone that it is in."""
    told = dict(parse_qsl(query))
    return Clone(**{name: told.get(name, "") for name in Clone.__struct_fields__})


def root_of_clone(it: App, clone: Clone) -> Callable[[], Path]:
    """Looked for when a command asks which project is meant."""
    return lambda: Path(it.projects.of_clone(clone, serving_of(it.home).projects).root)


# Among several hosts one has a task's files.


def sent_elsewhere(it: App, raw: bytes, token: str) -> Iterable[bytes] | None:
    """The answer of the host that has the files which a command needs; None where we have them."""
    there = _host_with_files(it, raw)
    if there is None or there.boot == start_of(it.home):
        return None
    if not there.api:
        why = f"host {there.name} has the task's files, and serves nobody"
        fix = f"have it serve people: lockgate worker --listen HOST:PORT, on {there.name}"
        raise Refused("nothing was done", why=why, fix=fix)
    return sent_on(there.api, token, raw)


def seat_of(it: App, raw: bytes) -> str:
    """What ssh calls the host that has a task's terminal, as far as it has said that."""
    there = _host_with_files(it, raw)
    return (there.ssh or urlsplit(there.api).hostname or "") if there else ""


def _host_with_files(it: App, raw: bytes) -> Host | None:
    asked = parsed_request(raw)
    if asked is None:
        return None
    return it.hosts.has_files(asked.argv, it.store, it.caller)
