"""Rows and dataclasses, in both directions; nowhere else does a row have a shape."""

from collections.abc import Iterator
from functools import lru_cache

from msgspec.structs import replace

from lockgate.adapters.store import sql
from lockgate.adapters.store.json_forms import (
    Fields,
    Row,
    approvals_from_json,
    approvals_to_json,
    damaged,
    effect_from_json,
    effect_kind,
    effect_to_json,
    fields_of,
    history_from_json,
    history_to_json,
    object_of,
    phase_from_json,
    phase_to_json,
    pinned_from_json,
    pinned_to_json,
    revert_from_json,
    revert_to_json,
    seats_from_json,
    seats_to_json,
    size_from_json,
    size_to_json,
    words_from_json,
    words_to_json,
)
from lockgate.core.lifecycle.decision import Decision
from lockgate.core.model.facts import StoredEvent, as_facts, canonical, event_hash
from lockgate.core.model.people import Draft, Person, Right
from lockgate.core.model.results import SingleGateResult
from lockgate.core.model.task import (
    Cause,
    Pinned,
    ProjectId,
    Role,
    Session,
    SessionId,
    Status,
    Task,
    TaskId,
)
from lockgate.errors import Refused
from lockgate.ports import GateRecord, Mark, PendingEffect, Project, Waits

Values = dict[str, str | int | float | None]


def id_of(row: Row) -> TaskId:
    return TaskId(Fields("a task", row).text("id"))


def place_of(row: Row, by: str) -> tuple[float, str]:
    """Where it stands among others that are listed by one of their times."""
    it = Fields("a task", row)
    return it.real(by), it.text("id")


def status_of(row: Row) -> Status:
    return _status(Fields(f"task {row.get('id')!r}", row))


def waits_from_row(row: Row) -> Waits:
    it = Fields(f"task {row.get('id')!r}", row)
    ids = tuple(TaskId(id) for id in it.texts("depends_on"))
    return Waits(TaskId(it.text("id")), _status(it), ids)


def body_from_row(row: Row) -> str:
    return Fields(f"body of {row.get('task')!r}", row).text("text")


def body_to_row(task: Task, text: str) -> Values:
    return storable({"task": task.id, "rev": task.rev, "text": text})


def result_to_row(task: Task, n: int, result: SingleGateResult) -> Values:
    return storable(
        {
            "task": task.id,
            "rev": task.rev,
            "n": n,
            "time": float(task.updated),
            "gate": result.gate,
            "result": type(result).__name__.lower(),
            "data": canonical(as_facts(result)),
        }
    )


def record_from_row(row: Row) -> GateRecord:
    it = Fields(f"a result of {row.get('task')!r}", row)
    return GateRecord(
        rev=it.whole("rev"),
        time=it.real("time"),
        gate=it.text("gate"),
        result=it.text("result"),
        data=object_of(it.where, it.json("data")),
    )


def session_to_row(session: Session) -> Values:
    return storable(
        {
            "id": session.id,
            "task": session.task,
            "role": session.role.value,
            "round": session.round,
            "generation": session.generation,
            "token_hash": session.token_hash,
            "started": float(session.started),
            "ended": session.ended,
            "directory": session.directory,
            "agent": session.agent,
            "native": session.native,
            "interactive": int(session.interactive),
            "usd": float(session.usd),
            "tokens": session.tokens,
            "seat": session.seat,
            "asked": int(session.asked),
            "login": session.login,
            "limited_until": float(session.limited_until),
            "host": session.host,
        }
    )


def of_session(decision: Decision) -> Iterator[tuple[str, Values]]:
    """How the session of a decision is written, and what it has cost once it has ended."""
    session, project = decision.session, decision.task.project
    if session is None:
        return
    yield sql.PUT_SESSION, session_to_row(session)
    if session.ended is not None and session.usd > 0:
        spent: Values = {"session": session.id, "project": project, "ended": session.ended}
        yield sql.PUT_SPENDING, {**spent, "usd": session.usd}


def session_from_row(row: Row) -> Session:
    it = Fields(f"session {row.get('id')!r}", row)
    return Session(
        id=SessionId(it.text("id")),
        task=TaskId(it.text("task")),
        role=it.choice("role", Role),
        round=it.whole("round"),
        generation=it.whole("generation"),
        token_hash=it.text("token_hash"),
        started=it.real("started"),
        directory=it.text_or_none("directory"),
        ended=it.real_or_none("ended"),
        agent=it.text("agent"),
        native=it.text("native"),
        interactive=it.flag("interactive"),
        usd=it.real("usd"),
        tokens=it.whole("tokens"),
        seat=it.text("seat"),
        asked=it.flag("asked"),
        login=it.text("login"),
        limited_until=it.real("limited_until"),
        host=it.text("host"),
    )


def project_to_row(project: Project) -> Values:
    return storable(
        {
            "id": project.id,
            "name": project.name,
            "common_dir": project.common_dir,
            "root": project.root,
            "url": project.url,
        }
    )


def project_from_row(row: Row) -> Project:
    it = Fields(f"project {row.get('id')!r}", row)
    return Project(
        id=ProjectId(it.text("id")),
        name=it.text("name"),
        common_dir=it.text("common_dir"),
        root=it.text("root"),
        url=it.text("url"),
    )


def person_to_row(person: Person) -> Values:
    return storable(
        {
            "name": person.name,
            "may": person.may.value,
            "uid": person.uid,
            "token_hash": person.token_hash,
            "added": float(person.added),
            "added_by": person.added_by,
        }
    )


def person_from_row(row: Row) -> Person:
    it = Fields(f"person {row.get('name')!r}", row)
    return Person(
        name=it.text("name"),
        may=it.choice("may", Right),
        uid=None if row.get("uid") is None else it.whole("uid"),
        token_hash=it.text_or_none("token_hash"),
        added=it.real("added"),
        added_by=it.text("added_by"),
    )


def draft_to_row(draft: Draft) -> Values:
    row: Values = {name: getattr(draft, name) for name in draft.__struct_fields__}
    return storable({**row, "time": float(draft.time)})


def draft_from_row(row: Row) -> Draft:
    it = Fields(f"draft {row.get('id')!r}", row)
    texts = ("id", "patch", "person", "file", "side", "quote", "text", "priority")
    return Draft(
        task=TaskId(it.text("task")),
        line=it.whole("line"),
        time=it.real("time"),
        **{name: it.text(name) for name in texts},
    )


def effect_to_row(pending: PendingEffect) -> Values:
    return storable(
        {
            **effect_key(pending.key),
            "kind": effect_kind(pending.effect),
            "data": effect_to_json(pending.effect),
        }
    )


def effect_key(key: str) -> Values:
    """`task:rev:n`, taken apart; what is no key is that of no effect."""
    task, _, place = key.partition(":")
    rev, _, n = place.partition(":")
    known = rev.isdecimal() and n.isdecimal()
    return {"task": task, "rev": int(rev) if known else -1, "n": int(n) if known else -1}


def effect_from_row(row: Row) -> PendingEffect:
    it = Fields(f"effect of {row.get('task')!r}", row)
    effect = effect_from_json(it.text("kind"), inside(it, "data"))
    task = TaskId(it.text("task"))
    project = ProjectId(it.text("project") if it.has("project") else "")
    return PendingEffect(f"{task}:{it.whole('rev')}:{it.whole('n')}", task, effect, project)


def mark_of(row: Row) -> Mark:
    it = Fields(f"effect of {row.get('task')!r}", row)
    return Mark(it.whole("turn"), it.text("task"), it.whole("rev"), it.whole("n"))


def event_to_row(event: StoredEvent) -> Values:
    return storable(
        {
            "seq": event.seq,
            "time": event.time,
            "task": event.task,
            "type": event.type,
            "prev": event.prev,
            "hash": event_hash(event),
            "data": canonical(event.data),
        }
    )


def event_from_row(row: Row) -> StoredEvent:
    it = Fields(f"event {row.get('seq')!r}", row)
    return StoredEvent(
        seq=it.whole("seq"),
        time=it.real("time"),
        task=TaskId(it.text("task")),
        type=it.text("type"),
        prev=it.text("prev"),
        data=object_of(it.where, it.json("data")),
    )


def can_be_stored(text: str) -> bool:
    """Whether both databases can hold it: no NUL, no half of a surrogate pair."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def storable(row: Values) -> Values:
    """The row, unless one of its texts would be refused by a database."""
    texts = {name: value for name, value in row.items() if isinstance(value, str)}
    if can_be_stored("".join(texts.values())):
        return row
    guilty = next(name for name, text in texts.items() if not can_be_stored(text))
    raise Refused(
        f"{guilty} was not stored",
        why="it holds a NUL or half a surrogate pair, which no database keeps",
        fix="take that character out, then try again",
    )


def inside(it: Fields, name: str) -> Fields:
    return fields_of(f"{it.where}, {name}", it.json(name))


# A task and its row, in both directions.


def task_to_row(task: Task) -> Values:
    return storable(
        {
            "id": task.id,
            "project": task.project,
            "summary": task.summary,
            "goal": task.goal,
            "branch": task.branch,
            "agent": task.agent,
            "created": float(task.created),
            "updated": float(task.updated),
            "rev": task.rev,
            "status": task.status.name,
            "phase": None if task.phase is None else phase_to_json(task.phase),
            "priority": task.priority,
            "auto_start": int(task.auto_start),
            "depends_on": canonical(task.depends_on),
            "iteration": task.iteration,
            "review_round": task.review_round,
            "crash_count": task.crash_count,
            "failed_attempts": task.failed_attempts,
            "generation": task.generation,
            "since": task.since,
            "dead": int(task.dead),
            "taken_over": int(task.taken_over),
            "not_before": float(task.not_before),
            "exhausted": int(task.exhausted),
            "usd": float(task.usd),
            "tokens": task.tokens,
            "seconds": float(task.seconds),
            "candidate": task.candidate,
            "patch": task.patch,
            "protected": canonical(task.protected),
            "passed": canonical(task.passed),
            "waiting": task.waiting,
            "approvals": approvals_to_json(task.approvals),
            **_of_evaluation(task),
            **_of_people(task),
            "cause": None if task.cause is None else task.cause.value,
            "directive": task.directive,
            "history": history_to_json(task.history),
            "spent": canonical(sorted(task.spent)),
            "pinned": None if task.pinned is None else pinned_to_json(task.pinned),
        }
    )


def _of_evaluation(task: Task) -> Values:
    return {
        "seats": seats_to_json(task.seats),
        "steps_passed": canonical(task.steps_passed),
        "step_failures": task.step_failures,
        "escalated": task.escalated,
        "troubled": task.troubled,
        "to_land": int(task.to_land),
        "held": task.held,
        "landed": task.landed,
        "size": size_to_json(task.size),
    }


def _of_people(task: Task) -> Values:
    return {
        "taken_at": float(task.taken_at),
        "question": task.question,
        "words": words_to_json(task.words),
        "last_words": task.last_words,
        "reverts": revert_to_json(task.reverts),
        "instead_of": task.instead_of,
        "entered": float(task.entered),
        "asked": task.asked,
        "in_vain": task.in_vain,
        "host": task.host,
    }


def task_from_row(row: Row) -> Task:
    it = Fields(f"task {row.get('id')!r}", row)
    task = Task(
        id=TaskId(it.text("id")),
        project=ProjectId(it.text("project")),
        summary=it.text("summary"),
        goal=it.text("goal"),
        branch=it.text("branch"),
        agent=it.text("agent"),
        created=it.real("created"),
        updated=it.real("updated"),
        rev=it.whole("rev"),
        status=_status(it),
        phase=None if it.text_or_none("phase") is None else phase_from_json(inside(it, "phase")),
        priority=it.whole("priority"),
        auto_start=it.flag("auto_start"),
        depends_on=tuple(TaskId(id) for id in it.texts("depends_on")),
        iteration=it.whole("iteration"),
        review_round=it.whole("review_round"),
        crash_count=it.whole("crash_count"),
        failed_attempts=it.whole("failed_attempts"),
        generation=it.whole("generation"),
        since=it.whole("since"),
        dead=it.flag("dead"),
        taken_over=it.flag("taken_over"),
        not_before=it.real("not_before"),
        exhausted=it.flag("exhausted"),
        usd=it.real("usd"),
        tokens=it.whole("tokens"),
        seconds=it.real("seconds"),
        candidate=it.text("candidate"),
        patch=it.text("patch"),
        protected=tuple(it.texts("protected")),
        passed=tuple(it.texts("passed")),
        waiting=it.text("waiting"),
        approvals=approvals_from_json(f"{it.where}, approvals", it.json("approvals")),
        cause=None if it.text_or_none("cause") is None else it.choice("cause", Cause),
        directive=it.text("directive"),
        history=history_from_json(f"{it.where}, history", it.json("history")),
        spent=frozenset(it.texts("spent")),
        pinned=_pinned(it),
    )
    return _with_people(_with_evaluation(task, it), it)


def _pinned(it: Fields) -> Pinned | None:
    text = it.text_or_none("pinned")
    return None if text is None else _pinned_in(it.where, text)


@lru_cache
def _pinned_in(where: str, text: str) -> Pinned:
    """A task's rules do not move while it runs, and its row is read again and again."""
    return pinned_from_json(inside(Fields(where, {"pinned": text}), "pinned"))


def _with_evaluation(task: Task, it: Fields) -> Task:
    return replace(
        task,
        seats=seats_from_json(f"{it.where}, seats", it.json("seats")),
        steps_passed=tuple(it.texts("steps_passed")),
        step_failures=it.whole("step_failures"),
        escalated=it.text("escalated"),
        troubled=it.text("troubled"),
        to_land=it.flag("to_land"),
        held=it.text("held"),
        landed=it.text("landed"),
        size=size_from_json(inside(it, "size")),
    )


def _with_people(task: Task, it: Fields) -> Task:
    return replace(
        task,
        taken_at=it.real("taken_at"),
        question=it.text("question"),
        words=words_from_json(f"{it.where}, words", it.json("words")),
        last_words=it.text("last_words"),
        reverts=revert_from_json(inside(it, "reverts")),
        instead_of=it.text("instead_of"),
        entered=it.real("entered"),
        asked=it.text("asked"),
        in_vain=it.text("in_vain"),
        host=it.text("host"),
    )


def _status(it: Fields) -> Status:
    """Stored by name, shown by value."""
    name = it.text("status")
    if name in Status.__members__:
        return Status[name]
    raise damaged(it.where, f"there is no status {name!r}")
