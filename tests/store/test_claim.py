"""One orchestrator a database, and a server that is restarted under it."""

import os
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path

import psycopg
import pytest

from lockgate.adapters.store import open_store
from lockgate.adapters.store.sql_store import SqlStore
from lockgate.core.lifecycle.decision import Decision
from lockgate.core.model.task import SessionId, TaskId
from lockgate.errors import Overtaken, Refused, Unavailable
from tests.scenarios.stage import Stage
from tests.scenarios.test_surroundings import CONFIG
from tests.store import postgres_cluster
from tests.store.samples import PROJECT, a_task

pytestmark = pytest.mark.postgres
PATIENCE = 60.0


@pytest.fixture
def url(postgres_url: str) -> str:
    """A database of its own: a claim is one of the whole database."""
    name = f"claim_{os.getpid()}_{time.monotonic_ns()}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return postgres_url.replace("/postgres?", f"/{name}?")


@pytest.fixture
def two(url: str) -> Generator[tuple[SqlStore, SqlStore]]:
    stores = open_store(url), open_store(url)
    yield stores
    for store in stores:
        store.close()


def test_a_second_orchestrator_is_told_whose_the_database_is(two) -> None:
    first, second = two

    assert first.claim("lockgate 17@here /home/one") == ""
    assert second.claim("lockgate 18@there /home/two") == "lockgate 17@here /home/one"

    first.close()
    assert eventually(lambda: second.claim("lockgate 18@there /home/two") == "")


def test_an_orchestrator_that_lost_its_claim_takes_it_again_or_stops(two, url) -> None:
    first, second = two
    first.claim("one")
    first.pulse()
    cut_off(url, "one")
    assert isinstance(first.pulse(), int)  # nobody else had it

    cut_off(url, "one")
    assert second.claim("two") == ""
    with pytest.raises(Overtaken):
        first.pulse()


def test_a_database_in_use_is_not_brought_up_to_date(url) -> None:
    store = open_store(url)
    store.claim("lockgate 17@here /home/one")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DELETE FROM schema_version WHERE version > 15")

    with pytest.raises(Refused, match="lockgate 17@here /home/one is using it"):
        open_store(url)
    store.close()


def test_what_only_adds_to_a_schema_does_not_need_a_database_that_nobody_uses(url) -> None:
    store = open_store(url)
    store.claim("lockgate 17@here /home/one")
    with psycopg.connect(url, autocommit=True) as connection:
        for it in (
            "DELETE FROM schema_version WHERE version > 22",
            "UPDATE schema_facts SET readable_from = 22",
            "DROP TABLE lanes, hosts, checkpoints",
            "ALTER TABLE projects DROP COLUMN url",
            "ALTER TABLE tasks DROP COLUMN host",
            "ALTER TABLE sessions DROP COLUMN host",
        ):
            connection.execute(it.encode())

    newer = open_store(url)

    assert newer.pulse() == store.pulse()
    newer.close()
    store.close()


def test_sqlite_needs_no_claim(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "lockgate.db"))

    assert store.claim("me") == ""
    store.close()


def cut_off(url: str, name: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        asked = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
        connection.execute(asked, (name,))
        gone = "SELECT 1 FROM pg_stat_activity WHERE application_name = %s"
        assert eventually(lambda: connection.execute(gone, (name,)).fetchone() is None)


def eventually(true: Callable[[], bool]) -> bool:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if true():
            return True
        time.sleep(0.05)
    return False


# --- a server that restarts ---------------------------------------------------------------------


@pytest.fixture
def server() -> Generator[postgres_cluster.Server]:
    why = postgres_cluster.missing()
    if why:
        pytest.skip(why)
    with postgres_cluster.server("fsync=off") as running:
        yield running


def test_connections_that_a_restart_has_closed_are_not_used_again(server) -> None:
    store = open_store(server.url)
    store.add_project(PROJECT)
    store.create(Decision(a_task()))

    server.restart()

    assert store.load(TaskId("t1")) == a_task()
    store.create(Decision(a_task("t2")))
    store.close()


def test_the_loop_waits_for_a_server_that_is_down_and_goes_on(server, tmp_path) -> None:
    stage = Stage(tmp_path, CONFIG, server.url)
    loop, reports = stage.loop, stage.reports
    thread = threading.Thread(target=loop.run)
    pace(stage)
    thread.start()
    try:
        server.stop()
        assert eventually(lambda: any("the orchestrator waits" in it for it in reports))
        with pytest.raises(Unavailable):
            stage.app.store.pulse()
        server.start()
        assert eventually(lambda: any("goes on" in it for it in reports))
        id = stage.world.create()
        assert eventually(lambda: bool(stage.alive(id)))
    finally:
        loop.stop()
        thread.join(PATIENCE)
        stage.app.store.close()
    assert not thread.is_alive()


def pace(stage: Stage) -> None:
    """The fake watch does not wait: let a little time pass at each, for all clocks."""
    wait = stage.watch.wait

    def waits(seconds: float) -> tuple[SessionId, ...]:
        time.sleep(0.02)
        stage.time.at += 1.0
        return wait(seconds)

    stage.watch.wait = waits  # type: ignore[method-assign]  # a fake's own
