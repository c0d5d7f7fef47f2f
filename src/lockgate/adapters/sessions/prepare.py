"""Writes down a session before its runner starts: its door, its agent's HOME, its spec.json."""

import contextlib
import json
import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from msgspec import Struct

from lockgate.adapters.sandbox import cgroup, owner
from lockgate.adapters.sessions.enclosure import login_files, make_door, program_of
from lockgate.adapters.sessions.runner.spec import Spec
from lockgate.errors import Refused
from lockgate.ports import Start

# Writes into a directory that an agent owns: no link it has left there is ever followed.


_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class AgentHome(Struct, frozen=True):
    """The task's HOME, and whose it is: uid and gid of what its agent runs as."""

    path: Path
    owner: tuple[int, int]

    def make(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path.mkdir(mode=0o700, exist_ok=True)
        directory = os.open(self.path, _DIRECTORY)
        try:
            self._give(directory)
        finally:
            os.close(directory)

    def write(self, files: Mapping[str, str], *, replace: bool, mode: int = 0o600) -> None:
        """Put each of them there by its relative name; only where it is missing, if so asked."""
        for name, text in files.items():
            *parents, last = _parts(name)
            directory = os.open(self.path, _DIRECTORY)
            try:
                for part in parents:
                    directory = self._entered(directory, part)
                if replace or not _is_there(directory, last):
                    self._put(directory, last, text.encode("utf-8", "surrogateescape"), mode)
            finally:
                os.close(directory)

    def _entered(self, directory: int, name: str) -> int:
        """The directory of that name inside this one, which is closed; made where none is there."""
        try:
            inside = self._opened(directory, name)
            self._give(inside)
        finally:
            os.close(directory)
        return inside

    def _opened(self, directory: int, name: str) -> int:
        with contextlib.suppress(FileNotFoundError):
            try:
                return os.open(name, _DIRECTORY, dir_fd=directory)
            except NotADirectoryError:  # a link or a file in its place
                _put_aside(directory, name)
        os.mkdir(name, 0o700, dir_fd=directory)
        return os.open(name, _DIRECTORY, dir_fd=directory)

    def _give(self, directory: int) -> None:
        """What is still ours was made by us; a kill may have come before it was given away."""
        if os.fstat(directory).st_uid == os.geteuid() != self.owner[0]:
            os.fchown(directory, *self.owner)

    def _put(self, directory: int, name: str, content: bytes, mode: int) -> None:
        new = f".{secrets.token_hex(8)}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(new, flags, mode, dir_fd=directory), "wb") as file:
            file.write(content)
            os.fchown(file.fileno(), *self.owner)
        try:
            os.rename(new, name, src_dir_fd=directory, dst_dir_fd=directory)
        except IsADirectoryError:
            _put_aside(directory, name)
            os.rename(new, name, src_dir_fd=directory, dst_dir_fd=directory)


def _parts(name: str) -> tuple[str, ...]:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        why = "its name leads out of the agent's home"
        raise Refused(f"{name!r} was not written", why=why, fix="name a file below the home")
    return path.parts


def _put_aside(directory: int, name: str) -> None:
    aside = f"{name}.{secrets.token_hex(4)}"
    os.rename(name, aside, src_dir_fd=directory, dst_dir_fd=directory)


def _is_there(directory: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


# Small JSON files that are there whole or not at all.


def read_object(path: Path) -> dict[str, object] | None:
    """None where it is missing."""
    try:
        found: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found


def write_once(path: Path, content: Mapping[str, object]) -> None:
    """Keeps what is there already: of many writers the first one counts."""
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(new)
    finally:
        new.unlink(missing_ok=True)
    _sync(path.parent)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


LOG_BYTES = 16 << 20


def lay_out(start: Start, directory: Path, state: Path) -> None:
    """Safe to repeat: what was written down first stays, above all the token."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    make_door(directory / "door")
    home = AgentHome(start.home, owner() if start.sandboxed else (os.geteuid(), os.getegid()))
    home.make()
    home.write(login_files(start, directory / "door"), replace=True)
    home.write(start.launch.files, replace=True)
    home.write(start.launch.kept, replace=False)
    home.write(start.launch.programs, replace=True, mode=0o700)
    write_once(directory / "spec.json", _spec(start, directory, state))


def _spec(start: Start, directory: Path, state: Path) -> Spec:
    mark = f"{start.session}.{secrets.token_hex(8)}"
    return {
        "run": program_of(start, directory / "door", state, mark),
        "token": start.token,
        "mark": mark,
        "home": str(state),
        "python": sys.executable,
        "stdin": start.launch.stdin,
        "wall_seconds": start.wall_seconds,
        "silent_seconds": start.silent_seconds,
        "memory_mb": start.memory_mb,
        "disk_mb": start.disk_mb,
        "places": [str(start.desk.directory), str(start.home)],
        "group": str(cgroup.where() or "") if start.sandboxed and start.memory_mb else "",
        "log_bytes": LOG_BYTES,
        "interactive": start.interactive,
        "secrets": [[it.name, it.value] for it in start.secrets],
    }
