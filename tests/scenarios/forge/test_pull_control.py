"""Pull requests as people see and steer them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.core.model.task import Status
from lockgate.errors import Refused
from lockgate.services.task.callers import HUMAN
from tests.scenarios.forge.fake_forge import Harbour, harboured

S = Status


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Harbour]:
    yield from harboured(tmp_path)


def test_a_check_names_what_is_missing(it):
    it.ready("a")
    fine = it.control.check(it.project)
    it.hub.me = replace(
        it.hub.me, kind="fine-grained", sees_checks=False, missing=("checks: read",)
    )
    it.hub.asks = replace(it.hub.asks, strict=True, signed=True)

    poor = it.control.check(it.project)

    assert fine.warnings == (
        "what lands may differ from what was tested: require branches to be up to date",
    )
    assert poor.warnings == (
        "the token lacks: checks: read",
        "it cannot see the checks of other apps: nothing lands by itself",
        "@lockgate[bot] opens the pull requests and cannot approve them",
        "commits must be signed: set [forge] sign = true",
    )
    assert poor.facts()["missing"] == ["checks: read"]


def test_init_is_told_where_the_base_takes_pull_requests_only(it):
    it.ready("a")
    assert "takes pull requests only" in it.control.advised(it.project, "main")
    it.hub.asks = replace(it.hub.asks, pull_request=False)
    assert it.control.advised(it.project, "main") == ""
    it.hub.silent = True
    assert it.control.advised(it.project, "main") == ""


def test_a_task_without_a_pull_request_is_told(it):
    id = it.ready("a")

    assert it.control.find(id) is None
    with pytest.raises(Refused, match="was not offered yet"):
        it.control.of(id)


def test_a_rewritten_head_is_adopted_and_judged(it):
    id = it.offered()
    theirs = it.hub.pushes(12, "fix", over=True)
    it.later()
    assert "somebody rewrote" in it.task(id).held

    it.control.adopt(id, HUMAN)
    it.later(31)

    assert it.task(id).candidate == theirs
    assert it.control.facts(id)["number"] == 12


def test_a_rewritten_head_is_restored(it):
    id = it.offered()
    ours = it.pull(id).pushed
    it.hub.pushes(12, "fix", over=True)
    it.later()

    it.control.restore(id, HUMAN)
    it.later()

    assert it.git.branches[f"lockgate/{id}"] == ours
    assert "somebody rewrote" not in it.task(id).held


def test_what_cannot_be_adopted_or_restored_is_told(it):
    id = it.offered()
    it.git.refuses = "no"
    it.hub.pushes(12, "fix", over=True)
    with pytest.raises(Refused, match="not restored"):
        it.control.restore(id, HUMAN)
    it.git.parents.clear()
    with pytest.raises(Refused, match="no history in common"):
        it.control.adopt(id, HUMAN)
    it.git.branches.clear()
    with pytest.raises(Refused, match="its branch is gone"):
        it.control.adopt(id, HUMAN)
