"""TASK.md on disk: read once and without trust, written whole or not at all."""

import fcntl
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from errno import EACCES, ELOOP, ENOTDIR, ENXIO, EPERM
from functools import cache
from pathlib import Path
from typing import Any, cast

from lockgate.core.model.task import Task, TaskId
from lockgate.core.text.task_file import (
    BrokenFrontmatter,
    Missing,
    Readable,
    TaskText,
    Unreadable,
    frontmatter,
)
from lockgate.errors import Unavailable

# A task's checkpoints: numbered files, each written once; the newest are kept.


MOST = 1_000_000_000
KEPT = 100  # checkpoints of one task
KEPT_BYTES = 8 << 20  # of all of them
LARGEST_FRONTMATTER = 16 * 1024  # what PyYAML scans in well under 100 ms, whatever it is
FIRST_LINE = 2  # of the file: the first is the fence
_FENCE = re.compile(r"---[ \t]*+(?:\r\n|\n|\r)")
_END = re.compile(r"(?:\A|(?<=[\r\n]))---[ \t]*+(?:\r\n|\n|\r|\Z)")
_BARE = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*+(?: [A-Za-z0-9_./-]++)*")
_WORDS = frozenset({"y", "yes", "n", "no", "true", "false", "on", "off", "null"})


def add_checkpoint(directory: Path, facts: Mapping[str, object], above: int = 0) -> int:
    """Write the next number's file; of two who write at once each gets its own."""
    from lockgate.core.text.checkpoints import checkpoint_text  # noqa: PLC0415 - only who writes one needs it

    directory.mkdir(parents=True, exist_ok=True)
    number = max(above, *_numbers(directory), 0) + 1
    while True:
        text = checkpoint_text(number, facts)
        with suppress(FileExistsError):
            with _file(directory, number).open("x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            _remove_oldest(directory)
            return number
        number += 1


def last_checkpoint(directory: Path) -> Mapping[str, object] | None:
    """The newest that can be read; one that a crash cut short is passed over."""
    for number in sorted(_numbers(directory), reverse=True):
        with suppress(OSError, ValueError):
            found: object = json.loads(_file(directory, number).read_text("utf-8"))
            if isinstance(found, dict):
                return cast("dict[str, object]", found)  # the keys of a JSON object are texts
    return None


def _remove_oldest(directory: Path) -> None:
    """Never the newest, which the next agent is told of."""
    kept = room = 0
    for number in sorted(_numbers(directory), reverse=True):
        with suppress(OSError):
            kept, room = kept + 1, room + _file(directory, number).stat().st_size
            if kept > 1 and (kept > KEPT or room > KEPT_BYTES):
                _file(directory, number).unlink()


def _file(directory: Path, number: int) -> Path:
    return directory / f"{number:03}.json"


def _numbers(directory: Path) -> list[int]:
    if not directory.is_dir():
        return []
    stems = [it.stem for it in directory.glob("*.json")]
    return [int(stem) for stem in stems if stem.isdecimal() and int(stem) < MOST]


# Puts a file in the place of another in one step, and waits for no disk.


_EXCHANGE = 2  # renameat2's flag: both names stay, and change what they stand for


def put_in_place(where: int, new: str, name: str) -> None:
    """`new` becomes `name`, both in the directory `where`.

    A rename over another file has ext4 write the data out first, which takes half as long as a
    commit of the database. An exchange of the two names has not.
    """
    if _is_file(where, name) and _exchanged(where, new, name):
        os.unlink(new, dir_fd=where)
    else:
        os.rename(new, name, src_dir_fd=where, dst_dir_fd=where)


def _is_file(where: int, name: str) -> bool:
    """What an unlink removes: to be exchanged with a directory would only move it about."""
    try:
        return not stat.S_ISDIR(os.lstat(name, dir_fd=where).st_mode)
    except FileNotFoundError:
        return False


def _exchanged(where: int, new: str, name: str) -> bool:
    """Not on every system, nor every file system."""
    rename = getattr(_libc(), "renameat2", None)
    if rename is None:
        return False
    done: int = rename(where, os.fsencode(new), where, os.fsencode(name), _EXCHANGE)
    return done == 0


@cache
def _libc() -> Any:  # noqa: ANN401 - as ctypes has it
    import ctypes  # noqa: PLC0415 - slow to load, and most commands write nothing

    return ctypes.CDLL(None, use_errno=True)


NAME = "TASK.md"
HISTORY = "history.jsonl"
LARGEST = 1024 * 1024
LARGEST_OF_OURS = 4 * LARGEST  # the parts of several files come together in it
_ID = re.compile(r"[a-z0-9-]{1,40}")
_BESIDE = re.compile(r"\.TASK\.md\.(\d+)\.[0-9a-f]+")  # by the pid of who writes it
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


Shared = Callable[[TaskId, str | None], tuple[Task, str] | None]


class TaskFiles:
    """The files of all tasks under one state directory.

    `shared` gives the task and the text where several hosts share them: the copy here may be old.
    """

    def __init__(self, home: Path, shared: Shared = lambda _id, _here: None) -> None:
        self.home, self._shared = home, shared

    def read(self, id: TaskId) -> TaskText:
        here = read_task_file(self._directory(id), limit=LARGEST_OF_OURS)
        if isinstance(here, Unreadable):
            return here
        found = self._shared(id, here.body if isinstance(here, Readable) else None)
        if found is None:
            return here
        task, body = found
        return _text(NAME, (render_frontmatter(frontmatter(task)) + body).encode())

    def place(self, id: TaskId) -> str:
        return str(self._directory(id) / NAME)

    def read_at(self, directory: Path, name: str = NAME) -> TaskText:
        return read_task_file(directory, name)

    def write(self, id: TaskId, frontmatter: Mapping[str, str | int], body: str) -> None:
        write_task_file(self._made(id), frontmatter, body)

    def write_at(self, directory: Path, text: Readable, body: str) -> None:
        kept = "" if text.frontmatter is None else f"---\n{text.frontmatter}---\n"
        _replace(directory, kept + body, as_directory=True)

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

    def add_checkpoint(self, id: TaskId, facts: Mapping[str, object], above: int = 0) -> int:
        with _ours(f"the checkpoint of task {id} was not written"):
            return add_checkpoint(self._made(id) / "checkpoints", facts, above)

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
    _replace(directory, render_frontmatter(frontmatter) + body)


def _replace(directory: Path, text: str, *, as_directory: bool = False) -> None:
    """`as_directory`: it belongs to whom the directory belongs to, not to us."""
    data = text.replace("\0", "\ufffd").encode("utf-8", "replace")
    beside = f".{NAME}.{os.getpid()}.{os.urandom(4).hex()}"
    with _ours(f"{NAME} was not written"), _opened(directory) as where:
        try:
            with _closing(os.open(beside, _CREATE, 0o644, dir_fd=where)) as file:
                _write_all(file, data)
                owner = os.fstat(where)
                if as_directory and owner.st_uid != os.geteuid():
                    os.fchown(file, owner.st_uid, owner.st_gid)
            put_in_place(where, beside, NAME)
            _remove_left_over(where)
        except BaseException:
            with suppress(OSError):
                os.unlink(beside, dir_fd=where)
            raise


def _remove_left_over(where: int) -> None:
    """What a process that was killed here had beside the file."""
    for name in os.listdir(where):
        found = _BESIDE.fullmatch(name)
        if found and _is_gone(int(found[1])):
            with suppress(OSError):
                os.unlink(name, dir_fd=where)


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


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
    return Unreadable(f"{name} was not read", why, f"write {name} again as a plain UTF-8 text file")


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
        raise Unavailable(what, why=str(error), fix="fix that, then try again") from error


# The frontmatter: a small part of YAML, read with suspicion and written by hand.


def split_frontmatter(text: str) -> tuple[str | None, str]:
    """The text between the fences at the top, and all below; a fence never closed leaves none."""
    fence = _FENCE.match(text)
    if fence is None:
        return None, text
    end = _END.search(text, fence.end())
    if end is None:
        return text[fence.end() :], ""
    return text[fence.end() : end.start()], text[end.end() :]


def parse_frontmatter(text: str) -> dict[str, object] | BrokenFrontmatter:
    """Names with a string, a whole number, true, false, null, or a list of those; no more YAML."""
    # PyYAML is slow to import, and hot commands do without it.
    from lockgate.adapters.task_file.little_yaml import read_fields  # noqa: PLC0415

    if len(text) > LARGEST_FRONTMATTER:
        return BrokenFrontmatter(f"it is longer than {LARGEST_FRONTMATTER} characters", FIRST_LINE)
    return read_fields(text, FIRST_LINE)


def render_frontmatter(fields: Mapping[str, str | int]) -> str:
    """The frontmatter with its fences, such that any YAML reader gets the same values back."""
    lines = [f"{_scalar(name)}: {_scalar(value)}\n" for name, value in fields.items()]
    return f"---\n{''.join(lines)}---\n"


def _scalar(value: str | int) -> str:
    if isinstance(value, int):
        return str(value)
    if _BARE.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return '"' + "".join(_escaped(char) for char in value) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if char.isprintable():
        return char
    code = ord(char)
    if code <= 0xFF:  # noqa: PLR2004
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004
