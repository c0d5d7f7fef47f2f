"""Findings keep their identity from one evaluation to the next."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.core.model.findings import (
    Finding,
    GateFeedback,
    Identity,
    Location,
    Priority,
    compared,
    headline,
    identity,
)

texts = st.sampled_from(["a leak", "A leak", "line 3 is long", "line 44 is long", "boom at 0x7f"])
places = st.none() | st.builds(Location, st.sampled_from(["a.py", "b.py"]), st.integers(1, 9))
findings = st.builds(Finding, st.sampled_from(Priority), texts, places)
feedbacks = st.builds(
    GateFeedback,
    gate_name=st.sampled_from(["lint", "tests"]),
    findings=st.lists(findings, max_size=12).map(tuple),
    summary=st.just(""),
    suggested_action=st.just(""),
)


def counted(feedback: GateFeedback) -> Counter[Identity]:
    return Counter(identity(feedback.gate_name, finding) for finding in feedback.findings)


def feedback(*findings: Finding) -> GateFeedback:
    return GateFeedback(gate_name="lint", findings=findings, summary="", suggested_action="")


@given(feedbacks, feedbacks)
def test_new_and_still_there_are_all_of_now_and_fixed_is_what_before_had_more(before, now) -> None:
    result = compared(before, now)

    assert Counter((*result.new, *result.still_there)) == Counter(now.findings)
    gone = Counter(identity(before.gate_name, it) for it in result.fixed)
    assert gone == counted(before) - counted(now)
    fresh = Counter(identity(now.gate_name, it) for it in result.new)
    assert fresh == counted(now) - counted(before)


@given(feedbacks)
def test_nothing_is_new_or_fixed_when_nothing_changed(same) -> None:
    result = compared(same, same)

    assert (result.new, result.still_there, result.fixed) == ((), same.findings, ())


@given(findings, st.integers(1, 500), st.sampled_from(Priority))
def test_a_finding_that_moved_to_another_line_or_priority_is_the_same(
    found, line, priority
) -> None:
    place = found.location and Location(found.location.file, line)
    moved = Finding(priority, found.issue, place, "a hint")

    assert identity("lint", moved) == identity("lint", found)


def test_of_three_equal_findings_that_are_two_now_one_is_fixed() -> None:
    one = Finding(Priority.P2_MINOR, "a leak", Location("a.py", 3))
    result = compared(feedback(one, one, one), feedback(one, one))

    assert (result.new, result.still_there, result.fixed) == ((), (one, one), (one,))


@pytest.mark.parametrize(
    ("issues", "told"),
    [
        ((), "it said nothing"),
        ((" \n",), "it failed"),
        (("test_a: AssertionError: 1 != 2",), "test_a: AssertionError: 1 != 2"),
        (("one\nValueError: two\nthree",), "ValueError: two"),
        (("one\ntwo",), "two"),
        (("one", "two", "three"), "one (and 2 more)"),
        (("x" * 400,), "x" * 299 + "…"),
    ],
)
def test_a_headline_is_the_line_of_the_worst_finding_that_says_most(issues, told) -> None:
    assert headline(Finding(Priority.P1_MAJOR, it) for it in issues) == told


def test_a_headline_is_of_the_worst_finding_wherever_it_stands() -> None:
    minor = Finding(Priority.P2_MINOR, "long line")
    major = Finding(Priority.P1_MAJOR, "test_a fails")

    assert headline((minor, major)) == "test_a fails (and 1 more)"
