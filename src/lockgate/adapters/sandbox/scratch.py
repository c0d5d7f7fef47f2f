"""Where one attempt may write: a tree over the checkout and some scratch, thrown away after it.

The room is memory of a fixed size, mounted where only the attempt sees it: a size that the kernel
holds for every user, which none of a disk's is. Where that cannot be mounted the tree is a copy on
disk, as large as it gets. The checkout under it is made again where it is no longer as it was, and
a watchdog looks after what the attempt uses up and leaves.
"""

import os
import stat
import tempfile
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from lockgate.adapters.run import Cut, run
from lockgate.adapters.sandbox import cgroup
from lockgate.adapters.sandbox.bubblewrap import FILE_BYTES, HOME, MEBIBYTE, TMP, Mount, owner
from lockgate.adapters.sandbox.services.orders import PLACE
from lockgate.adapters.sandbox.toolchain import trusted
from lockgate.adapters.sandbox.usage import memory_of, namespace_of, processes_in, threads_of
from lockgate.core.model.agents import WORKSPACE
from lockgate.errors import Unavailable
from lockgate.ports import Upkeep

OUT, SCRATCH = "/out", "/scratch"
FILES_PER_MEBIBYTE = 128
COPYING = 600.0  # seconds

# What lies in a room, and where the attempt sees it: over all else that it sees, and under that.
OVER = {
    "tree": WORKSPACE,
    "out": OUT,
    "scratch": SCRATCH,
    "told": "/run/lockgate/told",  # how its services fare
    "services": PLACE,  # what they write
}
UNDER = {
    "home": HOME,
    "tmp": TMP,
    "var": "/var/tmp",  # noqa: S108 - inside the box, where it is the box's own
    "shm": "/dev/shm",  # noqa: S108 - as above
}
PLACES = OVER | UNDER
BESIDE = ("out", "scratch", "home", "tmp")  # what is left of it without a sandbox
COPIED = ("tree", *BESIDE)  # and where another one is at the checkout itself

# Relative names, because a path may hold what separates the options of a mount; the room lies
# beside the checkout. Few programs, because each of them takes a millisecond.
MOUNTING = """set -e
room=$1 size=$2 owner=$3 how=$4 group=$5 starter=$6 processes=$7 under=$8
shift 8
[ "$PPID" = "$starter" ]
umask 022
[ -z "$group" ] || echo 0 >"$group/cgroup.procs"
cd "$0"
mount -n -t tmpfs -o "$size" lockgate "../$room"
(cd "../$room" && exec install -d $owner work upper PLACES)
mount -n -t overlay -o "lowerdir=.$under,upperdir=../$room/upper,workdir=../$room/work$how" \\
  lockgate "../$room/tree"
cd /
ulimit -c 0
ulimit -f FILE_BLOCKS
ulimit -p "$processes" 2>/dev/null || ulimit -u "$processes"
exec "$@"
""".replace("FILE_BLOCKS", str(FILE_BYTES // 512)).replace("PLACES", " ".join(PLACES))
COARSE = 5  # the kernel's clock that files are stamped by, which Python has no name for
TICK = 0.0005  # seconds, less than the clock's step
ROUGH = 10_000_000  # nanoseconds: some disks stamp by such steps, or by whole seconds
SETTLED, FRESH = b"=", b"~"  # what a look begins with: whether each later change shows in times
LOOK_EVERY = 0.1  # seconds
AT_MOST = 20  # a look takes no more than one part in so many of the time
FULL = 1 << 20  # bytes left, below which a room is full
READY, ENDED = "told/ready", "told/ended"  # in the room
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW


class Room(Struct, frozen=True, kw_only=True):
    place: Path
    checkout: Path
    size_mb: int  # of memory; 0: on disk, where nothing bounds it
    tree: Path | None = None  # where nothing is mounted: the copy, or the checkout itself
    under: Path | None = None  # what is seen where the checkout has nothing

    def mounts(self, places: Mapping[str, str]) -> tuple[Mount, ...]:
        return tuple(
            Mount(source=self.place / name, target=target, writable=True)
            for name, target in places.items()
        )

    def entered_by(
        self, program: tuple[str, ...], group: Path | None, processes: int
    ) -> tuple[str, ...]:
        """The command line that makes the room and then becomes the program.

        A shell is there that can set the limits, so that of the program only the last word is run.
        """
        if not self.size_mb:
            return program
        size = f"size={self.size_mb}m,nr_inodes={self.size_mb * FILES_PER_MEBIBYTE},mode=0755"
        uid, gid = owner()
        root = os.geteuid() == 0
        private = ("-m",) if root else ("-U", "-r", "-m")
        whose, how = (f"-o{uid} -g{gid}", ",redirect_dir=on") if root else ("", ",userxattr")
        shell = ("/bin/sh", "-c", MOUNTING, str(self.checkout))
        told = (self.place.name, size, whose, how, str(group or ""), str(os.getpid()))
        unshare = (trusted("unshare"), *private, "--propagation", "private")
        under = f":{os.path.relpath(self.under, self.checkout)}" if self.under else ""
        return (*unshare, "--", *shell, *told, str(processes), under, *program[-1:])


@contextmanager
def room_for(
    checkout: Path, size_mb: int, places: Iterable[str] = tuple(PLACES)
) -> Generator[Room]:
    """Beside the checkout, and gone afterwards."""
    checkout = checkout.resolve()
    made = _new_room(checkout.parent)
    try:
        under = layer_under(checkout)
        if not size_mb:
            _fill(made, checkout, places, under)
        yield Room(place=made, checkout=checkout, size_mb=size_mb, tree=made / "tree", under=under)
    finally:
        _remove(made)


@contextmanager
def room_in(checkout: Path, upkeep: Upkeep) -> Generator[Room]:
    """What an attempt in the checkout itself has beside it; it stays while nothing is left in it.

    A directory takes as long to make as a small program to run.
    """
    known = next((it for it in upkeep.seen if it != checkout), None)
    if known is not None and not is_as_seen(known, upkeep):
        _remove(known)
        del upkeep.seen[known]
        known = None
    room = known or _new_room(checkout.parent)
    if known is None:
        for name in BESIDE:
            (room / name).mkdir()
        upkeep.seen[room] = look(room)
    yield Room(place=room, checkout=checkout, size_mb=0, tree=checkout)


def _new_room(beside: Path) -> Path:
    """Its name says which process made it."""
    return Path(tempfile.mkdtemp(prefix=f".room-{os.getpid()}-", dir=beside))


def sweep_rooms(runs: Path) -> None:
    """Remove the rooms of attempts whose process was killed before it could."""
    for room in runs.glob("*/.room-*-*"):
        if not Path("/proc", room.name.split("-")[1]).exists():
            _remove(room)


def size_of_memory(asked_mb: int) -> int:
    """As much as was asked for, but no more than half of what the machine has."""
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2 // MEBIBYTE
    return min(asked_mb, half)


def under_mark(checkout: Path) -> Path:
    """Where it is noted which set-up layer a checkout is seen over."""
    return checkout.with_name(f".under-{checkout.name}")


def layer_under(checkout: Path) -> Path | None:
    try:
        return Path(os.fsdecode(under_mark(checkout).read_bytes())).resolve(strict=True)
    except FileNotFoundError:
        if not under_mark(checkout).exists():
            return None
    what, why = "the checkout cannot be used", "the set-up layer under it is gone"
    raise Unavailable(what, why=why, fix="try again: it is made again")


def _fill(room: Path, checkout: Path, places: Iterable[str], under: Path | None) -> None:
    for name in places:
        (room / name).mkdir()
        (room / name).chmod(0o755)
        os.chown(room / name, *owner())
    for source in (*((under,) if under else ()), checkout):
        options = ("cp", "-a", "--reflink=auto", "--remove-destination", "--")
        done = run((*options, f"{source}/.", str(room / "tree")), deadline=COPYING)
        if done.code != 0:
            what, fix = "the checkout was not copied", "see that the disk has room, then try again"
            raise Unavailable(what, why=done.err.strip(), fix=fix)


def _remove(room: Path) -> None:
    """What shut itself is opened up first, where that keeps us out at all."""
    if _was_empty(room):
        return
    removing = ("rm", "-rf", "--", str(room))
    if run(removing, deadline=COPYING).code != 0:
        run(("chmod", "-R", "u+rwX", "--", str(room)), deadline=COPYING)
        run(removing, deadline=COPYING)


def _was_empty(room: Path) -> bool:
    with suppress(OSError):
        for entry in os.listdir(room):  # noqa: PTH208 - quick
            os.rmdir(f"{room}/{entry}")  # noqa: PTH106 - quick
        room.rmdir()
        return True
    return False


# Whether a tree is as it was, told without reading any file.


def have_as_made(checkout: Path, upkeep: Upkeep) -> None:
    """Make the checkout again if anything changed it since. Call it before each attempt."""
    with upkeep.lock:
        if checkout in upkeep.seen:
            if is_as_seen(checkout, upkeep):
                return
            upkeep.renew()
        upkeep.seen[checkout] = _settled(checkout)


def is_as_seen(directory: Path, upkeep: Upkeep) -> bool:
    """Once settled by its names alone: another one would show in the times of its directory."""
    known = upkeep.seen[directory]
    with suppress(OSError):  # it is gone, or has shut itself
        if known.startswith(SETTLED):
            return _again(known) == known
        found = look(directory)
        if found[1:] == known[1:]:
            upkeep.seen[directory] = found
            return True
    return False


def look(directory: Path) -> bytes:
    """Every name in it with its mode, size, inode and times; no link is followed.

    The time of a change (ctime) cannot be set back, as the others can.
    """
    begun, top = time.clock_gettime_ns(COARSE), os.fsencode(directory)
    found = os.lstat(top)
    newest, seen, left = found.st_ctime_ns, [_seen(top, found)], [top]
    while left:
        with os.scandir(left.pop()) as entries:
            for entry in entries:  # another order would look like a change
                found = entry.stat(follow_symlinks=False)
                seen.append(_seen(entry.path, found))
                newest = max(newest, found.st_ctime_ns)
                if stat.S_ISDIR(found.st_mode):
                    left.append(entry.path)
    settled = newest < begun and newest % ROUGH != 0
    return (SETTLED if settled else FRESH) + b"\0".join(seen)


def _again(known: bytes) -> bytes:
    names = known[1:].split(b"\0")[::2]
    return known[:1] + b"\0".join(_seen(name, os.lstat(name)) for name in names)


def _settled(directory: Path) -> bytes:
    """A change in the same step of the clock as the last one before it would not be seen."""
    begun = time.clock_gettime_ns(COARSE)
    found = look(directory)
    if found.startswith(SETTLED):
        return found
    while time.clock_gettime_ns(COARSE) == begun:
        time.sleep(TICK)
    return look(directory)


def _seen(path: bytes, found: os.stat_result) -> bytes:
    times = (found.st_mtime_ns, found.st_ctime_ns)
    return b"%b\0%d %d %d %d %d" % (path, found.st_mode, found.st_size, found.st_ino, *times)


# What an attempt uses up while it runs, and what it leaves when it has ended.


class Keeper:
    """The Warden of an attempt. Its room stays until it is closed, though nobody runs in it."""

    def __init__(self, room: Room, memory_mb: int, processes: int, group: Path | None) -> None:
        self.services = False  # whether there are some, which must have become ready
        self._room, self._group = room, group
        self._memory, self._processes = memory_mb * MEBIBYTE, processes
        self._namespace, self._next = 0, 0.0
        self._was_full = False
        self._place: int | None = None

    def enters(self, outer: int, first: int) -> None:
        """From here on the room is ours to look into, also when its last process has ended."""
        where = f"/proc/{outer}/root{self._room.place}" if self._room.size_mb else self._room.place
        with suppress(OSError):  # the probe has seen that it can be opened, so bwrap has died
            self._place = os.open(where, _DIRECTORY)
        self._namespace = namespace_of(first) if first else 0
        self._next = time.monotonic() + LOOK_EVERY

    def look(self) -> Cut | None:
        begun = time.monotonic()
        if begun < self._next or not self._namespace:
            return None
        self._was_full = self._was_full or self._is_full()
        inside = processes_in(self._namespace)
        crowded = threads_of(inside) > self._processes
        over = memory_of(inside, self._memory) > self._memory
        now = time.monotonic()
        self._next = now + max(LOOK_EVERY, AT_MOST * (now - begun))
        return Cut.MEMORY if over else Cut.PIDS if crowded else None

    def leaves(self, code: int) -> Cut | None:
        """A command that succeeded all the same had enough of everything."""
        if self._group is not None and cgroup.ran_out_of_memory(self._group):
            return Cut.MEMORY
        if code == 0 or self._place is None:
            return None
        if self._was_full or self._is_full():
            return Cut.SCRATCH
        if self._group is not None and cgroup.ran_out_of_processes(self._group):
            return Cut.PIDS
        return Cut.SERVICE if self.services and self._service_failed(self._place) else None

    @property
    def sees_its_room(self) -> bool:
        return self._place is not None

    def opened(self, place: str) -> int | None:
        """A directory of the room, for the caller to close; None where there was no room."""
        return None if self._place is None else os.open(place, _DIRECTORY, dir_fd=self._place)

    def close(self) -> None:
        if self._place is not None:
            os.close(self._place)
            self._place = None

    def _service_failed(self, place: int) -> bool:
        """It never was ready, or one has ended before the command did."""
        ready, ended = (os.access(it, os.F_OK, dir_fd=place) for it in (READY, ENDED))
        return not ready or ended

    def _is_full(self) -> bool:
        if self._place is None:
            return False
        found = os.fstatvfs(self._place)
        return found.f_bavail * found.f_frsize < FULL or found.f_ffree == 0
