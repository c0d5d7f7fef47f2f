"""An evaluation: the commit that is judged, what gates say of it, and what follows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lockgate.core.lifecycle.approvals import approved, commented, rejected
from lockgate.core.lifecycle.decision import (
    Decision,
    Declined,
    EndSessions,
    EvaluateGates,
    MirrorTask,
    NotifyHuman,
    PublishChange,
    SpawnAgent,
)
from lockgate.core.lifecycle.evaluation import change_refused, host_gone, judged, work_lost
from lockgate.core.lifecycle.map import ARROWS, gates_passed
from lockgate.core.lifecycle.moves import Facts, Move, Work, change_taken, move
from lockgate.core.model.events import (
    AllGatesPassed,
    AttemptFailed,
    ChangeMended,
    ChangeTaken,
    GateCompleted,
    GateEvaluationStarted,
    GateFailedMaxIterations,
    GateFailedRetrying,
    HumanReviewRequested,
    StatusChanged,
    TaskCompletionSignaled,
    TaskGatesPassed,
    payload,
    type_of,
)
from lockgate.core.model.findings import Finding, Priority
from lockgate.core.model.limits import ESCALATION_THRESHOLD
from lockgate.core.model.results import Broken, Failed, Passed, SingleGateResult, Waiting
from lockgate.core.model.task import (
    REVIEWS,
    Actor,
    Cause,
    Checkpoint,
    Evaluating,
    GateKind,
    GateRef,
    GatesPassed,
    NeedsFixes,
    Pinned,
    Role,
    Seat,
    Size,
    Status,
    Stuck,
    Task,
)
from lockgate.core.model.task import Failed as FailedPhase
from tests.given import (
    COMMIT,
    HANDOFF,
    ID,
    PASS,
    PROOF,
    REVIEW_GATE,
    RULES,
    TESTS_GATE,
    a_session,
    a_task,
    evidence,
    refused,
    taken,
)

S = Status
LINT_GATE = GateRef("lint", GateKind.COMMAND)
HUMAN_GATE = GateRef("approval", GateKind.HUMAN)
FAST_GATE = GateRef("licence", GateKind.COMMAND, fail_fast=True)
FINDING = Finding(Priority.P0_CRITICAL, "one test is red")
ELSEWHERE = [status for status in S if status is not S.AGENT_REVIEW]


def rules(*gates: GateRef) -> Pinned:
    return replace(RULES, gates=gates)


def under(*gates: GateRef, **fields: object) -> Task:
    """A task that is judged by these gates."""
    fields = {"candidate": COMMIT, **fields}
    return a_task(S.AGENT_REVIEW, pinned=rules(*gates), **fields)


def ok(gate: GateRef, commit: str = COMMIT) -> Passed:
    return Passed(gate.name, replace(PROOF, commit=commit))


def bad(gate: GateRef) -> Failed:
    return Failed(gate.name, (FINDING,))


def decided(task: Task, *results: SingleGateResult) -> Decision:
    return taken(judged(evidence(task), results, task.since))


def kinds(decision: Decision) -> list[type]:
    return [type(event) for event in decision.events]


# --- the commit that is judged --------------------------------------------------------------------


NOTED = Checkpoint(
    sequence=3,
    type="final",
    files_modified=("login.py",),
    work_summary="the redirect",
    confidence=0.8,
)


@pytest.mark.req("R120", "R164", "R172")
def test_a_done_signal_is_told_with_its_checkpoint_and_the_evaluation_begins() -> None:
    asked = Move(S.AGENT_REVIEW, work=Work(NOTED, COMMIT))

    decision = taken(move(evidence(a_task(), HANDOFF, Actor.WORKER), asked))

    assert decision.events[0] == TaskCompletionSignaled(ID, NOTED)
    assert type_of(decision.events[0]) == "TaskCompletionSignaled"
    assert kinds(decision) == [TaskCompletionSignaled, StatusChanged, GateEvaluationStarted]
    assert payload(decision.events[0])["checkpoint"] == {
        "sequence": 3,
        "type": "final",
        "files_modified": ("login.py",),
        "work_summary": "the redirect",
        "confidence": 0.8,
    }
    assert decision.task.phase == Evaluating(f"{ID}.3", 1, 0)
    assert decision.task.candidate == COMMIT


@pytest.mark.req("R113")
def test_the_phase_names_the_gate_that_is_evaluated() -> None:
    gates = (TESTS_GATE, LINT_GATE, REVIEW_GATE, HUMAN_GATE)
    begun = taken(
        move(evidence(a_task(pinned=rules(*gates)), HANDOFF, Actor.WORKER), Move(S.AGENT_REVIEW))
    )
    task = replace(begun.task, candidate=COMMIT)
    seen = [_index(task)]
    for gate in gates[:2]:
        task = decided(task, ok(gate)).task
        seen.append(_index(task))
    task = decided(replace(task, passed=(*task.passed, "review")), Waiting("approval", "?")).task

    assert [*seen, _index(task)] == [0, 1, 2, 3]
    assert task.waiting == gates[3].name


def test_a_gate_that_a_change_adds_has_its_index_behind_the_others() -> None:
    phase = Evaluating(f"{ID}.3", 1, 0)
    task = under(TESTS_GATE, phase=phase, protected=("deploy.sh",))

    assert _index(decided(task, ok(TESTS_GATE)).task) == 1


def _index(task: Task) -> int:
    assert isinstance(task.phase, Evaluating)
    return task.phase.gate_index


def test_a_move_by_hand_is_no_done_signal() -> None:
    decision = taken(move(evidence(a_task(), HANDOFF, Actor.HUMAN), Move(S.AGENT_REVIEW)))

    assert TaskCompletionSignaled not in kinds(decision)
    assert decision.task.candidate == ""


@pytest.mark.req("R143", "R165")
@pytest.mark.parametrize("source", [S.WORKING, S.STUCK])
def test_every_evaluation_begins_with_no_gate_passed_and_no_commit_taken(source) -> None:
    task = a_task(
        source, pinned=rules(TESTS_GATE, REVIEW_GATE), candidate="0" * 40, passed=("tests",)
    )

    decision = taken(move(evidence(task, HANDOFF, Actor.HUMAN), Move(S.AGENT_REVIEW)))

    assert (decision.task.candidate, decision.task.passed) == ("", ())
    assert decision.task.since == decision.task.rev
    assert GateEvaluationStarted(ID, 1) in decision.events
    assert decision.effects[-1] == EvaluateGates(1)


def test_the_work_becomes_one_commit_before_anything_judges_it() -> None:
    seen = evidence(under(TESTS_GATE, candidate=""))

    decision = taken(
        change_taken(seen, COMMIT, ("a.py",), seen.task.since, Facts(size=Size(1, 7, 3, 2, 1)))
    )

    assert (decision.task.candidate, decision.task.size) == (COMMIT, Size(1, 7, 3, 2, 1))
    assert decision.task.status is S.AGENT_REVIEW
    assert decision.events == (ChangeTaken(COMMIT, ("a.py",)),)
    assert decision.effects == (MirrorTask(),)


def test_commits_that_were_made_again_are_told_of() -> None:
    seen, why = evidence(under(TESTS_GATE, candidate="")), "git fsck refuses commit c"
    asked = Move(S.AGENT_REVIEW, work=Work(NOTED, COMMIT, mended=why))

    for decision in (
        taken(change_taken(seen, COMMIT, (), seen.task.since, Facts(mended=why))),
        taken(move(evidence(a_task(), HANDOFF, Actor.WORKER), asked)),
    ):
        assert ChangeMended(COMMIT, why) in decision.events


def test_work_that_is_not_taken_goes_back_as_from_a_failed_gate() -> None:
    task = under(TESTS_GATE, candidate="")

    decision = taken(change_refused(evidence(task), (FINDING,), task.since))

    assert decision.task.status is S.WORKING
    assert (decision.task.iteration, decision.task.failed_attempts) == (2, 1)
    assert decision.results == (Failed("change-check", (FINDING,)),)
    assert isinstance(decision.task.phase, NeedsFixes)
    assert decision.task.phase.feedback.findings == (FINDING,)


def test_work_that_is_not_taken_has_used_up_no_review_round() -> None:
    began = taken(
        move(
            evidence(a_task(pinned=rules(REVIEW_GATE)), HANDOFF, Actor.WORKER),
            Move(S.AGENT_REVIEW, work=Work(NOTED)),
        )
    ).task

    decision = taken(change_refused(evidence(began), (FINDING,), began.since))

    assert (began.review_round, decision.task.review_round) == (1, 0)


def test_work_that_is_not_taken_again_and_again_is_stuck() -> None:
    task, causes = a_task(pinned=rules(TESTS_GATE)), list[Cause | None]()
    for number in range(3):
        began = taken(
            move(
                evidence(task, HANDOFF + str(number), Actor.WORKER),
                Move(S.AGENT_REVIEW, work=Work(NOTED)),
            )
        ).task
        task = taken(change_refused(evidence(began), (FINDING,), began.since)).task
        causes.append(task.cause)

    assert (task.status, causes) == (S.STUCK, [None, None, Cause.MAX_ITERATIONS])


@pytest.mark.parametrize("status", ELSEWHERE)
def test_work_is_not_refused_once_its_evaluation_is_over(status) -> None:
    task = a_task(status, pinned=rules(TESTS_GATE))

    refused(change_refused(evidence(task), (FINDING,), task.since))
    refused(change_refused(evidence(under(TESTS_GATE)), (FINDING,), 99))


@pytest.mark.parametrize("commit", [COMMIT, "0" * 40])
def test_of_two_that_take_the_work_the_first_counts_and_what_has_passed_on_it(commit) -> None:
    """An orchestrator that was frozen and takes it late does not undo what another has judged."""
    seats = (Seat(gate="review", dimension="general", generation=3),)
    known = {"passed": ("tests",), "protected": ("test.sh",), "seats": seats}
    task = under(TESTS_GATE, REVIEW_GATE, **known)

    decision = taken(change_taken(evidence(task), commit, (), task.since))

    assert (decision.task.candidate, decision.task.passed) == (COMMIT, ("tests",))
    assert (decision.task.protected, decision.task.seats) == (("test.sh",), seats)


@pytest.mark.parametrize("status", ELSEWHERE)
def test_no_commit_is_taken_and_no_result_heard_once_the_evaluation_is_over(status) -> None:
    task = a_task(status, pinned=rules(TESTS_GATE), candidate=COMMIT)

    for answer in (
        change_taken(evidence(task), COMMIT, (), task.since),
        judged(evidence(task), [ok(TESTS_GATE)], task.since),
        judged(evidence(task), [bad(TESTS_GATE)], task.since),
        judged(evidence(task), [], task.since),
    ):
        assert refused(answer).why == "the evaluation is over"


def test_work_that_was_taken_for_an_earlier_evaluation_is_not_judged_in_this_one() -> None:
    task = under(TESTS_GATE, candidate="")

    late = change_taken(evidence(task), COMMIT, (), task.since - 1)

    assert refused(late).why == "the evaluation is over"


def test_a_late_result_of_an_earlier_evaluation_is_not_heard() -> None:
    task = under(TESTS_GATE)

    for result in (ok(TESTS_GATE), bad(TESTS_GATE)):
        late = judged(evidence(task), [result], task.since - 1)
        assert refused(late).why == "the evaluation is over"


def test_a_pass_of_another_commit_is_not_heard() -> None:
    task = under(TESTS_GATE, LINT_GATE)

    refusal = refused(judged(evidence(task), [ok(TESTS_GATE), ok(LINT_GATE, "0" * 40)], task.since))

    assert "another commit" in refusal.why


# --- what gates say -----------------------------------------------------------------------------


@pytest.mark.req("R124", "R146", "R166", "R167", "R173")
def test_when_every_gate_has_passed_the_change_is_ready_to_land() -> None:
    task = under(TESTS_GATE, LINT_GATE)

    decision = decided(task, ok(TESTS_GATE), ok(LINT_GATE))

    assert decision.task.status is S.REVIEWING
    assert decision.task.phase == GatesPassed(f"{ID}.3", evidence(task).now)
    assert decision.events == (
        GateCompleted(ID, "tests", "passed", "", PROOF.seconds, 1),
        GateCompleted(ID, "lint", "passed", "", PROOF.seconds, 1),
        StatusChanged(
            source=S.AGENT_REVIEW,
            target=S.REVIEWING,
            actor=Actor.ORCHESTRATOR,
            cause=None,
            reason="",
        ),
        AllGatesPassed(ID, 1),
        TaskGatesPassed(ID, COMMIT),
    )
    assert decision.effects == (
        MirrorTask(),
        PublishChange(),
        NotifyHuman(S.REVIEWING, "reviewing"),
    )


@pytest.mark.req("R146")
def test_without_any_gate_an_evaluation_passes_and_names_the_branch() -> None:
    decision = decided(under(candidate=""))

    assert decision.task.status is S.REVIEWING
    assert decision.events[-1] == TaskGatesPassed(ID, "fix-login")


@pytest.mark.req("R123")
def test_a_gate_that_passes_is_remembered_and_the_next_one_is_judged() -> None:
    decision = decided(under(TESTS_GATE, LINT_GATE), ok(TESTS_GATE))

    assert decision.task.status is S.AGENT_REVIEW
    assert decision.task.passed == ("tests",)
    assert decision.effects == (MirrorTask(), EvaluateGates(1))
    assert decision.events == (GateCompleted(ID, "tests", "passed", "", PROOF.seconds, 1),)


def test_a_gate_that_wants_a_human_to_see_files_adds_a_humans_gate() -> None:
    task = under(TESTS_GATE, protected=("ci.yml",))

    decision = decided(task, replace(ok(TESTS_GATE), asks=("test.sh", "ci.yml")))

    assert decision.task.protected == ("ci.yml", "test.sh")
    assert decision.task.status is S.AGENT_REVIEW
    assert EvaluateGates(task.iteration) in decision.effects
    assert decided(under(TESTS_GATE), ok(TESTS_GATE)).task.status is S.REVIEWING


def test_a_gate_that_passes_twice_has_passed_once() -> None:
    decision = decided(under(TESTS_GATE, LINT_GATE, passed=("tests",)), ok(TESTS_GATE))

    assert decision.task.passed == ("tests",)


@pytest.mark.req("R85", "R123")
@pytest.mark.parametrize("kind", sorted(REVIEWS))
def test_a_review_that_is_reached_begins_its_round_and_asks_for_its_reviewer(kind) -> None:
    task = under(TESTS_GATE, GateRef("review", kind), LINT_GATE, review_round=0)

    decision = decided(task, ok(TESTS_GATE))

    assert decision.task.review_round == 1
    first = "draft" if kind is GateKind.MULTIPASS_REVIEW else "general"
    spawned = SpawnAgent(Role.REVIEWER, task.rev + 1, seat=f"review.{first}")
    assert decision.effects == (MirrorTask(), spawned)


@pytest.mark.req("R124", "R135", "R138", "R166", "R168", "R173")
def test_a_gate_that_fails_sends_the_work_back_and_is_one_failed_attempt() -> None:
    task = under(TESTS_GATE, LINT_GATE, REVIEW_GATE)

    decision = decided(task, ok(TESTS_GATE), bad(LINT_GATE))

    assert (decision.task.status, decision.task.iteration) == (S.WORKING, 2)
    assert decision.task.failed_attempts == 1
    phase = decision.task.phase
    assert isinstance(phase, NeedsFixes)
    assert (phase.feedback.gate_name, phase.feedback.findings) == ("lint", (FINDING,))
    assert decision.effects == (MirrorTask(), SpawnAgent(Role.WORKER, 8))
    assert kinds(decision) == [
        GateCompleted,
        GateCompleted,
        StatusChanged,
        GateFailedRetrying,
        AttemptFailed,
    ]
    assert decision.events[:2] == (
        GateCompleted(ID, "tests", "passed", "", PROOF.seconds, 1),
        GateCompleted(ID, "lint", "failed", FINDING.issue, iteration=1),
    )
    assert decision.events[3] == GateFailedRetrying(
        task_id=ID, gate_name="lint", feedback=phase.feedback, iteration=1
    )


@pytest.mark.req("R136", "R169", "R173")
def test_the_last_iteration_that_fails_asks_a_human() -> None:
    decision = decided(under(TESTS_GATE, iteration=3), bad(TESTS_GATE))

    assert (decision.task.status, decision.task.cause) == (S.STUCK, Cause.MAX_ITERATIONS)
    phase = decision.task.phase
    assert isinstance(phase, Stuck)
    assert (phase.iterations, phase.last_feedback.gate_name) == (3, "tests")
    assert GateFailedMaxIterations(ID, phase.last_feedback, 3) in decision.events
    assert decision.effects == (
        MirrorTask(),
        EndSessions(8),
        NotifyHuman(S.STUCK, "stuck: max-iterations"),
    )


@pytest.mark.req("R151")
@pytest.mark.parametrize(
    ("failing", "cause"), [(FAST_GATE, Cause.FAIL_FAST), (TESTS_GATE, None)], ids=["fast", "not"]
)
def test_only_a_gate_that_fails_fast_stops_the_task_at_once(failing, cause) -> None:
    decision = decided(under(FAST_GATE, TESTS_GATE), bad(failing))

    assert decision.task.cause is cause
    assert isinstance(decision.task.phase, FailedPhase if cause else NeedsFixes)
    assert decision.task.status is (S.STUCK if cause else S.WORKING)


def test_a_gate_that_could_not_judge_asks_a_human_and_charges_nobody() -> None:
    task = under(TESTS_GATE, LINT_GATE, failed_attempts=ESCALATION_THRESHOLD - 1)

    decision = decided(task, ok(TESTS_GATE), Broken("lint", "ruff is not installed"))

    assert (decision.task.status, decision.task.cause) == (S.STUCK, Cause.GATE_BROKEN)
    assert (decision.task.iteration, decision.task.failed_attempts) == (1, 4)
    assert decision.events[1] == GateCompleted(
        ID, "lint", "broken", "ruff is not installed", iteration=1
    )
    changed = decision.events[2]
    assert isinstance(changed, StatusChanged)
    assert changed.reason == "gate lint could not judge: ruff is not installed"
    assert AttemptFailed not in kinds(decision)


def test_a_failure_is_certain_though_another_gate_could_not_judge() -> None:
    decision = decided(under(TESTS_GATE, LINT_GATE), Broken("lint", "no ruff"), bad(TESTS_GATE))

    assert decision.task.status is S.WORKING


def test_a_gate_that_waits_for_a_human_holds_the_task_where_it_is() -> None:
    task = under(TESTS_GATE, HUMAN_GATE)

    decision = decided(task, ok(TESTS_GATE), Waiting("approval", "Approve it?"))

    assert (decision.task.status, decision.task.passed) == (S.AGENT_REVIEW, ("tests",))
    assert decision.task.waiting == "approval"
    assert decision.effects == (MirrorTask(), NotifyHuman(S.AGENT_REVIEW, "Approve it?"))
    assert decision.events == (
        GateCompleted(ID, "tests", "passed", "", PROOF.seconds, 1),
        GateCompleted(ID, "approval", "waiting", "Approve it?", iteration=1),
        HumanReviewRequested(ID, "Approve it?"),
    )
    assert decided(decision.task, ok(HUMAN_GATE)).task.status is S.REVIEWING


def test_an_evaluation_that_is_repeated_does_not_ask_a_human_twice() -> None:
    waits = Waiting("approval", "Approve it?")
    first = decided(under(TESTS_GATE, HUMAN_GATE), ok(TESTS_GATE), waits).task

    refusal = refused(judged(evidence(first), [waits], first.since))

    assert refusal.why == "a human was asked before, by gate approval"


def test_a_gate_that_passes_beside_a_question_that_is_known_does_not_ask_again() -> None:
    waits = Waiting("approval", "Approve it?")
    first = decided(under(TESTS_GATE, HUMAN_GATE), waits).task

    again = decided(first, ok(TESTS_GATE), waits)

    assert again.task.passed == ("tests",)
    assert again.effects == (MirrorTask(),)
    assert HumanReviewRequested not in kinds(again)


def test_a_gate_that_a_human_has_answered_meanwhile_waits_no_more() -> None:
    task = under(HUMAN_GATE, TESTS_GATE, passed=("approval",))

    refusal = refused(judged(evidence(task), [Waiting("approval", "well?")], task.since))

    assert refusal.why == "a human has answered meanwhile"


def test_what_gates_said_is_kept_with_the_decision() -> None:
    results = (ok(TESTS_GATE), bad(LINT_GATE))

    assert decided(under(TESTS_GATE, LINT_GATE), *results).results == results


# --- a review among the gates -------------------------------------------------------------------


@pytest.mark.req("R90", "R124")
def test_a_reviewers_pass_is_followed_by_the_gates_behind_it_and_only_then_by_reviewing() -> None:
    task = under(TESTS_GATE, REVIEW_GATE, LINT_GATE, passed=("tests",), review_round=1)
    reviewer = a_session(Role.REVIEWER, round=1)

    said = taken(move(evidence(task, PASS, Actor.REVIEWER, session=reviewer), Move(S.REVIEWING)))

    assert said.task.status is S.AGENT_REVIEW
    assert said.task.passed == ("tests", "review")
    assert said.effects == (MirrorTask(), EvaluateGates(1))
    assert AllGatesPassed not in kinds(said)

    done = decided(said.task, ok(LINT_GATE))

    assert done.task.status is S.REVIEWING
    assert kinds(done) == [GateCompleted, StatusChanged, AllGatesPassed, TaskGatesPassed]


def test_one_pass_of_a_reviewer_stands_for_every_review_gate() -> None:
    second = GateRef("deep", GateKind.MULTIPASS_REVIEW)
    task = under(REVIEW_GATE, TESTS_GATE, second, review_round=1)

    said = taken(move(evidence(task, PASS, Actor.REVIEWER), Move(S.REVIEWING)))

    assert said.task.passed == ("review", "deep")
    assert said.effects[1:] == (EvaluateGates(1), EndSessions(task.rev, Role.REVIEWER))


def test_a_verdict_that_was_heard_does_not_count_again() -> None:
    task = under(REVIEW_GATE, LINT_GATE, review_round=1)
    said = taken(move(evidence(task, PASS, Actor.REVIEWER), Move(S.REVIEWING))).task

    refusal = refused(move(evidence(said, PASS, Actor.REVIEWER), Move(S.REVIEWING)))

    assert "has not changed" in refusal.why


BEFORE_AND_BEHIND = rules(TESTS_GATE, REVIEW_GATE, LINT_GATE)


@pytest.mark.parametrize(
    ("actor", "passed", "missing"),
    [
        (Actor.REVIEWER, (), "tests"),
        (Actor.REVIEWER, ("tests",), None),
        (Actor.ORCHESTRATOR, ("tests",), None),
        (Actor.HUMAN, (), "tests, lint"),
        (Actor.HUMAN, ("tests",), "lint"),
        (Actor.HUMAN, ("tests", "lint"), None),
    ],
)
def test_a_reviewer_answers_for_its_own_gate_and_a_human_for_the_end(
    actor, passed, missing
) -> None:
    task = a_task(S.AGENT_REVIEW, pinned=BEFORE_AND_BEHIND, passed=passed)

    lacks = gates_passed(evidence(task, PASS, actor))

    assert (lacks and lacks.why) == (missing and f"these gates have not passed: {missing}")


def test_a_human_who_says_that_it_is_good_ends_the_evaluation() -> None:
    task = under(TESTS_GATE, REVIEW_GATE, LINT_GATE, passed=("tests", "lint"), review_round=1)

    decision = taken(move(evidence(task, PASS, Actor.HUMAN), Move(S.REVIEWING)))

    assert decision.task.status is S.REVIEWING
    assert {AllGatesPassed, TaskGatesPassed} < set(kinds(decision))
    assert set(decision.task.passed) == {"tests", "review", "lint"}


def test_a_reviewer_of_an_earlier_evaluation_is_not_heard() -> None:
    task = under(REVIEW_GATE, review_round=1, since=6)
    late = a_session(Role.REVIEWER, round=1, generation=5)

    refusal = refused(move(evidence(task, PASS, Actor.REVIEWER, session=late), Move(S.REVIEWING)))

    assert refusal.why == "this session reviewed an earlier evaluation"


# --- whatever the gates are -----------------------------------------------------------------------


gate_lists = st.lists(st.sampled_from(GateKind), max_size=5).map(
    lambda found: tuple(GateRef(f"{kind}-{n}", kind) for n, kind in enumerate(found))
)


def answer(draw_result: str, gate: GateRef) -> SingleGateResult:
    match draw_result:
        case "passed":
            return ok(gate)
        case "failed":
            return bad(gate)
        case "waiting":
            return Waiting(gate.name, "well?")
        case _:
            return Broken(gate.name, "no such tool")


def answered(task: Task, word: str) -> Decision | Declined:
    """What a human says to the gate that waits; anything but yes and no leaves it open."""
    seen = evidence(task, actor=Actor.HUMAN)
    match word:
        case "passed":
            return approved(seen, "", task.patch)
        case "failed":
            return rejected(seen, "no", (), task.patch)
        case _:
            return commented(seen, "hm")


def next_gate(task: Task) -> GateRef | None:
    assert task.pinned is not None
    return next((it for it in task.pinned.gates if it.name not in task.passed), None)


def goes_on(decision: Decision, word: str, number: int) -> Decision:
    """What comes of the next word: a reviewer's, a human's, or the next gate's."""
    task, gate = decision.task, next_gate(decision.task)
    if gate and gate.kind in REVIEWS:
        assert any(isinstance(it, SpawnAgent) for it in decision.effects)
        verdict = f"## Review\n\n{'PASS' if word == 'passed' else 'FAIL'}\n\n{number}\n"
        target = S.REVIEWING if word == "passed" else S.WORKING
        return taken(move(evidence(task, verdict, Actor.REVIEWER), Move(target)))
    if gate and task.waiting:
        assert task.waiting == gate.name
        return taken(answered(task, word))
    results = [answer(word, gate)] if gate else []
    judged_now = decided(task, *results)
    completed = [it for it in judged_now.events if isinstance(it, GateCompleted)]
    assert [it.gate_name for it in completed] == [it.gate for it in results]
    return judged_now


@pytest.mark.req("R123", "R124")
@given(
    gates=gate_lists,
    says=st.lists(st.sampled_from(["passed"] * 6 + ["failed", "broken", "waiting"]), max_size=12),
)
def test_nothing_is_ready_to_land_that_has_not_passed_every_one_of_its_gates_in_order(
    gates, says
) -> None:
    decision = taken(
        move(
            evidence(a_task(pinned=rules(*gates)), HANDOFF, Actor.WORKER),
            Move(S.AGENT_REVIEW, work=Work(NOTED, COMMIT, "p" * 64)),
        )
    )
    heard: list[str] = []
    for number, word in enumerate(says):
        gate = next_gate(decision.task)
        if decision.task.status is not S.AGENT_REVIEW:
            break
        decision = goes_on(decision, word, number)
        if gate and word == "passed":
            reviews = [it.name for it in gates if it.kind in REVIEWS]
            heard += reviews if gate.kind in REVIEWS else [gate.name]
        changes = [it for it in decision.events if isinstance(it, StatusChanged)]
        assert all((it.source, it.target) in ARROWS for it in changes)
        assert decision.task.review_round <= 1

    ready = decision.task.status is S.REVIEWING
    assert ready == (AllGatesPassed in kinds(decision))
    if ready:
        assert {it.name for it in gates} == set(heard) == set(decision.task.passed)


@given(
    gates=gate_lists,
    says=st.lists(st.sampled_from(["passed", "failed", "broken", "waiting"]), max_size=5),
    status=st.sampled_from(list(S)),
    commit=st.sampled_from([COMMIT, "0" * 40]),
)
def test_results_are_refused_or_told_one_event_each_and_nobody_is_charged_twice(
    gates, says, status, commit
) -> None:
    task = a_task(status, pinned=rules(*gates), candidate=commit)
    results = [answer(word, gate) for word, gate in zip(says, gates, strict=False)]

    got = judged(evidence(task), results, task.since)

    passes = any(isinstance(it, Passed) for it in results)
    if isinstance(got, Declined):
        assert status is not S.AGENT_REVIEW or (passes and commit != COMMIT)
        return
    completed = [it for it in got.events if isinstance(it, GateCompleted)]
    assert [(it.gate_name, it.task_id) for it in completed] == [(it.gate, ID) for it in results]
    failed = any(isinstance(it, Failed) for it in results)
    assert got.task.failed_attempts == (1 if failed else 0)
    assert got.task.rev == task.rev + 1


def test_work_that_is_lost_with_its_host_is_done_again_and_nobody_is_charged() -> None:
    seen = evidence(a_task(S.AGENT_REVIEW, candidate="", review_round=1), HANDOFF)
    digest = seen.found.handoff_digest
    seen = replace(seen, task=replace(seen.task, spent=frozenset({digest})))

    decision = taken(work_lost(seen, "h1"))
    task = decision.task

    assert decision.drops == "Handoff"
    assert task.status is S.WORKING
    assert task.generation > seen.task.generation
    assert digest not in task.spent
    assert (task.crash_count, task.failed_attempts, task.iteration) == (0, 0, seen.task.iteration)
    assert task.review_round == seen.task.review_round - 1


def test_a_round_without_seats_is_none_that_lost_work_takes_back() -> None:
    seen = evidence(a_task(S.AGENT_REVIEW, candidate="", review_round=1, seats=()))

    assert taken(work_lost(seen, "h1")).task.review_round == 1


@pytest.mark.parametrize(
    "task", [a_task(S.WORKING), a_task(S.AGENT_REVIEW, candidate=COMMIT)], ids=["working", "handed"]
)
def test_what_was_handed_over_is_not_lost_with_its_host(task) -> None:
    refused(work_lost(evidence(task), "h1"))


def test_a_task_leaves_a_lost_host_in_the_turn_in_which_its_work_counts_as_lost() -> None:
    judged = replace(a_task(Status.AGENT_REVIEW), host="h1")
    working = replace(a_task(Status.WORKING), host="h1")

    again, goes_on = (taken(host_gone(evidence(it), "h1")).task for it in (judged, working))

    assert (again.host, again.status) == ("", Status.WORKING)
    assert (goes_on.host, goes_on.status) == ("", Status.WORKING)
    refused(host_gone(evidence(working), "h2"))


def test_what_is_handed_in_after_its_host_was_lost_is_done_again() -> None:
    judged, working = a_task(Status.AGENT_REVIEW), a_task(Status.WORKING)

    assert taken(host_gone(evidence(judged), "h1")).task.status is Status.WORKING
    refused(host_gone(evidence(working), "h1"))
