"""A database is brought up to date by one process alone, after a copy of it was kept."""

import fcntl
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from lockgate.adapters.store import open_store, sqlite
from lockgate.adapters.store.database import migrations_after, newest_version
from lockgate.bootstrap import open_app
from lockgate.core.model.task import TaskId
from lockgate.errors import SchemaIsNewer, Unavailable
from tests.store.postgres_cluster import with_schema
from tests.store.test_migrations import EIGHT, OldPostgres, OldSqlite, fill, migrations_of

BEFORE = 15


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """One whose database was written by an older lockgate."""
    home = tmp_path / "home"
    home.mkdir()
    old = OldSqlite(home / "lockgate.db")
    for migration in migrations_of(old)[:BEFORE]:
        old.migrate(migration)
    fill(old)
    old.db.close()
    return home


def version(file: Path) -> int:
    with closing(sqlite3.connect(file)) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


def test_an_older_orchestrator_that_runs_keeps_its_database_as_it_is(home: Path) -> None:
    with (home / "orchestrator.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write("4711")
        held.flush()

        with pytest.raises(Unavailable, match=r"runs \(pid 4711\)") as refused:
            open_app({"LOCKGATE_HOME": str(home)})

    assert "lockgate down" in refused.value.fix
    assert version(home / "lockgate.db") == BEFORE
    assert not (home / "backups").exists()


def test_a_copy_is_kept_of_the_database_before_it_is_changed(home: Path) -> None:
    app = open_app({"LOCKGATE_HOME": str(home)})

    copy = home / "backups" / f"lockgate-before-{BEFORE + 1:04d}.db"
    assert app.store.load(TaskId("working")).summary == "é '"
    assert (version(home / "lockgate.db"), version(copy)) == (newest_version("sqlite"), BEFORE)
    with closing(sqlite3.connect(copy)) as db:
        assert db.execute("SELECT count(*) FROM tasks").fetchone() == (len(EIGHT),)
    assert copy.stat().st_mode & 0o077 == 0
    app.store.close()


def test_a_database_of_which_no_copy_can_be_kept_is_not_changed(home: Path) -> None:
    (home / "backups").write_text("in the way")

    with pytest.raises(Unavailable, match="was not opened"):
        open_app({"LOCKGATE_HOME": str(home)})

    assert version(home / "lockgate.db") == BEFORE


def test_a_newer_schema_that_this_program_can_use_is_used(tmp_path: Path) -> None:
    file = tmp_path / "lockgate.db"
    open_store(str(file)).close()
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA user_version = 9999")
    open_store(str(file)).close()

    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("UPDATE schema_facts SET readable_from = 9999")
    with pytest.raises(SchemaIsNewer):
        open_store(str(file))


def test_a_migration_says_from_which_version_on_its_result_can_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Path(sqlite.__file__).parent / "migrations"
    theirs = tmp_path / "migrations"
    shutil.copytree(ours, theirs)
    newest = newest_version("sqlite")
    (theirs / "sqlite" / f"{newest + 1:04d}_add.sql").write_text(
        f"-- readable_from: {newest}\nALTER TABLE tasks ADD COLUMN more TEXT;\n"
    )
    (theirs / "sqlite" / f"{newest + 2:04d}_break.sql").write_text("DROP TABLE seen;\n")
    monkeypatch.setattr("lockgate.adapters.store.database._HERE", theirs)

    added, broken = migrations_after("sqlite", newest)

    assert (added.readable_from, broken.readable_from) == (newest, newest + 2)


@pytest.mark.postgres
def test_a_copy_is_kept_in_postgres_too(postgres_url: str) -> None:
    schema = f"test_{uuid4().hex}"
    old = OldPostgres(with_schema(postgres_url, schema))
    for migration in migrations_of(old)[:BEFORE]:
        old.migrate(migration)
    fill(old)
    old.db.close()

    open_store(old.location).close()

    with psycopg.connect(postgres_url) as db:
        copy = f"{schema}_before_{BEFORE + 1:04d}"
        found = db.execute(f"SELECT count(*) FROM {copy}.tasks".encode()).fetchone()  # noqa: S608
    assert found == (len(EIGHT),)
