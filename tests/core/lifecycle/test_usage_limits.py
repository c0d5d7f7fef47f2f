"""A usage limit: noted with the session that hit it, and who goes on or waits because of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.core.lifecycle.decision import Decision, MirrorTask, SpawnAgent
from lockgate.core.lifecycle.sessions import (
    LIMIT_WAIT,
    Place,
    kept_waiting,
    session_ended,
    session_started,
)
from lockgate.core.model.agents import End, Ending, Exit, Report
from lockgate.core.model.events import AgentReplaced, UsageHeld
from lockgate.core.model.task import Role, Status, Task
from tests.given import a_session, a_task, evidence, refused, taken

S = Status
NAMES = st.sampled_from(("claude", "codex", "gemini"))
STANDS_IN = SpawnAgent(Role.WORKER, 3, agent="codex", instead_of="claude")


def begins(task: Task, spawn: SpawnAgent) -> Decision:
    return taken(session_started(evidence(task), spawn, "0" * 64, Place(login="0f")))


@pytest.mark.parametrize(("says", "kept"), [(None, 0.0), (9e9, 9e9)])
def test_a_session_keeps_until_when_its_login_is_limited(says, kept) -> None:
    seen = evidence(a_task(), session=a_session())

    closed = taken(session_ended(seen, End(report=Report(limited_until=says)))).session

    assert closed is not None
    assert closed.limited_until == kept


def test_a_limit_that_does_not_say_when_it_ends_is_kept_for_five_minutes() -> None:
    seen = evidence(a_task(), session=a_session())

    closed = taken(session_ended(seen, End(report=Report(limited_until=0.0)))).session

    assert closed is not None
    assert closed.limited_until == seen.now + LIMIT_WAIT


def test_a_session_that_was_ended_while_it_waited_for_a_limit_is_limited_whatever_it_said() -> None:
    end = End(Exit(ending=Ending.LIMITED), Report(failure="no"))

    decision = taken(session_ended(evidence(a_task(), session=a_session()), end))

    assert decision.task.not_before == evidence(a_task()).now + LIMIT_WAIT
    assert (decision.task.crash_count, decision.task.failed_attempts) == (0, 0)


def test_a_session_keeps_what_it_logged_in_with() -> None:
    begun = begins(a_task(generation=3), SpawnAgent(Role.WORKER, 3)).session

    assert begun is not None
    assert begun.login == "0f"


def test_the_agent_that_stands_in_is_the_tasks_agent_and_the_first_is_remembered() -> None:
    decision = begins(a_task(generation=3, agent="claude", not_before=9e9), STANDS_IN)

    assert (decision.task.agent, decision.task.instead_of) == ("codex", "claude")
    assert decision.task.not_before == 0
    assert AgentReplaced("claude", "codex", Role.WORKER) in decision.events
    assert decision.session is not None
    assert decision.session.agent == "codex"


def test_the_agent_that_a_human_chose_comes_back_as_itself() -> None:
    task = a_task(generation=3, agent="codex", instead_of="claude")
    back = SpawnAgent(Role.WORKER, 3, agent="claude", instead_of="codex")

    decision = begins(task, back)

    assert (decision.task.agent, decision.task.instead_of) == ("claude", "")


def test_a_reviewer_that_stands_in_leaves_the_tasks_agent_as_it_is() -> None:
    task = a_task(S.AGENT_REVIEW, agent="claude")
    spawn = SpawnAgent(Role.REVIEWER, 7, agent="codex", instead_of="claude")

    decision = begins(task, spawn)

    assert (decision.task.agent, decision.task.instead_of) == ("claude", "")
    assert AgentReplaced("claude", "codex", Role.REVIEWER) in decision.events


@given(agents=st.lists(NAMES, max_size=6))
def test_however_agents_change_the_one_that_a_human_chose_is_known(agents) -> None:
    task = a_task(generation=3, agent="claude")
    for agent in agents:
        before = "" if agent == task.agent else task.agent
        spawn = SpawnAgent(Role.WORKER, 3, agent=agent, instead_of=before)
        task = begins(task, spawn).task

        assert task.agent == agent
        assert (task.instead_of or task.agent) == "claude"


@pytest.mark.parametrize("status", [S.WORKING, S.AGENT_REVIEW])
def test_a_task_that_does_not_go_on_by_itself_waits_for_a_human(status) -> None:
    task = a_task(status, generation=3, crash_count=1, failed_attempts=2, review_round=1)
    spawn = SpawnAgent(Role.WORKER, 3)
    if status is S.AGENT_REVIEW:
        seat = task.seats[0]
        spawn = SpawnAgent(Role.REVIEWER, seat.generation, seat=seat.name)

    decision = taken(kept_waiting(evidence(task), spawn, 9e9))

    assert decision.task.status is status
    assert (decision.task.dead, decision.task.not_before) == (True, 9e9)
    assert (decision.task.crash_count, decision.task.failed_attempts) == (1, 2)
    assert decision.effects == (MirrorTask(),)
    assert decision.events == (UsageHeld(9e9),)


def test_a_task_that_moved_on_does_not_wait_for_an_agent_of_before() -> None:
    refusal = refused(kept_waiting(evidence(a_task(generation=9)), STANDS_IN, 9e9))

    assert refusal.why == "it is wanted no more"
