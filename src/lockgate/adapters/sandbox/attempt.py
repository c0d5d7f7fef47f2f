"""One attempt of a command on a checkout, in a room of its own: the tree is never changed by it.

A sandbox encloses it; where none may, it is held by nothing but its deadline.
"""

import os
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path, PurePosixPath

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.adapters.run import Cut, Finished, becomes_readable
from lockgate.adapters.sandbox import cgroup
from lockgate.adapters.sandbox.bubblewrap import MEBIBYTE, Box, Mount, boxed, host_lately
from lockgate.adapters.sandbox.ports import let_through, listening_inside
from lockgate.adapters.sandbox.probe import can_overlay
from lockgate.adapters.sandbox.process import Boxed, run_boxed
from lockgate.adapters.sandbox.scratch import (
    COPIED,
    OUT,
    OVER,
    SCRATCH,
    UNDER,
    Keeper,
    Room,
    have_as_made,
    room_for,
    room_in,
    size_of_memory,
)
from lockgate.adapters.sandbox.services.orders import PREPARED, Where, serving_first
from lockgate.core.config.settings import SandboxSettings, Service
from lockgate.ports import Upkeep

# Reads what an attempt left: hostile, so plain files only, no links, and not without end.


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


TAIL = 4000
UNSEEN = 1024  # more processes than can be started between two looks at how many there are


class Try(Struct, frozen=True, kw_only=True):
    """A command, what it judges, what it sees beside that, and what it may use."""

    command: str
    checkout: Path
    mounts: tuple[Mount, ...]
    sandbox: SandboxSettings
    services: tuple[Service, ...]
    deadline: float
    data: Path | None = None  # prepared, for the services to start from
    hidden: tuple[str, ...] = ()  # never shown, whatever else is
    env: Mapping[str, str] = field(default_factory=dict[str, str])  # more that it is told


class Tried(Struct, frozen=True, kw_only=True):
    finished: Finished
    said: str  # of the service that was not ready, or has ended
    reports: Path | None
    seconds: float
    level: str


def enclosed(it: Try, cancelled: Callable[[], bool]) -> Tried:
    """In the sandbox, which must work here."""
    sandbox = it.sandbox
    size = size_of_memory(sandbox.scratch_mb) if can_overlay(it.checkout.parent) else 0
    allowed = () if sandbox.network else sandbox.allow
    wall = (sandbox.memory_mb + size) * MEBIBYTE
    with (
        room_for(it.checkout, size) as room,
        cgroup.group(cgroup.where() if size else None, wall, sandbox.pids) as group,
        let_through(allowed) as doors,
        closing(Keeper(room, sandbox.memory_mb, sandbox.pids, group)) as keeper,
    ):
        where = Where(
            place=OVER["services"], told=OVER["told"], prepared=PREPARED if it.data else ""
        )
        argv = argv_of(it, where, listening_inside(allowed))
        keeper.services = bool(allowed or it.services)
        box = _box(it, room, doors)
        made = boxed(box, argv, host_lately())
        made = replace(made, direct=room.entered_by(made.direct, group, box.processes))
        level = _level(sandbox, overlay=bool(size), group=bool(group), filter=bool(made.filter))
        return tried(it, made, keeper, cancelled, level)


def tried(it: Try, made: Boxed, keeper: Keeper, cancelled: Callable[[], bool], level: str) -> Tried:
    begun = time.monotonic()
    done = run_boxed(made, deadline=it.deadline, cancelled=cancelled, warden=keeper)
    seconds = time.monotonic() - begun
    said = ""
    if done.cut is Cut.SERVICE:
        with _directory(keeper, "told") as told:
            if told is not None:
                said = tail_of(told, "failed", TAIL) or tail_of(told, "ended", TAIL)
    with _directory(keeper, "out") as out:
        reports = None if out is None else kept(out, it.checkout)
    return Tried(finished=done, said=said, reports=reports, seconds=seconds, level=level)


@contextmanager
def _directory(keeper: Keeper, name: str) -> Generator[int | None]:
    opened = keeper.opened(name)
    try:
        yield opened
    finally:
        if opened is not None:
            os.close(opened)


def _box(it: Try, room: Room, doors: tuple[Mount, ...]) -> Box:
    return Box(
        mounts=(*it.mounts, *room.mounts(OVER), *doors, *_data(it)),
        under=room.mounts(UNDER),
        directory=OVER["tree"],
        env={**it.env, "OUT": OUT, "SCRATCH": SCRATCH},
        network=it.sandbox.network,
        read=it.sandbox.read,
        hidden=it.hidden,
        processes=it.sandbox.pids + max(it.sandbox.pids, UNSEEN),
    )


def _data(it: Try) -> tuple[Mount, ...]:
    return (Mount(source=it.data, target=PREPARED),) if it.data else ()


def argv_of(it: Try, where: Where, ports: str) -> tuple[str, ...]:
    """As it is written, by `sh -c`: of a pipeline the last command's exit is the whole's."""
    command = ("/bin/sh", "-c", it.command)
    if not it.services and not ports:
        return command
    return serving_first(it.services, where, command, ports)


def _level(sandbox: SandboxSettings, *, overlay: bool, group: bool, filter: bool) -> str:
    parts = ("bubblewrap", *(("seccomp",) if filter else ()), "overlay" if overlay else "copy")
    opened = ("network",) if sandbox.network else sandbox.allow
    return "+".join((*parts, "cgroup" if group else "watchdog", *opened))


# An attempt that nothing encloses, held by nothing but its deadline. What it leaves running is
# ended, as far as it can be found.


MANY = 4096  # new processes, from which on it is quicker to look at all that there are
BRIEFLY = 1.0  # seconds; too short for the kernel to use all numbers and start again
PATIENCE = 5.0  # seconds for what was killed to be gone
ROUNDS = 10  # what is just starting another one may be found only once that is there


class Start(Struct, frozen=True):
    """When it was, and the number of the process that was started last before."""

    at: float
    newest: int


def start_now() -> Start:
    return Start(time.monotonic(), _newest())


def end_stragglers(mark: str, since: Start) -> None:
    """Those that were started since and have the mark in their environment."""
    marked = os.fsencode(mark)
    for _ in range(ROUNDS):
        found = [pid for pid in _younger(since) if _carries(pid, marked)]
        if not found:
            return
        for pid in found:
            _end(pid, marked)


def _younger(since: Start) -> Iterable[int]:
    """And perhaps some that are older."""
    last, before = _newest(), since.newest
    if time.monotonic() < since.at + BRIEFLY and 0 < before < last < before + MANY:
        return range(before + 1, last + 1)
    with suppress(OSError):
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208
    return ()


def _newest() -> int:
    """0 if it is not known."""
    with suppress(OSError, ValueError):
        return int(_content("/proc/loadavg").split()[-1])
    return 0


def _carries(pid: int, mark: bytes) -> bool:
    with suppress(OSError):
        return mark in _content(f"/proc/{pid}/environ").split(b"\0")
    return False


def _content(path: str) -> bytes:
    """Without a buffer, which takes as long to make as such a file to read."""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - as above
        return file.readall()


def _end(pid: int, mark: bytes) -> None:
    """By a handle, so that it is still the same process when it is ended."""
    with suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            if _carries(pid, mark):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                becomes_readable(handle, PATIENCE)
        finally:
            os.close(handle)


def bare(it: Try, upkeep: Upkeep | None, cancelled: Callable[[], bool], *, alone: bool) -> Tried:
    """In the checkout itself where its upkeep is known and nobody else is in it, else on a copy."""
    with (
        _room(it.checkout, upkeep, alone=alone) as room,
        closing(Keeper(room, it.sandbox.memory_mb, it.sandbox.pids, None)) as keeper,
    ):
        keeper.enters(os.getpid(), 0)
        keeper.services = bool(it.services)
        told, place = room.place / "told", room.place / "services"
        for directory in (told, place) if it.services else ():
            directory.mkdir(exist_ok=True)
        where = Where(place=str(place), told=str(told), prepared=str(it.data or ""))
        argv = argv_of(it, where, "")
        environment = {**it.env, **_environment(str(room.place))}
        made = Boxed(
            program=(), options=(), argv=argv, directory=str(room.tree), environment=environment
        )
        since = start_now()
        try:
            return tried(it, made, keeper, cancelled, "none")
        finally:
            end_stragglers(f"SCRATCH={environment['SCRATCH']}", since)


@contextmanager
def _room(checkout: Path, upkeep: Upkeep | None, *, alone: bool) -> Generator[Room]:
    """To have the checkout as it was made may take a moment of waiting: the later the shorter."""
    if upkeep and alone:
        with room_in(checkout, upkeep) as room:
            have_as_made(checkout, upkeep)
            yield room
        return
    if upkeep:
        have_as_made(checkout, upkeep)
    with room_for(checkout, 0, COPIED) as room:
        yield room


def _environment(place: str) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": f"{place}/home",
        "LANG": "C.UTF-8",
        "TERM": "xterm",
        "GIT_CONFIG_SYSTEM": str(Path(__file__).with_name("gitconfig")),
        "TMPDIR": f"{place}/tmp",  # noqa: S108 - the attempt's own
        "OUT": f"{place}/out",
        "SCRATCH": f"{place}/scratch",
    }
