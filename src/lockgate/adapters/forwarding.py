"""A person's command sent on to another host's server, and its answer as it comes."""

import http.client
import ssl
from collections.abc import Generator
from contextlib import closing
from urllib.parse import urlsplit

from lockgate.errors import Unavailable

CALL = "/people/call"
LOOPBACK = "127.0.0.1"
USUAL = {"http": 80, "https": 443}  # ports
FORWARDED = "lockgate-forwarded"  # a header: what has it is not sent on again
PROTOCOL = "1"
BEGINS, SILENT = 10.0, 40.0  # seconds until it answers, and without a word; a beat comes every 15
SENT = {"Lockgate-Protocol": PROTOCOL, "Content-Type": "application/octet-stream"}
NOTHING = "nothing was done"
UNKNOWN = "it is not known whether the command was carried out"


def sent_on(url: str, token: str, request: bytes) -> Generator[bytes]:
    """The fields of the answer, each with the NUL at its end; Unavailable where it has no end."""
    what, ended = NOTHING, False
    try:
        with closing(_connection(url)) as connection:
            _send(connection, url, token, request)
            what, rest = UNKNOWN, b""
            answer = _answer(connection, url)
            while chunk := answer.read1(1 << 16):
                *fields, rest = (rest + chunk).split(b"\0")
                ended = ended or any(it.startswith(b"x") for it in fields)
                yield from (it + b"\0" for it in fields)
    except (OSError, http.client.HTTPException) as error:
        raise _unreached(what, url, str(error)) from error
    if not ended:
        raise _unreached(what, url, "it ended before it had answered")


def _send(connection: http.client.HTTPConnection, url: str, token: str, request: bytes) -> None:
    said = {**SENT, FORWARDED: "1", "Authorization": f"Bearer {token}", "Connection": "close"}
    connection.request("POST", CALL, request, {**said, "Host": name_of(url)})


def name_of(url: str) -> str:
    """For the header Host: in small letters, and without the port that the scheme has anyway."""
    at = urlsplit(url)
    host = at.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    return shown if at.port in {None, USUAL.get(at.scheme)} else f"{shown}:{at.port}"


def _answer(connection: http.client.HTTPConnection, url: str) -> http.client.HTTPResponse:
    at = connection.sock
    answer = connection.getresponse()
    at.settimeout(SILENT)
    if answer.status != http.HTTPStatus.OK:
        raise _unreached(NOTHING, url, f"it said {answer.status}")
    return answer


def _connection(url: str) -> http.client.HTTPConnection:
    """Plain http only to this machine: a person's token goes along."""
    at = urlsplit(url)
    host = at.hostname or ""
    if at.scheme == "http" and (host == LOOPBACK or host.endswith(".localhost")):
        return http.client.HTTPConnection(LOOPBACK, at.port, timeout=BEGINS)
    context = ssl.create_default_context()
    return http.client.HTTPSConnection(host, at.port, timeout=BEGINS, context=context)


def _unreached(what: str, url: str, why: str) -> Unavailable:
    host = f"the host that has the task's files, {url},"
    if what == UNKNOWN:
        return Unavailable(what, why=f"{host} did not answer: {why}", fix="look: lockgate status")
    fix = "see that it is up: lockgate fleet status"
    return Unavailable(what, why=f"{host} was not reached: {why}", fix=fix)
