"""Reads what an attempt left: hostile, so plain files only, no links, and not without end."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path, PurePosixPath

FILE_BYTES, ALL_BYTES = 64 << 20, 256 << 20
ENTRIES, DEPTH = 20_000, 8
HEAD = 4096  # bytes of a file that is too big, by which a reader knows what it is
REPORTS = (".xml", ".sarif", ".tap")  # names of files that are reports, whatever is in them
NOT_ALL = PurePosixPath("more-than-was-read.xml")
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = _FILE | os.O_DIRECTORY


Found = tuple[PurePosixPath, int | None]


def kept(source: int, beside: Path) -> Path | None:
    """A directory of ours with a copy of them; None where there are none.

    What cannot be copied is not passed over: a file that is too big is there with its size and its
    beginning, a report that is a link, a pipe or shut is there and empty, and where there are too
    many entries an empty report stands for the rest. A reader can take none of these for a report.
    """
    target: Path | None = None
    room = ALL_BYTES
    left = [ENTRIES]
    for path, file in chain(_files(source, PurePosixPath(), left), _rest(left)):
        target = target or Path(tempfile.mkdtemp(prefix=f".{beside.name}-out-", dir=beside.parent))
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        room -= _copied(file, target / path, min(FILE_BYTES, room))
    return target


def _copied(file: int | None, target: Path, room: int) -> int:
    """Copy it, or the beginning of what is bigger than the room: the bytes that it took."""
    with target.open("wb") as copy:
        if file is None:
            return 0
        with os.fdopen(file, "rb") as found:
            size = os.fstat(file).st_size
            if size > room:
                copy.write(found.read(HEAD))
                copy.truncate(size)
                return 0
            shutil.copyfileobj(found, copy)
    return size


def _rest(left: list[int]) -> Iterator[Found]:
    if left[0] < 0:
        yield NOT_ALL, None


def tail_of(directory: int, name: str, length: int) -> str:
    """The end of a file that may not be there."""
    with suppress(OSError), os.fdopen(os.open(name, _FILE, dir_fd=directory), "rb") as file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.seek(max(0, os.fstat(file.fileno()).st_size - length))
            return file.read(length).decode("utf-8", errors="replace").strip()
    return ""


def _files(where: int, path: PurePosixPath, left: list[int]) -> Iterator[Found]:
    """Open descriptors, each for the caller to close, of no more entries than are left.

    None stands for a report that cannot be opened.
    """
    with os.scandir(where) as entries:
        for entry in entries:
            left[0] -= 1
            if left[0] < 0:
                return
            yield from _within(where, entry, path / entry.name, left)


def _within(
    where: int, entry: os.DirEntry[str], path: PurePosixPath, left: list[int]
) -> Iterator[Found]:
    if entry.is_dir(follow_symlinks=False):
        folder = _opened(entry.name, _FOLDER, where) if len(path.parts) < DEPTH else None
        if folder is not None:
            try:
                yield from _files(folder, path, left)
            finally:
                os.close(folder)
        return
    file = _opened(entry.name, _FILE, where) if entry.is_file(follow_symlinks=False) else None
    if file is not None or (entry.name.endswith(REPORTS) and not _leads_beside(entry, where)):
        yield path, file


def _opened(name: str, how: int, where: int) -> int | None:
    """What its writer shut is opened all the same: nothing of the attempt runs any more."""
    with suppress(OSError):
        return os.open(name, how, dir_fd=where)
    with suppress(OSError):
        os.chmod(name, 0o700, dir_fd=where)
        return os.open(name, how, dir_fd=where)
    return None


def _leads_beside(entry: os.DirEntry[str], where: int) -> bool:
    """A link to a name in the same directory: that file is read by its own name."""
    with suppress(OSError):
        return entry.is_symlink() and "/" not in os.readlink(entry.name, dir_fd=where)
    return False
