"""The last checkpoint of each task, in the same database as the tasks."""

from collections.abc import Mapping
from typing import cast

from lockgate.adapters.store.database import Database, Run
from lockgate.adapters.store.json_forms import Fields, damaged
from lockgate.adapters.store.rows import Values, storable
from lockgate.core.model.task import TaskId
from lockgate.core.text.checkpoints import checkpoint_text

# It goes with its task.
PUT = """
INSERT INTO checkpoints (task, n, facts)
SELECT :task, :n, :facts WHERE EXISTS (SELECT 1 FROM tasks WHERE id = :task)
ON CONFLICT (task) DO UPDATE SET n = excluded.n, facts = excluded.facts
WHERE checkpoints.n <= excluded.n
"""
OF_TASK = "SELECT facts FROM checkpoints WHERE task = :task"


class SqlCheckpoints:
    """The `LastCheckpoints` of ports."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, task: TaskId) -> Mapping[str, object] | None:
        found = self._database.read(OF_TASK, {"task": task})
        if not found:
            return None
        it = Fields(f"the last checkpoint of task {task}", found[0])
        facts = it.json("facts")
        if not isinstance(facts, dict):
            raise damaged(it.where, "facts is not an object")
        return cast("dict[str, object]", facts)  # the keys of a JSON object are texts

    def put(self, task: TaskId, number: int, facts: Mapping[str, object]) -> None:
        """Lightly: what a power cut undoes is in the file of the host."""
        row: Values = {"task": task, "n": number, "facts": checkpoint_text(number, facts)}

        def work(run: Run) -> None:
            run(PUT, storable(row))

        self._database.write_lightly(work)
