"""What /proc says of processes: who started whom, and whether one is still the one we knew."""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Collection

MARK = "LOCKGATE_SESSION"


def boot() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:  # noqa: PTH123 - the runner has no pathlib
        return file.read().strip()


def started_at(pid: int) -> int | None:
    """When it started, in clock ticks since the boot: no two processes share pid and start."""
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def still(pid: int, start: int) -> int | None:
    """A descriptor of that very process while it lives; a zombie does not."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return None
    if started_at(pid) == start and not select.select([descriptor], [], [], 0)[0]:
        return descriptor
    os.close(descriptor)
    return None


def children_of(pid: int) -> tuple[int, ...]:
    return tuple(child for child, parent in _parents().items() if parent == pid)


def descendants_of(pid: int) -> tuple[int, ...]:
    parents, found = _parents(), [pid]
    for ancestor in found:
        found += [child for child, parent in parents.items() if parent == ancestor]
    return tuple(found[1:])


def marked(mark: str) -> tuple[int, ...]:
    """Processes that carry the session's mark in the environment they were started with."""
    wanted = f"{MARK}={mark}".encode()
    return tuple(pid for pid in _pids() if wanted in _environment(pid) and pid != os.getpid())


def kill_all(found: Callable[[], Collection[int]], patience: float = 10.0) -> bool:
    """Kill until a look finds none; whether that was reached."""
    until = time.monotonic() + patience
    while pids := found():
        if time.monotonic() > until:
            return False
        send(pids, signal.SIGKILL)
        time.sleep(0.01)
    return True


def send(pids: Collection[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _parents() -> dict[int, int]:
    """Each process that runs, and its parent; the dead that nobody has asked for are left out."""
    seen = {pid: _stat(pid) for pid in _pids()}
    return {pid: int(fields[1]) for pid, fields in seen.items() if fields and fields[0] != b"Z"}


def _pids() -> tuple[int, ...]:
    return tuple(int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - the runner has no pathlib


def _stat(pid: int) -> list[bytes] | None:
    """The fields after the program's name, which may hold blanks and brackets itself."""
    raw = _read(f"/proc/{pid}/stat")
    return raw[raw.rindex(b")") + 2 :].split() if raw else None


def _environment(pid: int) -> list[bytes]:
    return _read(f"/proc/{pid}/environ").split(b"\0")


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - the runner has no pathlib
            return file.read()
    except OSError:
        return b""
