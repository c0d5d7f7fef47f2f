"""Runs what is enclosed: passes its streams on, looks after it, and ends it with all it started."""

import os
import selectors
import signal
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from io import FileIO
from pathlib import Path
from typing import Protocol, Self

from msgspec import Struct

from lockgate.adapters.run import (
    DEADLINE,
    Cut,
    Finished,
    becomes_readable,
    ended_within,
    start_piped,
)
from lockgate.adapters.sandbox.proof import STREAMS, Proof, asked
from lockgate.adapters.sandbox.uplink import Uplink
from lockgate.errors import Unavailable

# What is kept of an output: both its ends, whatever its length.


KEPT = 1 << 19  # bytes of each end of an output
READ = 1 << 16


class Ends:
    """The first and the last bytes of a stream."""

    def __init__(self) -> None:
        self._head, self._tail, self._lost = bytearray(), bytearray(), 0

    def add(self, chunk: bytes) -> None:
        room = KEPT - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:] if room > 0 else chunk
        if len(self._tail) > 2 * KEPT:
            self._lost += len(self._tail) - KEPT
            del self._tail[:-KEPT]

    def whole(self) -> bytes:
        return bytes(self._head + self._tail)

    def text(self) -> str:
        left_out = f"\n… {self._lost} bytes left out …\n" if self._lost else ""
        return _text(bytes(self._head)) + left_out + _text(bytes(self._tail))


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="surrogateescape")


_heard: ContextVar[Callable[[bytes], None] | None] = ContextVar("heard", default=None)


@contextmanager
def hearing(hear: Callable[[bytes], None]) -> Generator[None]:
    """What programs print in boxes that this thread runs meanwhile is told as it comes."""
    token = _heard.set(hear)
    try:
        yield
    finally:
        _heard.reset(token)


LOOK_EVERY = 0.1  # seconds between two looks at whether it is still wanted
ENDED = object()  # what a process's handle becomes readable for
PATIENCE = 5.0  # seconds for what was killed to be gone
SHORTLY = 0.5  # seconds for a bwrap that could not make its box to say so


class Boxed(Struct, frozen=True, kw_only=True):
    """What encloses, the options it reads from a descriptor, and what runs inside.

    Where no program encloses it, it runs bare. `direct` is for us, who hand over the filter too.
    """

    program: tuple[str, ...]
    options: tuple[str, ...]
    argv: tuple[str, ...]
    direct: tuple[str, ...] = ()
    before: tuple[str, ...] = ()  # what starts that
    filter: bytes = b""
    separate: tuple[str, ...] = ()  # the namespaces that it must not share with us
    uplink: tuple[str, ...] = ()  # what gives its own network a way out
    directory: str = "/"  # this and the next are of one that runs bare
    environment: Mapping[str, str] | None = None


class Warden(Protocol):
    """Looks after one box from before its program starts until nothing of it is left."""

    def enters(self, outer: int, first: int) -> None:
        """The box is made and waits: bwrap's pid, and that of the first process inside."""
        ...

    def look(self) -> Cut | None:
        """Whether it must end, asked many times a second."""
        ...

    def leaves(self, code: int) -> Cut | None:
        """Whether that code says nothing, asked when nothing of it runs any more."""
        ...


def run_boxed(
    boxed: Boxed,
    *,
    stdin: bytes | None = None,
    stdout: Path | None = None,
    deadline: float = DEADLINE,
    cancelled: Callable[[], bool] | None = None,
    warden: Warden | None = None,
) -> Finished:
    """Run it to its end, or to ours: then nothing of it is left, and `cut` says why.

    Of each output both ends are kept, but all of what goes to a file. It must be called from a
    thread that lives until it returns: bwrap dies with the thread that started it.
    """
    with _Running(boxed, stdin or b"", stdout, warden) as running:
        cut = running.follow(time.monotonic() + deadline, cancelled or _never)
        running.end()
        code = running.child.returncode
        cut = cut or running.unproved()
        cut = cut or (warden.leaves(code) if warden else None)
        cut = cut or (None if running.exit_was_told() else Cut.BOX)
        return Finished(code, running.out.text(), running.err.text(), cut)


class _Running:
    """A box with its descriptors, all of which are closed at its end."""

    def __init__(
        self, boxed: Boxed, stdin: bytes, stdout: Path | None, warden: Warden | None
    ) -> None:
        self.out, self.err, self.status = Ends(), Ends(), Ends()
        self._left, self._warden, self._proof = memoryview(stdin), warden, Proof(boxed.separate)
        self._bare = not (boxed.direct or boxed.program)
        self._selector = selectors.PollSelector()  # made at once, for so few
        self._first: int | None = None  # a pidfd
        self._pid = 0  # of the same process
        self._over = False
        self._told: FileIO | None = None
        self._way_out = boxed.uplink
        self._uplink: Uplink | None = None
        if self._bare:
            where, known = boxed.directory, boxed.environment
            self.child = start_piped(boxed.argv, stdout, (), directory=where, environment=known)
        else:
            self._start(boxed, stdout)

    def _start(self, boxed: Boxed, stdout: Path | None) -> None:
        told, telling = os.pipe()
        self._told = FileIO(told)
        try:
            with _handed(boxed, told, telling) as (argv, handed):
                self.child = start_piped(argv, stdout, handed)
        except BaseException:
            self._told.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._selector.close()
        if self._uplink is not None:
            self._uplink.close()
        if self._first is not None:
            os.close(self._first)
        for stream in (self.child.stdin, self.child.stdout, self.child.stderr, self._told):
            if stream is not None:
                with suppress(OSError):  # it no longer reads what we had for it
                    stream.close()

    def follow(self, until: float, cancelled: Callable[[], bool]) -> Cut | None:
        """Pass everything on until all its outputs are closed or it must end."""
        for stream, ends in (
            (self.child.stdout, self.out),
            (self.child.stderr, self.err),
            (self._told, self.status),
        ):
            if stream is not None:
                self._selector.register(stream, selectors.EVENT_READ, ends)
        if self._bare:
            self._feed_or_close()
            self._first = os.pidfd_open(self.child.pid)
            self._selector.register(self._first, selectors.EVENT_READ, ENDED)
        while self._goes_on():
            for key, _ in self._selector.select(LOOK_EVERY):
                self._pass_on(key)
            self._meet()
            cut = _cut(until, cancelled) or (self._warden.look() if self._warden else None)
            if cut is not None:
                return cut
        return None

    def exit_was_told(self) -> bool:
        return self._bare or b'"exit-code"' in self.status.whole()

    def unproved(self) -> Cut | None:
        """Whether it told how it ended, or answered, and is no sandbox of ours."""
        self.err.add(self._proof.unheard())
        if self._bare or self._proof.holds:
            return None
        if not self._proof.answered and not self.exit_was_told():
            return None  # it could not be made, and has said why
        self.err.add(f"the sandbox was not proved: {self._proof.fault}\n".encode())
        return Cut.BOX

    def end(self) -> None:
        """Kill the first process inside: when it is gone, so is everything in its namespace."""
        if self._over:
            return
        self._over = True
        if self._bare:
            with suppress(ProcessLookupError):
                os.killpg(self.child.pid, signal.SIGKILL)
        elif self._first is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
        unmet = self._first is None and not self._bare
        if not ended_within(self.child, SHORTLY if unmet else PATIENCE):
            self.child.kill()
            self.child.wait()
        if self._first is not None and not self._bare:
            becomes_readable(self._first, PATIENCE)

    def _goes_on(self) -> bool:
        """Whether an output is open; bare, what it left behind may hold one for ever.

        Bare it may also close them all and go on.
        """
        if self._bare:
            return self.child.poll() is None or bool(self._selector.select(0))
        return any(key.data is not None for key in self._selector.get_map().values())

    def _meet(self) -> None:
        first = _first_inside(self.status.whole()) if self._first is None else None
        if first is None:
            return
        with suppress(ProcessLookupError):
            self._first = os.pidfd_open(first)
            if self._warden is not None:
                self._warden.enters(self.child.pid, first)
            self._pid = first
            self._join(first)
            self._say(self._proof.word)

    def _join(self, first: int) -> None:
        if not self._way_out:
            return
        self._uplink = Uplink(self._way_out, first)
        if not self._uplink.works:
            raise Unavailable(
                "the command was not run",
                why="pasta could not connect its sandbox to the network",
                fix="see what `pasta --config-net -- ip addr` says, or remove the package passt",
            )

    def _say(self, word: bytes) -> None:
        """A pipe always takes so little."""
        assert self.child.stdin is not None  # noqa: S101 - it is a pipe
        with suppress(BrokenPipeError):
            os.write(self.child.stdin.fileno(), word)

    def _hear(self, chunk: bytes) -> bytes:
        """What of it is the command's, which starts only when the box has answered."""
        waited = not self._proof.answered
        said = self._proof.hear(chunk, self._pid)
        if waited and self._proof.answered:
            self._let_start()
        return said

    def _let_start(self) -> None:
        if self._proof.holds:
            self._say(b"go\n")
        else:
            self._left = memoryview(b"")
        self._feed_or_close()

    def _feed_or_close(self) -> None:
        if self._left:
            self._feed()
        elif self.child.stdin is not None:
            self.child.stdin.close()

    def _feed(self) -> None:
        assert self.child.stdin is not None  # noqa: S101 - it is a pipe
        os.set_blocking(self.child.stdin.fileno(), False)
        self._selector.register(self.child.stdin, selectors.EVENT_WRITE, None)

    def _pass_on(self, key: selectors.SelectorKey) -> None:
        if isinstance(key.data, Ends):
            chunk = os.read(key.fd, READ)
            said = self._hear(chunk) if key.data is self.err and not self._bare else chunk
            hear = _heard.get()
            if hear and key.data is not self.status:
                hear(said)
            key.data.add(said)
            if not chunk:
                self._selector.unregister(key.fileobj)
            return
        if key.data is ENDED:
            self._selector.unregister(key.fileobj)
            return
        try:
            self._left = self._left[os.write(key.fd, self._left[:READ]) :]
        except BrokenPipeError:
            self._left = memoryview(b"")
        if not self._left:
            self._selector.unregister(key.fileobj)
            assert self.child.stdin is not None  # noqa: S101 - it is a pipe
            self.child.stdin.close()


@contextmanager
def _handed(boxed: Boxed, told: int, telling: int) -> Generator[tuple[list[str], list[int]]]:
    """The command line, and the descriptors it names.

    The pipe's other end goes with it: a bwrap that finds nobody to tell dies, and its child stays.
    """
    with ExitStack() as closing:
        closing.callback(os.close, telling)
        program = boxed.direct or boxed.program
        given = {"--json-status-fd": telling, "--sync-fd": told}
        given["--args"] = in_memory(b"".join(os.fsencode(it) + b"\0" for it in boxed.options))
        closing.callback(os.close, given["--args"])
        if boxed.filter:
            given["--seccomp"] = in_memory(boxed.filter)
            closing.callback(os.close, given["--seccomp"])
        named = [word for name, number in given.items() for word in (name, str(number))]
        yield (
            [*boxed.before, *program, *named, "--", *asked(boxed.argv, STREAMS)],
            list(given.values()),
        )


def in_memory(content: bytes) -> int:
    descriptor = os.memfd_create("handed")
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _never() -> bool:
    return False


def _cut(until: float, cancelled: Callable[[], bool]) -> Cut | None:
    if cancelled():
        return Cut.CANCELLED
    return Cut.DEADLINE if time.monotonic() > until else None


def _first_inside(status: bytes) -> int | None:
    """The pid, as we see it, of the first process of the box: `{ "child-pid": 42, … }`."""
    _, found, rest = status.partition(b'"child-pid":')
    digits = rest.split(b",")[0].split(b"\n")[0].strip(b" }")
    return int(digits) if found and digits.isdigit() else None
