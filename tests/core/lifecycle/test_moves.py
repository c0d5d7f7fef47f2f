"""What each call from outside does to a task's counters, phase, events and effects."""

import pytest
from msgspec.structs import replace

from lockgate.core.lifecycle.decision import (
    Declined,
    EndSessions,
    EvaluateGates,
    MirrorTask,
    NotifyHuman,
    PrepareWorkspace,
    ReleaseWorkspace,
    SpawnAgent,
)
from lockgate.core.lifecycle.evaluation import (
    dropped_from_train,
    evaluation_failed,
    evaluation_passed,
    gate_broken,
    reviews_reached,
)
from lockgate.core.lifecycle.moves import Move, attempt_failed, move, resumed, started
from lockgate.core.lifecycle.sessions import Place, session_started
from lockgate.core.model.events import (
    AllGatesPassed,
    AttemptFailed,
    Escalation,
    GateEvaluationStarted,
    GateFailedMaxIterations,
    GateFailedRetrying,
    Resumed,
    SessionStarted,
    StatusChanged,
    TaskGatesPassed,
)
from lockgate.core.model.findings import Finding, Priority
from lockgate.core.model.limits import ESCALATION_THRESHOLD, RetryConfig, Strategy
from lockgate.core.model.task import (
    Actor,
    Cause,
    Evaluating,
    Failed,
    GatesPassed,
    NeedsFixes,
    Pinned,
    Role,
    Status,
    Stuck,
    Working,
)
from tests.given import (
    FAIL,
    FEEDBACK,
    HANDOFF,
    PASS,
    RULES,
    a_task,
    evidence,
    refused,
    taken,
)

S = Status


def _kinds(things) -> list[type]:
    return [type(thing) for thing in things]


def _by_human(task, target, body="", **asked):
    return taken(move(evidence(task, body, Actor.HUMAN, landed=True), Move(target, **asked)))


# --- starting -----------------------------------------------------------------------------------


@pytest.mark.req("R113")
def test_starting_pins_the_rules_and_asks_for_a_workspace_and_a_worker() -> None:
    task = a_task(S.PENDING, pinned=None, iteration=0)

    decision = _by_human(task, S.WORKING)

    assert decision.task.pinned == RULES
    assert decision.task.phase == Working(f"{task.id}.8", 1)
    assert decision.effects == (MirrorTask(), PrepareWorkspace(), SpawnAgent(Role.WORKER, 8))


def test_a_session_begins_with_the_directive_taken_and_the_phase_working() -> None:
    task = a_task(S.WORKING, directive="use the cookie", dead=True, generation=7)
    spawn = SpawnAgent(Role.WORKER, 7)

    decision = taken(session_started(evidence(task), spawn, "hash", Place("/w")))

    assert decision.session is not None
    assert (decision.session.id, decision.session.directory) == (f"{task.id}.7", "/w")
    assert decision.task.phase == Working(f"{task.id}.7", 1)
    assert (decision.task.directive, decision.task.dead) == ("", False)
    assert _kinds(decision.events) == [SessionStarted]


def test_a_worker_of_an_older_generation_does_not_begin() -> None:
    task = a_task(S.WORKING, generation=9)

    refusal = refused(session_started(evidence(task), SpawnAgent(Role.WORKER, 7), "hash"))

    assert "newer worker" in refusal.why


def test_a_reviewer_begins_in_the_round_it_is_to_judge() -> None:
    task = a_task(S.AGENT_REVIEW, review_round=2, directive="kept for the worker")

    decision = taken(session_started(evidence(task), SpawnAgent(Role.REVIEWER, 7), "hash"))

    assert decision.session is not None
    assert (decision.session.round, decision.session.generation) == (2, 7)
    assert decision.task.directive == "kept for the worker"


def test_a_worker_that_begins_on_a_stuck_task_leaves_it_stuck() -> None:
    task = a_task(S.STUCK, phase=Stuck("x", 3, FEEDBACK), generation=7)

    decision = taken(session_started(evidence(task), SpawnAgent(Role.WORKER, 7), "hash"))

    assert decision.task.phase == task.phase


# --- handing on ---------------------------------------------------------------------------------


@pytest.mark.req("R81", "R85", "R99")
def test_handing_on_begins_the_evaluation_with_a_review_round() -> None:
    task = a_task(crash_count=1)

    decision = taken(move(evidence(task, HANDOFF, Actor.WORKER), Move(S.AGENT_REVIEW)))

    assert decision.task.crash_count == 0
    assert decision.task.review_round == 1
    assert decision.task.phase == Evaluating(f"{task.id}.3", 1, 0)
    assert _kinds(decision.events) == [StatusChanged, GateEvaluationStarted]
    assert decision.effects == (MirrorTask(), SpawnAgent(Role.REVIEWER, 8, seat="review.general"))


def test_with_no_gates_there_is_still_an_evaluation() -> None:
    task = a_task(pinned=Pinned(base_commit="b", config_hash="c"))

    decision = _by_human(task, S.AGENT_REVIEW, HANDOFF)

    assert decision.effects == (MirrorTask(), EvaluateGates(1))
    assert decision.task.review_round == 0


def test_gates_before_the_review_that_pass_begin_the_round() -> None:
    decision = reviews_reached(evidence(a_task(S.AGENT_REVIEW, review_round=1, seats=())))

    assert decision.task.review_round == 2
    assert decision.effects == (MirrorTask(), SpawnAgent(Role.REVIEWER, 8, seat="review.general"))


def test_when_all_gates_pass_the_task_is_ready_to_land() -> None:
    decision = evaluation_passed(evidence(a_task(S.AGENT_REVIEW), PASS))

    assert decision.task.status is S.REVIEWING
    assert decision.task.phase == GatesPassed("fix-login-3f9a.3", evidence(a_task()).now)
    assert _kinds(decision.events) == [StatusChanged, AllGatesPassed, TaskGatesPassed]


@pytest.mark.req("R135", "R138")
def test_a_failed_gate_sends_the_task_back_with_its_feedback() -> None:
    task = a_task(S.AGENT_REVIEW)

    decision = evaluation_failed(evidence(task), FEEDBACK, review=False)

    assert decision.task.status is S.WORKING
    assert decision.task.iteration == 2
    assert decision.task.failed_attempts == 1
    assert decision.task.phase == NeedsFixes(f"{task.id}.3", 1, FEEDBACK)
    assert _kinds(decision.events) == [StatusChanged, GateFailedRetrying, AttemptFailed]
    assert decision.effects == (MirrorTask(), SpawnAgent(Role.WORKER, 8))


@pytest.mark.req("R136")
def test_the_last_iteration_that_fails_is_stuck() -> None:
    task = a_task(S.AGENT_REVIEW, iteration=3)

    decision = evaluation_failed(evidence(task), FEEDBACK, review=False)

    assert decision.task.status is S.STUCK
    assert decision.task.cause is Cause.MAX_ITERATIONS
    assert decision.task.phase == Stuck(f"{task.id}.3", 3, FEEDBACK)
    assert GateFailedMaxIterations(task.id, FEEDBACK, 3) in decision.events
    assert NotifyHuman(S.STUCK, "stuck: max-iterations") in decision.effects


@pytest.mark.req("R151")
def test_a_gate_that_fails_fast_is_not_retried() -> None:
    decision = evaluation_failed(
        evidence(a_task(S.AGENT_REVIEW)), FEEDBACK, review=False, fail_fast=True
    )

    assert decision.task.status is S.STUCK
    assert decision.task.cause is Cause.FAIL_FAST
    assert decision.task.phase == Failed("tests exited 1")


def test_a_reviewers_fail_in_the_last_round_wins_over_iterations_left() -> None:
    task = a_task(S.AGENT_REVIEW, review_round=2, iteration=1)

    by_review = evaluation_failed(evidence(task), FEEDBACK, review=True)
    by_command = evaluation_failed(evidence(task), FEEDBACK, review=False)

    assert by_review.task.cause is Cause.REVIEW_ROUNDS
    assert by_command.task.status is S.WORKING


@pytest.mark.req("R83", "R86")
def test_a_reviewers_fail_becomes_the_feedback_of_the_next_worker() -> None:
    task = a_task(S.AGENT_REVIEW, review_round=1)

    decision = taken(move(evidence(task, FAIL, Actor.REVIEWER), Move(S.WORKING)))

    assert isinstance(decision.task.phase, NeedsFixes)
    assert "The redirect loops." in decision.task.phase.feedback.findings[0].issue
    assert decision.task.failed_attempts == 1


def test_a_reviewers_early_fail_at_the_iteration_limit_is_stuck_all_the_same() -> None:
    task = a_task(S.AGENT_REVIEW, review_round=1, iteration=3)

    decision = taken(move(evidence(task, FAIL, Actor.REVIEWER), Move(S.WORKING)))

    assert decision.task.status is S.STUCK
    assert decision.task.cause is Cause.MAX_ITERATIONS


def test_a_review_that_has_moved_the_task_once_does_not_count_again() -> None:
    first = taken(
        move(evidence(a_task(S.AGENT_REVIEW, review_round=1), FAIL, Actor.HUMAN), Move(S.WORKING))
    )
    again = a_task(S.AGENT_REVIEW, review_round=1, spent=first.task.spent)

    refusal = refused(move(evidence(again, FAIL, Actor.HUMAN), Move(S.WORKING)))

    assert "has not changed" in refusal.why


@pytest.mark.req("R138", "R139", "R140")
@pytest.mark.parametrize(
    ("strategy", "fresh"),
    [
        (Strategy.SAME, [False, False, False]),
        (Strategy.FRESH, [True, True, True]),
        (Strategy.AUTO, [False, True, False]),
    ],
)
def test_who_gets_the_feedback_follows_the_strategy(strategy, fresh) -> None:
    retry = RetryConfig(strategy=strategy, max_iterations=9)
    task = a_task(S.AGENT_REVIEW, pinned=Pinned(base_commit="b", config_hash="c", retry=retry))

    seen: list[bool] = []
    for _ in fresh:
        task = a_task(
            S.AGENT_REVIEW,
            pinned=task.pinned,
            iteration=task.iteration,
            rev=task.rev,
            generation=task.generation,
            history=task.history,
        )
        said = replace(
            FEEDBACK, findings=(Finding(Priority.P1_MAJOR, f"issue {chr(97 + len(seen))}"),)
        )
        decision = evaluation_failed(evidence(task), said, review=False)
        task = decision.task
        seen += [it.fresh for it in decision.effects if isinstance(it, SpawnAgent)]

    assert seen == fresh


def test_the_same_findings_twice_want_a_fresh_agent() -> None:
    retry = RetryConfig(fresh_after_failures=5, max_iterations=9)
    rules = Pinned(base_commit="b", config_hash="c", retry=retry)
    first = evaluation_failed(
        evidence(a_task(S.AGENT_REVIEW, pinned=rules)), FEEDBACK, review=False
    ).task

    again = a_task(S.AGENT_REVIEW, pinned=rules, history=first.history, iteration=first.iteration)
    decision = evaluation_failed(evidence(again), FEEDBACK, review=False)

    assert decision.effects[-1] == SpawnAgent(Role.WORKER, 8, fresh=True)


# --- what the orchestrator sees -------------------------------------------------------------------


def test_a_gate_that_could_not_judge_charges_nobody() -> None:
    decision = gate_broken(evidence(a_task(S.AGENT_REVIEW)), "pytest is not installed")

    assert decision.task.status is S.STUCK
    assert decision.task.cause is Cause.GATE_BROKEN
    assert (decision.task.failed_attempts, decision.task.iteration) == (0, 1)


def test_a_change_dropped_from_the_train_starts_its_counters_anew_but_is_one_failed_attempt() -> (
    None
):
    task = a_task(S.REVIEWING, iteration=3, review_round=2, failed_attempts=1)

    decision = dropped_from_train(evidence(task), FEEDBACK)

    assert decision.task.status is S.WORKING
    assert decision.task.cause is Cause.DROPPED_FROM_TRAIN
    assert (decision.task.iteration, decision.task.review_round) == (1, 0)
    assert decision.task.failed_attempts == 2


@pytest.mark.req("R183", "R184", "R186", "R187")
def test_the_fifth_drop_goes_by_way_of_working_into_the_pause() -> None:
    task = a_task(S.REVIEWING, failed_attempts=ESCALATION_THRESHOLD - 1)

    decision = dropped_from_train(evidence(task), FEEDBACK)

    changes = [it for it in decision.events if isinstance(it, StatusChanged)]
    assert [(it.source, it.target) for it in changes] == [
        (S.REVIEWING, S.WORKING),
        (S.WORKING, S.PAUSED_FOR_INTERVENTION),
    ]
    assert decision.task.rev == task.rev + 1
    assert decision.effects == (
        MirrorTask(),
        EndSessions(8),
        NotifyHuman(S.PAUSED_FOR_INTERVENTION, "paused-for-intervention: escalation-threshold"),
    )


def test_an_attempt_that_failed_is_followed_by_a_fresh_worker() -> None:
    decision = attempt_failed(evidence(a_task(failed_attempts=3)), "the steps escalated")

    assert decision.task.status is S.WORKING
    assert decision.task.failed_attempts == 4
    assert decision.effects == (MirrorTask(), SpawnAgent(Role.WORKER, 8, fresh=True))


@pytest.mark.req("R185", "R186", "R187")
@pytest.mark.parametrize("source", [S.WORKING, S.AGENT_REVIEW])
def test_the_fifth_failed_attempt_pauses_and_schedules_nothing(source) -> None:
    task = a_task(source, failed_attempts=ESCALATION_THRESHOLD - 1, iteration=2)

    decision = (
        attempt_failed(evidence(task), "again")
        if source is S.WORKING
        else evaluation_failed(evidence(task), FEEDBACK, review=False)
    )

    assert decision.task.status is S.PAUSED_FOR_INTERVENTION
    assert decision.events[-1] == Escalation(task.id, 5, "PAUSED_FOR_INTERVENTION")
    assert decision.task.iteration == task.iteration
    assert SpawnAgent not in _kinds(decision.effects)


# --- humans -------------------------------------------------------------------------------------


@pytest.mark.req("R188", "R190")
def test_resume_counts_from_nought_and_puts_the_task_back_into_the_queue() -> None:
    task = a_task(S.PAUSED_FOR_INTERVENTION, failed_attempts=5, review_round=2, auto_start=False)

    decision = taken(resumed(evidence(task, "", Actor.HUMAN), "try the cookie"))

    assert decision.task.status is S.PENDING
    assert (decision.task.failed_attempts, decision.task.review_round) == (0, 0)
    assert decision.task.auto_start
    assert decision.task.directive == "try the cookie"
    assert decision.task.phase is None
    assert decision.events[-1] == Resumed("try the cookie")


@pytest.mark.parametrize("status", [it for it in S if it is not S.PAUSED_FOR_INTERVENTION])
def test_a_task_that_is_not_paused_is_not_resumed(status) -> None:
    refusal = refused(resumed(evidence(a_task(status), "", Actor.HUMAN), ""))

    assert "only a paused task is resumed" in refusal.why


@pytest.mark.parametrize("actor", [Actor.WORKER, Actor.REVIEWER])
def test_an_agent_does_not_resume_itself(actor) -> None:
    task = a_task(S.PAUSED_FOR_INTERVENTION)

    assert isinstance(refused(resumed(evidence(task, "", actor), "")).why, str)


@pytest.mark.parametrize("target", [S.WORKING, S.AGENT_REVIEW])
def test_taking_a_task_out_of_stuck_starts_rounds_and_iterations_anew(target) -> None:
    task = a_task(S.STUCK, iteration=3, review_round=2, failed_attempts=4, cause=Cause.BUDGET)

    decision = _by_human(task, target)

    assert decision.task.iteration == 1
    assert decision.task.review_round == (1 if target is S.AGENT_REVIEW else 0)
    assert decision.task.failed_attempts == 4
    assert decision.task.cause is None


def test_done_forgets_failed_attempts_and_releases_the_workspace() -> None:
    decision = _by_human(a_task(S.REVIEWING, failed_attempts=4), S.DONE)

    assert decision.task.failed_attempts == 0
    assert decision.effects == (MirrorTask(), EndSessions(8), ReleaseWorkspace())


def test_cancelling_ends_sessions_and_keeps_the_phase_for_the_record() -> None:
    task = a_task(phase=Working("x", 1))

    decision = _by_human(task, S.CANCELLED, reason="not wanted")

    assert decision.effects == (MirrorTask(), EndSessions(8), ReleaseWorkspace())
    assert decision.task.phase == task.phase


@pytest.mark.req("R82")
def test_a_worker_that_asks_a_question_goes_on_when_it_is_answered() -> None:
    asked = taken(move(evidence(a_task(), "", Actor.WORKER), Move(S.CLARIFICATION)))
    answered = taken(move(evidence(asked.task, "", Actor.WORKER), Move(S.WORKING)))

    assert asked.effects == (MirrorTask(), NotifyHuman(S.CLARIFICATION, "clarification"))
    assert answered.effects == (MirrorTask(),)
    assert answered.task.generation == asked.task.generation


def test_a_human_who_answers_sets_off_a_worker_with_the_directive() -> None:
    decision = _by_human(a_task(S.CLARIFICATION), S.WORKING, directive="redirect to /home")

    assert decision.effects == (MirrorTask(), SpawnAgent(Role.WORKER, 8))
    assert decision.task.directive == "redirect to /home"


def test_a_handoff_that_no_gate_could_judge_counts_when_it_is_handed_in_again() -> None:
    task = a_task(S.STUCK, cause=Cause.GATE_BROKEN, pinned=RULES)
    seen = evidence(task, HANDOFF, Actor.HUMAN)
    digest = seen.found.handoff_digest
    assert digest

    spent = replace(seen, task=replace(task, spent=frozenset({digest, "other"})))
    decision = taken(move(spent, Move(S.WORKING)))

    assert decision.task.spent == {"other"}


def test_a_pending_task_is_started() -> None:
    assert taken(started(evidence(a_task(Status.PENDING)))).task.status is Status.WORKING


@pytest.mark.parametrize("status", [it for it in Status if it is not Status.PENDING])
def test_what_is_no_longer_pending_is_not_started_by_one_who_looked_long_ago(status) -> None:
    declined = started(evidence(a_task(status)))

    assert isinstance(declined, Declined)
    assert f"it is {status}" in declined.why
