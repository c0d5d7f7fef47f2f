"""Reads what an attempt left: hostile, so plain files only, no links, and not without end."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

FILE_BYTES, ALL_BYTES = 64 << 20, 256 << 20
ENTRIES, DEPTH = 1000, 8
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = _FILE | os.O_DIRECTORY


def kept(source: int, beside: Path) -> Path | None:
    """A directory of ours with a copy of them; None where there are none."""
    target: Path | None = None
    room = ALL_BYTES
    for path, file in _files(source, PurePosixPath(), [ENTRIES]):
        with os.fdopen(file, "rb") as found:
            size = os.fstat(file).st_size
            if size > min(FILE_BYTES, room):
                continue
            room -= size
            target = target or Path(
                tempfile.mkdtemp(prefix=f".{beside.name}-out-", dir=beside.parent)
            )
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            with (target / path).open("wb") as copy:
                shutil.copyfileobj(found, copy)
    return target


def tail_of(directory: int, name: str, length: int) -> str:
    """The end of a file that may not be there."""
    with suppress(OSError), os.fdopen(os.open(name, _FILE, dir_fd=directory), "rb") as file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.seek(max(0, os.fstat(file.fileno()).st_size - length))
            return file.read(length).decode("utf-8", errors="replace").strip()
    return ""


def _files(where: int, path: PurePosixPath, left: list[int]) -> Iterator[tuple[PurePosixPath, int]]:
    """Open descriptors, each for the caller to close, of no more entries than are left."""
    with os.scandir(where) as entries:
        for entry in entries:
            left[0] -= 1
            if left[0] < 0:
                return
            yield from _within(where, entry, path / entry.name, left)


def _within(
    where: int, entry: os.DirEntry[str], path: PurePosixPath, left: list[int]
) -> Iterator[tuple[PurePosixPath, int]]:
    with suppress(OSError):
        if entry.is_file(follow_symlinks=False):
            yield path, os.open(entry.name, _FILE, dir_fd=where)
        elif entry.is_dir(follow_symlinks=False) and len(path.parts) < DEPTH:
            folder = os.open(entry.name, _FOLDER, dir_fd=where)
            try:
                yield from _files(folder, path, left)
            finally:
                os.close(folder)
