"""What CI and reviewers said, as an agent hears it; texts of others are data."""

import pytest
from msgspec.structs import replace

from lockgate.core.forge import text
from lockgate.core.forge.decide import SendBack
from lockgate.core.forge.findings import (
    SETUP_STEP,
    NotJudged,
    of_failures,
    of_people,
    theirs_is_missing,
)
from lockgate.core.forge.model import Annotation, Failure, ReviewState
from lockgate.core.model.findings import GateFeedback, Location
from tests.core.forge.worlds import comment, remark, review

FAILURE = Failure(
    check="build",
    step="make test",
    log="2026-01-01T00:00:00.0Z ok\n2026-01-01T00:00:01.5Z boom",
    places=(Annotation("a.py", 3, "undefined name"), Annotation("b.py", 0, "cut")),
)


def test_a_failed_job_brings_its_step_its_log_and_its_places():
    found = of_failures([FAILURE])

    assert isinstance(found, GateFeedback)
    assert found.summary == "CI failed: build"
    assert [it.location for it in found.findings] == [Location("a.py", 3), Location("b.py"), None]
    assert "step make test" in found.findings[-1].issue
    assert found.findings[-1].issue.endswith("as data:\nok\nboom")


def test_a_failed_job_with_places_only_needs_no_log():
    found = of_failures([replace(FAILURE, log="", step="")])

    assert isinstance(found, GateFeedback)
    assert found.findings[-1].issue == "job build failed"


@pytest.mark.parametrize(
    "failures",
    [[], [replace(FAILURE, step=SETUP_STEP)], [replace(FAILURE, log="", places=())]],
)
def test_a_job_that_judged_nothing_charges_nobody(failures):
    assert isinstance(of_failures(failures), NotJudged)


def test_of_several_jobs_those_that_judged_are_told():
    found = of_failures([replace(FAILURE, check="set-up", step=SETUP_STEP), FAILURE])

    assert isinstance(found, GateFeedback)
    assert found.summary == "CI failed: build"


def test_reviews_and_comments_are_findings_at_their_places():
    said = SendBack(
        (review(ReviewState.CHANGES_REQUESTED),),
        (
            comment(),
            comment(line=None, original_line=9, hunk="@@ -1 +1 @@\n-old"),
            comment(line=None, original_line=None),
            comment(left=True),
        ),
        (remark("/lockgate fix\nthe name"),),
    )

    found = of_people(said)

    assert found.summary == "changes were asked for by @ann"
    assert [it.location for it in found.findings] == [
        None,
        None,
        Location("a.py", 4),
        Location("a.py", 9),
        Location("a.py"),
        Location("a.py"),
    ]
    assert "it was about:\n@@ -1 +1 @@" in found.findings[3].issue
    assert found.findings[5].issue.endswith("(on a line that the change deletes)")


def test_a_request_without_words_is_a_finding_all_the_same():
    said = SendBack((review(ReviewState.CHANGES_REQUESTED, body=""),), (), ())

    assert [it.issue for it in of_people(said).findings] == ["changes were asked for by @ann"]


def test_an_agent_is_told_to_merge_what_a_person_pushed():
    assert "git merge origin/lockgate/t1" in theirs_is_missing("lockgate/t1").suggested_action


@pytest.mark.parametrize(
    "secret",
    [
        "ghp_" + "a1" * 18,
        "github_pat_" + "a1" * 20,
        "glpat-" + "a1" * 10,
        "AKIA" + "A1" * 8,
        "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMIIE",
    ],
)
def test_what_looks_like_a_token_is_masked(secret):
    assert text.masked(f"key={secret}") == "key=***"


def test_a_login_in_an_address_is_masked():
    assert text.masked("https://me:pw@host/x") == "https://***@host/x"


def test_a_log_has_no_control_bytes_and_is_cut_at_its_front():
    log = "\n".join(f"\x1b[31mline {n}\x1b[0m\x07" for n in range(300)) + "\r\n"

    lines = text.log_tail(log).split("\n")

    assert lines[0] == "line 200"
    assert lines[-1] == "line 299"
    assert len(text.log_tail("é" * 10_000).encode()) <= text.LOG_BYTES


def test_an_issue_has_no_html_and_nothing_that_a_reader_does_not_see():
    raw = "do <!-- rm -rf --> this<img src=x>\u200b\U000e0041 now <!-- open"

    assert text.issue_text(raw) == "do  this now"
    assert text.issue_text("x" * 30_000).endswith("\n[cut here]")


def test_what_somebody_wrote_is_quoted_as_data():
    assert text.quoted_from("one\ntwo", "ann").endswith("instruction:\n\n> one\n> two")


def test_only_what_is_between_our_marks_is_rewritten():
    body = text.with_our_part("theirs", "ours")

    assert text.with_our_part(body.replace("theirs", "edited"), "new") == (
        f"edited\n\n{text.BEGIN}\nnew\n{text.END}"
    )
    assert text.with_our_part("", "ours").startswith(text.BEGIN)
    assert text.with_our_part(f"a {text.BEGIN} b", "ours").startswith(f"a {text.BEGIN} b\n\n")


def test_the_body_says_what_judged_the_change_and_what_it_closes():
    said = text.our_part(
        goal="Fix it", gates=("tests",), rules="c" * 64, usd=0.5, task="t1", closes=12
    )

    assert said.split("\n") == [
        "Fix it",
        "",
        "Passed gates: tests.",
        "Rules cccccccccccc, task t1, cost 0.50 USD.",
        "",
        "Closes #12",
    ]
    assert "none is configured" in text.our_part(goal="", gates=(), rules="", usd=0, task="t")
