"""Whether a tree is as it was, told without reading any file."""

import hashlib
import os
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lockgate.ports import Upkeep

COARSE = 5  # the kernel's clock that files are stamped by, which Python has no name for
TICK = 0.0005  # seconds, less than the clock's step


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen, and when the last of it was changed."""

    digest: bytes
    newest: int


def have_as_made(checkout: Path, upkeep: Upkeep) -> None:
    """What was changed is made anew, whoever changed it and whenever: look before each attempt."""
    with upkeep.lock:
        if checkout in upkeep.seen:
            if is_as_seen(checkout, upkeep):
                return
            upkeep.renew()
        upkeep.seen[checkout] = _settled(checkout)


def is_as_seen(directory: Path, upkeep: Upkeep) -> bool:
    with suppress(OSError):  # it is gone, or has shut itself
        return look(directory).digest == upkeep.seen[directory]
    return False


def look(directory: Path) -> Look:
    """Every name in it with its mode, size, inode and times; no link is followed.

    The time of a change (ctime) cannot be set back, as the others can.
    """
    top = os.fsencode(directory)
    found = os.lstat(top)
    digest, newest, left = hashlib.blake2b(_seen(b"", found)), found.st_ctime_ns, [top]
    while left:
        with os.scandir(left.pop()) as entries:
            for entry in entries:  # in another order it would be made anew for nothing
                found = entry.stat(follow_symlinks=False)
                digest.update(_seen(entry.path, found))
                newest = max(newest, found.st_ctime_ns)
                if stat.S_ISDIR(found.st_mode):
                    left.append(entry.path)
    return Look(digest.digest(), newest)


def _settled(directory: Path) -> bytes:
    """A change in the same step of the clock as the last one before it would not be seen."""
    begun = time.clock_gettime_ns(COARSE)
    found = look(directory)
    if found.newest < begun:
        return found.digest
    while time.clock_gettime_ns(COARSE) == begun:
        time.sleep(TICK)
    return look(directory).digest


def _seen(path: bytes, found: os.stat_result) -> bytes:
    times = (found.st_mtime_ns, found.st_ctime_ns)
    return b"%b\0%d %d %d %d %d\0" % (path, found.st_mode, found.st_size, found.st_ino, *times)
