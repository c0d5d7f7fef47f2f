"""A unix socket that takes command lines and answers with what they print.

A request is fields joined by NUL, and the end of what is sent ends it. An answer is fields that end
with NUL, sent as they come: `o` and what goes to stdout, `e` and what goes to stderr, last `x` and
the exit code. The session's runner uses this too, so it imports little: no dataclasses, no pathlib.
"""

import contextlib
import os
import select
import socket
import threading
from collections.abc import Callable, Generator

VERSION = "2"
LONGEST = 2 << 20  # bytes of a request: 1 MB of input, and the command line
PATIENT_UNTIL = 64 << 20  # bytes that are read and thrown away before we stop listening
PATIENCE = 30.0  # seconds for a request to arrive whole


class Request:
    """A command line, and who asks for it from where.

    `path` is where they look for programs; `lively` means that a person sees what goes to stderr.
    """

    __slots__ = ("argv", "cwd", "lively", "path", "stdin", "token")

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
        self.path, self.lively = path, lively


class Line:
    """The way back to whoever asked: what is said goes out at once."""

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
        if not self._broken:
            waiting = select.poll()
            waiting.register(self._connection, 0)  # for the end of both ways, and nothing else
            self._broken = bool(waiting.poll(0))
        return self._broken or self._closing()

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


class Door:
    """Listens from when it is made, answers from `serve` to `close`: so many at once, in threads.

    What lies at the path is replaced: only whoever holds the lock on the place may open one. Where
    `answer` gives none, it went down the line already, or is left to whoever asked.
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
        self._room = threading.BoundedSemaphore(at_once)
        self._socket = _listening(path, mode)
        self._closed = False
        self._accepting = threading.Thread(target=self._accept, name="door", daemon=True)
        self._busy = 0
        self._changed = threading.Condition()

    def serve(self) -> None:
        self._accepting.start()

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
        with self._changed:
            answered = self._changed.wait_for(lambda: self._busy == 0, patience)
        self._socket.close()
        return answered

    def _accept(self) -> None:
        while not self._closed:
            self._room.acquire()
            try:
                connection, _ = self._socket.accept()
            except OSError:
                self._room.release()
                if self._socket.fileno() < 0:
                    return
                threading.Event().wait(0.05)  # too many files are open: they will be closed
                continue
            self._count(1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                connection.settimeout(PATIENCE)
                line = Line(connection, lambda: self._closed)
                answer = self._answered(received(connection, LONGEST), line)
                if answer is not None:
                    line.out(answer.out)
                    line.err(answer.err)
                    line.end(answer.code)
        except OSError:
            pass  # whoever asked has gone
        finally:
            self._room.release()
            self._count(-1)

    def _answered(self, raw: bytes | None, line: Line) -> Answer | None:
        if raw is None:
            return Answer(1, err="lockgate: the request was not understood: it is too long\n")
        request = parsed_request(raw)
        if request is None:
            return Answer(1, err="lockgate: the request was not understood\n")
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
            connection.connect(name)
            connection.sendall(packed_request(request))
            connection.shutdown(socket.SHUT_WR)
            raw = received(connection, None)
    except TimeoutError:
        return Answer(1, err=f"lockgate: no answer within {patience:.0f} s\n")
    except OSError:
        return None
    return None if raw is None else parsed_answer(raw)


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


def packed_request(request: Request) -> bytes:
    where = (request.cwd, request.path, "1" if request.lively else "")
    parts = (VERSION, request.token, *where, request.stdin, *request.argv)
    return b"\0".join(_encoded(it) for it in parts)


def parsed_request(raw: bytes) -> Request | None:
    version, *fields = (it.decode("utf-8", "surrogateescape") for it in raw.split(b"\0"))
    if version != VERSION or len(fields) < 5:  # noqa: PLR2004 - token, where they are, input
        return None
    token, cwd, path, lively, stdin, *argv = fields
    return Request(
        token=token, cwd=cwd, stdin=stdin, argv=tuple(argv), path=path, lively=bool(lively)
    )


def parsed_answer(raw: bytes) -> Answer | None:
    """None where it has no end."""
    fields = [it.decode("utf-8", "surrogateescape") for it in raw.split(b"\0")]
    said = {kind: "".join(it[1:] for it in fields if it[:1] == kind) for kind in "oex"}
    return Answer(int(said["x"]), said["o"], said["e"]) if said["x"].isdigit() else None


def received(connection: socket.socket, longest: int | None) -> bytes | None:
    """All that is sent; None where it is more than may be. What is not read costs the answer."""
    parts, length = list[bytes](), 0
    while chunk := connection.recv(1 << 16):
        length += len(chunk)
        if longest is None or length <= longest:
            parts.append(chunk)
        elif length > PATIENT_UNTIL:
            break
    return None if longest is not None and length > longest else b"".join(parts)


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
        listening.listen(64)
        os.rename(f"{path}.new", path)  # noqa: PTH104 - no pathlib here
    except BaseException:
        listening.close()
        raise
    return listening
