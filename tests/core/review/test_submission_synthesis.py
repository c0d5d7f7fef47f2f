"""Several reviewers' findings as one list: joined, in order, and nothing that blocks is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.core.model.findings import Finding, Location, Priority, blocks, identity
from lockgate.core.model.results import Failed, Passed, Proof
from lockgate.core.review.submission import (
    NOBODY,
    Group,
    Joined,
    Submission,
    joined,
    judged,
    numbered,
)
from lockgate.core.text.feedback import verdict_of
from lockgate.core.text.task_file import Verdict

P0, P1, P2, P3 = Priority
PROOF = Proof(
    ran=("reviewed by claude",), commit="c0", tree="7", config_hash="be", sandbox="", seconds=0.0
)
LEAK = Finding(P1, "a leak", Location("a.py", 3), "close it")
NONE: frozenset[str] = frozenset()

dimensions = st.sampled_from(["correctness", "security", "style"])
places = st.none() | st.builds(Location, st.sampled_from(["a.py", "b.py"]), st.integers(1, 3))
issues = st.sampled_from(["a leak", "A  leak", "line 3 is long", "line 44 is long", "a race\nhere"])
findings = st.builds(
    Finding, st.sampled_from(Priority), issues, places, st.none() | st.sampled_from(["mend", "x"])
)
found_lists = st.lists(st.tuples(dimensions, findings), max_size=8)
groups = st.builds(
    Group, st.lists(st.integers(0, 10), max_size=4).map(tuple), st.sampled_from(["same", "other"])
)
words_given = st.builds(Joined, st.lists(groups, max_size=4).map(tuple))
submissions = st.builds(
    Submission,
    st.sampled_from(Verdict),
    st.sampled_from(["", "bad"]),
    st.lists(findings, max_size=4).map(tuple),
)
reviews = st.lists(st.tuples(dimensions, submissions), max_size=4)


def squeezed(text: str) -> str:
    return " ".join(text.split()).casefold()


def test_findings_are_numbered_reviewer_by_reviewer() -> None:
    first = Submission(Verdict.FAIL, "", (LEAK, Finding(P3, "a name")))
    second = Submission(Verdict.FAIL, "it is not safe")

    assert numbered([("correctness", first), ("security", second)]) == (
        ("correctness", LEAK),
        ("correctness", Finding(P3, "a name")),
        ("security", Finding(P1, "it is not safe")),
    )


def test_a_duplicate_becomes_one_finding_with_both_dimensions_and_the_worst_priority() -> None:
    again = Finding(P0, "A leak", Location("a.py", 9), "use with")

    result = joined([("correctness", LEAK), ("resilience", again)], None)

    assert result == (
        Finding(
            P0,
            "correctness, resilience (also a.py:3): A leak",
            Location("a.py", 9),
            "use with",
        ),
    )


def test_the_same_words_about_another_file_are_another_finding() -> None:
    other = Finding(P1, "a leak", Location("b.py", 3))

    assert len(joined([("correctness", LEAK), ("correctness", other)], None)) == 2


def test_wordings_that_differ_in_numbers_are_all_kept() -> None:
    long = [Finding(P2, f"line {it} is long", Location("a.py", it)) for it in (3, 44)]

    assert joined([("style", it) for it in long], None) == (
        Finding(P2, "style (also a.py:44): line 3 is long / line 44 is long", Location("a.py", 3)),
    )


def test_a_group_becomes_one_finding_in_the_words_of_the_synthesis() -> None:
    race = Finding(P2, "two writers race", Location("b.py", 9))
    alone = Finding(P0, "the key is in the log")
    words = Joined((Group((1, 3), "the file is not locked", "lock it"),))

    result = joined([("correctness", LEAK), ("security", alone), ("resilience", race)], words)

    assert result == (
        Finding(P0, "security: the key is in the log"),
        Finding(
            P1,
            "correctness, resilience (also b.py:9): the file is not locked",
            Location("a.py", 3),
            "lock it",
        ),
    )


def test_a_group_without_a_suggestion_keeps_those_of_its_findings() -> None:
    words = Joined((Group((1,), "reworded"),))

    assert joined([("correctness", LEAK)], words) == (
        Finding(P1, "correctness: reworded", LEAK.location, "close it"),
    )


@pytest.mark.req("R130")
def test_a_group_with_a_p0_keeps_the_p0s_own_words() -> None:
    hole = Finding(P0, "anyone can log in", Location("auth.py", 1))
    words = Joined((Group((1, 2), "a matter of taste", "ignore it"),))

    result = joined([("correctness", LEAK), ("security", hole)], words)

    assert result == (
        Finding(
            P0, "correctness, security (also a.py:3): anyone can log in", Location("auth.py", 1)
        ),
    )


@pytest.mark.req("R130")
@given(found_lists, st.none() | words_given)
def test_every_p0_survives_in_its_own_words(found, words) -> None:
    result = joined(found, words)

    critical = [squeezed(it.issue) for it in result if it.priority is P0]
    for _, finding in found:
        if finding.priority is P0:
            assert any(squeezed(finding.issue) in text for text in critical)


@pytest.mark.req("R130")
@given(found_lists, words_given)
def test_the_verdict_is_the_same_with_and_without_a_synthesis(found, words) -> None:
    apart = [finding for _, finding in found]

    for result in (joined(found, None), joined(found, words)):
        assert verdict_of(result, all_passed=True) is verdict_of(apart, all_passed=True)


@pytest.mark.req("R144")
@given(found_lists, st.none() | words_given)
def test_nothing_that_blocks_disappears(found, words) -> None:
    result = joined(found, words)

    for dimension, finding in found:
        as_bad = [it for it in result if it.priority <= finding.priority]
        named = [it.issue for it in as_bad if dimension in it.issue.split(":")[0]]
        assert named
        if blocks(finding) and finding.location:
            place = f"{finding.location.file}:{finding.location.line}"
            locations = [f"{it.location.file}:{it.location.line}" for it in result if it.location]
            assert place in locations or any(place in text for text in named)
    assert list(result) == sorted(result, key=lambda it: it.priority)
    if words is None:
        assert len(result) == len({identity("", finding) for _, finding in found})


# --- the gate's result ----------------------------------------------------------------------------


@pytest.mark.req("R130", "R144")
def test_one_reviewer_that_finds_what_blocks_fails_the_gate_with_everyones_findings() -> None:
    fine = Submission(Verdict.PASS, "", (Finding(P3, "a name"),))
    bad = Submission(Verdict.FAIL, "", (LEAK,))

    result = judged("review", [("elegance", fine), ("correctness", bad)], NONE, None, PROOF)

    assert result == Failed(
        "review",
        (
            Finding(P1, "correctness: a leak", Location("a.py", 3), "close it"),
            Finding(P3, "elegance: a name"),
        ),
    )


@pytest.mark.req("R130")
def test_a_gate_whose_reviewers_find_nothing_that_blocks_passes_with_what_they_found() -> None:
    fine = Submission(Verdict.PASS, "", (Finding(P2, "a name"),))

    assert judged("review", [("elegance", fine)], NONE, None, PROOF) == Passed(
        "review", PROOF, (Finding(P2, "elegance: a name"),)
    )


def test_what_an_advisory_reviewer_finds_is_marked_and_never_blocks() -> None:
    said = Submission(Verdict.FAIL, "", (Finding(P0, "tabs"), Finding(P3, "a name")))

    assert judged("review", [("style", said)], frozenset({"style"}), None, PROOF) == Passed(
        "review",
        PROOF,
        (Finding(P2, "(style, advisory): tabs"), Finding(P3, "(style, advisory): a name")),
    )


def test_a_fail_in_words_alone_fails_the_gate() -> None:
    result = judged("review", [("general", Submission(Verdict.FAIL, "no"))], NONE, None, PROOF)

    assert result == Failed("review", (Finding(P1, "general: no"),))


def test_a_gate_that_nobody_has_reviewed_does_not_pass() -> None:
    assert judged("review", [], NONE, None, PROOF) == Failed("review", (NOBODY,))


@pytest.mark.req("R130")
@given(reviews, st.frozensets(dimensions), words_given)
def test_a_synthesis_never_changes_whether_the_gate_passes(by_dimension, advisory, words) -> None:
    plain = judged("review", by_dimension, advisory, None, PROOF)
    told = judged("review", by_dimension, advisory, words, PROOF)

    assert type(plain) is type(told)
    voting = [said for dimension, said in by_dimension if dimension not in advisory]
    fails = any(
        said.verdict is Verdict.FAIL or any(blocks(it) for it in said.findings) for said in voting
    )
    assert isinstance(told, Failed) == (fails or not by_dimension)
