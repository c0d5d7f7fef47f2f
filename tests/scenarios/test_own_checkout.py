"""Which gates may have the checkout itself, and what goes with it."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from lockgate.core.config.settings import Settings
from lockgate.core.model.gates import CommandGate, DifferentialGate, Gate, Placement, Where
from lockgate.core.model.results import Broken, Passed
from lockgate.core.model.task import Status
from lockgate.errors import Unavailable
from lockgate.ports import Attempt, Candidate, GateRun, Upkeep
from lockgate.services.gates.runner import GateRunner, evaluation_of
from tests.given import COMMIT, a_task
from tests.scenarios.gates.test_runner import PROJECT, Gatehouse, Says
from tests.scenarios.stage import no_wait
from tests.scenarios.test_shared_checkout import Counting

ALONE = Placement(serial=True, on=(Where.CHANGE,))
TOGETHER = replace(ALONE, serial=False)


@dataclass
class Tidy(Counting):
    """Removes what it is told to."""

    def discard(self, directory: Path) -> None:
        shutil.rmtree(directory, ignore_errors=True)


@dataclass
class Watching(Gatehouse):
    """Keeps something beside the checkout, and has it made anew for each gate but the first."""

    alone: dict[str, bool] = field(default_factory=dict)
    beside: Path = Path()

    def attempt(self, gate: CommandGate, run: GateRun, cancelled: Callable[[], bool]) -> Attempt:
        self.alone[gate.name] = run.alone
        assert isinstance(run.upkeep, Upkeep)
        with run.upkeep.lock:
            if run.upkeep.seen:
                run.upkeep.renew()
            self.beside = run.checkout.parent / ".room"
            self.beside.mkdir(parents=True, exist_ok=True)
            run.upkeep.seen |= {run.checkout: b"so", self.beside: b"so"}
        return super().attempt(gate, run, cancelled)


def judged(workspaces: Counting, house: Watching, *listed: Gate) -> tuple[object, ...]:
    runner = GateRunner(
        home=workspaces.home,
        workspaces=workspaces,
        gates=house,
        conditions=Says(),
        delay=no_wait,
        differential=lambda _it, gate, _cancelled: Broken(gate.name, "not here"),
    )
    task = a_task(Status.AGENT_REVIEW, candidate=COMMIT)
    settings = Settings(formula="none", gates=listed)
    return runner.results(evaluation_of(PROJECT, task, (), settings), lambda: False)


def command(name: str, place: Placement) -> CommandGate:
    return CommandGate(name=name, place=place, command="true")


def test_a_gate_is_alone_where_no_other_command_is_in_its_wave(tmp_path: Path) -> None:
    house = Watching()
    beside = DifferentialGate(name="differential", place=TOGETHER, command="pytest")

    judged(
        Tidy(tmp_path),
        house,
        command("first", ALONE),
        command("a", TOGETHER),
        command("b", TOGETHER),
        command("last", ALONE),
        command("c", TOGETHER),
        beside,
    )

    assert house.alone == {"first": True, "a": False, "b": False, "last": True, "c": True}


def test_what_was_changed_is_checked_out_again_and_all_goes_at_the_end(tmp_path: Path) -> None:
    workspaces, house = Tidy(tmp_path), Watching()

    results = judged(workspaces, house, command("a", ALONE), command("b", ALONE))

    assert all(isinstance(it, Passed) for it in results)
    assert len(workspaces.asked) == 2
    assert not house.beside.exists()
    assert not workspaces.asked[0].exists()


def test_a_checkout_that_cannot_be_made_again_breaks_the_gate(tmp_path: Path) -> None:
    @dataclass
    class Once(Tidy):
        def checkout(self, it: Candidate, directory: Path) -> str:
            if self.asked:
                raise Unavailable("no clone was made", why="the disk is full", fix="make room")
            return super().checkout(it, directory)

    results = judged(Once(tmp_path), Watching(), command("a", ALONE), command("b", ALONE))

    assert [type(it).__name__ for it in results] == ["Passed", "Broken"]
