"""A change in the queue: who may let it land, what keeps it, what brings it back."""

import pytest
from msgspec.structs import replace

from lockgate.core.lifecycle.approvals import rejected
from lockgate.core.lifecycle.decision import EndSessions, NotifyHuman, ReleaseWorkspace
from lockgate.core.lifecycle.landing import (
    answered_yes,
    approved,
    departs,
    dropped,
    held,
    landed,
    met,
    sent_back,
    stays_here,
)
from lockgate.core.lifecycle.moves import Move, move
from lockgate.core.model.events import HumanCommented, StatusChanged
from lockgate.core.model.landings import ChangeLanded, LandedUnjudged, LandingApproved, LandingHeld
from lockgate.core.model.task import Actor, Approval, GatesPassed, Revert, Status, TaskId
from lockgate.core.train.model import Conflict, Red
from tests.given import COMMIT, RULES, a_task, evidence, refused, taken

S = Status
MAIN = "9" * 40
QUEUED = a_task(S.REVIEWING, candidate=COMMIT, patch="feed", phase=GatesPassed("a", 5.0))
LANDING = replace(QUEUED, landed=MAIN)
NEWER = replace(RULES, base_commit=MAIN)


def test_a_human_lets_the_change_land_that_was_shown() -> None:
    decision = taken(approved(evidence(replace(QUEUED, held="wait"), actor=Actor.HUMAN), "fe"))

    assert (decision.task.to_land, decision.task.held) == (True, "")
    assert decision.events == (LandingApproved(),)


def test_a_yes_to_what_waits_lets_a_change_land_that_has_passed_its_gates() -> None:
    quiet = taken(answered_yes(evidence(QUEUED), "", "fe"))
    told = taken(answered_yes(evidence(replace(QUEUED, held="no")), "Good.", "fe"))

    assert (quiet.task.to_land, told.task.to_land, told.task.held) == (True, True, "")
    assert LandingApproved() in quiet.events
    assert HumanCommented("Good.") not in quiet.events
    assert HumanCommented("Good.") in told.events
    assert [it.comment for it in told.task.approvals] == ["Good."]


def test_a_yes_to_what_waits_answers_the_gate_that_asks() -> None:
    asked = replace(QUEUED, status=S.AGENT_REVIEW, waiting="sign_off")

    decision = taken(answered_yes(evidence(asked), "Good.", "fe"))

    assert (decision.task.waiting, decision.task.to_land) == ("", False)
    assert [(it.gate, it.comment) for it in decision.task.approvals] == [("sign_off", "Good.")]


@pytest.mark.parametrize(
    ("comment", "patch", "why"),
    [("", "beef", "updated after it was shown"), ("x" * 20_001, "fe", "longer than 20000")],
)
def test_a_yes_to_another_change_or_with_too_many_words_lands_nothing(comment, patch, why) -> None:
    assert why in refused(answered_yes(evidence(QUEUED), comment, patch)).why


@pytest.mark.parametrize(
    ("by", "shown", "told"),
    [
        ("ann", "approval", "ann has answered gate approval already"),
        ("", "approval", "somebody else has answered gate approval already"),
        ("ann", "security", "somebody else has answered gate security already"),
    ],
)
def test_a_yes_to_a_gate_that_somebody_else_has_answered_lets_nothing_land(by, shown, told) -> None:
    said = replace(QUEUED, approvals=(Approval("approval", QUEUED.patch, by=by),))

    assert told in refused(answered_yes(evidence(said), "", "fe", shown)).why


def test_a_yes_to_a_landing_is_no_yes_to_a_gate_that_asks_now() -> None:
    asking = replace(QUEUED, status=Status.AGENT_REVIEW, waiting="approval")

    why = refused(answered_yes(evidence(asking), "", "fe", "")).why

    assert "has answered its landing already" in why


def test_another_change_than_the_one_shown_does_not_land() -> None:
    refusal = refused(approved(evidence(QUEUED), "beef"))

    assert "updated after" in refusal.why


@pytest.mark.parametrize("status", [it for it in S if it is not S.REVIEWING])
def test_only_what_waits_to_land_is_let_land_or_held(status) -> None:
    task = a_task(status)

    assert "only a task that is reviewing" in refused(approved(evidence(task))).why
    assert "only a task that is reviewing" in refused(held(evidence(task), "x")).why


def test_a_change_that_is_held_waits_for_a_human_who_is_told() -> None:
    decision = taken(held(evidence(replace(QUEUED, to_land=True)), "not today"))

    assert (decision.task.to_land, decision.task.held) == (False, "not today")
    assert NotifyHuman(S.REVIEWING, "not today") in decision.effects
    assert decision.events == (LandingHeld("not today"),)


def test_what_departs_is_marked_with_the_commit_that_brings_it() -> None:
    decision = taken(departs(evidence(QUEUED), MAIN, COMMIT))

    assert (decision.task.status, decision.task.landed) == (S.REVIEWING, MAIN)


@pytest.mark.parametrize(
    "task",
    [replace(QUEUED, held="x"), replace(QUEUED, candidate="c" * 40), a_task(S.WORKING)],
    ids=["held", "another change", "gone back"],
)
def test_what_was_taken_off_meanwhile_does_not_depart(task) -> None:
    assert refused(departs(evidence(task), MAIN, COMMIT)).fix == "lockgate queue list"


def test_nobody_takes_a_change_off_while_it_lands() -> None:
    seen = evidence(LANDING, actor=Actor.HUMAN)

    assert "landing at this moment" in refused(held(seen, "x")).why
    assert "landing at this moment" in refused(rejected(seen, "no", (), "")).why
    assert (
        "landing at this moment" in refused(sent_back(seen, met(Red("x"), ()), COMMIT, RULES)).why
    )


def test_a_task_is_not_cancelled_while_it_lands() -> None:
    seen = evidence(LANDING, actor=Actor.HUMAN)

    assert "landing at this moment" in refused(move(seen, Move(S.CANCELLED))).why
    assert taken(move(replace(seen, task=QUEUED), Move(S.CANCELLED))).task.status is S.CANCELLED


def test_a_human_takes_a_change_off_the_queue_with_a_reason() -> None:
    decision = taken(dropped(evidence(QUEUED, actor=Actor.HUMAN), "not like this"))

    assert decision.task.status is S.WORKING
    assert "only a task that is reviewing" in refused(dropped(evidence(a_task()), "x")).why


def test_a_target_that_did_not_move_leaves_the_change_where_it_was() -> None:
    assert taken(stays_here(evidence(LANDING), MAIN)).task.landed == ""
    for other in (QUEUED, a_task(S.WORKING, landed=MAIN)):
        assert "not about to land" in refused(stays_here(evidence(other), MAIN)).why


@pytest.mark.req("R148")
def test_what_landed_is_done_and_its_workspace_is_given_back_only_then() -> None:
    decision = taken(landed(evidence(replace(LANDING, failed_attempts=3)), MAIN, COMMIT))

    assert (decision.task.status, decision.task.landed) == (S.DONE, MAIN)
    assert decision.task.failed_attempts == 0
    assert ReleaseWorkspace() in decision.effects
    assert any(isinstance(it, EndSessions) for it in decision.effects)
    assert decision.events[-1] == ChangeLanded(MAIN, COMMIT, seconds=60.0, iteration=1)
    assert isinstance(decision.events[0], StatusChanged)


def test_a_landing_of_an_older_change_does_not_make_a_task_done() -> None:
    refusal = refused(landed(evidence(replace(LANDING, candidate="c" * 40)), MAIN, COMMIT))

    assert "does not wait to land any more" in refusal.why


def test_what_goes_back_is_one_failed_attempt_and_starts_anew() -> None:
    task = replace(QUEUED, iteration=3, review_round=2, to_land=True, held="")

    decision = taken(sent_back(evidence(task), met(Red("tests fail"), ()), COMMIT, NEWER))

    after = decision.task
    assert (after.status, after.cause) == (S.WORKING, "dropped-from-train")
    assert (after.iteration, after.review_round, after.failed_attempts) == (1, 0, 1)
    assert not after.to_land
    assert after.pinned == NEWER


def test_only_the_change_that_was_on_the_train_goes_back() -> None:
    task = replace(QUEUED, candidate="c" * 40)

    assert (
        "does not wait to land any more"
        in refused(sent_back(evidence(task), met(Red("x"), ()), COMMIT, RULES)).why
    )


def test_a_conflict_tells_the_files_and_whose_change_it_is() -> None:
    other = a_task(id=TaskId("other-1"), goal="Rename it")

    feedback = met(Conflict(QUEUED.id, (other.id,), ("a.py", "b.py")), [other])

    assert [it.location.file for it in feedback.findings if it.location] == ["a.py", "b.py"]
    assert "other-1 (Rename it)" in feedback.summary


def test_a_conflict_with_what_has_landed_is_one_with_the_target() -> None:
    feedback = met(Conflict(QUEUED.id), ())

    assert feedback.summary == "it conflicts with the target"
    assert len(feedback.findings) == 1


def test_a_failure_tells_what_failed() -> None:
    [finding] = met(Red("gate tests fails: a.py:3 - red"), ()).findings

    assert finding.issue == "gate tests fails: a.py:3 - red"


def test_a_revert_that_no_gate_judged_lands_as_such() -> None:
    reverts = Revert(task=TaskId("t0"), landed=MAIN, commit=COMMIT, unjudged="main is red")
    task = replace(QUEUED, reverts=reverts)

    decision = taken(landed(evidence(task), MAIN, task.candidate))

    assert (decision.task.status, decision.task.landed) == (S.DONE, MAIN)
    assert decision.events[-1] == LandedUnjudged(MAIN, TaskId("t0"), "main is red")


def test_a_revert_that_goes_back_to_an_agent_is_judged_like_any_change() -> None:
    reverts = Revert(task=TaskId("t0"), landed=MAIN, commit=COMMIT, unjudged="main is red")
    task = replace(QUEUED, reverts=reverts)

    feedback = met(Conflict(task.id, files=("a.py",)), ())
    decision = taken(sent_back(evidence(task), feedback, task.candidate, RULES))

    assert decision.task.reverts == replace(reverts, unjudged="")
