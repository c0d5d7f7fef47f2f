"""The server that a laptop is logged in at: what is remembered of it, and a connection to it.

A token is sent only where the server's certificate was checked, or to this machine itself.
"""

import hashlib
import hmac
import http.client
import json
import os
import re
import ssl
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from typing import NamedTuple, cast
from urllib.parse import urlsplit

from lockgate import __version__
from lockgate.errors import LockgateError, Refused, Unavailable
from lockgate.faces import client

VARIABLE = "LOCKGATE_SERVER"
CONNECTS, ANSWERS = 5.0, 10.0  # seconds until somebody is there, and until they have begun
SILENT = 40.0  # seconds without a word after which a server is lost; a beat comes every 15
PATIENT = (120.0, 120.0)  # seconds: until an answer begins, and without a word of it
LARGEST_ANSWER = 1 << 20  # bytes of an answer that is no stream
PROTOCOL = "1"  # of the requests below /people/
NOTHING = "nothing was done"
UNKNOWN = "it is not known whether the command was carried out"
DIGITS = 64  # of a fingerprint
LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
HOST = re.compile(rf"{LABEL}(?:\.{LABEL})*\.?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")


class Login(NamedTuple):
    """A server's address, who we are there, and by what it knows us."""

    url: str
    token: str = ""
    person: str = ""
    fingerprint: str = ""  # of its certificate, where the system's store is not asked
    ssh: str = ""  # what ssh calls the server


# What is remembered: `login.json` in the home, which only its owner reads.


def chosen(environ: Mapping[str, str] = os.environ) -> Login:
    """The login that LOCKGATE_SERVER names, or the last one."""
    named, current = environ.get(VARIABLE, ""), str(_known().get("current", ""))
    wanted = address(named) if named else current
    if not wanted:
        why, fix = "nobody is logged in at a server here", "lockgate login URL"
        raise Refused(NOTHING, why=why, fix=fix)
    found = kept_for(wanted)
    if found is None:
        fix = f"lockgate login {wanted}"
        if current not in {"", wanted}:
            fix += f", with --same-as {current} where both are hosts of one fleet"
        why, fix = f"there is no login at {wanted}", f"{fix}, or {VARIABLE}=off"
        raise Refused(NOTHING, why=why, fix=f"{fix} for this machine's own home")
    return found


def kept_for(url: str) -> Login | None:
    told = _servers(_known()).get(url)
    if told is None:
        return None
    words = {name: str(told.get(name, "")) for name in Login._fields if name != "url"}
    return Login(url=url, **words)


def remember(login: Login, *, only_here: bool = False) -> None:
    """In place of the one before, which the server takes no more: wherever that was kept."""
    servers = _servers(_known())
    before = servers.get(login.url, {}).get("token")
    for url in [] if only_here else _with_token(servers, before):
        servers[url] |= {"token": login.token, "person": login.person}
    servers[login.url] = {k: v for k, v in login._asdict().items() if k != "url" and v}
    _write({"current": login.url, "servers": servers})


def forget(login: Login) -> list[str]:
    """The addresses for which it was kept: its token is good at none of them any more."""
    known = _known()
    servers = _servers(known)
    others = [it for it in _with_token(servers, login.token) if it != login.url]
    left = {url: it for url, it in servers.items() if url not in {login.url, *others}}
    if left:
        current = str(known.get("current", ""))
        _write({"current": current if current in left else next(iter(left)), "servers": left})
    else:
        os.unlink(client.login_file())  # noqa: PTH108 - pathlib is slow to load
    return [login.url, *others]


def _with_token(servers: Mapping[str, Mapping[str, object]], token: object) -> list[str]:
    return [url for url, it in servers.items() if token and it.get("token") == token]


def _servers(known: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """What is kept for each address."""
    told = cast("dict[str, object]", known.get("servers", {}))
    return {k: cast("dict[str, object]", v) for k, v in told.items() if isinstance(v, dict)}


def _known() -> dict[str, object]:
    path = client.login_file()
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - as above
            found: object = json.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        fix = f"remove {path}, then: lockgate login URL"
        raise Unavailable(NOTHING, why=f"{path} was not read: {error}", fix=fix) from error
    told = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    return told if isinstance(told.get("servers"), dict) else {}


def _write(known: Mapping[str, object]) -> None:
    """Under another name first: it is there whole, or as it was."""
    path = client.login_file()
    what = "the login was not kept"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120 - as above
        descriptor = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.chmod(f"{path}.new", 0o600)  # noqa: PTH101 - as above
            json.dump(known, file, indent=1)
        os.replace(f"{path}.new", path)  # noqa: PTH105 - as above
    except OSError as error:
        fix = f"see that {os.path.dirname(path)} can be written"  # noqa: PTH120 - as above
        raise Unavailable(what, why=str(error), fix=fix) from error


# A server's address and its certificate.


def address(url: str, what: str = NOTHING) -> str:
    """The origin that is meant; Refused where a token would go there in the clear."""
    found = origin(url, what)
    host = urlsplit(found).hostname or ""
    if found.startswith("http://") and not is_loopback(host):
        why = f"{host} is reached by plain http, where anybody on the way could read the token"
        raise Refused(what, why=why, fix=f"use https://{host}")
    return found


def origin(url: str, what: str = NOTHING) -> str:
    """In small letters, without the usual port and what is behind it; Refused where it is none."""
    fix = "name it as https://HOST[:PORT]"
    try:
        told = urlsplit(url if "://" in url else f"https://{url}")
        port = told.port
    except ValueError as error:
        why = f"{url!r} is no address of a server: {error}"
        raise Refused(what, why=why, fix=fix) from error
    host = told.hostname or ""
    if (
        told.scheme not in {"http", "https"}
        or not HOST.fullmatch(host)
        or told.username is not None
    ):
        raise Refused(what, why=f"{url!r} is no address of a server", fix=fix)
    usual = port in {None, 443 if told.scheme == "https" else 80}
    shown = f"[{host}]" if ":" in host else host
    return f"{told.scheme}://{shown}" + ("" if usual else f":{port}")


def is_loopback(host: str) -> bool:
    numbers = host.split(".")
    own = numbers[0] == "127" and len(numbers) == len("1234") and all(map(str.isdecimal, numbers))
    return own or host in {"localhost", "::1"} or host.endswith(".localhost")


def fingerprint(text: str) -> str:
    """SHA-256 as `openssl x509 -fingerprint -sha256` prints it, or as plain digits."""
    found = text.rpartition("=")[2].replace(":", "").strip().lower()
    if len(found) != DIGITS or set(found) - set("0123456789abcdef"):
        why = f"{text!r} is no SHA-256 fingerprint, which has 64 digits of 0-9 and a-f"
        fix = "on the server: openssl x509 -in CERTIFICATE -noout -fingerprint -sha256"
        raise Refused("nobody was logged in", why=why, fix=fix)
    return found


class _WrongCertificate(Exception):
    """It has another fingerprint than the one that was named."""


class _Pinned(http.client.HTTPSConnection):
    """Nothing is sent before the certificate is seen to be the one that was named."""

    pin = ""

    def connect(self) -> None:
        super().connect()
        shown = cast("ssl.SSLSocket", self.sock).getpeercert(binary_form=True) or b""
        found = hashlib.sha256(shown).hexdigest()
        if not hmac.compare_digest(found, self.pin):
            self.close()
            raise _WrongCertificate(found)


def _connection(login: Login) -> http.client.HTTPConnection:
    at = urlsplit(address(login.url))
    host = at.hostname or ""
    if at.scheme == "http":
        host = "127.0.0.1" if host.endswith(".localhost") else host
        return http.client.HTTPConnection(host, at.port, timeout=CONNECTS)
    context = ssl.create_default_context()
    if not login.fingerprint:
        return http.client.HTTPSConnection(host, at.port, timeout=CONNECTS, context=context)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # this one certificate counts, and nobody's signature
    pinned = _Pinned(host, at.port, timeout=CONNECTS, context=context)
    pinned.pin = login.fingerprint
    return pinned


# One request, and what goes wrong with it in words.


@contextmanager
def asked(
    login: Login,
    path: str,
    body: bytes,
    headers: Mapping[str, str] | None = None,
    patience: tuple[float, float] | None = None,
) -> Generator[http.client.HTTPResponse]:
    """The answer, whose body is still to be read; LockgateError for any but a good one."""
    begins, goes_on = patience or (ANSWERS, SILENT)
    said = {"Host": urlsplit(login.url).netloc, "User-Agent": f"lockgate/{__version__}"}
    said |= {"Connection": "close", "Lockgate-Protocol": PROTOCOL, **(headers or {})}
    if login.token:
        said["Authorization"] = f"Bearer {login.token}"
    with closing(_connection(login)) as connection:
        try:
            connection.connect()
            at = connection.sock
            at.settimeout(begins)
            connection.request("POST", path, body, said)
        except (OSError, http.client.HTTPException, _WrongCertificate) as error:
            raise in_words(login, error) from error
        try:
            answer = connection.getresponse()
            at.settimeout(goes_on)
        except (OSError, http.client.HTTPException) as error:
            raise unknown(broken_off(login, error)) from error
        with answer:
            if answer.status not in {200, 202}:
                raise _refusal(login, answer)
            yield answer


def in_words(login: Login, error: Exception) -> LockgateError:
    """Why the server was not reached, and what to do about it."""
    renew = "on the server: openssl x509 -in CERTIFICATE -noout -fingerprint -sha256, then"
    again = f"lockgate login {login.url}"
    if isinstance(error, _WrongCertificate):
        why = f"{login.url} shows another certificate than the one that was named: {error}"
        fix = f"ask who runs it; where it has a new one, {renew}: {again} --fingerprint SHA256"
        return Refused(NOTHING, why=why, fix=fix)
    if isinstance(error, ssl.SSLCertVerificationError):
        why = f"the certificate of {login.url} is not good: {error.verify_message}"
        return Refused(NOTHING, why=why, fix=f"{renew}: {again} --fingerprint SHA256")
    if isinstance(error, TimeoutError):
        why = f"{login.url} does not answer"
    elif isinstance(error, ssl.SSLError):
        why = f"{login.url} does not speak TLS as it should: {error.reason or error}"
    else:
        told = getattr(error, "strerror", None) or str(error) or type(error).__name__
        why = f"{login.url} was not reached: {told}"
    fix = "see that the server is up (there: lockgate status) and that you are on its network"
    return Unavailable(NOTHING, why=why, fix=fix)


def broken_off(login: Login, error: Exception) -> str:
    """Why an answer did not come whole, once the server had the request."""
    if isinstance(error, TimeoutError):
        return f"{login.url} does not answer"
    told = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
    return f"{login.url} broke its answer off: {told}"


def unknown(why: str) -> Unavailable:
    """The server had the whole request, and did not say how the command ended."""
    return Unavailable(UNKNOWN, why=why, fix="look: lockgate status")


_BY_STATUS = {
    404: ("it is no Lockgate server, or an older one", "see that the address is right"),
    413: ("the request has more than 1 MB", "name a smaller file"),
    421: ("it is reached by another address: {told}", "log in again with that address"),
    429: ("there were too many wrong tries", "wait a minute, then try again"),
    503: ("it has too much to do now: {told}", "try again in a minute"),
}


def _refusal(login: Login, answer: http.client.HTTPResponse) -> LockgateError:
    """In the server's words where it has said any."""
    try:
        raw = answer.read(LARGEST_ANSWER)
    except (OSError, http.client.HTTPException) as error:
        return in_words(login, error)
    try:
        told = json.loads(raw)["error"]
        return Refused(str(told["what"]), why=str(told["why"]), fix=str(told["fix"]))
    except (ValueError, KeyError, TypeError):
        text = raw.decode("utf-8", "replace").strip()[:200]
    why, fix = _BY_STATUS.get(answer.status, (f"it said {answer.status}: {{told}}", "try again"))
    return Refused(NOTHING, why=f"{login.url}: {why.format(told=text)}", fix=fix)
