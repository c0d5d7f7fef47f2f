"""The turns of a change that is offered as a pull request."""

import pytest
from msgspec.structs import replace

from lockgate.core.lifecycle import pulls
from lockgate.core.lifecycle.decision import Decision, Declined, NotifyHuman, SpawnAgent
from lockgate.core.lifecycle.pulls import Theirs
from lockgate.core.model.events import AttemptFailed
from lockgate.core.model.landings import PullRequestChanged
from lockgate.core.model.task import Status
from tests.given import COMMIT, FEEDBACK, RULES, TESTS_GATE, a_task, evidence

S = Status
WAITING = a_task(S.REVIEWING, candidate=COMMIT, failed_attempts=2, to_land=True)
THEIRS = Theirs(commit="e" * 40, patch="p2", files=("a.py",))
JUDGED = replace(RULES, gates=(TESTS_GATE,))


def test_a_change_that_waits_for_people_is_held_and_keeps_its_yes():
    decision = pulls.needs_people(evidence(WAITING), 12, "it waits for an approval")

    assert isinstance(decision, Decision)
    assert decision.task.held == "pull request #12: it waits for an approval"
    assert decision.task.to_land
    assert NotifyHuman(S.REVIEWING, decision.task.held) in decision.effects


def test_a_merge_that_was_refused_uses_up_the_yes():
    decision = pulls.refused(evidence(WAITING), 12, "a rule")

    assert isinstance(decision, Decision)
    assert (decision.task.held, decision.task.to_land) == ("pull request #12: a rule", False)


def test_the_same_hold_is_told_once_and_another_one_replaces_it():
    held = replace(WAITING, held="pull request #12: it was closed")

    assert isinstance(pulls.needs_people(evidence(held), 12, "it was closed"), Declined)
    assert isinstance(pulls.needs_people(evidence(held), 12, "it is a draft"), Decision)


def test_a_persons_own_hold_is_left_alone():
    held = replace(WAITING, held="mine")

    assert isinstance(pulls.needs_people(evidence(held), 12, "it was closed"), Declined)
    assert isinstance(pulls.lifted(evidence(held)), Declined)


def test_a_hold_is_lifted_when_people_have_done_their_part():
    decision = pulls.lifted(evidence(replace(WAITING, held="pull request #12: it was closed")))

    assert isinstance(decision, Decision)
    assert decision.task.held == ""


def test_red_ci_is_one_failed_attempt():
    decision = pulls.ci_failed(evidence(WAITING), FEEDBACK, COMMIT, RULES)

    assert isinstance(decision, Decision)
    assert decision.task.status is S.WORKING
    assert decision.task.failed_attempts == 3
    assert any(isinstance(it, AttemptFailed) for it in decision.events)


def test_a_review_is_no_failed_attempt_and_the_count_begins_again():
    decision = pulls.reviewed(evidence(WAITING), FEEDBACK, COMMIT, RULES)

    assert isinstance(decision, Decision)
    assert (decision.task.status, decision.task.failed_attempts) == (S.WORKING, 0)


def test_a_persons_commits_go_to_the_gates_without_an_agent():
    decision = pulls.taken_over(evidence(WAITING), THEIRS, 12, JUDGED)

    assert isinstance(decision, Decision)
    assert (decision.task.status, decision.task.candidate) == (S.AGENT_REVIEW, THEIRS.commit)
    assert decision.task.failed_attempts == 2
    assert not any(isinstance(it, SpawnAgent) for it in decision.effects)


def test_a_task_whose_issue_is_not_wanted_is_not_started():
    decision = pulls.not_started(evidence(a_task(S.PENDING)), "its issue was closed")

    assert isinstance(decision, Decision)
    assert not decision.task.auto_start
    assert isinstance(pulls.not_started(evidence(WAITING), "why"), Declined)
    assert isinstance(
        pulls.not_started(evidence(a_task(S.PENDING, auto_start=False)), "why"), Declined
    )


def test_what_happens_to_a_pull_request_is_in_the_history():
    decision = pulls.told(evidence(WAITING), 12, "opened")

    assert isinstance(decision, Decision)
    assert decision.events == (PullRequestChanged(12, "opened"),)


@pytest.mark.parametrize(
    "turn",
    [
        lambda seen: pulls.needs_people(seen, 12, "why"),
        pulls.lifted,
        lambda seen: pulls.ci_failed(seen, FEEDBACK, COMMIT, RULES),
        lambda seen: pulls.reviewed(seen, FEEDBACK, COMMIT, RULES),
        lambda seen: pulls.taken_over(seen, THEIRS, 12, RULES),
        lambda seen: pulls.told(seen, 12, "opened"),
    ],
)
def test_a_task_that_has_gone_another_way_is_left_alone(turn):
    assert isinstance(turn(evidence(a_task(S.WORKING, candidate=COMMIT))), Declined)


def test_a_send_back_of_an_older_change_is_declined():
    assert isinstance(pulls.reviewed(evidence(WAITING), FEEDBACK, "other", RULES), Declined)
