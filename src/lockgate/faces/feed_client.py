"""Follows what happens in a home: the orchestrator's feed, through its deaths and restarts.

Standard library only. Nothing here opens the database: what comes is what the orchestrator tells.
"""

import contextlib
import fcntl
import json
import os
import socket
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from lockgate.faces import client, silence

Item = dict[str, Any]  # a line of the feed; or "lost" and why, or "back" and what it is back at
TICK = 5.0  # seconds between two looks at whether a silent orchestrator is still there
SILENT = 40.0  # seconds without a word after which it is lost; a beat comes every 15
FIRST, LONGEST = 0.05, 1.0  # seconds between two tries to connect
STARTS = 20.0  # seconds that an orchestrator has to start
IDLE_SECONDS = 60.0  # after which one that was started here ends, once nobody follows
NOT_SERVED = "not served here"  # what one says that knows no feed
OLDER = "the orchestrator is of an older version, which has no feed; restart it: lockgate down"


class FeedRefused(Exception):
    """No feed is given; the words of the orchestrator say why, and what to do."""


def follow(
    home: str | None = None,
    since: int | None = None,
    *,
    project: str | None = None,
    task: str | None = None,
    output: Sequence[str] = (),
    flags: Sequence[str] = (),
) -> "Following":
    """All that happens after the event `since`, or from now on.

    A project is named by its id or a directory in it, sessions in `output` by their ids. Flags:
    with `--every` no event is left out, however slowly one reads; otherwise `resync` says that
    some were. With `--needs` it also tells what comes to need a human, and what no longer does.
    Where no orchestrator runs one is started, unless LOCKGATE_NO_ORCHESTRATOR is set.
    """
    named = [("--project", project), ("--task", task), *(("--output", it) for it in output)]
    argv = [word for name, value in named if value for word in (name, value)]
    return Following(home or client.home(), since, [*argv, *flags])


def read(argv: Sequence[str], home: str | None = None) -> Any:  # noqa: ANN401 - whatever JSON holds
    """The one JSON document that a command answers with; OSError where no orchestrator runs."""
    with socket.socket(socket.AF_UNIX) as connection:
        client.send(connection, f"{home or client.home()}/door.sock", [*argv, "--json"])
        connection.settimeout(client.ANSWERS)
        fields = b"".join(iter(lambda: connection.recv(1 << 16), b"")).split(b"\0")
    if b"x0" not in fields:
        raise FeedRefused(client.refusal(b"\0".join(fields)))
    return json.loads(b"".join(it[1:] for it in fields if it[:1] == b"o"))


class Following:
    """The items of a feed in order, one after the other; `close` from another thread ends it."""

    def __init__(self, home: str, since: int | None, argv: Sequence[str]) -> None:
        self._home, self._argv = home, argv
        self._starter = _Starter(home)
        self.seq = since  # of the last event that came
        self._connection: socket.socket | None = None
        self._closed = threading.Event()
        self._greeted = self._lost = False

    def __iter__(self) -> Generator[Item]:
        pause = 0.0
        try:
            while not self._closed.wait(pause):
                connection = yield from self._connected()
                if connection is not None and (yield from self._told(connection)):
                    pause = 0.0
                else:
                    pause = min(max(pause * 1.5, FIRST), LONGEST)
        finally:
            self.close()

    def close(self) -> None:
        self._closed.set()
        self._starter.done()
        connection = self._connection
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _connected(self) -> Generator[Item, None, socket.socket | None]:
        connection = socket.socket(socket.AF_UNIX)
        since = () if self.seq is None else ("--since", str(self.seq))
        try:
            client.send(connection, f"{self._home}/door.sock", ["feed", *since, *self._argv])
        except TimeoutError:
            yield from self._lose(self._silence(connection))
        except OSError:
            why_not = self._starter.start()
            if why_not:
                yield from self._lose(why_not)
        else:
            return connection
        connection.close()
        return None

    def _told(self, connection: socket.socket) -> Generator[Item, None, bool]:
        """What comes from one connection to its end; whether there was anything."""
        heard, patience, greeted = time.monotonic(), client.ANSWERS, False
        self._connection = connection
        try:
            for line in _lines(connection):
                if line is not None:
                    heard, patience, greeted = time.monotonic(), SILENT, True
                    yield from self._noted(json.loads(line))
                elif self._is_silent(connection, time.monotonic() - heard, patience):
                    yield from self._lose(self._silence(connection))
        except FeedRefused as refused:
            if not self._greeted and str(refused) != NOT_SERVED:
                raise
            yield from self._lose(OLDER if str(refused) == NOT_SERVED else str(refused))
        finally:
            self._connection = None
            connection.close()
        if greeted and not self._closed.is_set():
            yield from self._lose("the orchestrator has ended")
        return greeted

    def _noted(self, item: Item) -> Iterator[Item]:
        if "bye" in item:  # somebody stopped it, and it is theirs to start
            self._starter.allowed = False
            yield from self._lose(f"{item['bye']}; start it: lockgate up")
            return
        if "hello" in item:
            self._starter.done()
            self._starter.allowed = self._greeted = True
            self.seq = item["hello"]["seq"] if self.seq is None else self.seq
        if self._lost:
            self._lost = False
            yield {"back": item.get("hello") or {"seq": self.seq}}
        if "event" in item:
            self.seq = item["event"]["seq"]
        elif "resync" in item:
            self.seq = item["resync"]
        yield item

    def _lose(self, why: str) -> Iterator[Item]:
        """Told once, until it is back."""
        if not self._lost:
            self._lost = True
            yield {"lost": why}

    def _is_silent(self, connection: socket.socket, seconds: float, patience: float) -> bool:
        pid = silence.peer(connection)
        return seconds > patience or (pid is not None and silence.state(pid) in silence.STOPPED)

    def _silence(self, connection: socket.socket) -> str:
        return "; ".join(silence.told(self._home, silence.peer(connection)))


def _lines(connection: socket.socket) -> Iterator[bytes | None]:
    """Whole lines as they come, None at each tick without one; FeedRefused where none are given."""
    rest, taken = b"", False
    connection.settimeout(TICK)
    while True:
        try:
            chunk = connection.recv(1 << 16)
        except TimeoutError:
            yield None
            continue
        except OSError:
            return
        if not chunk:
            break
        rest += chunk
        if not taken:
            rest = rest.removeprefix(client.BEGUN)
            taken, rest = rest.startswith(client.TAKEN), rest.removeprefix(client.TAKEN)
        if taken:
            *lines, rest = rest.split(b"\n")
            yield from lines
    if rest and not taken:
        raise FeedRefused(client.refusal(rest))


class _Starter:
    """Starts an orchestrator where none runs: one of many who wait for it does."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._lock: int | None = None
        self._until = 0.0  # when one that is being started should have come; 0: none is
        self.allowed = True

    def start(self) -> str:
        """Why none is about to run, by this or by somebody else; empty where one is."""
        if not self.allowed or "LOCKGATE_NO_ORCHESTRATOR" in os.environ:
            return "no orchestrator runs; start one: lockgate up"
        now = time.monotonic()
        self._until = self._until or now + STARTS
        if now > self._until:
            self.done()  # at the next try there is another one
            return f"no orchestrator comes up; see {self._home}/logs/orchestrator.log"
        if self._lock is None and self._locked():
            self._start_one()
        return ""

    def done(self) -> None:
        self._until = 0.0
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def _locked(self) -> bool:
        os.makedirs(self._home, exist_ok=True)  # noqa: PTH103 - no pathlib here
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        lock = os.open(f"{self._home}/starting.lock", flags, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        self._lock = lock
        return True

    def _start_one(self) -> None:
        """Loaded only where one is to be started."""
        from pathlib import Path

        from lockgate.bootstrap.orchestrator import start_orchestrator

        start_orchestrator(Path(self._home), IDLE_SECONDS)
