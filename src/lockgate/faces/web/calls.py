"""Commands of people on other machines: a laptop's login, and its requests with their answers.

A request and its answer are those of the orchestrator's door; the person is the token's.
"""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import CancelledError
from functools import partial

from msgspec import Struct, field
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from lockgate import __version__
from lockgate.bootstrap import App
from lockgate.bootstrap.outside import for_person, web_logins_of
from lockgate.bootstrap.team import asked_from_afar, seat_of, sent_elsewhere, ssh_of
from lockgate.errors import LockgateError
from lockgate.faces.web.guard import told
from lockgate.faces.web.site import Site, visitor_of
from lockgate.ports import Taken

PROTOCOL = "1"
BEAT = 15.0  # seconds after which who waits hears that we are there
READS = 30.0  # seconds that a laptop may take to read what is sent
BEHIND = 64  # parts of an answer that it may be behind
AT_ONCE, OF_ONE = 96, 16  # commands that are carried out; and those of one person
LONGEST = 200  # characters of a link's key, and of a laptop's name
NOTHING = "nothing was done"
FORWARDED = "lockgate-forwarded"  # a header: another host asks for a person
ENDS = b""  # behind the last part of an answer


class Line:
    """The way back from the thread of a command to the laptop that waits for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._queue = loop, asyncio.Queue[bytes](BEHIND)
        self._broken = False

    def out(self, text: str) -> None:
        self._say(b"o", text)

    def err(self, text: str) -> None:
        self._say(b"e", text)

    def end(self, code: int) -> None:
        self._say(b"x", str(code))

    def gone(self) -> bool:
        return self._broken

    def take(self) -> Taken:
        raise BrokenPipeError("no connection is handed on from here")

    def pass_on(self, part: bytes) -> None:
        """What another server has said, as it is."""
        self._put(part)

    def close(self) -> None:
        """From the command's thread, when it has ended, however it did."""
        self._put(ENDS)

    def _say(self, kind: bytes, text: str) -> None:
        said = text.replace("\0", "").encode("utf-8", "surrogateescape")
        self._put(kind + said + b"\0")

    def _put(self, part: bytes) -> None:
        if self._broken:
            return
        try:
            asyncio.run_coroutine_threadsafe(self._queue.put(part), self._loop).result(READS)
        except (TimeoutError, CancelledError, RuntimeError):  # too slow, or the server ends
            self._broken = True

    async def parts(self) -> AsyncIterator[bytes]:
        """The first one says that the command has begun; empty ones that it goes on.

        Where a part was lost they end without an exit code, so that the laptop does not know it.
        """
        try:
            yield b"o\0"
            while not (self._broken and self._queue.empty()):
                try:
                    part = await asyncio.wait_for(self._queue.get(), BEAT)
                except TimeoutError:
                    part = b"o\0"
                if part == ENDS:
                    return
                yield part
        finally:
            self._broken = True
            while not self._queue.empty():  # who waits to be heard goes on
                self._queue.get_nowait()


class Places(Struct):
    """How many commands are carried out now, by person."""

    taken: Counter[str] = field(default_factory=Counter[str])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, person: str) -> bool:
        with self.lock:
            if self.taken[person] >= OF_ONE or self.taken.total() >= AT_ONCE:
                return False
            self.taken[person] += 1
            return True

    def leave(self, person: str) -> None:
        with self.lock:
            self.taken[person] -= 1
            self.taken += Counter[str]()  # drops who has none


def call(site: Site) -> Callable[[Request], Awaitable[Response]]:
    places = Places()

    async def endpoint(request: Request) -> Response:
        asked = await _asked(site, request)
        if isinstance(asked, Response):
            return asked
        app, raw = asked
        person = app.caller.by
        if not places.take(person):
            return _no("too many commands run already", "end one, or try again in a minute", 503)
        line = Line(asyncio.get_running_loop())
        work = partial(_carry_out, site, app, raw, line, partial(places.leave, person))
        threading.Thread(target=work, args=(_key(request),), daemon=True).start()
        return StreamingResponse(line.parts(), media_type="application/octet-stream", headers=SAID)

    return endpoint


def seat(site: Site) -> Callable[[Request], Awaitable[Response]]:
    """Which machine a laptop's terminal must go to, for a command that it does not send."""

    async def endpoint(request: Request) -> Response:
        asked = await _asked(site, request)
        if isinstance(asked, Response):
            return asked
        try:
            return JSONResponse(await run_in_threadpool(_seats, *asked))
        except LockgateError as error:
            return JSONResponse(told(error), 503)

    return endpoint


def _seats(app: App, raw: bytes) -> dict[str, str]:
    """What ssh calls the machine that the command is about, and this one."""
    return {"ssh": seat_of(app, raw), "own": ssh_of(app)}


async def _asked(site: Site, request: Request) -> tuple[App, bytes] | Response:
    """The services as who asks may use them, and the request; or why it is not taken."""
    visitor, refused = visitor_of(request), _misread(request)
    if refused or not visitor.how.startswith("token"):
        return refused or _no("a command needs a laptop's token", "lockgate login URL", 401)
    try:
        raw = await request.body()
    except ClientDisconnect:
        why = "the request has more than 1 MB, or did not arrive in time"
        return _no(why, "name a smaller file, or try again", 413)
    app = for_person(site.app, visitor.person, visitor.how, read_only=visitor.read_only)
    return app, raw


SAID = {"lockgate-version": __version__, "x-accel-buffering": "no", "cache-control": "no-store"}


def _carry_out(
    site: Site, app: App, raw: bytes, line: Line, done: Callable[[], None], key: str
) -> None:
    """`key`: by which another host knows the person too; empty where it is not asked."""
    try:
        if site.carry_out is None:
            line.err(f"{NOTHING}: this board serves no commands\n  lockgate up --listen\n")
            line.end(1)
        elif (key and _forwarded(app, raw, line, key)) or site.carry_out(app, raw, line):
            site.wake()
    finally:
        line.close()
        done()


def _key(request: Request) -> str:
    """Of a request that comes from another host nothing is sent on: one hop."""
    if FORWARDED in request.headers:
        return ""
    return request.headers.get("authorization", "").partition(" ")[2].strip()


def _forwarded(app: App, raw: bytes, line: Line, key: str) -> bool:
    """Whether another host has the files that the command needs, and was asked in place of us."""
    try:
        answer = sent_elsewhere(app, raw, key)
        if answer is None:
            return False
        for part in answer:
            line.pass_on(part)
    except LockgateError as error:
        asked = asked_from_afar(raw, line)
        if asked and "--json" in asked[0].argv:
            line.out(f"{json.dumps(told(error))}\n")
        line.err(f"{error.what}: {error.why}\n  {error.fix}\n")
        line.end(error.exits_with)
    return True


def _misread(request: Request) -> Response | None:
    theirs = request.headers.get("lockgate-protocol", "")
    if theirs == PROTOCOL:
        return None
    why = f"the server is version {__version__} and speaks protocol {PROTOCOL}, not {theirs!r}"
    return _no(why, f"install the same version: pip install 'lockgate=={__version__}'", 426)


# A laptop logs in by the same link as a browser, and gets a token of its own.


def log_in_laptop(site: Site) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            fields = await request.form(max_files=0, max_fields=10)
        except ClientDisconnect:
            return _no("the request did not arrive in time", "try again", 413)
        link, laptop = (str(fields.get(it, ""))[: LONGEST + 1] for it in ("link", "laptop"))
        try:
            return await run_in_threadpool(_logged_in, site, request, link, laptop)
        except LockgateError as error:
            return JSONResponse(told(error), 503)

    return endpoint


def _logged_in(site: Site, request: Request, link: str, laptop: str) -> Response:
    refused = _misread(request)
    if refused:
        return refused
    if site.tries.are_too_many():
        return _no("there were too many wrong tries", "wait a minute, then try again", 429)
    good = 0 < len(link) <= LONGEST and laptop.isprintable() and len(laptop) <= LONGEST
    ssh = ssh_of(site.app)  # first: what goes wrong here must not use the link up
    made = web_logins_of(site.app).log_in_laptop(link, laptop) if good else None
    if made is None:
        site.tries.note()
        why = "the code is wrong, used up, or too old"
        return _no(
            why, "have another one made on the server: lockgate web login --person NAME", 403
        )
    token, key = made
    app = for_person(site.app, key.person, f"token {key.name}")
    facts = {"token": token, "person": key.person, "may": app.caller.may, "expires": key.expires}
    facts |= {"name": key.name, "ssh": ssh, "version": __version__}
    return JSONResponse(facts)


def log_out_laptop(site: Site) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        token = request.headers.get("authorization", "").partition(" ")[2].strip()
        await run_in_threadpool(web_logins_of(site.app).log_out, token)
        return JSONResponse({"person": visitor_of(request).person})

    return endpoint


def _no(why: str, fix: str, status: int) -> Response:
    error = {"what": NOTHING, "why": why, "fix": fix}
    return JSONResponse({"error": error}, status)
