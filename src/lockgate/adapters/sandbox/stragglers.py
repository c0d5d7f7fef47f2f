"""Ends what an attempt that nothing encloses leaves running, as far as it can be found."""

import os
import signal
from collections.abc import Iterable
from contextlib import suppress

from lockgate.adapters.run import becomes_readable

MANY = 4096  # new processes, from which on it is quicker to look at all that there are
PATIENCE = 5.0  # seconds for what was killed to be gone
ROUNDS = 10  # what is just starting another one may be found only once that is there


def newest() -> int:
    """The number of the process that was started last; nought where nobody knows."""
    with suppress(OSError, ValueError), open("/proc/loadavg", "rb") as file:  # noqa: PTH123 - quick
        return int(file.read().split()[-1])
    return 0


def end_stragglers(mark: str, before: int) -> None:
    """Those among the ones younger than `before` that have the mark in their environment."""
    marked = os.fsencode(mark)
    for _ in range(ROUNDS):
        found = [pid for pid in _younger(before) if _carries(pid, marked)]
        if not found:
            return
        for pid in found:
            _end(pid, marked)


def _younger(before: int) -> Iterable[int]:
    last = newest()
    if 0 < before < last < before + MANY:
        return range(before + 1, last + 1)
    with suppress(OSError):
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208
    return ()


def _carries(pid: int, mark: bytes) -> bool:
    with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - quick
        return mark in file.read().split(b"\0")
    return False


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
