"""A unix socket that takes command lines and answers with what they print.

A request is fields joined by NUL, and the end of what is sent ends it (version 2), or its length
stands before it and the caller may go on sending (version 3). An answer is fields that end with
NUL, sent as they come: `o` and what goes to stdout, `e` and what goes to stderr, last `x` and the
exit code. The first of version 2 is an empty `o`: the command has begun. An empty `t` says that the
connection was taken: what follows, both ways, is between the caller and the taker. The session's
runner uses this too, so it imports little: no dataclasses, no pathlib.
"""

import contextlib
import os
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Generator

VERSION = "2"
COUNTED = b"3\0"  # the version whose requests say how long they are
DIGITS = 8  # of that number, which a NUL ends
HEAD = len(COUNTED) + DIGITS + 1
TAKEN = b"t\0"
LONGEST = 2 << 20  # bytes of a request: 1 MB of input, and the command line
PATIENT_UNTIL = 64 << 20  # bytes that are read and thrown away before we stop listening
PATIENCE = 30.0  # seconds for a request to arrive whole
BACKLOG = 64  # connections that nobody has accepted yet
MOST_WAITING = 128  # connections whose request has not arrived whole
WIDEST = 5  # digits that a number of columns has not
MOST_BYTES = 32 << 20  # of all requests that have not arrived whole


class Request:
    """A command line, and who asks for it from where.

    `path` is where they look for programs; `lively` means that a person sees what goes to stderr.
    `columns` is how wide the terminal is that stdout goes to, 0 where that is none. `uid` is the
    user whose process connected, by the kernel's word; None where the kernel does not say.
    """

    __slots__ = ("argv", "columns", "cwd", "lively", "path", "stdin", "token", "uid")

    def __init__(
        self,
        *,
        token: str,
        cwd: str,
        stdin: str,
        argv: tuple[str, ...],
        path: str = "",
        lively: bool = False,
    ) -> None:
        self.token, self.cwd, self.stdin, self.argv = token, cwd, stdin, argv
        self.path, self.lively, self.columns = path, lively, 0
        self.uid: int | None = None


class Line:
    """The way back to the client: each text is sent at once."""

    def __init__(self, connection: socket.socket, closing: Callable[[], bool]) -> None:
        self._connection, self._closing = connection, closing
        self._lock, self._broken = threading.Lock(), False

    def out(self, text: str) -> None:
        self._say("o", text)

    def err(self, text: str) -> None:
        self._say("e", text)

    def end(self, code: int) -> None:
        self._say("x", str(code))

    def gone(self) -> bool:
        """Whether nobody listens any more, or the door is about to close."""
        return self.left() or self._closing()

    def left(self) -> bool:
        """Whether nobody listens any more."""
        if not self._broken:
            waiting = select.poll()
            waiting.register(self._connection, 0)  # for the end of both ways, and nothing else
            self._broken = bool(waiting.poll(0))
        return self._broken

    def take(self) -> socket.socket:
        """The connection itself, which is the taker's to close; OSError where nobody listens.

        The caller is told, and nothing more is said down this line. What the caller sent behind
        its request is still to be read. A place at the door is free when the answer returns.
        """
        with self._lock:
            if self._broken:
                raise BrokenPipeError
            self._broken = True
            self._connection.sendall(TAKEN)
            taken = socket.socket(fileno=self._connection.detach())
        taken.settimeout(None)
        return taken

    def _say(self, kind: str, text: str) -> None:
        with self._lock:
            if self._broken:
                return
            try:
                self._connection.sendall(_encoded(kind + text) + b"\0")
            except OSError:
                self._broken = True


class Answer:
    """What the command printed, besides what went down the line, and its exit code."""

    __slots__ = ("code", "err", "out")

    def __init__(self, code: int, out: str = "", err: str = "") -> None:
        self.code, self.out, self.err = code, out, err


class Arriving:
    """A connection whose request has not arrived whole."""

    __slots__ = ("connection", "length", "text", "until", "whole")

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(0.0)
        self.connection, self.text, self.length = connection, bytearray(), 0
        self.whole: int | None = None  # how long it is, where its head has said so
        self.until = time.monotonic() + PATIENCE

    def read(self) -> bool:
        """Whether it has ended, or is so long that no more of it is read."""
        chunk = self.connection.recv(self._wanted())
        self.length += len(chunk)
        if self.too_long:
            self.text.clear()
        else:
            self.text += chunk
        if self.length == HEAD:
            self.whole = whole_length(bytes(self.text))
        return not chunk or self.length > PATIENT_UNTIL or self.length == self.whole

    def _wanted(self) -> int:
        """No byte behind a request is read: it belongs to the process that takes the connection."""
        if self.length < HEAD:
            return HEAD - self.length
        return 1 << 16 if self.whole is None else min(self.whole - self.length, 1 << 16)

    @property
    def too_long(self) -> bool:
        return self.length > LONGEST


class Door:
    """Listens from when it is made, answers from `serve` to `close`: so many at once, in threads.

    One thread reads what arrives; a request takes one of the places when it is whole. What lies at
    the path is replaced: only the holder of the directory's lock may open one. If `answer` returns
    None, the response was already streamed, or the client must run the command itself.
    """

    def __init__(
        self,
        path: str,
        answer: Callable[[Request, Line], Answer | None],
        *,
        at_once: int = 16,
        mode: int = 0o600,
    ) -> None:
        self._path, self._answer = path, answer
        self._at_once, self._room = at_once, threading.BoundedSemaphore(at_once)
        self._socket = _listening(path, mode)
        self._closed = False
        self._listener = threading.Thread(target=self._listen, name="door", daemon=True)
        self._arriving = dict[int, Arriving]()  # by descriptor, the oldest first
        self._busy = 0  # requests that are answered or wait for a place
        self._changed = threading.Condition()

    def serve(self) -> None:
        self._listener.start()

    @property
    def busy(self) -> bool:
        return self._busy > 0

    def close(self, patience: float = 5.0) -> bool:
        """Take nothing new and wait for what was taken; whether all of it was answered."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            os.unlink(self._path)  # noqa: PTH108 - no pathlib here
        if self._listener.is_alive():
            self._listener.join(patience)
        with self._changed:
            answered = self._changed.wait_for(lambda: self._busy == 0, patience)
        self._socket.close()
        return answered

    def _listen(self) -> None:
        while not self._closed:
            for descriptor in self._readable():
                if descriptor in self._arriving:
                    self._read(descriptor)
                else:
                    self._accept()
            self._turn_away()
        for descriptor in tuple(self._arriving):
            self._read(descriptor)  # what is whole already is still answered
        for descriptor in tuple(self._arriving):
            self._drop(descriptor)

    def _readable(self) -> list[int]:
        """Where something has arrived. Nobody new is let in while as many wait for a place."""
        waiting = select.poll()
        open = self._busy < self._at_once + MOST_WAITING
        if open:
            waiting.register(self._socket, select.POLLIN)
        for descriptor in self._arriving:
            waiting.register(descriptor, select.POLLIN)
        pause = None if open else 0.05
        if open and self._arriving:
            first = min(it.until for it in self._arriving.values())
            pause = max(first - time.monotonic(), 0.0)
        return [it for it, _ in waiting.poll(None if pause is None else pause * 1000 + 1)]

    def _accept(self) -> None:
        for _ in range(BACKLOG):
            try:
                connection, _address = self._socket.accept()
            except BlockingIOError:
                return
            except OSError:
                if not self._closed:  # too many files are open
                    self._drop(next(iter(self._arriving), -1))
                    time.sleep(0.05)
                return
            self._arriving[connection.fileno()] = Arriving(connection)

    def _read(self, descriptor: int) -> None:
        arriving = self._arriving[descriptor]
        try:
            ended = arriving.read()
        except BlockingIOError:
            return
        except OSError:
            self._drop(descriptor)  # the client has gone
            return
        if ended:
            del self._arriving[descriptor]
            self._begin(arriving)

    def _turn_away(self) -> None:
        """Those who take too long; of too many the oldest, of too much the longest."""
        now, all = time.monotonic(), self._arriving
        for descriptor in [it for it, arriving in all.items() if arriving.until <= now]:
            self._drop(descriptor)
        while len(all) > MOST_WAITING:
            self._drop(next(iter(all)))
        while sum(len(it.text) for it in all.values()) > MOST_BYTES:
            self._drop(max(all, key=lambda it: len(all[it].text)))

    def _drop(self, descriptor: int) -> None:
        arriving = self._arriving.pop(descriptor, None)
        if arriving:
            arriving.connection.close()

    def _begin(self, asked: Arriving) -> None:
        raw = None if asked.too_long else bytes(asked.text)
        self._count(1)
        try:
            threading.Thread(target=self._serve, args=(asked.connection, raw), daemon=True).start()
        except RuntimeError:  # this user may start no more threads
            asked.connection.close()
            self._count(-1)

    def _serve(self, connection: socket.socket, raw: bytes | None) -> None:
        try:
            with connection, self._room:
                connection.settimeout(PATIENCE)
                line = Line(connection, lambda: self._closed)
                if line.left():
                    return  # a caller who did not wait does not want it any more
                if raw and raw.startswith(b"2\0"):
                    line.out("")
                answer = self._answered(raw, line, uid_of(connection))
                if answer is not None:
                    line.out(answer.out)
                    line.err(answer.err)
                    line.end(answer.code)
        except OSError:
            pass  # the client has gone
        finally:
            self._count(-1)

    def _answered(self, raw: bytes | None, line: Line, uid: int | None) -> Answer | None:
        if raw is None:
            return Answer(1, err="lockgate: the request was not understood: it is too long\n")
        request = parsed_request(raw)
        if request is None:
            return Answer(1, err="lockgate: the request was not understood\n")
        request.uid = uid
        try:
            return self._answer(request, line)
        except Exception as error:  # noqa: BLE001 - the other side must hear of it, whatever it is
            return Answer(3, err=f"lockgate: {type(error).__name__}: {error}\n")

    def _count(self, more: int) -> None:
        with self._changed:
            self._busy += more
            self._changed.notify_all()


def ask(path: str, request: Request, *, patience: float) -> Answer | None:
    """What the other end answers; None where nobody is there, or nobody any more."""
    try:
        with socket.socket(socket.AF_UNIX) as connection, short(path) as name:
            connection.settimeout(patience)
            _connect(connection, name, time.monotonic() + patience)
            connection.sendall(packed_request(request))
            connection.shutdown(socket.SHUT_WR)
            raw = received(connection)
    except TimeoutError:
        return Answer(1, err=f"lockgate: no answer within {patience:.0f} s\n")
    except OSError:
        return None
    return parsed_answer(raw)


def take(path: str, request: Request, *, patience: float) -> socket.socket | Answer | None:
    """A connection that the other end has taken, or why not; None where nobody is there."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        with short(path) as name:
            connection.settimeout(patience)
            _connect(connection, name, time.monotonic() + patience)
        connection.sendall(counted(packed_request(request)))
        said = connection.recv(1) + connection.recv(1)
        if said != TAKEN:
            said += received(connection)
            connection.close()
            return parsed_answer(said)
    except OSError:
        connection.close()
        return None
    connection.settimeout(None)
    return connection


def both_ways(one: socket.socket, other: socket.socket) -> None:
    """Copy what each end sends to the other, in threads, until one of them has gone."""
    threading.Thread(target=_join, args=(one, other), daemon=True).start()


def _join(one: socket.socket, other: socket.socket) -> None:
    with one, other:
        back = threading.Thread(target=_copy, args=(other, one), daemon=True)
        back.start()
        _copy(one, other)
        back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(1 << 16):
            target.sendall(chunk)
    for it in (source, target):
        with contextlib.suppress(OSError):
            it.shutdown(socket.SHUT_RDWR)


def _connect(connection: socket.socket, name: str, last: float) -> None:
    """Try again while the other end has more callers than its queue takes; TimeoutError then."""
    while True:
        try:
            return connection.connect(name)
        except BlockingIOError:
            if time.monotonic() > last:
                raise TimeoutError from None
            time.sleep(0.02)


@contextlib.contextmanager
def short(path: str) -> Generator[str]:
    """A name for the path that fits into a socket's address, whatever its length."""
    directory, name = os.path.split(path)
    if len(os.fsencode(path)) < 100:  # noqa: PLR2004 - 108 on Linux, 104 elsewhere
        yield path
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def uid_of(connection: socket.socket) -> int | None:
    """The user at the other end, whatever they say; None where the kernel does not tell."""
    asked = getattr(socket, "SO_PEERCRED", None)  # Linux has it
    if asked is None:
        return None
    said = connection.getsockopt(socket.SOL_SOCKET, asked, 12)  # pid, uid, gid
    return int.from_bytes(said[4:8], sys.byteorder)


def packed_request(request: Request) -> bytes:
    seen = f"{'1' if request.lively else ''} {request.columns or ''}".rstrip()
    where = (request.cwd, request.path, seen)
    parts = (VERSION, request.token, *where, request.stdin, *request.argv)
    return b"\0".join(_encoded(it) for it in parts)


def counted(raw: bytes) -> bytes:
    """The same request in version 3: the caller may go on sending behind it."""
    _, _, fields = raw.partition(b"\0")
    return COUNTED + f"{len(fields):0{DIGITS}}".encode() + b"\0" + fields


def whole_length(head: bytes) -> int | None:
    """How long a request of version 3 is, its head included; None where it is none."""
    digits = head[len(COUNTED) : -1]
    if not (head.startswith(COUNTED) and head.endswith(b"\0") and digits.isdigit()):
        return None
    return HEAD + int(digits)


def parsed_request(raw: bytes) -> Request | None:
    if whole_length(raw[:HEAD]) == len(raw):
        raw = b"\0".join((VERSION.encode(), raw[HEAD:]))
    version, *fields = (it.decode("utf-8", "surrogateescape") for it in raw.split(b"\0"))
    if version != VERSION or len(fields) < 5:  # noqa: PLR2004 - token, where they are, input
        return None
    token, cwd, path, seen, stdin, *argv = fields
    lively, _, columns = seen.partition(" ")
    request = Request(
        token=token, cwd=cwd, stdin=stdin, argv=tuple(argv), path=path, lively=bool(lively)
    )
    request.columns = int(columns) if columns.isdecimal() and len(columns) < WIDEST else 0
    return request


def parsed_answer(raw: bytes) -> Answer | None:
    """None where it has no end."""
    fields = [it.decode("utf-8", "surrogateescape") for it in raw.split(b"\0")]
    said = {kind: "".join(it[1:] for it in fields if it[:1] == kind) for kind in "oex"}
    return Answer(int(said["x"]), said["o"], said["e"]) if said["x"].isdigit() else None


def received(connection: socket.socket) -> bytes:
    """All that is sent."""
    return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def _encoded(text: str) -> bytes:
    return text.replace("\0", "").encode("utf-8", "surrogateescape")


def _listening(path: str, mode: int) -> socket.socket:
    """Bound under another name first, so that nobody meets it before its mode is set."""
    listening = socket.socket(socket.AF_UNIX)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{path}.new")  # noqa: PTH108 - no pathlib here
        with short(f"{path}.new") as name:
            listening.bind(name)
        os.chmod(f"{path}.new", mode)  # noqa: PTH101 - no pathlib here
        listening.listen(BACKLOG)
        listening.settimeout(0.0)
        os.rename(f"{path}.new", path)  # noqa: PTH104 - no pathlib here
    except BaseException:
        listening.close()
        raise
    return listening
