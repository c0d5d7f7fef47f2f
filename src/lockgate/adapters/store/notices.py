"""Who was told what, and what sessions have cost, in the same database as the tasks."""

from collections.abc import Sequence

from msgspec import to_builtins

from lockgate.adapters.store.database import Database, Run
from lockgate.adapters.store.json_forms import Fields, Row
from lockgate.adapters.store.rows import Values, storable
from lockgate.core.notices.plan import Entry

ENTRIES = "SELECT * FROM notices ORDER BY key, target, nth"
PUT_ENTRY = """
INSERT INTO notices (key, target, nth, noticed, due, tries, sent, gone, failed)
VALUES (:key, :target, :nth, :noticed, :due, :tries, :sent, :gone, :failed)
ON CONFLICT (key, target, nth) DO UPDATE SET
    noticed = :noticed, due = :due, tries = :tries, sent = :sent, gone = :gone, failed = :failed
"""
DROP_ENTRY = "DELETE FROM notices WHERE key = :key AND target = :target AND nth = :nth"
SPENT = """
SELECT coalesce(sum(usd), 0) AS usd FROM spending WHERE project = :project AND ended >= :since
"""


class SqlNotices:
    """The `NoticeLog` of ports. Each method that writes is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def entries(self) -> tuple[Entry, ...]:
        return tuple(_entry(row) for row in self._database.read(ENTRIES, {}))

    def write(self, put: Sequence[Entry], drop: Sequence[Entry] = ()) -> None:
        def work(run: Run) -> None:
            for it in drop:
                run(DROP_ENTRY, storable({"key": it.key, "target": it.target, "nth": it.nth}))
            for it in put:
                run(PUT_ENTRY, _row(it))

        if put or drop:
            self._database.write(work)

    def spent(self, project: str, since: float) -> float:
        [row] = self._database.read(SPENT, {"project": project, "since": since})
        return Fields("spending", row).real("usd")


def _row(entry: Entry) -> Values:
    values: Values = to_builtins(entry)
    return storable({**values, "failed": int(entry.failed)})


def _entry(row: Row) -> Entry:
    it = Fields("a notice", row)
    return Entry(
        key=it.text("key"),
        target=it.text("target"),
        nth=it.whole("nth"),
        noticed=it.real("noticed"),
        due=it.real("due"),
        tries=it.whole("tries"),
        sent=it.real("sent"),
        gone=it.real("gone"),
        failed=bool(it.whole("failed")),
    )
