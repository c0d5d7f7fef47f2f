"""Both databases, each fresh for every test."""

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from lockgate.adapters.store import open_store
from lockgate.ports import Store
from tests.store import postgres_cluster
from tests.store.samples import PROJECT

BOTH = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a database is, and a way in past the store."""

    dialect: str
    location: str

    def open(self) -> Store:
        return open_store(self.location)

    def execute(self, statement: str) -> Sequence[Sequence[object]]:
        """Run one statement as a stranger would; its rows, if it has any."""
        if self.dialect == "sqlite":
            with closing(sqlite3.connect(self.location, isolation_level=None)) as db:
                return db.execute(statement).fetchall()
        with psycopg.connect(self.location, autocommit=True) as db:
            cursor = db.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


@pytest.fixture(autouse=True)
def _databases_are_quick() -> None:
    """Not here: these tests are about the real file and its migrations."""


@pytest.fixture(scope="session")
def postgres_url() -> Generator[str]:
    why = postgres_cluster.missing()
    if why:
        pytest.skip(why)
    with postgres_cluster.cluster("fsync=off", "max_connections=60") as url:
        yield url


@pytest.fixture(params=BOTH)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sqlite":
        return Place("sqlite", str(tmp_path / "state" / "lockgate.db"))
    url: str = request.getfixturevalue("postgres_url")
    return Place("postgres", postgres_cluster.with_schema(url, f"test_{uuid4().hex}"))


@pytest.fixture(scope="session")
def migrated_postgres(postgres_url: str) -> str:
    """A database with every migration, which remembers what is in its tables."""
    url = postgres_cluster.with_database(postgres_url, "migrated")
    open_store(url).close()
    postgres_cluster.remember(url)
    return url


@pytest.fixture(params=BOTH)
def migrated_place(
    request: pytest.FixtureRequest, tmp_path: Path, migrated: bytes
) -> Generator[Place]:
    """For tests of what is in it: one that has every migration already, and no test's rows."""
    if request.param == "sqlite":
        path = tmp_path / "state" / "lockgate.db"
        path.parent.mkdir(mode=0o700)
        path.write_bytes(migrated)
        path.chmod(0o600)
        yield Place("sqlite", str(path))
        return
    url: str = request.getfixturevalue("migrated_postgres")
    yield Place("postgres", url)
    postgres_cluster.put_back(url)


@pytest.fixture
def store(place: Place) -> Generator[Store]:
    """A store that knows one project and no task."""
    opened = place.open()
    opened.add_project(PROJECT)
    yield opened
    opened.close()
