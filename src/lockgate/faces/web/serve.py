"""Serves the web board: its routes, the socket it listens at, and the end of it."""

import asyncio
import os
import socket
import stat
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import uvicorn
from msgspec import Struct
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from lockgate.bootstrap import App
from lockgate.errors import Refused, Unavailable
from lockgate.faces import feed_client
from lockgate.faces.web import acts, calls, doors, facts, pages, stats
from lockgate.faces.web.assistants import McpOverHttp
from lockgate.faces.web.guard import CALL, Guard, Served
from lockgate.faces.web.live import Hub, Item
from lockgate.faces.web.review import review
from lockgate.faces.web.site import CarryOut, Site

LOOPBACK = "127.0.0.1"
EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - no address that people reach
HTTPS = 443
LEAST = 1_000  # bytes that are worth compressing
BACKLOG = 512
HEAD_ARRIVES = 15.0  # seconds


class Listening(Struct, frozen=True, kw_only=True):
    """Where it listens: a port of this machine, an address with TLS files, or a unix socket."""

    port: int = 8440
    path: Path | None = None
    address: str = LOOPBACK
    url: str = ""  # where people reach it, where that is not here
    api: str = ""  # where other hosts of a fleet reach it, where that is not the url
    certificate: str = ""
    key: str = ""
    header: str = ""


def opened(it: Listening) -> socket.socket:
    """It listens at once: who comes before the server is ready waits, and is not refused."""
    try:
        at = _unix(it.path) if it.path else _tcp(it.address, it.port)
        at.listen(BACKLOG)
    except OSError as error:
        where = str(it.path or f"{it.address}:{it.port}")
        why, fix = f"{where}: {error.strerror}", "name another by --port or --socket"
        raise Unavailable("the web board was not served", why=why, fix=fix) from error
    return at


def served_at(it: Listening, host: str, port: int) -> Served:
    """The one origin; other names of this machine lead there, and what other hosts call it too."""
    found, api = _origin_of(it, host, port), it.api.partition("://")[2]
    return replace(found, api=api, also=found.also | {api}) if api else found


def _origin_of(it: Listening, host: str, port: int) -> Served:
    if it.url:
        return Served(origin=it.url.rstrip("/"), header=it.header if it.path else "")
    if it.certificate and not it.path and it.address not in EVERYWHERE:
        shown = f"[{it.address}]" if ":" in it.address else it.address
        return Served(origin=f"https://{shown}" + ("" if port == HTTPS else f":{port}"))
    if it.path or it.address != LOOPBACK:
        why = "people elsewhere reach it by a name that this command does not know"
        raise Refused("nothing was served", why=why, fix="--url https://board.example.org")
    also = frozenset(f"{name}:{port}" for name in (LOOPBACK, "localhost", "[::1]"))
    return Served(origin=f"http://{host}:{port}", also=also)


Follow = Callable[[], Iterable[Item]]


def site_of(
    app: App,
    served: Served,
    wake: Callable[[], None],
    follow: Follow | None = None,
    carry_out: CarryOut | None = None,
) -> Site:
    """The feed that it follows is the orchestrator's, unless a test plays one."""
    hub = Hub(follow or partial(feed_client.follow, str(app.home), flags=("--needs",)))
    site = Site(app=app, served=served, hub=hub, wake=wake, carry_out=carry_out)
    hub.render = site.told
    return site


def asgi(site: Site) -> ASGIApp:
    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        site.hub.start()
        yield

    app = Starlette(
        routes=list(_routes(site)),
        middleware=[Middleware(GZipMiddleware, minimum_size=LEAST)],
        lifespan=lifespan,
    )
    identify = partial(doors.identify, site)
    return Guard(app, site.served, identify, doors.turned_away, site.tries)


def serve(site: Site, it: Listening, at: socket.socket, *, with_parent: bool = False) -> None:
    """Until it is told to stop; with its parent, where that started it as a child."""
    config = uvicorn.Config(
        asgi(site),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        http=Hurried,
        ssl_certfile=it.certificate or None,
        ssl_keyfile=it.key or None,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    if with_parent:
        threading.Thread(target=_end_with_parent, args=(server,), daemon=True).start()
    try:
        server.run(sockets=[at])
    finally:
        at.close()
        if it.path:
            with suppress(OSError):
                it.path.unlink()


class Hurried(HttpToolsProtocol):
    """A request's head that does not come whole in time ends its connection."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait(no_more=True)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Empty lines between two requests begin none, and have ended the wait for the next."""
        super().data_received(data)
        if self._late is None and getattr(self.cycle, "response_complete", True):
            self._wait()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait()

    def on_headers_complete(self) -> None:
        self._wait(no_more=True)
        super().on_headers_complete()

    def _wait(self, *, no_more: bool = False) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = None if no_more else self.loop.call_later(HEAD_ARRIVES, self.transport.close)


def _routes(site: Site) -> "list[Route]":
    def get(path: str, page: pages.Page) -> Route:
        return Route(path, _endpoint(site, pages.shown_or_told(page)), methods=["GET"])

    def post(path: str, form: acts.Form) -> Route:
        return Route(path, acts.posted(site, form), methods=["POST"])

    return [
        get("/", pages.board),
        get("/new", pages.new),
        get("/t/{id}", pages.task),
        get("/t/{id}/review", review),
        get("/t/{id}/output", pages.output),
        get("/t/{id}/output/{session}", pages.output),
        get("/train", pages.train),
        get("/train/{project}", pages.train),
        get("/stats", stats.stats),
        get("/stats/{name}.csv", stats.csv),
        get("/events", pages.events),
        get("/login", doors.login_page),
        get("/static/{name}", doors.static),
        get("/api/{what}", facts.api),
        get("/api/{what}/{rest}", facts.api),
        get("/metrics", facts.metrics),
        Route("/feed", doors.feed(site), methods=["GET"]),
        Route("/mcp", McpOverHttp(site), methods=["GET", "POST"]),
        Route("/login", doors.log_in(site), methods=["POST"]),
        Route("/login/laptop", calls.log_in_laptop(site), methods=["POST"]),
        Route(CALL, calls.call(site), methods=["POST"]),
        Route("/people/seat", calls.seat(site), methods=["POST"]),
        Route("/people/logout", calls.log_out_laptop(site), methods=["POST"]),
        post("/logout", acts.logout),
        post("/theme", acts.theme),
        post("/tasks", acts.create),
        post("/t/{id}/drafts", acts.drafts),
        post("/t/{id}/{act}", acts.on_task),
        post("/needs/{key}/{act:str}", acts.on_need),
    ]


def _endpoint(site: Site, page: pages.Page) -> Callable[[Request], object]:
    async def endpoint(request: Request) -> Response:
        return await run_in_threadpool(page, site, request)

    return endpoint


def _tcp(address: str, port: int) -> socket.socket:
    at = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    at.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    at.bind((address, port))
    return at


def _unix(path: Path) -> socket.socket:
    """For its owner and group: the proxy in front of it says who comes, and must be trusted."""
    if path.exists() and stat.S_ISSOCK(path.stat().st_mode):
        path.unlink()
    at = socket.socket(socket.AF_UNIX)
    before = os.umask(0o117)
    try:
        at.bind(str(path))
    finally:
        os.umask(before)
    return at


def _end_with_parent(server: uvicorn.Server) -> None:
    """The parent holds the other end of stdin; it closes when that ends, however it does."""
    with suppress(OSError):
        while sys.stdin.buffer.read(4096):
            pass
    server.should_exit = True
