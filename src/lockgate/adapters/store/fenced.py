"""A database as the holder of a claim uses it: nothing is written once the claim is another's."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

from lockgate.adapters.store.database import Database, Read, Run, Work
from lockgate.adapters.store.json_forms import Row
from lockgate.adapters.store.rows import Values
from lockgate.errors import Fenced

CLAIM = "SELECT 1 AS one FROM lanes WHERE lane = :lane AND token = :token"


class FencedDatabase:
    """The `Database` of one claim; others may use what is under it unfenced.

    Lanes are locked first, before the event log and tasks: nobody waits for each other in a ring.
    """

    def __init__(self, database: Database, lane: str, token: str) -> None:
        self._database, self._lane = database, lane
        self._claim: Values = {"lane": lane, "token": token}
        self.shown, self.known, self.holding = database.shown, database.known, database.holding

    def read(self, statement: str, values: Values) -> Sequence[Row]:
        return self._database.read(statement, values)

    def write(self, work: Work) -> None:
        """Fenced where the claim is another's; who claims waits until this is written."""
        self._database.write(self._fenced(work))

    def write_lightly(self, work: Work) -> None:
        self._database.write_lightly(self._fenced(work))

    def snapshot(self) -> AbstractContextManager[Read]:
        return self._database.snapshot()

    def tables(self) -> tuple[str, ...]:
        return self._database.tables()

    def still_there(self) -> None:
        """Fenced, so that its holder hears of it before it writes again."""
        self._database.still_there()
        if not self._database.read(CLAIM, self._claim):
            raise Fenced(self._lane)

    def claim(self, name: str) -> str:
        return self._database.claim(name)

    def now(self) -> float:
        return self._database.now()

    def close(self) -> None:
        """And with it what is under it."""
        self._database.close()

    def _fenced(self, work: Work) -> Work:
        """In the same transaction: between the look and the write nobody can claim the lane."""

        def fenced(run: Run) -> None:
            if run(CLAIM + self.holding, self._claim).fetchone() is None:
                raise Fenced(self._lane)
            work(run)

        return fenced
