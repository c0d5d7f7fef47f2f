"""The hosts of a fleet, in the same database as the tasks."""

from collections.abc import Sequence

from lockgate.adapters.store.database import Database, Run
from lockgate.adapters.store.json_forms import Fields, Row
from lockgate.adapters.store.rows import Values, storable
from lockgate.core.hosts import Host, HostState
from lockgate.core.model.facts import canonical
from lockgate.core.model.task import ProjectId, TaskId

PUT = """
INSERT INTO hosts (
    name, labels, agents, roles, slots, judges, boot, version, ssh, api, state, seen, ahead
) VALUES (
    :name, :labels, :agents, :roles, :slots, :judges, :boot, :version, :ssh, :api, :state, :seen,
    :ahead
) ON CONFLICT (name) DO UPDATE SET
    labels = :labels, agents = :agents, roles = :roles, slots = :slots, judges = :judges,
    boot = :boot, version = :version, ssh = :ssh, api = :api, state = :state, seen = :seen,
    ahead = :ahead
WHERE hosts.boot = :was_boot AND hosts.state = :was_state AND hosts.seen = :was_seen
RETURNING name
"""
FIND = "SELECT * FROM hosts WHERE name = :name"
ALL = "SELECT * FROM hosts ORDER BY name"
SEEN = """
UPDATE hosts SET seen = :seen, ahead = :ahead, refused = refused + :refused
WHERE name = :name AND boot = :boot RETURNING state
"""
MARK = "UPDATE hosts SET state = :state, why = :why WHERE name = :name RETURNING name"
FORGET = "DELETE FROM hosts WHERE name = :name RETURNING name"
EQUIP = "UPDATE hosts SET agents = :agents WHERE name = :name RETURNING name"
# `host <> ''` names the index of the tasks that have one.
# Agents that live there, and tasks there whose agents have yet to begin.
AT_WORK = """
SELECT (SELECT count(*) FROM sessions WHERE host = :name AND ended IS NULL) + (
    SELECT count(*) FROM tasks
    WHERE host = :name AND host <> '' AND status = 'WORKING' AND dead = 0 AND not_before <= :now
    AND NOT EXISTS (
        SELECT 1 FROM sessions WHERE task = tasks.id AND ended IS NULL
    )
) AS n
"""
TASKS_AT = """
SELECT id, project FROM tasks
WHERE host = :name AND host <> '' AND status NOT IN ('DONE', 'CANCELLED') ORDER BY id
"""


class SqlHosts:
    """The `Hosts` of ports."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, host: Host, known: Host | None = None) -> bool:
        was: Values = {"was_boot": None, "was_state": "", "was_seen": 0.0}
        if known is not None:
            was = {"was_boot": known.boot, "was_state": known.state.value, "was_seen": known.seen}
        return self._changed(PUT, {**_row(host), **was})

    def find(self, name: str) -> Host | None:
        found = self._database.read(FIND, {"name": name})
        return _host(found[0]) if found else None

    def all(self) -> tuple[Host, ...]:
        return tuple(map(_host, self._database.read(ALL, {})))

    def seen(
        self, host: Host, now: float, refused: int = 0, ahead: float = 0.0
    ) -> HostState | None:
        """Lightly: a power cut may undo it, and it is said again soon."""
        got = list[Row | None]()
        row: Values = {"name": host.name, "boot": host.boot, "seen": now}
        row = {**row, "refused": refused, "ahead": ahead}

        def work(run: Run) -> None:
            got[:] = [run(SEEN, row).fetchone()]

        self._database.write_lightly(work)
        return None if got[0] is None else Fields("a host", got[0]).choice("state", HostState)

    def mark(self, name: str, state: HostState, why: str = "") -> bool:
        return self._changed(MARK, storable({"name": name, "state": state.value, "why": why}))

    def forget(self, name: str) -> bool:
        return self._changed(FORGET, {"name": name})

    def tasks_at(self, name: str) -> tuple[tuple[TaskId, ProjectId], ...]:
        found = self._database.read(TASKS_AT, {"name": name})
        return tuple((TaskId(str(it["id"])), ProjectId(str(it["project"]))) for it in found)

    def equip(self, name: str, agents: Sequence[str]) -> bool:
        return self._changed(EQUIP, {"name": name, "agents": canonical(tuple(agents))})

    def at_work(self, name: str, now: float) -> int:
        found = self._database.read(AT_WORK, {"name": name, "now": float(now)})
        return Fields("a host", found[0]).whole("n")

    def _changed(self, statement: str, values: Values) -> bool:
        got = list[Row | None]()

        def work(run: Run) -> None:
            got[:] = [run(statement, values).fetchone()]

        self._database.write(work)
        return got[0] is not None


def _row(host: Host) -> Values:
    listed = {it: canonical(getattr(host, it)) for it in ("labels", "agents", "roles")}
    texts = {it: getattr(host, it) for it in ("name", "boot", "version", "ssh", "api")}
    numbers: Values = {"slots": host.slots, "judges": host.judges}
    times: Values = {"seen": float(host.seen), "ahead": float(host.ahead)}
    return storable({**listed, **texts, **numbers, **times, "state": host.state.value})


def _host(row: Row) -> Host:
    it = Fields(f"host {row.get('name')!r}", row)
    return Host(
        labels=tuple(it.texts("labels")),
        agents=tuple(it.texts("agents")),
        roles=tuple(it.texts("roles")),
        slots=it.whole("slots"),
        judges=it.whole("judges"),
        refused=it.whole("refused"),
        state=it.choice("state", HostState),
        seen=it.real("seen"),
        ahead=it.real("ahead"),
        **{name: it.text(name) for name in ("name", "boot", "version", "ssh", "api", "why")},
    )
