"""The web board: its first page with many tasks, how soon it hears of a commit, what it costs."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from starlette.types import ASGIApp

from bench.harness import AtMost, Measure, Work, interleave, main, say
from bench.home import add_task, make_home
from bench.listing import fill
from lockgate.bootstrap import App, open_app
from lockgate.bootstrap.outside import web_logins_of
from lockgate.core.model.task import TaskId
from lockgate.faces import client
from lockgate.faces.web.guard import COOKIE, Served
from lockgate.faces.web.serve import asgi, site_of
from lockgate.services.task.callers import HUMAN

if TYPE_CHECKING:
    from playwright.sync_api import Page

MANY, FEW = 100_000, 1_000
ROUNDS = 40
READERS, BROWSERS = 200, 2
WATCHED = 20.0  # seconds in which their cost is counted, with a commit in each
FIRST, HEARD = "web: first page", "web: a commit is with an open page"
SHOWN = "web: a commit stands in the page of a browser"
# Notes when a text comes to stand in the page, by the clock that the commit is timed with.
WATCH = """text => {
    window.seen = 0;
    new MutationObserver((_, watch) => {
        if (!document.body.textContent.includes(text)) return;
        window.seen = Date.now();
        watch.disconnect();
    }).observe(document.body, {subtree: true, childList: true, characterData: true});
}"""
COST = f"web: {READERS} pages follow, {BROWSERS} browsers, a commit each second"
TICKS = os.sysconf("SC_CLK_TCK")


def bench(where: Path) -> list[Measure]:
    say("\nweb")
    pages = {many: _Page(where / f"{many}", many) for many in (MANY, FEW)}
    found = interleave({str(many): it.work for many, it in pages.items()}, ROUNDS)
    for it in pages.values():
        it.app.close()
    with _Home.served(where / "live") as home:
        heard = median(home.heard() for _ in range(ROUNDS))
        shown = home.shown()
        cost = home.cost()
    many, few = found[str(MANY)], found[str(FEW)]
    return [
        _at_most(f"{FIRST}, {MANY:,} tasks", many, 0.05, "50 ms"),
        Measure(
            name=f"{FIRST}, {MANY:,} tasks",
            ours=many,
            peer=f"{FEW:,} tasks",
            theirs=few,
            target=AtMost(1.5),
        ),
        _at_most(HEARD, heard, 0.2, "200 ms"),
        *(_at_most(SHOWN, it, 0.2, "200 ms") for it in shown),
        _at_most(f"{COST}: orchestrator", cost["orchestrator"], 0.05, "a second's 5 %"),
        _at_most(f"{COST}: with the web board's", sum(cost.values()), 0.05, "a second's 5 %"),
    ]


def _at_most(name: str, ours: float, most: float, called: str) -> Measure:
    return Measure(name=name, ours=ours, peer=called, theirs=most, target=AtMost(1))


class _Page:
    """The first page, asked for in this process: what the server does, without the network."""

    def __init__(self, where: Path, tasks: int) -> None:
        made, project = make_home(where)
        fill(where / "home" / "lockgate.db", add_task(made, project), tasks - 1)
        made.close()
        self.app = open_app({"LOCKGATE_HOME": str(where / "home")})
        logins = web_logins_of(self.app)
        login = logins.log_in(logins.link(self.app.caller.by, self.app.caller)) or ""
        served = Served(origin="http://bench.localhost:1")
        self.board = asgi(site_of(self.app, served, lambda: None, lambda: ()))
        headers = {"host": served.host, "cookie": f"{COOKIE}={login}"}
        self.headers = [(key.encode(), value.encode()) for key, value in headers.items()]

    @property
    def work(self) -> Work:
        return lambda: asyncio.run(_asked(self.board, "/", self.headers))


async def _asked(board: ASGIApp, path: str, headers: list[tuple[bytes, bytes]]) -> float:
    """The processor's seconds of one request; a busy machine does not lengthen them."""
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode()}
    scope |= {"query_string": b"", "headers": headers, "http_version": "1.1", "scheme": "http"}
    status = list[int]()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:  # noqa: ANN401 - as ASGI has it
        status.extend([message["status"]] if "status" in message else [])

    begin = time.process_time()
    await board(scope, receive, send)
    if status != [200]:
        raise RuntimeError(f"{path} answered {status}")
    return time.process_time() - begin


class _Home:
    """A home with an orchestrator and its board."""

    def __init__(self, app: App, task: TaskId, pid: int) -> None:
        self.app, self.task, self.pid = app, task, pid
        self.number = 0
        self.url = ""
        _until(self._found)
        self.cookie = f"{COOKIE}={self._logged_in()}"
        self.page = self.follow()

    @staticmethod
    @contextmanager
    def served(where: Path) -> Iterator["_Home"]:
        app, project = make_home(where)
        task = add_task(app, project)
        argv = [sys.executable, "-m", "lockgate", "up", "--web", "--web-port", "0"]
        environ = os.environ | {"LOCKGATE_HOME": str(app.home)}
        process = subprocess.Popen(
            argv,
            cwd=where / "repository",
            env=environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield _Home(app, task.id, process.pid)
        finally:
            process.terminate()
            process.wait(60)
            app.close()

    def heard(self) -> float:
        """From the commit of another process until an open page has what changes on it."""
        text = f"summary {self.number} of all"
        begin = self.change(text)
        said = b""
        while text.encode() not in said:
            said += self.page.recv(1 << 16)
        return time.perf_counter() - begin

    def change(self, text: str) -> float:
        """When it was committed."""
        self.number += 1
        self.app.tasks.rename(self.task, text, HUMAN)
        begin = time.perf_counter()
        with socket.socket(socket.AF_UNIX) as woken:
            client.send(woken, str(self.app.home / "door.sock"), ["wake"])
            while woken.recv(100):
                pass
        return begin

    def cost(self) -> dict[str, float]:
        """Seconds of processor a second, of each of the two processes."""
        with ExitStack() as stack:
            for _ in range(READERS - 1):
                stack.enter_context(self.follow())
            stack.enter_context(self._pages(BROWSERS))
            [web] = [it for it in _children(self.pid) if b"--child" in _read(it, "cmdline")]
            pids = {"orchestrator": self.pid, "web": web}
            before, begin = {name: _spent(pid) for name, pid in pids.items()}, time.monotonic()
            while time.monotonic() < begin + WATCHED:
                self.change(f"summary {self.number} while all look")
                time.sleep(1.0)
            took = time.monotonic() - begin
            return {name: (_spent(pid) - before[name]) / took for name, pid in pids.items()}

    def follow(self) -> socket.socket:
        """An open page's feed; what it gets is read by nobody, as from a tab in the background."""
        at = urlsplit(self.url)
        page = socket.create_connection(("127.0.0.1", at.port or 0), timeout=60)
        head = f"GET /feed HTTP/1.1\r\nHost: {at.netloc}\r\nCookie: {self.cookie}\r\n\r\n"
        page.sendall(head.encode())
        said = b""
        while b"retry:" not in said:
            said += page.recv(1 << 16)
        return page

    def shown(self) -> list[float]:
        """From the commit of another process until its text stands in an open page; the median."""
        with self._pages(1) as pages:
            return [median(self._shown(page) for _ in range(ROUNDS)) for page in pages]

    def _shown(self, page: "Page") -> float:
        text = f"summary {self.number} in the page"
        page.evaluate(WATCH, text)
        begin = self.change(text)
        committed = time.time() - (time.perf_counter() - begin)
        end = time.monotonic() + 60
        while not (seen := page.evaluate("window.seen")) and time.monotonic() < end:
            time.sleep(0.005)
        return float(seen) / 1000 - committed

    @contextmanager
    def _pages(self, count: int) -> Iterator[list["Page"]]:
        """So many browsers with the board open; none where there is no Chromium."""
        chromium = shutil.which("chromium")
        if chromium is None:
            say("  no chromium: without browsers")
            yield []
            return
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only where it is used

        with sync_playwright() as playwright:
            made = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            pages = list["Page"]()
            for _ in range(count):
                context = made.new_context()
                name, _, value = self.cookie.partition("=")
                context.add_cookies([{"name": name, "value": value, "url": self.url}])
                pages.append(context.new_page())
                pages[-1].goto(self.url)
            yield pages
            made.close()

    def _found(self) -> bool:
        try:
            self.url = str(json.loads((self.app.home / "web.json").read_text()).get("url", ""))
        except (OSError, ValueError):
            return False
        return bool(self.url)

    def _logged_in(self) -> str:
        link = web_logins_of(self.app).link(self.app.caller.by, self.app.caller)
        at, body = urlsplit(self.url), urlencode({"link": link, "next": "/"})
        head = f"POST /login HTTP/1.1\r\nHost: {at.netloc}\r\nOrigin: {self.url}\r\n"
        head += "Content-Type: application/x-www-form-urlencoded\r\nConnection: close\r\n"
        with socket.create_connection(("127.0.0.1", at.port or 0), timeout=60) as page:
            page.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
            said = b"".join(iter(lambda: page.recv(1 << 16), b""))
        return said.partition(f"{COOKIE}=".encode())[2].partition(b";")[0].decode()


def _until(there: Any) -> None:  # noqa: ANN401 - whatever is asked
    end = time.monotonic() + 60
    while not there():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.05)


def _children(pid: int) -> list[int]:
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(it) for one in lists for it in one.read_text().split()]


def _read(pid: int, name: str) -> bytes:
    return Path(f"/proc/{pid}/{name}").read_bytes()


def _spent(pid: int) -> float:
    fields = _read(pid, "stat").rpartition(b") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


if __name__ == "__main__":
    main(bench)
