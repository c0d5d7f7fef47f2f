"""What the tables of a home come to, for `/metrics`."""

from collections.abc import Sequence

from lockgate.adapters.store.database import Database
from lockgate.adapters.store.json_forms import Fields, Row
from lockgate.ports.figures import Sum

EVENTS = """
SELECT type, count(*) AS n, max(seq) AS seq FROM events WHERE seq > :since GROUP BY type
"""
GATES = "SELECT gate, result, count(*) AS n FROM gate_results GROUP BY gate, result"
SPENT = """
SELECT agent, role, coalesce(sum(usd), 0) AS usd, coalesce(sum(tokens), 0) AS tokens
FROM sessions GROUP BY agent, role
"""
LANDED = "SELECT coalesce(sum(changes), 0) AS n FROM landings WHERE landed = 1"


# What sessions have cost that ended since then, those of deleted tasks too.
SPENT_SINCE = """
SELECT coalesce(sum(usd), 0) AS usd FROM spending WHERE project = :project AND ended >= :since
"""
# Of the tasks that ended last, no more than people count: those that landed, and the others.
ENDED = """
SELECT coalesce(sum(CASE WHEN status = 'DONE' THEN 1 ELSE 0 END), 0) AS landed, count(*) AS n
FROM (
    SELECT status FROM tasks WHERE project = :project AND updated >= :since AND status NOT IN (
        'PENDING', 'CLARIFICATION', 'WORKING', 'AGENT_REVIEW', 'REVIEWING', 'STUCK',
        'PAUSED_FOR_INTERVENTION'
    ) ORDER BY updated DESC LIMIT 1000
) AS ended
"""


class SqlFigures:
    """The `Figures` of ports."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def events(self, since: int) -> tuple[int, tuple[Sum, ...]]:
        rows = self._rows(EVENTS, since=since)
        last = max((_fields(it).whole("seq") for it in rows), default=since)
        return last, tuple(_sum(it, "n", "type") for it in rows)

    def gates(self) -> tuple[Sum, ...]:
        return tuple(_sum(it, "n", "gate", "result") for it in self._rows(GATES))

    def spent(self) -> tuple[tuple[Sum, ...], tuple[Sum, ...]]:
        rows = self._rows(SPENT)
        usd, tokens = (
            tuple(_sum(it, name, "agent", "role") for it in rows) for name in ("usd", "tokens")
        )
        return usd, tokens

    def landed(self) -> int:
        [row] = self._rows(LANDED)
        return int(str(row["n"]))  # PostgreSQL's sum is a decimal

    def spent_since(self, project: str, since: float) -> float:
        [row] = self._rows(SPENT_SINCE, project=project, since=since)
        return _fields(row).real("usd")

    def ended(self, project: str, since: float) -> tuple[int, int]:
        """How many tasks of a project have landed since then, and how many ended otherwise."""
        [row] = self._rows(ENDED, project=project, since=since)
        landed, all = _fields(row).whole("landed"), _fields(row).whole("n")
        return landed, all - landed

    def _rows(self, statement: str, **values: str | float) -> Sequence[Row]:
        return self._database.read(statement, dict(values))


def _fields(row: Row) -> Fields:
    return Fields("a figure", row)


def _sum(row: Row, value: str, *labels: str) -> Sum:
    it = _fields(row)
    return Sum(labels={name: it.text(name) for name in labels}, value=float(str(row[value])))
