"""One orchestrator a home, one step a task: locks that the kernel gives back with their holder."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

NAME = "orchestrator.lock"


@contextmanager
def holding(home: Path) -> Generator[bool]:
    """Whether we are the one, for as long as we are in here."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / NAME).open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield True


@contextmanager
def alone(file: Path) -> Generator[bool]:
    """Whether nobody else is in here with the same file; nobody waits for it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def holder(home: Path) -> int | None:
    """The pid of the orchestrator that runs; None where none does."""
    try:
        with (home / NAME).open("r+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                said = file.read().strip()
                return int(said) if said.isdecimal() else 0
    except OSError:
        pass
    return None
