"""A host in its own net, mount and pid namespaces, as its outside steers it.

It reaches the servers only at ports of its own loopback, whose other ends are relays out here.
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, Thread

import lockgate

PROGRAM = Path(__file__).with_name("machine.py")
NEW = ("unshare", "--net", "--mount", "--pid")
SIZE = 1 << 20
PATIENCE = 60.0
CHUNK = 1 << 16
Wires = Mapping[int, str | int]  # port of the host → unix socket or port out here


class Relays:
    """The outer ends of all wires, in one event loop of a thread."""

    def __init__(self) -> None:
        self._events = asyncio.new_event_loop()
        self._open = set[asyncio.Task[None] | None]()
        self._thread = Thread(target=self._turn, name="relays", daemon=True)
        self._thread.start()

    def serve(self, door: socket.socket, target: str | int) -> asyncio.Server:
        """Until the server that this gives is closed."""

        async def carried(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            self._open.add(task)  # the event loop alone does not keep it
            try:
                await _carried(reader, writer, target)
            finally:
                self._open.discard(task)

        return self._wait(asyncio.start_server(carried, sock=door))

    def end(self, server: asyncio.Server) -> None:
        self._events.call_soon_threadsafe(server.close)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(_ended(), self._events).result(10)
        self._events.call_soon_threadsafe(self._events.stop)
        self._thread.join(10)

    def _wait(self, work: Coroutine[object, object, asyncio.Server]) -> asyncio.Server:
        return asyncio.run_coroutine_threadsafe(work, self._events).result(10)

    def _turn(self) -> None:
        asyncio.set_event_loop(self._events)
        self._events.run_forever()
        self._events.close()


async def _ended() -> None:
    """Of every connection that is still open."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for it in others:
        it.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.sleep(0)


async def _carried(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str | int
) -> None:
    """A server that is set up well notices in seconds that its client's machine is gone."""
    near = writer.get_extra_info("socket")
    near.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("KEEPIDLE", 2), ("KEEPINTVL", 1), ("KEEPCNT", 3)):
        near.setsockopt(socket.IPPROTO_TCP, getattr(socket, f"TCP_{option}"), value)
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 5000)
    try:
        if isinstance(target, str):
            far_reader, far_writer = await asyncio.open_unix_connection(target)
        else:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target)
    except OSError:
        writer.transport.abort()
        return
    try:
        await asyncio.gather(_pumped(reader, far_writer), _pumped(far_reader, writer))
    finally:
        for it in (writer, far_writer):
            it.transport.abort()


async def _pumped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        writer.transport.abort()


@dataclass
class Host:
    """One machine: it has power or not, a network or not, and a worker that runs, or not."""

    name: str
    own: Path  # its disk: the only directory of the test that it sees
    wires: Wires
    relays: Relays
    environ: Mapping[str, str]
    hide: tuple[Path, ...]
    disk: str = ""  # the size of a disk for its home, lost with the power; empty: one that is kept
    shown: tuple[Path, ...] = ()  # what it sees besides
    on: bool = field(default=False, init=False)
    wanted: bool = field(default=False, init=False)  # whether its worker should run
    frozen: bool = field(default=False, init=False)
    cut: bool = field(default=False, init=False)

    def power_on(self) -> None:
        self.own.mkdir(parents=True, exist_ok=True)
        self._lock, (near, far) = Lock(), socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        near.settimeout(PATIENCE)
        facts = json.dumps({"boot": str(uuid.uuid4())})
        self._process = subprocess.Popen(
            (*NEW, sys.executable, PROGRAM, str(far.fileno()), facts),
            pass_fds=[far.fileno()],
            stdin=subprocess.DEVNULL,
        )
        far.close()
        self._control = near
        self._first = int(json.loads(near.recv(SIZE)))
        self._told(["boot", self._kept(), [str(it) for it in self.hide], [*self.wires], self.disk])
        message, doors, _, _ = socket.recv_fds(near, SIZE, len(self.wires))
        assert message == b'"up"', message
        self._servers = [
            self.relays.serve(socket.socket(fileno=door), target)
            for door, target in zip(doors, self.wires.values(), strict=True)
        ]
        self.on, self.frozen, self.cut = True, False, False

    def power_off(self) -> None:
        """Every process of it ends at once, and none can say a word."""
        if not self.on:
            return
        self.on = self.wanted = False
        with suppress(ProcessLookupError):
            os.kill(self._first, signal.SIGKILL)
        self._process.wait(PATIENCE)
        self._control.close()
        for it in self._servers:
            self.relays.end(it)

    def start(self, *more: str) -> None:
        """Its worker."""
        argv = [sys.executable, "-m", "lockgate", "worker", *more]
        self.asked("start", argv, dict(self.environ), str(self.own), str(self.own / "worker.log"))
        self.wanted, self.frozen = True, False

    def kill(self) -> None:
        """Its worker alone: agents live on."""
        self.asked("signal", signal.SIGKILL)
        self.frozen = False

    def stop(self) -> None:
        self.wanted = False
        self.asked("signal", signal.SIGTERM)

    def freeze(self) -> None:
        self.frozen = bool(self.asked("signal", signal.SIGSTOP))

    def thaw(self) -> None:
        self.asked("signal", signal.SIGCONT)
        self.frozen = False

    def network(self, *, up: bool) -> None:
        self.asked("network", up)
        self.cut = not up

    def alive(self) -> bool:
        return self.on and bool(self.asked("alive"))

    def processes(self) -> list[str]:
        told = self.asked("processes")
        assert isinstance(told, list)
        return [str(it) for it in told]

    def cpu(self) -> float:
        return float(str(self.asked("cpu")))

    def run(self, *argv: str) -> tuple[int, str, str]:
        told = self.asked("run", list(argv), dict(self.environ))
        assert isinstance(told, list)
        return int(told[0]), str(told[1]), str(told[2])

    def log(self) -> str:
        file = self.own / "worker.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def asked(self, *what: object) -> object:
        with self._lock:
            self._told([*what])
            told: object = json.loads(self._control.recv(SIZE))
        assert not isinstance(told, dict), f"host {self.name}, {what[0]}: {told}"
        return told

    def _told(self, what: list[object]) -> None:
        self._control.send(json.dumps(what).encode())

    def _kept(self) -> list[str]:
        """Its disk first; and the program, where that lies below what is hidden."""
        program = (Path(sys.prefix), Path(lockgate.__file__).parents[1], *self.shown)
        hidden = [it for it in program if any(it.is_relative_to(up) for up in self.hide)]
        return [str(self.own), *map(str, hidden)]
