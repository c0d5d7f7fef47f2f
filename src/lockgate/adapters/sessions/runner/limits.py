"""What a session may use up: time, silence, memory and disk, looked at from outside of it."""

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Callable, Generator, Iterator

from lockgate.adapters.sandbox import usage
from lockgate.adapters.sessions.runner.files import Spec

MEBIBYTE = 1 << 20
LOOK_EVERY, WALK_EVERY = 0.5, 2.0  # seconds between two looks at memory, and at the disk
AT_MOST = 20  # looking takes no more than one part in so many of the time
AT_ONCE = 2000  # entries of a directory
BLOCK = 512  # bytes, whatever the file system's are
TOO_DEEP = 1 << 62  # bytes that a tree counts as which is too deep to be looked into
LONGEST_LINE = 1 << 16  # bytes of a line that are looked at
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

First = Callable[[], int | None]


class Limits:
    """Time is counted by a clock that stops in sleep."""

    def __init__(self, spec: Spec, first: First, retries: "Retries") -> None:
        """`first` is the pid of the first process in the box, where there is a box."""
        self._until = time.monotonic() + spec["wall_seconds"]
        self._silence = float("inf") if spec["interactive"] else spec["silent_seconds"]
        self._retries = retries
        self._memory = Memory(spec["memory_mb"], first)
        self._disk = Disk(spec["disk_mb"], spec["places"], first)
        self.out_of_memory = (
            f"it used more memory than [sandbox] memory_mb = {spec['memory_mb']} allows"
        )
        self._out_of_disk = (
            "its workspace and HOME hold more than "
            f"[sandbox] session_disk_mb = {spec['disk_mb']} allows"
        )

    def passed(self, last_output: float) -> tuple[str, str] | None:
        """How it must end, and why in words, where the word alone does not say it."""
        now = time.monotonic()
        if now > self._until:
            return "wall-clock", ""
        if now - last_output > self._silence:
            return "silent", ""
        if self._retries.go_on():
            return "limited", ""
        if self._memory.is_used_up():
            return "memory", self.out_of_memory
        return ("disk", self._out_of_disk) if self._disk.is_used_up() else None


class Retries:
    """Notices a program that hit a usage limit and tries again by itself, perhaps for hours.

    Lines that match say so; any other line on stdout shows that it goes on with its work.
    """

    def __init__(self, spec: Spec) -> None:
        """Without a pattern nothing is noticed, nor where a person sits at the terminal."""
        pattern = "" if spec["interactive"] else spec["limited"]
        self._pattern = re.compile(pattern.encode()) if pattern else None
        self._seconds, self._since = spec["limited_seconds"], 0.0
        self._rests = {"stdout": b"", "stderr": b""}

    def hear(self, stream: str, chunk: bytes) -> None:
        if self._pattern is None:
            return
        *lines, rest = (self._rests[stream] + chunk).split(b"\n")
        self._rests[stream] = rest[:LONGEST_LINE]
        for line in lines:
            if self._pattern.match(line):
                self._since = self._since or time.monotonic()
            elif stream == "stdout" and line.strip():
                self._since = 0.0

    def go_on(self) -> bool:
        """Whether it has only tried again for longer than it may."""
        return bool(self._since) and time.monotonic() - self._since > self._seconds


class Memory:
    """The watchdog for a machine without control groups."""

    def __init__(self, mebibytes: int, first: First) -> None:
        """0 is no limit."""
        self._allowed, self._first = mebibytes * MEBIBYTE, first
        self._namespace, self._next = 0, 0.0

    def is_used_up(self) -> bool:
        begun = time.monotonic()
        if not self._allowed or begun < self._next:
            return False
        self._namespace = self._namespace or usage.namespace_of(self._first() or 0)
        inside = usage.processes_in(self._namespace) if self._namespace else ()
        over = usage.memory_of(inside, self._allowed) > self._allowed
        now = time.monotonic()
        self._next = now + max(LOOK_EVERY, AT_MOST * (now - begun))
        return over


class Disk:
    """Walks the places a little at a time, again and again."""

    def __init__(self, mebibytes: int, places: list[str], first: First) -> None:
        """0 is no limit."""
        self._allowed, self._places, self._first = mebibytes * MEBIBYTE, places, first
        self._walk: Iterator[int] | None = None
        self._found, self._next = 0, 0.0

    def is_used_up(self) -> bool:
        begun = time.monotonic()
        if not self._allowed or begun < self._next:
            return False
        if self._walk is None:
            self._found, self._walk = 0, self._sizes()
        left = AT_ONCE
        for size in self._walk:
            self._found += size
            left -= 1
            if self._found > self._allowed or not left:
                break
        else:
            self._walk = None
        now = time.monotonic()
        pause = AT_MOST * (now - begun)
        self._next = now + (pause if self._walk else max(WALK_EVERY, pause))
        return self._found > self._allowed

    def _sizes(self) -> Iterator[int]:
        """Of each file once, whatever names it has; also of one that has none and is open."""
        seen: set[tuple[int, int]] = set()
        for found in self._open_without_name():
            yield _size_of(found, seen)
        for place in self._places:
            yield from _below(place, seen)

    def _places_found(self) -> Iterator[os.stat_result]:
        for place in self._places:
            with contextlib.suppress(OSError):
                yield os.lstat(place)

    def _open_without_name(self) -> Iterator[os.stat_result]:
        namespace = usage.namespace_of(self._first() or 0)
        devices = {it.st_dev for it in self._places_found()}
        for _, found in usage.held_by(usage.processes_in(namespace) if namespace else ()):
            if found.st_dev in devices and stat.S_ISREG(found.st_mode):
                yield found


def _below(place: str, seen: set[tuple[int, int]]) -> Iterator[int]:
    """No link is followed."""
    left = [place]
    while left:
        directory = left.pop()
        try:
            with _opened(directory) as opened, os.scandir(opened) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        left.append(f"{directory}/{entry.name}")
                    yield _size_of(entry.stat(follow_symlinks=False), seen)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                yield TOO_DEEP


def _size_of(found: os.stat_result, seen: set[tuple[int, int]]) -> int:
    """Nothing where it was seen before; only what has one name need not be remembered."""
    if found.st_nlink == 1 or stat.S_ISDIR(found.st_mode):
        return found.st_blocks * BLOCK
    known = (found.st_dev, found.st_ino)
    if known in seen:
        return 0
    seen.add(known)
    return found.st_blocks * BLOCK


@contextlib.contextmanager
def _opened(directory: str) -> Generator[int]:
    """What its owner has shut is opened: nothing is hidden by a mode."""
    try:
        opened = os.open(directory, _DIRECTORY)
    except PermissionError:
        handle = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.chmod(f"/proc/self/fd/{handle}", stat.S_IRWXU)  # noqa: PTH101 - the runner has no pathlib
            opened = os.open(f"/proc/self/fd/{handle}/.", _DIRECTORY)
        finally:
            os.close(handle)
    try:
        yield opened
    finally:
        os.close(opened)
