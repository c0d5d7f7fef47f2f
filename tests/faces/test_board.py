"""The board as text: every task is found, what needs a human is whole, lines fit any terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lockgate.core.lifecycle.needs import need_of
from lockgate.core.model.findings import Finding, GateFeedback, Priority
from lockgate.core.model.landings import PullShown
from lockgate.core.model.task import IterationOutcome, IterationRecord, Size, Status
from lockgate.faces.words import board
from lockgate.faces.words.task import MARKS, WORDS, diffstat, one_line, word_of
from tests.given import a_board, a_task

S = Status
NOW = 1_000_000.0
TEXT = st.text(max_size=60) | st.text("漢字かな　ﾊﾛｰ한글e\u0301", max_size=60)
TASKS = st.builds(
    lambda n, status, fields: a_task(
        status,
        id=f"task-{n}",
        summary=fields[0],
        question=fields[1],
        waiting=fields[2] and "sign_off",
        troubled=fields[3],
        agent=fields[4],
        usd=n / 7,
        updated=NOW - n,
    ),
    st.integers(0, 10_000),
    st.sampled_from(S),
    st.tuples(TEXT, TEXT, st.sampled_from(["", "x"]), st.sampled_from(["", "no bwrap"]), TEXT),
)


@given(st.lists(TASKS, max_size=12), st.integers(0, 200))
def test_every_task_and_every_command_is_on_the_board_whatever_the_width(tasks, columns) -> None:
    text = board.board_text(a_board(tasks), NOW, columns)

    for task in tasks:
        assert task.id in text.replace("\n", " ").split(" ")
        need = need_of(task)
        for action in need.actions if need else ():
            assert action.command in text


@given(st.lists(TASKS, max_size=12), st.integers(60, 200))
def test_no_line_is_wider_than_the_terminal_but_one_with_a_command(tasks, columns) -> None:
    text = board.board_text(a_board(tasks), NOW, columns)

    wide = [it for it in text.split("\n") if board.width(it) > columns]
    assert [it for it in wide if "lockgate " not in it and " " in it.strip()] == []


@given(st.lists(TASKS, min_size=1, max_size=12))
def test_in_a_pipe_a_task_has_its_whole_summary_in_its_own_line(tasks) -> None:
    lines = board.board_text(a_board(tasks), NOW, 0).split("\n")

    for task in tasks:
        summary = " ".join(one_line(task.summary).split(" "))
        assert any(task.id in it.split() and it.endswith(summary) for it in lines)


@given(TEXT, st.integers(0, 40))
def test_a_text_is_cut_to_what_fits(text, columns) -> None:
    line = one_line(text)

    short = board.cut(line, columns)

    assert board.width(short) <= columns
    assert short == line or short.endswith("…") or columns == 0


@given(TEXT, st.integers(1, 40))
def test_a_wrapped_text_loses_no_word(text, columns) -> None:
    line = one_line(text)

    lines = board.wrapped(line, columns)

    assert " ".join(lines) == line
    assert all(board.width(it) <= columns or " " not in it for it in lines)


def test_five_hundred_tasks_have_a_line_each() -> None:
    tasks = [a_task(S.PENDING, id=f"task-{n}") for n in range(500)]

    lines = board.board_text(a_board(tasks), NOW, 80).splitlines()

    assert sum(it.startswith("·  task-") for it in lines) == 500


def test_an_empty_board_says_how_to_begin() -> None:
    assert board.board_text(a_board([]), NOW, 80) == board.EMPTY
    assert "lockgate run" in board.EMPTY


def test_what_has_ended_is_one_line() -> None:
    seen = a_board((), DONE=12, CANCELLED=2)

    assert board.board_text(seen, NOW, 80).splitlines() == [
        "nothing needs you, and no agent is at work",
        "12 landed, 2 cancelled: lockgate task list --ended",
    ]


ASKS = a_task(
    S.CLARIFICATION, id="fix-1", question="Which page?", usd=0.82, agent="claude", updated=NOW - 120
)
LANDS = a_task(S.REVIEWING, id="tidy-2", size=Size(3, 90), updated=NOW - 3600, agent="codex")
WORKS = a_task(S.WORKING, id="csv-3", updated=NOW - 5, agent="claude", summary="Export as CSV")


def test_what_needs_you_comes_first_with_why_and_the_command_that_answers() -> None:
    text = board.board_text(a_board([WORKS, LANDS, ASKS]), NOW, 80)

    assert text.splitlines() == [
        "   TASK    STATE          AGE  AGENT   COST   SUMMARY",
        "NEEDS YOU (2)",
        "◆  tidy-2  ready to land  1h   codex          Fix the login redirect",
        "    3 files; all gates passed",
        "    read it: lockgate diff tidy-2",
        "    land it: lockgate approve tidy-2",
        "?  fix-1   asks you       2m   claude  $0.82  Fix the login redirect",
        "    asks: Which page?",
        "    answer: lockgate answer fix-1 -m TEXT",
        "WORKING (1)",
        "▸  csv-3   working        5s   claude         Export as CSV",
        "? asks you, ▸ working, ◆ ready to land; AGE: since the last change of the task",
    ]


def test_on_a_narrow_terminal_the_summary_has_a_line_of_its_own() -> None:
    lines = board.board_text(a_board([WORKS]), NOW, 45).splitlines()

    assert lines[:4] == [
        "   TASK   STATE    AGE  AGENT   COST",
        "WORKING (1)",
        "▸  csv-3  working  5s   claude",
        "    Export as CSV",
    ]


def test_wide_characters_keep_the_columns_aligned() -> None:
    wide = replace(WORKS, id="csv-4", agent="漢字", summary="漢字の表")

    lines = board.board_text(a_board([WORKS, wide]), NOW, 80).splitlines()

    first, second = lines[2], lines[3]
    assert board.width(first.partition("Export")[0]) == board.width(second.partition("漢字の")[0])


def test_work_that_a_gate_sent_back_shows_the_failing_test_and_its_message() -> None:
    found = Finding(Priority.P1_MAJOR, "test_login::test_home: AssertionError: '/' != '/home'")
    feedback = GateFeedback(
        gate_name="tests", findings=(found, found), summary="no", suggested_action="Fix it."
    )
    told = IterationRecord(
        iteration=1, agent_id="a", outcome=IterationOutcome.FAILED_WITH_RETRY, feedback=feedback
    )

    text = board.board_text(a_board([replace(WORKS, history=(told,))]), NOW, 200)

    assert (
        "    last failure, gate tests: test_login::test_home: AssertionError: '/' != '/home'"
        " (and 1 more)\n"
    ) in text


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(-3, "0s"), (59, "59s"), (60, "1m"), (7199, "1h"), (86400, "1d"), (15 * 86400, "2w")],
)
def test_an_age_has_one_unit(seconds, told) -> None:
    assert board.age(seconds) == told


@pytest.mark.parametrize("status", S)
def test_every_status_has_a_word_and_a_mark_and_a_place_on_the_board(status) -> None:
    assert status in WORDS
    assert status in MARKS
    assert any(status in it for it in board.SECTIONS.values())


@pytest.mark.parametrize(
    ("task", "word"),
    [
        (a_task(S.WORKING, taken_over=True), "yours"),
        (a_task(S.AGENT_REVIEW), "checking"),
        (a_task(S.AGENT_REVIEW, waiting="sign_off"), "needs you"),
        (a_task(S.REVIEWING), "ready to land"),
        (a_task(S.REVIEWING, held="no"), "held"),
        (a_task(S.REVIEWING, to_land=True), "landing"),
        (a_task(S.REVIEWING, landed="c" * 40), "landing"),
        (a_task(S.DONE, landed="c" * 40), "landed"),
        (a_task(S.STUCK), "stuck"),
    ],
)
def test_screens_say_what_people_call_a_state(task, word) -> None:
    assert word_of(task) == word


DIFF = """\
diff --git a/login.py b/login.py
--- a/login.py
+++ b/login.py
@@ -1,2 +1,3 @@
 a
--- not a header
+++ nor is this
+b
diff --git a/logo.png b/logo.png
Binary files a/logo.png and b/logo.png differ
"""


def test_a_diffstat_counts_the_lines_of_each_file() -> None:
    assert diffstat(DIFF) == ["login.py  +2  -1", "logo.png  +0  -0", "2 files, +2 -1"]
    assert diffstat("") == []


def test_a_long_diffstat_names_the_first_files() -> None:
    lines = diffstat("".join(f"diff --git a/{n} b/{n}\n@@ -0,0 +1 @@\n+x\n" for n in range(30)))

    assert lines[-2:] == ["and 20 more files", "30 files, +30 -0"]
    assert len(lines) == 12


PULL = PullShown(
    number=12,
    link="https://github.com/o/r/pull/12",
    ci="passed: build",
    reviews="@ann approved",
    waits="it is yours to merge",
    whom="people",
)
SAID = (
    "pull request #12: CI passed: build; @ann approved; waits for people (it is yours to merge) "
    "https://github.com/o/r/pull/12"
)


def test_the_board_status_and_inbox_say_what_a_pull_request_waits_for_and_for_whom() -> None:
    task = a_task(S.REVIEWING, held="pull request #12: it is yours to merge")
    seen = a_board([task])
    seen = replace(seen, rows=tuple(replace(it, pull=PULL) for it in seen.rows))
    need = need_of(task)
    assert need

    assert SAID in board.board_text(seen, NOW, 0)
    assert SAID in board.status_text(board.Home(pid=1, board=seen), NOW, 0)
    assert SAID in board.inbox_text([replace(need, pull=PULL)], NOW, 0)
    assert board.pull_text(PullShown(number=3)) == "pull request #3"
    assert board.pull_text(PullShown(number=3, whom="CI")) == "pull request #3: waits for CI"
