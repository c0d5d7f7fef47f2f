"""What may go, by kind, by the state of its task, and by age."""

import pytest
from msgspec.structs import replace

from lockgate.core.lifecycle.records import is_elsewhere
from lockgate.core.model.task import Status
from lockgate.core.retention import (
    DAY,
    Found,
    Keep,
    Kind,
    Owner,
    is_old,
    may_go,
    owner_of,
)
from tests.given import a_task

NOW = 1000 * DAY
KEEP = Keep()
LIVE = (Status.PENDING, Status.WORKING, Status.AGENT_REVIEW, Status.REVIEWING)
IDLE = (Status.STUCK, Status.PAUSED_FOR_INTERVENTION, Status.CLARIFICATION)
ENDED = (Status.DONE, Status.CANCELLED)
OF_NOBODY = {Kind.SESSION, Kind.LEFTOVER, Kind.LOG, Kind.DELETED, Kind.BACKUP}
AGELESS = {Kind.LOG, Kind.DELETED, Kind.BACKUP}


def found(kind: Kind, days: float = 1000, **more: object) -> Found:
    return Found(kind=kind, name="x", last=NOW - days * DAY, **more)  # type: ignore[arg-type]  # a test's own


def owner(status: Status, days: float = 1000, **more: bool) -> Owner:
    return Owner(status, NOW - days * DAY, **({"landed": False, "busy": False} | more))


def goes(kind: Kind, status: Status, **more: bool) -> bool:
    return may_go(found(kind), owner(status, **more), KEEP, NOW)


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("status", LIVE)
def test_nothing_of_a_live_task_goes(kind, status) -> None:
    assert goes(kind, status) is (kind in AGELESS)


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("status", IDLE)
def test_of_a_task_that_waits_for_a_human_only_its_clone_goes(kind, status) -> None:
    assert goes(kind, status) is (kind in AGELESS or kind is Kind.WORKSPACE)


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("status", ENDED)
def test_of_an_ended_task_all_goes_but_a_branch_that_did_not_land(kind, status) -> None:
    assert goes(kind, status) is (kind is not Kind.BRANCH)
    assert goes(kind, status, landed=True) is (kind is not Kind.BRANCH or status is Status.DONE)


@pytest.mark.parametrize("kind", Kind)
def test_what_belongs_to_no_task_goes_only_where_nobody_wrote_it(kind) -> None:
    assert may_go(found(kind), None, KEEP, NOW) is (kind in OF_NOBODY)


@pytest.mark.parametrize("kind", Kind)
def test_nothing_goes_before_its_days_are_over(kind) -> None:
    days: float = getattr(KEEP, kind)
    done = owner(Status.DONE, landed=True)

    assert may_go(found(kind, days), done, KEEP, NOW)
    assert not may_go(found(kind, days - 0.1), done, KEEP, NOW)
    late = replace(done, updated=NOW - (days - 0.1) * DAY)
    assert not may_go(found(kind, days), late, KEEP, NOW)


@pytest.mark.parametrize("kind", Kind)
def test_nothing_goes_that_is_used_or_whose_task_is_busy(kind) -> None:
    assert not is_old(found(kind, used=True), KEEP, NOW)
    assert not may_go(found(kind), owner(Status.DONE, landed=True, busy=True), KEEP, NOW)


@pytest.mark.parametrize(
    ("alive", "to_do", "taken", "busy"),
    [
        (False, False, False, False),
        (True, False, False, True),
        (False, True, False, True),
        (False, False, True, True),
    ],
)
def test_a_task_is_busy_where_a_session_an_effect_or_a_human_is_at_it(
    alive, to_do, taken, busy
) -> None:
    task = replace(a_task(Status.DONE), taken_over=taken, landed="c", updated=7.0)

    assert owner_of(task, alive=alive, to_do=to_do) == Owner(Status.DONE, 7.0, True, busy)


def test_a_task_is_elsewhere_only_where_this_host_and_the_tasks_have_different_names() -> None:
    there = replace(a_task(), host="h2")

    assert is_elsewhere(there, "h1")
    assert not is_elsewhere(there, "h2")
    assert not is_elsewhere(there, "")
    assert not is_elsewhere(replace(there, host=""), "h1")
