"""Pull requests of tasks, in the same database as the tasks."""

import json

import msgspec

from lockgate.adapters.store.database import Database, Run
from lockgate.adapters.store.json_forms import Fields, Row, damaged
from lockgate.adapters.store.rows import Values, storable
from lockgate.core.forge.model import Pull
from lockgate.core.forge.summary import shown_of
from lockgate.core.model.facts import canonical
from lockgate.core.model.landings import PullShown
from lockgate.core.model.task import ProjectId, TaskId

PUT = """
INSERT INTO pulls (task, project, number, pushed, intent, delivered, etags, facts)
VALUES (:task, :project, :number, :pushed, :intent, :delivered, :etags, :facts)
ON CONFLICT (task) DO UPDATE SET
    number = excluded.number, pushed = excluded.pushed, intent = excluded.intent,
    delivered = excluded.delivered, etags = excluded.etags, facts = excluded.facts
"""
OF_TASK = "SELECT * FROM pulls WHERE task = :task"
OF_PROJECT = "SELECT * FROM pulls WHERE project = :project ORDER BY task"
LIVE = """
SELECT * FROM pulls WHERE number > 0 AND task IN (
    SELECT id FROM tasks WHERE status NOT IN ('done', 'cancelled')
)
"""
PROJECTS = "SELECT DISTINCT project FROM pulls ORDER BY project"
DROP = "DELETE FROM pulls WHERE task = :task"
COLUMNS = ("task", "project", "number", "pushed", "intent", "etags")


class SqlPulls:
    """The `Pulls` of ports. Each method that writes is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, task: TaskId) -> Pull | None:
        found = self._database.read(OF_TASK, {"task": task})
        return _pull(found[0]) if found else None

    def all(self, project: ProjectId) -> tuple[Pull, ...]:
        return tuple(_pull(row) for row in self._database.read(OF_PROJECT, {"project": project}))

    def shown(self) -> dict[TaskId, PullShown]:
        """As lists show them, of tasks that have not ended."""
        found = map(_pull, self._database.read(LIVE, {}))
        return {it.task: shown_of(it) for it in found}

    def projects(self) -> tuple[ProjectId, ...]:
        found = self._database.read(PROJECTS, {})
        return tuple(ProjectId(str(row["project"])) for row in found)

    def put(self, pull: Pull) -> None:
        self._write(PUT, _row(pull))

    def drop(self, task: TaskId) -> None:
        self._write(DROP, {"task": task})

    def _write(self, statement: str, values: Values) -> None:
        def work(run: Run) -> None:
            run(statement, storable(values))

        self._database.write(work)


def _row(pull: Pull) -> Values:
    facts = msgspec.to_builtins(pull)
    row: Values = {it: facts.pop(it) for it in COLUMNS}
    row["delivered"] = canonical(facts.pop("delivered"))
    row["facts"] = canonical(facts)
    return row


msgspec.json.Decoder(Pull)  # by one thread: see `config.schema`


def _pull(row: Row) -> Pull:
    it = Fields(f"the pull request of task {row.get('task')!r}", row)
    try:
        facts = json.loads(it.text("facts"))
        own = {name: it.text(name) for name in COLUMNS if name != "number"}
        told = {"number": it.whole("number"), "delivered": json.loads(it.text("delivered"))}
        return msgspec.convert(facts | own | told, Pull)
    except (ValueError, TypeError, msgspec.ValidationError) as error:
        raise damaged(it.where, str(error)) from error
