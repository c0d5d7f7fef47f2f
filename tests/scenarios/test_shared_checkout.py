"""One clean checkout for all gates of an evaluation."""

from dataclasses import dataclass, field
from pathlib import Path

from lockgate.core.config.settings import Settings
from lockgate.core.model.gates import CommandGate, Placement, Where
from lockgate.core.model.results import Broken, Passed
from lockgate.core.model.task import Status
from lockgate.errors import Unavailable
from lockgate.ports import Candidate
from lockgate.services.gates.runner import GateRunner, evaluation_of
from tests.given import COMMIT, a_task
from tests.scenarios.gates.test_runner import PROJECT, Gatehouse, Says
from tests.scenarios.stage import FakeWorkspaces, no_wait

TOGETHER = Placement(serial=False, on=(Where.CHANGE,))


@dataclass
class Counting(FakeWorkspaces):
    """How often a checkout was asked for, and how many of the first are refused."""

    asked: list[Path] = field(default_factory=list)
    refused: int = 0

    def checkout(self, it: Candidate, directory: Path) -> str:
        self.asked.append(directory)
        if len(self.asked) <= self.refused:
            raise Unavailable("no clone was made", why="the disk is full", fix="make room")
        return super().checkout(it, directory)


def judged(workspaces: Counting, place: Placement, gates: int = 4) -> tuple[object, ...]:
    runner = GateRunner(
        home=workspaces.home,
        workspaces=workspaces,
        gates=Gatehouse(),
        conditions=Says(),
        delay=no_wait,
        differential=lambda _it, gate, _cancelled: Broken(gate.name, "not here"),
    )
    named = tuple(CommandGate(name=f"g{n}", place=place, command="true") for n in range(gates))
    task = a_task(Status.AGENT_REVIEW, candidate=COMMIT)
    settings = Settings(formula="none", gates=named)
    return runner.results(evaluation_of(PROJECT, task, (), settings), lambda: False)


def test_gates_of_one_evaluation_share_their_checkout(tmp_path: Path) -> None:
    workspaces = Counting(tmp_path)

    results = judged(workspaces, TOGETHER)

    assert all(isinstance(it, Passed) for it in results)
    assert len(workspaces.asked) == 1


def test_a_checkout_that_could_not_be_made_breaks_that_gate_and_is_tried_for_the_next(
    tmp_path: Path,
) -> None:
    workspaces = Counting(tmp_path, refused=1)

    results = judged(workspaces, TOGETHER, gates=2)

    assert sorted(type(it).__name__ for it in results) == ["Broken", "Passed"]
    assert len(workspaces.asked) == 2
