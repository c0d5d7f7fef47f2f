"""What is ready, what is new, what waits in vain: asked for by an index, in a fair order."""

import sqlite3
from contextlib import closing

import pytest
from msgspec.structs import replace

from lockgate.adapters.store import hosts, open_store, sql
from lockgate.core.lifecycle.decision import Decision, MirrorTask, NotifyHuman
from lockgate.core.lifecycle.records import dependency_dropped
from lockgate.core.model.events import StatusChanged, TaskDeleted
from lockgate.core.model.task import Actor, Status, Task, TaskId
from lockgate.errors import Restored, SchemaIsNewer
from lockgate.ports import Mark, Store
from tests.store.conftest import Place
from tests.store.samples import PROJECT, a_task

S = Status


@pytest.fixture
def place(migrated_place: Place) -> Place:
    return migrated_place


def create(store: Store, id: str, *needs: str, **fields: object) -> Task:
    task = a_task(id, depends_on=tuple(TaskId(it) for it in needs), **fields)
    store.create(Decision(task, effects=(MirrorTask(),)))
    return task


def becomes(store: Store, id: str, status: Status) -> None:
    task = store.load(TaskId(id))
    event = StatusChanged(
        source=task.status, target=status, actor=Actor.HUMAN, cause=None, reason=""
    )
    store.commit(Decision(replace(task, status=status, rev=task.rev + 1), (event,)))


def ready(store: Store, limit: int = 99, without: tuple[str, ...] = ()) -> list[str]:
    return [it.id for it in store.ready(PROJECT.id, limit, without)]


def in_vain(store: Store) -> list[str]:
    return [it.id for it in store.in_vain()]


def test_a_task_is_ready_once_all_that_it_needs_is_done(store: Store) -> None:
    create(store, "a")
    create(store, "b", "a")
    create(store, "c", "a", "b")
    assert ready(store) == ["a"]

    becomes(store, "a", S.DONE)
    assert ready(store) == ["b"]

    becomes(store, "b", S.DONE)
    assert ready(store) == ["c"]


def test_the_urgent_are_ready_first_and_then_the_oldest(store: Store) -> None:
    create(store, "late", created=9.0)
    create(store, "early", created=1.0)
    create(store, "urgent", created=9.0, priority=1)
    create(store, "by-hand", auto_start=False)

    assert ready(store) == ["urgent", "early", "late"]
    assert ready(store, 1) == ["urgent"]
    assert store.projects_ready() == (PROJECT.id,)


def test_tasks_of_agents_that_are_limited_are_passed_over(store: Store) -> None:
    create(store, "a", agent="claude")
    create(store, "b", agent="my_agent")
    create(store, "c", agent="my-agent")

    assert ready(store, without=("claude", "my_agent")) == ["c"]


def test_no_project_is_ready_where_nothing_can_start(store: Store) -> None:
    create(store, "a", status=S.STUCK)
    create(store, "b", "a")

    assert store.projects_ready() == ()


@pytest.mark.parametrize("end", [S.CANCELLED, S.STUCK, S.PAUSED_FOR_INTERVENTION])
def test_a_task_waits_in_vain_for_one_that_will_not_be_done_by_itself(
    store: Store, end: Status
) -> None:
    create(store, "a", status=S.WORKING)
    create(store, "b", "a")
    assert in_vain(store) == []

    becomes(store, "a", end)
    assert (in_vain(store), ready(store)) == (["b"], [])

    if end is not S.CANCELLED:
        becomes(store, "a", S.WORKING)
        assert in_vain(store) == []


def test_a_deleted_dependency_is_not_a_fulfilled_one(store: Store) -> None:
    create(store, "a", status=S.DONE)
    create(store, "b", "a")
    assert ready(store) == ["b"]

    task = store.load(TaskId("a"))
    store.delete(Decision(replace(task, rev=1), (TaskDeleted("row"),)))

    assert (ready(store), in_vain(store)) == ([], ["b"])


def test_a_dependency_that_is_dropped_is_not_waited_for(store: Store) -> None:
    create(store, "a", status=S.CANCELLED)
    create(store, "b", "a")

    decision = dependency_dropped(store.load(TaskId("b")), TaskId("a"), 2.0)
    assert isinstance(decision, Decision)
    store.commit(decision)

    assert (ready(store), in_vain(store)) == (["b"], [])


def test_new_effects_come_in_the_order_in_which_they_were_written_and_each_once(
    store: Store,
) -> None:
    for id in ("z", "a", "m"):
        store.create(Decision(a_task(id), (), (MirrorTask(), NotifyHuman(S.STUCK, id))))
    seen, mark = list[str](), Mark()
    while True:
        page, after = store.effects_after(mark, 2)
        if after == mark:
            break
        seen += [it.key for it in page]
        assert all(it.project == PROJECT.id for it in page)
        mark = after
    assert seen == ["z:0:0", "z:0:1", "a:0:0", "a:0:1", "m:0:0", "m:0:1"]

    store.create(Decision(a_task("b"), (), (MirrorTask(),)))

    assert [it.key for it in store.effects_after(mark, 9)[0]] == ["b:0:0"]


def test_the_pulse_moves_with_every_change_of_a_task_and_with_nothing_else(store: Store) -> None:
    before = store.pulse()
    create(store, "a")
    becomes(store, "a", S.WORKING)
    after = store.pulse()
    store.effects_done(["a:0:0"])

    assert (after - before, store.pulse()) == (2, after)


def test_changes_that_wait_to_land_have_another_sign_when_one_comes_goes_or_moves(
    store: Store,
) -> None:
    signs = [store.to_land()]
    create(store, "a", status=S.REVIEWING, updated=1.0)
    signs.append(store.to_land())
    create(store, "b", status=S.REVIEWING, updated=2.0)
    signs.append(store.to_land())
    becomes(store, "a", S.REVIEWING)
    signs.append(store.to_land())
    becomes(store, "b", S.DONE)
    signs.append(store.to_land())

    assert len({repr(it) for it in signs}) == len(signs)
    assert store.to_land() == store.to_land()


def test_only_tasks_whose_agents_live_and_may_work_have_a_slot(store: Store) -> None:
    create(store, "a", status=S.WORKING)
    create(store, "b", status=S.AGENT_REVIEW)
    create(store, "c", status=S.WORKING, dead=True)
    create(store, "d", status=S.WORKING, not_before=50.0)

    assert (store.at_work(PROJECT.id, 10.0), store.at_work(PROJECT.id, 60.0)) == (2, 3)


def test_a_program_that_is_too_old_for_the_schema_is_told_so(store: Store, place: Place) -> None:
    store.pulse()
    place.execute("UPDATE schema_facts SET readable_from = 9999")

    with pytest.raises(SchemaIsNewer, match="9999"):
        store.pulse()


def test_a_database_that_went_back_in_time_is_noticed(store: Store, place: Place) -> None:
    create(store, "a")
    store.pulse()
    place.execute("UPDATE log_head SET turn = 0")

    with pytest.raises(Restored, match="replaced by another copy"):
        store.pulse()


def test_an_older_copy_that_has_gone_further_meanwhile_is_noticed(
    store: Store, place: Place
) -> None:
    create(store, "a")
    becomes(store, "a", S.WORKING)
    store.pulse()
    becomes(store, "a", S.AGENT_REVIEW)
    store.pulse()  # it has gone on, and is the same
    place.execute("UPDATE events SET hash = 'of another turn'")
    becomes(store, "a", S.WORKING)

    with pytest.raises(Restored, match="replaced by another copy"):
        store.pulse()


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (sql.PROJECTS_READY, "tasks_ready"),
        (sql.READY, "tasks_ready"),
        (sql.AT_WORK, "tasks_at_work"),
        (sql.IN_VAIN, "tasks_in_vain"),
        (sql.EFFECTS_AFTER, "outbox_by_turn"),
        (sql.SESSIONS_ALIVE_IN, "sessions_alive"),
        (hosts.TASKS_AT, "tasks_of_host"),
    ],
)
def test_what_a_wake_asks_for_is_found_by_its_own_index(tmp_path, statement, index) -> None:
    open_store(str(tmp_path / "a.db")).close()
    values = {
        "project": "p",
        "limit": 5,
        "without": "",
        "now": 1.0,
        "task": "t",
        "name": "h1",
        "turn": 0,
        "rev": 0,
        "n": 0,
    }
    with closing(sqlite3.connect(tmp_path / "a.db")) as db:
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}", values)]

    walked = [it for it in plan if "tasks" in it or "sessions" in it or "outbox" in it]
    assert any(f"INDEX {index}" in it for it in walked), plan
    others = [it for it in walked if f"INDEX {index}" not in it]
    assert all("(id=?)" in it for it in others), plan  # one row each


def test_what_a_host_has_at_work_is_counted_without_a_look_at_the_tasks_of_others(tmp_path) -> None:
    open_store(str(tmp_path / "a.db")).close()
    values = {"name": "h1", "now": 1.0}
    with closing(sqlite3.connect(tmp_path / "a.db")) as db:
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {hosts.AT_WORK}", values)]

    assert any("tasks USING INDEX tasks_of_host (host=?)" in it for it in plan), plan
    assert any("INDEX sessions_alive_of_host (host=?)" in it for it in plan), plan
