"""A home that goes with whoever made it: at its end or, where it was killed, before the next."""

import fcntl
import os
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from lockgate.adapters.workspaces.trees import remove

PREFIX = ".lockgate-throw-away-"
KEPT = ("layers", "locks", "measurements")  # of the real home: what is made once for all
YOUNG = 60.0  # seconds in which one may not have taken its lock yet


@contextmanager
def throw_away_home(home: Path) -> Generator[Path]:
    """In the real home where there is one, else where temporary files are.

    For its owner alone: a box is shown what lies in it by mounts, also as root.
    """
    beside = home if home.is_dir() else Path(tempfile.gettempdir())
    _clear(beside)
    place = Path(tempfile.mkdtemp(prefix=PREFIX, dir=beside)).resolve()
    handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        for name in KEPT if beside == home else ():
            (home / name).mkdir(exist_ok=True)
            (place / name).symlink_to(place.parent / name)
        yield place
    finally:
        os.close(handle)
        remove(place)


def _clear(beside: Path) -> None:
    for place in beside.glob(f"{PREFIX}*"):
        try:
            handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            if _is_left(handle):
                remove(place)
        finally:
            os.close(handle)


def _is_left(handle: int) -> bool:
    """Whether it is ours, and whoever made it is gone."""
    found = os.fstat(handle)
    if found.st_uid != os.geteuid() or time.time() - found.st_mtime < YOUNG:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
