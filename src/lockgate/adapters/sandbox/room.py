"""Where one attempt may write: a tree over the checkout and some scratch, thrown away after it.

The room is memory of a fixed size, mounted where only the attempt sees it: a size that the kernel
holds for every user, which none of a disk's is. Where that cannot be mounted the tree is a copy on
disk, as large as it gets.
"""

import os
import shutil
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from lockgate.adapters.run import run
from lockgate.adapters.sandbox.bubblewrap import HOME, MEBIBYTE, TMP, Mount, owner
from lockgate.core.agents import WORKSPACE
from lockgate.errors import Unavailable

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

# Relative names, because a path may hold what separates the options of a mount; the room lies
# beside the checkout. Few programs, because each of them takes a millisecond.
MOUNTING = """set -e
room=$1 size=$2 owner=$3 how=$4 group=$5 starter=$6
shift 6
[ "$PPID" = "$starter" ]
umask 022
[ -z "$group" ] || echo 0 >"$group/cgroup.procs"
cd "$0"
mount -n -t tmpfs -o "$size" lockgate "../$room"
(cd "../$room" && exec mkdir upper work PLACES)
[ -z "$owner" ] || (cd "../$room" && exec chown "$owner" upper PLACES)
mount -n -t overlay -o "lowerdir=.,upperdir=../$room/upper,workdir=../$room/work$how" \\
  lockgate "../$room/tree"
cd /
exec "$@"
""".replace("PLACES", " ".join(PLACES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    place: Path
    checkout: Path
    size_mb: int  # of memory; 0: on disk, where nothing bounds it

    def mounts(self, places: Mapping[str, str]) -> tuple[Mount, ...]:
        return tuple(
            Mount(source=self.place / name, target=target, writable=True)
            for name, target in places.items()
        )

    def entered_by(self, program: tuple[str, ...], group: Path | None) -> tuple[str, ...]:
        """The command line that makes the room and then becomes the program."""
        if not self.size_mb:
            return program
        size = f"size={self.size_mb}m,nr_inodes={self.size_mb * FILES_PER_MEBIBYTE},mode=0755"
        uid, gid = owner()
        root = os.geteuid() == 0
        private = ("-m",) if root else ("-U", "-r", "-m")
        whose, how = (f"{uid}:{gid}", ",redirect_dir=on") if root else ("", ",userxattr")
        shell = ("/bin/sh", "-c", MOUNTING, str(self.checkout))
        told = (self.place.name, size, whose, how, str(group or ""), str(os.getpid()))
        unshare = (shutil.which("unshare") or "unshare", *private, "--propagation", "private")
        return (*unshare, "--", *shell, *told, *program)


@contextmanager
def room_for(checkout: Path, size_mb: int) -> Generator[Room]:
    """Beside the checkout, and gone afterwards."""
    checkout = checkout.resolve()
    made = Path(tempfile.mkdtemp(prefix=".room-", dir=checkout.parent))
    try:
        if not size_mb:
            _fill(made, checkout)
        yield Room(place=made, checkout=checkout, size_mb=size_mb)
    finally:
        _remove(made)


def size_of_memory(asked_mb: int) -> int:
    """As much as was asked for, but no more than half of what the machine has."""
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2 // MEBIBYTE
    return min(asked_mb, half)


def _fill(room: Path, checkout: Path) -> None:
    for name in PLACES:
        (room / name).mkdir()
        (room / name).chmod(0o755)
        os.chown(room / name, *owner())
    copying = ("cp", "-a", "--reflink=auto", "--", f"{checkout}/.", str(room / "tree"))
    done = run(copying, deadline=COPYING)
    if done.code != 0:
        what, fix = "the checkout was not copied", "see that the disk has room, then try again"
        raise Unavailable(what, why=done.err.strip(), fix=fix)


def _remove(room: Path) -> None:
    with suppress(OSError):
        room.rmdir()
        return
    run(("chmod", "-R", "u+rwX", "--", str(room)), deadline=COPYING)
    run(("rm", "-rf", "--", str(room)), deadline=COPYING)
