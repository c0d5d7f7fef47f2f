"""A GitHub for the tests: a loopback server over a real bare repository.

Every exchange is held against GitHub's own description (contract.py); what does not fit is refused
with code 400 and kept in `violations`, which every test must find empty. People act by `people`
(people.py), faults are planned in `faults` (faults.py), and `log` has one line for each request.
"""

import base64
import hashlib
import hmac
import json
import re
import socket
import threading
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from email.message import Message
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit
from uuid import uuid4

from tests.forge import graph
from tests.forge.bare import Bare
from tests.forge.contract import (
    CALLS,
    BrokenContract,
    Contract,
    Exchange,
    load_contract,
    load_schema,
)
from tests.forge.faults import HAPPENS, Fault, Faults, Kind
from tests.forge.git_http import serve_git
from tests.forge.people import People
from tests.forge.rest import Answer, Ask, perform
from tests.forge.state import BOT, Github, Token

Json = dict[str, Any]
FILES: Mapping[str, str] = {"answer.txt": "nothing\n"}
TOKEN = "ghs_testserver"
SECRET = "it is a secret"
LIMIT = 5000
PARAMETER = re.compile(r"\{(\w+)\}")
SLASHED = frozenset({"ref", "branch", "name"})  # names in a path that may hold slashes


def _pattern(template: str) -> re.Pattern[str]:
    pieces = PARAMETER.sub(
        lambda it: f"(?P<{it[1]}>{'.+' if it[1] in SLASHED else '[^/]+'})", template
    )
    return re.compile(pieces + r"\Z")


PATTERNS = tuple(
    (method, template, _pattern(template))
    for method, template in sorted(CALLS, key=lambda call: call[1].count("/"), reverse=True)
)


@dataclass(frozen=True)
class Seen:
    """One request, as the server got it, and how it answered."""

    method: str
    path: str
    status: int
    who: str
    body: Json | None = None

    def __str__(self) -> str:
        return f"{self.status} {self.method} {self.path}"


@dataclass
class Bucket:
    remaining: int = LIMIT
    reset: int = 0


@dataclass
class Hook:
    """Where webhooks go, and those that have not been sent yet."""

    url: str = ""
    secret: str = SECRET
    waiting: list[tuple[str, Json, str]] = field(default_factory=list)


class Hub:
    """The server, in a thread; use it as a context."""

    def __init__(
        self,
        place: Path,
        files: Mapping[str, str] = FILES,
        *,
        owner: str = "octo",
        name: str = "demo",
    ) -> None:
        self.contract: Contract = load_contract()
        load_schema()
        self.state = Github(Bare(place / owner / f"{name}.git", files), owner, name)
        self.state.tokens[TOKEN] = Token(BOT, "app")
        self.state.hint = self._hint
        self.people = People(self.state)
        self.faults = Faults()
        self.violations: list[str] = []
        self.log: list[Seen] = []
        self.buckets = {"core": Bucket(), "graphql": Bucket()}
        self.hook = Hook()
        self.lock = threading.RLock()
        self.ended = threading.Event()
        self._old: dict[str, Answer] = {}
        self._server = _Server(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_raised: object) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """The address of the API."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def git_url(self) -> str:
        """The address that `git push` takes, with a token as the password."""
        return f"{self.url}/{self.state.owner}/{self.state.name}.git"

    @property
    def repository(self) -> Path:
        return self.state.bare.path

    def did(self, method: str, ending: str = "") -> list[Seen]:
        """The requests of a method whose path ends so."""
        return [
            it
            for it in self.log
            if it.method == method and it.path.split("?", maxsplit=1)[0].endswith(ending)
        ]

    def revoke(self, token: str = TOKEN) -> None:
        self.state.tokens.pop(token, None)

    # --- webhooks ---

    def _hint(self, event: str, action: str, number: int) -> None:
        body: Json = {
            "action": action,
            "repository": {"full_name": f"{self.state.owner}/{self.state.name}"},
        }
        if number in self.state.pulls:
            body |= {"number": number, "pull_request": {"number": number}}
        elif number:
            body |= {"issue": {"number": number}}
        self.hook.waiting.append((event, body, str(uuid4())))

    def send_webhooks(self, how: str = "once") -> list[int]:
        """Sends what waits: once, lost, doubled, disordered or forged. The codes of the answers."""
        waiting, self.hook.waiting = self.hook.waiting, []
        ways: dict[str, Callable[[], list[tuple[str, Json, str]]]] = {
            "once": lambda: waiting,
            "forged": lambda: waiting,
            "lost": list,
            "doubled": lambda: [it for it in waiting for _ in range(2)],
            "disordered": lambda: waiting[::-1],
        }
        secret = "someone else's" if how == "forged" else self.hook.secret
        return [self.send_webhook(*it, secret=secret) for it in ways[how]()]

    def send_webhook(self, event: str, body: Json, delivery: str, *, secret: str = SECRET) -> int:
        raw = json.dumps(body).encode()
        signature = hmac.new(secret.encode(), raw, hashlib.sha256).hexdigest()
        request = urllib.request.Request(  # noqa: S310  # the test's own address
            self.hook.url,
            data=raw,
            headers={
                "Content-Type": "application/json",
                "X-GitHub-Event": event,
                "X-GitHub-Delivery": delivery,
                "X-Hub-Signature-256": f"sha256={signature}",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    # --- one request ---

    def answer(self, method: str, target: str, headers: Message, raw: bytes) -> Answer | Fault:
        """What is answered, or the fault that is to be played."""
        with self.lock:
            fault = self.faults.take(method, target)
            if fault is not None and fault.kind not in HAPPENS:
                self._note(method, target, 0, "", None)
                return fault
            body: Json | None = json.loads(raw) if raw else None
            token = self._token(headers)
            found = self._carry_out(method, target, token, body)
            found = self._conditional(method, target, headers, found, fault)
            self._note(method, target, found.status, token.login if token else "", body)
            if fault is not None and fault.kind is not Kind.STALE:
                return (
                    fault if fault.kind is not Kind.CUT else Answer(-1, found.body, found.headers)
                )
            return found

    def _note(self, method: str, target: str, status: int, who: str, body: Json | None) -> None:
        self.log.append(Seen(method, target, status, who, body))

    def _token(self, headers: Message) -> Token | None:
        kind, _, value = headers.get("Authorization", "").partition(" ")
        if kind.lower() not in {"bearer", "token"}:
            return None
        if value.count(".") == 2:  # an App's own signature
            return Token(BOT, "app") if self._counts_now(value) else None
        return self.state.tokens.get(value)

    def _counts_now(self, signed: str) -> bool:
        """By the server's clock, as GitHub has it: not from the future, not ended, ten minutes."""
        part = signed.split(".")[1]
        facts = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        now = self.state.date().timestamp()
        return bool(facts["iat"] <= now < facts["exp"] <= now + 600)

    def _carry_out(
        self, method: str, target: str, token: Token | None, body: Json | None
    ) -> Answer:
        if token is None:
            return Answer(401, {"message": "Bad credentials", "status": "401"})
        bucket = "graphql" if target == "/graphql" else "core"
        if self.buckets[bucket].remaining <= 0:
            return Answer(
                403,
                {"message": "API rate limit exceeded for installation ID 9."},
                self._rate(bucket),
            )
        self.state.settle()
        if target == "/graphql":
            return self._graphql(token, body or {})
        try:
            return self._rest(method, target, token, body)
        except BrokenContract as broken:
            self.violations.append(str(broken))
            return Answer(400, {"message": f"against GitHub's description: {broken}"})

    def _rest(self, method: str, target: str, token: Token, body: Json | None) -> Answer:
        exchange = self._exchange(method, target, body)
        self.contract.check_request(exchange)
        if exchange.template == "/rate_limit":
            answer = Answer(200, self._limits())
        elif (
            exchange.path.get("owner", self.state.owner),
            exchange.path.get("repo", self.state.name),
        ) != (
            self.state.owner,
            self.state.name,
        ):
            answer = Answer(404, {"message": "Not Found"})
        else:
            answer = perform(Ask(self.state, exchange, token, lambda id: f"{self.url}/logs/{id}"))
        answer = self._page(exchange, answer)
        filled = self.contract.filled(exchange, answer.status, answer.body)
        if answer.status not in {403, 404}:  # codes that GitHub has everywhere and lists nowhere
            self.contract.check_answer(exchange, answer.status, filled)
        return Answer(answer.status, filled, answer.headers)

    def _exchange(self, method: str, target: str, body: Json | None) -> Exchange:
        url = urlsplit(target)
        for wanted, template, pattern in PATTERNS:
            found = pattern.match(url.path)
            if wanted == method and found is not None:
                names = {key: unquote(value) for key, value in found.groupdict().items()}
                return Exchange(method, template, names, dict(parse_qsl(url.query)), body)
        raise BrokenContract(f"{method} {url.path} is no call of GitHub's")

    def _page(self, exchange: Exchange, answer: Answer) -> Answer:
        if not answer.pages:
            return answer
        size = min(int(exchange.query.get("per_page", 30)), 100)
        page = int(exchange.query.get("page", 1))
        rows = answer.body[answer.under] if answer.under else answer.body
        shown = rows[(page - 1) * size : page * size]
        headers = dict(answer.headers)
        if page * size < len(rows):
            path = exchange.template.format_map(exchange.path)
            query = urlencode({**exchange.query, "page": page + 1})
            headers["Link"] = f'<{self.url}{path}?{query}>; rel="next"'
        body = {**answer.body, answer.under: shown} if answer.under else shown
        return Answer(answer.status, body, headers)

    def _graphql(self, token: Token, body: Json) -> Answer:
        done = graph.execute(self.state, token.login, body["query"], body.get("variables") or {})
        errors = [it.formatted for it in done.errors or ()]
        # What the schema refuses has no place in an answer's data.
        self.violations += [it.message for it in done.errors or () if it.path is None]
        kept: Json = {"data": done.data} | ({"errors": errors} if errors else {})
        return Answer(200, kept)

    def _conditional(
        self,
        method: str,
        target: str,
        headers: Message,
        found: Answer,
        fault: Fault | None,
    ) -> Answer:
        """Old answers, ETags, and the budget, of which a 304 takes nothing."""
        bucket = "graphql" if target == "/graphql" else "core"
        if method == "GET" and fault is not None and fault.kind is Kind.STALE:
            found = self._old.get(target, found)
        elif method == "GET" and found.status == 200:
            self._old[target] = found
        tag = hashlib.sha256(
            json.dumps(found.body, sort_keys=True).encode()
            + headers.get("Authorization", "").encode()
        ).hexdigest()
        named = (
            {**found.headers, "ETag": f'W/"{tag}"'} if found.status == 200 else dict(found.headers)
        )
        if (
            method == "GET"
            and found.status == 200
            and headers.get("If-None-Match") == named["ETag"]
        ):
            found = Answer(304)
        elif target != "/rate_limit" and found.status != 401:
            self.buckets[bucket].remaining = max(0, self.buckets[bucket].remaining - 1)
        return Answer(found.status, found.body, {**named, **self._rate(bucket)})

    def _rate(self, name: str) -> dict[str, str]:
        bucket = self.buckets[name]
        if not bucket.reset:
            bucket.reset = int((self.state.date() + timedelta(hours=1)).timestamp())
        return {
            "x-ratelimit-limit": str(LIMIT),
            "x-ratelimit-remaining": str(bucket.remaining),
            "x-ratelimit-used": str(LIMIT - bucket.remaining),
            "x-ratelimit-reset": str(bucket.reset),
            "x-ratelimit-resource": name,
            "Date": format_datetime(self.state.date(), usegmt=True),
        }

    def _limits(self) -> Json:
        def form(name: str) -> Json:
            self._rate(name)
            it = self.buckets[name]
            return {
                "limit": LIMIT,
                "used": LIMIT - it.remaining,
                "remaining": it.remaining,
                "reset": it.reset,
            }

        search = {"limit": 30, "used": 0, "remaining": 30, "reset": 0}
        resources = {"core": form("core"), "graphql": form("graphql"), "search": search}
        return {"resources": resources, "rate": form("core")}

    def read_log(self, id: int) -> bytes | None:
        with self.lock:
            found = next((it for it in self.state.checks if it.id == id), None)
            return None if found is None or found.log is None else found.log.encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_any(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.startswith("/logs/"):
            self.send_log()
        elif ".git/" in self.path:
            serve_git(self.server.hub, self, raw)
        else:
            self.send_answer(raw)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_any  # noqa: N815  # its names

    def send_log(self) -> None:
        text = self.server.hub.read_log(int(self.path.rpartition("/")[2]))
        if "Authorization" in self.headers:
            self.server.hub.violations.append("the address of a log was given the token")
        self.send_body(404 if text is None else 200, text or b"", {"Content-Type": "text/plain"})

    def send_answer(self, raw: bytes) -> None:
        target = self.path.removeprefix("/api/v3")
        found = self.server.hub.answer(self.command, target, self.headers, raw)
        if isinstance(found, Fault):
            self.play(found)
            return
        empty = found.status in {204, 302, 304}
        body = b"" if empty else json.dumps(found.body).encode()
        headers = {"Content-Type": "application/json; charset=utf-8", **found.headers}
        self.send_body(found.status, body, headers)

    def play(self, fault: Fault) -> None:
        limited = {"message": "You have exceeded a secondary rate limit."}
        match fault.kind:
            case Kind.TOO_MANY:
                self.send_body(429, _bytes(limited), {"retry-after": str(fault.retry_after)})
            case Kind.SECONDARY:
                self.send_body(403, _bytes(limited), {"retry-after": str(fault.retry_after)})
            case Kind.SECONDARY_SILENT:
                self.send_body(403, _bytes(limited), {})
            case Kind.BROKEN_AFTER | Kind.BROKEN_BEFORE:
                self.send_body(502, b"<html>Bad Gateway</html>", {"Content-Type": "text/html"})
            case _:
                self.server.hub.ended.wait(120)
                self.close_connection = True

    def send_body(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        cut = status == -1
        with suppress(ConnectionError):
            self.send_response_only(200 if cut else status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if cut else body)
        if cut:
            self.close_connection = True
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_words: object) -> None:
        """The log is in `Hub.log`."""


def _bytes(body: Json) -> bytes:
    return json.dumps(body).encode()
