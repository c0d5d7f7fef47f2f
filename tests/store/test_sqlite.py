"""What only SQLite can get wrong: locks, disks, files, a kill in the middle."""

import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from threading import Barrier, Timer
from typing import cast

import pytest

from lockgate.adapters.store import sql
from lockgate.adapters.store.database import Run
from lockgate.adapters.store.sqlite import SqliteDatabase, SqliteStore
from lockgate.core.lifecycle.decision import Decision, MirrorTask
from lockgate.core.model.events import SummaryChanged
from lockgate.core.model.task import Task, TaskId
from lockgate.errors import StaleTask, Unavailable
from lockgate.ports import Store
from tests.store.samples import PROJECT, a_task, moved

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "lockgate.db"


@pytest.fixture
def store(path: Path) -> Generator[SqliteStore]:
    """A store with one task, that waits a short time only."""
    opened = SqliteStore(path, wait_seconds=0.3)
    begin(opened)
    yield opened
    opened.close()


def begin(store: Store) -> Task:
    task = a_task()
    store.add_project(PROJECT)
    store.create(Decision(task, (SummaryChanged("begun"),)))
    return task


def database_of(store: SqliteStore) -> SqliteDatabase:
    return cast("SqliteDatabase", store._database)


def assert_unchanged(store: Store) -> None:
    assert store.load(TaskId("t1")) == a_task()
    assert len(store.events(None, 0, 99)) == 1
    assert store.pending_effects(None, 99) == ()
    assert store.first_broken_event() is None


# --- locks --------------------------------------------------------------------------------------


def test_a_locked_database_is_waited_for_and_then_named(store: SqliteStore, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        began = time.monotonic()
        with pytest.raises(Unavailable) as refused:
            store.commit(moved(a_task()))
        waited = time.monotonic() - began
        with pytest.raises(Unavailable):
            store.effects_done(["t1:0:0"])
        assert_unchanged(store)

    assert 0.25 < waited < 3
    assert "locked by another process" in refused.value.why
    assert str(path) in refused.value.fix
    store.commit(moved(a_task()))


def test_a_lock_that_is_let_go_in_time_is_not_noticed(path: Path) -> None:
    store = SqliteStore(path, wait_seconds=20)
    begin(store)
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        release = Timer(0.2, other.execute, ["ROLLBACK"])
        release.start()

        store.commit(moved(a_task()))

        release.join()
    assert store.load(TaskId("t1")).rev == 1
    store.close()


def test_reading_does_not_wait_for_a_writer(store: SqliteStore, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        assert_unchanged(store)


def test_threads_that_wait_to_write_share_one_transaction(store: SqliteStore, path: Path) -> None:
    others = [a_task(f"o{n}") for n in range(6)]
    for task in others:
        store.create(Decision(task))
    begun: list[str] = []
    database_of(store)._writer.set_trace_callback(begun.append)
    together = Barrier(7)

    def write(task: Task) -> None:
        together.wait()
        store.commit(moved(task))

    database_of(store)._writing.acquire()
    with ThreadPoolExecutor(6) as threads:
        ended = [threads.submit(write, task) for task in others]
        together.wait()
        time.sleep(0.2)
        database_of(store)._writing.release()
    assert [it.result() for it in ended] == [None] * 6

    assert begun.count("BEGIN IMMEDIATE") < 6
    assert store.first_broken_event() is None


def test_a_turn_that_fails_does_not_take_those_beside_it_along(store: SqliteStore) -> None:
    store.create(Decision(a_task("t2")))
    turns = [moved(a_task("t2")), moved(a_task(rev=7)), moved(a_task())]
    together = Barrier(4)

    def write(decision: Decision) -> str:
        together.wait()
        try:
            store.commit(decision)
        except StaleTask:
            return "stale"
        return "written"

    database_of(store)._writing.acquire()
    with ThreadPoolExecutor(3) as threads:
        ended = [threads.submit(write, decision) for decision in turns]
        together.wait()
        time.sleep(0.2)
        database_of(store)._writing.release()

    assert [it.result() for it in ended] == ["written", "stale", "written"]
    assert [it.task for it in store.events(None, 1, 9)].count(TaskId("t1")) == 1
    assert store.first_broken_event() is None


def test_a_thread_that_is_ended_does_not_let_those_beside_it_believe(store: SqliteStore) -> None:
    database = database_of(store)
    together = Barrier(3)

    def interrupted(_run: Run) -> None:
        raise KeyboardInterrupt

    def write() -> None:
        together.wait()
        database.write(interrupted)

    database._writing.acquire()
    with ThreadPoolExecutor(2) as threads:
        ended = [threads.submit(write) for _ in range(2)]
        together.wait()
        time.sleep(0.2)
        database._writing.release()

    assert {type(it.exception()) for it in ended} == {KeyboardInterrupt, Unavailable}
    store.commit(moved(a_task()))


def test_a_new_file_that_another_holds_is_waited_for_and_then_named(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(Unavailable, match="locked by another process"):
            SqliteStore(path, wait_seconds=0.2)

        other.execute("ROLLBACK")
    SqliteStore(path).close()


# --- disks --------------------------------------------------------------------------------------


def test_a_full_database_says_so_and_keeps_what_it_has(store: SqliteStore) -> None:
    writer = database_of(store)._writer
    pages = writer.execute("PRAGMA page_count").fetchone()["page_count"]
    writer.execute(f"PRAGMA max_page_count = {pages}")

    long = Decision(a_task("t2", summary="x" * 100_000), (SummaryChanged("x"),), (MirrorTask(),))
    with pytest.raises(Unavailable, match="the disk is full"):
        store.create(long)
    assert_unchanged(store)

    writer.execute("PRAGMA max_page_count = 1000000")
    store.create(long)
    assert store.load(TaskId("t2")) == long.task


@pytest.fixture
def disk(tmp_path: Path) -> Generator[Path]:
    """A disk of one megabyte."""
    if os.geteuid() != 0:
        pytest.skip("needs root: a disk of its own cannot be mounted")
    mounted = tmp_path / "disk"
    mounted.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", mounted], check=False)
    if made.returncode != 0:
        pytest.skip("needs a root that can mount a disk")
    yield mounted
    subprocess.run(["umount", "--lazy", mounted], check=True)


def test_a_full_disk_says_so_and_all_works_again_when_there_is_space(disk: Path) -> None:
    store = SqliteStore(disk / "lockgate.db")
    begin(store)
    ballast = disk / "ballast"
    fill_up(ballast)

    with pytest.raises(Unavailable, match="the disk") as refused:
        create_many(store)
    assert refused.value.fix
    created = len(store.events(None, 0, 9999))
    assert store.first_broken_event() is None

    ballast.unlink()
    store.commit(moved(a_task()))
    assert len(store.events(None, 0, 9999)) == created + 1
    assert store.first_broken_event() is None
    store.close()


def test_a_disk_that_is_full_at_the_start_is_named_whether_the_database_is_new_or_not(
    disk: Path,
) -> None:
    used, ballast = disk / "used" / "lockgate.db", disk / "ballast"
    SqliteStore(used).close()
    fill_up(ballast)

    for path in (used, disk / "lockgate.db"):
        with pytest.raises(Unavailable, match="the disk is full") as refused:
            SqliteStore(path)
        assert "free some space" in refused.value.fix

    ballast.unlink()
    SqliteStore(used).close()


def fill_up(ballast: Path) -> None:
    with suppress(OSError), ballast.open("ab", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


def create_many(store: Store) -> None:
    """Many, as what SQLite has set aside is used up first."""
    for n in range(1000):
        store.create(Decision(a_task(f"more-{n}"), (SummaryChanged("x"),)))


def test_a_read_only_disk_says_so(disk: Path) -> None:
    SqliteStore(disk / "lockgate.db").close()
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)

    with pytest.raises(Unavailable, match=r"lockgate\.db was not opened") as refused:
        SqliteStore(disk / "lockgate.db")
    with pytest.raises(Unavailable, match="Read-only file system"):
        SqliteStore(disk / "new" / "lockgate.db")

    assert "write" in refused.value.fix


def test_a_directory_that_may_not_be_written_says_so(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.write_text("a file")  # even root cannot make a file inside a file

    with pytest.raises(Unavailable, match="was not opened"):
        SqliteStore(closed / "lockgate.db")


# --- files --------------------------------------------------------------------------------------


def test_only_the_owner_can_read_the_files(store: SqliteStore, path: Path) -> None:
    modes = {it.name: stat.S_IMODE(it.stat().st_mode) for it in path.parent.iterdir()}

    assert modes == {"lockgate.db": 0o600, "lockgate.db-wal": 0o600, "lockgate.db-shm": 0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("content", [b"this is not a database, but it is long enough", b"x" * 9999])
def test_a_file_that_is_not_a_database_is_left_alone(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)

    with pytest.raises(Unavailable, match="not a database") as refused:
        SqliteStore(path)

    assert str(path) in refused.value.fix
    assert path.read_bytes() == content


PAGE_SIZE = 4096


def overwritten(path: Path, *pages: int) -> None:
    content = bytearray(path.read_bytes())
    for page in pages:
        content[(page - 1) * PAGE_SIZE : page * PAGE_SIZE] = b"\xa5" * PAGE_SIZE
    path.write_bytes(content)


def table_pages(path: Path) -> set[int]:
    """Those where a table or an index begins; the schema's own are not among them."""
    with closing(sqlite3.connect(path)) as db:
        return {page for (page,) in db.execute("SELECT rootpage FROM sqlite_master")}


def test_a_damaged_page_is_noticed(path: Path) -> None:
    store = SqliteStore(path)
    begin(store)
    store.close()
    overwritten(path, *table_pages(path))

    damaged = SqliteStore(path)
    with pytest.raises(Unavailable, match="it is damaged"):
        damaged.load(TaskId("t1"))
    damaged.close()


def test_a_damaged_schema_is_noticed_as_soon_as_it_is_opened(path: Path) -> None:
    store = SqliteStore(path)
    begin(store)
    store.close()
    pages = path.stat().st_size // PAGE_SIZE
    schema = set(range(2, pages + 1)) - table_pages(path)
    assert schema, "the schema has outgrown the first page"
    overwritten(path, *schema)

    with pytest.raises(Unavailable, match="it is damaged"):
        SqliteStore(path)


def test_whichever_page_is_damaged_nothing_else_is_said_and_nothing_wrong_is_read(
    path: Path,
) -> None:
    store = SqliteStore(path)
    begin(store)
    store.close()
    whole = path.read_bytes()
    noticed: list[str] = []

    for page in range(2, len(whole) // PAGE_SIZE + 1):
        path.write_bytes(whole)
        overwritten(path, page)
        try:
            with closing(SqliteStore(path)) as damaged:
                assert damaged.load(TaskId("t1")).summary == "do it"
        except Unavailable as error:
            noticed.append(error.why)

    assert len(noticed) > 1
    assert set(noticed) == {"it is damaged"}


def test_a_flipped_bit_in_a_text_is_noticed(path: Path) -> None:
    store = SqliteStore(path)
    begin(store)
    store.close()
    pages = path.read_bytes()
    assert pages.count(b"do it") == 2  # the summary and the goal
    path.write_bytes(pages.replace(b"do it", b"do\xa0it", 1))

    damaged = SqliteStore(path)
    with pytest.raises(Unavailable):
        damaged.load(TaskId("t1"))
    damaged.close()


def test_a_newer_schema_is_refused_and_not_touched(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as newer:
        newer.execute("PRAGMA user_version = 99")
    before = path.read_bytes()

    with pytest.raises(Unavailable, match="version 99 and this lockgate knows"):
        SqliteStore(path)

    assert path.read_bytes() == before


def test_many_can_open_a_new_file_at_once(path: Path) -> None:
    together = Barrier(8)

    def open_and_write(n: int) -> None:
        together.wait()
        store = SqliteStore(path, wait_seconds=30)
        store.add_project(PROJECT)
        store.create(Decision(a_task(f"t{n}"), (SummaryChanged("x"),)))
        store.close()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(open_and_write, range(8)))

    store = SqliteStore(path)
    assert [it.seq for it in store.events(None, 0, 99)] == list(range(1, 9))
    store.close()


# --- durability ---------------------------------------------------------------------------------


def test_a_commit_is_on_disk_and_only_a_done_effect_may_be_forgotten(store: SqliteStore) -> None:
    store.effects_done(["t1:0:0"])
    database = database_of(store)
    light = database._light
    assert light is not None

    full, normal = 2, 1
    assert database._writer.execute("PRAGMA synchronous").fetchone()["synchronous"] == full
    assert light.execute("PRAGMA synchronous").fetchone()["synchronous"] == normal
    assert database._writer.execute("PRAGMA journal_mode").fetchone()["journal_mode"] == "wal"
    assert database._writer.execute("PRAGMA foreign_keys").fetchone()["foreign_keys"] == 1


def test_a_kill_loses_nothing_acknowledged_and_doubles_nothing(path: Path) -> None:
    store = SqliteStore(path)
    task = begin(store)
    script = [sys.executable, "-m", "tests.store.endless_writer", str(path)]

    for milliseconds in (3, 11, 29, 53, 101):
        with subprocess.Popen(script, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            first = writer.stdout.readline()
            time.sleep(milliseconds / 1000)
            writer.send_signal(signal.SIGKILL)
            rest = writer.stdout.read()  # `communicate` would lose what came with the first line
        acknowledged = int((first + rest).splitlines()[-1])

        rev = store.load(task.id).rev
        assert rev in (acknowledged, acknowledged + 1)
        assert [it.data["summary"] for it in store.events(None, 1, 10**6)] == [
            f"rev {n}" for n in range(1, rev + 1)
        ]
        assert len(store.pending_effects(None, 10**6)) == rev
        assert store.first_broken_event() is None
    store.close()


# --- speed --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        sql.page_of("created", ()),
        sql.page_of("created", (sql.OF_PROJECT,)),
        sql.page_of("created", (sql.OF_STATUS,)),
        sql.page_of("created", (sql.OF_PROJECT, sql.OF_STATUS)),
        sql.page_of("updated", (sql.LIVE,)),
        sql.page_of("updated", (sql.ENDED,)),
        sql.page_of("updated", (sql.LIVE, sql.OF_PROJECT)),
        sql.page_of("updated", (sql.ENDED, sql.OF_PROJECT)),
        sql.TASKS_NEEDING_OF,
        sql.TASK,
        sql.TASKS_NAMED,
        sql.TASKS_ON_BRANCH,
        sql.EVENTS,
        sql.EVENTS_OF_TASK,
        sql.EFFECTS_OF_TASK,
        sql.SESSION_BY_TOKEN,
        sql.SESSIONS_LIMITED,
        sql.SESSIONS_OF_TASK,
        sql.PROJECT_AT,
    ],
)
@pytest.mark.unmeasured
def test_what_is_asked_often_is_found_by_an_index(store: SqliteStore, statement: str) -> None:
    names = dict.fromkeys(re.findall(r":([a-z_]+)", statement), 1)

    steps = database_of(store)._writer.execute(f"EXPLAIN QUERY PLAN {statement}", names).fetchall()

    plan = " ".join(step["detail"] for step in steps)
    assert "TEMP B-TREE" not in plan  # no sort
    assert plan.startswith("SEARCH")


@pytest.mark.parametrize(
    ("statement", "index"),
    [(sql.TASKS_NEEDING, "tasks_needing"), (sql.TASKS_DEPENDING, "tasks_depending")],
)
def test_what_needs_a_human_is_found_without_a_look_at_the_other_tasks(
    store: SqliteStore, statement: str, index: str
) -> None:
    plan = database_of(store)._writer.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()

    assert plan[0]["detail"].startswith("SCAN tasks USING ")
    assert plan[0]["detail"].endswith(f"INDEX {index}")


def test_the_sessions_alive_are_found_without_a_look_at_those_that_ended(
    store: SqliteStore,
) -> None:
    plan = database_of(store)._writer.execute(f"EXPLAIN QUERY PLAN {sql.SESSIONS_ALIVE}").fetchall()

    assert [step["detail"] for step in plan] == ["SCAN sessions USING INDEX sessions_alive"]


def test_a_connection_lent_to_a_reader_is_closed_when_it_comes_back_to_a_closed_store(
    path: Path,
) -> None:
    database = SqliteDatabase(path, 0.3)

    with database._reader() as lent:
        database.close()
        assert lent.execute("SELECT 1").fetchone() is not None

    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        lent.execute("SELECT 1")
