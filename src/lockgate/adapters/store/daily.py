"""The statistics of days in the database, with the number of the event that they are made up to."""

from collections.abc import Sequence

from lockgate.adapters.store.database import Database, Run
from lockgate.adapters.store.json_forms import Fields
from lockgate.adapters.store.rows import storable
from lockgate.core.model.statistics import Count

HEAD = "SELECT seq FROM stats_head"
MOVE_HEAD = "UPDATE stats_head SET seq = :seq WHERE seq = :before RETURNING seq"
ADD = """
INSERT INTO stats_daily (day, project, metric, label, bucket, n, amount)
VALUES (:day, :project, :metric, :label, :bucket, :n, :amount)
ON CONFLICT (day, project, metric, label, bucket)
DO UPDATE SET n = stats_daily.n + :n, amount = stats_daily.amount + :amount
"""
SINCE = "SELECT * FROM stats_daily WHERE day >= :day"
SINCE_OF = "SELECT * FROM stats_daily WHERE day >= :day AND project = :project"


class SqlDaily:
    """The `DailyCounts` of ports."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def head(self) -> int:
        [row] = self._database.read(HEAD, {})
        return Fields("the statistics", row).whole("seq")

    def add(self, before: int, seq: int, counts: Sequence[Count]) -> bool:
        ours: list[bool] = []

        def work(run: Run) -> None:
            moved = run(MOVE_HEAD, {"before": before, "seq": seq}).fetchone() is not None
            ours.append(moved)
            for it in counts if moved else ():
                values = {name: getattr(it, name) for name in it.__struct_fields__}
                run(ADD, storable({**values, "amount": float(it.amount)}))

        self._database.write_lightly(work)
        return ours[-1]

    def since(self, day: int, project: str) -> tuple[Count, ...]:
        statement = SINCE_OF if project else SINCE
        found = self._database.read(statement, {"day": day, "project": project})
        read = (Fields("the statistics", row) for row in found)
        return tuple(
            Count(
                it.whole("day"),
                it.text("project"),
                it.text("metric"),
                it.text("label"),
                it.whole("bucket"),
                it.whole("n"),
                it.real("amount"),
            )
            for it in read
        )

    def forget(self) -> None:
        def work(run: Run) -> None:
            run("DELETE FROM stats_daily", {})
            run("UPDATE stats_head SET seq = 0", {})

        self._database.write(work)
