"""A control group for one box, where the kernel lets us make one: a wall around what it uses.

The runner of a session loads this too, so it takes nothing but the standard library.
"""

import functools
import os
import secrets
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
NEEDED = {"memory", "pids"}
JOINING = 'echo 0 > "$0/cgroup.procs"'


@functools.cache
def where() -> Path | None:
    """The group in which ours can be made and entered, found by doing so; None where none is."""
    from lockgate.adapters.run import run  # noqa: PLC0415 - not for the runner
    from lockgate.errors import Unavailable  # noqa: PLC0415 - as above

    parent = parent_of(ROOT, _own())
    if parent is None:
        return None
    try:
        with group(parent, 1 << 30, 64) as made:
            joined = made is not None and run(("/bin/sh", "-c", JOINING, str(made))).code == 0
    except Unavailable:
        return None
    return parent if joined else None


def parent_of(root: Path, own: str | None) -> Path | None:
    """Beside our own: a group that holds processes has no limits to hand down, but the root."""
    if own is None:
        return None
    place = root / own.strip("/")
    parent = place if place == root else place.parent
    try:
        handed = (parent / "cgroup.subtree_control").read_text(encoding="utf-8").split()
    except OSError:
        return None
    return parent if set(handed) >= NEEDED else None


@contextmanager
def group(parent: Path | None, memory: int, processes: int) -> Generator[Path | None]:
    """A group with these limits, ended and removed afterwards; None where it cannot be made."""
    made = _made(parent, memory, processes) if parent else None
    try:
        yield made
    finally:
        if made is not None:
            _remove(made)


def ran_out_of_memory(group: Path) -> bool:
    return _count(group / "memory.events", "oom_kill") > 0


def ran_out_of_processes(group: Path) -> bool:
    return _count(group / "pids.events", "max") > 0


def _own() -> str | None:
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            if line.startswith("0::"):
                return line[3:]
    return None


def _made(parent: Path, memory: int, processes: int) -> Path | None:
    place = parent / f"lockgate-{secrets.token_hex(6)}"
    try:
        place.mkdir()
        (place / "memory.max").write_text(str(memory), encoding="ascii")
        (place / "memory.oom.group").write_text("1", encoding="ascii")
        (place / "pids.max").write_text(str(processes), encoding="ascii")
    except OSError:
        _remove(place)
        return None
    with suppress(OSError):  # not there without swap
        (place / "memory.swap.max").write_text("0", encoding="ascii")
    return place


def _remove(place: Path) -> None:
    """What was killed needs some milliseconds to be gone."""
    with suppress(OSError):
        (place / "cgroup.kill").write_text("1", encoding="ascii")
    for _ in range(100):
        try:
            os.rmdir(place)  # noqa: PTH106 - a group's files are no files
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.02)
        else:
            return


def _count(file: Path, name: str) -> int:
    with suppress(OSError, ValueError):
        for line in file.read_text(encoding="ascii").splitlines():
            word, _, number = line.partition(" ")
            if word == name:
                return int(number)
    return 0
