"""Why a session is over: nobody's fault, the plan's, ours, or the agent's own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lockgate.core.lifecycle.decision import Decision, MirrorTask, SpawnAgent
from lockgate.core.lifecycle.sessions import LIMIT_WAIT, session_ended
from lockgate.core.model.agents import End, Ending, Exit, Report
from lockgate.core.model.events import (
    AgentCrashed,
    AttemptFailed,
    SessionEnded,
    SessionInterrupted,
    StatusChanged,
    UsageLimited,
)
from lockgate.core.model.limits import ESCALATION_THRESHOLD, RetryConfig, Strategy
from lockgate.core.model.task import Cause, IterationOutcome, IterationRecord, Role, Status, Task
from tests.given import (
    FAIL,
    FEEDBACK,
    HANDOFF,
    NOW,
    PASS,
    RULES,
    a_session,
    a_task,
    evidence,
    taken,
)

S = Status
OWNERS = {S.WORKING: Role.WORKER, S.AGENT_REVIEW: Role.REVIEWER}
THEN = evidence(a_task()).now


def ended(task: Task, ending: Ending, body: str = "", **report: object) -> Decision:
    role = OWNERS.get(task.status, Role.WORKER)
    session = a_session(role, round=task.review_round)
    said = Report(**report)  # type: ignore[arg-type]  # checked at run time
    seen = evidence(task, body, session=session)
    return taken(session_ended(seen, End(Exit(ending=ending), said)))


def counters(task: Task) -> tuple[int, int, int, int]:
    return task.crash_count, task.failed_attempts, task.iteration, task.review_round


SEATS = {Role.WORKER: "", Role.REVIEWER: "review.general"}


def kinds(decision: Decision) -> list[type]:
    return [type(event) for event in decision.events]


@pytest.mark.parametrize(("status", "role"), OWNERS.items())
def test_an_interrupted_session_is_asked_for_again_and_no_counter_moves(status, role) -> None:
    task = a_task(status, crash_count=1, failed_attempts=4, review_round=1)

    decision = ended(task, Ending.INTERRUPTED)

    assert decision.task.status is status
    assert counters(decision.task) == counters(task)
    assert not decision.task.dead
    assert decision.effects == (MirrorTask(), SpawnAgent(role, task.rev + 1, seat=SEATS[role]))
    assert kinds(decision) == [SessionInterrupted, SessionEnded]


def test_the_worker_after_an_interruption_is_the_one_that_the_task_listens_to() -> None:
    task = a_task()

    decision = ended(task, Ending.INTERRUPTED)

    assert decision.task.generation == task.rev + 1


@pytest.mark.parametrize(("status", "role"), OWNERS.items())
def test_a_usage_limit_parks_the_task_and_is_neither_crash_nor_attempt(status, role) -> None:
    task = a_task(status, crash_count=1, failed_attempts=4, review_round=1)

    decision = ended(task, Ending.EXITED, limited_until=NOW + 9000)

    assert decision.task.status is status
    assert counters(decision.task) == counters(task)
    assert decision.task.not_before == NOW + 9000
    assert decision.effects == (MirrorTask(), SpawnAgent(role, task.rev + 1, seat=SEATS[role]))
    assert UsageLimited(a_session().id, NOW + 9000) in decision.events


@given(says=st.floats(allow_nan=False, allow_infinity=False))
def test_a_parked_task_always_waits_and_five_minutes_where_no_time_to_come_is_said(says) -> None:
    decision = ended(a_task(), Ending.EXITED, limited_until=says)

    assert decision.task.not_before > THEN
    assert decision.task.not_before == (says if says > THEN else THEN + LIMIT_WAIT)


def test_where_a_limit_does_not_say_when_it_ends_the_task_waits_for_300_seconds() -> None:
    decision = ended(a_task(), Ending.EXITED, limited_until=0.0)

    assert decision.task.not_before == THEN + 300


@pytest.mark.parametrize("status", OWNERS)
def test_a_session_that_was_ended_on_somebodys_word_is_only_marked_dead(status) -> None:
    task = a_task(status, crash_count=1, failed_attempts=4, review_round=1)

    decision = ended(task, Ending.ENDED)

    assert decision.task.status is status
    assert counters(decision.task) == counters(task)
    assert decision.task.dead
    assert decision.effects == (MirrorTask(),)
    assert kinds(decision) == [SessionEnded]


def test_an_agent_that_never_began_for_want_of_a_service_needs_a_human_and_is_no_crash() -> None:
    task = a_task(S.WORKING, failed_attempts=4)
    seen = evidence(task, session=a_session(Role.WORKER))
    exit = Exit(ending=Ending.SERVICE, why="db was not ready within 30 s; it said: no space")

    decision = taken(session_ended(seen, End(exit)))

    assert (decision.task.status, decision.task.cause) == (S.STUCK, Cause.SERVICE)
    assert counters(decision.task)[:2] == (0, 4)
    [moved] = [it for it in decision.events if isinstance(it, StatusChanged)]
    assert moved.reason.startswith("its agent was not started, for a service was not ready: db was")
    assert not {AgentCrashed, AttemptFailed} & set(kinds(decision))


@pytest.mark.parametrize("ending", [Ending.MEMORY, Ending.DISK])
@pytest.mark.parametrize("status", OWNERS)
def test_a_session_that_used_up_memory_or_disk_needs_a_human_and_is_no_crash(
    status, ending
) -> None:
    task = a_task(status, failed_attempts=4, review_round=1)
    seen = evidence(task, session=a_session(OWNERS[status], round=task.review_round))
    why = "its workspace and HOME hold more than [sandbox] session_disk_mb = 8 allows"

    decision = taken(session_ended(seen, End(Exit(ending=ending, why=why))))

    assert (decision.task.status, decision.task.cause) == (S.STUCK, Cause.BUDGET)
    assert counters(decision.task)[:2] == (0, 4)
    [moved] = [it for it in decision.events if isinstance(it, StatusChanged)]
    assert moved.reason == f"its session was ended: {why}"
    assert not {AgentCrashed, AttemptFailed} & set(kinds(decision))
    assert not any(isinstance(it, SpawnAgent) for it in decision.effects)


@pytest.mark.req("R88", "R90", "R91")
@pytest.mark.parametrize("ending", Ending)
@pytest.mark.parametrize(
    ("status", "body", "target"),
    [
        (S.WORKING, HANDOFF, S.AGENT_REVIEW),
        (S.AGENT_REVIEW, PASS, S.REVIEWING),
        (S.AGENT_REVIEW, FAIL, S.WORKING),
    ],
)
def test_an_artifact_counts_however_its_writer_ended(ending, status, body, target) -> None:
    decision = ended(a_task(status, review_round=1), ending, body, limited_until=0.0)

    assert decision.task.status is target


@pytest.mark.req("R89", "R98", "R101")
@pytest.mark.parametrize(
    ("ending", "told"),
    [
        (Ending.EXITED, "section)"),
        (Ending.WALL_CLOCK, "section, ended as wall-clock)"),
        (Ending.SILENT, "section, ended as silent)"),
        (Ending.LOST, "section, ended as lost)"),
    ],
)
def test_every_other_end_without_an_artifact_is_a_crash_that_says_why(ending, told) -> None:
    decision = ended(a_task(), ending, failure="no such model")

    [crashed] = [it for it in decision.events if isinstance(it, AgentCrashed)]
    assert crashed.reason == (
        f"the agent stopped without handing in (TASK.md has no '## Handoff' {told}: no such model"
    )
    assert counters(decision.task)[:2] == (1, 1)


BLAMELESS = st.sampled_from(
    [
        (Ending.INTERRUPTED, None),
        (Ending.ENDED, None),
        (Ending.EXITED, 0.0),
        (Ending.WALL_CLOCK, NOW + 9000),
        (Ending.LOST, 5.0),
    ]
)


@given(
    status=st.sampled_from(list(OWNERS)),
    how=BLAMELESS,
    crashes=st.integers(0, 3),
    attempts=st.integers(0, ESCALATION_THRESHOLD),
    times=st.integers(1, 4),
)
def test_what_is_nobodys_fault_never_counts_and_never_moves_a_task(
    status, how, crashes, attempts, times
) -> None:
    ending, limit = how
    before = task = a_task(status, crash_count=crashes, failed_attempts=attempts)

    for _ in range(times):
        role = OWNERS[status]
        session = a_session(role, generation=task.generation if role is Role.WORKER else 3)
        end = End(Exit(ending=ending), Report(limited_until=limit))
        decision = taken(session_ended(evidence(task, session=session), end))
        task = decision.task
        assert AttemptFailed not in kinds(decision)
        assert AgentCrashed not in kinds(decision)

    assert task.status is status
    assert counters(task) == counters(before)


# --- a full context -------------------------------------------------------------------------------


def rules(strategy: Strategy = Strategy.AUTO) -> object:
    return replace(RULES, retry=RetryConfig(strategy=strategy))


@pytest.mark.req("R138", "R139", "R140")
@pytest.mark.parametrize(
    ("strategy", "fresh"),
    [(Strategy.AUTO, True), (Strategy.FRESH, True), (Strategy.SAME, False)],
)
def test_a_worker_whose_context_is_full_is_followed_as_the_strategy_says(strategy, fresh) -> None:
    task = a_task(pinned=rules(strategy))

    crashed = ended(task, Ending.EXITED, exhausted=True)
    parked = ended(task, Ending.EXITED, exhausted=True, limited_until=0.0)

    for decision in (crashed, parked):
        assert decision.task.exhausted
        assert decision.effects[-1] == SpawnAgent(Role.WORKER, task.rev + 1, fresh=fresh)


@pytest.mark.req("R138")
@pytest.mark.parametrize("strategy", Strategy)
def test_a_worker_that_only_fell_is_asked_for_as_the_same_one(strategy) -> None:
    failed = IterationRecord(
        iteration=1, agent_id="a", outcome=IterationOutcome.FAILED_WITH_RETRY, feedback=FEEDBACK
    )
    task = a_task(pinned=rules(strategy), history=(failed, failed), iteration=3)

    decision = ended(task, Ending.INTERRUPTED)

    assert decision.effects[-1] == SpawnAgent(Role.WORKER, task.rev + 1, fresh=False)


@pytest.mark.req("R140")
def test_a_full_context_that_is_told_of_after_the_signal_makes_the_next_worker_a_fresh_one() -> (
    None
):
    judged = a_task(S.AGENT_REVIEW, review_round=1)
    end = End(report=Report(exhausted=True))
    left = taken(session_ended(evidence(judged, session=a_session()), end)).task

    failed = ended(replace(left, rev=9), Ending.EXITED, FAIL)

    assert left.exhausted
    assert failed.effects[-1] == SpawnAgent(Role.WORKER, 10, fresh=True)


def test_a_reviewers_full_context_says_nothing_of_the_workers() -> None:
    decision = ended(a_task(S.AGENT_REVIEW), Ending.EXITED, exhausted=True)

    assert not decision.task.exhausted


# --- a human's own session ------------------------------------------------------------------------


@pytest.mark.parametrize("status", [S.WORKING, S.CLARIFICATION, S.STUCK])
@pytest.mark.parametrize("ending", Ending)
@pytest.mark.parametrize("body", ["", HANDOFF])
def test_a_human_who_leaves_moves_nothing_and_crashes_nothing(status, ending, body) -> None:
    task = a_task(status, taken_over=True, crash_count=1)
    session = a_session(interactive=True)
    end = End(Exit(ending=ending), Report(limited_until=0.0))

    decision = taken(session_ended(evidence(task, body, session=session), end))

    assert (decision.task.status, decision.task.crash_count) == (status, 1)
    assert (decision.task.dead, decision.task.taken_over) == (True, True)
    assert decision.effects == (MirrorTask(),)


def test_a_crash_in_the_last_attempt_pauses_whatever_the_program_said() -> None:
    task = a_task(failed_attempts=ESCALATION_THRESHOLD - 1)

    decision = ended(task, Ending.SILENT, failure="it hung")

    assert decision.task.cause is Cause.ESCALATION_THRESHOLD


@pytest.mark.parametrize("status", OWNERS)
def test_a_refused_login_is_its_own_cause_and_counts_nothing(status) -> None:
    task = a_task(status, crash_count=1, failed_attempts=4, review_round=1)

    decision = ended(task, Ending.EXITED, refused=True, failure="status 401")

    assert (decision.task.status, decision.task.cause) == (S.STUCK, Cause.LOGIN)
    assert decision.task.failed_attempts == 4
    [moved] = [it for it in decision.events if isinstance(it, StatusChanged)]
    assert moved.reason == (
        "scripted's login was refused (status 401); run: lockgate auth scripted,"
        f" then: lockgate task update {task.id} --status {status}"
    )
    assert not {AgentCrashed, AttemptFailed} & set(kinds(decision))
    assert not any(isinstance(it, SpawnAgent) for it in decision.effects)


def test_the_agent_whose_login_was_refused_is_named_where_it_is_not_the_tasks_own() -> None:
    task = a_task(S.AGENT_REVIEW)
    seen = evidence(task, session=a_session(Role.REVIEWER, agent="codex"))

    decision = taken(session_ended(seen, End(report=Report(refused=True))))

    [moved] = [it for it in decision.events if isinstance(it, StatusChanged)]
    assert moved.reason.startswith("codex's login was refused; run: lockgate auth codex")
