"""Looks after one attempt: what it uses up while it runs, and what it leaves when it has ended."""

import os
import time
from contextlib import suppress
from pathlib import Path

from lockgate.adapters.run import Cut
from lockgate.adapters.sandbox import cgroup
from lockgate.adapters.sandbox.bubblewrap import MEBIBYTE
from lockgate.adapters.sandbox.scratch import Room
from lockgate.adapters.sandbox.usage import memory_of, namespace_of, processes_in, threads_of

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
