"""What is kept of pull requests, on both databases."""

from typing import Any

import pytest
from msgspec.structs import replace

from lockgate.adapters.store.pulls import SqlPulls
from lockgate.core.forge.model import Intent, Pull
from lockgate.core.model.task import ProjectId, TaskId
from lockgate.errors import LockgateError

PULL = Pull(
    task=TaskId("é '"),
    project=ProjectId("p1"),
    branch="lockgate/t1",
    number=12,
    url="https://github.com/o/r/pull/12",
    change="c" * 40,
    pushed="a" * 40,
    tree="t" * 40,
    base="b" * 40,
    intent=Intent.MERGE,
    meant="a" * 40,
    delivered=("3@1800000000", "4@1"),
    answered=(3, 4),
    rounds=2,
    since=1.5,
    waits="CI: build",
    issue="github.com/o/r#12",
    etags='{"a":"W/1"}',
)


@pytest.fixture
def pulls(store: Any) -> SqlPulls:
    return SqlPulls(store.database)


def test_a_pull_request_is_kept_as_it_is(pulls):
    pulls.put(PULL)

    assert pulls.of(PULL.task) == PULL
    assert pulls.of(TaskId("other")) is None


def test_a_task_has_one_pull_request(pulls):
    pulls.put(PULL)
    pulls.put(replace(PULL, number=13, intent=Intent.NONE, ready=True, delivered=()))

    assert pulls.all(PULL.project) == (
        replace(PULL, number=13, intent=Intent.NONE, ready=True, delivered=()),
    )


def test_lists_show_those_of_tasks_that_live(pulls, store):
    assert pulls.shown() == {}, "no such task"


def test_pull_requests_are_listed_by_project(pulls):
    other = replace(PULL, task=TaskId("b"), project=ProjectId("p2"))
    pulls.put(PULL)
    pulls.put(other)

    assert pulls.projects() == (ProjectId("p1"), ProjectId("p2"))
    assert pulls.all(ProjectId("p2")) == (other,)


def test_a_pull_request_that_is_dropped_is_gone(pulls):
    pulls.put(PULL)
    pulls.drop(PULL.task)

    assert pulls.all(PULL.project) == ()


@pytest.mark.parametrize("facts", ["{", "[]", '{"rounds": "x"}'])
def test_a_damaged_row_is_named(pulls, store, facts):
    pulls.put(PULL)
    store.database.write(lambda run: run("UPDATE pulls SET facts = :facts", {"facts": facts}))

    with pytest.raises(LockgateError, match="pull request of task"):
        pulls.of(PULL.task)
