"""Whose turn it is: limits hold, no place stays empty, and no project waits for a greedy one."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lockgate.core.jobs import (
    ANY,
    LEAD,
    LIMITS,
    Anywhere,
    Attend,
    CarryOut,
    Evaluate,
    Here,
    HostLost,
    Job,
    Kind,
    Lead,
    Limit,
    On,
    Place,
    SyncForge,
    TestTree,
    Tidy,
    TurnTrain,
    class_of,
    covers,
    host_of,
    kind_of,
    lane_of,
    next_project,
    place_of,
    project_of,
    session_of,
    stops_early,
    task_of,
)
from lockgate.core.model.task import ProjectId, SessionId, Task, TaskId
from lockgate.core.train.model import Built, Commit, Tree
from tests.given import a_session

A, T = ProjectId("a"), TaskId("t")
TEST = TestTree(A, "main", Commit("c"), Built(Commit("d"), Tree("e")))
projects = st.sampled_from([ProjectId(it) for it in "abcd"])
limits = st.integers(1, 8).flatmap(lambda n: st.integers(1, n).map(lambda own: Limit(n, own)))


@pytest.mark.parametrize(
    ("job", "kind", "lane", "task"),
    [
        (CarryOut(T, A), Kind.START, "task t", T),
        (Evaluate(T, A, "t:1:0"), Kind.JUDGE, "judge t", T),
        (TurnTrain(A), Kind.LAND, "train of a", None),
        (TEST, Kind.TEST, "test main e", None),
        (SyncForge(A), Kind.FORGE, "forge of a", None),
        (Tidy(), Kind.TIDY, "housekeeping", None),
        (Attend(SessionId("s"), T, A), Kind.ATTEND, "session s", T),
        (HostLost(T, A, "h1"), Kind.START, "lost t", T),
        (Lead(), Kind.LEAD, "lead", None),
    ],
)
def test_every_job_has_a_kind_and_a_lane(job: Job, kind: Kind, lane, task) -> None:
    assert kind_of(job) is kind
    assert lane_of(job) == lane
    assert task_of(job) == task
    assert project_of(job) == ("" if kind in (Kind.TIDY, Kind.LEAD) else A)


HERE = Task(
    id=T, project=A, summary="", goal="", branch="b", agent="claude", created=0.0, updated=0.0
)
THERE, JUDGED = replace(HERE, host="h1"), replace(HERE, host="h1", candidate="c")


@pytest.mark.parametrize(
    ("job", "task", "place"),
    [
        (CarryOut(T, A), HERE, Anywhere(("gpu", "agent:claude"))),
        (CarryOut(T, A), THERE, On("h1")),
        (CarryOut(T, A), None, Anywhere(("gpu",))),
        (Evaluate(T, A, "k"), THERE, On("h1")),  # the change is in the clone alone
        (Evaluate(T, A, "k"), JUDGED, Anywhere(("gpu",))),
        (Evaluate(T, A, "k"), None, Anywhere(("gpu",))),
        (TEST, None, Anywhere(("gpu",))),
        (Attend(SessionId("s"), T, A), THERE, On("h1")),
        (Attend(SessionId("s"), T, A), HERE, Anywhere()),
        (HostLost(T, A, "h1"), THERE, Anywhere()),
        (HostLost(T, A, "h1", moves=True), THERE, On("h1")),
        (Lead(), None, Anywhere((LEAD,))),
        (TurnTrain(A), None, Here()),
        (SyncForge(A), None, Here()),
        (Tidy(), None, Here()),
    ],
)
def test_a_job_is_done_where_what_it_works_on_is(job: Job, task: Task | None, place: Place) -> None:
    assert place_of(job, task, ("gpu",)) == place


@pytest.mark.parametrize(
    ("session", "task", "host"),
    [
        (a_session(), THERE, "h1"),
        (a_session(), HERE, ""),
        (replace(a_session(), host="h2"), THERE, "h2"),
        (replace(a_session(), host="h2"), HERE, "h2"),
        (None, THERE, "h1"),
    ],
)
def test_a_session_is_attended_to_on_its_own_host_whatever_host_its_task_has(
    session, task, host
) -> None:
    job = Attend(SessionId("s"), T, A)

    assert host_of(session, task) == host
    assert place_of(job, task, session=session) == (On(host) if host else Anywhere())
    assert (session_of(job), session_of(CarryOut(T, A))) == ("s", None)


def test_jobs_that_need_the_same_are_of_one_class() -> None:
    assert class_of(["gpu", "agent:claude", "gpu"]) == "agent:claude+gpu"
    assert class_of([]) == ANY
    assert covers(["gpu", "agent:claude"], "agent:claude+gpu")
    assert not covers(["gpu"], "agent:claude+gpu")
    assert covers([], ANY)


@pytest.mark.parametrize(
    ("job", "stops"),
    [
        (Evaluate(T, A, "k"), True),
        (TEST, True),
        (Attend(SessionId("s"), T, A), True),
        (Lead(), True),
        (CarryOut(T, A), False),
        (HostLost(T, A, "h1"), False),
        (TurnTrain(A), False),
        (SyncForge(A), False),
        (Tidy(), False),
    ],
)
def test_long_jobs_stop_when_they_are_called_off_and_the_others_come_to_their_end(
    job, stops
) -> None:
    assert stops_early(job) is stops


def test_every_kind_has_a_limit_that_one_project_alone_does_not_use_up() -> None:
    assert set(LIMITS) == set(Kind)
    for kind in (Kind.START, Kind.JUDGE, Kind.TEST, Kind.LAND, Kind.FORGE):
        assert LIMITS[kind].of_project < LIMITS[kind].all


@given(
    st.frozensets(projects),
    st.dictionaries(projects, st.integers(1, 5)),
    st.dictionaries(projects, st.integers(0, 9)),
    limits,
)
def test_the_one_with_the_fewest_at_work_is_next_and_no_limit_is_passed(
    waiting, running, served, limit
) -> None:
    chosen = next_project(waiting, running, served, limit)

    may = [it for it in waiting if running.get(it, 0) < limit.of_project]
    free = sum(running.values()) < limit.all
    assert (chosen is not None) == bool(may and free)  # no place stays empty
    if chosen is not None:
        assert chosen in may
        assert running.get(chosen, 0) == min(running.get(it, 0) for it in may)


@given(
    st.dictionaries(projects, st.integers(1, 40), min_size=2),
    st.lists(projects, max_size=60),
    limits,
)
def test_over_any_story_two_projects_that_both_wait_are_served_alike(jobs, ends, limit) -> None:
    """`ends` says whose job ends next; a project with none running is passed over."""
    left, running, served = dict(jobs), Counter[ProjectId](), dict[ProjectId, int]()
    turns, got = 0, Counter[ProjectId]()
    for ending in (None, *ends):
        if ending is not None and running[ending]:
            running[ending] -= 1
        while chosen := next_project([it for it in left if left[it]], +running, served, limit):
            turns += 1
            left[chosen] -= 1
            running[chosen] += 1
            served[chosen] = turns
            got[chosen] += 1
        assert sum(running.values()) <= limit.all
        assert all(running[it] <= limit.of_project for it in running)
        still = [it for it in left if left[it]]
        if still and sum(running.values()) < limit.all:
            assert all(running[it] == limit.of_project for it in still)
        fewest = min((running[it] for it in still), default=0)
        most = max((running[it] for it in still), default=0)
        assert not still or not ends or most - fewest <= max(1, limit.of_project)


def test_a_project_that_comes_late_gets_the_next_place_whatever_waits_before_it() -> None:
    limit, running, served = Limit(4, 4), {A: 4}, {A: 4}
    late = ProjectId("late")
    assert next_project([A, late], running, served, limit) is None

    running[A] = 3  # one of the greedy project's jobs ends

    assert next_project([A, late], running, served, limit) == late
