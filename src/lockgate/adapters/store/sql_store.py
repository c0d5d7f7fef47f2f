"""The store over one database, whatever its dialect."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from lockgate.adapters.store import rows, sql
from lockgate.adapters.store.database import (
    Database,
    Head,
    Run,
    append,
    first_broken,
    head_of,
    take_numbers,
)
from lockgate.adapters.store.json_forms import Fields, Row
from lockgate.adapters.store.rows import Values
from lockgate.core.lifecycle.decision import Decision
from lockgate.core.model.events import StatusChanged
from lockgate.core.model.facts import StoredEvent
from lockgate.core.model.people import Draft, Person
from lockgate.core.model.task import ProjectId, Session, SessionId, Status, Task, TaskId
from lockgate.core.model.troubles import DependencyDropped
from lockgate.errors import (
    LockgateError,
    NoFreeSlot,
    NoSuchTask,
    Refused,
    Restored,
    SchemaIsNewer,
    StaleTask,
)
from lockgate.ports import (
    Cursor,
    GateRecord,
    Mark,
    Page,
    PendingEffect,
    Project,
    Recent,
    TaskFilter,
    Waits,
)

_AFTER_ANY_PREFIX = "\U0010ffff"  # greater than every character that an id has
_EVENTS_AT_ONCE = 1000


class SqlStore:
    """The `Store` of ports, on either database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.told: Callable[[TaskId | None], None] = lambda _: None  # events, or effects done
        self.placed: Callable[[Project], Project] = lambda it: it  # where this host has its mirror
        self._turn, self._last = 0, Head()  # the last turn and event that were seen

    @property
    def database(self) -> Database:
        """For what else is kept there."""
        return self._database

    def use(self, database: Database) -> None:
        """The same one, from now on as the holder of a claim has it, or no longer so."""
        self._database = database

    def create(self, *decisions: Decision) -> None:
        def work(run: Run) -> None:
            for decision in decisions:
                head = take_numbers(run, decision)
                if run(sql.INSERT_TASK, rows.task_to_row(decision.task)).fetchone() is None:
                    raise _taken(decision.task.id)
                _write_session(run, decision)
                _write_body(run, decision)
                _write_dependencies(run, decision)
                append(run, decision, head)
                _write_effects(run, decision, head.turn)

        self._database.write(work)
        self.told(None)

    def commit(self, decision: Decision) -> None:
        task = rows.task_to_row(decision.task)

        def work(run: Run) -> None:
            head = take_numbers(run, decision)
            if run(sql.MOVE_TASK, task).fetchone() is None:
                raise _not_changed(run, decision.task.id)
            _must_have_slot(run, decision)
            _write_session(run, decision)
            _write_body(run, decision)
            _write_results(run, decision)
            if any(isinstance(it, DependencyDropped) for it in decision.events):
                _write_dependencies(run, decision)
            elif any(isinstance(it, StatusChanged) for it in decision.events):
                run(sql.COUNT_NEEDS_ON, {"id": decision.task.id})
            append(run, decision, head)
            _write_effects(run, decision, head.turn)

        self._database.write(work)
        self.told(None)

    def delete(self, decision: Decision) -> None:
        task: Values = {"id": decision.task.id, "rev": decision.task.rev}

        def work(run: Run) -> None:
            head = take_numbers(run, decision)
            if run(sql.DELETE_TASK, task).fetchone() is None:
                raise _not_changed(run, decision.task.id)
            run(sql.DROP_EFFECTS, {"task": decision.task.id})
            run(sql.COUNT_NEEDS_ON, {"id": decision.task.id})
            append(run, decision, head)
            _write_effects(run, decision, head.turn)

        self._database.write(work)
        self.told(None)

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
        ids = tuple(rows.id_of(row) for row in self._rows(sql.TASKS_NAMED, values))
        return ids[:1] if prefix in ids else ids

    def counts(self, projects: Iterable[ProjectId] = ()) -> dict[Status, int]:
        wanted = list(projects)
        read = [self._rows(sql.COUNTS_OF, {"project": it}) for it in wanted]
        found = Counter[str]()
        for row in chain(*read) if wanted else self._rows(sql.COUNTS, {}):
            found[str(row["status"])] += int(str(row["n"]))
        return {status: found[status.name] for status in Status}

    def page(self, which: TaskFilter, after: TaskId | None, limit: int) -> Page:
        last = None if after is None else self.load(after)
        begin: Values = {
            "created": float("inf") if last is None else last.created,
            "id": "" if last is None else last.id,
            "limit": limit + 1,  # one more tells whether a next page is there
        }
        found = self._walk("created", which, begin, which.statuses)
        tasks = tuple(rows.task_from_row(row) for row in found[:limit])
        return Page(tasks, tasks[-1].id if tasks and len(found) > limit else None)

    def recent(self, which: TaskFilter, after: Cursor | None, limit: int) -> Recent:
        found: list[Task] = []
        more: Cursor | None = None
        for ended in (False, True):
            if (after and after.ended and not ended) or not _wants(which, ended=ended):
                continue
            here = after if after and after.ended is ended else None
            begin: Values = {
                "updated": here.updated if here else float("inf"),
                "id": here.id if here else "",
                "limit": limit - len(found) + 1,
            }
            section = sql.ENDED if ended else sql.LIVE
            seen = self._walk("updated", which, begin, (), section)
            found += map(rows.task_from_row, seen[: limit - len(found)])
            if len(seen) == begin["limit"]:
                more = _cursor(found[-1]) if found else None
                break
        return Recent(tuple(found), more)

    def needs(self, projects: Iterable[ProjectId] = ()) -> tuple[Task, ...]:
        wanted = list(projects)
        read = [self._rows(sql.TASKS_NEEDING_OF, {"project": it}) for it in wanted]
        found = chain(*read) if wanted else self._rows(sql.TASKS_NEEDING, {})
        return tuple(map(rows.task_from_row, found))

    def waits(self) -> tuple[Waits, ...]:
        return tuple(map(rows.waits_from_row, self._rows(sql.TASKS_DEPENDING, {})))

    def statuses(self, ids: Iterable[TaskId]) -> dict[TaskId, Status]:
        found = (self._row(sql.STATUS_OF, {"id": it}) for it in dict.fromkeys(ids))
        return {rows.id_of(row): rows.status_of(row) for row in found if row}

    def on_branch(self, project: ProjectId, branch: str) -> tuple[Task, ...]:
        found = self._rows(sql.TASKS_ON_BRANCH, {"project": project, "branch": branch})
        return tuple(rows.task_from_row(row) for row in found)

    def troubled(self) -> tuple[Task, ...]:
        return tuple(rows.task_from_row(row) for row in self._rows(sql.TASKS_TROUBLED, {}))

    def pulse(self) -> int:
        self._database.still_there()
        [row] = self._database.read(sql.PULSE, {})
        it = Fields("the event log", row)
        turn, readable_from = it.whole("turn"), it.whole("readable_from")
        if readable_from > self._database.known:
            raise SchemaIsNewer(self._database.shown, readable_from, self._database.known)
        if turn < self._turn or (turn > self._turn and not self._has(self._last)):
            raise Restored(self._database.shown)
        self._turn, self._last = turn, head_of(row)
        return turn

    def _has(self, event: Head) -> bool:
        """Its number alone proves nothing: a copy may have gone on from before it."""
        asked: Values = {"seq": event.seq, "hash": event.hash}
        return event.seq == 0 or bool(self._rows(sql.IS_THERE, asked))

    def claim(self, name: str) -> str:
        return self._database.claim(name)

    def projects_ready(self) -> tuple[ProjectId, ...]:
        found = self._rows(sql.PROJECTS_READY, {})
        return tuple(ProjectId(str(row["id"])) for row in found)

    def ready(
        self, project: ProjectId, limit: int, without: Sequence[str] = ()
    ) -> tuple[Task, ...]:
        barred = "".join(f"|{agent}|" for agent in without)
        values: Values = {"project": project, "limit": limit, "without": barred}
        return tuple(rows.task_from_row(row) for row in self._rows(sql.READY, values))

    def at_work(self, project: ProjectId, now: float) -> int:
        return self._count(sql.AT_WORK, {"project": project, "now": float(now)})

    def in_vain(self) -> tuple[Task, ...]:
        return tuple(rows.task_from_row(row) for row in self._rows(sql.IN_VAIN, {}))

    def to_land(self) -> dict[ProjectId, object]:
        return {
            ProjectId(str(row["project"])): (row["n"], int(str(row["revs"])), row["updated"])
            for row in self._rows(sql.TO_LAND, {})
        }

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

    def effects_after(self, mark: Mark, limit: int) -> tuple[tuple[PendingEffect, ...], Mark]:
        values: Values = {
            "turn": mark.turn,
            "task": mark.task,
            "rev": mark.rev,
            "n": mark.n,
            "limit": limit,
        }
        found = self._rows(sql.EFFECTS_AFTER, values)
        return tuple(map(rows.effect_from_row, found)), rows.mark_of(found[-1]) if found else mark

    def body(self, task: TaskId) -> str | None:
        row = self._row(sql.BODY, {"task": task})
        return None if row is None else rows.body_from_row(row)

    def forget_texts(self, task: TaskId) -> None:
        self._wrote(sql.FORGET_BODIES, {"task": task})

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
        for id in {key.partition(":")[0] for key in in_order}:
            self.told(TaskId(id))

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

    def ids_alive(self) -> tuple[SessionId, ...]:
        return tuple(SessionId(str(row["id"])) for row in self._rows(sql.IDS_ALIVE, {}))

    def sessions_alive_in(self, project: ProjectId, besides: TaskId) -> int:
        return self._count(sql.SESSIONS_ALIVE_IN, {"project": project, "task": besides})

    def sessions_limited(self, now: float) -> tuple[Session, ...]:
        found = self._rows(sql.SESSIONS_LIMITED, {"now": float(now)})
        return tuple(rows.session_from_row(row) for row in found)

    def people(self) -> tuple[Person, ...]:
        return tuple(map(rows.person_from_row, self._rows(sql.PEOPLE, {})))

    def put_person(self, person: Person) -> None:
        self._wrote(sql.PUT_PERSON, rows.person_to_row(person))

    def remove_person(self, name: str) -> bool:
        return self._wrote(sql.REMOVE_PERSON, rows.storable({"name": name})) is not None

    def drafts(self, task: TaskId, person: str) -> tuple[Draft, ...]:
        found = self._rows(sql.DRAFTS, {"task": task, "person": person})
        return tuple(map(rows.draft_from_row, found))

    def put_draft(self, draft: Draft) -> None:
        self._wrote(sql.PUT_DRAFT, rows.draft_to_row(draft))

    def drop_draft(self, id: str) -> None:
        self._wrote(sql.DROP_DRAFT, {"id": id})

    def seen(self, person: str) -> dict[str, float]:
        found = self._rows(sql.SEEN, {"person": person})
        return {str(row["need"]): float(str(row["until"])) for row in found}

    def mark_seen(self, person: str, need: str, until: float | None) -> None:
        statement = sql.UNMARK_SEEN if until is None else sql.MARK_SEEN
        values = rows.storable({"person": person, "need": need, "until": until})
        self._wrote(statement, values)

    def add_project(self, project: Project) -> Project:
        if project.url:  # it was read from here, and its paths are this host's alone
            return project
        values = rows.project_to_row(project)

        def work(run: Run) -> None:
            run(sql.INSERT_PROJECT, values)

        known = self._row(sql.PROJECT_AT, {"common_dir": project.common_dir})
        if known is None:
            self._database.write(work)
            known = self._row(sql.PROJECT_AT, {"common_dir": project.common_dir})
        return project if known is None else self.placed(rows.project_from_row(known))

    def project(self, id: ProjectId) -> Project:
        row = self._row(sql.PROJECT, {"id": id})
        if row is None:
            raise Refused(
                f"project {id!r} was not found",
                why="no project has that id",
                fix="run lockgate init in its repository",
            )
        return self.placed(rows.project_from_row(row))

    def give_hub(self, id: ProjectId, url: str) -> None:
        self._wrote(sql.GIVE_HUB, rows.storable({"id": id, "url": url}))

    def projects(self) -> tuple[Project, ...]:
        return tuple(
            self.placed(rows.project_from_row(row)) for row in self._rows(sql.PROJECTS, {})
        )

    def head(self) -> int:
        return head_of(self._row(sql.HEAD, {})).seq

    def close(self) -> None:
        self._database.close()

    def _walk(
        self,
        by: str,
        which: TaskFilter,
        begin: Values,
        statuses: Iterable[Status],
        section: str = "",
    ) -> Sequence[Row]:
        """The first of them, one project and one status after the other where some are named."""
        wanted = [section] if section else []
        if section and which.statuses:
            names = ", ".join(f"'{it.name}'" for it in Status if it in which.statuses)
            wanted.append(f"status IN ({names})")
        wanted += [sql.OF_PROJECT] if which.projects else []
        wanted += [sql.OF_STATUS] if statuses else []
        wanted += [sql.OF_AGENT] if which.agent else []
        wanted += [sql.WITH_TEXT] if which.text else []
        wanted += [sql.NEEDING] if which.needs else []
        statement = sql.page_of(by, tuple(wanted))
        values: Values = {**begin, "agent": which.agent, "text": f"%{_like(which.text)}%"}
        found: list[Row] = []
        for project in which.projects or (None,):
            for status in [it.name for it in statuses] or [""]:
                found += self._rows(statement, {**values, "project": project, "status": status})
        found.sort(key=lambda row: rows.place_of(row, by), reverse=True)
        return found[: int(str(begin["limit"]))]

    def _count(self, statement: str, values: Values) -> int:
        row = self._row(statement, values)
        return 0 if row is None else int(str(row["n"]))

    def _wrote(self, statement: str, values: Values) -> Row | None:
        """One statement in a transaction; the row that it gives back, if it gives one."""
        found: list[Row | None] = []

        def work(run: Run) -> None:
            answer = run(statement, values)
            found.append(answer.fetchone() if "RETURNING" in statement else None)

        self._database.write(work)
        return found[-1]

    def _row(self, statement: str, values: Values) -> Row | None:
        found = self._rows(statement, values)
        return found[0] if found else None

    def _rows(self, statement: str, values: Values) -> Sequence[Row]:
        """What is asked for by a text that cannot be stored is not there."""
        texts = [value for value in values.values() if isinstance(value, str)]
        return self._database.read(statement, values) if all(map(rows.can_be_stored, texts)) else ()


def _wants(which: TaskFilter, *, ended: bool) -> bool:
    ends = {Status.DONE, Status.CANCELLED}
    return not which.statuses or bool(which.statuses & ends if ended else which.statuses - ends)


def _cursor(task: Task) -> Cursor:
    return Cursor(task.status in {Status.DONE, Status.CANCELLED}, task.updated, task.id)


def _like(text: str) -> str:
    """As part of a pattern in which nothing stands for something else."""
    return re.sub("([!%_])", r"!\1", text.lower())


def _must_have_slot(run: Run, decision: Decision) -> None:
    """Counted while nobody else can begin one: the numbers of events are taken."""
    if not decision.slots:
        return
    task = decision.task
    row = run(sql.SESSIONS_ALIVE_IN, {"project": task.project, "task": task.id}).fetchone()
    if row is not None and int(str(row["n"])) >= decision.slots:
        raise NoFreeSlot(task.id)


def _write_session(run: Run, decision: Decision) -> None:
    for statement, values in rows.of_session(decision):
        run(statement, values)


def _write_body(run: Run, decision: Decision) -> None:
    if decision.body is not None:
        run(sql.INSERT_BODY, rows.body_to_row(decision.task, decision.body))


def _write_results(run: Run, decision: Decision) -> None:
    for n, result in enumerate(decision.results):
        run(sql.INSERT_RESULT, rows.result_to_row(decision.task, n, result))


def _write_dependencies(run: Run, decision: Decision) -> None:
    """And count again what this task needs, and what others need of it."""
    id = decision.task.id
    run(sql.DROP_DEPENDENCIES, {"task": id})
    for needs in decision.task.depends_on:
        run(sql.PUT_DEPENDENCY, {"task": id, "needs": needs})
    run(sql.COUNT_NEEDS_OF, {"id": id})
    run(sql.COUNT_NEEDS_ON, {"id": id})


def _write_effects(run: Run, decision: Decision, turn: int) -> None:
    task = decision.task
    for n, effect in enumerate(decision.effects):
        pending = PendingEffect(f"{task.id}:{task.rev}:{n}", task.id, effect)
        run(sql.INSERT_EFFECT, {**rows.effect_to_row(pending), "turn": turn})


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
