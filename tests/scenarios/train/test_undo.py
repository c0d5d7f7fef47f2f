"""What landed is taken back: by a plain revert that its gates judge, by an agent, or at once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lockgate.core.model.task import Revert, Status, TaskId
from lockgate.core.train.model import Red
from lockgate.errors import Refused, RevertConflicts, TargetIsRed
from lockgate.ports import TaskFilter
from lockgate.services.task.callers import HUMAN
from tests.scenarios.train.fake_yard import Railway, opened
from tests.scenarios.world import git

S = Status


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Railway]:
    yield from opened(tmp_path)


def lands(it: Railway, *branches: str) -> TaskId:
    """The first of them."""
    ids = [it.ready(branch) for branch in branches]
    it.opens()
    it.turn()
    assert it.statuses(*ids) == [S.DONE] * len(ids)
    return ids[0]


def breaks(it: Railway) -> None:
    """A stranger makes the target red, and its gates have said so."""
    it.yard.stranger_pushes("broken")
    it.gates.verdict = lambda content: "fail" if "broken" in content else "pass"
    train = it.view().train(it.view().target(it.project)[0])
    it.log.put_result(train.name, train.rules.config_hash, train.tip.tree, Red("it is broken"))


def test_a_plain_revert_passes_its_gates_and_lands_without_an_agent(it) -> None:
    id = lands(it, "a", "b")

    new = it.undoing.undo(id, HUMAN).id
    it.turn()
    it.turn()

    task = it.task(new)
    assert (task.status, task.goal, task.passed) == (S.DONE, 'Revert "Fix it"', ("tests",))
    assert it.contents()[-1] == {"b"}
    assert it.stage.app.store.sessions(new) == ()
    assert it.stage.world.types(new)[1] == "revert.made"


def test_what_is_reverted_or_about_to_be_is_not_reverted_a_second_time(it) -> None:
    id = lands(it, "a")
    new = it.undoing.undo(id, HUMAN).id

    with pytest.raises(Refused, match=f"task {new} reverts it already, and is agent-review"):
        it.undoing.undo(id, HUMAN)
    it.turn()
    it.turn()
    with pytest.raises(Refused, match=f"nothing of it is left in main: task {new} has reverted it"):
        it.undoing.undo(id, HUMAN)


def test_an_undo_that_was_cut_short_goes_on_with_the_task_that_it_left(it) -> None:
    id = lands(it, "a")
    it.stage.workspaces.in_the_way = "the branch was moved by hand"
    with pytest.raises(Refused, match="the branch was moved by hand"):
        it.undoing.undo(id, HUMAN)
    it.stage.workspaces.in_the_way = ""

    task = it.undoing.undo(id, HUMAN)

    assert task.status is S.AGENT_REVIEW
    every = it.stage.app.store.page(TaskFilter(), None, 9).tasks
    assert [one.id for one in every if one.reverts] == [task.id]


def test_a_branch_that_an_earlier_undo_has_left_is_not_taken(it) -> None:
    id = lands(it, "a")
    git(it.project.root, "branch", f"undo-{id}")

    assert it.undoing.undo(id, HUMAN).branch == f"undo-{id}-2"


def test_only_a_change_that_lockgate_landed_and_that_is_still_there_is_undone(it) -> None:
    waits = it.ready("b")
    with pytest.raises(Refused, match="it has not landed yet"):
        it.undoing.undo(waits, HUMAN)
    id = lands(it, "a")
    landed = it.task(id).landed
    it.yard.history.remove(landed)

    with pytest.raises(Refused, match=f"main does not contain {landed[:12]} any more"):
        it.undoing.undo(id, HUMAN)


def test_on_a_red_target_the_revert_is_not_judged_but_lands_at_once_if_a_human_says_so(it) -> None:
    id = lands(it, "a")
    breaks(it)
    with pytest.raises(TargetIsRed) as told:
        it.undoing.undo(id, HUMAN)

    new = it.undoing.undo_now(id, HUMAN)
    it.turn()

    assert f"lockgate undo {id} --now" in told.value.fix
    assert new.status is S.REVIEWING
    assert new.reverts
    assert new.reverts.unjudged == f"main is red, and a human has task {id} reverted at once"
    assert it.task(new.id).status is S.DONE
    assert it.contents()[-1] == {"broken"}
    assert it.stage.world.types(new.id)[-1] == "landing.unjudged"


def test_on_a_green_target_no_revert_passes_by_the_gates(it) -> None:
    id = lands(it, "a")

    with pytest.raises(Refused, match="main is green, so that its gates can judge a revert"):
        it.undoing.undo_now(id, HUMAN)


def test_a_revert_whose_branch_is_gone_does_not_land(it, monkeypatch) -> None:
    id = lands(it, "a")
    breaks(it)
    monkeypatch.setattr(it.stage.workspaces, "adopt", lambda *_: None)

    with pytest.raises(Refused, match=f"branch undo-{id} is gone"):
        it.undoing.undo_now(id, HUMAN)


def test_where_the_plain_revert_conflicts_an_agent_is_told_where(it) -> None:
    id = lands(it, "a", "b")
    it.yard.clashing = {frozenset("ab")}
    with pytest.raises(RevertConflicts, match=r"ab\.txt"):
        it.undoing.undo(id, HUMAN)

    task = it.undoing.undo_by_agent(id, HUMAN)

    assert task.auto_start
    assert task.reverts == Revert(task=id, landed=it.task(id).landed)
    told = it.stage.world.path(task.id).read_text()
    assert "The plain revert conflicts with later changes in: ab.txt." in told
    assert f"git revert --no-edit {it.task(id).landed}" in told


def test_no_agent_is_started_for_a_revert_that_git_makes_by_itself(it) -> None:
    id = lands(it, "a")

    task = it.undoing.undo_by_agent(id, HUMAN)

    assert task.status is S.AGENT_REVIEW
    assert task.reverts
    assert task.reverts.commit
