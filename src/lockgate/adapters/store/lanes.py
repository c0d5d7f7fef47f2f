"""Lanes in the database: one row a job, and a claim that only its last holder can end."""

from collections.abc import Mapping
from contextlib import suppress

from lockgate.adapters.store.database import Database, Run
from lockgate.adapters.store.job_forms import UnknownForm, job_from_json, job_to_json
from lockgate.adapters.store.json_forms import Fields, Row
from lockgate.adapters.store.rows import Values, storable
from lockgate.core.fleet import LaneRow
from lockgate.core.jobs import Job, lane_of
from lockgate.errors import Fenced, LockgateError

# A lane that rests was answered: it takes the next job.
ASK = """
INSERT INTO lanes (lane, job, class, asked) VALUES (:lane, :job, :class, :asked)
ON CONFLICT (lane) DO UPDATE SET
    job = :job, class = :class, asked = :asked,
    token = '', host = '', since = 0, until = 0, why = ''
WHERE lanes.until > 0 RETURNING lane
"""
CLAIM = """
UPDATE lanes SET epoch = epoch + 1, token = :token, host = :host, since = :since, why = ''
WHERE lane = :lane AND until = 0 RETURNING *
"""
DONE = "DELETE FROM lanes WHERE lane = :lane AND token = :token RETURNING lane"
REST = """
UPDATE lanes SET until = :until, why = :why, token = ''
WHERE lane = :lane AND token = :token RETURNING lane
"""
CALL_OFF = "DELETE FROM lanes WHERE lane = :lane RETURNING lane"
NOTE = "UPDATE lanes SET why = :why WHERE lane = :lane AND token = '' RETURNING lane"
ALL = "SELECT * FROM lanes ORDER BY asked, lane"
ONE = "SELECT * FROM lanes WHERE lane = :lane"
CLASSES = "SELECT DISTINCT class FROM lanes"
UNCLAIMED = """
SELECT * FROM lanes WHERE token = '' AND until = 0 AND asked < :before ORDER BY asked, lane
"""


class SqlLanes:
    """The `Lanes` of ports. Each method that writes is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ask(self, job: Job, needs: str, now: float) -> bool:
        row: Values = {"lane": lane_of(job), "job": job_to_json(job), "class": needs, "asked": now}
        return self._wrote(ASK, storable(row)) is not None

    def claim(self, lane: str, host: str, token: str, now: float) -> LaneRow | None:
        """UnknownForm, and the lane says so, where this program cannot read the job."""
        row: Values = {"lane": lane, "host": host, "token": token, "since": now}
        claimed = list[LaneRow]()

        def work(run: Run) -> None:
            found = run(CLAIM, row).fetchone()
            claimed[:] = [] if found is None else [_lane(found)]

        try:
            self._database.write(work)
        except UnknownForm as unknown:
            self.note(lane, f"host {host} cannot do it: {unknown.why}")
            raise
        return claimed[0] if claimed else None

    def done(self, lane: str, token: str) -> None:
        if self._wrote(DONE, {"lane": lane, "token": token}) is None:
            raise Fenced(lane)

    def rest(self, lane: str, token: str, until: float, why: str) -> None:
        row: Values = {"lane": lane, "token": token, "until": until, "why": why}
        if self._wrote(REST, storable(row)) is None:
            raise Fenced(lane)

    def call_off(self, lane: str) -> None:
        self._wrote(CALL_OFF, {"lane": lane})

    def note(self, lane: str, why: str) -> None:
        """Say why nobody has claimed it."""
        self._wrote(NOTE, storable({"lane": lane, "why": why}))

    def rows(self) -> tuple[LaneRow, ...]:
        return self._read(ALL, {})

    def find(self, lane: str) -> LaneRow | None:
        return next(iter(self._read(ONE, {"lane": lane})), None)

    def classes(self) -> frozenset[str]:
        return frozenset(str(it["class"]) for it in self._database.read(CLASSES, {}))

    def unclaimed(self, before: float) -> tuple[LaneRow, ...]:
        return self._read(UNCLAIMED, {"before": before})

    def set_aside(self) -> Mapping[str, str]:
        """The lanes whose jobs cannot be read here, each with the reason; a host's word first."""
        found = [(row, _trouble(row)) for row in self._database.read(ALL, {})]
        return {str(row["lane"]): str(row["why"]) or why for row, why in found if why}

    def _read(self, statement: str, values: Values) -> tuple[LaneRow, ...]:
        """Without those that cannot be read: one bad row must not keep all others from going on."""
        found = self._database.read(statement, values)
        return tuple(it for it in map(_known, found) if it)

    def _wrote(self, statement: str, values: Values) -> Row | None:
        got = list[Row | None]()

        def work(run: Run) -> None:
            got[:] = [run(statement, values).fetchone()]

        self._database.write(work)
        return got[0]


def _lane(row: Row) -> LaneRow:
    it = Fields(f"lane {row.get('lane')!r}", row)
    return LaneRow(
        lane=it.text("lane"),
        job=job_from_json(it.text("lane"), it),
        needs=it.text("class"),
        epoch=it.whole("epoch"),
        token=it.text("token"),
        host=it.text("host"),
        asked=it.real("asked"),
        since=it.real("since"),
        until=it.real("until"),
        why=it.text("why"),
    )


def _known(row: Row) -> LaneRow | None:
    with suppress(LockgateError):
        return _lane(row)
    return None


def _trouble(row: Row) -> str:
    try:
        _lane(row)
    except LockgateError as error:
        return error.why
    return ""
