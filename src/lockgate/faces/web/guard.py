"""Who may ask the web board for what: exact hosts, our own origin, a login or a token.

A cookie belongs to a host name and to every port of it, so that the board has a name of its own:
a server that an agent starts on this machine never gets the board's cookie.
"""

import asyncio
import hmac
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from http.cookies import CookieError, SimpleCookie

from msgspec import Struct, field
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope
from starlette.types import Send as Sending

from lockgate.errors import LockgateError

COOKIE = "lockgate"
LARGEST = 1 << 20  # bytes of what is sent to us
ARRIVES = 10.0  # seconds in which a request is here whole
WRONG, WITHIN = 10, 60.0  # wrong tries in so many seconds
READS = frozenset({"GET", "HEAD"})
TOKENS = ("/api/", "/metrics", "/mcp", "/feed", "/people/")  # where a program's token is taken
CALL = "/people/call"  # a person's command
OPEN = ("/static/", "/login")  # what can be seen without a login
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with no-referrer a form of ours has no origin
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Served(Struct, frozen=True, kw_only=True):
    """How the board is reached: its only origin, and what of this machine leads there."""

    origin: str
    also: frozenset[str] = frozenset()  # hosts that are sent on to the origin
    api: str = ""  # the host as other hosts of a fleet name it, which send people's commands on
    header: str = ""  # that names the person, as a proxy on a unix socket tells it

    @property
    def host(self) -> str:
        return self.origin.partition("://")[2]

    @property
    def secure(self) -> bool:
        return self.origin.startswith("https://")

    @property
    def cookie(self) -> str:
        return f"__Host-{COOKIE}" if self.secure else COOKIE


class Visitor(Struct, frozen=True, kw_only=True):
    """Who asks; `key` is what their forms must bring along."""

    person: str
    how: str
    key: str = ""
    read_only: bool = False


class Tries(Struct):
    """Wrong tries to get in: after ten within a minute nobody may try for a while."""

    times: deque[float] = field(default_factory=deque[float])
    now: Callable[[], float] = time.monotonic

    def are_too_many(self) -> bool:
        while self.times and self.times[0] < self.now() - WITHIN:
            self.times.popleft()
        return len(self.times) >= WRONG

    def note(self) -> None:
        self.times.append(self.now())


class Guard:
    """Stands in front of every route; what it lets through has a visitor, or needs none."""

    def __init__(
        self,
        app: ASGIApp,
        served: Served,
        identify: Callable[[str, str], Visitor | None],
        turned_away: Callable[[Scope], Response],
        tries: Tries,
    ) -> None:
        self.app, self.served, self.identify = app, served, identify
        self.turned_away, self.tries = turned_away, tries

    async def __call__(self, scope: Scope, receive: Receive, send: Sending) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        if scope["type"] != "http":
            return
        try:
            answer = self._refusal(scope)
        except LockgateError as error:  # the database is down: who asks is not known
            answer = JSONResponse(told(error), 503)
        if answer is None:
            await self.app(scope, _limited(receive), _with_headers(send, scope["path"]))
        else:
            await answer(scope, receive, _with_headers(send, scope["path"]))

    def _refusal(self, scope: Scope) -> Response | None:
        headers, method, path = Headers(scope=scope), str(scope["method"]), str(scope["path"])
        hosts, sent_on = headers.getlist("host"), self._is_sent_on(scope, headers)
        if hosts != [self.served.host] and not sent_on:
            return self._elsewhere(scope, hosts)
        if method not in READS | {"POST"}:
            return PlainTextResponse("not allowed", 405, {"allow": "GET, HEAD, POST"})
        if _size(headers) > LARGEST:
            return PlainTextResponse("too large", 413)
        token = self._token(headers)
        if method == "POST" and not token and not self._is_ours(headers):
            return PlainTextResponse("this request comes from another site", 403)
        return self._stranger(scope, headers, token, path)

    def _token(self, headers: Headers) -> str:
        """A program's; a proxy that asks for passwords may hand on what people told it."""
        said = headers.get("authorization", "")
        return said if not self.served.header or said.lower().startswith("bearer ") else ""

    def _is_sent_on(self, scope: Scope, headers: Headers) -> bool:
        """A person's command by way of another host, which sends their token along."""
        is_token = headers.get("authorization", "").lower().startswith("bearer ")
        named = bool(self.served.api) and headers.getlist("host") == [self.served.api]
        return named and is_token and (scope["method"], scope["path"]) == ("POST", CALL)

    def _elsewhere(self, scope: Scope, hosts: Iterable[str]) -> Response:
        """A name of this machine is sent on; the cookie is never set or read there."""
        known = [it for it in hosts if it in self.served.also]
        if known and scope["method"] in READS:
            query = scope["query_string"].decode("latin-1")
            asked = scope.get("raw_path", b"/").decode("latin-1").partition("?")[0]
            path = asked.lstrip("/\\") + (f"?{query}" if query else "")
            return RedirectResponse(f"{self.served.origin}/{path}", 307)
        return PlainTextResponse(f"open it at {self.served.origin}", 421)

    def _is_ours(self, headers: Headers) -> bool:
        site = headers.get("sec-fetch-site", "same-origin")
        return headers.getlist("origin") == [self.served.origin] and site == "same-origin"

    def _stranger(self, scope: Scope, headers: Headers, token: str, path: str) -> Response | None:
        visitor = None
        if token:
            visitor = self._with_token(token, path)
            if visitor is None and self.tries.are_too_many():
                return PlainTextResponse("too many wrong tries; wait a minute", 429)
            if visitor is None:
                self.tries.note()
                return JSONResponse(_no(self.served.origin), 401)
        elif self.served.header:
            named = headers.getlist(self.served.header)
            visitor = self.identify("header", named[0]) if len(named) == 1 else None
        else:
            found = _cookie(headers, self.served.cookie)
            visitor = self.identify("login", found) if found else None
        scope.setdefault("state", {})["visitor"] = visitor
        if visitor is None and not path.startswith(OPEN):
            return self.turned_away(scope)
        return None

    def _with_token(self, token: str, path: str) -> Visitor | None:
        kind, _, value = token.partition(" ")
        if kind.lower() != "bearer" or not path.startswith(TOKENS):
            return None
        return self.identify("token", value.strip())


def same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def told(error: LockgateError) -> dict[str, object]:
    return {"error": {"what": error.what, "why": error.why, "fix": error.fix}}


def _no(origin: str) -> dict[str, object]:
    why = "the token is not known here: it is wrong, has expired or was revoked"
    fix = f"on a laptop: lockgate login {origin}; for a program: lockgate web token NAME"
    return {"error": {"what": "nothing was done", "why": why, "fix": fix}}


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie("; ".join(headers.getlist("cookie")))
    except CookieError:
        return ""
    return found[name].value if name in found else ""


def _size(headers: Mapping[str, str]) -> int:
    said = headers.get("content-length", "0")
    return int(said) if said.isascii() and said.isdecimal() and len(said) < 20 else LARGEST + 1  # noqa: PLR2004 - more digits than any length


def _limited(receive: Receive) -> Receive:
    """What comes without a length is counted as it comes, and all of it must come soon."""
    left, until, whole = LARGEST, time.monotonic() + ARRIVES, False

    async def limited() -> Message:
        nonlocal left, whole
        try:
            message = await asyncio.wait_for(
                receive(), None if whole else max(until - time.monotonic(), 0.01)
            )
        except TimeoutError:
            return {"type": "http.disconnect"}
        left -= len(message.get("body", b""))
        whole = not message.get("more_body", False)
        return {"type": "http.disconnect"} if left < 0 else message

    return limited


def _with_headers(send: Sending, path: str) -> Sending:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message.setdefault("headers", []))
            for name, value in HEADERS.items():
                headers[name] = value
            if not path.startswith("/static/"):
                headers["cache-control"] = "no-store"
        await send(message)

    return sending
