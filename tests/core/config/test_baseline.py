"""What some runs of a command on base come to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.core.config.baseline import SHOWN, SLOW, Baseline, Colour, Timed, measured
from lockgate.core.model.findings import Finding, Priority
from lockgate.core.model.results import Broken, Failed, Passed, SingleGateResult, Waiting
from tests.given import PROOF

MINOR, MAJOR = Finding(Priority.P2_MINOR, "small"), Finding(Priority.P1_MAJOR, "big")
GREEN, RED = Passed("test", PROOF), Failed("test", (MINOR, MAJOR, MINOR, MINOR))
BROKEN, WAITING = Broken("test", "no sandbox"), Waiting("test", "say yes")


def of(*results: SingleGateResult, seconds: float = 1.0) -> Baseline:
    return measured("test", "pytest", tuple(Timed(it, seconds) for it in results))


@pytest.mark.parametrize(
    ("results", "colour", "passed"),
    [
        ((GREEN,), Colour.GREEN, 1),
        ((GREEN, GREEN), Colour.GREEN, 2),
        ((RED, RED), Colour.RED, 0),
        ((GREEN, RED), Colour.FLAKY, 1),
        ((BROKEN,), Colour.BROKEN, 0),
        ((WAITING,), Colour.BROKEN, 0),
        ((BROKEN, GREEN), Colour.GREEN, 1),
        ((), Colour.BROKEN, 0),
    ],
)
def test_its_colour_is_what_its_runs_agree_on(
    results: tuple[SingleGateResult, ...], colour: Colour, passed: int
) -> None:
    found = of(*results)

    assert (found.colour, found.passed, found.runs) == (colour, passed, len(results))


def test_of_a_red_one_the_worst_findings_are_shown_first() -> None:
    found = of(RED)

    assert found.findings[0] == MAJOR
    assert len(found.findings) == SHOWN


@pytest.mark.parametrize(
    ("result", "why"), [(BROKEN, "no sandbox"), (WAITING, "say yes"), (RED, "")]
)
def test_what_could_not_be_run_says_why(result: SingleGateResult, why: str) -> None:
    assert of(result).why == why


@given(st.lists(st.floats(0, 2 * SLOW), min_size=1, max_size=5))
def test_it_is_slow_where_its_longest_run_is(seconds: list[float]) -> None:
    found = measured("test", "pytest", tuple(Timed(GREEN, it) for it in seconds))

    assert found.seconds == max(seconds)
    assert found.slow is any(it > SLOW for it in seconds)
