"""Tasks and decisions to store: plain ones to name, and arbitrary ones for properties."""

from typing import get_args

from hypothesis import strategies as st
from msgspec.structs import replace

from lockgate.core.lifecycle.decision import Decision, Effect
from lockgate.core.model.events import Event, SummaryChanged
from lockgate.core.model.task import (
    Pinned,
    ProjectId,
    Role,
    Session,
    SessionId,
    Task,
    TaskId,
    TaskPhase,
)
from lockgate.ports import Project

PROJECT = Project(id=ProjectId("p1"), name="one", common_dir="/repo/.git", root="/repo")

_text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
_whole = st.integers(min_value=0, max_value=2**31 - 1)
_real = st.floats(allow_nan=False, allow_infinity=False)

for _type, _values in ((str, _text), (int, _whole), (float, _real)):
    st.register_type_strategy(_type, _values)

PHASES = get_args(TaskPhase)
EFFECTS = get_args(Effect)
phases: st.SearchStrategy[TaskPhase] = st.one_of([st.from_type(it) for it in PHASES])
effects: st.SearchStrategy[Effect] = st.one_of([st.from_type(it) for it in EFFECTS])
sessions = st.from_type(Session)
tasks = st.builds(
    Task,
    phase=st.none() | phases,
    pinned=st.none() | st.from_type(Pinned),
    spent=st.frozensets(_text, max_size=3),
    depends_on=st.lists(_text.map(TaskId), max_size=3).map(tuple),
)


def a_task(id: str = "t1", **changes: object) -> Task:
    plain = Task(
        id=TaskId(id),
        project=PROJECT.id,
        summary="do it",
        goal=str(changes.get("summary", "do it")),
        branch="do-it",
        agent="claude",
        created=1.0,
        updated=2.5,
    )
    return replace(plain, **changes)


def moved(task: Task, *events: Event, **changes: object) -> Decision:
    """The task's next rev, with an event unless the test brings its own."""
    after = replace(task, rev=task.rev + 1, **changes)
    return Decision(after, events or (SummaryChanged(f"rev {after.rev}"),))


def a_session(task: Task, id: str = "s1", **changes: object) -> Session:
    plain = Session(
        id=SessionId(id),
        task=task.id,
        role=Role.WORKER,
        round=0,
        generation=1,
        token_hash=f"hash of {id}",
        started=3.0,
    )
    return replace(plain, **changes)
