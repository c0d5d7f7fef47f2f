"""Where one attempt may write: a tree over the checkout and some scratch, thrown away after it.

The room is memory of a fixed size, mounted where only the attempt sees it: a size that the kernel
holds for every user, which none of a disk's is. Where that cannot be mounted the tree is a copy on
disk, as large as it gets.
"""

import os
import tempfile
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from lockgate.adapters.run import run
from lockgate.adapters.sandbox.bubblewrap import FILE_BYTES, HOME, MEBIBYTE, TMP, Mount, owner
from lockgate.adapters.sandbox.fingerprint import is_as_seen, look
from lockgate.adapters.sandbox.trusted import trusted
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
room=$1 size=$2 owner=$3 how=$4 group=$5 starter=$6 processes=$7
shift 7
[ "$PPID" = "$starter" ]
umask 022
[ -z "$group" ] || echo 0 >"$group/cgroup.procs"
cd "$0"
mount -n -t tmpfs -o "$size" lockgate "../$room"
(cd "../$room" && exec install -d $owner work upper PLACES)
mount -n -t overlay -o "lowerdir=.,upperdir=../$room/upper,workdir=../$room/work$how" \\
  lockgate "../$room/tree"
cd /
ulimit -c 0
ulimit -f FILE_BLOCKS
ulimit -p "$processes" 2>/dev/null || ulimit -u "$processes"
exec "$@"
""".replace("FILE_BLOCKS", str(FILE_BYTES // 512)).replace("PLACES", " ".join(PLACES))


class Room(Struct, frozen=True, kw_only=True):
    place: Path
    checkout: Path
    size_mb: int  # of memory; 0: on disk, where nothing bounds it
    tree: Path | None = None  # where nothing is mounted: the copy, or the checkout itself

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
        return (*unshare, "--", *shell, *told, str(processes), *program[-1:])


@contextmanager
def room_for(
    checkout: Path, size_mb: int, places: Iterable[str] = tuple(PLACES)
) -> Generator[Room]:
    """Beside the checkout, and gone afterwards."""
    checkout = checkout.resolve()
    made = Path(tempfile.mkdtemp(prefix=".room-", dir=checkout.parent))
    try:
        if not size_mb:
            _fill(made, checkout, places)
        yield Room(place=made, checkout=checkout, size_mb=size_mb, tree=made / "tree")
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
    room = known or Path(tempfile.mkdtemp(prefix=".room-", dir=checkout.parent))
    if known is None:
        for name in BESIDE:
            (room / name).mkdir()
        upkeep.seen[room] = look(room)
    yield Room(place=room, checkout=checkout, size_mb=0, tree=checkout)


def size_of_memory(asked_mb: int) -> int:
    """As much as was asked for, but no more than half of what the machine has."""
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2 // MEBIBYTE
    return min(asked_mb, half)


def _fill(room: Path, checkout: Path, places: Iterable[str]) -> None:
    for name in places:
        (room / name).mkdir()
        (room / name).chmod(0o755)
        os.chown(room / name, *owner())
    copying = ("cp", "-a", "--reflink=auto", "--", f"{checkout}/.", str(room / "tree"))
    done = run(copying, deadline=COPYING)
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
