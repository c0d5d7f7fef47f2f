"""A person's command sent on to another host's server, and its answer as it comes."""

import http.client
import ssl
from collections.abc import Generator
from contextlib import closing
from urllib.parse import urlsplit

from lockgate.errors import Unavailable

CALL = "/people/call"
FORWARDED = "lockgate-forwarded"  # a header: what has it is not sent on again
PROTOCOL = "1"
BEGINS, SILENT = 10.0, 40.0  # seconds until it answers, and without a word; a beat comes every 15
SENT = {"Lockgate-Protocol": PROTOCOL, "Content-Type": "application/octet-stream"}
WHAT = "nothing was done"


def sent_on(url: str, token: str, request: bytes) -> Generator[bytes]:
    """The fields of the answer, each with the NUL at its end; Unavailable where none comes."""
    said = {**SENT, FORWARDED: "1", "Authorization": f"Bearer {token}", "Connection": "close"}
    try:
        with closing(_connection(url)) as connection:
            connection.request("POST", CALL, request, {**said, "Host": urlsplit(url).netloc})
            answer = connection.getresponse()
            if answer.status != http.HTTPStatus.OK:
                raise _unreached(url, f"it said {answer.status}")
            if connection.sock:
                connection.sock.settimeout(SILENT)
            rest = b""
            while chunk := answer.read1(1 << 16):
                *fields, rest = (rest + chunk).split(b"\0")
                yield from (it + b"\0" for it in fields)
    except (OSError, http.client.HTTPException) as error:
        raise _unreached(url, str(error)) from error


def _connection(url: str) -> http.client.HTTPConnection:
    """Plain http only to this machine: a person's token goes along."""
    at = urlsplit(url)
    host = at.hostname or ""
    if at.scheme == "http" and host == "127.0.0.1":
        return http.client.HTTPConnection(host, at.port, timeout=BEGINS)
    context = ssl.create_default_context()
    return http.client.HTTPSConnection(host, at.port, timeout=BEGINS, context=context)


def _unreached(url: str, why: str) -> Unavailable:
    told = f"the host that has the task's files, {url}, was not reached: {why}"
    return Unavailable(WHAT, why=told, fix="see that it is up: lockgate fleet status")
