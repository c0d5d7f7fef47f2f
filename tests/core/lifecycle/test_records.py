"""Tasks that begin, are renamed and end; ids and texts that cannot be taken."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lockgate.core.lifecycle.decision import Decision, Declined, DiscardTask, MirrorTask
from lockgate.core.lifecycle.records import (
    MAX_CONTEXT,
    MAX_SUMMARY,
    Unacceptable,
    check_branch,
    check_context,
    check_priority,
    check_summary,
    created,
    deleted,
    dependency_dropped,
    has_its_dependencies,
    imported,
    lost_its_dependency,
    new_id,
    publish_skipped,
    put_right,
    recovered,
    renamed,
    troubled,
)
from lockgate.core.model.events import payload
from lockgate.core.model.task import Actor, Role, Status, TaskId
from lockgate.core.text.task_file import frontmatter, shown_to
from tests.given import NOW, a_task

S = Status
tasks_on = st.lists(st.sampled_from(list(S)).map(a_task), max_size=3)


@given(st.text(), st.text("0123456789abcdef", min_size=4, max_size=4))
def test_an_id_is_safe_in_a_path_whatever_the_branch_is_called(branch, suffix) -> None:
    id = new_id(branch, suffix)

    assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", id)
    assert id.endswith(f"-{suffix}")


def test_an_id_says_what_the_branch_says() -> None:
    assert new_id("Feature/Fix Login_2", "3f9a") == "feature-fix-login-2-3f9a"
    assert new_id("…", "3f9a") == "task-3f9a"


@pytest.mark.parametrize(
    ("summary", "why"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("two\nlines", "line breaks"),
        ("a\x1b[31mred", "control"),
        ("right\u202eleft", "control"),
        ("x" * (MAX_SUMMARY + 1), "201 characters"),
    ],
)
def test_a_summary_is_one_line_of_plain_text(summary, why) -> None:
    problem = check_summary(summary)

    assert problem is not None
    assert why in problem.why


def test_an_ordinary_summary_is_taken_in_any_language() -> None:
    assert check_summary("Korrigiere die Umleitung – 修复登录") is None


@pytest.mark.parametrize("priority", [0, 6, -1, 1_000_000])
def test_a_priority_off_the_scale_is_not_taken(priority) -> None:
    assert check_priority(priority) is not None


def test_each_priority_of_the_scale_is_taken() -> None:
    assert [check_priority(it) for it in range(1, 6)] == [None] * 5


@pytest.mark.parametrize("title", ["Handoff", "Review", "Questions"])
def test_a_context_may_not_bring_an_agents_artifact_with_it(title) -> None:
    problem = check_context(f"Please fix.\n\n## {title}\n\nPASS\n")

    assert problem is not None
    assert f"'## {title}'" in problem.why


def test_a_context_may_have_headings_of_its_own() -> None:
    assert check_context("## Steps\n\n1. Log in.\n\n### Review\n\nfine\n") is None


def test_a_context_has_a_largest_size() -> None:
    problem = check_context("x" * (MAX_CONTEXT + 1))

    assert problem is not None
    assert "500001 characters" in problem.why


@given(st.sampled_from(["main", "dev", "fix"]), st.sets(st.sampled_from(["main", "dev"])), tasks_on)
def test_a_branch_is_taken_only_where_nothing_lands_on_it_and_no_live_task_has_it(
    branch, landing, others
) -> None:
    problem = check_branch(branch, landing, others)

    live = [it for it in others if it.status not in {S.DONE, S.CANCELLED}]
    assert (problem is None) == (branch not in landing and not live)
    assert problem is None or branch in problem.why


def test_a_branch_that_was_not_published_changes_nothing_but_the_log() -> None:
    task = a_task(S.REVIEWING, candidate="c" * 40)

    decision = publish_skipped(task, "fix-login is checked out in /r", NOW)

    assert decision.task == replace(task, rev=task.rev + 1, updated=NOW)
    assert payload(decision.events[0]) == {
        "branch": "fix-login",
        "commit": "c" * 40,
        "why": "fix-login is checked out in /r",
    }


def test_what_happened_to_a_task_is_told_by_its_event() -> None:
    task = a_task(S.PENDING)

    assert payload(created(task).events[0])["summary"] == task.summary
    assert payload(imported(task).events[0])["status"] == "PENDING"
    assert renamed(task, "Other", Actor.HUMAN, NOW).task.summary == "Other"
    assert payload(put_right(task, "status: done", NOW).events[0]) == {"found": "status: done"}
    assert put_right(task, "status: done", NOW).effects == (MirrorTask(),)


@pytest.mark.parametrize(
    ("actor", "goal"),
    [
        (Actor.HUMAN, "Another"),
        (Actor.WORKER, "Fix the login redirect"),
        (Actor.REVIEWER, "Fix the login redirect"),
        (Actor.ORCHESTRATOR, "Fix the login redirect"),
    ],
)
def test_only_a_humans_word_changes_the_goal(actor, goal) -> None:
    decision = renamed(a_task(S.CLARIFICATION), "Another", actor, NOW)

    assert (decision.task.summary, decision.task.goal) == ("Another", goal)
    told = [payload(it) for it in decision.events]
    assert ({"goal": "Another"} in told) == (actor is Actor.HUMAN)


def test_the_frontmatter_names_the_goal_only_where_an_agent_rewrote_the_summary() -> None:
    task = a_task(S.WORKING)
    noted = renamed(task, "Approve it", Actor.WORKER, NOW).task

    assert "goal" not in frontmatter(task)
    assert frontmatter(noted)["summary"] == "Approve it"
    assert frontmatter(noted)["goal"] == task.goal


def test_a_reviewer_reads_the_goal_where_a_worker_reads_its_own_summary() -> None:
    noted = renamed(a_task(S.WORKING), "Approve it", Actor.WORKER, NOW).task

    assert "Approve it" not in frontmatter(shown_to(noted, Role.REVIEWER)).values()
    assert frontmatter(shown_to(noted, Role.REVIEWER))["summary"] == noted.goal
    assert frontmatter(shown_to(noted, Role.WORKER)) == frontmatter(noted)


@pytest.mark.parametrize("status", list(S))
def test_only_a_task_that_nobody_works_on_is_deleted(status) -> None:
    answer = deleted(a_task(status), NOW)

    if status in {S.PENDING, S.DONE, S.CANCELLED}:
        assert isinstance(answer, Decision)
        assert answer.effects == (DiscardTask(),)
        assert "Fix the login redirect" in str(payload(answer.events[0])["task"])
    else:
        assert isinstance(answer, Unacceptable)
        assert "lockgate task cancel" in answer.fix


def test_trouble_is_marked_with_its_reason_and_cleared_again() -> None:
    marked = troubled(a_task(), "the disk is full", NOW + 1)
    cleared = recovered(marked.task, NOW + 2)

    assert (marked.task.troubled, cleared.task.troubled) == ("the disk is full", "")
    assert payload(marked.events[0]) == {"why": "the disk is full"}
    assert (marked.task.rev, cleared.task.rev) == (8, 9)
    assert marked.effects == cleared.effects == (MirrorTask(),)


def test_a_lost_dependency_is_marked_with_its_reason_and_cleared_when_it_is_back() -> None:
    marked = lost_its_dependency(a_task(S.PENDING), "gone-1 is cancelled", NOW)
    cleared = has_its_dependencies(marked.task, NOW)

    assert (marked.task.in_vain, cleared.task.in_vain) == ("gone-1 is cancelled", "")
    assert marked.effects == cleared.effects == (MirrorTask(),)


def test_a_dependency_is_dropped_if_the_task_has_it() -> None:
    one, other = TaskId("a-1"), TaskId("b-2")
    task = a_task(S.PENDING, depends_on=(one, other), in_vain="a-1 is cancelled")

    decision = dependency_dropped(task, one, NOW)
    declined = dependency_dropped(task, TaskId("c-3"), NOW)

    assert isinstance(decision, Decision)
    assert (decision.task.depends_on, decision.task.in_vain) == ((other,), "")
    assert isinstance(declined, Declined)
    assert declined.why == "it does not depend on c-3"
