"""The files in $OUT, as the gate's command filled it: opened without trust, one by one."""

import os
import stat
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

HEAD = 4096
FILE = 50_000_000
TOTAL = 200_000_000
FILES = 200
ENTRIES = 20_000
DEPTH = 5

_PLAINLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class File(Struct, frozen=True):
    """`data` is None where the file cannot be opened, or it or all together are too big."""

    name: str
    head: bytes
    data: bytes | None


class _Budget(Struct):
    entries: int = ENTRIES
    files: int = FILES
    total: int = TOTAL


def files_in(out: Path, worth: Callable[[str, bytes], bool]) -> Iterator[File]:
    """The regular files whose name and first bytes are worth reading; no link is followed."""
    budget = _Budget()
    with _opened(str(out), os.O_DIRECTORY) as top:
        if top is not None:
            yield from _walk(top, budget, worth, DEPTH)
    if budget.entries < 0:
        yield File("", b"", None)


def _walk(
    directory: int, budget: _Budget, worth: Callable[[str, bytes], bool], depth: int
) -> Iterator[File]:
    for name, kind in _entries(directory, budget):
        if stat.S_ISDIR(kind) and depth:
            with _opened(name, os.O_DIRECTORY, directory) as below:
                if below is not None:
                    yield from _walk(below, budget, worth, depth - 1)
        elif stat.S_ISREG(kind):
            found = _file(name, directory, budget, worth)
            if found:
                yield found


def _entries(directory: int, budget: _Budget) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            budget.entries -= 1
            if budget.entries < 0:
                break
            try:
                found.append((entry.name, entry.stat(follow_symlinks=False).st_mode))
            except OSError:
                continue
    return sorted(found)


def _file(
    name: str, directory: int, budget: _Budget, worth: Callable[[str, bytes], bool]
) -> File | None:
    with _opened(name, 0, directory) as descriptor:
        if descriptor is None:
            return File(name, b"", None) if worth(name, b"") else None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        head = os.pread(descriptor, HEAD, 0)
        if not worth(name, head):
            return None
        size = os.fstat(descriptor).st_size
        budget.files -= 1
        if size > min(FILE, budget.total) or budget.files < 0:
            return File(name, head, None)
        budget.total -= size
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return File(name, head, file.read(size))


@contextmanager
def _opened(name: str, flags: int, directory: int | None = None) -> Generator[int | None]:
    """None where it cannot be opened: it is gone, a link, or not ours to read."""
    try:
        descriptor = os.open(name, _PLAINLY | flags, dir_fd=directory)
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)
