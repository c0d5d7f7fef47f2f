"""A candidate of the train is tested by the command gates, as often as S1 allows."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.core.config.settings import Settings
from lockgate.core.model.gates import CommandGate, HumanGate, Placement, Where
from lockgate.core.model.task import Pinned
from lockgate.core.train.model import Broken, Built, Commit, Green, Red, Tree
from lockgate.errors import SurroundingsFailed
from lockgate.ports import Cut
from lockgate.services.gates.runner import GateRunner, Wrapping
from lockgate.services.train import queue
from tests.scenarios.gates.test_runner import EDITED, NO_WAIT, PROJECT, Gatehouse, Wrapped, tried
from tests.scenarios.stage import Always, FakeWorkspaces, no_differential, no_wait

BOTH = Placement(serial=True, on=(Where.CHANGE, Where.TRAIN))
BUILT = Built(Commit("c" * 40), Tree("d" * 40))


def a_test(*gates: CommandGate | HumanGate) -> queue.Tested:
    return queue.Tested(
        project=PROJECT,
        settings=Settings(formula="none", gates=gates, limits=NO_WAIT),
        rules=Pinned(base_commit="b" * 40, config_hash="r"),
        built=BUILT,
    )


def command(name: str, place: Placement = BOTH) -> CommandGate:
    return CommandGate(name=name, place=place, command=name, attempts=3)


@pytest.fixture
def house() -> Gatehouse:
    return Gatehouse()


@pytest.fixture
def tests(tmp_path: Path, house: Gatehouse) -> queue.TrainTests:
    workspaces = FakeWorkspaces(tmp_path)
    runner = GateRunner(
        home=tmp_path,
        workspaces=workspaces,
        gates=house,
        conditions=Always(),
        delay=no_wait,
        differential=no_differential,
    )
    return queue.TrainTests(workspaces, runner)


def test_a_flaky_command_gets_its_attempts_and_passes(tests, house) -> None:
    house.plays["a"] = [tried(1), tried(1), tried(0)]

    result, proof = tests.run(a_test(command("a")), lambda: False)

    assert result == Green()
    assert house.asked == ["a", "a", "a"]
    [passed] = json.loads(proof)
    assert passed["proof"]["commit"] == BUILT.commit
    assert "FLAKY" in passed["findings"][0]["issue"]


def test_one_that_fails_in_every_attempt_is_red_with_its_evidence(tests, house) -> None:
    house.plays["a"] = [tried(1, out="a.py:3: boom")] * 3

    result, _ = tests.run(a_test(command("a"), command("b")), lambda: False)

    assert isinstance(result, Red)
    assert "gate a fails" in result.evidence
    assert "a.py:3: boom" in result.evidence
    assert house.asked == ["a", "a", "a"]


def test_one_that_cannot_run_says_nothing_of_the_tree(tests, house) -> None:
    house.plays["a"] = [tried(None, Cut.MEMORY)] * 3

    result, _ = tests.run(a_test(command("a")), lambda: False)

    assert isinstance(result, Broken)


def test_one_whose_surroundings_fail_has_no_result_and_is_to_be_tried_again(tests, house) -> None:
    house.plays["a"] = [tried(125, Cut.BOX)] * 3

    with pytest.raises(SurroundingsFailed, match="gate a could not run"):
        tests.run(a_test(command("a")), lambda: False)


def test_a_command_that_is_killed_on_a_tree_a_second_time_makes_it_red(tests, house) -> None:
    house.plays["a"] = [tried(137)] * 6
    with pytest.raises(SurroundingsFailed):
        tests.run(a_test(command("a")), lambda: False)

    result, _ = tests.run(a_test(command("a")), lambda: False)

    assert isinstance(result, Red)


def test_wrappers_are_compared_only_for_gates_that_judged_no_change(tests, house) -> None:
    it = Wrapped({"a": EDITED, "b": EDITED})
    wrapping = Wrapping(it.found, it.compared)
    late = command("b", Placement(serial=True, on=(Where.TRAIN,)))
    tests = replace(tests, runner=replace(tests.runner, wrapping=wrapping))

    result, _ = tests.run(a_test(command("a"), late), lambda: False)

    assert (result, it.asked) == (Green(), ["b"])


def test_gates_of_the_change_alone_and_people_are_not_asked_again(tests, house) -> None:
    change = Placement(serial=True, on=(Where.CHANGE,))
    train = Placement(serial=True, on=(Where.TRAIN,))
    gates = (command("a", change), command("b", train), HumanGate("h", BOTH))

    result, _ = tests.run(a_test(*gates), lambda: False)

    assert result == Green()
    assert house.asked == ["b"]
