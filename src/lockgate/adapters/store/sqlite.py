"""The store in one SQLite file: one writer at a time, and on disk before it answers."""

import fcntl
import os
import sqlite3
import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Lock

from msgspec import Struct

from lockgate.adapters.store.database import (
    SCHEMA_FACTS,
    UNGUARDED,
    Guard,
    Migration,
    Read,
    Work,
    in_order,
    migrations_after,
    newest_version,
    refuse_newer,
)
from lockgate.adapters.store.json_forms import Row
from lockgate.adapters.store.rows import Values
from lockgate.adapters.store.sql_store import SqlStore
from lockgate.errors import Refused, Restored, Unavailable

# SQLite's code, why it came, what to do.
_CAUSES = {
    sqlite3.SQLITE_BUSY: (
        "the database is locked by another process, and stayed so for {wait:g} seconds",
        "end the program that holds it (fuser {path}), then try again",
    ),
    sqlite3.SQLITE_FULL: ("the disk is full", "free some space there, then try again"),
    sqlite3.SQLITE_IOERR: ("the disk did not read or write", "check the disk, then try again"),
    sqlite3.SQLITE_READONLY: ("it is read-only", "let this user write {path} and its directory"),
    sqlite3.SQLITE_CANTOPEN: (
        "a file of it cannot be opened",
        "let this user read and write {path} and its directory",
    ),
    sqlite3.SQLITE_CORRUPT: ("it is damaged", "restore {path} from a backup"),
    sqlite3.SQLITE_NOTADB: (
        "the file is not a database, or is damaged",
        "move {path} away, or restore it from a backup",
    ),
}


class _Turn(Struct, eq=False):
    """One write that waits for the writing connection, and how it ended."""

    work: Work
    taken: bool = False
    done: bool = False
    error: Exception | None = None


class SqliteStore(SqlStore):
    def __init__(
        self, path: str | Path, *, wait_seconds: float = 5.0, guard: Guard = UNGUARDED
    ) -> None:
        super().__init__(SqliteDatabase(Path(path), wait_seconds, guard))


class SqliteDatabase:
    """One connection writes, behind a lock. Others read, each lent to one thread at a time.

    Threads that come to write while one is at it are written next, together, for one fsync.
    """

    holding = ""  # one writes at a time

    def __init__(self, path: Path, wait_seconds: float, guard: Guard = UNGUARDED) -> None:
        self._path = path
        self.shown, self.known = str(path), newest_version("sqlite")
        self._wait = wait_seconds
        self._guard = guard
        self._writing = Lock()
        self._waiting: deque[_Turn] = deque()
        self._readers: deque[sqlite3.Connection] = deque()
        self._light: sqlite3.Connection | None = None
        self._closed = False
        with self._our_errors("was not opened"):
            self._writer = self._open()
            self._file = _identity(path)

    def still_there(self) -> None:
        """Restored where the path leads to another file than the one that is open."""
        if _identity(self._path) != self._file:
            raise Restored(self.shown)

    @contextmanager
    def snapshot(self) -> Generator[Read]:
        with self._our_errors("was not read"), self._reader() as connection:
            connection.execute("BEGIN")
            try:
                yield lambda statement: connection.execute(statement).fetchall()
            finally:
                connection.execute("ROLLBACK")

    def tables(self) -> tuple[str, ...]:
        asked = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        return in_order(str(row["name"]) for row in self.read(asked, {}))

    def claim(self, name: str) -> str:
        return ""

    def now(self) -> float:
        """One machine has the file, and one clock."""
        return time.time()

    def read(self, statement: str, values: Values) -> Sequence[Row]:
        with self._our_errors("was not read"), self._reader() as connection:
            return connection.execute(statement, values).fetchall()

    def write(self, work: Work) -> None:
        turn = _Turn(work)
        self._waiting.append(turn)
        with self._writing:
            if not turn.taken:
                self._settle(self._all_waiting())
        with self._our_errors("was not changed"):
            if turn.error:
                raise turn.error
        if not turn.done:
            raise self._unavailable("was not changed", "the thread that wrote it was ended")

    def write_lightly(self, work: Work) -> None:
        with self._our_errors("was not changed"), self._writing:
            if self._light is None:
                self._light = self._connect("NORMAL")
            _transaction(self._light, [work])

    def close(self) -> None:
        """Close every connection; one that is lent to a reader is closed when it comes back."""
        with self._writing:
            self._closed = True
            for connection in (self._light, self._writer):
                if connection is not None:
                    connection.close()
            self._close_idle_readers()

    def _close_idle_readers(self) -> None:
        with suppress(IndexError):
            while True:
                self._readers.pop().close()

    def _all_waiting(self) -> list[_Turn]:
        turns = [self._waiting.popleft() for _ in range(len(self._waiting))]
        for turn in turns:
            turn.taken = True
        return turns

    def _settle(self, turns: list[_Turn]) -> None:
        """Write them in one transaction; where one of them fails, each in its own."""
        try:
            _transaction(self._writer, [turn.work for turn in turns])
        except Exception as error:  # noqa: BLE001  each thread raises its own
            if len(turns) > 1 and _code(error) != sqlite3.SQLITE_BUSY:
                for turn in turns:
                    self._settle([turn])
                return
            for turn in turns:
                turn.error = error
        else:
            for turn in turns:
                turn.done = True

    @contextmanager
    def _reader(self) -> Generator[sqlite3.Connection]:
        try:
            connection = self._readers.pop()
        except IndexError:
            connection = self._connect("NORMAL")
        try:
            yield connection
        finally:
            self._readers.append(connection)
            if self._closed:
                self._close_idle_readers()

    def _open(self) -> sqlite3.Connection:
        _make_file(self._path)
        connection = self._connect("FULL")
        try:
            version = _version(connection)
            if version > self.known:
                oldest = _readable_from(connection, version)
                refuse_newer(self.shown, version, self.known, oldest)
            _use_write_ahead_log(connection, self._wait)
            if version < self.known:
                self._bring_up_to_date(connection, version)
        except BaseException:
            connection.close()
            raise
        return connection

    def _bring_up_to_date(self, connection: sqlite3.Connection, version: int) -> None:
        """One process at a time; a database that is not new is changed after a copy was kept."""
        with _alone_in(self._path.parent, self._wait):
            version = _version(connection)  # another process may have done it meanwhile
            with self._guard() if 0 < version < self.known else nullcontext():
                if 0 < version < self.known:
                    keep_copy(connection, self._path, version)
                for migration in migrations_after("sqlite", version):
                    migrate(connection, migration)

    def _connect(self, synchronous: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=self._wait, isolation_level=None, check_same_thread=False
        )
        connection.row_factory = _row
        try:
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _our_errors(self, what: str) -> Generator[None]:
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise Refused(
                f"the database {what}", why=str(error), fix="this is a bug: please report it"
            ) from error
        except sqlite3.Error as error:
            why, fix = _CAUSES.get(self._cause(error), (str(error), "try again"))
            raise self._unavailable(what, why, fix) from error
        except OSError as error:
            raise self._unavailable(what, error.strerror or str(error)) from error

    def _cause(self, error: sqlite3.Error) -> int:
        """SQLite's code; where a disk without room is why it could not write, that one."""
        code = _code(error)
        if code == sqlite3.SQLITE_IOERR:
            with suppress(OSError):
                if os.statvfs(self._path.parent).f_bavail == 0:
                    return sqlite3.SQLITE_FULL
        return code

    def _unavailable(self, what: str, why: str, fix: str = "try again") -> Unavailable:
        names = {"wait": self._wait, "path": self._path}
        return Unavailable(
            f"the database {self._path} {what}", why=why.format(**names), fix=fix.format(**names)
        )


def migrate(connection: sqlite3.Connection, migration: Migration) -> None:
    """Apply it, unless another process has; a kill at any point leaves it undone or done."""
    # Off, or a table that is dropped to be built again would take its children along.
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _version(connection) < migration.version:
            for statement in migration.statements:
                connection.execute(statement)
            if migration.version > SCHEMA_FACTS:
                connection.execute(
                    "UPDATE schema_facts SET readable_from = max(readable_from, ?)",
                    (migration.readable_from,),
                )
            connection.execute(f"PRAGMA user_version = {migration.version:d}")
        connection.execute("COMMIT")
    except BaseException:
        _roll_back(connection)
        raise
    connection.execute("PRAGMA foreign_keys = ON")


def _transaction(connection: sqlite3.Connection, works: list[Work]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for work in works:
            work(connection.execute)
        connection.execute("COMMIT")
    except BaseException:
        _roll_back(connection)
        raise


def _roll_back(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):  # on a full disk SQLite has done it itself
        connection.execute("ROLLBACK")


def _make_file(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Only a new file: to open and close an old one would drop this process's locks on it.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _use_write_ahead_log(connection: sqlite3.Connection, wait_seconds: float) -> None:
    """SQLite does not wait its time-out for this, so two processes that begin together need it."""
    give_up = time.monotonic() + wait_seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
            time.sleep(0.01)
        else:
            return


@contextmanager
def _alone_in(directory: Path, wait_seconds: float) -> Generator[None]:
    """Held by the process that makes or changes a database there; others wait for it."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        give_up = time.monotonic() + wait_seconds
        while not _locked(descriptor):
            if time.monotonic() > give_up:
                raise sqlite3.OperationalError("another process is bringing it up to date")
            time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def keep_copy(connection: sqlite3.Connection, path: Path, version: int) -> Path:
    """The database as it is before it is changed, beside it; one a version, the newest counts."""
    copies = path.parent / "backups"
    copies.mkdir(mode=0o700, exist_ok=True)
    copy = copies / f"{path.stem}-before-{version + 1:04d}.db"
    half = copy.with_suffix(".half")
    half.unlink(missing_ok=True)
    os.close(os.open(half, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    connection.execute("VACUUM INTO ?", (str(half),))
    half.replace(copy)
    return copy


def _identity(path: Path) -> tuple[int, int]:
    """Which file it is; (0, 0) where none is there."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_dev, found.st_ino


def _readable_from(connection: sqlite3.Connection, version: int) -> int:
    """The oldest version whose programs may use it; where that is not written down, its own."""
    try:
        found = connection.execute("SELECT readable_from FROM schema_facts").fetchone()
    except sqlite3.OperationalError:
        return version
    return int(found["readable_from"])


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()["user_version"])


def _code(error: Exception) -> int:
    """SQLite's primary code; 0 where the error is not SQLite's own."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def _row(cursor: sqlite3.Cursor, values: tuple[object, ...]) -> Row:
    return {column[0]: value for column, value in zip(cursor.description, values, strict=True)}
