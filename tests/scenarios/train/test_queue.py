"""The merge train at work: a real store, git as small sets, gates that look into them."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lockgate.core.lifecycle.decision import ReleaseWorkspace
from lockgate.core.lifecycle.needs import Trouble
from lockgate.core.lifecycle.transition import stay
from lockgate.core.model.limits import LONGEST_WAIT, SAME_FAILURES
from lockgate.core.model.task import GatesPassed, Status, TaskId
from lockgate.core.train.model import Term
from lockgate.errors import Overtaken, Refused
from lockgate.ports import InTheWay, Landing
from lockgate.services.task.callers import HUMAN
from lockgate.services.train import queue
from lockgate.services.train.queue import LOOK, LOOK_AGAIN, MAY_STILL_PUSH, MergeQueue
from tests.scenarios.train.at_once import TestsAtOnce
from tests.scenarios.train.fake_yard import Content, Railway, nothing, opened
from tests.scenarios.world import git

S = Status


@pytest.fixture
def auto(tmp_path: Path) -> Iterator[Railway]:
    yield from opened(tmp_path)


@pytest.fixture
def manual(tmp_path: Path) -> Iterator[Railway]:
    yield from opened(tmp_path, "manual")


@pytest.fixture
def batched(tmp_path: Path) -> Iterator[Railway]:
    yield from opened(tmp_path, batch=4)


def fails_with(*features: str) -> Callable[[Content], str]:
    return lambda content: "fail" if content.issuperset(features) else "pass"


def approve(it: Railway, *ids: TaskId) -> None:
    for id in ids:
        it.queueing.approve(id, "", HUMAN)


@pytest.mark.req("R146", "R147", "R148", "R174")
def test_a_change_whose_gates_passed_lands_by_itself_and_only_then_its_workspace_goes(auto) -> None:
    id = auto.ready("a")
    task = auto.task(id)
    assert isinstance(task.phase, GatesPassed)
    assert {"AllGatesPassed", "TaskGatesPassed"} <= set(auto.stage.world.types(id))
    assert auto.stage.workspaces.released == []

    released_when_landing: list[TaskId] = []
    auto.yard.at_landing = lambda: released_when_landing.extend(auto.stage.workspaces.released)
    auto.opens()

    task = auto.task(id)
    assert (task.status, task.landed) == (S.DONE, auto.yard.history[-1])
    assert auto.contents() == [set(), {"a"}]
    assert released_when_landing == []
    assert auto.stage.workspaces.released == [id]
    assert not any(
        isinstance(it.effect, ReleaseWorkspace)
        for it in auto.stage.app.store.pending_effects(id, 9)
    )
    assert auto.stage.world.types(id)[-2:] == ["status.changed", "change.landed"]


def test_in_manual_mode_nothing_lands_before_a_human_says_so(manual) -> None:
    id = manual.ready("a")
    manual.opens(LOOK + 1)
    assert manual.contents() == [set()]
    [row] = manual.queueing.listed(manual.project, acting=True).rows
    assert f"lockgate approve {id}" in row.place.why

    approve(manual, id)
    manual.turn()

    assert manual.task(id).status is S.DONE
    assert manual.contents() == [set(), {"a"}]


@pytest.mark.req("R147")
def test_the_landed_commit_has_its_evidence(manual) -> None:
    id = manual.ready("a")
    approve(manual, id)
    manual.opens()

    landed = manual.yard.history[-1]
    evidence = json.loads(manual.yard.notes[landed])
    assert evidence["commit"] == landed
    assert evidence["tree"] == manual.yard.tree(landed)
    assert evidence["onto"] == "start"
    [train] = evidence["train"]
    assert (train["gate"], train["proof"]["tree"]) == ("tests", evidence["tree"])
    [change] = evidence["changes"]
    assert (change["task"], change["change"]) == (id, "change a")
    assert [it["gate"] for it in change["gates"]] == ["tests"]
    assert change["config_hash"] == evidence["config_hash"]


def test_an_approval_is_for_the_change_that_was_shown(manual) -> None:
    id = manual.ready("a")

    with pytest.raises(Refused, match="updated after it was shown"):
        manual.queueing.approve(id, "patch of another", HUMAN)

    assert not manual.task(id).to_land


def test_what_is_not_in_the_queue_can_be_neither_approved_nor_held_nor_dropped(manual) -> None:
    id = manual.stage.world.create("a")

    for steer in (
        lambda: manual.queueing.approve(id, "", HUMAN),
        lambda: manual.queueing.hold(id, "no", HUMAN),
        lambda: manual.queueing.drop(id, "no", HUMAN),
    ):
        with pytest.raises(Refused, match="only a task that is reviewing can land"):
            steer()


def test_a_change_that_fails_only_in_combination_goes_back_and_the_others_land(auto) -> None:
    a, b, c = auto.ready("a"), auto.ready("b"), auto.ready("c")
    auto.gates.verdict = fails_with("a", "b")

    auto.opens()

    task = auto.task(b)
    assert auto.statuses(a, b, c) == [S.DONE, S.WORKING, S.DONE]
    assert (task.failed_attempts, task.iteration, task.review_round) == (1, 1, 0)
    assert auto.contents() == [set(), {"a"}, {"a", "c"}]
    assert "fails on the target as it is now" in auto.told(b)
    assert "['a', 'b'] do not go together" in auto.told(b)

    auto.tries_again(b)
    auto.turn()

    assert auto.task(b).status is S.DONE
    assert auto.contents()[-1] == {"a", "c", "b-"}


def test_a_conflict_goes_back_with_the_files_and_the_other_changes_summary(auto) -> None:
    a, b = auto.ready("a"), auto.ready("b")
    auto.yard.clashing.add(frozenset("ab"))

    auto.opens()

    assert auto.statuses(a, b) == [S.DONE, S.WORKING]
    assert "ab.txt" in auto.told(b)
    assert f"conflicts with {a} (Fix it)" in auto.told(b)
    assert auto.contents() == [set(), {"a"}]


def test_a_red_target_holds_the_queue_and_charges_nobody(auto) -> None:
    a, b = auto.ready("a"), auto.ready("b")
    auto.yard.stranger_pushes("red")
    auto.gates.verdict = fails_with("red")

    auto.opens()

    assert auto.statuses(a, b) == [S.REVIEWING, S.REVIEWING]
    assert [auto.task(it).failed_attempts for it in (a, b)] == [0, 0]
    assert "the target itself is red" in auto.held["queue of repo"].why
    [hold] = auto.queueing.listed(auto.project, acting=True).holds
    assert "the target itself is red" in hold

    auto.gates.verdict = lambda content: "fail" if "red" in content - {"mend"} else "pass"
    auto.yard.stranger_pushes("mend")
    auto.gates.verdict = lambda content: "pass" if "mend" in content else "fail"
    auto.turn(LOOK + 1)

    assert auto.statuses(a, b) == [S.DONE, S.DONE]
    assert auto.held == {}


def test_what_is_held_no_more_is_not_told_of_any_more(auto) -> None:
    id = auto.ready("a")
    auto.yard.stranger_pushes("red")
    auto.gates.verdict = fails_with("red")
    auto.opens()
    assert auto.held

    auto.queueing.drop(id, "not now", HUMAN)
    auto.turn()

    assert auto.held == {}


def test_a_gate_that_cannot_judge_sets_the_change_aside_until_a_human_says_try_again(auto) -> None:
    a, b = auto.ready("a"), auto.ready("b")
    auto.gates.verdict = lambda content: "no disk" if "a" in content else "pass"

    auto.opens()
    assert auto.task(a).held == ""  # it may pass
    for _ in range(SAME_FAILURES):
        auto.turn(LONGEST_WAIT)

    task = auto.task(a)
    assert auto.statuses(a, b) == [S.REVIEWING, S.DONE]
    assert "no disk" in task.held
    assert (task.failed_attempts, task.to_land) == (0, False)
    assert "landing.held" in auto.stage.world.types(a)
    auto.gates.verdict = fails_with("nothing")
    auto.turn(LOOK + 1)
    assert auto.task(a).status is S.REVIEWING

    approve(auto, a)
    auto.turn()

    assert auto.task(a).status is S.DONE


def test_what_could_not_be_judged_in_another_life_is_tried_again(auto) -> None:
    id = auto.ready("a")
    auto.gates.verdict = lambda content: "no disk"
    auto.opens()
    for _ in range(2 * SAME_FAILURES):  # the change, then the tip
        auto.turn(LONGEST_WAIT)
    assert "could not be judged" in auto.held["queue of repo"].why
    assert auto.task(id).held == ""

    auto.gates.verdict = fails_with("nothing")
    auto.restart()
    auto.turn()

    assert auto.task(id).status is S.DONE


def test_a_target_that_moves_under_us_gets_nothing_that_was_not_tested_on_it(auto) -> None:
    a = auto.ready("a")
    pushes = iter(("x", "y"))

    def push() -> None:
        feature = next(pushes, None)
        if feature:
            auto.yard.stranger_pushes(feature)

    auto.yard.at_landing = push
    auto.opens()

    assert auto.task(a).status is S.DONE
    assert auto.contents() == [set(), {"x"}, {"x", "y"}, {"x", "y", "a"}]
    assert auto.gates.tested[-1] == {"x", "y", "a"}


def test_a_checkout_in_the_way_holds_the_landing_and_nothing_else(auto) -> None:
    a, b = auto.ready("a"), auto.ready("b")
    files = ("a.txt", "b c.txt")
    auto.yard.in_the_way = InTheWay("local edits would be overwritten", files, "/repo")

    auto.opens()

    assert auto.statuses(a, b) == [S.REVIEWING, S.REVIEWING]
    assert auto.held["queue of repo"].why.endswith(
        "local edits would be overwritten: a.txt, b c.txt; run: "
        "git -C /repo stash push --all -- a.txt 'b c.txt'"
    )
    assert auto.gates.tested[-2:] == [{"a"}, {"a", "b"}]
    assert auto.task(a).landed == ""

    revs = auto.task(a).rev
    auto.turn(LOOK_AGAIN / 2)
    assert auto.task(a).rev == revs, "it is not tried at every turn"
    auto.yard.in_the_way = None
    auto.turn(LOOK_AGAIN)

    assert auto.statuses(a, b) == [S.DONE, S.DONE]
    assert auto.held == {}


def test_while_the_checkout_is_in_the_way_the_loop_sleeps_and_wakes_in_time(auto) -> None:
    auto.ready("a")
    auto.yard.in_the_way = InTheWay("a merge is under way")
    auto.opens()
    auto.stage.loop.wait(30)

    assert 0 < auto.stage.watch.waits[-1] <= LOOK_AGAIN


def test_a_target_that_takes_pull_requests_only_is_tried_no_more_for_an_hour(auto) -> None:
    auto.ready("a")
    why = 'main takes pull requests only: set [merge] target = "pull_request"'
    tries: list[str] = []
    auto.yard.at_landing = lambda: tries.append("push")
    auto.yard.in_the_way = InTheWay(why)
    auto.opens()
    auto.turn(1800)

    assert why in str(auto.held)
    assert len(tries) == 1


def test_what_is_landing_can_be_neither_held_nor_dropped_nor_rejected_nor_cancelled(auto) -> None:
    id = auto.ready("a")
    refused: list[str] = []

    def meddle() -> None:
        for steer in (
            lambda: auto.queueing.hold(id, "no", HUMAN),
            lambda: auto.queueing.drop(id, "no", HUMAN),
            lambda: auto.stage.app.approvals.reject(id, "no", (), "", HUMAN),
            lambda: auto.stage.world.move(id, S.CANCELLED),
        ):
            with pytest.raises(Refused) as caught:
                steer()
            refused.append(str(caught.value))

    auto.yard.at_landing = meddle
    auto.opens()

    assert auto.task(id).status is S.DONE
    assert len(refused) == 4
    assert all("it is landing at this moment, as start > chan" in it for it in refused)


def test_a_change_that_is_held_stays_until_it_is_approved(auto) -> None:
    a, b = auto.ready("a"), auto.ready("b")
    auto.queueing.hold(a, "after the release", HUMAN)

    auto.opens()

    assert auto.statuses(a, b) == [S.REVIEWING, S.DONE]
    [row] = auto.queueing.listed(auto.project, acting=False).rows
    assert (row.place.standing, row.place.why) == ("held", "after the release")

    approve(auto, a)
    auto.turn()

    assert auto.task(a).status is S.DONE


def test_a_change_that_is_dropped_goes_back_with_the_humans_words(auto) -> None:
    id = auto.ready("a")

    auto.queueing.drop(id, "Use the other library", HUMAN)
    auto.opens()

    assert auto.task(id).status is S.WORKING
    assert auto.task(id).failed_attempts == 1
    assert "Use the other library" in auto.told(id)
    assert auto.contents() == [set()]


def test_a_change_waits_for_what_it_depends_on(auto) -> None:
    first = auto.ready("first")
    auto.queueing.hold(first, "wait", HUMAN)
    second = auto.ready("second")
    app = auto.stage.app
    app.coordinator.turn(second, lambda seen: depending(seen, first))
    auto.opens()
    assert auto.statuses(first, second) == [S.REVIEWING, S.REVIEWING]
    places = {
        row.task.id: row.place for row in auto.queueing.listed(auto.project, acting=True).rows
    }
    assert places[second].why == f"for {first}"

    approve(auto, first)
    auto.turn()

    assert auto.statuses(first, second) == [S.DONE, S.DONE]
    assert auto.contents() == [set(), {"first"}, {"first", "second"}]


def depending(seen: Any, on: TaskId) -> Any:
    return stay(seen, replace(seen.task, depends_on=(on,)))


def test_the_urgent_land_first(auto) -> None:
    ids = [auto.ready("slow", priority=4), auto.ready("usual"), auto.ready("urgent", priority=1)]
    listed = auto.queueing.listed(auto.project, acting=False)
    assert [row.task.id for row in listed.rows] == ids[::-1]

    auto.opens()

    assert auto.contents()[1:] == [{"urgent"}, {"urgent", "usual"}, {"urgent", "usual", "slow"}]


def test_a_batch_lands_at_once_and_one_that_fails_is_halved(batched) -> None:
    ids = [batched.ready(it) for it in "abcd"]
    batched.gates.verdict = fails_with("c")

    batched.opens()

    assert batched.statuses(*ids) == [S.DONE, S.DONE, S.WORKING, S.DONE]
    assert batched.contents() == [set(), {"a", "b"}, {"a", "b", "d"}]
    both = json.loads(batched.yard.notes[batched.yard.history[1]])
    assert [it["task"] for it in both["changes"]] == ids[:2]


def test_other_rules_on_the_target_are_tested_by(auto) -> None:
    a = auto.ready("a")
    auto.yard.in_the_way = InTheWay("not now")
    auto.opens()
    before = len(auto.gates.tested)
    config = auto.stage.world.root / ".lockgate" / "config.toml"
    config.write_text(config.read_text().replace('command = "true"', 'command = "true true"'))
    git(auto.stage.world.root, "commit", "--quiet", "--all", "--message", "Other rules")
    auto.rules.forget()
    auto.turn(LOOK_AGAIN + 1)
    assert auto.gates.tested[before:] == [{"a"}], "the same tree, by the new rules"

    auto.yard.in_the_way = None
    auto.turn(LOOK_AGAIN + 1)

    assert auto.task(a).status is S.DONE


def test_what_does_not_fit_into_one_go_is_done_in_the_next(auto, monkeypatch) -> None:
    monkeypatch.setattr(queue, "ROUNDS", 2)
    a, b = auto.ready("a"), auto.ready("b")

    auto.opens()
    for _ in range(5):
        auto.turn(1)

    assert auto.statuses(a, b) == [S.DONE, S.DONE]


def test_a_test_whose_last_run_still_tidies_up_is_started_at_the_next_look(auto) -> None:
    id = auto.ready("a")
    busy = TestsAtOnce(auto.trains)
    busy.takes = False

    auto.trains.turn(auto.project, busy)
    assert len(busy.asked) == 1
    assert auto.task(id).status is S.REVIEWING
    auto.opens(LOOK + 1)

    assert auto.task(id).status is S.DONE


def test_a_change_that_adds_nothing_is_done_and_leaves_the_tips_own_evidence(auto) -> None:
    auto.ready("a")
    auto.opens()
    evidence = dict(auto.yard.notes)
    auto.yard.adds_nothing = True
    id = auto.ready("b")

    auto.turn()

    assert auto.task(id).status is S.DONE
    assert auto.yard.notes == evidence


def test_candidates_that_nobody_needs_are_let_go(auto) -> None:
    for branch in "abc":
        auto.ready(branch)

    auto.opens()

    log, name = auto.log, auto.view().target(auto.project)[0].name
    rules = auto.rules.rules_of(auto.project).config_hash
    assert log.candidates(name) == ()
    assert list(auto.yard.kept) == []
    assert list(log.results(name, rules)) == [auto.yard.tree(auto.yard.history[-1])]
    assert log.landed(name, float("inf")) == 3


def test_a_forecast_names_who_would_conflict_where(manual) -> None:
    a, b, c = (manual.ready(it) for it in "abc")
    manual.yard.clashing.add(frozenset("ac"))

    forecast = manual.queueing.forecast(manual.task(a))

    assert [(it.task, it.summary, it.files) for it in forecast] == [(c, "Fix it", ("ac.txt",))]
    assert manual.queueing.forecast(manual.task(b)) == ()
    [clash] = manual.queueing.listed(manual.project, acting=False).clashes
    assert ({clash.one, clash.other}, clash.files) == ({a, c}, ("ac.txt",))


# --- another orchestrator -----------------------------------------------------------------------


def to_its_end(it: Railway, trains: MergeQueue) -> None:
    engine = TestsAtOnce(trains)
    trains.turn(it.project, engine)
    while trains.due():
        trains.turn(it.project, engine)


def overtaken(it: Railway, id: TaskId) -> tuple[MergeQueue, int]:
    """A train that is overtaken between its intent and its landing, and the newer epoch."""
    first = it.made(term=Term(it.log.raise_epoch(), it.stage.time.now()))
    raised = list[int]()
    it.yard.at_landing = lambda: raised.append(it.log.raise_epoch())
    with pytest.raises(Overtaken, match="nothing lands from here"):
        to_its_end(it, first)
    it.yard.at_landing = nothing
    assert it.task(id).landed
    return first, raised[-1]


def test_an_orchestrator_that_was_overtaken_moves_nothing_and_settles_nothing(auto) -> None:
    id = auto.ready("a")
    name = auto.view().target(auto.project)[0].name

    first, newer = overtaken(auto, id)

    assert auto.contents() == [set()]
    assert len(auto.log.open_landings(name)) == 1
    with pytest.raises(Overtaken):
        first.turn(auto.project, TestsAtOnce(first))
    assert auto.contents() == [set()]
    assert len(auto.log.open_landings(name)) == 1

    second = auto.made(term=Term(newer, auto.stage.time.now()))
    to_its_end(auto, second)

    assert auto.contents() == [set(), {"a"}]
    assert auto.task(id).status is S.DONE
    assert auto.log.open_landings(name) == ()


@pytest.mark.parametrize("arrives", [False, True], ids=["it does not come", "it comes late"])
def test_what_an_earlier_orchestrator_may_still_push_is_waited_for(auto, arrives) -> None:
    id = auto.ready("a")
    _, newer = overtaken(auto, id)
    auto.yard.shuts_out = False
    name = auto.view().target(auto.project)[0].name
    [landing] = auto.log.open_landings(name)
    begun = auto.stage.time.now()
    second = auto.made(term=Term(newer, begun, lost_after=60.0))

    again = second.turn(auto.project, TestsAtOnce(second))

    assert again == 60.0
    waits = Trouble(why=MAY_STILL_PUSH, project=auto.project.id, since=begun)
    assert auto.held == {"queue of repo": waits}
    assert auto.contents() == [set()]
    assert auto.log.open_landings(name) == (landing,)

    if arrives:
        auto.yard.history.append(landing.commit)
    else:
        auto.stage.time.at += again
    to_its_end(auto, second)

    assert auto.contents() == [set(), {"a"}]
    assert auto.task(id).status is S.DONE
    assert auto.held == {}
    assert auto.log.landed(name, float("inf")) == 1


def test_what_a_newer_orchestrator_is_about_to_land_is_left_to_it(auto) -> None:
    id = auto.ready("a")
    older = auto.made(term=Term(0, 0.0))
    name = auto.view().target(auto.project)[0].name
    landing = Landing(
        expected=auto.yard.history[-1],
        commit=auto.yard.change("z"),
        tree=auto.yard.tree("start"),
        tasks=(id,),
        epoch=auto.log.raise_epoch(),
    )
    meant = auto.log.intend(name, landing, 1.0)
    revision = auto.task(id).rev

    with pytest.raises(Overtaken):
        older.turn(auto.project, TestsAtOnce(older))

    assert auto.log.open_landings(name) == (meant,)
    assert auto.task(id).rev == revision


# --- killed between any two steps ---------------------------------------------------------------


class Killed(BaseException):
    """The orchestrator is gone at this moment."""


class Counted:
    """Dies at the n-th call of anything that is wrapped."""

    def __init__(self, at: int) -> None:
        self.left = at

    def wrap(self, it: object) -> Any:
        return _Wrapped(it, self)

    def call(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed


class _Wrapped:
    def __init__(self, it: object, counted: Counted) -> None:
        self._it, self._counted = it, counted

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._it, name)
        if not callable(found):
            return found

        def called(*args: Any, **kwargs: Any) -> Any:
            self._counted.call()
            return found(*args, **kwargs)

        return called


def killed_at(it: Railway, at: int) -> bool:
    """One life that ends at that call; whether it did. It has one look at the least."""
    counted = Counted(at)
    trains = it.made(
        counted.wrap(it.log),
        counted.wrap(it.stage.app.coordinator),
        counted.wrap(it.yard),
        Term(it.log.raise_epoch(), it.stage.time.now()),
    )
    try:
        to_its_end(it, trains)
    except Killed:
        return True
    return False


def killed_everywhere(it: Railway, every: int) -> int:
    """The same four changes once for each moment; how many calls a whole life has."""
    ids = [it.ready(branch) for branch in "abcd"]
    home, kept = it.stage.world.home, it.stage.world.home.with_name("kept")
    it.close()
    shutil.copytree(home, kept)
    at, dies = 0, True
    while dies:
        shutil.rmtree(home)
        shutil.copytree(kept, home)
        it.yard.history[1:] = []
        it.yard.notes.clear()
        it.gates.tested.clear()
        it.stage.restart()

        dies = killed_at(it, at)
        killed_at(it, 10_000)

        assert_all_ended_well(it, ids, at)
        it.stage.app.store.close()
        at += every
    return at


def assert_all_ended_well(it: Railway, ids: list[TaskId], at: int) -> None:
    assert it.statuses(*ids) == [S.DONE, S.WORKING, S.DONE, S.WORKING], at
    assert it.contents()[-1] == {"a", "c"}, at
    assert len(set(it.yard.history)) == len(it.yard.history), "nothing lands twice"
    assert all(content in it.gates.tested for content in it.contents()[1:]), at
    assert set(it.yard.notes) == set(it.yard.history[1:]), at
    assert [it.task(id).failed_attempts for id in ids] == [0, 1, 0, 1], at
    assert all(it.task(id).landed for id in (ids[0], ids[2]))
    name = it.view().target(it.project)[0].name
    assert it.log.open_landings(name) == (), at
    assert it.log.landed(name, float("inf")) == 2, at


@pytest.mark.parametrize(
    ("batch", "every"),
    [
        (4, 9),
        pytest.param(1, 1, marks=pytest.mark.slow),
        pytest.param(4, 1, marks=pytest.mark.slow),
    ],
)
def test_killed_between_any_two_steps_the_end_is_the_same(tmp_path, batch, every) -> None:
    it = Railway(tmp_path, batch=batch)
    it.yard.clashing = {frozenset("ad")}
    it.gates.verdict = fails_with("a", "b")

    assert killed_everywhere(it, every) > 50


def test_notes_that_git_has_lost_are_written_again_from_the_database_and_all_lands(auto) -> None:
    auto.ready("a")
    auto.opens()
    before = dict(auto.yard.notes)
    auto.yard.notes_lost, auto.yard.notes = True, {}

    id = auto.ready("b")
    auto.turn()

    assert auto.task(id).status is S.DONE
    assert set(auto.yard.notes) == {*before, auto.yard.history[-1]}
    assert auto.yard.notes.items() >= before.items()
