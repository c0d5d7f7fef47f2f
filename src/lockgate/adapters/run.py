"""The one place that starts a process: argument lists only, a clean environment, a deadline."""

import functools
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from lockgate.errors import Unavailable
from lockgate.ports import Cut

__all__ = ["Cut", "Finished", "Process", "ended_within", "run", "start_detached", "start_piped"]

DEADLINE = 60.0
CHUNK = 65536  # bytes of its output, at once
STARTER = "LOCKGATE_STARTER"  # who started it, for a process that finds it without a starter
BARE = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}  # bwrap's is seen by what it encloses

Process = subprocess.Popen[bytes]


class Finished(Struct, frozen=True):
    code: int
    out: str
    err: str
    cut: Cut | None = None


def run(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    deadline: float = DEADLINE,
    environment: Mapping[str, str] | None = None,
    given: Path | None = None,
    first: Callable[[], None] | None = None,
) -> Finished:
    """Run it to its end, with these variables besides ours, and this file for it to read.

    `first` is called once it runs; then it is given a line. Unavailable where it cannot be started
    or does not end in time.
    """
    waits = None if first is None else subprocess.PIPE
    with _started(argv, cwd, _environment() | dict(environment or {}), given, waits) as process:
        try:
            if first:
                first()
                _tell(process)
            out, err = _heard(process, argv[0], deadline)
        except BaseException:
            process.kill()
            raise
    return Finished(process.returncode, out, err)


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
            ).returncode = 0  # it outlives us: init reaps it
        except OSError as error:
            raise _not_started(argv[0], error) from error


def start_serving(argv: Sequence[str], handed: int, log: Path) -> Process:
    """Start it with this one descriptor, by which it is told what to do; its words in a file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as words:
        try:
            return subprocess.Popen(  # noqa: S603 - no shell, and every caller builds its own list
                argv,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                pass_fds=(handed,),
                start_new_session=True,
            )
        except OSError as error:
            raise _not_started(argv[0], error) from error


def start_piped(
    argv: Sequence[str],
    stdout: Path | None,
    handed: Sequence[int],
    *,
    directory: str = "/",
    environment: Mapping[str, str] | None = None,
) -> Process:
    """Start it in a session of its own, with pipes for its streams and these descriptors."""
    file: BinaryIO | None = stdout.open("wb") if stdout else None
    try:
        return subprocess.Popen(  # noqa: S603 - no shell, and every caller builds its own list
            argv,
            cwd=directory,
            env=BARE | {STARTER: me()} if environment is None else environment,
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


def ended_within(process: Process, seconds: float) -> bool:
    """Told by the kernel where it tells: `wait` looks again and again, ever less often."""
    if sys.platform != "linux":
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
    elif process.poll() is None:
        handle = os.pidfd_open(process.pid)
        try:
            becomes_readable(handle, seconds)
        finally:
            os.close(handle)
    return process.poll() is not None


def becomes_readable(descriptor: int, seconds: float) -> bool:
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(seconds * 1000))


def _tell(process: Process) -> None:
    with suppress(BrokenPipeError):
        if process.stdin:
            process.stdin.write(b"go\n")
            process.stdin.close()


def _started(
    argv: Sequence[str],
    cwd: Path | None,
    environment: Mapping[str, str],
    given: Path | None,
    waits: int | None,
) -> Process:
    file = given.open("rb") if given else None
    try:
        return subprocess.Popen(  # noqa: S603 - no shell, and every caller builds its own list
            argv,
            cwd=cwd,
            env=environment,
            stdin=file or waits or subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
    except OSError as error:
        raise _not_started(argv[0], error) from error
    finally:
        if file is not None:
            file.close()


def _heard(process: Process, program: str, seconds: float) -> tuple[str, str]:
    """Both its outputs, whole, once it has ended."""
    end = time.monotonic() + seconds
    said = {it.fileno(): bytearray() for it in (process.stdout, process.stderr) if it}
    waiting, left = select.poll(), set(said)
    for descriptor in left:
        waiting.register(descriptor, select.POLLIN)
    while left:
        ready = waiting.poll(max(0.0, end - time.monotonic()) * 1000)
        if not ready:
            raise _too_slow(program, seconds)
        for descriptor, _ in ready:
            chunk = os.read(descriptor, CHUNK)
            said[descriptor] += chunk
            if not chunk:
                waiting.unregister(descriptor)
                left.discard(descriptor)
    if not ended_within(process, max(0.0, end - time.monotonic())):
        raise _too_slow(program, seconds)
    out, err = said.values()
    return _text(out), _text(err)


def _too_slow(program: str, seconds: float) -> Unavailable:
    what, why = f"{program} was ended", f"it had not finished after {seconds:.0f} s"
    return Unavailable(what, why=why, fix="try again when the machine is less busy")


def _not_started(program: str, error: OSError) -> Unavailable:
    what = f"{program} was not run"
    if isinstance(error, FileNotFoundError):
        why, fix = f"{error.filename} is not there", f"install {program}, or check the path"
    else:
        why, fix = str(error), "see that the program can be started here"
    return Unavailable(what, why=why, fix=fix)


def me() -> str:
    """This process, as no other was or will be until the machine restarts."""
    return _named(os.getpid())


@functools.lru_cache(maxsize=1)
def _named(pid: int) -> str:
    return f"{namespace()}.{pid}.{started_at(pid)}"


def namespace() -> str:
    """In another one the same number is another process."""
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        return "0"


def started_at(pid: int) -> int:
    """When it began, in ticks since the machine started; 0 where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[19])


def _environment() -> dict[str, str]:
    """Ours without git's own variables: a hook that calls us must not point git elsewhere."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _GIT_IDENTITY
    }
    return kept | {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}


_GIT_IDENTITY = {
    f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL", "DATE")
} | {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"}


def _text(raw: bytes | bytearray) -> str:
    return raw.decode("utf-8", errors="surrogateescape")
