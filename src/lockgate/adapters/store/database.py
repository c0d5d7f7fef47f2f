"""One database, whatever its dialect: reads and writes, migrations, the event log, copies."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from lockgate.adapters.store import sql
from lockgate.adapters.store.json_forms import Fields, Row
from lockgate.adapters.store.rows import Values, event_from_row, event_to_row
from lockgate.core.lifecycle.decision import Decision
from lockgate.core.model.events import payload, type_of
from lockgate.core.model.facts import FIRST_PREV, StoredEvent, canonical, event_hash
from lockgate.errors import Refused, SchemaIsNewer, Unavailable


class Answer(Protocol):
    """What a statement gave back; asking for it may be what sends the statement."""

    def fetchone(self) -> Row | None: ...


class Run(Protocol):
    def __call__(self, statement: str, values: Values, /) -> Answer: ...


Work = Callable[[Run], None]
Read = Callable[[str], Sequence[Row]]  # the rows that a statement gives
REFERRED = ("projects", "tasks")  # what rows of other tables refer to
PASSING = ("hosts", "lanes")  # who does what at this moment: emptied, and never copied
Guard = Callable[[], AbstractContextManager[None]]  # what must be held while a schema is changed
UNGUARDED: Guard = nullcontext
SCHEMA_FACTS = 18  # the migration that brought the table


class Database(Protocol):
    """One dialect. It turns its library's errors into ours, and threads may share it."""

    shown: str  # where it is, for people
    known: int  # the newest version of the schema that this program knows
    holding: str  # ends a SELECT whose rows nobody else may change until the transaction ends

    def read(self, statement: str, values: Values) -> Sequence[Row]: ...
    def write(self, work: Work) -> None:
        """Do it in one transaction that is on disk on return; none of it is there on an error."""
        ...

    def write_lightly(self, work: Work) -> None:
        """As write, but a power cut may undo it."""
        ...

    def snapshot(self) -> AbstractContextManager[Read]:
        """Reads that all see the database as it is at the first of them, while others write."""
        ...

    def tables(self) -> tuple[str, ...]:
        """The tables that hold what is to be kept, those that others refer to first."""
        ...

    def still_there(self) -> None:
        """Restored where another database has taken the place of the one that was opened.

        Overtaken where it was claimed, that was lost, and another orchestrator has claimed it.
        """
        ...

    def claim(self, name: str) -> str:
        """Have it for this orchestrator alone, under this name; else whose it is, for people."""
        ...

    def now(self) -> float:
        """The time of day by the clock that all who use this database share."""
        ...

    def close(self) -> None: ...


# The migrations of a dialect: forward only, each in one transaction with its version.


_HERE = Path(__file__).parent / "migrations"


class Migration(Struct, frozen=True):
    """`readable_from`: programs that know this version, or a later one, can use what it makes."""

    version: int
    statements: tuple[str, ...]
    readable_from: int = 0


def newest_version(dialect: str) -> int:
    return max(_version(file) for file in (_HERE / dialect).glob("*.sql"))


def migrations_after(dialect: str, version: int) -> list[Migration]:
    """What a database of this version lacks, in order."""
    files = sorted((_HERE / dialect).glob("*.sql"))
    return [
        _migration(_version(file), file.read_text(encoding="utf-8"))
        for file in files
        if _version(file) > version
    ]


def _migration(version: int, text: str) -> Migration:
    """Where the file names no older version, programs must know this one."""
    said = re.search(r"^-- readable_from: (\d+)$", text, re.MULTILINE)
    return Migration(version, split_statements(text), int(said[1]) if said else version)


def split_statements(script: str) -> tuple[str, ...]:
    """Cut at each semicolon that ends a line and a statement; one inside quotes does neither."""
    from sqlite3 import complete_statement  # noqa: PLC0415  a command may need no database

    found: list[str] = []
    statement = ""
    for line in script.splitlines():
        statement += line + "\n"
        if complete_statement(statement):
            found.append(statement.strip())
            statement = ""
    return tuple(found)


def in_order(tables: Iterable[str]) -> tuple[str, ...]:
    """Without the number of the schema, which belongs to the database and not to what is in it."""
    named = sorted(set(tables) - {"schema_version"})
    return (*REFERRED, *(it for it in named if it not in REFERRED))


def refuse_newer(where: str, version: int, known: int, readable_from: int) -> None:
    """`readable_from`: the oldest version whose programs can use the database."""
    if version > known and readable_from > known:
        raise SchemaIsNewer(where, version, known)


def _version(file: Path) -> int:
    return int(file.name.split("_", 1)[0])


# All that a database holds, as text that either dialect can read again.


Copy = dict[str, list[str]]  # by table: each row as one line of JSON


def copied(database: Database) -> Copy:
    """Every table as it is at one moment, while others may write."""
    with database.snapshot() as read:
        return {
            table: [json.dumps(row, sort_keys=True) for row in read(f"SELECT * FROM {table}")]  # noqa: S608 - a table's own name
            for table in database.tables()
            if table not in PASSING
        }


def must_be_empty(database: Database) -> None:
    """Refused where it has tasks."""
    if database.read("SELECT 1 AS one FROM tasks LIMIT 1", {}):
        raise Refused(
            f"nothing was put into the database {database.shown}",
            why="it has tasks, which would be lost",
            fix="name a home or a database that is empty: LOCKGATE_HOME, LOCKGATE_DATABASE",
        )


def put_back(database: Database, copy: Mapping[str, Iterable[str]]) -> None:
    """Make this what the database holds, which must be empty."""
    must_be_empty(database)
    put_in(database, copy)


def put_in(database: Database, copy: Mapping[str, Iterable[str]]) -> None:
    """Make this what the database holds, whatever it has."""
    tables = database.tables()

    def work(run: Run) -> None:
        for table in reversed(tables):
            run(f"DELETE FROM {table}", {})  # noqa: S608 - a table's own name
        for table in tables:
            run(f"DELETE FROM {table}", {})  # noqa: S608 - what triggers of earlier tables put there
            for row in _rows(copy.get(table, ())):
                names = ", ".join(row)
                values = ", ".join(f":{name}" for name in row)
                run(f"INSERT INTO {table} ({names}) VALUES ({values})", row)  # noqa: S608 - as above

    database.write(work)


def _rows(lines: Iterable[str]) -> Iterator[Values]:
    for line in lines:
        row: Values = json.loads(line)
        yield row


# The event log: numbered without gaps, each event holding the hash of the one before.


class Head(Struct, frozen=True):
    """The last event: its number and its hash."""

    seq: int = 0
    hash: str = FIRST_PREV
    turn: int = 0  # the number of this write among all writes of tasks


def take_numbers(run: Run, decision: Decision) -> Head:
    """The head before this decision's events; nobody else can append until the transaction ends."""
    count = len(decision.events)
    row = run(sql.TAKE_NUMBERS, {"count": count}).fetchone()
    taken = head_of(row)
    turn = Fields("the event log", row or {}).whole("turn")
    return Head(taken.seq - count, taken.hash, turn)


def append(run: Run, decision: Decision, head: Head) -> None:
    for event in decision.events:
        stored = StoredEvent(
            seq=head.seq + 1,
            time=float(decision.task.updated),
            task=decision.task.id,
            type=type_of(event),
            prev=head.hash,
            data={**payload(event), **_who(decision)},
        )
        row = event_to_row(stored)
        run(sql.INSERT_EVENT, row)
        head = head_of(row)
    if decision.events:
        run(sql.MOVE_HEAD, {"hash": head.hash})


def _who(decision: Decision) -> dict[str, str]:
    """Every event of a human's act says whose it is."""
    return {"by": decision.by, "how": decision.how} if decision.by else {}


def head_of(row: Row | None) -> Head:
    it = Fields("the event log", row or {})
    return Head(it.whole("seq"), it.text("hash"))


def first_broken(
    read_head: Callable[[], Head], read_after: Callable[[int], Sequence[Row]]
) -> int | None:
    """Follow the chain from the first event to the head, while others may append."""
    seen = Head()
    while True:
        head = read_head()
        found = read_after(seen.seq)
        for row in found:
            if not _follows(row, seen):
                return seen.seq + 1
            seen = head_of(row)
        if found:
            continue
        if seen.seq != head.seq:
            return min(seen.seq, head.seq) + 1
        return None if seen == head else seen.seq


def _follows(row: Row, last: Head) -> bool:
    try:
        event = event_from_row(row)
    except Unavailable:
        return False
    return (
        (event.seq, event.prev) == (last.seq + 1, last.hash)
        and row["hash"] == event_hash(event)
        and row["data"] == canonical(event.data)
    )
