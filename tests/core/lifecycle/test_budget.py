"""What agents use up: added up at each end, and the limit at which a human decides."""

from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lockgate.core.lifecycle.decision import (
    Decision,
    EndSessions,
    MirrorTask,
    NotifyHuman,
    SpawnAgent,
)
from lockgate.core.lifecycle.evaluation import evaluation_failed
from lockgate.core.lifecycle.map import ARROWS
from lockgate.core.lifecycle.moves import Move, attempt_failed, move, resumed
from lockgate.core.lifecycle.sessions import respawned, session_ended
from lockgate.core.lifecycle.transition import within_budget
from lockgate.core.model.agents import End, Ending, Exit, Report, Usage
from lockgate.core.model.events import (
    AgentCrashed,
    AttemptFailed,
    AutoAdvanced,
    Escalation,
    SessionEnded,
    SessionInterrupted,
    StatusChanged,
    UsageLimited,
)
from lockgate.core.model.limits import ESCALATION_THRESHOLD, MAX_CRASHES
from lockgate.core.model.task import Actor, Budget, Cause, Role, Status, Stuck, Task
from tests.given import (
    FAIL,
    FEEDBACK,
    HANDOFF,
    PASS,
    RULES,
    a_session,
    a_task,
    evidence,
    taken,
)

S = Status
LIMITED = replace(RULES, budget=Budget(usd=5.0, tokens=1000, minutes=10))
SPENT = [
    pytest.param({"usd": 5.0}, "its agents have cost 5.00 USD of 5.00", id="usd"),
    pytest.param({"tokens": 1000}, "its agents have used 1000 tokens of 1000", id="tokens"),
    pytest.param({"seconds": 600.0}, "its agents have worked 10 minutes of 10", id="minutes"),
]


def a_limited_task(status: Status = S.WORKING, **fields: object) -> Task:
    return a_task(status, pinned=LIMITED, **fields)


def ended(task: Task, body: str = "", end: End | None = None, role: Role = Role.WORKER) -> Decision:
    session = a_session(role, round=task.review_round)
    return taken(session_ended(evidence(task, body, session=session), end or End()))


def kinds(things: object) -> list[type]:
    return [type(thing) for thing in things]  # type: ignore[attr-defined]  # events or effects


# --- adding up ----------------------------------------------------------------------------------


@given(
    runs=st.lists(
        st.tuples(
            st.floats(0, 100), st.integers(0, 10**9), st.floats(0, 1e6), st.sampled_from(Role)
        ),
        max_size=6,
    )
)
def test_cost_and_tokens_of_all_runs_are_added_up_and_the_time_of_workers(runs) -> None:
    task = a_task(S.AGENT_REVIEW, usd=0.25, tokens=7, seconds=2.0)

    for usd, tokens, seconds, role in runs:
        run = End(Exit(ending=Ending.ENDED, seconds=seconds), Report(), Usage(usd, tokens))
        task = ended(task, end=run, role=role).task

    assert isclose(task.usd, 0.25 + sum(usd for usd, _, _, _ in runs))
    assert task.tokens == 7 + sum(tokens for _, tokens, _, _ in runs)
    assert isclose(
        task.seconds, 2.0 + sum(seconds for _, _, seconds, role in runs if role is Role.WORKER)
    )


@pytest.mark.parametrize("status", S)
def test_what_a_run_cost_is_counted_wherever_its_task_stands(status) -> None:
    late = a_session(generation=2)
    run = End(Exit(ending=Ending.EXITED, seconds=3.0), Report(), Usage(0.5, 10))

    task = taken(session_ended(evidence(a_task(status), session=late), run)).task

    assert (task.status, task.usd, task.tokens, task.seconds) == (status, 0.5, 10, 3.0)


def test_a_session_keeps_what_its_program_reported_and_the_id_it_resumes_by() -> None:
    said = Report(native="thread-1", usage=Usage(2.0, 800), cumulative=True)

    decision = ended(a_task(), end=End(report=said, spent=Usage(0.5, 200)))

    assert decision.session is not None
    assert (decision.session.native, decision.session.usd) == ("thread-1", 2.0)
    assert decision.session.tokens == 800
    assert (decision.task.usd, decision.task.tokens) == (0.5, 200)


def test_a_program_that_does_not_say_its_id_keeps_the_one_it_was_given() -> None:
    session = a_session(native="given")

    decision = taken(session_ended(evidence(a_task(), session=session)))

    assert decision.session is not None
    assert decision.session.native == "given"


def test_an_end_without_a_session_is_a_workers() -> None:
    run = End(Exit(ending=Ending.EXITED, seconds=3.0))

    decision = taken(session_ended(evidence(a_task()), run))

    assert (decision.task.seconds, decision.session) == (3.0, None)


# --- the limit ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("used", "why"), SPENT)
def test_a_task_that_has_used_up_its_budget_is_stuck_where_a_worker_would_begin(used, why) -> None:
    task = a_limited_task(S.AGENT_REVIEW, review_round=1, **used)

    decision = ended(task, FAIL, role=Role.REVIEWER)

    assert (decision.task.status, decision.task.cause) == (S.STUCK, Cause.BUDGET)
    assert decision.task.generation == task.generation
    assert decision.task.since == decision.task.rev == task.rev + 1
    assert decision.effects == (MirrorTask(), EndSessions(8), NotifyHuman(S.STUCK, "stuck: budget"))
    [changed] = [it for it in decision.events if isinstance(it, StatusChanged)]
    assert (changed.source, changed.target) == (S.AGENT_REVIEW, S.STUCK)
    assert changed.reason == why
    assert AutoAdvanced in kinds(decision.events)


@pytest.mark.parametrize(("used", "why"), SPENT)
def test_the_run_that_uses_up_the_budget_is_counted_before_the_next_is_asked_for(used, why) -> None:
    spent = Usage(float(used.get("usd", 0)), int(used.get("tokens", 0)))
    run = End(
        Exit(ending=Ending.INTERRUPTED, seconds=float(used.get("seconds", 0))), Report(), spent
    )

    decision = ended(a_limited_task(), end=run)

    assert (decision.task.status, decision.task.cause) == (S.STUCK, Cause.BUDGET)
    assert (decision.task.crash_count, decision.task.failed_attempts) == (0, 0)
    assert kinds(decision.events) == [SessionInterrupted, StatusChanged, SessionEnded]
    assert decision.task.phase == Stuck(
        "fix-login-3f9a.3",
        1,
        replace(FEEDBACK, gate_name="", findings=(), summary=why, suggested_action=""),
    )


def test_a_worker_that_crashes_with_its_budget_used_up_is_charged_and_then_stuck() -> None:
    decision = ended(a_limited_task(usd=9.0))

    assert (decision.task.status, decision.task.cause) == (S.STUCK, Cause.BUDGET)
    assert (decision.task.failed_attempts, decision.task.crash_count) == (1, 0)
    assert {AgentCrashed, AttemptFailed} < set(kinds(decision.events))


def test_a_usage_limit_with_the_budget_used_up_is_told_and_the_time_is_kept() -> None:
    run = End(report=Report(limited_until=9e9))

    decision = ended(a_limited_task(usd=9.0), end=run)

    assert (decision.task.status, decision.task.not_before) == (S.STUCK, 9e9)
    assert UsageLimited in kinds(decision.events)


def test_what_the_gates_found_is_not_lost_with_the_budget() -> None:
    task = a_limited_task(S.AGENT_REVIEW, usd=9.0)

    decision = evaluation_failed(evidence(task), FEEDBACK, review=False)

    assert decision.task.cause is Cause.BUDGET
    assert decision.task.phase == Stuck("fix-login-3f9a.3", 1, FEEDBACK)
    assert (decision.task.iteration, decision.task.failed_attempts) == (1, 1)


def test_steps_that_escalate_with_the_budget_used_up_get_no_fresh_worker() -> None:
    decision = attempt_failed(evidence(a_limited_task(tokens=1000)), "the steps escalated")

    assert (decision.task.status, decision.task.cause) == (S.STUCK, Cause.BUDGET)
    assert decision.task.failed_attempts == 1


@pytest.mark.parametrize(
    ("status", "body", "target", "role"),
    [
        (S.WORKING, HANDOFF, S.AGENT_REVIEW, Role.WORKER),
        (S.AGENT_REVIEW, PASS, S.REVIEWING, Role.REVIEWER),
        (S.AGENT_REVIEW, "", S.AGENT_REVIEW, Role.REVIEWER),
        (S.STUCK, "", S.STUCK, Role.WORKER),
    ],
)
def test_work_that_is_done_goes_on_though_its_budget_is_used_up(status, body, target, role) -> None:
    task = a_limited_task(status, review_round=1, usd=9.0, tokens=9999, seconds=9999.0)

    decision = ended(task, body, role=role)

    assert decision.task.status is target
    assert decision.task.cause is not Cause.BUDGET


def test_nobody_is_asked_for_where_respawn_is_manual_and_so_nothing_is_stopped() -> None:
    rules = replace(LIMITED, respawn=False)

    decision = ended(a_task(pinned=rules, usd=9.0))

    assert (decision.task.status, decision.task.dead) == (S.WORKING, True)


@pytest.mark.req("R183", "R187")
def test_the_pause_wins_over_the_budget() -> None:
    task = a_limited_task(usd=9.0, failed_attempts=ESCALATION_THRESHOLD - 1)
    judged = replace(task, status=S.AGENT_REVIEW)

    for decision in (
        ended(task),
        attempt_failed(evidence(task), "again"),
        evaluation_failed(evidence(judged), FEEDBACK, review=False),
    ):
        assert decision.task.cause is Cause.ESCALATION_THRESHOLD
        assert Escalation in kinds(decision.events)


@pytest.mark.req("R100")
def test_the_second_crash_is_a_crash_and_not_the_budgets() -> None:
    decision = ended(a_limited_task(usd=9.0, crash_count=MAX_CRASHES - 1))

    assert decision.task.cause is Cause.CRASH_THRESHOLD


amounts = st.builds(
    Budget, st.sampled_from([0.0, 1.0, 5.0]), st.sampled_from([0, 10]), st.sampled_from([0, 2])
)


@given(
    budget=amounts,
    usd=st.sampled_from([0.0, 0.99, 1.0, 5.0]),
    tokens=st.sampled_from([0, 9, 10]),
    seconds=st.sampled_from([0.0, 119.9, 120.0]),
    status=st.sampled_from([S.WORKING, S.AGENT_REVIEW]),
    body=st.sampled_from(["", HANDOFF, PASS, FAIL]),
)
def test_a_worker_is_asked_for_only_while_something_is_left_of_every_limit(
    budget, usd, tokens, seconds, status, body
) -> None:
    task = a_task(
        status, pinned=replace(RULES, budget=budget), usd=usd, tokens=tokens, seconds=seconds
    )
    role = Role.WORKER if status is S.WORKING else Role.REVIEWER
    left = (
        (not budget.usd or usd < budget.usd)
        and (not budget.tokens or tokens < budget.tokens)
        and (not budget.minutes or seconds < budget.minutes * 60)
    )

    decision = ended(task, body, role=role)
    free = ended(replace(task, pinned=RULES), body, role=role)

    asks = SpawnAgent(Role.WORKER, 8) in decision.effects
    wanted = SpawnAgent(Role.WORKER, 8) in free.effects
    assert asks == (wanted and left)
    assert (decision.task.cause is Cause.BUDGET) == (wanted and not left)
    place = status
    for change in [it for it in decision.events if isinstance(it, StatusChanged)]:
        assert (place, change.target) in ARROWS
        place = change.target
    assert decision.task.status is place


def test_a_decision_that_asks_for_no_worker_is_left_as_it_is() -> None:
    seen = evidence(a_limited_task(usd=9.0))
    decision = Decision(seen.task, effects=(SpawnAgent(Role.REVIEWER, 8), MirrorTask()))

    assert within_budget(seen, decision) is decision


# --- a human decides ----------------------------------------------------------------------------


USED = {"usd": 9.0, "tokens": 9999, "seconds": 9999.0}


def used(task: Task) -> tuple[float, int, float]:
    return task.usd, task.tokens, task.seconds


def test_a_human_who_sends_a_stuck_task_on_gives_it_its_budget_anew() -> None:
    task = a_limited_task(S.STUCK, cause=Cause.BUDGET, taken_over=True, **USED)

    after = taken(move(evidence(task, "", Actor.HUMAN), Move(S.WORKING))).task

    assert used(after) == (0.0, 0, 0.0)
    assert not after.taken_over
    assert taken(session_ended(evidence(after))).task.status is S.WORKING


def test_nobody_else_gives_a_budget_anew() -> None:
    task = a_limited_task(S.STUCK, **USED)

    by_orchestrator = taken(move(evidence(task), Move(S.WORKING))).task
    judged = taken(move(evidence(task, "", Actor.HUMAN), Move(S.AGENT_REVIEW))).task
    asked_for = taken(respawned(evidence(task, "", Actor.HUMAN), alive=False)).task

    for after in (by_orchestrator, judged, asked_for):
        assert used(after) == (9.0, 9999, 9999.0)


def test_a_human_who_resumes_a_paused_task_gives_it_its_budget_anew() -> None:
    paused = a_limited_task(S.PAUSED_FOR_INTERVENTION, **USED)

    assert used(taken(resumed(evidence(paused, "", Actor.HUMAN), "")).task) == (0.0, 0, 0.0)
