"""Locks that end with whoever holds them."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


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
