"""The one place that starts a process: argument lists only, a clean environment, a deadline."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, Self

from lockgate.errors import Unavailable

DEADLINE = 60.0
KEPT = 1 << 19  # bytes of each end of an output
LOOK_EVERY = 0.1  # seconds between two looks at whether it is still wanted
READ = 1 << 16
BARE = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}  # bwrap's is seen by what it encloses


class Cut(StrEnum):
    """Why a program's exit code says nothing about it."""

    DEADLINE = "deadline"
    CANCELLED = "cancelled"
    BOX = "box"  # what should have enclosed it failed


@dataclass(frozen=True, slots=True)
class Finished:
    code: int
    out: str
    err: str
    cut: Cut | None = None


@dataclass(frozen=True, slots=True)
class Boxed:
    """What encloses, the options it reads from a descriptor, and what runs inside."""

    program: tuple[str, ...]
    options: tuple[str, ...]
    argv: tuple[str, ...]


def run(argv: Sequence[str], *, cwd: Path | None = None, deadline: float = DEADLINE) -> Finished:
    """Run it to its end. Unavailable where it cannot be started or does not end in time."""
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and every caller builds its own list
            argv,
            cwd=cwd,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=deadline,
            check=False,
        )
    except OSError as error:
        raise _not_started(argv[0], error) from error
    except subprocess.TimeoutExpired as error:
        what, why = f"{argv[0]} was ended", f"it had not finished after {deadline:.0f} s"
        raise Unavailable(what, why=why, fix="try again when the machine is less busy") from error
    return Finished(done.returncode, _text(done.stdout), _text(done.stderr))


def run_boxed(
    boxed: Boxed,
    *,
    stdin: bytes | None = None,
    stdout: Path | None = None,
    deadline: float = DEADLINE,
    cancelled: Callable[[], bool] | None = None,
) -> Finished:
    """Run it to its end, or to ours: then nothing of it is left, and `cut` says why.

    Of each output both ends are kept, but all of what goes to a file. It must be called from a
    thread that lives until it returns: bwrap dies with the thread that started it.
    """
    with _Running(boxed, stdin or b"", stdout) as running:
        cut = running.follow(time.monotonic() + deadline, cancelled or _never)
        code = running.child.wait()
        cut = cut or (None if running.exit_was_told() else Cut.BOX)
        return Finished(code, running.out.text(), running.err.text(), cut)


def start_detached(argv: Sequence[str], log: Path) -> None:
    """Start it on its own, with no terminal and its words in a file; nobody waits for it."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as words:
        try:
            subprocess.Popen(  # noqa: S603 - no shell, and every caller builds its own list
                argv,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                start_new_session=True,
            ).returncode = 0  # it outlives us: whoever comes after us reaps it
        except OSError as error:
            raise _not_started(argv[0], error) from error


class _Running:
    """A box with its descriptors, all of which are closed at its end."""

    def __init__(self, boxed: Boxed, stdin: bytes, stdout: Path | None) -> None:
        self.out, self.err, self.status = _Ends(), _Ends(), _Ends()
        self._left = memoryview(stdin)
        self._selector = selectors.DefaultSelector()
        options = os.memfd_create("options")
        told, telling = os.pipe()
        self._told = os.fdopen(told, "rb", buffering=0)
        try:
            os.write(options, b"".join(os.fsencode(it) + b"\0" for it in boxed.options))
            os.lseek(options, 0, os.SEEK_SET)
            handed = ("--args", str(options), "--json-status-fd", str(telling), "--")
            self.child = _start([*boxed.program, *handed, *boxed.argv], stdout, (options, telling))
        except BaseException:
            self._told.close()
            raise
        finally:
            os.close(options)
            os.close(telling)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._selector.close()
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
        self._feed()
        while any(key.data is not None for key in self._selector.get_map().values()):
            for key, _ in self._selector.select(LOOK_EVERY):
                self._pass_on(key)
            cut = _cut(until, cancelled)
            if cut is not None:
                self._end()
                return cut
        return None

    def exit_was_told(self) -> bool:
        return b'"exit-code"' in self.status.whole()

    def _feed(self) -> None:
        assert self.child.stdin is not None  # noqa: S101 - it is a pipe
        os.set_blocking(self.child.stdin.fileno(), False)
        self._selector.register(self.child.stdin, selectors.EVENT_WRITE, None)

    def _pass_on(self, key: selectors.SelectorKey) -> None:
        if isinstance(key.data, _Ends):
            chunk = os.read(key.fd, READ)
            key.data.add(chunk)
            if not chunk:
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

    def _end(self) -> None:
        """Kill the first process inside: its namespace goes with it before bwrap returns."""
        first = _first_inside(self.status.whole())
        if self.child.poll() is None and first is not None:
            with suppress(ProcessLookupError):
                os.kill(first, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self.child.wait(5)
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()


class _Ends:
    """The first and the last bytes of a stream, whatever its length."""

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


def _start(
    argv: Sequence[str], stdout: Path | None, handed: tuple[int, ...]
) -> subprocess.Popen[bytes]:
    file: BinaryIO | None = stdout.open("wb") if stdout else None
    try:
        return subprocess.Popen(  # noqa: S603 - no shell, and every caller builds its own list
            argv,
            cwd="/",
            env=BARE,
            stdin=subprocess.PIPE,
            stdout=file or subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            pass_fds=handed,
            start_new_session=True,
        )
    except OSError as error:
        raise _not_started(argv[0], error) from error
    finally:
        if file is not None:
            file.close()


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


def _not_started(program: str, error: OSError) -> Unavailable:
    what = f"{program} was not run"
    if isinstance(error, FileNotFoundError):
        why, fix = f"{error.filename} is not there", f"install {program}, or check the path"
    else:
        why, fix = str(error), "see that the program can be started here"
    return Unavailable(what, why=why, fix=fix)


def _environment() -> dict[str, str]:
    """Ours without git's own variables: a hook that calls us must not point git elsewhere."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    kept |= {name: value for name, value in os.environ.items() if name in _GIT_IDENTITY}
    return kept | {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}


_GIT_IDENTITY = {
    f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL", "DATE")
} | {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"}


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="surrogateescape")
