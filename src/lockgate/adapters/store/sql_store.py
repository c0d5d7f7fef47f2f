"""The store over one database, whatever its dialect, and the numbered migrations of each."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from lockgate.adapters.store import rows, sql
from lockgate.adapters.store.json_forms import Fields, Row
from lockgate.adapters.store.rows import Values, event_from_row, event_to_row
from lockgate.core.lifecycle.decision import Decision
from lockgate.core.model.events import payload, type_of
from lockgate.core.model.facts import FIRST_PREV, StoredEvent, canonical, event_hash
from lockgate.core.model.task import ProjectId, Session, SessionId, Status, Task, TaskId
from lockgate.errors import LockgateError, NoSuchTask, Refused, StaleTask, Unavailable
from lockgate.ports import GateRecord, Page, PendingEffect, Project, TaskFilter


class Answer(Protocol):
    """What a statement gave back; asking for it may be what sends the statement."""

    def fetchone(self) -> Row | None: ...


class Run(Protocol):
    def __call__(self, statement: str, values: Values, /) -> Answer: ...


Work = Callable[[Run], None]


class Database(Protocol):
    """One dialect. It turns its library's errors into ours, and threads may share it."""

    def read(self, statement: str, values: Values) -> Sequence[Row]: ...
    def write(self, work: Work) -> None:
        """Do it in one transaction that is on disk on return; none of it is there on an error."""
        ...

    def write_lightly(self, work: Work) -> None:
        """As write, but a power cut may undo it."""
        ...

    def close(self) -> None: ...


# The migrations of a dialect: forward only, each in one transaction with its version.


_HERE = Path(__file__).parent / "migrations"


class Migration(Struct, frozen=True):
    version: int
    statements: tuple[str, ...]


def newest_version(dialect: str) -> int:
    return max(_version(file) for file in (_HERE / dialect).glob("*.sql"))


def migrations_after(dialect: str, version: int) -> list[Migration]:
    """What a database of this version lacks, in order."""
    files = sorted((_HERE / dialect).glob("*.sql"))
    return [
        Migration(_version(file), split_statements(file.read_text(encoding="utf-8")))
        for file in files
        if _version(file) > version
    ]


def split_statements(script: str) -> tuple[str, ...]:
    """Cut at each semicolon that ends a line and a statement; one inside quotes does neither."""
    from sqlite3 import complete_statement  # noqa: PLC0415  a command may need no database

    found: list[str] = []
    statement = ""
    for line in script.splitlines():
        statement += line + "\n"
        if complete_statement(statement):
            found.append(statement.strip())
            statement = ""
    return tuple(found)


def refuse_newer(where: str, version: int, known: int) -> None:
    if version > known:
        raise Unavailable(
            f"the database {where} was not opened",
            why=f"its schema is version {version} and this lockgate knows versions up to {known}",
            fix="use the newer lockgate that wrote it, or restore a backup from before",
        )


def _version(file: Path) -> int:
    return int(file.name.split("_", 1)[0])


# The event log: numbered without gaps, each event holding the hash of the one before.


class Head(Struct, frozen=True):
    """The last event: its number and its hash."""

    seq: int = 0
    hash: str = FIRST_PREV


def take_numbers(run: Run, decision: Decision) -> Head:
    """The head before this decision's events; nobody else can append until the transaction ends."""
    count = len(decision.events)
    taken = head_of(run(sql.TAKE_NUMBERS, {"count": count}).fetchone())
    return Head(taken.seq - count, taken.hash)


def append(run: Run, decision: Decision, head: Head) -> None:
    for event in decision.events:
        stored = StoredEvent(
            seq=head.seq + 1,
            time=float(decision.task.updated),
            task=decision.task.id,
            type=type_of(event),
            prev=head.hash,
            data=payload(event),
        )
        row = event_to_row(stored)
        run(sql.INSERT_EVENT, row)
        head = head_of(row)
    if decision.events:
        run(sql.MOVE_HEAD, {"hash": head.hash})


def head_of(row: Row | None) -> Head:
    it = Fields("the event log", row or {})
    return Head(it.whole("seq"), it.text("hash"))


def first_broken(
    read_head: Callable[[], Head], read_after: Callable[[int], Sequence[Row]]
) -> int | None:
    """Follow the chain from the first event to the head, while others may append."""
    seen = Head()
    while True:
        head = read_head()
        found = read_after(seen.seq)
        for row in found:
            if not _follows(row, seen):
                return seen.seq + 1
            seen = head_of(row)
        if found:
            continue
        if seen.seq != head.seq:
            return min(seen.seq, head.seq) + 1
        return None if seen == head else seen.seq


def _follows(row: Row, last: Head) -> bool:
    try:
        event = event_from_row(row)
    except Unavailable:
        return False
    return (
        (event.seq, event.prev) == (last.seq + 1, last.hash)
        and row["hash"] == event_hash(event)
        and row["data"] == canonical(event.data)
    )


_AFTER_ANY_PREFIX = "\U0010ffff"  # greater than every character that an id has
_EVENTS_AT_ONCE = 1000


class SqlStore:
    """The `Store` of ports, on either database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def database(self) -> Database:
        """For what else is kept there."""
        return self._database

    def create(self, decision: Decision) -> None:
        task = rows.task_to_row(decision.task)

        def work(run: Run) -> None:
            head = take_numbers(run, decision)
            if run(sql.INSERT_TASK, task).fetchone() is None:
                raise _taken(decision.task.id)
            _write_session(run, decision)
            _write_body(run, decision)
            append(run, decision, head)
            _write_effects(run, decision)

        self._database.write(work)

    def commit(self, decision: Decision) -> None:
        task = rows.task_to_row(decision.task)

        def work(run: Run) -> None:
            head = take_numbers(run, decision)
            if run(sql.MOVE_TASK, task).fetchone() is None:
                raise _not_changed(run, decision.task.id)
            _write_session(run, decision)
            _write_body(run, decision)
            _write_results(run, decision)
            append(run, decision, head)
            _write_effects(run, decision)

        self._database.write(work)

    def delete(self, decision: Decision) -> None:
        task: Values = {"id": decision.task.id, "rev": decision.task.rev}

        def work(run: Run) -> None:
            head = take_numbers(run, decision)
            if run(sql.DELETE_TASK, task).fetchone() is None:
                raise _not_changed(run, decision.task.id)
            run(sql.DROP_EFFECTS, {"task": decision.task.id})
            append(run, decision, head)
            _write_effects(run, decision)

        self._database.write(work)

    def load(self, id: TaskId) -> Task:
        task = self.find(id)
        if task is None:
            raise NoSuchTask(id)
        return task

    def find(self, id: TaskId) -> Task | None:
        row = self._row(sql.TASK, {"id": id})
        return None if row is None else rows.task_from_row(row)

    def named(self, prefix: str) -> tuple[TaskId, ...]:
        values: Values = {"prefix": prefix, "end": prefix + _AFTER_ANY_PREFIX}
        found = self._rows(sql.TASKS_NAMED, values)
        ids = tuple(rows.id_of(row) for row in found)
        return ids[:1] if prefix in ids else ids

    def counts(self, project: ProjectId | None = None) -> dict[Status, int]:
        text = sql.COUNTS if project is None else sql.COUNTS_OF
        found = {row["status"]: row["n"] for row in self._rows(text, {"project": project or ""})}
        return {status: int(str(found.get(status.name, 0))) for status in Status}

    def page(self, which: TaskFilter, after: TaskId | None, limit: int) -> Page:
        last = None if after is None else self.load(after)
        begin: Values = {
            "created": float("inf") if last is None else last.created,
            "id": "" if last is None else last.id,
            "limit": limit + 1,  # one more tells whether a next page is there
        }
        found = sorted(self._newest(which, begin), key=rows.age_of, reverse=True)
        tasks = tuple(rows.task_from_row(row) for row in found[:limit])
        return Page(tasks, tasks[-1].id if tasks and len(found) > limit else None)

    def on_branch(self, project: ProjectId, branch: str) -> tuple[Task, ...]:
        found = self._rows(sql.TASKS_ON_BRANCH, {"project": project, "branch": branch})
        return tuple(rows.task_from_row(row) for row in found)

    def troubled(self) -> tuple[Task, ...]:
        return tuple(rows.task_from_row(row) for row in self._rows(sql.TASKS_TROUBLED, {}))

    def events(self, task: TaskId | None, since: int, limit: int) -> tuple[StoredEvent, ...]:
        statement = sql.EVENTS if task is None else sql.EVENTS_OF_TASK
        found = self._rows(statement, {"task": task, "since": since, "limit": limit})
        return tuple(rows.event_from_row(row) for row in found)

    def first_broken_event(self) -> int | None:
        return first_broken(
            lambda: head_of(self._row(sql.HEAD, {})),
            lambda seq: self._rows(sql.EVENTS, {"since": seq, "limit": _EVENTS_AT_ONCE}),
        )

    def pending_effects(self, task: TaskId | None, limit: int) -> tuple[PendingEffect, ...]:
        statement = sql.EFFECTS if task is None else sql.EFFECTS_OF_TASK
        found = self._rows(statement, {"task": task, "limit": limit})
        return tuple(rows.effect_from_row(row) for row in found)

    def body(self, task: TaskId) -> str | None:
        row = self._row(sql.BODY, {"task": task})
        return None if row is None else rows.body_from_row(row)

    def gate_results(self, task: TaskId, since: int, limit: int) -> tuple[GateRecord, ...]:
        found = self._rows(sql.RESULTS, {"task": task, "since": since, "limit": limit})
        return tuple(rows.record_from_row(row) for row in found)

    def effects_done(self, keys: Sequence[str]) -> None:
        in_order = sorted(set(keys))  # so that two callers never wait for each other

        def work(run: Run) -> None:
            for key in in_order:
                run(sql.EFFECT_DONE, rows.effect_key(key))

        if in_order:
            self._database.write_lightly(work)

    def session(self, id: SessionId) -> Session | None:
        row = self._row(sql.SESSION, {"id": id})
        return None if row is None else rows.session_from_row(row)

    def session_by_token(self, token_hash: str) -> Session | None:
        row = self._row(sql.SESSION_BY_TOKEN, {"token_hash": token_hash})
        return None if row is None else rows.session_from_row(row)

    def sessions(self, task: TaskId) -> tuple[Session, ...]:
        found = self._rows(sql.SESSIONS_OF_TASK, {"task": task})
        return tuple(rows.session_from_row(row) for row in found)

    def sessions_alive(self) -> tuple[Session, ...]:
        return tuple(rows.session_from_row(row) for row in self._rows(sql.SESSIONS_ALIVE, {}))

    def sessions_limited(self, now: float) -> tuple[Session, ...]:
        found = self._rows(sql.SESSIONS_LIMITED, {"now": float(now)})
        return tuple(rows.session_from_row(row) for row in found)

    def add_project(self, project: Project) -> Project:
        values = rows.project_to_row(project)

        def work(run: Run) -> None:
            run(sql.INSERT_PROJECT, values)

        known = self._row(sql.PROJECT_AT, {"common_dir": project.common_dir})
        if known is None:
            self._database.write(work)
            known = self._row(sql.PROJECT_AT, {"common_dir": project.common_dir})
        return project if known is None else rows.project_from_row(known)

    def project(self, id: ProjectId) -> Project:
        row = self._row(sql.PROJECT, {"id": id})
        if row is None:
            raise Refused(
                f"project {id!r} was not found",
                why="no project has that id",
                fix="run lockgate init in its repository",
            )
        return rows.project_from_row(row)

    def close(self) -> None:
        self._database.close()

    def _newest(self, which: TaskFilter, begin: Values) -> Sequence[Row]:
        """The newest tasks, one status after the other where some are asked for."""
        values: Values = {"project": which.project, **begin}
        if not which.statuses:
            statement = sql.PAGE if which.project is None else sql.PAGE_OF_PROJECT
            return self._rows(statement, values)
        statement = sql.PAGE_OF_STATUS if which.project is None else sql.PAGE_OF_PROJECT_AND_STATUS
        found: list[Row] = []
        for status in which.statuses:
            found += self._rows(statement, {"status": status.name, **values})
        return found

    def _row(self, statement: str, values: Values) -> Row | None:
        found = self._rows(statement, values)
        return found[0] if found else None

    def _rows(self, statement: str, values: Values) -> Sequence[Row]:
        """What is asked for by a text that cannot be stored is not there."""
        texts = [value for value in values.values() if isinstance(value, str)]
        return self._database.read(statement, values) if all(map(rows.can_be_stored, texts)) else ()


def _write_session(run: Run, decision: Decision) -> None:
    if decision.session is not None:
        run(sql.PUT_SESSION, rows.session_to_row(decision.session))


def _write_body(run: Run, decision: Decision) -> None:
    if decision.body is not None:
        run(sql.INSERT_BODY, rows.body_to_row(decision.task, decision.body))


def _write_results(run: Run, decision: Decision) -> None:
    for n, result in enumerate(decision.results):
        run(sql.INSERT_RESULT, rows.result_to_row(decision.task, n, result))


def _write_effects(run: Run, decision: Decision) -> None:
    task = decision.task
    for n, effect in enumerate(decision.effects):
        pending = PendingEffect(f"{task.id}:{task.rev}:{n}", task.id, effect)
        run(sql.INSERT_EFFECT, rows.effect_to_row(pending))


def _taken(id: TaskId) -> Refused:
    return Refused(
        f"task {id} was not created",
        why="another task has that id",
        fix="create it again; it gets another id",
    )


def _not_changed(run: Run, id: TaskId) -> LockgateError:
    if run(sql.TASK, {"id": id}).fetchone() is None:
        return NoSuchTask(id)
    return StaleTask(id)
