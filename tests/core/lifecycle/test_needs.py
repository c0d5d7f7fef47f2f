"""What needs a human: every kind has words, an order and commands; nothing else is a need."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lockgate.core.lifecycle.needs import (
    GIST,
    KINDS,
    Around,
    Need,
    NeedKind,
    Trouble,
    Whole,
    in_one_line,
    lane_need,
    lost_dependencies,
    need_of,
    order,
    untrusted,
)
from lockgate.core.model.task import Cause, ProjectId, Status, Task, TaskId
from tests.given import a_task

S = Status
SHOP = Whole(id=ProjectId("p1"), name="shop", root="/srv/shop")
NEEDY: dict[NeedKind, Task] = {
    NeedKind.APPROVE: a_task(S.AGENT_REVIEW, waiting="sign_off", asked="Only pages of ours?"),
    NeedKind.LAND: a_task(S.REVIEWING),
    NeedKind.ANSWER: a_task(S.CLARIFICATION, question="Which page?"),
    NeedKind.STUCK: a_task(S.STUCK, cause=Cause.MAX_ITERATIONS),
    NeedKind.PAUSED: a_task(S.PAUSED_FOR_INTERVENTION),
    NeedKind.ESCALATION: a_task(S.WORKING, escalated="step green failed"),
    NeedKind.DEAD: a_task(S.WORKING, dead=True),
    NeedKind.HELD: a_task(S.REVIEWING, held="after the release"),
    NeedKind.LOGIN: a_task(S.STUCK, cause=Cause.LOGIN),
    NeedKind.LIMIT: a_task(S.WORKING, dead=True, not_before=5.0),
    NeedKind.DEPENDENCY: a_task(S.PENDING, in_vain="gone-1 is cancelled"),
    NeedKind.BUDGET: a_task(S.STUCK, cause=Cause.BUDGET),
    NeedKind.YOURS: a_task(S.WORKING, taken_over=True),
    NeedKind.TROUBLE: a_task(S.WORKING, troubled="the disk is full"),
}
LANES = {
    NeedKind.HELD: Trouble(why="the target could not be judged", kind="held"),
    NeedKind.RED_TIP: Trouble(why="the target itself is red", kind="red-tip"),
    NeedKind.CHECKOUT: Trouble(why="edits: a; run: git stash push -- a", kind="checkout"),
    NeedKind.SURROUNDINGS: Trouble(why="the disk is full", times=3),
}
TEXT = st.text(max_size=400)
NEEDS = st.builds(
    lambda kind, blocks, priority, since, dimmed: Need(
        key=f"{kind}:{since}",
        kind=kind,
        project=ProjectId("p"),
        ask="do it",
        since=since,
        priority=priority,
        blocks=blocks,
        dimmed=dimmed,
    ),
    st.sampled_from(NeedKind),
    st.integers(0, 3),
    st.integers(1, 5),
    st.integers(0, 5).map(float),
    st.booleans(),
)


def told(kind: NeedKind) -> Need:
    """A need of this kind."""
    if kind is NeedKind.TRUST:
        return untrusted(SHOP, "it wants the network", "cd /srv/shop && lockgate trust", 1.0)
    found = need_of(NEEDY[kind]) if kind in NEEDY else lane_need("queue of shop", LANES[kind], SHOP)
    assert found is not None
    return found


@pytest.mark.req("R131")
@pytest.mark.parametrize("kind", NeedKind)
def test_every_kind_has_words_a_place_and_commands(kind) -> None:
    need = told(kind)

    assert need.kind is kind
    assert 0 < len(need.ask) <= GIST
    assert kind in KINDS
    assert need.actions
    assert all(it.verb and it.command for it in need.actions)
    assert need.key.startswith(f"{need.task or need.project}:")
    assert need.facts()["kind"] == kind.value


@given(st.lists(NEEDS, max_size=20))
def test_what_others_wait_for_comes_first_and_what_was_seen_last(needs) -> None:
    listed = sorted(needs, key=order)

    assert sorted(it.dimmed for it in listed) == [it.dimmed for it in listed]
    for one, two in pairwise(listed):
        if one.dimmed == two.dimmed:
            assert (one.blocks > 0) >= (two.blocks > 0)
        if (one.dimmed, one.blocks > 0) == (two.dimmed, two.blocks > 0):
            assert (one.priority, KINDS[one.kind], one.since) <= (
                two.priority,
                KINDS[two.kind],
                two.since,
            )


@given(st.sampled_from(list(NEEDY.values())), TEXT, TEXT)
def test_an_ask_is_one_short_line_whatever_was_written(task, question, asked) -> None:
    need = need_of(replace(task, question=question, asked=asked, held=question))

    assert need is None or (len(need.ask) <= GIST and "\n" not in need.ask)


@given(st.sampled_from(S), st.booleans(), st.booleans(), st.sampled_from(["", "x"]))
def test_what_has_ended_needs_nobody(status, dead, taken_over, waiting) -> None:
    task = a_task(status, dead=dead, taken_over=taken_over, waiting=waiting, escalated=waiting)

    need = need_of(task)

    assert status not in {S.DONE, S.CANCELLED} or need is None
    assert not taken_over or status in {S.DONE, S.CANCELLED} or need is not None


def test_a_key_is_the_same_for_as_long_as_the_cause_is() -> None:
    working = NEEDY[NeedKind.ESCALATION]
    moved = replace(working, rev=working.rev + 1)
    stuck = NEEDY[NeedKind.STUCK]
    again = replace(stuck, rev=stuck.rev + 2)

    assert key_of(working) == key_of(moved)
    assert key_of(stuck) != key_of(again)


def key_of(task: Task) -> str:
    need = need_of(task)
    assert need is not None
    return need.key


def test_a_change_that_lands_by_itself_needs_nobody() -> None:
    assert need_of(NEEDY[NeedKind.LAND], Around(lands_alone=True)) is None
    assert need_of(NEEDY[NeedKind.HELD], Around(lands_alone=True)) is not None


@pytest.mark.parametrize(
    "trouble",
    [
        Trouble(why="it may still push"),
        Trouble(why="the disk is full", times=2),
        Trouble(why="the disk is full", times=3, task=TaskId("t-1")),
    ],
)
def test_what_goes_on_by_itself_or_is_told_by_a_task_is_no_need_of_the_loop(trouble) -> None:
    assert lane_need("queue of shop", trouble, SHOP) is None


def test_a_need_of_the_loop_alone_has_no_project_and_a_command() -> None:
    need = lane_need("housekeeping", LANES[NeedKind.SURROUNDINGS], None)

    assert need is not None
    assert (need.project, need.key) == ("", ":surroundings:housekeeping")
    assert "lockgate doctor" in in_one_line(need)


def test_files_in_the_way_are_put_away_by_the_command_that_git_was_asked_for() -> None:
    need = told(NeedKind.CHECKOUT)

    assert [it.command for it in need.actions] == ["git stash push -- a"]
    assert "git stash" not in need.ask


def test_dependencies_that_will_not_be_done_by_themselves_are_named() -> None:
    statuses = {
        TaskId("a-1"): S.WORKING,
        TaskId("b-2"): S.CANCELLED,
        TaskId("c-3"): None,
        TaskId("d-4"): S.DONE,
    }

    assert lost_dependencies(statuses) == "b-2 is cancelled, c-3 was deleted"


def test_a_budget_that_is_used_up_is_raised_in_the_configuration() -> None:
    need = lane_need("agents of shop", Trouble(why="today's budget is used", kind="budget"), SHOP)

    assert need is not None
    [action] = need.actions
    assert action.command == "edit [budget] day_usd in /srv/shop/.lockgate/config.toml"
