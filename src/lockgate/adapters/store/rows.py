"""Rows and dataclasses, in both directions; nowhere else does a row have a shape."""

from collections.abc import Mapping
from dataclasses import asdict

from lockgate.adapters.store.fields import Fields, fields_of, object_of
from lockgate.adapters.store.json_forms import effect_from_json, effect_kind, effect_to_json
from lockgate.core.model.event_log import StoredEvent, canonical, event_hash
from lockgate.core.model.results import SingleGateResult
from lockgate.core.model.task import ProjectId, Role, Session, SessionId, Task, TaskId
from lockgate.errors import Refused
from lockgate.ports import GateRecord, PendingEffect, Project

Row = Mapping[str, object]
Values = dict[str, str | int | float | None]


def id_of(row: Row) -> TaskId:
    return TaskId(Fields("a task", row).text("id"))


def age_of(row: Row) -> tuple[float, str]:
    it = Fields("a task", row)
    return it.real("created"), it.text("id")


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
            "data": canonical(asdict(result)),
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
        }
    )


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
    )


def project_to_row(project: Project) -> Values:
    return storable(
        {
            "id": project.id,
            "name": project.name,
            "common_dir": project.common_dir,
            "root": project.root,
        }
    )


def project_from_row(row: Row) -> Project:
    it = Fields(f"project {row.get('id')!r}", row)
    return Project(
        id=ProjectId(it.text("id")),
        name=it.text("name"),
        common_dir=it.text("common_dir"),
        root=it.text("root"),
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
    return PendingEffect(f"{task}:{it.whole('rev')}:{it.whole('n')}", task, effect)


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
