"""An agent that stops politely without handing in: asked once, then counted, in plain words."""

import pytest

from lockgate.core.lifecycle.decision import Decision, MirrorTask, SpawnAgent
from lockgate.core.lifecycle.sessions import asked_to_hand_in, session_ended, session_started
from lockgate.core.model.agents import End, Ending, Exit, Report
from lockgate.core.model.events import AgentAsked, AgentCrashed, SessionEnded, StatusChanged
from lockgate.core.model.task import Cause, Role, Session, Status, Task
from tests.given import HANDOFF, a_session, a_task, evidence, refused, taken

S = Status
SAID = "I have fixed it. Let me know!"
MISSING = "TASK.md has no '## Handoff' section"


def stops(
    task: Task,
    session: Session | None = None,
    body: str = "",
    *,
    code: int | None = 0,
    ending: Ending = Ending.EXITED,
    resumable: bool = True,
    **report: object,
) -> Decision:
    said = Report(**{"said": SAID, **report})  # type: ignore[arg-type]  # checked at run time
    end = End(Exit(ending=ending, code=code), said, resumable=resumable)
    return taken(session_ended(evidence(task, body, session=session or a_session()), end))


def crashes(decision: Decision) -> list[AgentCrashed]:
    return [it for it in decision.events if isinstance(it, AgentCrashed)]


def test_an_agent_that_stops_politely_is_asked_in_the_same_conversation_and_nothing_counts() -> (
    None
):
    task = a_task(crash_count=1, failed_attempts=4)

    decision = stops(task)

    assert (decision.task.crash_count, decision.task.failed_attempts) == (1, 4)
    assert not decision.task.dead
    again = SpawnAgent(Role.WORKER, task.rev + 1, asks=True)
    assert decision.effects == (MirrorTask(), again)
    assert decision.task.generation == again.generation
    asked = AgentAsked(a_session().id, SAID)
    assert decision.events == (asked, SessionEnded(a_session().id, Role.WORKER, seconds=60.0))
    assert decision.task.last_words == SAID


def test_the_session_that_is_asked_knows_that_it_was() -> None:
    task = stops(a_task()).task
    asks = SpawnAgent(Role.WORKER, task.generation, asks=True)

    begun = taken(session_started(evidence(task), asks, "0" * 64))

    assert begun.session is not None
    assert begun.session.asked


def test_an_agent_that_was_asked_and_stops_again_has_crashed_in_words_that_people_know() -> None:
    decision = stops(a_task(), a_session(asked=True))

    [crashed] = crashes(decision)
    assert crashed.reason == f"the agent stopped without handing in ({MISSING}). It said: {SAID}"
    assert (decision.task.crash_count, decision.task.failed_attempts) == (1, 1)
    assert decision.task.last_words == SAID
    assert decision.effects[-1] == SpawnAgent(Role.WORKER, a_task().rev + 1)


def test_the_agent_after_a_crash_may_be_asked_once_as_well() -> None:
    second = a_task(crash_count=1, failed_attempts=1)

    assert stops(second).effects[-1] == SpawnAgent(Role.WORKER, second.rev + 1, asks=True)


def test_where_a_conversation_cannot_be_resumed_a_polite_stop_counts_at_once() -> None:
    [crashed] = crashes(stops(a_task(), resumable=False))

    assert "stopped without handing in" in crashed.reason


@pytest.mark.parametrize(
    "how",
    [
        {"code": 3},
        {"code": None},
        {"failure": "no such model"},
        {"exhausted": True},
        {"code": 0, "ending": Ending.WALL_CLOCK},
        {"code": 0, "ending": Ending.LOST},
    ],
)
def test_only_a_polite_stop_is_asked_about(how) -> None:
    decision = stops(a_task(), **how)

    assert len(crashes(decision)) == 1
    assert not any(isinstance(it, AgentAsked) for it in decision.events)


def test_a_usage_limit_is_no_polite_stop() -> None:
    decision = stops(a_task(), limited_until=0.0)

    assert decision.task.not_before > 0
    assert decision.effects[-1] == SpawnAgent(Role.WORKER, a_task().rev + 1)


def test_a_reviewer_is_not_asked_and_its_stop_is_told_as_its_own() -> None:
    task = a_task(S.AGENT_REVIEW, review_round=1)

    decision = stops(task, a_session(Role.REVIEWER, round=1))

    [crashed] = crashes(decision)
    assert crashed.reason.startswith("the reviewer stopped without a verdict (")
    assert crashed.reason.endswith(f". It said: {SAID}")
    assert decision.task.last_words == ""  # they are its author's, for the next author


def test_a_failure_is_told_as_one_and_not_as_what_the_agent_said() -> None:
    [crashed] = crashes(stops(a_task(), code=1, failure="no such model"))

    assert crashed.reason == (
        f"the agent stopped without handing in ({MISSING}): no such model. It said: {SAID}"
    )


def test_long_last_words_are_told_by_their_end_and_kept_whole() -> None:
    long = "word " * 300 + "the end"

    decision = stops(a_task(), a_session(asked=True), said=long)

    [crashed] = crashes(decision)
    assert len(crashed.reason) < 500
    assert crashed.reason.endswith("the end")
    assert decision.task.last_words == long


def test_a_task_whose_agents_stopped_too_often_says_how_often_and_what_the_last_one_said() -> None:
    decision = stops(a_task(crash_count=1), a_session(asked=True))

    assert (decision.task.status, decision.task.cause) == (S.STUCK, Cause.CRASH_THRESHOLD)
    [moved] = [it for it in decision.events if isinstance(it, StatusChanged)]
    assert moved.reason == (
        "its agents stopped 2 times without handing in; the last time:"
        f" the agent stopped without handing in ({MISSING}). It said: {SAID}"
    )
    assert decision.task.last_words == SAID


def test_what_was_handed_in_makes_the_last_words_old() -> None:
    decision = stops(a_task(last_words="wait"), body=HANDOFF)

    assert (decision.task.status, decision.task.last_words) == (S.AGENT_REVIEW, "")


# --- the Stop hook asks the same, inside the session ----------------------------------------------


def test_a_session_whose_hook_asks_it_is_asked_once() -> None:
    seen = evidence(a_task(), session=a_session())

    first = taken(asked_to_hand_in(seen, SAID))

    assert first.session == a_session(asked=True)
    assert first.events == (AgentAsked(a_session().id, SAID),)
    assert first.effects == (MirrorTask(),)
    again = refused(asked_to_hand_in(evidence(a_task(), session=first.session), SAID))
    assert "already" in again.why


def test_somebody_without_a_session_is_asked_as_well() -> None:
    decision = taken(asked_to_hand_in(evidence(a_task()), ""))

    assert (decision.session, decision.events) == (None, (AgentAsked("", ""),))


@pytest.mark.parametrize("status", [it for it in Status if it is not S.WORKING])
def test_nobody_is_asked_to_hand_in_where_nobody_works(status) -> None:
    assert status in refused(asked_to_hand_in(evidence(a_task(status)), "")).why


def test_a_session_that_is_not_heard_is_not_asked() -> None:
    old = a_session(generation=2)

    assert "newer session" in refused(asked_to_hand_in(evidence(a_task(), session=old), "")).why
