"""Whether a tree is as it was, told without reading any file."""

import os
import stat
import time
from contextlib import suppress
from pathlib import Path

from lockgate.ports import Upkeep

COARSE = 5  # the kernel's clock that files are stamped by, which Python has no name for
TICK = 0.0005  # seconds, less than the clock's step
ROUGH = 10_000_000  # nanoseconds: some disks stamp by such steps, or by whole seconds
SETTLED, FRESH = b"=", b"~"  # what a look begins with: whether each later change shows in times


def have_as_made(checkout: Path, upkeep: Upkeep) -> None:
    """What was changed is made anew, whoever changed it and whenever: look before each attempt."""
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
            for entry in entries:  # in another order it would be made anew for nothing
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
