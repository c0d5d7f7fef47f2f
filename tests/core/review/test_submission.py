"""What a reviewer hands in: read as it is, or refused in words by which it can be mended."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.core.model.facts import as_facts
from lockgate.core.model.findings import Finding, Location, Priority, blocks
from lockgate.core.review.submission import (
    LONGEST_SUMMARY,
    LONGEST_TEXT,
    NO_FINDING,
    Group,
    Joined,
    Problem,
    Submission,
    settled,
    submission,
)
from lockgate.core.text.task_file import Verdict

P0, P1, P2, P3 = Priority
WHOLE = {
    "verdict": "Fail",
    "summary": "two things",
    "findings": [
        {
            "priority": "P0",
            "issue": "the query is built from input",
            "file": "src/auth.py",
            "line": 42,
            "column": 7,
            "suggestion": "bind it",
        },
        {"priority": "p3", "issue": "a name"},
    ],
    "converged": True,
}

texts = st.text(max_size=30)
said_findings = st.fixed_dictionaries(
    {"priority": st.sampled_from(["P0", "P1", "P2", "P3"]), "issue": st.just("it breaks")},
    optional={
        "file": st.sampled_from(["a.py", "b/c.py"]),
        "suggestion": texts,
    },
)
said = st.fixed_dictionaries(
    {"verdict": st.sampled_from(["PASS", "FAIL", "pass"])},
    optional={
        "summary": texts,
        "findings": st.lists(said_findings, max_size=3),
        "converged": st.booleans(),
    },
)
keys = st.sampled_from(["verdict", "findings", "groups", "of", "issue", "priority", "line", "x"])
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["PASS", "P1", "a.py", ""])
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


def refused(text: str, **options: object) -> str:
    result = submission(text, **options)  # type: ignore[arg-type]  # checked at run time
    assert isinstance(result, Problem), result
    return result.why


def taken(**keys: object) -> Submission:
    result = submission(json.dumps(keys))
    assert isinstance(result, Submission), result
    return result


def test_a_submission_has_its_verdict_summary_findings_and_whether_it_converged() -> None:
    assert submission(json.dumps(WHOLE)) == Submission(
        Verdict.FAIL,
        "two things",
        (
            Finding(P0, "the query is built from input", Location("src/auth.py", 42, 7), "bind it"),
            Finding(P3, "a name"),
        ),
        converged=True,
    )


def test_a_verdict_is_all_that_is_needed() -> None:
    assert taken(verdict=" pass ") == Submission(Verdict.PASS)
    assert taken(verdict="PASS", summary=None, findings=None, converged=None) == Submission(
        Verdict.PASS
    )


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, ['"verdict" is missing', "PASS or FAIL"]),
        ({"verdict": "PASSED"}, ['"verdict" is "PASSED"', "PASS or FAIL"]),
        ({"verdict": None}, ['"verdict" is null']),
        ({"verdict": True}, ['"verdict" is true']),
        ({"verdict": "PASS", "score": 3}, ['"score"', '"verdict", "summary"']),
        ({"verdict": "PASS", "summary": 3}, ['"summary" is 3', "a text"]),
        ({"verdict": "PASS", "converged": "yes"}, ['"converged" is "yes"', "true or false"]),
        ({"verdict": "PASS", "findings": {}}, ['"findings" is an object', "at most 200"]),
        ({"verdict": "PASS", "findings": [{}] * 201}, ['"findings" is a list of 201']),
        ({"verdict": "PASS", "findings": ["boom"]}, ['finding 1 is "boom"', '"issue"']),
        ({"verdict": ["PASS"]}, ['"verdict" is a list of 1']),
        ({"verdict": "x" * 900}, ["x" * 60 + "..."]),
        ({"verdict": "a\x1bb"}, [r"'a\x1bb'"]),
    ],
)
def test_a_document_that_is_not_right_is_refused_by_key_value_and_what_is_allowed(
    keys, words
) -> None:
    why = refused(json.dumps(keys))

    for word in words:
        assert word in why
    assert len(why) < 400


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        ({"issue": "x"}, ['finding 2: "priority" is missing', "P0, P1, P2 or P3"]),
        ({"priority": "P4", "issue": "x"}, ['"priority" is "P4"']),
        ({"priority": 1, "issue": "x"}, ['"priority" is 1']),
        ({"priority": "P1"}, ['"issue" is missing', "says something"]),
        ({"priority": "P1", "issue": " \x00 "}, ['"issue" is']),
        ({"priority": "P1", "issue": "x", "line": 3}, ['"line" is 3, but "file" is missing']),
        ({"priority": "P1", "issue": "x", "file": 3}, ['"file" is 3']),
        ({"priority": "P1", "issue": "x", "file": "a", "line": 0}, ['"line" is 0', "from 1"]),
        ({"priority": "P1", "issue": "x", "file": "a", "line": True}, ['"line" is true']),
        ({"priority": "P1", "issue": "x", "file": "a", "line": 3.5}, ['"line" is 3.5']),
        ({"priority": "P1", "issue": "x", "file": "a", "line": 10**9}, ['"line" is 1000000000']),
        ({"priority": "P1", "issue": "x", "column": -1}, ['"column" is -1']),
        ({"priority": "P1", "issue": "x", "suggestion": []}, ['"suggestion" is a list of 0']),
        ({"priority": "P1", "issue": "x", "severity": "high"}, ['"severity"', '"priority"']),
    ],
)
def test_a_finding_that_is_not_right_is_refused_with_its_number(finding, words) -> None:
    good = {"priority": "P2", "issue": "fine"}

    why = refused(json.dumps({"verdict": "PASS", "findings": [good, finding]}))

    for word in words:
        assert word in why
    assert why.startswith("finding 2")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not one JSON document"),
        ("PASS", "not one JSON document"),
        ('```json\n{"verdict": "PASS"}\n```', "not one JSON document"),
        ('{"verdict": "PASS"} {"verdict": "FAIL"}', "not one JSON document"),
        ('{"verdict": "FAIL", "verdict": "PASS"}', 'the key "verdict" twice'),
        ('{"verdict": "PASS", "findings": [{"line": NaN}]}', "NaN is no number"),
        ('{"verdict": "PASS", "findings": [{"line": -Infinity}]}', "-Infinity is no number"),
        (f'{{"verdict": {"9" * 100_000}}}', "is too large"),
        ('{"verdict": 1e999}', '"verdict" is inf'),
        ("[" * 200_000, "nested too deeply"),
        ('{"a":' * 200_000, "nested too deeply"),
        ('{"verdict": ' + "[" * 500 + "]" * 500 + "}", '"verdict" is a list of 1'),
        ("[]", "the document is a list of 0"),
        ("null", "the document is null"),
    ],
)
def test_a_text_that_is_no_such_json_is_refused(text, words) -> None:
    assert words in refused(text)
    assert refused(text, synthesis=True)


def test_texts_are_cut_and_have_no_control_characters() -> None:
    finding = {
        "priority": "P2",
        "issue": "one\r\ntwo\x1b[31m\u2028\tthree\ud800" + "x" * 5_000,
        "file": "src/\na.py",
        "line": 3,
        "suggestion": "\x07",
    }

    result = taken(verdict="PASS", summary="y" * 50_000, findings=[finding])

    (found,) = result.findings
    assert found.issue.startswith("one\ntwo[31m\n\tthreex")
    assert len(found.issue) == LONGEST_TEXT
    assert found.issue.endswith("x\u2026")
    assert found.location == Location("src/ a.py", 3)
    assert found.suggestion is None
    assert len(result.summary) == LONGEST_SUMMARY


def test_a_column_without_a_line_is_no_place() -> None:
    finding = {"priority": "P2", "issue": "x", "file": "a.py", "column": 3}

    assert taken(verdict="PASS", findings=[finding]).findings[0].location == Location("a.py")


# --- the computed verdict -------------------------------------------------------------------------


@pytest.mark.parametrize("priority", ["P0", "P1"])
def test_a_pass_with_a_finding_that_blocks_is_a_fail(priority) -> None:
    result = taken(verdict="PASS", findings=[{"priority": priority, "issue": "it breaks"}])

    assert result.verdict is Verdict.FAIL
    assert len(result.findings) == 1


@pytest.mark.parametrize(
    ("summary", "issue"), [("too slow at ten users", "too slow at ten users"), ("", NO_FINDING)]
)
def test_a_fail_without_a_finding_that_blocks_gets_one_out_of_its_summary(summary, issue) -> None:
    result = taken(
        verdict="FAIL", summary=summary, findings=[{"priority": "P2", "issue": "a name"}]
    )

    assert result.findings == (Finding(P1, issue), Finding(P2, "a name"))


@given(said)
def test_a_verdict_is_fail_exactly_where_something_blocks(keys) -> None:
    result = taken(**keys)

    assert (result.verdict is Verdict.FAIL) == any(blocks(it) for it in result.findings)
    assert settled(result) == result


# --- whatever comes -------------------------------------------------------------------------------


@given(st.text() | values.map(json.dumps) | said.map(json.dumps), st.booleans())
def test_any_text_is_a_submission_joined_findings_or_a_problem(text, synthesis) -> None:
    result = submission(text, synthesis=synthesis)

    kinds = (Joined, Problem) if synthesis else (Submission, Problem)
    assert isinstance(result, kinds)
    if isinstance(result, Problem):
        assert result.why
        assert result.why.isprintable()
    json.dumps(as_facts(result), ensure_ascii=False).encode()


@given(said)
def test_no_part_of_a_submission_that_was_cut_short_is_taken(keys) -> None:
    text = json.dumps(keys)

    for end in range(len(text)):
        assert isinstance(submission(text[:end]), Problem)


# --- synthesis ------------------------------------------------------------------------------------


def test_a_synthesis_names_the_findings_that_are_one() -> None:
    groups = [
        {"of": [1, 4], "issue": "both find the query", "suggestion": "bind it"},
        {"of": [2], "issue": "a clearer wording"},
    ]

    result = submission(json.dumps({"groups": groups}), synthesis=True, shown=4)

    assert result == Joined(
        (Group((1, 4), "both find the query", "bind it"), Group((2,), "a clearer wording"))
    )
    assert submission('{"groups": []}', synthesis=True) == Joined(())


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (None, '"groups" is null'),
        ([3], "group 1 is 3"),
        ([{"issue": "x"}], 'group 1: "of" is missing'),
        ([{"of": [], "issue": "x"}], 'group 1: "of" is empty'),
        ([{"of": [1]}], '"issue" is missing'),
        ([{"of": [1], "issue": "x", "priority": "P3"}], '"priority"'),
        ([{"of": [1, 1], "issue": "x"}], '"of" names 1, which is named already'),
        ([{"of": [1], "issue": "x"}, {"of": [2, 1], "issue": "y"}], "group 2"),
        ([{"of": [0], "issue": "x"}], '"of" names 0; allowed are 1 to 4'),
        ([{"of": [5], "issue": "x"}], '"of" names 5; allowed are 1 to 4'),
        ([{"of": [True], "issue": "x"}], '"of" names true'),
        ([{"of": ["1"], "issue": "x"}], '"of" names "1"'),
    ],
)
def test_a_synthesis_that_is_not_right_is_refused_by_group_and_number(groups, words) -> None:
    assert words in refused(json.dumps({"groups": groups}), synthesis=True, shown=4)


def test_a_synthesis_is_no_verdict_and_a_verdict_no_synthesis() -> None:
    assert '"groups"' in refused('{"groups": []}')
    assert '"verdict"' in refused('{"verdict": "PASS"}', synthesis=True)
