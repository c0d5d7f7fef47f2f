"""Homes with many tasks and events, made once by the store's own statements and kept in build/."""

import shutil
import time
from pathlib import Path

from bench.harness import BUILD, say
from bench.home import add_task, make_home
from bench.listing import fill
from lockgate.adapters.store.database import newest_version

FEW, MANY = 1_000, 100_000
EVENTS = 10  # of each task: a million of them, beside ten thousand


def large_home(tasks: int) -> Path:
    """The place of its `home` and `repository`; made where this schema has none yet."""
    where = BUILD / "homes" / f"{tasks}-tasks-{tasks * EVENTS}-events-{newest_version('sqlite')}"
    whole = where / "whole"
    if not whole.exists():
        shutil.rmtree(where, ignore_errors=True)
        begin = time.monotonic()
        app, project = make_home(where)
        fill(where / "home" / "lockgate.db", add_task(app, project), tasks - 1, EVENTS)
        assert app.store.first_broken_event() is None  # noqa: S101
        app.close()
        whole.touch()
        say(f"  made {where.name} in {time.monotonic() - begin:.0f} s")
    return where


def copied(home: Path, to: Path) -> Path:
    """To be changed; what is kept stays as it is. The repository is the same."""
    shutil.copytree(home / "home", to)
    return to
