"""How far a report is believed beside the exit code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lockgate.core.model.findings import Finding, Priority
from lockgate.core.model.gates import Report
from lockgate.core.model.results import (
    FAILING,
    Bad,
    Good,
    NoJudgement,
    Outcome,
    ReportRead,
    TestResult,
    Unreadable,
    believed,
    merged,
)

PASS = TestResult(id="a", outcome=Outcome.PASSED)
SKIP = TestResult(id="s", outcome=Outcome.SKIPPED)
FAIL = TestResult(id="b", outcome=Outcome.FAILED)
P1 = Finding(Priority.P1_MAJOR, "an error")
P2 = Finding(Priority.P2_MINOR, "lint")
GREEN = ReportRead(format=Report.JUNIT, tests=(PASS, SKIP))
RED = ReportRead(format=Report.JUNIT, tests=(PASS, FAIL), findings=(P1,))
EMPTY = ReportRead(format=Report.JUNIT, tests=())
PROSE = ReportRead(format=Report.GENERIC)
NONE = Unreadable("there is no report")

ROWS = [
    (0, GREEN, True, Good(("a",), ())),
    (0, GREEN, False, Good(("a",), ())),
    (0, replace(GREEN, findings=(P2,)), True, Good(("a",), (P2,))),
    (0, RED, True, Bad("the command exited 0, but 1 tests failed", (P1,))),
    (0, replace(RED, complete=False), True, Bad),
    (0, replace(GREEN, complete=False), False, NoJudgement),
    (0, EMPTY, True, NoJudgement),
    (0, EMPTY, False, Good((), ())),
    (0, PROSE, False, Good(None, ())),
    (0, replace(PROSE, findings=(P1, P2)), False, Good(None, (P2,))),
    (0, PROSE, True, NoJudgement),
    (0, ReportRead(format=Report.MYPY, findings=(P1,)), False, Bad),
    (0, NONE, False, NoJudgement("the command exited 0, but there is no report")),
    (1, GREEN, True, Bad("the command exited 1", ())),
    (1, RED, True, Bad("the command exited 1", (P1,))),
    (1, NONE, True, Bad("the command exited 1", ())),
    (5, EMPTY, True, NoJudgement),
    (5, EMPTY, False, Bad),
    (1, replace(EMPTY, findings=(P1,)), True, Bad("the command exited 1", (P1,))),
    (1, replace(EMPTY, complete=False), True, Bad),
    (None, GREEN, True, Bad("the command was killed", ())),
]

results = st.builds(TestResult, id=st.sampled_from("abc"), outcome=st.sampled_from(Outcome))
reads = st.builds(
    ReportRead,
    format=st.sampled_from(Report),
    findings=st.lists(st.sampled_from([P1, P2]), max_size=2).map(tuple),
    tests=st.none() | st.lists(results, max_size=3).map(tuple),
    complete=st.booleans(),
)


@pytest.mark.parametrize(("code", "read", "expected_some", "belief"), ROWS)
def test_exit_code_and_report_are_combined(code, read, expected_some, belief) -> None:
    answer = believed(code, read, expected_some=expected_some)

    assert type(answer) is belief if isinstance(belief, type) else answer == belief


@given(st.none() | st.integers(0, 3), reads | st.just(NONE), st.booleans())
def test_only_exit_0_and_a_whole_report_without_a_failure_is_good(code, read, expected) -> None:
    answer = believed(code, read, expected_some=expected)

    if isinstance(answer, Good):
        assert code == 0
        assert isinstance(read, ReportRead)
        assert read.complete
        assert not any(it.outcome in FAILING for it in read.tests or ())
        assert not expected or read.tests


@given(st.lists(results))
def test_an_id_has_passed_only_if_it_passed_every_time(given_results) -> None:
    found = merged(given_results)

    assert len({it.id for it in found}) == len(found)
    for one in found:
        every = {it.outcome for it in given_results if it.id == one.id}
        assert (one.outcome is Outcome.PASSED) == (every == {Outcome.PASSED})
        assert (one.outcome in FAILING) == bool(every & FAILING)


def test_of_two_equal_results_the_one_that_says_why_is_kept() -> None:
    assert merged([FAIL, replace(FAIL, message="why"), FAIL])[0].message == "why"
