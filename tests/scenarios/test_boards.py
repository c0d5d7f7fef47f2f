"""The board, the inbox, people and statistics, on real services and a real database."""

import json

import pytest
from msgspec.structs import replace

from lockgate.core.lifecycle.decision import Decision
from lockgate.core.model.facts import json_facts
from lockgate.core.model.people import Draft, Person, Right
from lockgate.core.model.task import Actor, ProjectId, Status, Task, TaskId
from lockgate.errors import Refused
from lockgate.services.task.boards import NEEDED, BoardFilter
from lockgate.services.task.callers import HUMAN, Caller, Users, identify
from tests.scenarios.world import World

S = Status
ANN = Caller(Actor.HUMAN, by="ann", how="uid 7")


@pytest.fixture
def world(tmp_path) -> World:
    return World.at(tmp_path)


def put(world: World, **fields: object) -> Task:
    """A task in the database as it is, by no move."""
    number = len(world.app.store.counts()) + world.app.store.head()
    made = world.app.store.load(world.create(f"b-{number}"))
    task = replace(made, rev=made.rev + 1, **fields)
    world.app.store.commit(Decision(task))
    return task


@pytest.mark.req("R131")
def test_needs_come_first_then_what_lives_by_its_last_change_then_what_has_ended(world) -> None:
    done = put(world, status=S.DONE, updated=900.0)
    old, new = (put(world, status=S.WORKING, updated=float(at)) for at in (100, 200))
    asks = put(world, status=S.CLARIFICATION, question="Which?", updated=1.0)

    board = world.app.boards.board()

    assert [it.id for it in board.rows] == [asks.id, new.id, old.id, done.id]
    assert [it.task for it in board.needs] == [asks.id]
    assert (board.counts[S.DONE], board.counts[S.WORKING]) == (1, 2)


@pytest.mark.parametrize("limit", [1, 2, 3, 10])
def test_the_pages_of_a_board_show_each_task_once(world, limit) -> None:
    made = [
        put(world, status=it, updated=float(n)).id for n, it in enumerate([S.DONE, S.WORKING] * 3)
    ]
    made.append(put(world, status=S.STUCK).id)

    board = world.app.boards.board(limit=limit)
    seen = [it.id for it in board.rows]
    while board.after:
        board = world.app.boards.board(after=board.after, limit=limit)
        seen += [it.id for it in board.rows]

    assert sorted(seen) == sorted(made)


def test_a_place_that_is_none_is_refused(world) -> None:
    with pytest.raises(Refused, match="is no place in it"):
        world.app.boards.board(after="somewhere")


def test_a_board_can_be_asked_for_some_of_its_tasks(world) -> None:
    one = put(world, status=S.WORKING, agent="codex", summary="Fix the CSV_export 100%")
    two = put(world, status=S.WORKING, agent="claude")
    asks = put(world, status=S.CLARIFICATION, agent="codex")

    def shown(**fields: object) -> set[TaskId]:
        return {it.id for it in world.app.boards.board(BoardFilter(**fields)).rows}  # type: ignore[arg-type]  # a test's own

    assert shown(agent="codex") == {one.id, asks.id}
    assert shown(text="csv_EXPORT") == {one.id}
    assert shown(text="100%") == {one.id}
    assert shown(text="100_") == set()
    assert shown(statuses=frozenset({S.WORKING})) == {one.id, two.id}
    assert shown(needs=True) == {asks.id}
    assert shown(projects=frozenset({one.project})) == {one.id, two.id, asks.id}


def test_a_need_counts_the_tasks_that_wait_behind_it_and_comes_first(world) -> None:
    first = put(world, status=S.STUCK, priority=5)
    middle = put(world, depends_on=(first.id,))
    put(world, depends_on=(middle.id,))
    put(world, status=S.STUCK, priority=1)

    needs = world.app.boards.inbox().needs

    assert (needs[0].task, needs[0].blocks) == (first.id, 2)
    row = world.app.boards.row(middle.id)
    assert row is not None
    assert row.waits_for == (first.id,)


def test_what_somebody_has_seen_is_dimmed_for_them_alone_until_its_cause_changes(world) -> None:
    stuck, other = put(world, status=S.STUCK, priority=1), put(world, status=S.STUCK, priority=5)
    app = replace(world.app, caller=ANN)
    [first, _] = app.boards.inbox().needs

    app.desk.mark_seen(first.key, ANN)

    assert [(it.task, it.dimmed) for it in app.boards.inbox().needs] == [
        (other.id, False),
        (stuck.id, True),
    ]
    assert [it.dimmed for it in world.app.boards.inbox().needs] == [False, False]
    moved = replace(world.app.store.load(stuck.id), rev=stuck.rev + 1)
    world.app.store.commit(Decision(moved))
    assert [it.dimmed for it in app.boards.inbox().needs] == [False, False]


def test_what_was_put_off_comes_back_by_itself(world) -> None:
    put(world, status=S.STUCK)
    app = replace(world.app, caller=ANN)
    [need] = app.boards.inbox().needs

    app.desk.snooze(need.key, 1000.0, ANN)
    assert [it.dimmed for it in app.boards.inbox().needs] == [True]
    app.desk.snooze(need.key, -1.0, ANN)
    assert [it.dimmed for it in app.boards.inbox().needs] == [False]


def test_drafts_outlive_a_face_and_are_their_authors_own(world) -> None:
    id, desk = world.create(), world.app.desk
    draft = Draft(task=id, patch="p", file="a.py", line=3, quote="x = 1", text="name it")

    kept = desk.save(draft, ANN)
    desk.save(replace(draft, text="theirs"), replace(ANN, by="bob"))
    changed = desk.save(replace(kept, text="name the constant"), ANN)

    assert desk.drafts(id, ANN) == (changed,)
    desk.discard(id, (), replace(ANN, by="bob"))
    assert desk.drafts(id, ANN) == (changed,)
    desk.discard(id, (kept.id,), ANN)
    assert desk.drafts(id, ANN) == ()
    with pytest.raises(Refused, match="it is empty"):
        desk.save(replace(draft, text=" "), ANN)


# --- facts --------------------------------------------------------------------------------------


def test_facts_are_what_json_gives_back(world) -> None:
    id = put(world, status=S.CLARIFICATION, question="Which?").id
    boards = world.app.boards

    for facts in (boards.board().facts(), boards.inbox().facts(), boards.board(NEEDED).facts()):
        assert json.loads(json.dumps(facts)) == facts
    page = boards.page(id).facts()
    assert json.loads(json.dumps(page))["row"] == page["row"]


# --- people -------------------------------------------------------------------------------------

USERS = Users(owner=1000, name=lambda uid: f"user{uid}")


@pytest.mark.parametrize(
    ("uid", "by", "may"),
    [
        (1000, "user1000", Right.ADMIN),
        (0, "user0", Right.ADMIN),
        (7, "ann", Right.WORK),
        (8, "user8", Right.LOOK),
    ],
)
def test_a_human_is_who_the_kernel_says_and_has_the_right_that_is_listed(
    world, uid, by, may
) -> None:
    world.app.store.put_person(Person(name="ann", may=Right.WORK, uid=7))

    caller = identify(world.app.store, None, uid, USERS)

    assert (caller.by, caller.how, caller.may) == (by, f"uid {uid}", may)


RIGHTS = {
    Right.LOOK: replace(ANN, may=Right.LOOK),
    Right.WORK: replace(ANN, may=Right.WORK),
    Right.LAND: replace(ANN, may=Right.LAND),
    Right.ADMIN: ANN,
}


@pytest.mark.parametrize("has", Right)
def test_the_services_refuse_what_somebody_has_no_right_to(world, has) -> None:
    caller, id = RIGHTS[has], put(world, status=S.REVIEWING, candidate="c" * 40, patch="p" * 64).id
    app = world.app
    acts = {
        Right.LOOK: lambda: app.members.all(caller),
        Right.WORK: lambda: app.approvals.comment(id, "hm", caller),
        Right.LAND: lambda: app.queue.say_yes(id, "", "", caller),
        Right.ADMIN: lambda: app.members.add("bob", Right.LOOK, None, caller),
    }

    for wanted, act in acts.items():
        if list(Right).index(wanted) <= list(Right).index(has):
            act()
        else:
            with pytest.raises(Refused, match=f"needs the right to {wanted}") as refused:
                act()
            assert "lockgate people add ann" in refused.value.fix


def test_every_event_of_a_humans_act_says_whose_it_is_and_how_they_are_known(world) -> None:
    id = put(world, status=S.REVIEWING, candidate="c" * 40, patch="p" * 64).id
    before = world.app.store.head()

    world.app.queue.say_yes(id, "good", "", ANN)

    events = world.app.store.events(id, before, 99)
    found = [it for it in events if it.type != "artifact.tampered"]  # Lockgate's own
    assert [it.type for it in found] == ["landing.approved", "human.commented"]
    assert {(it.data["by"], it.data["how"]) for it in found} == {("ann", "uid 7")}
    [yes] = world.app.store.load(id).approvals
    assert (yes.gate, yes.by, yes.how) == ("merge queue", "ann", "uid 7")
    world.app.queue.hold(id, "not now", ANN)
    assert world.app.store.load(id).approvals == ()


def test_no_two_people_are_one_user_of_the_machine(world) -> None:
    world.app.members.add("ann", Right.WORK, 7, HUMAN)

    with pytest.raises(Refused, match="user 7 of this machine is ann"):
        world.app.members.add("bob", Right.LOOK, 7, HUMAN)
    world.app.members.add("ann", Right.LAND, 7, HUMAN)
    [person] = world.app.members.all(HUMAN)
    assert (person.name, person.may) == ("ann", Right.LAND)
    for name in ("", "a b", "x\x1b[2J", "ann\u202e"):
        with pytest.raises(Refused, match="a name has letters"):
            world.app.members.add(name, Right.LOOK, None, HUMAN)


# --- statistics ---------------------------------------------------------------------------------


def test_statistics_are_counted_once_and_come_to_the_same_when_they_are_made_again(world) -> None:
    for branch in ("one", "two"):
        id = world.started(branch)
        world.move(id, S.CANCELLED)
    statistics = world.app.statistics

    first = statistics.over(7)
    again = statistics.over(7)
    statistics.rebuild()

    assert (first.dropped, first.landed, len(first.days)) == (2, 0, 7)
    assert json_facts(first) == json_facts(again) == json_facts(statistics.over(7))
    assert first.seq == world.app.store.head()
    assert statistics.over(7, world.project().id).dropped == 2
    assert statistics.over(7, ProjectId("elsewhere")).dropped == 0
    assert json.loads(json.dumps(first.facts())) == first.facts()
