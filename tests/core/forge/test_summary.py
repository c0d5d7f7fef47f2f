"""A pull request in a few words."""

from msgspec.structs import replace

from lockgate.core.forge.model import CheckState, ReviewState, Rules
from lockgate.core.forge.summary import ci_of, facts_of, line_of, reviews_of
from tests.core.forge.worlds import PULL, SEEN, STRANGER, check, review


def test_checks_are_told_the_worst_first():
    rules = Rules(checks=("a", "b", "c"))
    seen = replace(SEEN, checks=(check(CheckState.PASSED, "a"), check(CheckState.FAILED, "b")))

    assert ci_of(rules, seen) == "failed: b; running: c; passed: a"
    assert ci_of(Rules(), replace(SEEN, base_checks=())) == ""


def test_reviewers_are_told_by_their_last_word():
    seen = replace(
        SEEN,
        reviews=(
            review(ReviewState.APPROVED),
            review(ReviewState.COMMENTED),
            review(ReviewState.CHANGES_REQUESTED, STRANGER),
            review(ReviewState.DISMISSED),
        ),
    )

    assert reviews_of(seen) == "@eve asks for changes"


def test_a_pull_request_in_one_line():
    full = replace(PULL, ci="passed: build", reviews="@ann approved", waits="a look")

    assert line_of(full) == "#12 CI passed: build; @ann approved; waits: a look"
    assert line_of(PULL) == "#12"
    assert facts_of(full)["number"] == 12
