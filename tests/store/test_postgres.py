"""What only PostgreSQL can get wrong: a server that goes away, clients that hold locks."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from importlib import import_module
from uuid import uuid4

import psycopg
import pytest

from lockgate.adapters.store import open_store, postgres
from lockgate.adapters.store.postgres import (
    ASKS_TIME,
    LOCK_MARGIN,
    PostgresDatabase,
    PostgresStore,
    ServerTime,
)
from lockgate.core.lifecycle.decision import Decision
from lockgate.core.model.events import SummaryChanged
from lockgate.core.model.task import TaskId
from lockgate.errors import BadConfig, Unavailable
from tests.store import frozen_client
from tests.store.postgres_cluster import with_schema
from tests.store.samples import PROJECT, a_task, moved

pytestmark = pytest.mark.postgres


@pytest.fixture
def url(postgres_url: str) -> str:
    return with_schema(postgres_url, f"test_{uuid4().hex}")


@pytest.fixture
def store(url: str) -> Generator[PostgresStore]:
    opened = PostgresStore(url, wait_seconds=0.3)
    opened.add_project(PROJECT)
    opened.create(Decision(a_task(), (SummaryChanged("begun"),)))
    yield opened
    opened.close()


def test_a_connection_that_was_lost_while_nobody_used_it_is_made_again(
    store: PostgresStore, url: str
) -> None:
    with psycopg.connect(url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    time.sleep(0.1)

    store.commit(moved(a_task()))

    assert store.load(TaskId("t1")).rev == 1
    assert store.first_broken_event() is None


def test_a_lock_that_is_held_too_long_is_named(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url) as other:
        other.execute("SELECT * FROM log_head FOR UPDATE")

        with pytest.raises(Unavailable, match="locked by another client"):
            store.commit(moved(a_task()))
        other.rollback()

    store.commit(moved(a_task()))
    assert len(store.events(None, 0, 9)) == 2


def test_a_client_that_stops_in_the_middle_does_not_stop_the_others(
    store: PostgresStore, url: str
) -> None:
    stopped = PostgresStore(url, wait_seconds=0.3)
    with stopped._database._connection("") as connection:  # type: ignore[attr-defined]  # inside
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM log_head FOR UPDATE")
        time.sleep(0.6)

        store.commit(moved(a_task()))

    stopped.close()
    assert store.load(TaskId("t1")).rev == 1


@pytest.fixture
def frozen(url: str) -> Generator[Callable[[str, str, float], subprocess.Popen[str]]]:
    """Starts clients that stop themselves inside a turn; returns once they are stopped."""
    started = list[subprocess.Popen[str]]()

    def start(turn: str, how: str, seconds: float) -> subprocess.Popen[str]:
        argv = [sys.executable, "-m", "tests.store.frozen_client", url, turn, str(seconds), how]
        client = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        started.append(client)
        _, status = os.waitpid(client.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        return client

    yield start
    for client in started:
        client.kill()
        client.communicate()


@pytest.mark.parametrize("how", ["write", "write_lightly"])
@pytest.mark.parametrize("turn", frozen_client.TURNS)
def test_a_client_that_freezes_inside_a_turn_stops_no_writer_for_longer_than_the_limit(
    store: PostgresStore, frozen, turn: str, how: str, url: str
) -> None:
    limit = 2.0
    writer = PostgresStore(url, wait_seconds=limit)
    client = frozen(turn, how, limit)
    begin = time.monotonic()

    writer.commit(moved(a_task()))  # waits for the frozen one, and is not refused

    assert time.monotonic() - begin < limit * LOCK_MARGIN + 1
    client.send_signal(signal.SIGCONT)
    told, _ = client.communicate(timeout=30)
    writer.close()
    assert told == ("done\n" if turn == "after_a_statement_without_answer" else "refused\n")
    assert store.load(TaskId("t1")).rev == 1
    assert store.first_broken_event() is None


def test_connections_have_time_limits_of_the_network_unless_the_url_names_others(url: str) -> None:
    database = PostgresDatabase(url, 5.0)
    asked = PostgresDatabase(f"{url}&tcp_user_timeout=60000", 5.0)

    with database._connection("") as ours, asked._connection("") as theirs:
        params, said = ours.info.get_parameters(), theirs.info.get_parameters()

    database.close()
    asked.close()
    assert (params["tcp_user_timeout"], said["tcp_user_timeout"]) == ("5000", "60000")
    assert [params[f"keepalives_{it}"] for it in ("idle", "interval", "count")] == ["2", "1", "3"]


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    with pytest.raises(Unavailable, match="db at /nowhere was not opened") as refused:
        open_store("postgresql://me:secret@/db?host=/nowhere")

    assert "secret" not in f"{refused.value} {refused.value.fix}"


def test_a_url_that_cannot_be_read_is_a_bad_configuration() -> None:
    with pytest.raises(BadConfig, match="its URL cannot be read") as refused:
        open_store("postgresql://me:secret@host/db?colour=red")

    assert "secret" not in f"{refused.value} {refused.value.fix}"


def test_a_newer_schema_is_refused(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("INSERT INTO schema_version VALUES (99)")
        other.execute("UPDATE schema_facts SET readable_from = 99")

    with pytest.raises(Unavailable, match="version 99 and this lockgate knows"):
        PostgresStore(url)


def test_without_psycopg_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "lockgate.adapters.store.postgres")
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(BadConfig) as refused:
        open_store("postgresql:///x")
    monkeypatch.undo()

    assert "lockgate[postgres]" in refused.value.fix
    import_module("lockgate.adapters.store.postgres")


class Server:
    """One whose clock the test sets, and which may be down."""

    def __init__(self) -> None:
        self.at, self.down, self.asked = 5000.0, False, 0

    def ask(self) -> float:
        self.asked += 1
        if self.down:
            raise Unavailable("the database was not read", why="it is down", fix="start it")
        return self.at


class OwnClock:
    """This machine's, in place of the module `time`."""

    def __init__(self) -> None:
        self.since_start, self.day = 100.0, 77.0

    def monotonic(self) -> float:
        return self.since_start

    def time(self) -> float:
        return self.day + self.since_start


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> OwnClock:
    clock = OwnClock()
    monkeypatch.setattr(postgres, "time", clock)
    return clock


def test_the_servers_time_goes_on_between_two_questions(own: OwnClock) -> None:
    server = Server()
    clock = ServerTime(server.ask)

    first = clock.now()
    own.since_start += 5.0

    assert (first, clock.now(), server.asked) == (5000.0, 5005.0, 1)


def test_the_server_is_asked_again_in_time_and_after_a_jump_of_the_own_clock(
    own: OwnClock,
) -> None:
    server = Server()
    clock = ServerTime(server.ask)
    clock.now()

    own.since_start, server.at = own.since_start + ASKS_TIME + 1, 9000.0
    assert clock.now() == 9000.0
    own.day, server.at = own.day + 3600.0, 9700.0  # the machine slept
    assert clock.now() == 9700.0
    assert server.asked == 3


def test_a_server_that_does_not_answer_stops_no_clock(own: OwnClock) -> None:
    server = Server()
    clock = ServerTime(server.ask)
    server.down = True
    assert clock.now() == own.time()

    server.down = False
    assert clock.now() == 5000.0
    server.down, own.since_start = True, own.since_start + 60.0
    assert clock.now() == 5060.0
