"""The truth: tasks, events, effects to do, sessions and projects, in SQLite or PostgreSQL."""

from lockgate.adapters.store.database import UNGUARDED, Guard
from lockgate.adapters.store.sql_store import SqlStore


def open_store(location: str, *, wait_seconds: float = 5.0, guard: Guard = UNGUARDED) -> SqlStore:
    """A `postgresql://` URL, or the path of an SQLite file, which is made where it is missing.

    `guard` is held while the schema of a database is changed that is not new.
    """
    if location.startswith(("postgresql://", "postgres://")):
        from lockgate.adapters.store.postgres import PostgresStore  # noqa: PLC0415  an extra

        return PostgresStore(location, wait_seconds=wait_seconds, guard=guard)
    from lockgate.adapters.store.sqlite import SqliteStore  # noqa: PLC0415  only one of the two

    return SqliteStore(location, wait_seconds=wait_seconds, guard=guard)
