"""Moves a home to another database: copied, compared, and only then used."""

import hashlib
import json
import os
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

from msgspec import Struct

from lockgate.adapters.store import open_store
from lockgate.adapters.store.database import Copy, Run, copied, must_be_empty, put_back, put_in
from lockgate.adapters.store.sql_store import SqlStore
from lockgate.adapters.system import nobody_orchestrating
from lockgate.bootstrap.app import App
from lockgate.bootstrap.rules import DATABASE, POSTGRES, database_of
from lockgate.errors import LockgateError, Refused, Unavailable

WHAT = "the database was not moved"
AGAIN = "try again when nobody uses this home"


class Table(Struct, frozen=True):
    """What was compared: how many rows, and the SHA-256 of all of them in order."""

    rows: int
    digest: str


class Moved(Struct, frozen=True, kw_only=True):
    was: str
    now: str
    tables: Mapping[str, Table]
    kept: str  # what is left of the old one, for people


def move_to(it: App, where: str, environ: Mapping[str, str] = os.environ) -> Moved:
    """`where` is a PostgreSQL URL, or `sqlite` for the file in the home."""
    if environ.get(POSTGRES):
        why = f"{POSTGRES} is set, and would go on naming the old database"
        fix = f"write its value into {it.home / DATABASE}, unset it, then try again"
        raise Refused(WHAT, why=why, fix=fix)
    here, there = database_of(it.home, environ), _place(it.home, where)
    if here == there:
        raise Refused(
            WHAT, why=f"this home uses {it.store.database.shown} already", fix="name another"
        )
    with nobody_orchestrating(it.home, WHAT):
        new = _new_file(it.home) if where == SQLITE else there
        with closing(open_store(new, guard=partial(nobody_orchestrating, it.home))) as other:
            _refuse_in_use(it.store, other)
            tables = _copy(it.store, other)
            shown = other.database.shown if where != SQLITE else there
        was = it.store.database.shown
        _switch(it, where, tables)
        return Moved(was=was, now=shown, tables=tables, kept=_put_away(it, here))


SQLITE = "sqlite"


def _place(home: Path, where: str) -> str:
    if where == SQLITE:
        return str(home / "lockgate.db")
    if not where.startswith(("postgresql://", "postgres://")):
        fix = "lockgate db migrate-to postgresql://user@host:port/name, or: migrate-to sqlite"
        raise Refused(WHAT, why=f"{where} is neither a PostgreSQL URL nor the word sqlite", fix=fix)
    return where


def _new_file(home: Path) -> str:
    """Beside the place of the real one, which it takes when it is whole."""
    place = home / "lockgate.db"
    if place.exists():
        with closing(open_store(str(place))) as other:
            must_be_empty(other.database)
    new = home / ".moving.db"
    for it in (new, *home.glob(f"{new.name}-*")):
        it.unlink(missing_ok=True)
    return str(new)


def _refuse_in_use(store: SqlStore, other: SqlStore) -> None:
    """Another home's orchestrator may use either of them."""
    for it in (store, other):
        if holder := it.claim(f"lockgate db migrate-to {os.getpid()}"):
            fix = "stop that one there (lockgate down), then try again"
            raise Refused(WHAT, why=f"the orchestrator of {holder} uses one of them", fix=fix)


def _copy(store: SqlStore, other: SqlStore) -> Mapping[str, Table]:
    """What the other one has now, which is what this one has. On an error it is as it was."""
    wanted, before = copied(store.database), copied(other.database)
    tables = _digests(wanted)
    if _digests(before) != tables:  # they are the same where a try was killed before the switch
        put_back(other.database, wanted)
    try:
        _compare(tables, other, "the new database has not what was put into it")
        _compare(tables, store, "somebody wrote into the old database meanwhile")
    except LockgateError:
        put_in(other.database, before)
        raise
    return tables


def _compare(wanted: Mapping[str, Table], store: SqlStore, why: str) -> None:
    found = _digests(copied(store.database))
    differing = [name for name in wanted if found.get(name) != wanted[name]]
    broken = store.first_broken_event()
    if differing or broken is not None:
        told = f"{why}: tables {', '.join(differing) or 'none'}, first broken event {broken}"
        raise Unavailable(WHAT, why=told, fix=AGAIN)


def _digests(copy: Copy) -> dict[str, Table]:
    """Rows have no order of their own."""
    return {
        name: Table(len(rows), hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest())
        for name, rows in copy.items()
    }


def _switch(it: App, where: str, tables: Mapping[str, Table]) -> None:
    """In one step, while nobody can write into the old one; from then on nobody can at all."""
    head = tables["log_head"].digest

    def work(run: Run) -> None:
        row = run("SELECT * FROM log_head", {}).fetchone()
        if _digests({"log_head": [json.dumps(row, sort_keys=True)]})["log_head"].digest != head:
            raise Unavailable(WHAT, why="somebody wrote into the old one meanwhile", fix=AGAIN)
        run("ALTER TABLE log_head RENAME TO log_head_moved", {})
        run("SELECT 1 AS one", {}).fetchone()  # by now it is done
        _name(it.home, where)

    if where == SQLITE:
        (it.home / ".moving.db").replace(it.home / "lockgate.db")
    it.store.database.write(work)


def _name(home: Path, where: str) -> None:
    """Which database this home uses, for all who open it from now on."""
    file = home / DATABASE
    if where == SQLITE:
        file.unlink(missing_ok=True)
        return
    beside = file.with_name(f".{file.name}.new")
    beside.unlink(missing_ok=True)
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as new:
        new.write(f"{where}\n")
        new.flush()
        os.fsync(new.fileno())
    beside.replace(file)


def _put_away(it: App, here: str) -> str:
    """The old file goes to the backups; what is in PostgreSQL stays, for who owns it to drop."""
    shown = it.store.database.shown
    it.store.close()
    old = Path(here)
    if here.startswith("postgres"):
        return f"{shown}, which Lockgate uses no more: drop it when you are sure"
    kept = it.home / "backups" / f"moved-{time.strftime('%Y%m%d-%H%M%S')}.db"
    kept.parent.mkdir(mode=0o700, exist_ok=True)
    with suppress(FileNotFoundError):
        old.replace(kept)
    for it_too in old.parent.glob(f"{old.name}-*"):
        it_too.unlink(missing_ok=True)
    return str(kept)
