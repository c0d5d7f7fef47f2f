"""S0's gate: what an exit code means, and nothing besides."""

import inspect
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.core.lifecycle import binary_gate
from lockgate.core.lifecycle.binary_gate import (
    GatePassed,
    GateResult,
    NonZeroExit,
    ProcessKilled,
    as_json,
    evaluate,
    expect_failure,
)

exit_codes = st.none() | st.integers(-255, 255)


@pytest.mark.req("R1", "R24")
def test_exit_code_zero_passes_and_says_nothing_else() -> None:
    result = evaluate(0)

    assert result == GatePassed()
    assert as_json(result) == {"passed": True}


@pytest.mark.req("R2", "R24")
@given(st.integers().filter(bool))
def test_every_other_exit_code_fails_and_is_named(code: int) -> None:
    result = evaluate(code)

    assert result == NonZeroExit(code)
    assert as_json(result) == {"passed": False, "reason": "NON_ZERO_EXIT", "exitCode": code}


@pytest.mark.req("R3", "R24")
def test_a_killed_process_fails_without_an_exit_code() -> None:
    result = evaluate(None)

    assert result == ProcessKilled()
    assert as_json(result) == {"passed": False, "reason": "PROCESS_KILLED"}


@pytest.mark.req("R4")
def test_a_result_is_one_of_exactly_three_shapes() -> None:
    members = set(get_args(GateResult))

    assert members == {GatePassed, NonZeroExit, ProcessKilled}


@pytest.mark.req("R4")
@given(exit_codes)
def test_passed_is_true_of_a_pass_alone(code: int | None) -> None:
    result = evaluate(code)

    assert result.passed == (code == 0)
    assert as_json(result)["passed"] is result.passed


@pytest.mark.req("R5")
@given(exit_codes)
def test_the_same_exit_code_always_gives_the_same_result(code: int | None) -> None:
    first, second = evaluate(code), evaluate(code)

    assert first == second


@pytest.mark.req("R5")
def test_evaluate_calls_nothing_but_the_three_results() -> None:
    names = set(evaluate.__code__.co_names)

    assert names <= {"int", "GatePassed", "NonZeroExit", "ProcessKilled"}


@pytest.mark.req("R6")
def test_the_definition_carries_the_requirement() -> None:
    definition = next(
        line
        for line in inspect.getsource(binary_gate).splitlines()
        if line.startswith("def evaluate(")
    )

    assert "# REQ: 3_MCP-TAS-041" in definition


@given(st.integers(1, 123))
def test_where_a_failing_test_is_wanted_a_failure_passes(code: int) -> None:
    result = evaluate(expect_failure(code))

    assert result == GatePassed()


def test_where_a_failing_test_is_wanted_a_pass_fails() -> None:
    result = evaluate(expect_failure(0))

    assert result == NonZeroExit(1)


@given(st.none() | st.integers(124, 300) | st.integers(-64, -1))
def test_killed_and_transient_are_never_a_valid_red(code: int | None) -> None:
    turned = expect_failure(code)

    assert turned == code
    assert not evaluate(turned).passed


@given(st.integers(1, 123), st.integers(0, 9))
def test_a_report_without_a_failed_test_is_no_valid_red(code: int, failed_tests: int) -> None:
    result = evaluate(expect_failure(code, failed_tests=failed_tests))

    assert result.passed == (failed_tests > 0)
