"""A human's answer to a gate that waits: what it changes, what it is bound to, who gives it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lockgate.core.lifecycle.approvals import (
    LONGEST,
    approved,
    commented,
    consented,
    heard,
    rejected,
)
from lockgate.core.lifecycle.decision import (
    Decision,
    EvaluateGates,
    Evidence,
    MirrorTask,
    NotifyHuman,
    PublishChange,
    SpawnAgent,
)
from lockgate.core.lifecycle.evaluation import judged
from lockgate.core.lifecycle.moves import Facts, change_taken
from lockgate.core.model.events import (
    AllGatesPassed,
    AttemptFailed,
    Escalation,
    GateCompleted,
    GateFailedMaxIterations,
    GateFailedRetrying,
    HumanCommented,
    HumanReviewCompleted,
    HumanReviewRequested,
    StatusChanged,
    TaskGatesPassed,
    payload,
    type_of,
)
from lockgate.core.model.findings import Finding, Location, Priority
from lockgate.core.model.gates import HumanGate, Placement, Where
from lockgate.core.model.limits import ESCALATION_THRESHOLD
from lockgate.core.model.results import Failed, Passed, Waiting
from lockgate.core.model.task import (
    Actor,
    Approval,
    Budget,
    Cause,
    GateKind,
    GateRef,
    NeedsFixes,
    Revert,
    Role,
    Status,
    Stuck,
    Task,
)
from tests.given import COMMIT, ID, REVIEW_GATE, RULES, TESTS_GATE, a_task, evidence, refused, taken

S = Status
HUMAN_GATE = GateRef("approval", GateKind.HUMAN)
SECOND_GATE = GateRef("security", GateKind.HUMAN)
PATCH, OTHER = "p" * 64, "q" * 64
PLACED = Finding(Priority.P1_MAJOR, "this loops", Location("app.py", 3))
patches = st.text("0123456789abcdef", min_size=1, max_size=64)
comments = st.text(min_size=1, max_size=50).filter(lambda it: bool(it.strip()))


def waiting(*gates: GateRef, **fields: object) -> Task:
    """A task whose human gate waits, behind its tests."""
    gates = gates or (TESTS_GATE, HUMAN_GATE)
    fields = {
        "candidate": COMMIT,
        "patch": PATCH,
        "passed": ("tests",),
        "waiting": "approval",
        "pinned": replace(RULES, gates=gates),
        **fields,
    }
    return a_task(S.AGENT_REVIEW, **fields)


def seen(task: Task) -> Evidence:
    return evidence(task, actor=Actor.HUMAN)


def kinds(decision: Decision) -> list[type]:
    return [type(event) for event in decision.events]


# --- yes ----------------------------------------------------------------------------------------


@pytest.mark.req("R171")
def test_a_yes_to_the_last_gate_makes_the_change_ready_to_land() -> None:
    decision = taken(approved(seen(waiting()), "good", PATCH))

    assert (decision.task.status, decision.task.waiting) == (S.REVIEWING, "")
    assert decision.task.passed == ("tests", "approval")
    assert decision.task.approvals == (Approval("approval", PATCH, "good"),)
    assert decision.events[:2] == (
        HumanReviewCompleted(ID, approved=True, comment="good", seconds=60.0),
        GateCompleted(ID, "approval", "passed", "good", iteration=1),
    )
    assert kinds(decision)[2:] == [StatusChanged, AllGatesPassed, TaskGatesPassed]
    assert decision.effects == (
        MirrorTask(),
        PublishChange(),
        NotifyHuman(S.REVIEWING, "reviewing"),
    )


@pytest.mark.parametrize(("comment", "told"), [("", ""), ("good", ": good")])
def test_a_yes_is_kept_as_a_gates_pass_on_the_commit_that_was_judged(comment, told) -> None:
    [result] = taken(approved(seen(waiting()), comment, "")).results

    assert isinstance(result, Passed)
    assert (result.gate, result.proof.commit) == ("approval", COMMIT)
    assert result.proof.ran == (f"a human said yes{told}",)
    assert result.proof.config_hash == RULES.config_hash


@pytest.mark.parametrize(
    ("behind", "effect"),
    [
        (GateRef("lint", GateKind.COMMAND), EvaluateGates(1)),
        (REVIEW_GATE, SpawnAgent(Role.REVIEWER, 8, seat="review.general")),
        (SECOND_GATE, EvaluateGates(1)),
    ],
    ids=["a command", "a review", "another human"],
)
def test_the_gates_behind_it_are_judged_after_a_yes(behind, effect) -> None:
    decision = taken(approved(seen(waiting(TESTS_GATE, HUMAN_GATE, behind)), "", PATCH))

    assert (decision.task.status, decision.task.waiting) == (S.AGENT_REVIEW, "")
    assert decision.effects == (MirrorTask(), effect)
    assert kinds(decision) == [HumanReviewCompleted, GateCompleted]


def test_a_new_yes_takes_the_place_of_the_gates_old_one_and_leaves_the_others() -> None:
    before = (Approval("approval", OTHER, "then"), Approval("security", OTHER))

    decision = taken(approved(seen(waiting(approvals=before)), "now", PATCH))

    assert decision.task.approvals == (
        Approval("security", OTHER),
        Approval("approval", PATCH, "now"),
    )


@given(patch=patches, shown=patches)
def test_a_yes_is_taken_for_the_change_that_was_shown_and_no_other(patch, shown) -> None:
    task = waiting(patch=patch)

    for answer in (approved(seen(task), "", shown), rejected(seen(task), "no", (), shown)):
        if patch.startswith(shown):
            taken(answer)
        else:
            assert refused(answer).why == "the change was updated after it was shown"


@given(patch=patches, other=patches, commit=st.sampled_from([COMMIT, "0" * 40]))
def test_a_yes_outlives_its_commit_and_is_bound_to_the_patch(patch, other, commit) -> None:
    """What reads it compares patches: whatever is taken next, the yes names what it was for."""
    gates = (TESTS_GATE, HUMAN_GATE, GateRef("lint", GateKind.COMMAND))
    yes = taken(approved(seen(waiting(*gates, patch=patch)), "", patch)).task

    again = taken(change_taken(evidence(yes), commit, ("a.py",), yes.since, Facts(other))).task

    assert again.approvals == (Approval("approval", patch, ""),)
    assert (again.passed, again.candidate) == (yes.passed, COMMIT)


# --- no -----------------------------------------------------------------------------------------


@pytest.mark.req("R133", "R171")
def test_a_no_is_the_gates_failure_and_what_was_said_is_the_feedback() -> None:
    decision = taken(rejected(seen(waiting()), "Not like this.", [PLACED], PATCH))

    task = decision.task
    assert (task.status, task.iteration, task.failed_attempts) == (S.WORKING, 2, 1)
    assert (task.waiting, task.approvals) == ("", ())
    assert isinstance(task.phase, NeedsFixes)
    feedback = task.phase.feedback
    assert feedback.gate_name == "approval"
    assert feedback.summary == "a human rejected it: Not like this."
    assert feedback.findings == (Finding(Priority.P1_MAJOR, "Not like this."), PLACED)
    assert task.history[-1].feedback == feedback
    assert decision.events[:2] == (
        HumanReviewCompleted(ID, approved=False, comment="Not like this.", seconds=60.0),
        GateCompleted(ID, "approval", "failed", "Not like this.", iteration=1),
    )
    assert kinds(decision)[2:] == [StatusChanged, GateFailedRetrying, AttemptFailed]
    assert decision.effects == (MirrorTask(), SpawnAgent(Role.WORKER, 8))
    assert decision.results == (Failed("approval", feedback.findings),)


@pytest.mark.req("R133", "R136")
def test_a_no_in_the_last_iteration_leaves_the_task_to_humans() -> None:
    decision = taken(rejected(seen(waiting(iteration=3)), "No.", (), PATCH))

    assert (decision.task.status, decision.task.cause) == (S.STUCK, Cause.MAX_ITERATIONS)
    assert isinstance(decision.task.phase, Stuck)
    assert decision.task.phase.last_feedback.summary == "a human rejected it: No."
    assert GateFailedMaxIterations in kinds(decision)


@pytest.mark.parametrize("status", [S.AGENT_REVIEW, S.REVIEWING])
def test_a_no_that_is_the_last_failed_attempt_pauses_the_task(status) -> None:
    task = replace(waiting(failed_attempts=ESCALATION_THRESHOLD - 1), status=status)

    decision = taken(rejected(seen(task), "No.", (), PATCH))

    assert decision.task.status is S.PAUSED_FOR_INTERVENTION
    assert decision.task.failed_attempts == ESCALATION_THRESHOLD
    assert Escalation(ID, ESCALATION_THRESHOLD) in decision.events
    assert not any(isinstance(it, SpawnAgent) for it in decision.effects)


def test_a_no_to_a_task_whose_budget_is_used_up_starts_no_worker() -> None:
    rules = replace(RULES, gates=(TESTS_GATE, HUMAN_GATE), budget=Budget(usd=1.0))

    decision = taken(rejected(seen(waiting(pinned=rules, usd=1.5)), "No.", (), PATCH))

    assert (decision.task.status, decision.task.cause) == (S.STUCK, Cause.BUDGET)
    assert not any(isinstance(it, SpawnAgent) for it in decision.effects)


def test_a_no_to_a_change_that_waits_to_land_takes_it_back() -> None:
    ready = taken(approved(seen(waiting(iteration=3)), "", PATCH)).task

    decision = taken(rejected(seen(ready), "Not today.", [PLACED], PATCH))

    task = decision.task
    assert (task.status, task.cause) == (S.WORKING, Cause.DROPPED_FROM_TRAIN)
    assert (task.iteration, task.review_round, task.failed_attempts) == (1, 0, 1)
    assert isinstance(task.phase, NeedsFixes)
    assert task.phase.feedback.findings == (Finding(Priority.P1_MAJOR, "Not today."), PLACED)
    assert decision.events[0] == HumanReviewCompleted(
        ID, approved=False, comment="Not today.", seconds=0.0
    )
    assert SpawnAgent(Role.WORKER, task.rev) in decision.effects


@pytest.mark.parametrize("lands", [True, False])
def test_a_no_voids_every_yes_that_the_same_change_was_given(lands) -> None:
    before = (Approval("security", PATCH), Approval("approval", OTHER))
    task = waiting(approvals=before)
    if lands:
        task = replace(task, status=S.REVIEWING, waiting="")

    decision = taken(rejected(seen(task), "No.", (), ""))

    assert decision.task.approvals == (Approval("approval", OTHER),)


@pytest.mark.parametrize("comment", ["", " ", "\n\t"])
def test_a_no_and_a_comment_must_say_something(comment) -> None:
    for answer in (rejected(seen(waiting()), comment, (), ""), commented(seen(waiting()), comment)):
        assert refused(answer).why == "nothing was said"
    assert isinstance(approved(seen(waiting()), comment, ""), Decision)


def test_what_is_too_long_to_be_read_is_refused() -> None:
    long, task = "x" * (LONGEST + 1), waiting()
    placed = replace(PLACED, issue="x" * LONGEST)

    for answer in (
        approved(seen(task), long, ""),
        rejected(seen(task), long, (), ""),
        rejected(seen(task), "no", [placed], ""),
        commented(seen(task), long),
    ):
        assert f"longer than {LONGEST}" in refused(answer).why
    taken(rejected(seen(task), "x" * LONGEST, (), ""))


# --- a word in between --------------------------------------------------------------------------


@pytest.mark.req("R132")
@given(said=st.lists(comments, min_size=1, max_size=5))
def test_a_comment_is_told_and_leaves_the_gate_open(said) -> None:
    before = task = waiting()

    for number, comment in enumerate(said, 1):
        decision = taken(commented(seen(task), comment))
        task = decision.task
        assert decision.events == (HumanCommented(comment),)
        assert decision.effects == (MirrorTask(),)
        assert task == replace(before, rev=before.rev + number, updated=seen(task).now)

    assert taken(approved(seen(task), "", PATCH)).task.status is S.REVIEWING


def test_a_change_that_waits_to_land_is_commented_on_too() -> None:
    task = replace(waiting(), status=S.REVIEWING, waiting="")

    decision = taken(commented(seen(task), "Wait for Monday."))

    assert (decision.task.status, decision.events) == (
        S.REVIEWING,
        (HumanCommented("Wait for Monday."),),
    )


# --- where nobody asked -------------------------------------------------------------------------


@pytest.mark.parametrize("status", [it for it in S if it is not S.REVIEWING])
def test_where_no_gate_waits_there_is_nothing_to_answer(status) -> None:
    """Not even where the name of one that waited is still written down."""
    task = replace(waiting(waiting="" if status is S.AGENT_REVIEW else "approval"), status=status)

    for answer in (
        approved(seen(task), "yes", ""),
        rejected(seen(task), "no", (), ""),
        commented(seen(task), "hm"),
    ):
        refusal = refused(answer)
        if status is S.CLARIFICATION:
            assert refusal.why == "its agent asks a question"
            assert refusal.fix == f"lockgate answer {ID} -m TEXT"
        else:
            assert refusal.why == "nothing of it waits for your yes or no"
            assert refusal.fix == f"lockgate task why {ID}"


def test_a_change_that_is_ready_to_land_needs_no_second_yes() -> None:
    ready = taken(approved(seen(waiting()), "", PATCH)).task

    assert refused(approved(seen(ready), "", PATCH)).why == "nothing of it waits for your yes or no"


# --- whatever is said ---------------------------------------------------------------------------


@pytest.mark.req("R132")
@given(words=st.lists(st.sampled_from(["yes", "no", "hm", "gates", "stale"]), max_size=12))
def test_a_gate_waits_until_it_is_answered_and_each_answer_counts_once(words) -> None:
    task = waiting()
    for word in words:
        before = task
        if task.status is not S.AGENT_REVIEW:
            break
        match word:
            case "yes":
                task = taken(approved(seen(task), "", PATCH)).task
                assert task.status is S.REVIEWING
            case "no":
                task = taken(rejected(seen(task), "no", (), PATCH)).task
                assert (task.iteration, task.failed_attempts) == (2, before.failed_attempts + 1)
            case "hm":
                task = taken(commented(seen(task), "hm")).task
            case "gates":
                again = judged(evidence(task), [Waiting("approval", "well?")], task.since)
                assert refused(again).why == "a human was asked before, by gate approval"
            case _:
                refused(approved(seen(task), "", OTHER))
        assert task.waiting == ("" if word in {"yes", "no"} else "approval")
        assert task.rev == before.rev + (0 if word in {"stale", "gates"} else 1)


def test_both_events_leave_the_program_as_s3_tells_them() -> None:
    asked, said = HumanReviewRequested(ID, "Look"), HumanReviewCompleted(ID, True, "ok")

    assert (type_of(asked), payload(asked)) == (
        "HumanReviewRequested",
        {"task_id": ID, "prompt": "Look"},
    )
    assert (type_of(said), payload(said)) == (
        "HumanReviewCompleted",
        {"task_id": ID, "approved": True, "comment": "ok", "seconds": 0.0},
    )


def test_without_a_task_a_human_gate_waits_with_its_own_question() -> None:
    gate = HumanGate(name="people", place=Placement(serial=True, on=(Where.CHANGE,)), prompt="Ok?")

    assert heard(None, gate) == Waiting("people", "Ok?")


@pytest.mark.parametrize(
    ("by", "how", "why"),
    [
        ("ann", "web login", ""),
        ("bob", "web login", "takes a yes of ann alone, and you are bob"),
        ("ann", "", "takes a yes of ann alone, and nobody knows who you are"),
    ],
)
def test_a_gate_that_names_its_people_takes_a_yes_of_those_alone(by, how, why) -> None:
    named = GateRef("approval", GateKind.HUMAN, approvers=("ann",))
    task = waiting(pinned=replace(RULES, gates=(TESTS_GATE, named)))

    answer = approved(replace(seen(task), by=by, how=how), "", PATCH)

    assert why in (refused(answer).why if why else "")
    assert isinstance(answer, Decision) == (not why)


def test_the_question_names_protected_files_and_what_gates_run_that_the_change_edits() -> None:
    gate = HumanGate("approval", Placement(serial=True, on=(Where.CHANGE,)), "Is it good?")
    rules = replace(RULES, protect=("deploy/**",))
    task = waiting(pinned=rules, protected=("deploy/key.pem", "CLAUDE.md"))

    asked = heard(task, gate, "it edits the tests")

    assert isinstance(asked, Waiting)
    assert asked.prompt.startswith("Is it good? (protected: deploy/key.pem")
    assert "CLAUDE.md" in asked.prompt
    assert asked.prompt.endswith("; it edits the tests")
    assert heard(None, gate) == Waiting("approval", "Is it good?")


def test_a_plain_revert_may_take_the_tests_back_that_came_with_the_change() -> None:
    reverts = Revert(task=ID, landed="f" * 40, commit=COMMIT)
    asks = Waiting("differential", "Tests go: is that right?")

    plain, edited = waiting(reverts=reverts), waiting(reverts=reverts, candidate="e" * 40)

    assert isinstance(consented(plain, asks), Passed)
    assert consented(edited, asks) == asks
    assert consented(waiting(), asks) == asks
