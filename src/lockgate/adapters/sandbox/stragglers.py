"""Ends what an attempt that nothing encloses leaves running, as far as it can be found."""

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from lockgate.adapters.run import becomes_readable

MANY = 4096  # new processes, from which on it is quicker to look at all that there are
BRIEFLY = 1.0  # seconds in which the numbers cannot all have been given away and begun anew
PATIENCE = 5.0  # seconds for what was killed to be gone
ROUNDS = 10  # what is just starting another one may be found only once that is there


@dataclass(frozen=True, slots=True)
class Start:
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
