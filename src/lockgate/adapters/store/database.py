"""What differs between two databases, and the numbered migrations of each."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from lockgate.adapters.store.fields import Row
from lockgate.adapters.store.rows import Values
from lockgate.errors import Unavailable


class Answer(Protocol):
    """What a statement gave back; asking for it may be what sends the statement."""

    def fetchone(self) -> Row | None: ...


class Run(Protocol):
    def __call__(self, statement: str, values: Values, /) -> Answer: ...


Work = Callable[[Run], None]


class Database(Protocol):
    """One dialect. It turns its library's errors into ours, and threads may share it."""

    def read(self, statement: str, values: Values) -> Sequence[Row]: ...
    def write(self, work: Work) -> None:
        """Do it in one transaction that is on disk on return; none of it is there on an error."""
        ...

    def write_lightly(self, work: Work) -> None:
        """As write, but a power cut may undo it."""
        ...

    def close(self) -> None: ...


# The migrations of a dialect: forward only, each in one transaction with its version.


_HERE = Path(__file__).parent / "migrations"


class Migration(Struct, frozen=True):
    version: int
    statements: tuple[str, ...]


def newest_version(dialect: str) -> int:
    return max(_version(file) for file in (_HERE / dialect).glob("*.sql"))


def migrations_after(dialect: str, version: int) -> list[Migration]:
    """What a database of this version lacks, in order."""
    files = sorted((_HERE / dialect).glob("*.sql"))
    return [
        Migration(_version(file), split_statements(file.read_text(encoding="utf-8")))
        for file in files
        if _version(file) > version
    ]


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


def refuse_newer(where: str, version: int, known: int) -> None:
    if version > known:
        raise Unavailable(
            f"the database {where} was not opened",
            why=f"its schema is version {version} and this lockgate knows versions up to {known}",
            fix="use the newer lockgate that wrote it, or restore a backup from before",
        )


def _version(file: Path) -> int:
    return int(file.name.split("_", 1)[0])
