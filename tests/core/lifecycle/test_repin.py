"""New rules for a task that runs: what changes, what is judged again, what stays."""

import pytest
from msgspec.structs import replace

from lockgate.core.lifecycle.decision import (
    Decision,
    Declined,
    EndSessions,
    EvaluateGates,
    SpawnAgent,
)
from lockgate.core.lifecycle.records import repinned
from lockgate.core.model.events import GateEvaluationStarted, StatusChanged, TaskRepinned
from lockgate.core.model.limits import Limits
from lockgate.core.model.task import Actor, Approval, Evaluating, GateRef, Role, Status
from tests.given import COMMIT, REVIEW_GATE, RULES, TESTS_GATE, a_task, evidence

OLD = replace(RULES, gates=(TESTS_GATE, REVIEW_GATE))
LINT = GateRef("lint", TESTS_GATE.kind)
NEW = replace(
    OLD,
    base_commit="e" * 40,
    config_hash="f" * 64,
    gates=(TESTS_GATE, LINT, REVIEW_GATE),
    limits=Limits(crashes=7),
    steps=("red", "green"),
)
S = Status


def given(status: Status, actor: Actor = Actor.HUMAN, **fields: object) -> Decision | Declined:
    return repinned(evidence(a_task(status, **{"pinned": OLD, **fields}), actor=actor), NEW)


def decided(status: Status, **fields: object) -> Decision:
    decision = given(status, Actor.HUMAN, **fields)
    assert isinstance(decision, Decision)
    return decision


@pytest.mark.parametrize(
    "status", [S.PENDING, S.CLARIFICATION, S.WORKING, S.STUCK, S.PAUSED_FOR_INTERVENTION]
)
def test_a_task_that_is_not_judged_stays_where_it_is_with_new_rules(status: Status) -> None:
    decision = decided(status)

    assert (decision.task.status, decision.task.pinned) == (status, NEW)
    assert decision.events == (
        TaskRepinned(base_commit="e" * 40, config_hash="f" * 64, before="c" * 64),
    )


@pytest.mark.parametrize("status", [S.DONE, S.CANCELLED])
def test_a_task_that_has_ended_keeps_its_rules(status: Status) -> None:
    refusal = given(status)

    assert isinstance(refusal, Declined)
    assert "no rule applies" in refusal.why


def test_a_task_that_was_not_started_has_no_rules_to_change() -> None:
    refusal = given(S.PENDING, pinned=None)

    assert isinstance(refusal, Declined)
    assert "has not been started" in refusal.why


@pytest.mark.parametrize("actor", [it for it in Actor if it is not Actor.HUMAN])
def test_only_a_human_changes_rules(actor: Actor) -> None:
    refusal = given(S.WORKING, actor)

    assert isinstance(refusal, Declined)
    assert "only a human" in refusal.why


def test_the_same_rules_again_change_nothing() -> None:
    task = a_task(S.AGENT_REVIEW, pinned=NEW, passed=("tests",), candidate=COMMIT)

    decision = repinned(evidence(task, actor=Actor.HUMAN), NEW)

    assert isinstance(decision, Decision)
    assert decision.events == ()
    assert replace(decision.task, rev=task.rev, updated=task.updated) == task


def test_what_is_judged_is_judged_again_from_the_first_gate() -> None:
    decision = decided(S.AGENT_REVIEW, passed=("tests",), candidate=COMMIT, waiting="x")

    task = decision.task
    assert (task.status, task.passed, task.waiting, task.candidate) == (S.AGENT_REVIEW, (), "", "")
    assert task.since == task.rev
    assert isinstance(task.phase, Evaluating)
    assert EvaluateGates(1) in decision.effects
    assert EndSessions(7, Role.REVIEWER) in decision.effects
    assert [type(it) for it in decision.events] == [GateEvaluationStarted, TaskRepinned]


def test_a_round_that_had_begun_is_not_counted_twice() -> None:
    assert decided(S.AGENT_REVIEW, passed=("tests",), review_round=1).task.review_round == 0
    assert decided(S.AGENT_REVIEW, passed=(), review_round=1).task.review_round == 1


def test_where_the_review_comes_first_its_round_stays_the_same() -> None:
    first = replace(OLD, gates=(REVIEW_GATE,))
    task = a_task(S.AGENT_REVIEW, pinned=first, review_round=1)

    decision = repinned(evidence(task, actor=Actor.HUMAN), replace(NEW, gates=(REVIEW_GATE, LINT)))

    assert isinstance(decision, Decision)
    assert decision.task.review_round == 1
    assert any(isinstance(it, SpawnAgent | EvaluateGates) for it in decision.effects)


def test_an_evaluation_without_reviews_has_no_round_to_give_back() -> None:
    decision = decided(
        S.AGENT_REVIEW,
        pinned=replace(OLD, gates=(TESTS_GATE,)),
        passed=("tests",),
        review_round=1,
    )

    assert decision.task.review_round == 1


def test_a_change_that_waits_to_land_is_judged_by_the_new_rules_first() -> None:
    decision = decided(S.REVIEWING, passed=("tests", "review"), failed_attempts=2, generation=3)

    task = decision.task
    moves = [(it.source, it.target) for it in decision.events if isinstance(it, StatusChanged)]
    assert moves == [(S.REVIEWING, S.WORKING), (S.WORKING, S.AGENT_REVIEW)]
    assert (task.status, task.passed, task.failed_attempts) == (S.AGENT_REVIEW, (), 2)
    assert (task.generation, task.rev) == (3, 8)
    assert not any(isinstance(it, SpawnAgent) and it.role is Role.WORKER for it in decision.effects)


def test_a_humans_yes_is_to_the_change_and_outlives_the_rules() -> None:
    yes = (Approval("human", "9a7c"),)

    assert decided(S.AGENT_REVIEW, approvals=yes).task.approvals == yes


def test_of_the_steps_that_have_passed_those_that_are_still_there_count() -> None:
    assert decided(S.WORKING, steps_passed=("red", "gone")).task.steps_passed == ("red",)
