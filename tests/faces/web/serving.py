"""The web board, served in this process; and a client that says exactly what a test wants said."""

import http.client
import json
import re
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from urllib.parse import urlencode

import uvicorn

from lockgate.bootstrap.outside import web_logins_of
from lockgate.faces.cli.serve import carry_out
from lockgate.faces.web.guard import COOKIE, Served
from lockgate.faces.web.live import Item
from lockgate.faces.web.serve import Hurried, Listening, asgi, opened, served_at, site_of
from lockgate.faces.web.site import Site
from tests.faces.web.home import Home

PATIENCE = 30.0


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    cookies: list[str]
    text: str

    @property
    def facts(self) -> Any:
        return json.loads(self.text)


@dataclass
class Board:
    """A served board; `feed` is what a test lets happen there."""

    home: Home
    site: Site
    port: int
    feed: "SimpleQueue[Item]"
    login: str = ""
    woken: list[None] = field(default_factory=list)

    @property
    def served(self) -> Served:
        return self.site.served

    @property
    def origin(self) -> str:
        return self.served.origin

    def ask(
        self,
        method: str,
        path: str,
        headers: Iterable[tuple[str, str]] | None = None,
        body: str = "",
    ) -> Answer:
        """As a browser that is logged in, unless a test says all headers itself."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        said = list(self.usual(method) if headers is None else headers)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in said:
            connection.putheader(name, value)
        if body and not any(name.lower() == "content-length" for name, _ in said):
            connection.putheader("Content-Length", str(len(body.encode())))
        connection.endheaders(body.encode() if body else None)
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
        cookies = [value for name, value in answer.getheaders() if name.lower() == "set-cookie"]
        connection.close()
        return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, cookies, text)

    def usual(self, method: str) -> list[tuple[str, str]]:
        found = [("Host", self.served.host)]
        if self.login:
            found.append(("Cookie", f"{COOKIE}={self.login}"))
        if method == "POST":
            found.append(("Origin", self.origin))
            found.append(("Content-Type", "application/x-www-form-urlencoded"))
        return found

    def get(self, path: str) -> Answer:
        return self.ask("GET", path)

    def post(self, path: str, **fields: str) -> Answer:
        fields.setdefault("csrf", self.csrf())
        return self.ask("POST", path, body=urlencode(fields))

    def csrf(self) -> str:
        found = re.search(r'data-csrf="([^"]*)"', self.get("/new").text)
        return unescape(found[1]) if found else ""

    def log_in(self, person: str = "") -> str:
        """Through the link, as a person does."""
        app = self.home.app
        link = web_logins_of(app).link(person or app.caller.by, app.caller)
        body = urlencode({"link": link, "next": "/"})
        answer = self.ask("POST", "/login", body=body)
        [cookie] = answer.cookies
        self.login = cookie.partition("=")[2].partition(";")[0]
        return self.login


@contextmanager
def serving(home: Home, at: Listening | None = None) -> Generator[Board]:
    listening = at or Listening(port=0)
    socket = opened(listening)
    port = 0 if listening.path else int(socket.getsockname()[1])
    served = served_at(listening, web_logins_of(home.app).place().host, port)
    feed: SimpleQueue[Item] = SimpleQueue()
    woken: list[None] = []
    wake, follow = (lambda: woken.append(None)), (lambda: iter(feed.get, {}))
    site = site_of(home.app, served, wake, follow, carry_out)
    config = uvicorn.Config(
        asgi(site),
        log_level="error",
        ws="none",
        http=Hurried,
        proxy_headers=False,
        ssl_certfile=listening.certificate or None,
        ssl_keyfile=listening.key or None,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
    thread.start()
    _until(lambda: server.started)
    board = Board(home, site, port, feed, woken=woken)
    try:
        if not listening.path and not listening.certificate:
            board.log_in()
        yield board
    finally:
        feed.put({})
        server.should_exit = True
        server.force_exit = True
        thread.join(PATIENCE)
        socket.close()


def _until(there: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not there() and time.monotonic() < until:
        time.sleep(0.01)


def happened(home: Home, since: int) -> list[Item]:
    """What the orchestrator's feed tells of all events after that one."""
    events = home.app.store.events(None, since, 1000)
    return [{"event": {"seq": it.seq, "task": it.task, "type": it.type}} for it in events]


def unix_answer(path: Path, request: bytes) -> bytes:
    """What a server at a unix socket answers to these bytes."""
    import socket  # noqa: PLC0415 - few tests need it

    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE)
        connection.connect(str(path))
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))
