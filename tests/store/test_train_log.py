"""What the train remembers, on both databases: candidates, results, and what was meant to land."""

from threading import Event, Thread
from typing import Any

import pytest
from msgspec.structs import replace

from lockgate.adapters.store import sql
from lockgate.adapters.store.database import Run
from lockgate.adapters.store.train_log import SqlTrainLog
from lockgate.core.model.task import TaskId
from lockgate.core.train.model import (
    Broken,
    Built,
    Candidate,
    Change,
    Commit,
    Conflict,
    Green,
    Red,
    Tree,
)
from lockgate.errors import Overtaken
from lockgate.ports import Landing

ONE, TWO = Change(TaskId("a"), Commit("1" * 40)), Change(TaskId("é '"), Commit("2" * 40))
TIP = Commit("0" * 40)
BUILT = Candidate(TIP, (ONE, TWO), Built(Commit("3" * 40), Tree("4" * 40)))
APART = Candidate(TIP, (TWO,), Conflict(TWO.task, (ONE.task,), ("a.py", "é '.py")))
LANDING = Landing(
    expected=TIP, commit=Commit("3" * 40), tree=Tree("4" * 40), tasks=(ONE.task, TWO.task)
)


@pytest.fixture
def log(store: Any) -> Any:
    return SqlTrainLog(store.database)


def test_a_candidate_is_there_again_as_it_was_and_once(log) -> None:
    for it in (BUILT, APART, BUILT):
        log.add_candidate("p main", it)

    assert set(log.candidates("p main")) == {BUILT, APART}
    assert log.candidates("p other") == ()


def test_a_candidate_that_is_dropped_is_gone_and_no_other(log) -> None:
    for target in ("p main", "q main"):
        log.add_candidate(target, BUILT)
        log.add_candidate(target, APART)

    log.drop_candidates("p main", [BUILT])
    log.drop_candidates("p main", [])

    assert log.candidates("p main") == (APART,)
    assert len(log.candidates("q main")) == 2


@pytest.mark.parametrize("result", [Green(), Red("é '\nred"), Broken("no tool")])
def test_a_result_belongs_to_a_tree_and_to_the_rules_it_was_judged_by(log, result) -> None:
    log.put_result("p main", "rules", Tree("t"), Red("first"))
    log.put_result("p main", "rules", Tree("t"), result, "what ran")

    assert log.results("p main", "rules") == {Tree("t"): result}
    assert log.proof("p main", "rules", Tree("t")) == "what ran"
    assert log.results("p main", "others") == {}
    assert log.results("q main", "rules") == {}
    assert log.proof("p main", "rules", Tree("u")) == ""


def test_results_of_trees_that_nobody_needs_are_let_go(log) -> None:
    for tree in ("t", "u", "v"):
        log.put_result("p main", "rules", Tree(tree), Green())

    log.drop_results("p main", [Tree("u")])

    assert set(log.results("p main", "rules")) == {"u"}


def test_an_epoch_is_raised_with_each_start(log) -> None:
    log.check_epoch(0)

    assert [log.raise_epoch(), log.raise_epoch()] == [1, 2]

    log.check_epoch(2)
    for older in (0, 1):
        with pytest.raises(Overtaken):
            log.check_epoch(older)


def test_an_orchestrator_of_an_older_epoch_neither_intends_nor_settles(log) -> None:
    old = log.raise_epoch()
    mine = log.intend("p main", replace(LANDING, epoch=old), 10.0)
    new = log.raise_epoch()

    with pytest.raises(Overtaken):
        log.intend("p main", replace(LANDING, epoch=old), 11.0)
    with pytest.raises(Overtaken):
        log.settle("p main", mine.number, landed=True, epoch=old)

    assert log.open_landings("p main") == (mine,)
    assert log.landed("p main", 99.0) == 0
    theirs = log.intend("p main", replace(LANDING, epoch=new), 12.0)
    log.settle("p main", mine.number, landed=False, epoch=new)
    assert log.open_landings("p main") == (theirs,)
    assert (theirs.epoch, theirs.number) == (new, 2)


def test_nobody_raises_the_epoch_while_a_landing_is_settled(place, store) -> None:
    """The check and the settling are one transaction."""
    log, other = SqlTrainLog(store.database), place.open()
    old = log.raise_epoch()
    mine = log.intend("p main", replace(LANDING, epoch=old), 10.0)
    raised, order = Event(), list[str]()

    def raises() -> None:
        SqlTrainLog(other.database).raise_epoch()
        order.append("raised")
        raised.set()

    thread = Thread(target=raises)

    def settles(run: Run) -> None:
        assert run(sql.HOLD_EPOCH, {"epoch": old}).fetchone()
        thread.start()
        assert not raised.wait(0.5)
        run(sql.SETTLE_LANDING, {"target": "p main", "number": mine.number, "landed": 1})
        order.append("settled")

    store.database.write(settles)
    thread.join(10)
    other.close()
    assert order == ["settled", "raised"]
    assert log.open_landings("p main") == ()


def test_what_was_meant_to_land_is_open_until_it_is_known(log) -> None:
    first = log.intend("p main", LANDING, 10.0)
    second = log.intend("p main", LANDING, 20.0)

    assert (first.number, second.number) == (1, 2)
    assert log.open_landings("p main") == (first, second)
    assert first.tasks == LANDING.tasks
    log.settle("p main", 1, landed=False)
    assert log.landed("p main", 99.0) == 0
    log.settle("p main", 2, landed=True)
    assert log.open_landings("p main") == ()
    assert (log.landed("p main", 20.0), log.landed("p main", 20.5)) == (0, 2)
    assert log.landed("q main", 99.0) == 0
