"""A pull request in a few words."""

import pytest
from msgspec.structs import replace

from lockgate.core.forge.model import CheckState, Intent, ReviewState, Rules
from lockgate.core.forge.summary import ci_of, facts_of, line_of, news_of, reviews_of, shown_of
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


@pytest.mark.parametrize(
    ("fields", "waits", "whom"),
    [
        ({}, "", ""),
        ({"waits": "CI: build"}, "CI: build", "CI"),
        (
            {"waits": "main does not have its merge yet"},
            "main does not have its merge yet",
            "the forge",
        ),
        (
            {"waits": "it waits for an approval", "whom": "people"},
            "it waits for an approval",
            "people",
        ),
        ({"ready": True}, "", "Lockgate"),
        ({"intent": Intent.MERGE}, "the forge was asked to merge it", "Lockgate"),
    ],
)
def test_a_list_says_what_it_waits_for_and_for_whom(fields, waits, whom):
    shown = shown_of(replace(PULL, **{"waits": "", **fields}))

    assert (shown.number, shown.waits, shown.whom) == (12, waits, whom)


@pytest.mark.parametrize(
    ("url", "link"),
    [("https://github.com/o/r/pull/12", "https://github.com/o/r/pull/12"), ("javascript:x()", "")],
)
def test_only_an_address_of_the_web_is_a_link(url, link):
    assert shown_of(replace(PULL, url=url)).link == link


def test_news_are_what_ci_and_reviewers_say_that_they_did_not_say_before():
    now = replace(PULL, ci="passed: build", reviews="@ann approved")

    assert news_of(PULL, now) == "CI passed: build; @ann approved"
    assert news_of(now, replace(now, waits="a look")) == ""
    assert news_of(now, replace(now, ci="")) == "@ann approved"
