"""Writes down a session before its runner starts: its door, its agent's HOME, its spec.json."""

import contextlib
import json
import os
import secrets
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from msgspec import Struct

import lockgate
from lockgate.adapters.sandbox import Box, Mount, boxed, cgroup, inside_path, owner
from lockgate.adapters.sandbox.layered import layered_at
from lockgate.adapters.sandbox.process import in_memory
from lockgate.adapters.sandbox.proof import PIPES, asked
from lockgate.adapters.sandbox.services.orders import PLACE, PREPARED, Where, serving_first
from lockgate.adapters.sessions.runner.files import Program, Spec
from lockgate.adapters.sessions.runner.proc import MARK
from lockgate.core.model.agents import AGENT_HOME, DOOR, WORKSPACE
from lockgate.errors import Refused
from lockgate.ports import Desk, Start
from lockgate.ports.work import Becomes, Shell

BASE = "/base.git"
TOLD = "/run/told"
SERVICES_MB = 1024  # of memory, for what the services of a session write
PACKAGE = Path(lockgate.__file__).parent
CLIENT = (str(PACKAGE / "faces" / "client.py"),)
# `lockgate mcp` in a session: it needs no packages but ours.
PIPE = "import sys; sys.path.append({root!r}); from lockgate.faces.pipe import main; main()"


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
    if start.services:
        _make_told(start, directory)
    home = AgentHome(start.home, owner() if start.sandboxed else (os.geteuid(), os.getegid()))
    home.make()
    home.write(login_files(start, directory / "door"), replace=True)
    home.write(start.launch.files, replace=True)
    home.write(start.launch.kept, replace=False)
    home.write(start.launch.programs, replace=True, mode=0o700)
    write_once(directory / "spec.json", _spec(start, directory, state))


def _make_told(start: Start, directory: Path) -> None:
    told = _told_in(directory)
    told.mkdir(exist_ok=True, mode=0o700)
    if start.sandboxed:
        os.chown(told, *owner())


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
        "limited": start.launch.limited,
        "limited_seconds": start.limited_seconds,
        "memory_mb": start.memory_mb,
        "disk_mb": start.disk_mb,
        "places": [str(it) for it in _written(start)],
        "group": str(cgroup.where() or "") if start.sandboxed and start.memory_mb else "",
        "log_bytes": LOG_BYTES,
        "interactive": start.interactive,
        "secrets": [[it.name, it.value] for it in start.secrets],
    }


# What a session's program sees of the machine, in the sandbox or without one.


def make_door(door: Path) -> None:
    """The directory with the session's `lockgate` command; its runner adds the socket."""
    (door / "bin").mkdir(parents=True, exist_ok=True)
    command, pipe = (
        shlex.join((sys.executable, "-I", "-S", *it))
        for it in (CLIENT, ("-c", PIPE.format(root=str(PACKAGE.parent))))
    )
    new = door / "bin" / f"lockgate.{secrets.token_hex(8)}"
    script = f'#!/bin/sh\n[ "$*" = mcp ] && exec {pipe}\nexec {command} "$@"\n'
    new.write_text(script, encoding="utf-8")
    for place, mode in ((door, 0o755), (door / "bin", 0o755), (new, 0o755)):
        place.chmod(mode)
    new.rename(door / "bin" / "lockgate")


def login_files(start: Start, door: Path) -> dict[str, str]:
    """Files of the HOME that give a login shell the session's PATH.

    /etc/profile sets another one, without the `lockgate` command. Codex runs all commands so.
    """
    env = _environment(start) if start.sandboxed else _bare_environment(start, door)
    line = f"export PATH={shlex.quote(env['PATH'])}\n"
    return {".profile": line, ".zprofile": line}


def program_of(start: Start, door: Path, state: Path, mark: str) -> Program:
    """How the runner is to start it."""
    if not start.sandboxed:
        _lay_out(start.desk)
        return {
            "program": [],
            "options": [],
            "separate": [],
            "uplink": [],
            "argv": list(_with_services(start, _bare_where(start, door))),
            "env": _bare_environment(start, door) | {MARK: mark},
            "directory": str(start.desk.directory),
        }
    where = Where(place=PLACE, told=TOLD, prepared=PREPARED if start.data else "")
    layered = layered_at(start.desk.directory)
    made = boxed(
        _box(start, door, state, mark),
        _with_services(start, where),
        entering=layered.entering if layered else (),
    )
    return {
        "program": list(made.program),
        "options": list(made.options),
        "separate": list(made.separate),
        "uplink": list(made.uplink),
        "argv": list(asked(made.argv, PIPES)),
        "env": {},
        "directory": "/",
    }


def _box(start: Start, door: Path, state: Path, mark: str) -> Box:
    _link(start.desk)
    return Box(
        mounts=(
            Mount(source=start.desk.directory, target=WORKSPACE, writable=True),
            *_mounted(start.desk.directory),
            *_shown(start.desk),
            Mount(source=start.base, target=BASE),
            Mount(source=start.home, target=AGENT_HOME, writable=True),
            Mount(source=door, target=DOOR),
            *_beside(start, door),
        ),
        directory=WORKSPACE,
        env=_environment(start) | {MARK: mark},
        network=True,
        read=start.read,
        hidden=(str(state),),
        terminal=start.interactive,
        services_mb=SERVICES_MB if start.services else 0,
    )


def _with_services(start: Start, where: Where) -> tuple[str, ...]:
    if not start.services:
        return start.launch.argv
    return serving_first(start.services, where, start.launch.argv)


def _beside(start: Start, door: Path) -> Iterator[Mount]:
    """How its services fare is read by the runner, which is outside."""
    if start.services:
        yield Mount(source=_told_in(door.parent), target=TOLD, writable=True)
    if start.data:
        yield Mount(source=start.data, target=PREPARED)


def _bare_where(start: Start, door: Path) -> Where:
    place, told = door.with_name("services"), _told_in(door.parent)
    return Where(place=str(place), told=str(told), prepared=str(start.data or ""))


def _told_in(session: Path) -> Path:
    return session / "told"


def _mounted(workspace: Path, *, writable: bool = True) -> tuple[Mount, ...]:
    """The folders of the set-up layer that were not copied into it."""
    layered = layered_at(workspace)
    return layered.mounts(workspace, writable=writable) if layered else ()


def _written(start: Start) -> Iterator[Path]:
    layered = layered_at(start.desk.directory)
    yield from (start.desk.directory, start.home)
    if layered:
        yield layered.written


def _shown(desk: Desk) -> Iterator[Mount]:
    """A reviewer's checkout, entry by entry. A link would be followed outside: see `_link`."""
    for entry in _entries(desk):
        if not entry.is_symlink():
            yield Mount(source=entry, target=f"{WORKSPACE}/{entry.name}")


def _link(desk: Desk) -> None:
    for entry in _entries(desk):
        place = desk.directory / entry.name
        if entry.is_symlink() and not os.path.lexists(place):
            place.symlink_to(entry.readlink())


def _lay_out(desk: Desk) -> None:
    """Where nothing is bound, a reviewer finds the change by links."""
    for entry in _entries(desk):
        place = desk.directory / entry.name
        if not os.path.lexists(place):
            place.symlink_to(entry)


def _entries(desk: Desk) -> list[Path]:
    return sorted(desk.checkout.iterdir()) if desk.checkout else []


def _environment(start: Start) -> dict[str, str]:
    """What is ours comes last: no launch may point elsewhere."""
    path = start.launch.env.get("PATH") or inside_path()
    return _common(start) | {
        "HOME": AGENT_HOME,
        "TMPDIR": "/tmp",  # noqa: S108 - inside the sandbox, where it is its own
        "PATH": f"{DOOR}/bin:{path}",
        "LOCKGATE_SOCKET": f"{DOOR}/socket",
        "IS_SANDBOX": "1",
    }


def _bare_environment(start: Start, door: Path) -> dict[str, str]:
    path = start.launch.env.get("PATH") or os.environ.get("PATH") or os.defpath
    return _common(start) | {
        "HOME": str(start.home),
        "PATH": f"{door}/bin:{path}",
        "LOCKGATE_SOCKET": str(door / "socket"),
    }


def _common(start: Start) -> dict[str, str]:
    terminal = {"TERM": "screen-256color"} if start.interactive else {}
    return {"LANG": "C.UTF-8"} | terminal | dict(start.launch.env)


# A person's own program in a task's workspace.


def shell_at(state: Path, it: Shell) -> Becomes:
    """The program that takes the place of this process; it inherits the filter's descriptor."""
    AgentHome(it.home, owner() if it.sandboxed else (os.geteuid(), os.getegid())).make()
    argv = it.argv or (_shell(),)
    term = {"TERM": os.environ.get("TERM") or "dumb", "GIT_OPTIONAL_LOCKS": "0"}
    if not it.sandboxed:
        path = os.environ.get("PATH") or os.defpath
        env = {"LANG": "C.UTF-8", "HOME": str(it.home), "PATH": path}
        return Becomes(argv, env | term, str(it.workspace))
    env = {"LANG": "C.UTF-8", "HOME": AGENT_HOME, "TMPDIR": "/tmp", "IS_SANDBOX": "1"}  # noqa: S108 - inside the sandbox
    box = Box(
        mounts=(
            Mount(source=it.workspace, target=WORKSPACE, writable=not it.read_only),
            *_mounted(it.workspace, writable=not it.read_only),
            Mount(source=it.base, target=BASE),
            Mount(source=it.home, target=AGENT_HOME, writable=not it.read_only),
        ),
        directory=WORKSPACE,
        env=env | term,
        network=True,
        read=it.read,
        hidden=(str(state.absolute()),),
        terminal=it.terminal,
    )
    layered = layered_at(it.workspace)
    made = boxed(box, argv, entering=layered.entering if layered else ())
    told = ["--json-status-fd", str(_kept(os.open(os.devnull, os.O_WRONLY)))]
    if made.filter:
        told += ["--seccomp", str(_kept(in_memory(made.filter)))]
    return Becomes((*made.before, *made.direct, *told, *made.options, "--", *made.argv), {}, "/")


def _shell() -> str:
    """The person's own where a sandbox shows it, else the usual ones."""
    known = (os.environ.get("SHELL", ""), "/bin/bash")
    good = (it for it in known if it.startswith(("/bin/", "/usr/bin/")) and os.access(it, os.X_OK))
    return next(good, "/bin/sh")


def _kept(descriptor: int) -> int:
    os.set_inheritable(descriptor, True)  # noqa: FBT003 - it takes no keyword
    return descriptor
