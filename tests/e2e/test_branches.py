"""A task's branch and the user's branches: no task moves what changes land on."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.core.lifecycle import records
from lockgate.core.model.task import Status, TaskId
from tests.e2e.orchestra import COMPLETE, Orchestra, hands_off, worker
from tests.e2e.test_train import told
from tests.scenarios.world import git

CONFIG = """\
[project]
agent = "scripted"
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "grep -q good answer.txt"
"""
GOOD = worker('{ write = "answer.txt", text = "good\\n" }', hands_off("good"), COMPLETE)


@pytest.fixture
def orchestra(tmp_path: Path) -> Iterator[Orchestra]:
    made = Orchestra(tmp_path, config=CONFIG, scripts={"main": GOOD, "fix": GOOD})
    yield made
    made.close()


def judged(it: Orchestra, id: TaskId) -> None:
    it.up()
    it.until_status(id, Status.REVIEWING)
    it.until(lambda: it.settled(id))


def made_before_branches_were_checked(it: Orchestra, id: TaskId, branch: str) -> TaskId:
    """A row as an earlier version could write it."""
    task = replace(it.task(id), id=TaskId("old-0000"), branch=branch)
    it.app.store.create(records.created(task))
    it.lockgate("task", "cancel", id)
    return task.id


def test_run_with_the_base_as_its_branch_is_refused_and_the_base_stays(orchestra) -> None:
    git(orchestra.root, "checkout", "--quiet", "-b", "feature")
    before = told(orchestra.root, "rev-parse", "main")

    answer = orchestra.lockgate("run", "Do z", "--branch", "main", "--no-wait")

    assert answer.returncode == 1
    assert "changes land on" in answer.stderr
    assert told(orchestra.root, "rev-parse", "main") == before


def test_a_task_that_has_the_base_as_its_branch_never_moves_it(orchestra) -> None:
    id = made_before_branches_were_checked(orchestra, orchestra.create("fix"), "main")
    git(orchestra.root, "checkout", "--quiet", "-b", "feature")
    before = told(orchestra.root, "rev-parse", "main")

    judged(orchestra, id)

    assert told(orchestra.root, "rev-parse", "main") == before
    assert "publish.skipped" in orchestra.types(id)


def test_a_task_whose_branch_the_user_has_checked_out_goes_on_and_says_so(orchestra) -> None:
    id = orchestra.create("fix")
    git(orchestra.root, "checkout", "--quiet", "-b", "fix")
    before = told(orchestra.root, "rev-parse", "fix")

    judged(orchestra, id)

    assert told(orchestra.root, "rev-parse", "fix") == before
    [said] = [it for it in orchestra.app.views.all_events(id) if it.type == "publish.skipped"]
    assert "fix is checked out in" in str(said.data["why"])
    assert "cannot go on" not in orchestra.lockgate("status").stdout
    assert orchestra.lockgate("queue", "approve", id).returncode == 0
    orchestra.wake()
    orchestra.until_status(id, Status.DONE)
