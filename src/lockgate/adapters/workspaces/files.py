"""Directories that an agent may have written: handed over, written into, measured, removed."""

import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from lockgate.adapters.run import run
from lockgate.adapters.sandbox import owner
from lockgate.adapters.sandbox.layered import place_of
from lockgate.adapters.sandbox.scratch import under_mark
from lockgate.errors import Unavailable

_LATE = 20  # tries while a process whose starter was killed still writes
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PATH = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def owner_at(*, sandboxed: bool) -> tuple[int, int]:
    """Whom the agent is: without a sandbox, us."""
    return owner() if sandboxed else (os.geteuid(), os.getegid())


def hand_over(directory: Path, uid: int, gid: int) -> bool:
    """Give all of a tree that only we have written to the agent, unless that is us.

    No link is followed.

    Its top stays open to us too: who builds the sandbox goes there before it becomes the agent.
    """
    if uid == os.geteuid():
        return False
    directory.chmod(0o755)
    run(("chown", "-R", "-h", f"{uid}:{gid}", "--", str(directory)), deadline=600.0)
    return True


def write_files(directory: Path, files: Mapping[str, str], uid: int, gid: int) -> None:
    """Each by its plain name, whole or not at all, in place of whatever is there."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _closing(os.open(directory, _DIRECTORY)) as where:
            if os.fstat(where).st_uid == os.geteuid() != uid:  # a kill may have come in between
                os.fchown(where, uid, gid)
            for name, text in files.items():
                _write(where, name, text.encode("utf-8", "surrogateescape"), (uid, gid))
    except OSError as error:
        what = f"{', '.join(files)} was not written into {directory}"
        fix = "see that the directory is there and the disk not full, then try again"
        raise Unavailable(what, why=str(error), fix=fix) from error


def remove(path: Path) -> None:
    """All of it, whatever its modes and however deep; nothing where it is gone.

    What lies deep is first moved up, so that neither a path nor the stack grows with the depth.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode):
        path.unlink(missing_ok=True)
        return
    _open_up(path)
    with _closing(os.open(path, _DIRECTORY)) as top:
        while folders := [name for name in _names(top) if not _unlinked(name, top)]:
            for name in folders:
                _flatten(name, top)
    path.rmdir()


def discard(directory: Path) -> None:
    """With our marks beside it: what comes into its place has not been set up."""
    for mark in (ready_mark(directory), made_mark(directory), under_mark(directory)):
        mark.unlink(missing_ok=True)
    remove(place_of(directory))
    remove(directory)


def ready_mark(place: Path) -> Path:
    """Where it is noted that a clone was set up, and for what."""
    return place.with_name(f".ready-{place.name}")


def made_mark(place: Path) -> Path:
    """Where it is noted which files the set-up of a clone has made."""
    return place.with_name(f".made-{place.name}")


def size_of(path: Path) -> int:
    """Bytes on disk, as far as we can look."""
    total, left = 0, [str(path)]
    while left:
        with suppress(OSError), os.scandir(left.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
    return total


def _write(where: int, name: str, data: bytes, agent: tuple[int, int]) -> None:
    if "/" in name or name in {"", ".", ".."}:
        raise ValueError(f"not a plain name: {name!r}")
    beside = f".{name}.{secrets.token_hex(4)}"
    try:
        with os.fdopen(os.open(beside, _CREATE, 0o644, dir_fd=where), "wb") as file:
            file.write(data)
            os.fchown(file.fileno(), *agent)
        _clear(where, name)
        os.rename(beside, name, src_dir_fd=where, dst_dir_fd=where)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside, dir_fd=where)
        raise


def _clear(where: int, name: str) -> None:
    """A directory in a file's place goes; anything else is replaced by the rename."""
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(os.stat(name, dir_fd=where, follow_symlinks=False).st_mode):
            remove(Path(f"/proc/self/fd/{where}") / name)


def _flatten(name: str, top: int) -> None:
    """Empty one directory of the top: files go, directories move to the top."""
    _open_up(name, top)
    with _closing(os.open(name, _DIRECTORY, dir_fd=top)) as where:
        for late in range(_LATE, -1, -1):
            for child in _names(where):
                if not _unlinked(child, where):
                    _open_up(child, where)
                    os.rename(child, secrets.token_hex(8), src_dir_fd=where, dst_dir_fd=top)
            try:
                os.rmdir(name, dir_fd=top)
            except OSError as error:
                if error.errno != errno.ENOTEMPTY or not late:
                    raise
                time.sleep(0.1)
            else:
                return


def _names(where: int) -> list[str]:
    with os.scandir(where) as entries:
        return [entry.name for entry in entries]


def _unlinked(name: str, where: int) -> bool:
    """Whether it was no directory, and is gone."""
    if stat.S_ISDIR(os.stat(name, dir_fd=where, follow_symlinks=False).st_mode):
        return False
    os.unlink(name, dir_fd=where)
    return True


def _open_up(name: str | Path, dir_fd: int | None = None) -> None:
    """Let its owner, us, into a directory that has shut itself."""
    with _closing(os.open(name, _PATH, dir_fd=dir_fd)) as handle:
        if stat.S_IMODE(os.fstat(handle).st_mode) & stat.S_IRWXU != stat.S_IRWXU:
            Path(f"/proc/self/fd/{handle}").chmod(stat.S_IRWXU)


@contextmanager
def _closing(handle: int) -> Generator[int]:
    try:
        yield handle
    finally:
        os.close(handle)


# Locks that the kernel releases when their holder ends.


@contextmanager
def locked(file: Path) -> Generator[None]:
    """Wait for it and hold it. Its file goes with the last who held it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    while (handle := _taken(file)) is None:
        pass
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
        os.close(handle)


def _taken(file: Path) -> int | None:
    """None where the one before us removed the very file that we waited for."""
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        if os.path.samestat(os.fstat(handle), file.stat()):
            return handle
    except FileNotFoundError:
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None
