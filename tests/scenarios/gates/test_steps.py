"""S0's steps over a real store: what a sandboxed command exits with is all that moves the DAG."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lockgate.core.lifecycle.binary_gate import evaluate
from lockgate.core.lifecycle.decision import Decision
from lockgate.core.lifecycle.gate_orchestrator import (
    Advance,
    BinaryGateOrchestrator,
    Complete,
    Escalate,
    Stay,
)
from lockgate.core.model import gates
from lockgate.core.model.dag import TaskDAG
from lockgate.core.model.gates import CommandGate
from lockgate.core.model.results import Outcome, ReportRead, TestResult, Unreadable
from lockgate.core.model.task import Role, Status
from lockgate.errors import Refused, Unavailable
from lockgate.ports import Attempt, Cut, GateRun
from lockgate.services.gates.steps import Steps, StepSandbox
from lockgate.services.task.callers import HUMAN, Caller
from tests.scenarios.gates.test_runner import tried
from tests.scenarios.stage import FakeWorkspaces, no_wait
from tests.scenarios.world import World

S = Status
TDD = """\
steps = "tdd"
[project]
agent = "scripted"
[commands]
test = "pytest"
[gates]
formula = "none"
"""


@dataclass
class Sandbox:
    """Exits as it is told, one code a call, the last one for ever after."""

    world: World
    exits: list[int | Attempt | None] = field(default_factory=lambda: [0])
    report: ReportRead | Unreadable = field(
        default_factory=lambda: ReportRead(format=gates.Report.GENERIC)
    )
    calls: list[str] = field(default_factory=list)
    meanwhile: object = None

    def attempt(self, gate: CommandGate, run: GateRun, cancelled) -> Attempt:
        self.calls.append(gate.name)
        if callable(self.meanwhile):
            self.meanwhile()
        if cancelled():
            return tried(None, Cut.CANCELLED)
        code = self.exits.pop(0) if len(self.exits) > 1 else self.exits[0]
        claims = "output says: all tests passed"
        return code if isinstance(code, Attempt) else tried(code, out=claims)

    def read(self, attempt: Attempt, wanted: gates.Report | None) -> ReportRead | Unreadable:
        return self.report


class Clones(FakeWorkspaces):
    """Whose checkouts do go away."""

    def discard(self, directory: Path) -> None:
        shutil.rmtree(directory, ignore_errors=True)


@dataclass
class Bench:
    """A task of a world with steps, and a worker at it."""

    world: World
    sandbox: Sandbox
    steps: Steps
    worker: Caller

    def __post_init__(self) -> None:
        assert self.worker.session is not None
        self.id = self.worker.session.task

    def run(self, *exits: int | Attempt | None, node: str = "", caller: Caller | None = None):
        self.sandbox.exits = list(exits)
        return self.steps.run(self.id, node, caller or self.worker)

    @property
    def task(self):
        return self.world.task(self.id)


@contextmanager
def _alone(_file: Path) -> Generator[bool]:
    yield True


@contextmanager
def _not_alone(_file: Path) -> Generator[bool]:
    yield False


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return a_bench(tmp_path)


def a_bench(place: Path, config: str = TDD) -> Bench:
    world = World.at(place, config)
    id = world.started()
    workspaces = Clones(world.home)
    workspaces.place(id).mkdir(parents=True)
    sandbox = Sandbox(world)
    runs = StepSandbox(
        home=world.home,
        workspaces=workspaces,
        gates=sandbox,
        configuration=world.app.configuration,
        delay=no_wait,
    )
    steps = Steps(home=world.home, coordinator=world.app.coordinator, sandbox=runs, alone=_alone)
    return Bench(world, sandbox, steps, world.begin(id, Role.WORKER))


@pytest.mark.req("R20")
def test_a_run_goes_from_red_to_the_end_by_exit_codes_alone(bench) -> None:
    moves = [bench.run(code).moved for code in (1, 0, 0, 0)]

    assert moves == [Advance("green"), Advance("refactor"), Advance("verify"), Complete()]
    assert bench.task.steps_passed == ("red", "green", "refactor", "verify")
    assert "GATE_FAILED" not in bench.world.types(bench.id)


@pytest.mark.req("R20")
def test_what_the_output_claims_moves_nothing(bench) -> None:
    bench.run(1)

    ran = bench.run(1)

    assert ran.moved == Stay("NON_ZERO_EXIT")
    assert (bench.task.steps_passed, bench.task.step_failures) == (("red",), 1)
    assert bench.world.types(bench.id)[-1] == "GATE_FAILED"


@pytest.mark.req("R20")
@pytest.mark.parametrize(
    ("before", "code", "node", "calls"),
    [
        ((), 0, "red", 1),
        ((1,), 1, "green", 3),
        ((1, 0), 1, "refactor", 1),
        ((1, 0, 0), 1, "verify", 3),
    ],
)
def test_green_and_verify_get_s1s_attempts_and_are_one_failure(
    bench, before, code, node, calls
) -> None:
    for earlier in before:
        bench.run(earlier)
    bench.sandbox.calls.clear()

    ran = bench.run(code)

    assert (ran.tried.step.name, len(bench.sandbox.calls)) == (node, calls)
    assert bench.task.step_failures == 1


def test_a_red_step_whose_tests_pass_stays_red(bench) -> None:
    assert bench.run(0).moved == Stay("NON_ZERO_EXIT")


@pytest.mark.parametrize("code", [None, 124, 128, 137])
def test_a_red_step_is_not_made_by_a_command_that_was_killed(bench, code) -> None:
    assert isinstance(bench.run(code).moved, Stay)


@pytest.mark.parametrize(
    ("outcomes", "moved"),
    [
        (None, Advance("green")),
        ((), Stay("NON_ZERO_EXIT")),
        ((Outcome.PASSED,), Stay("NON_ZERO_EXIT")),
        ((Outcome.PASSED, Outcome.FAILED), Advance("green")),
    ],
)
def test_a_red_step_wants_a_failed_test_where_a_report_names_tests(bench, outcomes, moved) -> None:
    names = outcomes and [TestResult(id=str(it), outcome=it) for it in outcomes]
    tests = names if names is None else tuple(names)
    bench.sandbox.report = ReportRead(format=gates.Report.JUNIT, tests=tests)

    assert bench.run(1).moved == moved


@pytest.mark.parametrize(
    "ended",
    [
        tried(125, Cut.BOX),
        tried(None, Cut.MEMORY),
        tried(None, Cut.SCRATCH),
        tried(None, Cut.PIDS),
        tried(125, Cut.SERVICE),
        tried(126),
        tried(127),
    ],
)
def test_what_could_not_be_judged_counts_for_nothing(bench, ended) -> None:
    before = bench.task

    with pytest.raises(Unavailable, match="could not be judged, and nothing is counted"):
        bench.run(ended)

    assert bench.task == before


def test_a_step_that_ran_out_of_time_has_failed(bench) -> None:
    bench.run(1)
    bench.sandbox.calls.clear()

    ran = bench.run(tried(None, Cut.DEADLINE))

    assert ran.moved == Stay("PROCESS_KILLED")
    assert len(bench.sandbox.calls) == 1


@pytest.mark.req("R20")
def test_three_failures_in_a_row_bring_a_fresh_worker_with_a_count_of_its_own(bench) -> None:
    bench.run(1)

    moves = [bench.run(1).moved for _ in range(3)]
    with pytest.raises(Refused, match="a newer session works on this task"):
        bench.run(0)
    bench.worker = bench.world.begin(bench.id, Role.WORKER)
    again = bench.run(0)

    assert moves[-1] == Escalate()
    assert bench.world.types(bench.id).count("USER_ESCALATION") == 1
    assert again.moved == Advance("refactor")
    assert (bench.task.failed_attempts, bench.task.crash_count) == (1, 0)


def test_another_step_is_run_to_look_and_moves_nothing(bench) -> None:
    bench.run(1)
    before = bench.task

    looks = [
        bench.run(code, node=node) for code, node in ((0, "red"), (0, "verify"), (1, "verify"))
    ]

    assert [it.moved for it in looks] == [None] * 3
    assert [it.tried.result.passed for it in looks] == [False, True, False]
    assert bench.task == before


def test_a_step_is_called_off_when_its_task_moves_on(bench) -> None:
    bench.sandbox.meanwhile = lambda: bench.world.move(bench.id, S.STUCK)

    with pytest.raises(Unavailable, match="cut: cancelled"):
        bench.run(1)

    assert bench.task.steps_passed == ()


def test_a_step_whose_session_has_ended_meanwhile_counts_for_nothing(bench) -> None:
    bench.sandbox.meanwhile = lambda: _end(bench)
    manual = replace(bench.task.pinned, respawn=False)
    bench.world.app.store.commit(_repinned(bench, manual))

    with pytest.raises(Refused, match="counts for nothing: this session has ended"):
        bench.run(1)

    assert bench.task.steps_passed == ()


def test_a_step_is_refused_while_another_one_runs(bench) -> None:
    bench.steps = replace(bench.steps, alone=_not_alone)

    with pytest.raises(Refused, match="another step of it is running"):
        bench.run(1)

    assert bench.sandbox.calls == []


def test_without_a_workspace_no_step_is_run(bench) -> None:
    bench.steps.sandbox.workspaces.place(bench.id).rmdir()

    with pytest.raises(Refused, match="it has no workspace"):
        bench.run(1)


def test_the_steps_of_a_task_are_listed_before_it_starts_and_after(bench) -> None:
    bench.run(1)
    pending = bench.world.create("another")

    listed = [(step.name, str(word)) for step, word in bench.steps.listed(bench.id)]

    assert listed[:2] == [("red", "passed"), ("green", "next")]
    assert {str(word) for _, word in bench.steps.listed(pending)} == {"waiting"}
    assert all(step.command == "pytest" for step, _ in bench.steps.listed(pending))


def test_a_human_runs_a_step_without_a_session(bench) -> None:
    assert bench.run(1, caller=HUMAN).moved == Advance("green")
    assert bench.run(1, caller=HUMAN).moved == Stay("NON_ZERO_EXIT")
    assert bench.task.step_failures == 0


@given(st.lists(st.sampled_from([0, 1, 2, 127, None]), min_size=1, max_size=10))
def test_a_run_escalates_exactly_when_three_steps_fail_in_a_row(codes) -> None:
    run = BinaryGateOrchestrator(TaskDAG.line(("green", "verify")), lambda _entry: None)
    in_a_row = 0

    for code in codes:
        result = run.transition("green", evaluate(code))

        escalated = in_a_row >= 3
        in_a_row = 0 if code == 0 and not escalated else in_a_row + (code != 0)
        assert isinstance(result, Escalate) == (in_a_row >= 3)


def _end(bench: Bench) -> None:
    bench.sandbox.meanwhile = None
    bench.world.ends(bench.worker)


def _repinned(bench: Bench, pinned):
    return Decision(replace(bench.task, pinned=pinned, rev=bench.task.rev + 1))
