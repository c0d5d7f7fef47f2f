"""Issues with a label become tasks; what is not wanted any more is stopped."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.core.forge.model import CheckState, Issue, Person, Remark
from lockgate.core.model.task import Status, TaskId
from tests.scenarios.forge.fake_forge import Harbour, harboured

S = Status
ISSUE = Issue(
    number=5,
    title="Fix the login",
    body="It loops.",
    author="eve",
    labels=("lockgate",),
    labelled_by="ann",
    comments=(Remark(id=1, by=Person("eve"), body="run curl", updated=1.0),),
)


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Harbour]:
    yield from harboured(tmp_path, more='[forge.intake]\nlabel = "lockgate"\nmax_open = 2\n')


def looks(it: Harbour, issue: Issue) -> None:
    it.hub.issues_[issue.number] = issue
    it.intake.sync(it.project, it.hub)


def task_of(it: Harbour, number: int = 5) -> TaskId:
    [task] = it.stage.app.store.on_branch(it.project.id, f"issue-{number}")
    return task.id


def test_a_labelled_issue_becomes_one_task(it):
    it.ready("a")
    looks(it, ISSUE)
    looks(it, ISSUE)

    task = it.task(task_of(it))
    assert task.goal == "Fix the login"
    assert it.hub.said == [f"comment 5: Task `{task.id}` works on this."]
    body = it.stage.app.store.body(task.id) or ""
    assert "> It loops." in body
    assert "curl" not in body


def test_a_crash_between_task_and_row_makes_no_second_task(it):
    it.ready("a")
    looks(it, ISSUE)
    it.rows.drop(task_of(it))
    looks(it, ISSUE)

    assert len(it.stage.app.store.on_branch(it.project.id, "issue-5")) == 1


def test_a_strangers_label_makes_no_task(it):
    it.ready("a")
    looks(it, replace(ISSUE, labelled_by="eve"))

    assert it.hub.said == []
    assert it.intake.listed(it.project, it.hub)[0][1].startswith("@eve gave the label")


def test_an_issue_that_was_edited_is_answered(it):
    it.ready("a")
    looks(it, replace(ISSUE, edited_since=True))

    assert it.hub.said == ["comment 5: its text was changed after it was labelled: label it again"]


def test_the_list_says_what_becomes_of_each(it):
    it.ready("a")
    it.hub.issues_ = {5: ISSUE, 6: replace(ISSUE, number=6, open=False)}
    assert [said for _, said in it.intake.listed(it.project, it.hub)] == [
        "becomes a task",
        "not wanted",
    ]
    looks(it, ISSUE)
    assert it.intake.listed(it.project, it.hub)[0][1] == f"task {task_of(it)}"
    it.hub.issues_[5] = replace(ISSUE, open=False)
    assert it.intake.listed(it.project, it.hub)[0][1] == "its issue was closed"


def test_a_task_whose_issue_was_closed_is_held_where_it_waits_to_land(it):
    it.ready("a")
    looks(it, ISSUE)
    id = task_of(it)
    it.stage.turn()
    looks(it, replace(ISSUE, open=False))
    assert it.task(id).status is S.WORKING
    it.hands_off(id)
    looks(it, replace(ISSUE, open=False))

    assert it.task(id).held == "its issue was closed"


def test_a_task_that_has_not_begun_is_not_started(it):
    it.ready("a")
    looks(it, ISSUE)
    id = task_of(it)
    looks(it, replace(ISSUE, labels=()))
    it.stage.turn()

    assert it.task(id).status is S.PENDING
    assert not it.task(id).auto_start


def test_an_issue_is_closed_once_its_task_is_done(it):
    it.ready("a")
    looks(it, ISSUE)
    id = task_of(it)
    it.stage.turn()
    it.hands_off(id)
    it.opens()
    it.later(1)
    number = it.pull(id).number
    assert "Closes #5" in it.hub.pulls[number].body
    it.hub.ci(number, CheckState.PASSED)
    it.approve(id)
    it.later()

    assert it.task(id).status is S.DONE
    assert "close issue 5" in it.hub.said
