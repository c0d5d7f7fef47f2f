"""A copy of a home, made while it is used, and put back on this machine or another."""

import os
import time
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from lockgate import __version__
from lockgate.adapters.archive import Backup, read_archive, unpack_files, write_archive
from lockgate.adapters.store.database import copied, must_be_empty, put_back
from lockgate.adapters.system import nobody_orchestrating
from lockgate.bootstrap.app import App, open_app
from lockgate.errors import Refused, Unavailable


class Kept(Struct, frozen=True, kw_only=True):
    """What a backup has, or what came back from it."""

    tasks: int
    events: int
    size: int = 0
    missing: tuple[str, ...] = ()  # repositories that are not where they were


def back_up(it: App, file: Path) -> Kept:
    """The database first: what it names in git is then still there when that is copied."""
    tables = copied(it.store.database)
    facts = {
        "lockgate": __version__,
        "schema": it.store.database.known,
        "time": time.time(),
        "home": str(it.home),
        "rows": {table: len(rows) for table, rows in tables.items()},
    }
    size = write_archive(file, it.home, Backup(facts, tables))
    return Kept(tasks=len(tables["tasks"]), events=len(tables["events"]), size=size)


def restore(file: Path, environ: Mapping[str, str] = os.environ) -> Kept:
    """Into the home that is named, which must have no tasks; checked before it is said to be there.

    The files come first: a home whose database has tasks has all that these need.
    """
    backup = read_archive(file)
    it = open_app(environ)
    try:
        _must_fit(it, backup)
        with nobody_orchestrating(it.home):
            must_be_empty(it.store.database)
            unpack_files(file, it.home)
            put_back(it.store.database, backup.tables)
        _check(it, backup)
        gone = (p.root for p in it.store.projects() if not Path(p.common_dir).is_dir())
        return Kept(
            tasks=len(backup.tables["tasks"]),
            events=len(backup.tables["events"]),
            missing=tuple(gone),
        )
    finally:
        it.store.close()


def _must_fit(it: App, backup: Backup) -> None:
    theirs, ours = backup.facts.get("schema"), it.store.database.known
    if theirs != ours:
        raise Refused(
            "nothing was restored",
            why=f"the backup has version {theirs} of the schema, and this lockgate {ours}",
            fix=f"restore it with lockgate {backup.facts.get('lockgate')}, then upgrade",
        )


def _check(it: App, backup: Backup) -> None:
    now = copied(it.store.database)
    differs = sorted(name for name in backup.tables if set(now[name]) != set(backup.tables[name]))
    broken = it.store.first_broken_event()
    if differs or broken is not None:
        why = f"tables that differ: {', '.join(differs) or 'none'}; first broken event: {broken}"
        raise Unavailable("the backup did not come back whole", why=why, fix="restore it elsewhere")
