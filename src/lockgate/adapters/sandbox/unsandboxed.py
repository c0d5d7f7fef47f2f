"""One attempt of a command that nothing encloses, held by nothing but its deadline."""

import os
import signal
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from lockgate.adapters.run import becomes_readable
from lockgate.adapters.sandbox.attempt import Tried, Try, argv_of, tried
from lockgate.adapters.sandbox.fingerprint import have_as_made
from lockgate.adapters.sandbox.process import Boxed
from lockgate.adapters.sandbox.scratch import COPIED, Room, room_for, room_in
from lockgate.adapters.sandbox.watchdog import Keeper
from lockgate.ports import Upkeep

# Ends what an attempt that nothing encloses leaves running, as far as it can be found.


MANY = 4096  # new processes, from which on it is quicker to look at all that there are
BRIEFLY = 1.0  # seconds in which the numbers cannot all have been given away and begun anew
PATIENCE = 5.0  # seconds for what was killed to be gone
ROUNDS = 10  # what is just starting another one may be found only once that is there


class Start(Struct, frozen=True):
    """When it was, and the number of the process that was started last before."""

    at: float
    newest: int


def start_now() -> Start:
    return Start(time.monotonic(), _newest())


def end_stragglers(mark: str, since: Start) -> None:
    """Those that were started since and have the mark in their environment."""
    marked = os.fsencode(mark)
    for _ in range(ROUNDS):
        found = [pid for pid in _younger(since) if _carries(pid, marked)]
        if not found:
            return
        for pid in found:
            _end(pid, marked)


def _younger(since: Start) -> Iterable[int]:
    """And perhaps some that are older."""
    last, before = _newest(), since.newest
    if time.monotonic() < since.at + BRIEFLY and 0 < before < last < before + MANY:
        return range(before + 1, last + 1)
    with suppress(OSError):
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208
    return ()


def _newest() -> int:
    """Nought where nobody knows."""
    with suppress(OSError, ValueError):
        return int(_content("/proc/loadavg").split()[-1])
    return 0


def _carries(pid: int, mark: bytes) -> bool:
    with suppress(OSError):
        return mark in _content(f"/proc/{pid}/environ").split(b"\0")
    return False


def _content(path: str) -> bytes:
    """Without a buffer, which takes as long to make as such a file to read."""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - as above
        return file.readall()


def _end(pid: int, mark: bytes) -> None:
    """By a handle, so that it is still the same process when it is ended."""
    with suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            if _carries(pid, mark):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                becomes_readable(handle, PATIENCE)
        finally:
            os.close(handle)


def bare(it: Try, upkeep: Upkeep | None, cancelled: Callable[[], bool], *, alone: bool) -> Tried:
    """In the checkout itself where its upkeep is known and nobody else is in it, else on a copy."""
    with (
        _room(it.checkout, upkeep, alone=alone) as room,
        closing(Keeper(room, it.sandbox.memory_mb, it.sandbox.pids, None)) as keeper,
    ):
        keeper.enters(os.getpid(), 0)
        keeper.services = bool(it.services)
        if it.services:
            (room.place / "told").mkdir(exist_ok=True)
        argv = tuple(argv_of(it, f"{room.place}/told", ""))
        environment = _environment(str(room.place))
        made = Boxed(
            program=(), options=(), argv=argv, directory=str(room.tree), environment=environment
        )
        since = start_now()
        try:
            return tried(it, made, keeper, cancelled, "none")
        finally:
            end_stragglers(f"SCRATCH={environment['SCRATCH']}", since)


@contextmanager
def _room(checkout: Path, upkeep: Upkeep | None, *, alone: bool) -> Generator[Room]:
    """To have the checkout as it was made may take a moment of waiting: the later the shorter."""
    if upkeep and alone:
        with room_in(checkout, upkeep) as room:
            have_as_made(checkout, upkeep)
            yield room
        return
    if upkeep:
        have_as_made(checkout, upkeep)
    with room_for(checkout, 0, COPIED) as room:
        yield room


def _environment(place: str) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": f"{place}/home",
        "LANG": "C.UTF-8",
        "TERM": "xterm",
        "GIT_CONFIG_SYSTEM": str(Path(__file__).with_name("gitconfig")),
        "TMPDIR": f"{place}/tmp",  # noqa: S108 - the attempt's own
        "OUT": f"{place}/out",
        "SCRATCH": f"{place}/scratch",
    }
