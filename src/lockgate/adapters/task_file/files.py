"""TASK.md on disk: read once and without trust, written whole or not at all."""

import fcntl
import hashlib
import json
import os
import re
import stat
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from errno import EACCES, ELOOP, ENOTDIR, ENXIO, EPERM
from pathlib import Path

from lockgate.adapters.task_file.checkpoints import add_checkpoint, last_checkpoint
from lockgate.adapters.task_file.frontmatter import (
    parse_frontmatter,
    render_frontmatter,
    split_frontmatter,
)
from lockgate.adapters.task_file.replacing import put_in_place
from lockgate.core.model.task import TaskId
from lockgate.core.text.task_file import BrokenFrontmatter, Missing, Readable, TaskText, Unreadable
from lockgate.errors import Unavailable

NAME = "TASK.md"
HISTORY = "history.jsonl"
LARGEST = 1024 * 1024
LARGEST_OF_OURS = 4 * LARGEST  # the parts of several files come together in it
_ID = re.compile(r"[a-z0-9-]{1,40}")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_TAIL = 1024 * 1024
_LITTLE = 16 * 1024
_NOT_A_FILE = {
    ELOOP: "it is a link",
    ENOTDIR: "its directory is a link or no directory",
    ENXIO: "it is a socket",
    EACCES: "its mode forbids it",
    EPERM: "its mode forbids it",
}


class TaskFiles:
    """The files of all tasks under one state directory."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def read(self, id: TaskId) -> TaskText:
        return read_task_file(self._directory(id), limit=LARGEST_OF_OURS)

    def place(self, id: TaskId) -> str:
        return str(self._directory(id) / NAME)

    def read_at(self, directory: Path, name: str = NAME) -> TaskText:
        return read_task_file(directory, name)

    def write(self, id: TaskId, frontmatter: Mapping[str, str | int], body: str) -> None:
        write_task_file(self._made(id), frontmatter, body)

    def shows(self, text: Readable, frontmatter: Mapping[str, str | int]) -> bool:
        return text.frontmatter == split_frontmatter(render_frontmatter(frontmatter))[0]

    def fields(self, text: Readable) -> Mapping[str, object] | BrokenFrontmatter:
        return parse_frontmatter(text.frontmatter or "")

    def last_exported(self, id: TaskId) -> int:
        """The seq of the last whole line; a line that a crash cut short is not one."""
        with (
            _ours(f"the history of task {id} was not read"),
            suppress(FileNotFoundError),
            _opened(self._directory(id)) as where,
            _closing(os.open(HISTORY, _READ, dir_fd=where)) as file,
        ):
            return _last_seq(file)
        return 0

    def append_history(self, id: TaskId, lines: Sequence[str]) -> None:
        if not lines:
            return
        data = "".join(f"{line}\n" for line in lines).encode()
        with (
            _ours(f"the history of task {id} was not written"),
            _opened(self._made(id)) as where,
            _closing(os.open(HISTORY, _APPEND, 0o644, dir_fd=where)) as file,
        ):
            _append(file, data)

    def add_checkpoint(self, id: TaskId, facts: Mapping[str, object]) -> int:
        with _ours(f"the checkpoint of task {id} was not written"):
            return add_checkpoint(self._made(id) / "checkpoints", facts)

    def last_checkpoint(self, id: TaskId) -> Mapping[str, object] | None:
        return last_checkpoint(self._directory(id) / "checkpoints")

    def render(self, frontmatter: Mapping[str, str | int], body: str) -> str:
        return render_frontmatter(frontmatter) + body

    def discard(self, id: TaskId) -> None:
        """Move the task's files to `deleted/`; nothing is removed, and twice is once."""
        source = self._directory(id)
        graves = self.home / "deleted"
        with _ours(f"the files of task {id} were not moved to {graves}"):
            graves.mkdir(parents=True, exist_ok=True)
            taken = {it.name for it in graves.iterdir()}
            number = next(n for n in range(1, len(taken) + 2) if f"{id}-{n}" not in taken)
            with suppress(FileNotFoundError):
                source.rename(graves / f"{id}-{number}")

    def _made(self, id: TaskId) -> Path:
        directory = self._directory(id)
        if not directory.exists():
            with _ours(f"the directory of task {id} was not made"):
                directory.mkdir(parents=True, exist_ok=True)
        return directory

    def _directory(self, id: TaskId) -> Path:
        if not _ID.fullmatch(id):
            raise ValueError(f"not a task id: {id!r}")
        return self.home / "tasks" / id


def read_task_file(directory: Path, name: str = NAME, limit: int = LARGEST) -> TaskText:
    """Follow no link, wait for nobody, read at most `limit` bytes, and those once."""
    with _ours(f"{name} was not read"):
        try:
            with _opened(directory) as where:
                found = _bytes(where, name, limit)
        except FileNotFoundError:
            return Missing()
        except OSError as error:
            if error.errno not in _NOT_A_FILE:
                raise
            found = _NOT_A_FILE[error.errno]
    if isinstance(found, str):
        return _refused(name, found)
    return _text(name, found)


def write_task_file(directory: Path, frontmatter: Mapping[str, str | int], body: str) -> None:
    """Replace the file in one step. A link in its place is replaced, never followed.

    Nothing waits for the disk: what must survive a power cut is in the database already.
    """
    text = render_frontmatter(frontmatter) + body.replace("\0", "\ufffd")
    data = text.encode("utf-8", "replace")
    beside = f".{NAME}.{os.getpid()}.{os.urandom(4).hex()}"
    with _ours(f"{NAME} was not written"), _opened(directory) as where:
        try:
            with _closing(os.open(beside, _CREATE, 0o644, dir_fd=where)) as file:
                _write_all(file, data)
            put_in_place(where, beside, NAME)
        except BaseException:
            with suppress(OSError):
                os.unlink(beside, dir_fd=where)
            raise


def _bytes(where: int, name: str, limit: int) -> bytes | str:
    """The file's bytes, or why they are not to be read."""
    with _closing(os.open(name, _READ, dir_fd=where)) as file:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            return "it is not a regular file"
        if found.st_nlink > 1:
            return "it has a second name (a hard link), so another file may speak through it"
        if found.st_size > limit:
            return f"it has {found.st_size} bytes, and {limit} is the most"
        data = _read_up_to(file, limit + 1)
    return data if len(data) <= limit else f"it grew past {limit} bytes while it was read"


def _text(name: str, data: bytes) -> Readable | Unreadable:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _refused(name, f"byte {error.start} is not UTF-8")
    if "\0" in text:
        return _refused(name, "it holds a NUL byte")
    frontmatter, body = split_frontmatter(text)
    return Readable(frontmatter, body, hashlib.sha256(data).hexdigest())


def _refused(name: str, why: str) -> Unreadable:
    return Unreadable(f"{name} was not read", why, f"write {name} anew as a plain UTF-8 text file")


def _read_up_to(file: int, most: int) -> bytes:
    parts: list[bytes] = []
    while most > 0 and (part := os.read(file, most)):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _append(file: int, data: bytes) -> None:
    """All or nothing: what a full disk or a crash left of a line is taken back."""
    fcntl.flock(file, fcntl.LOCK_EX)
    size = os.fstat(file).st_size
    tail = _tail(file, size)
    whole = size - (len(tail) - tail.rfind(b"\n") - 1)
    if whole != size:
        os.ftruncate(file, whole)
    try:
        _write_all(file, data)
    except OSError:
        os.ftruncate(file, whole)
        raise


def _tail(file: int, size: int) -> bytes:
    """The last lines: a little, or as much as it takes for one to be whole."""
    little = os.pread(file, _LITTLE, max(0, size - _LITTLE))
    if little.count(b"\n") > 1 or size <= _LITTLE:
        return little
    return os.pread(file, _TAIL, max(0, size - _TAIL))


def _last_seq(file: int) -> int:
    lines = _tail(file, os.fstat(file).st_size).split(b"\n")[:-1]
    for line in reversed(lines):
        with suppress(ValueError, KeyError, TypeError):
            return int(json.loads(line)["seq"])
    return 0


def _opened(directory: Path) -> AbstractContextManager[int]:
    return _closing(os.open(directory, _DIRECTORY))


@contextmanager
def _closing(handle: int) -> Generator[int]:
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def _ours(what: str) -> Generator[None]:
    """An error of the system becomes one of ours."""
    try:
        yield
    except OSError as error:
        raise Unavailable(what, why=str(error), fix="mend that, then try again") from error
