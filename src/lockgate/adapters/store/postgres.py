"""The store in PostgreSQL, for a team: a transition is two round trips."""

import select
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext, suppress

from lockgate.adapters.store.database import (
    SCHEMA_FACTS,
    UNGUARDED,
    Answer,
    Guard,
    Migration,
    Read,
    Work,
    in_order,
    migrations_after,
    newest_version,
    refuse_newer,
)
from lockgate.adapters.store.json_forms import Fields, Row
from lockgate.adapters.store.rows import Values
from lockgate.adapters.store.sql import for_psycopg
from lockgate.adapters.store.sql_store import SqlStore
from lockgate.core.hosts import zero_of
from lockgate.errors import BadConfig, LockgateError, Overtaken, Refused, Unavailable

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg.pq import TransactionStatus
    from psycopg.rows import dict_row
except ImportError as error:
    raise BadConfig(
        "PostgreSQL was not opened",
        why=f"psycopg is not there ({error})",
        fix="pip install 'lockgate[postgres]'",
    ) from error

Connection = psycopg.Connection[dict[str, object]]

# Two clients that migrate at once take turns; the number means nothing else.
_MIGRATION_LOCK = 7_016_996_765_293_437_281
_ORCHESTRATOR_LOCK = 7_016_996_765_293_437_282  # one orchestrator a database


# A host that is cut off is noticed after 5 s. What the URL says of these counts more.
NETWORK = {
    "tcp_user_timeout": 5000,
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 3,
}
LONGEST_NAME = 63  # characters of a name that the server shows to others
ASKS_TIME = 10.0  # seconds between two looks at the server's clock
JUMPS = 1.0  # seconds that this machine's clock may jump: it slept, or somebody set it
LOCK_MARGIN = 1.4  # who waits for a lock waits longer than a frozen client may hold it


class PostgresStore(SqlStore):
    def __init__(self, url: str, *, wait_seconds: float = 5.0, guard: Guard = UNGUARDED) -> None:
        super().__init__(PostgresDatabase(url, wait_seconds, guard))


class PostgresDatabase:
    """Connections that are lent to one thread at a time; lost ones are dropped and made again."""

    holding = " FOR SHARE"

    def __init__(self, url: str, wait_seconds: float, guard: Guard = UNGUARDED) -> None:
        self._wait = wait_seconds
        self._guard = guard
        self.known = newest_version("postgres")
        self._name = ""  # of the orchestrator that has claimed it from here
        self._claim: Connection | None = None
        self._idle: deque[Connection] = deque()
        self._time = ServerTime(self._asked_for_time)
        try:
            parts = conninfo_to_dict(url, client_encoding="utf8")
        except psycopg.ProgrammingError as error:
            raise BadConfig(
                "PostgreSQL was not opened",
                why=f"its URL cannot be read: {error}",
                fix="write it as postgresql://user@host:port/name",
            ) from error
        parts.setdefault("connect_timeout", max(2, round(wait_seconds)))
        for name, value in NETWORK.items():
            parts.setdefault(name, value)
        self._address = make_conninfo("", **parts)
        self.shown = f"{parts.get('dbname', '')} at {parts.get('host', 'localhost')}"
        try:
            with self._connection("was not opened") as connection:
                self._bring_up_to_date(connection)
        except BaseException:
            self.close()
            raise

    def read(self, statement: str, values: Values) -> Sequence[Row]:
        with self._connection("was not read") as connection:
            return connection.execute(for_psycopg(statement), values).fetchall()

    def write(self, work: Work) -> None:
        with self._connection("was not changed") as connection:
            _transaction(connection, work, ("BEGIN ISOLATION LEVEL READ COMMITTED",))

    def write_lightly(self, work: Work) -> None:
        begin = ("BEGIN ISOLATION LEVEL READ COMMITTED", "SET LOCAL synchronous_commit TO OFF")
        with self._connection("was not changed") as connection:
            _transaction(connection, work, begin)

    @contextmanager
    def snapshot(self) -> Generator[Read]:
        with self._connection("was not read") as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                yield lambda statement: connection.execute(for_psycopg(statement)).fetchall()
            finally:
                _roll_back(connection)

    def tables(self) -> tuple[str, ...]:
        asked = (
            "SELECT table_name AS name FROM information_schema.tables"
            " WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'"
        )
        return in_order(str(row["name"]) for row in self.read(asked, {}))

    def still_there(self) -> None:
        """A server that was restarted has forgotten who claimed it: it is claimed again."""
        if not self._name:
            return
        try:
            if self._claim is not None and not self._claim.closed:
                self._claim.execute("SELECT 1")
                return
        except psycopg.Error:
            pass
        if self.claim(self._name):
            raise Overtaken

    def claim(self, name: str) -> str:
        """By a lock that the server gives back with the connection that holds it."""
        self._name = name
        with self._our_errors("was not claimed"):
            if self._claim is not None:
                self._claim.close()
            self._claim = self._connect()
            as_name = "SELECT set_config('application_name', %s, false)"
            self._claim.execute(as_name, (name[:LONGEST_NAME],))
            asked = "SELECT pg_try_advisory_lock(%s) AS ours"
            found = self._claim.execute(asked, (_ORCHESTRATOR_LOCK,)).fetchone() or {}
            if found["ours"] is True:
                return ""
            return orchestrator_of(self._claim) or "another one, which has just ended"

    def now(self) -> float:
        """By the server's clock: those of hosts may differ."""
        return self._time.now()

    def close(self) -> None:
        self._drop_idle()
        if self._claim is not None:
            self._claim.close()

    def _drop_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _asked_for_time(self) -> float:
        asked = "SELECT extract(epoch FROM clock_timestamp())::double precision AS now"
        return Fields("the time", self.read(asked, {})[0]).real("now")

    def _bring_up_to_date(self, connection: Connection) -> None:
        """A database that is not new is changed by one process alone, after a copy was kept."""
        version = schema_version(connection)
        if version > self.known:
            refuse_newer(self.shown, version, self.known, _readable_from(connection, version))
        if version >= self.known:
            return
        with nullcontext() if version == 0 else self._guard():
            version = schema_version(connection)  # another process may have done it meanwhile
            missing = migrations_after("postgres", version)
            if 0 < version < self.known:
                if any(it.readable_from > version for it in missing):
                    self._refuse_in_use(connection)
                keep_copy(connection, version)
            for migration in missing:
                migrate(connection, migration)

    def _refuse_in_use(self, connection: Connection) -> None:
        """An orchestrator of another home would go on with a schema that it cannot use."""
        other = orchestrator_of(connection)
        if other:
            raise Refused(
                f"the database {self.shown} was not brought up to date",
                why=f"the orchestrator of {other} is using it",
                fix="stop that one there (lockgate down), then try again",
            )

    @contextmanager
    def _connection(self, what: str) -> Generator[Connection]:
        with self._our_errors(what):
            connection = self._lent() or self._connect()
            try:
                yield connection
            finally:
                self._give_back(connection)

    def _lent(self) -> Connection | None:
        """One that is idle; those that a restarted server has closed are dropped."""
        with suppress(IndexError):
            while True:
                connection = self._idle.pop()
                if not _has_news(connection):
                    return connection
                connection.close()
        return None

    def _give_back(self, connection: Connection) -> None:
        if connection.closed:  # the others of that server are lost too
            self._drop_idle()
        else:
            self._idle.append(connection)

    def _connect(self) -> Connection:
        connection = Connection.connect(self._address, autocommit=True, row_factory=dict_row)
        # A client that is stopped in the middle of a transaction must not stop the others.
        wait = round(self._wait * 1000)
        connection.execute(
            f"SET lock_timeout = {round(wait * LOCK_MARGIN):d};"
            f"SET idle_in_transaction_session_timeout = {wait:d}".encode()
        )
        return connection

    @contextmanager
    def _our_errors(self, what: str) -> Generator[None]:
        try:
            yield
        except (psycopg.errors.IntegrityError, psycopg.DataError) as error:
            raise Refused(
                f"the database {what}",
                why=_first_line(error),
                fix="this is a bug: please report it",
            ) from error
        except psycopg.errors.LockNotAvailable as error:
            waited = f"{self._wait * LOCK_MARGIN:g} seconds"
            raise self._unavailable(
                what,
                f"it is locked by another client, and stayed so for {waited}",
                "end the client that holds it (see pg_stat_activity), then try again",
            ) from error
        except psycopg.Error as error:
            raise self._unavailable(
                what, _first_line(error), "check that the server runs and answers, then try again"
            ) from error

    def _unavailable(self, what: str, why: str, fix: str) -> Unavailable:
        return Unavailable(f"the database {self.shown} {what}", why=why, fix=fix)


def keep_copy(connection: Connection, version: int) -> str:
    """Every table as it is before the schema is changed, in a schema of their own; its name."""
    named = connection.execute("SELECT current_schema() AS name").fetchone() or {}
    copy = f"{named['name']}_before_{version + 1:04d}"[:63]
    listed = connection.execute(
        "SELECT table_name AS name FROM information_schema.tables"
        " WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'"
    ).fetchall()
    with connection.transaction():
        connection.execute(f'DROP SCHEMA IF EXISTS "{copy}" CASCADE'.encode())
        connection.execute(f'CREATE SCHEMA "{copy}"'.encode())
        for row in listed:
            table = f'CREATE TABLE "{copy}"."{row["name"]}" AS TABLE "{row["name"]}"'
            connection.execute(table.encode())
    return copy


def orchestrator_of(connection: Connection) -> str:
    """Which home's orchestrator holds the database, for people; empty where none does."""
    found = connection.execute(
        "SELECT coalesce(nullif(application_name, ''), 'process ' || a.pid) AS name"
        " FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid"
        " WHERE l.locktype = 'advisory' AND l.granted"
        " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        " AND (l.classid::bigint << 32) + l.objid::bigint = %s",
        (_ORCHESTRATOR_LOCK,),
    ).fetchone()
    return str(found["name"]) if found else ""


def _readable_from(connection: Connection, version: int) -> int:
    """The oldest version whose programs may use it; where that is not written down, its own."""
    there = connection.execute("SELECT to_regclass('schema_facts') IS NOT NULL AS there")
    if (there.fetchone() or {})["there"] is not True:
        return version
    found = connection.execute("SELECT readable_from FROM schema_facts").fetchone() or {}
    return int(str(found["readable_from"]))


def _has_news(connection: Connection) -> bool:
    """Whether the server has said something unasked: nothing but its end does it say so."""
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


def schema_version(connection: Connection) -> int:
    """0 where nothing has been made yet."""
    there = connection.execute("SELECT to_regclass('schema_version') IS NOT NULL AS there")
    if (there.fetchone() or {})["there"] is not True:
        return 0
    found = connection.execute("SELECT coalesce(max(version), 0) AS version FROM schema_version")
    return int(str((found.fetchone() or {})["version"]))


def migrate(connection: Connection, migration: Migration) -> None:
    """Apply it, unless another client has; a kill at any point leaves it undone or done."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
        connection.execute(
            "CREATE TABLE IF NOT EXISTS schema_version (version integer PRIMARY KEY)"
        )
        if schema_version(connection) < migration.version:
            for statement in migration.statements:
                connection.execute(statement.encode())
            if migration.version > SCHEMA_FACTS:
                connection.execute(
                    "UPDATE schema_facts SET readable_from = greatest(readable_from, %s)",
                    (migration.readable_from,),
                )
            connection.execute("INSERT INTO schema_version VALUES (%s)", (migration.version,))


class Kept:
    """A statement that is sent when its answer, or the end of the turn, is asked for."""

    def __init__(self, turn: "Turn", statement: bytes, values: Values | None) -> None:
        self._turn, self._statement, self._values = turn, statement, values
        self._cursor: psycopg.Cursor[dict[str, object]] | None = None

    def send(self, connection: Connection) -> None:
        self._cursor = connection.execute(self._statement, self._values)

    def fetchone(self) -> Row | None:
        if self._cursor is None:
            self._turn.send()
            self._turn.pipeline.sync()
        return self._cursor.fetchone() if self._cursor else None


class Turn:
    """Keeps statements back, so that no more than a sending lies between the first and its sync.

    The server counts a client as idle, and drops it after the limit, only from a sync on.
    """

    def __init__(self, connection: Connection, pipeline: psycopg.Pipeline) -> None:
        self._connection, self.pipeline = connection, pipeline
        self._kept = list[Kept]()

    def run(self, statement: str, values: Values, /) -> Answer:
        return self.keep(for_psycopg(statement), values)

    def keep(self, statement: bytes, values: Values | None = None) -> Kept:
        self._kept.append(Kept(self, statement, values))
        return self._kept[-1]

    def send(self) -> None:
        for kept in self._kept:
            kept.send(self._connection)
        self._kept.clear()


def _transaction(connection: Connection, work: Work, begin: tuple[str, ...]) -> None:
    """In a pipeline: statements are sent together when one is asked for its answer."""
    try:
        with connection.pipeline() as pipeline:
            turn = Turn(connection, pipeline)
            for statement in begin:
                turn.keep(statement.encode())
            work(turn.run)
            turn.keep(b"COMMIT")
            turn.send()
    except BaseException:
        if connection.info.transaction_status is not TransactionStatus.IDLE:
            _roll_back(connection)
        raise


def _roll_back(connection: Connection) -> None:
    try:
        connection.execute("ROLLBACK")
    except psycopg.Error:
        connection.close()


def _first_line(error: psycopg.Error) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


class ServerTime:
    """The time of day by the server's clock, between two questions to it.

    Never raises: without an answer the last one counts, or at first this machine's clock.
    """

    def __init__(self, ask: Callable[[], float]) -> None:
        self._ask = ask
        self._zero: float | None = None
        self._asked = self._own = 0.0

    def now(self) -> float:
        if self._is_due():
            self._look()
        return time.time() if self._zero is None else self._zero + time.monotonic()

    def _is_due(self) -> bool:
        jumped = abs(_own_zero() - self._own) > JUMPS
        return self._zero is None or jumped or time.monotonic() - self._asked > ASKS_TIME

    def _look(self) -> None:
        """Others go on meanwhile with what is known."""
        sent = self._asked = time.monotonic()
        self._own = _own_zero()
        try:
            told = self._ask()
        except LockgateError:
            return
        self._zero = zero_of(self._zero, sent, told, time.monotonic())


def _own_zero() -> float:
    return time.time() - time.monotonic()
