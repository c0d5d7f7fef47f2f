"""What gates say, one by one and together."""

from collections.abc import Sequence
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.core.lifecycle.evaluation import (
    GateExecutor,
    conclude,
    feedback_from,
    passing_trouble,
)
from lockgate.core.model.findings import Finding, GateFeedback, Location, Priority
from lockgate.core.model.results import (
    AllPassed,
    Broken,
    EvaluationFailed,
    Failed,
    GateError,
    GateResult,
    Passed,
    Proof,
    SingleGateResult,
    Waiting,
)
from lockgate.core.model.task import GateKind, GateRef, TaskId

P0, P1, P2, P3 = Priority
PROOF = Proof(
    ran=("pytest -q",),
    commit="c0ffee",
    tree="7ree",
    config_hash="beef",
    sandbox="bubblewrap",
    seconds=1.5,
    exit_code=0,
    tests_passed=("test_a",),
)
TESTS, LINT, REVIEW, HUMAN = "tests", "lint", "review", "human"


def ok(gate: str) -> Passed:
    return Passed(gate, PROOF)


def bad(gate: str, *priorities: Priority) -> Failed:
    return Failed(gate, tuple(Finding(it, f"{gate} found {it}") for it in priorities or (P0,)))


single_results = st.lists(
    st.sampled_from([TESTS, LINT, REVIEW]).flatmap(
        lambda gate: st.sampled_from(
            [ok(gate), bad(gate), Waiting(gate, "look"), Broken(gate, "no tool")]
        )
    ),
    max_size=5,
)


class Runner:
    """Has its answers ready, and remembers what it was asked to run."""

    def __init__(self, *results: SingleGateResult) -> None:
        self.results = results
        self.asked: list[GateExecutor] = []

    def __call__(self, executor: GateExecutor) -> Sequence[SingleGateResult]:
        self.asked.append(executor)
        return self.results


def an_executor(*gates: str) -> GateExecutor:
    config = tuple(GateRef(gate, GateKind.COMMAND) for gate in gates)
    return GateExecutor(config, TaskId("t1"), "/w/t1")


@pytest.mark.req("R157")
def test_the_executor_holds_config_task_and_workspace_and_hands_them_to_the_runner() -> None:
    executor, runner = an_executor(TESTS), Runner(ok(TESTS))

    result = executor.execute(runner)

    assert list(GateExecutor.__struct_fields__) == ["config", "task_id", "workspace_path"]
    assert runner.asked == [executor]
    assert result == AllPassed((ok(TESTS),))


@pytest.mark.req("R157")
def test_a_gate_that_could_not_judge_is_an_error_and_no_result() -> None:
    result = an_executor(TESTS, LINT).execute(Runner(ok(TESTS), Broken(LINT, "ruff is missing")))

    assert result == GateError(LINT, "ruff is missing")
    assert not isinstance(result, GateResult)


@pytest.mark.req("R158")
def test_an_evaluations_result_is_all_passed_or_failed() -> None:
    assert set(get_args(GateResult)) == {AllPassed, EvaluationFailed}
    assert list(AllPassed.__struct_fields__) == ["gate_results"]
    assert list(EvaluationFailed.__struct_fields__) == [
        "failed_gate",
        "feedback",
        "passed_gates",
    ]


@pytest.mark.req("R158")
def test_one_gates_result_is_passed_failed_waiting_or_broken() -> None:
    assert set(get_args(SingleGateResult)) == {Passed, Failed, Waiting, Broken}


@pytest.mark.req("R158")
def test_a_failure_names_its_gate_and_those_that_passed() -> None:
    result = conclude([TESTS, LINT, REVIEW], [ok(TESTS), bad(LINT)])

    assert result == EvaluationFailed(LINT, feedback_from([bad(LINT)]), (ok(TESTS),))


def test_a_failure_is_certain_even_beside_a_gate_that_could_not_judge() -> None:
    result = conclude([TESTS, LINT], [Broken(TESTS, "no disk"), bad(LINT)])

    assert isinstance(result, EvaluationFailed)


def test_a_gate_that_waits_for_a_human_makes_the_evaluation_wait() -> None:
    waiting = Waiting(HUMAN, "please look")

    assert conclude([TESTS, HUMAN], [ok(TESTS), waiting]) == waiting


def test_a_gate_without_a_result_is_no_pass() -> None:
    assert conclude([TESTS, LINT], [ok(TESTS)]) == GateError(LINT, "it gave no result")


def test_no_gates_at_all_pass() -> None:
    assert conclude([], []) == AllPassed(())


@pytest.mark.req("R158")
@given(single_results)
def test_all_passed_needs_a_pass_of_every_gate_and_nothing_else(
    results: list[SingleGateResult],
) -> None:
    gates = [TESTS, LINT, REVIEW]

    concluded = conclude(gates, results)

    every_one = {it.gate for it in results} == set(gates)
    only_passes = all(isinstance(it, Passed) for it in results)
    assert isinstance(concluded, AllPassed) == (every_one and only_passes)
    assert isinstance(concluded, EvaluationFailed) == any(isinstance(it, Failed) for it in results)


@pytest.mark.req("R134", "R159")
def test_feedback_names_the_gate_its_findings_and_what_to_do() -> None:
    fix = Finding(P1, "not caught", Location("a.py", 3), "catch it")

    feedback = feedback_from([Failed(TESTS, (Finding(P3, "rename"), fix))])

    assert feedback == GateFeedback(
        gate_name="tests",
        findings=(fix, Finding(P3, "rename")),
        summary="tests failed with 1 P1, 1 P3",
        suggested_action="Fix every P0 and P1 finding, then hand off again.",
    )


@pytest.mark.req("R134")
def test_gates_that_failed_together_give_one_feedback_with_all_findings() -> None:
    feedback = feedback_from([bad(LINT, P2, P2), bad(REVIEW, P0)])

    assert feedback.gate_name == "lint, review"
    assert [it.priority for it in feedback.findings] == [P0, P2, P2]
    assert [it.issue for it in feedback.findings[:2]] == [
        "review: review found P0",
        "lint: lint found P2",
    ]
    assert feedback.summary == "lint, review failed with 1 P0, 2 P2"


@pytest.mark.req("R134")
@pytest.mark.parametrize(
    ("priorities", "words"),
    [((), "Run the gate's command"), ((P2,), "Address the findings"), ((P0,), "Fix every P0")],
)
def test_the_suggested_action_fits_what_was_found(
    priorities: tuple[Priority, ...], words: str
) -> None:
    failed = Failed(TESTS, tuple(Finding(it, "boom") for it in priorities))

    assert feedback_from([failed]).suggested_action.startswith(words)


def test_a_failure_without_findings_says_so() -> None:
    assert feedback_from([Failed(TESTS, ())]).summary == "tests failed with no findings"


@pytest.mark.req("R134")
@given(st.lists(st.lists(st.sampled_from(Priority)), min_size=1, max_size=3))
def test_no_finding_is_lost_on_the_way_to_the_agent(found: list[list[Priority]]) -> None:
    failed = [Failed(f"gate {at}", bad("x", *it).findings) for at, it in enumerate(found) if it]

    feedback = feedback_from(failed)

    several = len(failed) > 1
    assert sorted((it.issue, it.priority) for it in feedback.findings) == sorted(
        (f"{result.gate}: {it.issue}" if several else it.issue, it.priority)
        for result in failed
        for it in result.findings
    )


@pytest.mark.req("R159", "R160", "R161")
def test_feedback_findings_and_places_have_the_fields_of_the_source() -> None:
    shape = {it: list(it.__struct_fields__) for it in (GateFeedback, Finding, Location)}

    assert shape == {
        GateFeedback: ["gate_name", "findings", "summary", "suggested_action"],
        Finding: ["priority", "issue", "location", "suggestion", "quote"],  # the last one is ours
        Location: ["file", "line", "column"],
    }
    assert Finding(P0, "boom") == Finding(P0, "boom", None, None)
    assert Location("a.py") == Location("a.py", None, None)
    assert [it.name for it in Priority] == [
        "P0_CRITICAL",
        "P1_MAJOR",
        "P2_MINOR",
        "P3_SUGGESTION",
    ]


def test_gates_are_tried_again_only_where_none_failed_and_all_trouble_passes() -> None:
    full, gone = Broken(TESTS, "the disk is full", passing=True), Broken(LINT, "no such program")

    assert passing_trouble((ok(REVIEW), full)) == full
    assert passing_trouble((full, gone)) is None
    assert passing_trouble((full, Failed(LINT, ()))) is None
    assert passing_trouble((ok(TESTS),)) is None
