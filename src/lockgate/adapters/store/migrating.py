"""The numbered migrations of a dialect: forward only, each in one transaction with its version."""

import sqlite3
from pathlib import Path

from msgspec import Struct

from lockgate.errors import Unavailable

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
    found: list[str] = []
    statement = ""
    for line in script.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
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
