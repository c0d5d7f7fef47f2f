"""Reviewers have seats; each fills its own, and what they found decides."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lockgate.core.lifecycle.decision import (
    Decision,
    Declined,
    EndSessions,
    EvaluateGates,
    Evidence,
    SpawnAgent,
    overtaken,
)
from lockgate.core.lifecycle.evaluation import asked_for_again, judged, reviews_reached
from lockgate.core.lifecycle.moves import Move, move
from lockgate.core.lifecycle.reviews import LONGEST, handed_in
from lockgate.core.lifecycle.sessions import respawned, session_ended
from lockgate.core.lifecycle.transition import PASS_NAMES, next_reviews
from lockgate.core.model.agents import End, Ending, Exit
from lockgate.core.model.events import AgentCrashed, AttemptFailed, GateCompleted, ReviewSubmitted
from lockgate.core.model.limits import Limits
from lockgate.core.model.results import Failed, Passed
from lockgate.core.model.task import (
    Actor,
    GateKind,
    GateRef,
    NeedsFixes,
    Role,
    Session,
    Status,
    Task,
)
from lockgate.core.text.task_file import digest, extract_review_verdict
from tests.given import (
    COMMIT,
    FAIL,
    HANDOFF,
    PASS,
    RULES,
    TESTS_GATE,
    a_session,
    a_task,
    evidence,
    refused,
    taken,
)

S = Status
TWO = GateRef("review", GateKind.PARALLEL_REVIEW, reviewers=("correctness", "security"))
ADVISED = replace(TWO, reviewers=("correctness", "style"), advisory=("style",))
DEEP = GateRef("deep", GateKind.MULTIPASS_REVIEW)
LINT = GateRef("lint", GateKind.COMMAND)


def said(verdict: str = "PASS", *findings: tuple[str, str], **more: object) -> str:
    listed = [{"priority": it[0], "issue": it[1], "file": "a.py", "line": 3} for it in findings]
    return json.dumps({"verdict": verdict, "summary": "looked", "findings": listed, **more})


def under(*gates: GateRef, **fields: object) -> Task:
    return a_task(
        S.AGENT_REVIEW,
        pinned=replace(RULES, gates=gates),
        candidate=COMMIT,
        **{"review_round": 1, **fields},
    )


def sits(task: Task, name: str) -> Session:
    seat = next(it for it in task.seats if it.name == name)
    return a_session(Role.REVIEWER, round=task.review_round, seat=name, generation=seat.generation)


def seen_by(task: Task, name: str, body: str = "") -> Evidence:
    return evidence(task, body, Actor.REVIEWER, session=sits(task, name))


def hands_in(task: Task, name: str, text: str) -> Decision:
    return taken(handed_in(seen_by(task, name), text))


def leaves(task: Task, name: str, ending: Ending = Ending.EXITED, body: str = "") -> Decision:
    seen = evidence(task, body, session=sits(task, name))
    return taken(session_ended(seen, End(Exit(ending=ending, code=1))))


def spawned(decision: Decision) -> list[str]:
    return [it.seat for it in decision.effects if isinstance(it, SpawnAgent)]


# --- who is asked ---------------------------------------------------------------------------------


@pytest.mark.req("R128")
def test_a_parallel_review_asks_for_one_reviewer_a_dimension_at_once() -> None:
    task = under(TESTS_GATE, replace(TWO, agent="codex"), review_round=0)

    decision = taken(judged(evidence(task), [], task.since))
    decision = reviews_reached(evidence(replace(decision.task, passed=("tests",))))

    assert spawned(decision) == ["review.correctness", "review.security"]
    assert {it.agent for it in decision.effects if isinstance(it, SpawnAgent)} == {"codex"}
    assert decision.task.review_round == 1
    assert not any(overtaken(it, decision.task) for it in decision.effects)


def test_an_evaluation_that_is_repeated_asks_for_nobody_twice() -> None:
    first = reviews_reached(evidence(under(TWO, seats=(), review_round=0)))

    second = reviews_reached(evidence(first.task))

    assert spawned(second) == []
    assert (second.task.review_round, second.task.seats) == (1, first.task.seats)


def test_a_second_review_belongs_to_the_same_round() -> None:
    task = under(TWO, LINT, DEEP)
    for name in ("review.correctness", "review.security"):
        task = hands_in(task, name, said()).task

    decision = taken(judged(evidence(replace(task, passed=("review", "lint"))), [], task.since))

    assert spawned(decision) == ["deep.draft"]
    assert decision.task.review_round == 1


@pytest.mark.parametrize(
    ("gates", "together"),
    [
        ((TWO, DEEP), ["review", "deep"]),
        ((TWO, replace(DEEP, serial=True)), ["review"]),
        ((replace(TWO, serial=True), DEEP), ["review"]),
        ((TWO, LINT, DEEP), ["review"]),
        ((TWO, replace(DEEP, conditional=True)), ["review"]),
        ((replace(TWO, conditional=True), DEEP), ["review", "deep"]),
        ((LINT, TWO), []),
        ((), []),
    ],
)
def test_neighbouring_reviews_are_asked_for_together_unless_one_is_serial(gates, together) -> None:
    assert [gate.name for gate in next_reviews(gates, ())] == together


@pytest.mark.req("R151")
def test_a_review_with_a_when_is_asked_for_only_after_somebody_has_looked() -> None:
    perhaps = replace(TWO, conditional=True)
    handed_on = taken(
        move(
            evidence(a_task(pinned=replace(RULES, gates=(perhaps,))), HANDOFF), Move(S.AGENT_REVIEW)
        )
    )
    assert EvaluateGates(1) in handed_on.effects
    assert spawned(handed_on) == []

    applies = taken(judged(evidence(handed_on.task), [], handed_on.task.since))

    assert spawned(applies) == ["review.correctness", "review.security"]
    assert applies.task.review_round == 1


def test_a_second_review_with_a_when_is_looked_at_after_the_first() -> None:
    first = replace(TWO, reviewers=("security",))

    decision = hands_in(under(first, replace(DEEP, conditional=True)), "review.security", said())

    assert EvaluateGates(1) in decision.effects
    assert spawned(decision) == []


# --- what they hand in ----------------------------------------------------------------------------


@pytest.mark.req("R130", "R144")
def test_all_reviewers_are_awaited_though_the_first_has_failed_it() -> None:
    decision = hands_in(under(TWO), "review.security", said("FAIL", ("P0", "a hole")))

    assert decision.task.status is S.AGENT_REVIEW
    assert spawned(decision) == []
    assert decision.events == (ReviewSubmitted("review", "security"),)
    assert decision.results == ()


def test_when_nobody_found_anything_the_gate_has_passed_and_the_next_is_judged() -> None:
    task = hands_in(under(TWO, LINT), "review.security", said()).task

    decision = hands_in(task, "review.correctness", said("PASS", summary="fine"))

    assert decision.task.passed == ("review",)
    assert EvaluateGates(1) in decision.effects
    [result] = decision.results
    assert isinstance(result, Passed)
    assert result.proof.commit == COMMIT
    assert result.proof.ran == ("reviewed by scripted: correctness, security",)


@pytest.mark.req("R130")
def test_what_several_found_is_given_to_one_synthesis() -> None:
    task = hands_in(under(TWO), "review.security", said("FAIL", ("P1", "a hole"))).task

    decision = hands_in(task, "review.correctness", said("PASS", ("P2", "a typo")))

    assert spawned(decision) == ["review.synthesis"]
    assert decision.task.status is S.AGENT_REVIEW


def reviewed_twice(synthesis: str | None, *first: tuple[str, str]) -> Decision:
    task = hands_in(under(TWO), "review.correctness", said("FAIL", *first)).task
    task = hands_in(task, "review.security", said("PASS", ("P2", "the same, said softly"))).task
    if synthesis is None:
        return leaves(task, "review.synthesis")
    return hands_in(task, "review.synthesis", synthesis)


@pytest.mark.req("R130", "R134")
def test_a_synthesis_joins_and_rewords_but_the_verdict_is_computed() -> None:
    words = json.dumps({"groups": [{"of": [1, 2], "issue": "all is well"}]})

    decision = reviewed_twice(words, ("P1", "it loops"))

    assert decision.task.status is S.WORKING
    assert isinstance(decision.task.phase, NeedsFixes)
    [finding] = decision.task.phase.feedback.findings
    assert finding.priority == "P1"
    assert "all is well" in finding.issue


def test_a_synthesis_cannot_talk_a_p0_away() -> None:
    words = json.dumps({"groups": [{"of": [1, 2], "issue": "all is well"}]})

    decision = reviewed_twice(words, ("P0", "it deletes the disk"))

    assert isinstance(decision.task.phase, NeedsFixes)
    assert "it deletes the disk" in decision.task.phase.feedback.findings[0].issue


def test_a_synthesis_that_dies_is_done_without_and_is_no_crash() -> None:
    decision = reviewed_twice(None, ("P1", "it loops"))

    assert decision.task.status is S.WORKING
    assert not any(isinstance(it, AgentCrashed) for it in decision.events)
    assert isinstance(decision.task.phase, NeedsFixes)
    assert len(decision.task.phase.feedback.findings) == 2


def test_a_synthesis_that_names_what_it_was_not_shown_is_told_so() -> None:
    task = hands_in(under(TWO), "review.correctness", said("FAIL", ("P1", "it loops"))).task
    task = hands_in(task, "review.security", said()).task

    text = json.dumps({"groups": [{"of": [2], "issue": "x"}]})
    refusal = refused(handed_in(seen_by(task, "review.synthesis"), text))

    assert "allowed are 1 to 1" in refusal.why


def test_a_single_reviewer_needs_no_synthesis() -> None:
    gate = replace(TWO, reviewers=("security",))

    decision = hands_in(under(gate), "review.security", said("FAIL", ("P1", "a hole")))

    assert decision.task.status is S.WORKING
    assert [type(it) for it in decision.results] == [Failed]
    assert (
        GateCompleted(decision.task.id, "review", "failed", "security: a hole", iteration=1)
        in decision.events
    )


def test_a_pass_with_a_blocking_finding_is_a_fail() -> None:
    gate = replace(TWO, reviewers=("security",))

    decision = hands_in(under(gate), "review.security", said("PASS", ("P0", "a hole")))

    assert decision.task.status is S.WORKING


def test_a_fail_in_the_last_round_is_a_humans() -> None:
    gate = replace(TWO, reviewers=("security",))

    decision = hands_in(under(gate, review_round=2), "review.security", said("FAIL"))

    assert (decision.task.status, decision.task.cause) == (S.STUCK, "review-rounds")


def test_two_reviews_at_once_are_judged_together() -> None:
    task = under(replace(TWO, reviewers=("security",)), DEEP)
    task = hands_in(task, "deep.draft", said("FAIL", ("P1", "unclear"), converged=True)).task

    decision = hands_in(task, "review.security", said("FAIL", ("P1", "a hole")))

    assert decision.task.status is S.WORKING
    assert [it.gate for it in decision.results] == ["review", "deep"]
    assert isinstance(decision.task.phase, NeedsFixes)
    assert len(decision.task.phase.feedback.findings) == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not one JSON document"),
        ("PASS", "not one JSON document"),
        ('{"verdict": "maybe"}', "PASS or FAIL"),
        ("x" * (LONGEST + 1), "longer"),
    ],
)
def test_what_cannot_be_read_is_refused_and_nothing_changes(text: str, why: str) -> None:
    refusal = refused(handed_in(seen_by(under(TWO), "review.security"), text))

    assert why in refusal.why
    assert "review submit" in refusal.fix


def test_a_reviewer_hands_in_once() -> None:
    task = hands_in(under(TWO), "review.security", said()).task

    refusal = refused(handed_in(seen_by(task, "review.security"), said("FAIL")))

    assert "already" in refusal.why


@pytest.mark.parametrize(
    "seen",
    [
        evidence(under(TWO), "", Actor.HUMAN),
        evidence(under(TWO), "", Actor.WORKER, session=a_session()),
        evidence(under(TWO), "", Actor.REVIEWER, session=a_session(Role.REVIEWER, round=1)),
        evidence(a_task(S.REVIEWING), "", Actor.REVIEWER, session=a_session(Role.REVIEWER)),
    ],
    ids=["a human", "a worker", "a seat that is not there", "too late"],
)
def test_only_whoever_has_a_seat_hands_in_a_review(seen: Evidence) -> None:
    assert isinstance(handed_in(seen, said()), Declined)


def test_a_reviewer_whose_seat_was_given_to_another_is_not_heard() -> None:
    task = under(TWO)
    old = seen_by(task, "review.security", PASS)
    task = asked_for_again(evidence(task), ["review.security"]).task
    late = replace(old, task=task)

    assert "another reviewer has its seat" in refused(handed_in(late, said())).why
    assert "another reviewer has its seat" in refused(move(late, Move(S.REVIEWING))).why


# --- S2's way: a verdict in TASK.md ---------------------------------------------------------------


def test_a_verdict_in_task_md_fills_the_seat_of_its_writer_alone() -> None:
    task = under(TWO)

    decision = taken(move(seen_by(task, "review.security", PASS), Move(S.REVIEWING)))

    assert decision.task.status is S.AGENT_REVIEW
    assert decision.task.passed == ()
    assert [bool(seat.said) for seat in decision.task.seats] == [False, True]


def test_a_fail_in_task_md_is_a_finding_in_its_writers_words() -> None:
    gate = replace(TWO, reviewers=("general",))

    decision = taken(move(seen_by(under(gate), "review.general", FAIL), Move(S.WORKING)))

    assert decision.task.status is S.WORKING
    assert decision.review is None  # its writer's own text stays
    assert isinstance(decision.task.phase, NeedsFixes)
    assert "The redirect loops." in decision.task.phase.feedback.findings[0].issue


def test_a_humans_verdict_stands_for_all_and_sends_the_reviewers_home() -> None:
    decision = taken(move(evidence(under(TWO), PASS, Actor.HUMAN), Move(S.REVIEWING)))

    assert decision.task.status is S.REVIEWING
    assert EndSessions(7, Role.REVIEWER) in decision.effects


def test_a_humans_verdict_after_all_have_spoken_sends_nobody_home() -> None:
    task = under(TWO, LINT)
    task = replace(task, seats=tuple(replace(it, said=said()) for it in task.seats))

    decision = taken(move(evidence(task, FAIL, Actor.HUMAN), Move(S.WORKING)))

    assert not any(isinstance(it, EndSessions) for it in decision.effects)


def test_who_speaks_after_its_gate_was_judged_changes_nothing() -> None:
    waiting = GateRef("approval", GateKind.HUMAN)
    task = replace(under(TWO, waiting), passed=("review",))

    assert isinstance(handed_in(seen_by(task, "review.security"), said("FAIL")), Declined)
    assert leaves(task, "review.security").task.crash_count == 0


# --- who leaves without a verdict -----------------------------------------------------------------


@pytest.mark.req("R93")
def test_however_many_leave_without_a_verdict_it_is_one_crash_and_only_they_come_back() -> None:
    gate = replace(TWO, reviewers=("correctness", "security", "style"))
    task = hands_in(under(gate), "review.style", said()).task
    task = leaves(task, "review.security").task
    assert (task.crash_count, task.dead) == (0, False)

    decision = leaves(task, "review.correctness", Ending.WALL_CLOCK)

    assert decision.task.crash_count == 1
    assert decision.task.status is S.AGENT_REVIEW
    assert spawned(decision) == ["review.correctness", "review.security"]
    assert not any(isinstance(it, AttemptFailed) for it in decision.events)
    assert [bool(seat.said) for seat in decision.task.seats] == [False, False, True]


def test_a_second_time_a_human_is_asked() -> None:
    task = under(TWO, crash_count=1)
    task = leaves(task, "review.security").task

    decision = leaves(task, "review.correctness")

    assert (decision.task.status, decision.task.cause) == (S.STUCK, "crash-threshold")


def test_one_who_has_handed_in_only_leaves() -> None:
    task = hands_in(under(TWO), "review.security", said()).task

    decision = leaves(task, "review.security")

    assert decision.task.crash_count == 0
    assert not any(seat.lost for seat in decision.task.seats)


def test_one_who_leaves_with_a_verdict_in_its_task_md_has_given_it() -> None:
    decision = leaves(under(TWO), "review.security", body=PASS)

    assert [bool(seat.said) for seat in decision.task.seats] == [False, True]


def test_one_who_was_interrupted_is_asked_for_again_alone() -> None:
    decision = leaves(under(TWO), "review.security", Ending.INTERRUPTED)

    assert spawned(decision) == ["review.security"]
    assert decision.task.crash_count == 0


def test_an_advisory_reviewer_that_dies_holds_nobody_up() -> None:
    task = hands_in(under(ADVISED), "review.correctness", said()).task

    decision = leaves(task, "review.style")

    assert decision.task.status is S.REVIEWING


def test_what_an_advisory_reviewer_finds_never_blocks() -> None:
    task = hands_in(under(ADVISED), "review.correctness", said()).task
    task = hands_in(task, "review.style", said("FAIL", ("P0", "tabs!"))).task

    decision = hands_in(task, "review.synthesis", '{"groups": []}')

    assert decision.task.status is S.REVIEWING
    assert "tabs!" in (decision.review or "")


def test_a_human_asks_anew_for_those_who_have_not_spoken() -> None:
    task = hands_in(under(TWO), "review.security", said()).task

    decision = taken(respawned(evidence(task, "", Actor.HUMAN), alive=False))

    assert spawned(decision) == ["review.correctness"]


def test_a_human_asks_in_vain_while_other_gates_judge() -> None:
    task = under(TESTS_GATE, TWO, seats=())

    refusal = refused(respawned(evidence(task, "", Actor.HUMAN), alive=False))

    assert "no reviewer" in refusal.why


# --- pass after pass ------------------------------------------------------------------------------


def test_a_multipass_review_goes_on_until_it_has_converged() -> None:
    task = hands_in(under(DEEP), "deep.draft", said()).task

    decision = hands_in(task, "deep.correctness", said(converged=True))

    assert decision.task.status is S.REVIEWING


def test_a_multipass_review_ends_after_five_passes_and_keeps_all_that_was_found() -> None:
    task = under(DEEP)
    for number, name in enumerate(PASS_NAMES[:-1]):
        decision = hands_in(task, f"deep.{name}", said("PASS", ("P2", f"thing {'abcd'[number]}")))
        assert spawned(decision) == [f"deep.{PASS_NAMES[number + 1]}"]
        task = decision.task

    decision = hands_in(task, f"deep.{PASS_NAMES[-1]}", said("FAIL", ("P1", "thing e")))

    assert decision.task.status is S.WORKING
    assert isinstance(decision.task.phase, NeedsFixes)
    assert len(decision.task.phase.feedback.findings) == 5


# --- what Lockgate writes -------------------------------------------------------------------------


@pytest.mark.parametrize(("verdict", "word"), [("PASS", "PASS"), ("FAIL", "FAIL")])
def test_lockgate_writes_the_review_and_does_not_take_its_own_word_for_news(verdict, word) -> None:
    gate = replace(TWO, reviewers=("security",))
    task = under(TESTS_GATE, gate, passed=("tests",))

    decision = hands_in(task, "review.security", said(verdict))

    assert decision.review is not None
    assert decision.review.splitlines()[0] == word
    assert str(extract_review_verdict(decision.review)) == verdict.lower()
    assert "tests passed" in decision.review
    assert digest(decision.review) in decision.task.spent


# --- whatever they do -----------------------------------------------------------------------------

acts = st.lists(
    st.tuples(
        st.integers(0, 6),
        st.sampled_from(["PASS", "P0", "P1", "P2", "FAIL", "leave", "stop", "junk"]),
    ),
    max_size=14,
)


def act(task: Task, number: int, what: str) -> Task:
    seat = task.seats[number % len(task.seats)]
    seen = seen_by(task, seat.name)
    match what:
        case "leave" | "stop":
            ending = Ending.EXITED if what == "leave" else Ending.INTERRUPTED
            return leaves(task, seat.name, ending).task
        case "PASS" | "FAIL":
            answer = handed_in(seen, said(what))
        case "junk":
            answer = handed_in(seen, "{")
        case _:
            answer = handed_in(seen, said("PASS", (what, f"found by {seat.name}")))
    return task if isinstance(answer, Declined) else answer.task


@given(acts=acts, advisory=st.sets(st.sampled_from(["security", "style"])))
def test_a_change_passes_only_when_every_blocking_reviewer_passed_it(acts, advisory) -> None:
    gate = replace(
        TWO, reviewers=("correctness", "security", "style"), advisory=tuple(sorted(advisory))
    )
    rules = replace(RULES, gates=(gate,), limits=Limits(crashes=99))
    task = replace(under(gate), pinned=rules)
    before = task
    for number, what in acts:
        if task.status is not S.AGENT_REVIEW:
            break
        before, task = task, act(task, number, what)

    if task.status is S.REVIEWING:
        filled = {seat.dimension: seat.said for seat in task.seats}
        for name in set(gate.reviewers) - advisory:
            assert '"PASS"' in filled[name]
            assert not {"P0", "P1"} & {
                it["priority"] for it in json.loads(filled[name])["findings"]
            }
    if task.status is S.WORKING:
        assert before.status is S.AGENT_REVIEW
        words = [seat.said for seat in task.seats if seat.dimension not in advisory]
        assert any('"FAIL"' in it or '"P0"' in it or '"P1"' in it for it in words)
