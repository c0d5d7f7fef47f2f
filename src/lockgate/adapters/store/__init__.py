"""The truth: tasks, events, effects to do, sessions and projects, in SQLite or PostgreSQL."""

from lockgate.adapters.store.database import UNGUARDED, Guard
from lockgate.adapters.store.rows import storable
from lockgate.adapters.store.sql import HAS_HOSTS, KNOWN_BODY
from lockgate.adapters.store.sql_store import SqlStore
from lockgate.core.model.task import Task, TaskId
from lockgate.core.text.task_file import text_of_hosts
from lockgate.ports import Project


def open_store(location: str, *, wait_seconds: float = 5.0, guard: Guard = UNGUARDED) -> SqlStore:
    """A `postgresql://` URL, or the path of an SQLite file, which is made where it is missing.

    `guard` is held while the schema of a database is changed that is not new.
    """
    if location.startswith(("postgresql://", "postgres://")):
        from lockgate.adapters.store.postgres import PostgresStore  # noqa: PLC0415  an extra

        return PostgresStore(location, wait_seconds=wait_seconds, guard=guard)
    from lockgate.adapters.store.sqlite import SqliteStore  # noqa: PLC0415  only one of the two

    return SqliteStore(location, wait_seconds=wait_seconds, guard=guard)


def shared_text(store: SqlStore, id: TaskId, here: str | None) -> tuple[Task, str] | None:
    """A task and its text where several hosts share them; None where this one works alone."""
    if not store.database.read(HAS_HOSTS, {}):
        return None
    known = store.database.read(KNOWN_BODY, storable({"task": id, "text": here or ""}))
    task, body = store.find(id), text_of_hosts(store.body(id), here, is_copy=bool(known))
    return None if task is None or body is None else (task, body)


def hosts_have_agents(store: SqlStore, project: Project) -> bool:
    """Whether its tasks go to hosts of a fleet; without a hub nothing is read."""
    if not project.url:
        return False
    from lockgate.adapters.store.hosts import SqlHosts  # noqa: PLC0415  a fleet's alone
    from lockgate.core import fleet  # noqa: PLC0415

    hosts = SqlHosts(store.database).all()
    return fleet.hosts_have_agents(project.url, hosts, store.database.now())
