"""Looks after one attempt: what it uses up while it runs, and what it leaves when it has ended."""

import os
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from lockgate.adapters.run import Cut
from lockgate.adapters.sandbox import cgroup
from lockgate.adapters.sandbox.bubblewrap import MEBIBYTE
from lockgate.adapters.sandbox.scratch import Room

# How much the processes of one box use, read from /proc from outside of it.


PAGE = os.sysconf("SC_PAGE_SIZE")
BLOCK = 512  # bytes, whatever the file system's are
MEMORY_FILE = "/memfd:"  # how its name begins, wherever it is told
RESIDENT, THREADS = 1, 17  # which words: of statm; of stat, behind the program's name


def namespace_of(pid: int) -> int:
    """Which namespace of processes it is in; 0 where it is gone."""
    with suppress(OSError):
        return os.stat(f"/proc/{pid}/ns/pid").st_ino  # noqa: PTH116 - asked many times a second
    return 0


def processes_in(namespace: int) -> tuple[int, ...]:
    with os.scandir("/proc") as entries:
        pids = [int(it.name) for it in entries if it.name.isdigit()]
    return tuple(pid for pid in pids if namespace_of(pid) == namespace)


def threads_of(pids: tuple[int, ...]) -> int:
    return sum(_word(pid, "stat", THREADS) for pid in pids)


def memory_of(pids: tuple[int, ...], enough: int) -> int:
    """Bytes, also of memory files that no process has mapped.

    Pages that several of them share count once, where that makes a difference.
    """
    resident = sum(_word(pid, "statm", RESIDENT) for pid in pids) * PAGE
    files = {
        found.st_ino: found.st_blocks * BLOCK
        for link, found in held_by(pids)
        if link.startswith(MEMORY_FILE)
    }
    in_files = sum(files.values())
    if resident + in_files <= enough:
        return resident + in_files
    return in_files + sum(_own_share(pid, files.keys()) for pid in pids)


def held_by(pids: tuple[int, ...]) -> Iterator[tuple[str, os.stat_result]]:
    """What they have open that has no name any more, or never had one; perhaps more than once."""
    for pid in pids:
        with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                with suppress(OSError):
                    link = os.readlink(entry.path)  # noqa: PTH115 - asked many times a second
                    if link.endswith(" (deleted)"):
                        yield link, entry.stat()


def _word(pid: int, file: str, index: int) -> int:
    with suppress(OSError, IndexError, ValueError):
        return int(_text(f"/proc/{pid}/{file}").rpartition(") ")[2].split()[index])
    return 0


def _own_share(pid: int, apart: Collection[int]) -> int:
    """Without the memory files that are counted apart, by their inodes."""
    try:
        lines = _text(f"/proc/{pid}/smaps{'' if apart else '_rollup'}").splitlines()
    except OSError:
        return _word(pid, "statm", RESIDENT) * PAGE
    return sum(_shares(lines, apart)) * 1024


def _shares(lines: list[str], apart: Collection[int]) -> Iterator[int]:
    counts = True
    for line in lines:
        name, _, rest = line.partition(":")
        if "-" in name:  # a mapping begins: addresses, mode, offset, device, inode, path
            words = line.split(maxsplit=5)
            counts = not (words[-1].startswith(MEMORY_FILE) and int(words[4]) in apart)
        elif counts and name in {"Pss", "SwapPss"}:
            yield int(rest.split()[0])


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - as above
        return file.read()


LOOK_EVERY = 0.1  # seconds
AT_MOST = 20  # a look takes no more than one part in so many of the time
FULL = 1 << 20  # bytes left, below which a room is full
READY = "told/ready"  # in the room
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW


class Keeper:
    """The Warden of an attempt. Its room stays until it is closed, though nobody runs in it."""

    def __init__(self, room: Room, memory_mb: int, processes: int, group: Path | None) -> None:
        self.services = False  # whether there are some, which must have become ready
        self._room, self._group = room, group
        self._memory, self._processes = memory_mb * MEBIBYTE, processes
        self._namespace, self._next = 0, 0.0
        self._was_full = False
        self._place: int | None = None

    def enters(self, outer: int, first: int) -> None:
        """From here on the room is ours to look into, also when its last process has ended."""
        where = f"/proc/{outer}/root{self._room.place}" if self._room.size_mb else self._room.place
        with suppress(OSError):  # the probe has seen that it can be opened, so bwrap has died
            self._place = os.open(where, _DIRECTORY)
        self._namespace = namespace_of(first) if first else 0
        self._next = time.monotonic() + LOOK_EVERY

    def look(self) -> Cut | None:
        begun = time.monotonic()
        if begun < self._next or not self._namespace:
            return None
        self._was_full = self._was_full or self._is_full()
        inside = processes_in(self._namespace)
        crowded = threads_of(inside) > self._processes
        over = memory_of(inside, self._memory) > self._memory
        now = time.monotonic()
        self._next = now + max(LOOK_EVERY, AT_MOST * (now - begun))
        return Cut.MEMORY if over else Cut.PIDS if crowded else None

    def leaves(self, code: int) -> Cut | None:
        """A command that succeeded all the same had enough of everything."""
        if self._group is not None and cgroup.ran_out_of_memory(self._group):
            return Cut.MEMORY
        if code == 0 or self._place is None:
            return None
        if self._was_full or self._is_full():
            return Cut.SCRATCH
        if self._group is not None and cgroup.ran_out_of_processes(self._group):
            return Cut.PIDS
        if self.services and not os.access(READY, os.F_OK, dir_fd=self._place):
            return Cut.SERVICE
        return None

    @property
    def sees_its_room(self) -> bool:
        return self._place is not None

    def opened(self, place: str) -> int | None:
        """A directory of the room, for the caller to close; None where there was no room."""
        return None if self._place is None else os.open(place, _DIRECTORY, dir_fd=self._place)

    def close(self) -> None:
        if self._place is not None:
            os.close(self._place)
            self._place = None

    def _is_full(self) -> bool:
        if self._place is None:
            return False
        found = os.fstatvfs(self._place)
        return found.f_bavail * found.f_frsize < FULL or found.f_ffree == 0
