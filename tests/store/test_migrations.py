"""Migrations, tried on a database with rows in it, and killed at every statement."""

import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import psycopg
import pytest
from msgspec.structs import replace
from psycopg.rows import dict_row

from lockgate.adapters.store import open_store, postgres, rows, sql, sqlite
from lockgate.adapters.store.database import Migration, migrations_after, split_statements
from lockgate.core.lifecycle.decision import EndSessions, NotifyHuman, SpawnAgent
from lockgate.core.model.facts import StoredEvent
from lockgate.core.model.results import Waiting
from lockgate.core.model.task import Budget, GateKind, GateRef, Pinned, Role, Seat, Status, TaskId
from lockgate.ports import PendingEffect
from tests.store.conftest import BOTH
from tests.store.postgres_cluster import with_schema
from tests.store.samples import PROJECT, a_session, a_task, moved

ROOT = Path(__file__).parents[2]
EIGHT = [it for it in Status if it is not Status.PAUSED_FOR_INTERVENTION]
TABLES = {
    "projects": "id",
    "tasks": "id",
    "events": "seq",
    "log_head": "one",
    "outbox": "task, rev, n",
    "sessions": "id",
}
PAUSE = "UPDATE tasks SET status = 'PAUSED_FOR_INTERVENTION' WHERE id = 'pending'"


class Old(Protocol):
    """A database that can be brought up to a version, and looked at."""

    location: str

    def migrate(self, migration: Migration) -> None: ...
    def execute(self, statement: str, values: rows.Values) -> Sequence[dict[str, object]]: ...
    def version(self) -> int: ...
    def schema(self) -> object: ...
    def columns(self, table: str) -> set[str]: ...


class OldSqlite:
    def __init__(self, path: Path) -> None:
        self.location = str(path)
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.row_factory = lambda cursor, row: {
            it[0]: value for it, value in zip(cursor.description, row, strict=True)
        }
        self.db.execute("PRAGMA foreign_keys = ON")

    def migrate(self, migration: Migration) -> None:
        sqlite.migrate(self.db, migration)

    def execute(self, statement: str, values: rows.Values) -> Sequence[dict[str, object]]:
        return self.db.execute(statement, values).fetchall()

    def version(self) -> int:
        return sqlite._version(self.db)

    def schema(self) -> object:
        return self.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name", {})

    def columns(self, table: str) -> set[str]:
        return {str(it["name"]) for it in self.execute(f"PRAGMA table_info({table})", {})}


class OldPostgres:
    def __init__(self, url: str) -> None:
        self.location = url
        self.db = psycopg.Connection.connect(url, autocommit=True, row_factory=dict_row)

    def migrate(self, migration: Migration) -> None:
        postgres.migrate(self.db, migration)

    def execute(self, statement: str, values: rows.Values) -> Sequence[dict[str, object]]:
        cursor = self.db.execute(sql.for_psycopg(statement), values)
        return cursor.fetchall() if cursor.description else []

    def version(self) -> int:
        return postgres.schema_version(self.db)

    def schema(self) -> object:
        tables = self.execute(
            "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns"
            " WHERE table_schema = current_schema() ORDER BY 1, 2",
            {},
        )
        checks = self.execute(
            "SELECT conname, pg_get_constraintdef(oid) AS text FROM pg_constraint"
            " WHERE connamespace = current_schema()::regnamespace ORDER BY 1",
            {},
        )
        indexes = self.execute(
            "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() ORDER BY 1", {}
        )
        return tables, checks, indexes

    def columns(self, table: str) -> set[str]:
        found = self.execute(
            "SELECT column_name FROM information_schema.columns"
            " WHERE table_schema = current_schema() AND table_name = :name",
            {"name": table},
        )
        return {str(it["column_name"]) for it in found}


@pytest.fixture(params=BOTH)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Old]:
    """An empty database, before any migration."""
    if request.param == "sqlite":
        empty: OldSqlite | OldPostgres = OldSqlite(tmp_path / "lockgate.db")
    else:
        url: str = request.getfixturevalue("postgres_url")
        empty = OldPostgres(with_schema(url, f"test_{uuid4().hex}"))
    with closing(empty.db):
        yield empty


def migrations_of(old: Old) -> list[Migration]:
    return migrations_after("sqlite" if isinstance(old, OldSqlite) else "postgres", 0)


def fill(old: Old) -> None:
    """Rows in every table, and a task in each of the eight statuses."""
    insert(old, "projects", rows.project_to_row(PROJECT))
    head = "0" * 64
    for seq, status in enumerate(EIGHT, 1):
        task = a_task(status.value, status=status, created=float(seq), summary="é '")
        insert(old, "tasks", rows.task_to_row(task))
        event = StoredEvent(
            seq=seq, time=1.5, task=task.id, type="x", prev=head, data={"é": status.name}
        )
        row = rows.event_to_row(event)
        head = str(row["hash"])
        old.execute(sql.INSERT_EVENT, row)
        pending = PendingEffect(f"{task.id}:0:0", task.id, NotifyHuman(Status.STUCK, "é"))
        insert(old, "outbox", rows.effect_to_row(pending))
        insert(old, "sessions", rows.session_to_row(a_session(task, f"s{seq}")))
    old.execute("UPDATE log_head SET seq = seq + :count", {"count": len(EIGHT)})
    old.execute(sql.MOVE_HEAD, {"hash": head})


def insert(old: Old, table: str, row: rows.Values) -> None:
    """A row as that version wrote it: without the columns that came later."""
    names = [name for name in row if name in old.columns(table)]
    values = ", ".join(f":{name}" for name in names)
    statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values})"  # noqa: S608  our own
    old.execute(statement, {name: row[name] for name in names})


def content(old: Old) -> dict[str, Sequence[dict[str, object]]]:
    return {
        table: old.execute(f"SELECT * FROM {table} ORDER BY {key}", {})  # noqa: S608  our tables
        for table, key in TABLES.items()
    }


@pytest.mark.req("R191")
def test_a_pause_is_refused_before_the_migration_and_stored_after(old: Old) -> None:
    first, second, *_ = migrations_of(old)
    old.migrate(first)
    fill(old)

    with pytest.raises((sqlite3.IntegrityError, psycopg.errors.CheckViolation)):
        old.execute(PAUSE, {})
    old.migrate(second)
    old.execute(PAUSE, {})

    (row,) = old.execute("SELECT status FROM tasks WHERE id = 'pending'", {})
    assert row == {"status": "PAUSED_FOR_INTERVENTION"}
    with pytest.raises((sqlite3.IntegrityError, psycopg.errors.CheckViolation)):
        old.execute("UPDATE tasks SET status = 'LOST'", {})


@pytest.mark.req("R191")
def test_a_migration_keeps_every_row_and_index(old: Old) -> None:
    first, *later = migrations_of(old)
    old.migrate(first)
    fill(old)
    before = content(old)

    for migration in later:
        old.migrate(migration)

    after = content(old)
    for table, found in before.items():
        kept = [{name: row[name] for name in found[0]} for row in after[table]]
        assert kept == found
    assert {row["status"] for row in before["tasks"]} == {it.name for it in EIGHT}


def test_an_old_database_is_brought_up_to_date_when_it_is_opened(old: Old) -> None:
    old.migrate(migrations_of(old)[0])
    fill(old)
    if isinstance(old, OldSqlite):
        old.db.close()

    store = open_store(old.location)

    working = store.load(TaskId("working"))
    store.commit(moved(working, status=Status.PAUSED_FOR_INTERVENTION))
    assert store.first_broken_event() is None
    assert len(store.sessions(TaskId("working"))) == 1
    assert len(store.pending_effects(None, 99)) == len(EIGHT)
    store.close()


def test_rows_of_the_first_version_are_read_as_if_nothing_had_been_used(old: Old) -> None:
    first, *later = migrations_of(old)
    old.migrate(first)
    fill(old)

    for migration in later:
        old.migrate(migration)

    tasks = [rows.task_from_row(row) for row in old.execute("SELECT * FROM tasks", {})]
    sessions = [rows.session_from_row(row) for row in old.execute("SELECT * FROM sessions", {})]
    assert {it.id: it for it in tasks} == {
        it.value: a_task(it.value, status=it, created=float(n), entered=2.5, summary="é '")
        for n, it in enumerate(EIGHT, 1)
    }
    assert {it.id: it for it in sessions} == {
        f"s{n}": a_session(a_task(it.value), f"s{n}") for n, it in enumerate(EIGHT, 1)
    }


# As versions before 0004 wrote them, to the letter.
PINNED_THEN = (
    '{"base":"trunk","base_commit":"b","config_hash":"h","gates":[{"kind":"command",'
    '"name":"tests"}],"limits":{"call_attempts":3,"call_backoff":2.0,"call_base_delay_ms":500,'
    '"crashes":2,"escalation_threshold":5,"review_rounds":2,"step_failures":3},'
    '"respawn":false,"retry":{"fresh_after_failures":2,"max_iterations":3,"strategy":"auto"}}'
)


def test_what_was_pinned_before_budgets_is_read_as_without_a_limit(old: Old) -> None:
    for migration in migrations_of(old)[:3]:
        old.migrate(migration)
    insert(old, "projects", rows.project_to_row(PROJECT))
    task = a_task("t1", status=Status.WORKING, generation=2, rev=4)
    insert(old, "tasks", {**rows.task_to_row(task), "pinned": PINNED_THEN})
    insert(old, "sessions", rows.session_to_row(a_session(task)))
    effect = "INSERT INTO outbox (task, rev, n, kind, data) VALUES ('t1', 4, :n, :kind, :data)"
    old.execute(effect, {"n": 0, "kind": "EndSessions", "data": "{}"})
    spawn = '{"fresh":false,"generation":2,"role":"worker"}'
    old.execute(effect, {"n": 1, "kind": "SpawnAgent", "data": spawn})
    assert old.version() == 3
    if isinstance(old, OldSqlite):
        old.db.close()

    store = open_store(old.location)

    pinned = Pinned(
        base="trunk",
        base_commit="b",
        config_hash="h",
        gates=(GateRef("tests", GateKind.COMMAND, fail_fast=False),),
        respawn=False,
        budget=Budget(),
        sandboxed=True,
    )
    found = store.load(task.id)
    assert found == replace(task, pinned=pinned, entered=2.5)
    assert store.sessions_alive() == (a_session(task),)
    assert [it.effect for it in store.pending_effects(None, 9)] == [
        EndSessions(0),
        SpawnAgent(Role.WORKER, 2, fresh=False, interactive=False),
    ]
    store.commit(moved(found, usd=1.5, candidate="c"))
    assert store.load(task.id) == replace(found, rev=5, usd=1.5, candidate="c")
    store.close()


def test_a_task_from_before_goals_has_its_summary_as_its_goal(old: Old) -> None:
    *before, _ = migrations_of(old)[:8]
    for migration in before:
        old.migrate(migration)
    assert "goal" not in old.columns("tasks")
    fill(old)
    if isinstance(old, OldSqlite):
        old.db.close()

    store = open_store(old.location)

    assert [store.load(TaskId(it.value)).goal for it in EIGHT] == ["é '"] * len(EIGHT)
    store.close()


def test_a_task_that_a_human_has_is_his_since_it_last_changed_where_nothing_else_is_known(
    old: Old,
) -> None:
    for migration in migrations_of(old):
        if migration.version < 13:
            old.migrate(migration)
    insert(old, "projects", rows.project_to_row(PROJECT))
    for name, mine in (("mine", True), ("its", False)):
        task = a_task(name, status=Status.WORKING, taken_over=mine, updated=2.5)
        insert(old, "tasks", rows.task_to_row(task))
        insert(old, "sessions", rows.session_to_row(a_session(task, name)))
    if isinstance(old, OldSqlite):
        old.db.close()

    store = open_store(old.location)

    assert [store.load(TaskId(it)).taken_at for it in ("mine", "its")] == [2.5, 0.0]
    assert not any(it.asked for it in store.sessions_alive())
    store.close()


# With the budget that came in 0004, and without the paths that are protected.
PINNED_IN_0004 = PINNED_THEN.replace(
    '{"base"', '{"budget":{"minutes":9,"tokens":0,"usd":1.5},"base"'
)


def test_what_was_judged_before_humans_could_answer_has_nothing_to_wait_for(old: Old) -> None:
    for migration in migrations_of(old)[:4]:
        old.migrate(migration)
    insert(old, "projects", rows.project_to_row(PROJECT))
    task = a_task("t1", status=Status.AGENT_REVIEW, candidate="c" * 40, passed=("tests",))
    insert(old, "tasks", {**rows.task_to_row(task), "pinned": PINNED_IN_0004})
    if isinstance(old, OldSqlite):
        old.db.close()

    store = open_store(old.location)

    found = store.load(task.id)
    assert (found.patch, found.protected, found.waiting, found.approvals) == ("", (), "", ())
    assert found.pinned is not None
    assert (found.pinned.protect, found.pinned.budget) == ((), Budget(1.5, 0, 9))
    assert store.gate_results(task.id, 0, 9) == ()
    said = replace(moved(found), results=(Waiting("approval", "well?"),))
    store.commit(said)
    assert [it.result for it in store.gate_results(task.id, 0, 9)] == ["waiting"]
    store.close()


def test_what_was_judged_before_reviewers_had_seats_has_none_and_no_steps(old: Old) -> None:
    for migration in migrations_of(old)[:5]:
        old.migrate(migration)
    insert(old, "projects", rows.project_to_row(PROJECT))
    task = a_task("t1", status=Status.AGENT_REVIEW, rev=4)
    insert(old, "tasks", {**rows.task_to_row(task), "pinned": PINNED_IN_0004})
    insert(old, "sessions", rows.session_to_row(a_session(task)))
    effect = "INSERT INTO outbox (task, rev, n, kind, data) VALUES ('t1', 4, :n, :kind, :data)"
    old.execute(effect, {"n": 0, "kind": "EndSessions", "data": '{"upto":3}'})
    spawn = '{"fresh":false,"generation":4,"interactive":false,"role":"reviewer"}'
    old.execute(effect, {"n": 1, "kind": "SpawnAgent", "data": spawn})
    if isinstance(old, OldSqlite):
        old.db.close()

    store = open_store(old.location)

    found = store.load(task.id)
    assert (found.seats, found.steps_passed, found.step_failures) == ((), (), 0)
    assert found.pinned is not None
    assert (found.pinned.steps, found.pinned.gates[0].reviewers) == ((), ())
    assert [it.seat for it in store.sessions_alive()] == [""]
    assert [it.effect for it in store.pending_effects(None, 9)] == [
        EndSessions(3),
        SpawnAgent(Role.REVIEWER, 4),
    ]
    seat = Seat(gate="review", dimension="security", generation=5, said='{"é": 1}', lost=True)
    store.commit(moved(found, seats=(seat,), steps_passed=("red",), step_failures=2))
    assert store.load(task.id).seats == (seat,)
    assert store.load(task.id).steps_passed == ("red",)
    store.close()


def test_a_migration_that_was_done_is_not_done_again(old: Old) -> None:
    for migration in migrations_of(old):
        old.migrate(migration)
    before = old.schema()

    for migration in migrations_of(old):
        old.migrate(migration)

    assert old.schema() == before
    assert old.version() == migrations_of(old)[-1].version


def test_an_error_at_any_statement_leaves_the_schema_as_it_was(old: Old) -> None:
    for migration in migrations_of(old):
        before, version = old.schema(), old.version()
        for count in range(len(migration.statements) + 1):
            broken = (*migration.statements[:count], "SELECT no_such_column")

            with pytest.raises((sqlite3.OperationalError, psycopg.errors.UndefinedColumn)):
                old.migrate(Migration(migration.version, broken))

            assert (old.schema(), old.version()) == (before, version)
        old.migrate(migration)
        if version == 0:
            fill(old)


def test_a_kill_at_any_statement_leaves_the_old_schema_or_the_new(tmp_path: Path) -> None:
    allowed = sqlite_schemas(tmp_path / "reference.db")
    path = tmp_path / "lockgate.db"
    seen: set[int] = set()

    with dying_opener() as open_and_die:
        for killed_at in range(1, 500):
            shutil.copy(tmp_path / "reference.db.1", path)
            code = open_and_die(path, killed_at)
            with closing(OldSqlite(path).db) as db:
                version = sqlite._version(db)
                found = [
                    row["sql"] for row in db.execute("SELECT sql FROM sqlite_master ORDER BY name")
                ]
                tasks = len(db.execute("SELECT id FROM tasks").fetchall())
            seen.add(version)
            assert (version, found) in allowed
            assert tasks == len(EIGHT)
            if code == 0:
                break
            assert code == -signal.SIGKILL
            for rest in ("-wal", "-shm"):
                path.with_name(path.name + rest).unlink(missing_ok=True)
        else:
            pytest.fail("the migration never came to its end")

    assert seen == {version for version, _ in allowed}


def sqlite_schemas(path: Path) -> list[tuple[int, list[object]]]:
    """The schema after each version; beside it, a copy of version 1 with rows in it."""
    reference = OldSqlite(path)
    found: list[tuple[int, list[object]]] = []
    for migration in migrations_of(reference):
        reference.migrate(migration)
        texts = reference.execute("SELECT sql FROM sqlite_master ORDER BY name", {})
        found.append((reference.version(), [row["sql"] for row in texts]))
        if reference.version() == 1:
            fill(reference)
            shutil.copy(path, path.with_name(path.name + ".1"))
    reference.db.close()
    return found


@contextmanager
def dying_opener() -> Generator[Callable[[Path, int], int]]:
    """Opens a store in a process that SIGKILLs itself as its nth statement begins; its exit code.

    The processes are forks of one, which has imported the store once.
    """
    script = [sys.executable, "-m", "tests.store.dying_opener"]
    with subprocess.Popen(
        script,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as opener:
        assert opener.stdin
        assert opener.stdout
        asked, answered = opener.stdin, opener.stdout

        def open_and_die(path: Path, killed_at: int) -> int:
            asked.write(f"{killed_at} {path}\n")
            asked.flush()
            return int(answered.readline())

        yield open_and_die


def test_a_client_that_dies_at_any_statement_leaves_postgres_as_it_was(
    postgres_url: str,
) -> None:
    url = with_schema(postgres_url, f"test_{uuid4().hex}")
    survivor = OldPostgres(url)

    with closing(survivor.db):
        for migration in migrations_after("postgres", 0):
            before, version = survivor.schema(), survivor.version()
            for count in range(len(migration.statements)):
                victim = OldPostgres(url)
                with pytest.raises(psycopg.OperationalError):
                    victim.migrate(Migration(migration.version, cut(victim, migration, count)))
                assert (survivor.schema(), survivor.version()) == (before, version)
            survivor.migrate(migration)


def cut(victim: OldPostgres, migration: Migration, count: int) -> tuple[str, ...]:
    """The statements up to one, then the end of the connection."""
    pid = victim.db.info.backend_pid
    return (*migration.statements[:count], f"SELECT pg_terminate_backend({pid}), pg_sleep(5)")


@pytest.mark.parametrize(
    ("script", "statements"),
    [
        ("", ()),
        ("-- only; words\n", ()),
        ("SELECT 1;\nSELECT\n 2;\n", ("SELECT 1;", "SELECT\n 2;")),
        ("SELECT ';\n';\n", ("SELECT ';\n';",)),
    ],
)
def test_a_script_is_cut_at_its_statements(script: str, statements: tuple[str, ...]) -> None:
    assert split_statements(script) == statements


def test_both_dialects_have_the_same_migrations() -> None:
    folder = ROOT / "src/lockgate/adapters/store/migrations"
    names = {it.name: sorted(file.name for file in it.iterdir()) for it in folder.iterdir()}

    assert names["sqlite"] == names["postgres"]
    assert [int(name[:4]) for name in names["sqlite"]] == list(range(1, len(names["sqlite"]) + 1))
