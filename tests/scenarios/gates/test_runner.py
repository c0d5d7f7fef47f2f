"""Gates in their waves: what runs together, what waits, what a command's attempts come to."""

import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.core.config.settings import Settings
from lockgate.core.model import gates
from lockgate.core.model.brought import Brought, SetUpFailed
from lockgate.core.model.findings import Finding, Priority
from lockgate.core.model.gates import (
    CommandGate,
    Gate,
    HumanGate,
    ParallelReviewGate,
    Placement,
    Where,
)
from lockgate.core.model.limits import Limits
from lockgate.core.model.results import (
    Broken,
    Failed,
    Outcome,
    Passed,
    ReportRead,
    TestResult,
    Unreadable,
    Waiting,
)
from lockgate.core.model.retry import narrowed
from lockgate.core.model.task import Approval, ProjectId, Status, TaskId
from lockgate.core.wrappers.edits import Edit, edits
from lockgate.ports import Attempt, Cut, GateRun, Project
from lockgate.services.gates.command import Patience
from lockgate.services.gates.runner import Evaluation, GateRunner, Wrapping, evaluation_of
from tests.given import COMMIT, a_task
from tests.scenarios.stage import FakeWorkspaces, no_differential, no_wait

PROJECT = Project(id=ProjectId("p1"), name="p", common_dir="/p", root="/p")
TOGETHER = Placement(serial=False, on=(Where.CHANGE,))
ALONE = replace(TOGETHER, serial=True)
NO_WAIT = Limits(call_base_delay_ms=0)


def tried(code: int | None = 0, cut: Cut | None = None, out: str = "") -> Attempt:
    return Attempt(
        exit_code=code,
        cut=cut,
        why=f"cut: {cut}" if cut else "",
        out=out,
        err="",
        report_dir=None,
        seconds=0.1,
        level="bubblewrap",
    )


@dataclass
class Gatehouse:
    """What each gate's attempts come to; by default all pass."""

    plays: dict[str, list[Attempt]] = field(default_factory=dict)
    reports: dict[str, ReportRead] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    meet: threading.Barrier | None = None
    inside: int = 0
    most: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def attempt(self, gate: CommandGate, run: GateRun, cancelled: Callable[[], bool]) -> Attempt:
        with self._lock:
            self.asked.append(gate.name)
            self.commands.append(gate.command)
            self.inside += 1
            self.most = max(self.most, self.inside)
        if self.meet:
            self.meet.wait(10)
        with self._lock:
            self.inside -= 1
            left = self.plays.get(gate.name, [tried()])
            return replace(left.pop(0) if len(left) > 1 else left[0], err=gate.name)

    def read(self, attempt: Attempt, wanted: gates.Report | None) -> ReportRead | Unreadable:
        told = self.reports.get(attempt.out) or self.reports.get(attempt.err)
        return told or ReportRead(format=gates.Report.GENERIC)


@dataclass
class Says:
    holds: bool = True
    heard: list[tuple[str, Mapping[str, object], Mapping[str, object]]] = field(
        default_factory=list
    )

    def hold(self, when: str, task: Mapping[str, object], change: Mapping[str, object]) -> bool:
        self.heard.append((when, task, change))
        return self.holds


@dataclass
class Bench:
    house: Gatehouse
    says: Says
    runner: GateRunner

    def judge(self, *listed: Gate, **fields: object):
        fields = {"candidate": COMMIT, "patch": "p1", **fields}
        task = a_task(Status.AGENT_REVIEW, **fields)
        settings = Settings(formula="none", gates=listed, limits=NO_WAIT)
        it = evaluation_of(PROJECT, task, ("api/a.py",), settings)
        return self.runner.results(it, lambda: False)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    house, says = Gatehouse(), Says()
    runner = GateRunner(
        home=tmp_path,
        workspaces=FakeWorkspaces(tmp_path),
        gates=house,
        conditions=says,
        delay=no_wait,
        differential=no_differential,
    )
    return Bench(house, says, runner)


def command(name: str, place: Placement = ALONE, **fields: object) -> CommandGate:
    return CommandGate(name=name, place=place, command=name, **fields)  # type: ignore[arg-type]  # a test's own


@pytest.mark.req("R125", "R126")
def test_neighbours_run_together_and_a_serial_gate_waits_for_them(bench) -> None:
    bench.house.meet = threading.Barrier(2)

    results = bench.judge(command("a", TOGETHER), command("b", TOGETHER))

    assert [it.gate for it in results] == ["a", "b"]
    assert bench.house.most == 2


@pytest.mark.req("R123", "R125")
def test_nothing_runs_behind_a_serial_gate_that_failed(bench) -> None:
    bench.house.plays["a"] = [tried(1)]

    results = bench.judge(command("a", attempts=1), command("b"))

    assert [type(it) for it in results] == [Failed]
    assert bench.house.asked == ["a"]


def test_all_of_a_wave_are_heard_though_one_failed(bench) -> None:
    bench.house.plays["a"] = [tried(1)]

    results = bench.judge(command("a", TOGETHER, attempts=1), command("b", TOGETHER), command("c"))

    assert [type(it) for it in results] == [Failed, Passed]


def test_gates_of_one_exclusive_word_never_run_at_once(bench) -> None:
    place = replace(TOGETHER, exclusive="database")

    bench.judge(*(command(name, place) for name in "abcd"))

    assert bench.house.most == 1


@pytest.mark.req("R151")
@pytest.mark.parametrize("holds", [True, False])
def test_a_review_is_asked_for_only_where_its_when_holds(bench, holds: bool) -> None:
    bench.says.holds = holds
    place = replace(TOGETHER, when="task.priority == 1")
    review = ParallelReviewGate(name="review", place=place)

    results = bench.judge(command("a"), review, command("b"))

    assert [it.gate for it in results] == (["a"] if holds else ["a", "review", "b"])
    assert all(isinstance(it, Passed) for it in results)


@pytest.mark.req("R151")
def test_a_gate_whose_condition_does_not_hold_is_not_run(bench) -> None:
    bench.says.holds = False

    [result] = bench.judge(command("a", replace(ALONE, when="task.priority == 1")))

    assert isinstance(result, Passed)
    assert result.proof.ran == ("not asked for: task.priority == 1",)
    assert bench.house.asked == []
    [(_, task, change)] = bench.says.heard
    assert task["priority"] == 3
    assert change == {"paths": ["api/a.py"], "files_changed": 1}


def test_a_gate_whose_paths_the_change_does_not_touch_is_not_run(bench) -> None:
    web, api = (replace(ALONE, paths=(f"{it}/**",)) for it in ("web", "api"))

    results = bench.judge(command("a", web), command("b", api))

    assert [it.proof.ran[0] for it in results if isinstance(it, Passed)] == [
        'not asked for: paths = ["web/**"]',
        "b",
    ]


def test_a_condition_reads_the_goal_and_not_the_summary_that_an_agent_wrote(bench) -> None:
    gate = command("a", replace(ALONE, when="task.summary.contains('login')"))

    bench.judge(gate, summary="Skip this gate")

    [(_, task, _)] = bench.says.heard
    assert task["summary"] == "Fix the login redirect"


@pytest.mark.req("R145")
def test_no_result_is_kept_for_the_next_evaluation_or_for_another_task(bench) -> None:
    first = bench.judge(command("a"))
    bench.house.plays["a"] = [tried(1), tried(1)]

    again = bench.judge(command("a", attempts=1))
    other = bench.judge(command("a", attempts=1), id=TaskId("other-1"))

    assert [type(it[0]) for it in (first, again, other)] == [Passed, Failed, Failed]
    assert bench.house.asked == ["a", "a", "a"]


@pytest.mark.req("R127")
def test_three_attempts_and_the_last_one_decides(bench) -> None:
    bench.house.plays["a"] = [tried(1), tried(124), tried(1, out="boom")]

    [result] = bench.judge(command("a", attempts=3))

    assert bench.house.asked == ["a", "a", "a"]
    assert isinstance(result, Failed)
    assert "boom" in result.findings[0].issue


def test_a_pass_after_a_failure_is_flaky(bench) -> None:
    bench.house.plays["a"] = [tried(1), tried(0)]

    [result] = bench.judge(command("a", attempts=2))

    assert isinstance(result, Passed)
    assert result.findings[0].issue.startswith("FLAKY")


@pytest.mark.parametrize(
    ("attempt", "kind", "times"),
    [
        (tried(None, Cut.DEADLINE), Failed, 1),
        (tried(None, Cut.MEMORY), Broken, 3),
        (tried(125, Cut.BOX), Broken, 3),
        (tried(127), Broken, 3),
        (tried(137), Broken, 3),
        (tried(None), Broken, 3),
        (tried(139), Failed, 3),
        (tried(124), Failed, 3),
        (tried(1), Failed, 1),
        (tried(255), Failed, 1),
    ],
)
def test_what_could_not_judge_is_broken_and_our_own_time_out_is_a_failure(
    bench, attempt, kind, times
) -> None:
    bench.house.plays["a"] = [attempt]

    [result] = bench.judge(command("a"))

    assert isinstance(result, kind)
    assert len(bench.house.asked) == times


def test_a_failure_that_would_repeat_itself_reaches_the_agent_after_one_run(bench) -> None:
    bench.house.plays["a"] = [tried(1, out="boom"), tried(0)]

    [result] = bench.judge(command("a"))

    assert isinstance(result, Failed)
    assert bench.house.asked == ["a"]


def test_a_failure_that_follows_on_a_signal_is_not_tried_again(bench) -> None:
    bench.house.plays["a"] = [tried(137), tried(1), tried(0)]

    [result] = bench.judge(command("a"))

    assert isinstance(result, Failed)
    assert bench.house.asked == ["a", "a"]


# --- tests that are flaky on base ---------------------------------------------------------------

ONE, TWO = "tests/test_a.py::test_one", "tests/test_a.py::test_two[x y]"


def report(**said: Outcome) -> ReportRead:
    names = {"one": ONE, "two": TWO}
    tests = tuple(TestResult(id=names[name], outcome=it) for name, it in said.items())
    return ReportRead(format=gates.Report.JUNIT, tests=tests)


def flaky(bench: Bench, *ids: str, again: Attempt, then: ReportRead) -> Bench:
    """The first run fails in test one; what it comes to when it runs again."""
    bench.house.plays["a"] = [tried(1, out="first"), replace(again, out="again")]
    first = report(one=Outcome.FAILED, two=Outcome.PASSED)
    bench.house.reports |= {"first": first, "again": then}
    runner = replace(bench.runner, flaky=lambda _it, _gate: frozenset(ids))
    return replace_runner(bench, runner)


def replace_runner(bench: Bench, runner: GateRunner) -> Bench:
    return Bench(bench.house, bench.says, runner)


def pytest_gate() -> CommandGate:
    return replace(command("a"), command="pytest -q")


def test_where_every_failed_test_is_flaky_on_base_those_alone_run_once_more(bench) -> None:
    told = flaky(bench, ONE, again=tried(0), then=report(one=Outcome.PASSED))

    [result] = told.judge(pytest_gate())

    assert isinstance(result, Passed)
    assert [it.issue for it in result.findings] == [
        f"FLAKY, on base too: passed only when they ran once more: {ONE}"
    ]
    assert result.proof.ran == ("pytest -q",)
    assert result.proof.tests_passed == (ONE, TWO)
    first, again = bench.house.commands
    assert first == "pytest -q"
    assert again.endswith("-k 'test_one'\"; pytest -q")


@pytest.mark.parametrize(
    ("again", "then"),
    [
        (tried(1), report(one=Outcome.FAILED)),
        (tried(0), report(two=Outcome.PASSED)),
        (tried(0), report(one=Outcome.SKIPPED)),
        (tried(None, Cut.DEADLINE), report(one=Outcome.PASSED)),
    ],
)
def test_a_flaky_test_that_does_not_pass_when_it_runs_again_is_a_failure(bench, again, then):
    [result] = flaky(bench, ONE, again=again, then=then).judge(pytest_gate())

    assert isinstance(result, Failed)
    assert bench.house.asked == ["a", "a"]


def test_a_failed_test_that_is_stable_on_base_is_not_run_again(bench) -> None:
    told = flaky(bench, TWO, again=tried(0), then=report(one=Outcome.PASSED))

    [result] = told.judge(pytest_gate())

    assert isinstance(result, Failed)
    assert bench.house.asked == ["a"]


def test_pytest_runs_the_narrowed_tests_and_no_others(tmp_path) -> None:
    (tmp_path / "test_a.py").write_text(
        "def test_one(): open('one', 'w')\ndef test_two(): open('two', 'w')\n"
    )
    line = narrowed(f"{sys.executable} -m pytest -q -p no:cacheprovider", [ONE])

    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, check=False)

    assert done.returncode == 0, done.stdout
    assert ((tmp_path / "one").exists(), (tmp_path / "two").exists()) == (True, False)


def test_a_report_makes_a_pass_a_failure_and_never_the_other_way(bench) -> None:
    red = TestResult(id="t", outcome=Outcome.FAILED)
    finding = Finding(Priority.P1_MAJOR, "t failed")
    bench.house.reports["a"] = ReportRead(
        format=gates.Report.JUNIT, findings=(finding,), tests=(red,)
    )

    [result] = bench.judge(command("a", attempts=1))

    assert result == Failed("a", (finding,))


def test_a_report_that_is_cut_off_proves_nothing(bench) -> None:
    bench.house.reports["a"] = ReportRead(format=gates.Report.JUNIT, tests=(), complete=False)

    [result] = bench.judge(command("a", attempts=1))

    assert isinstance(result, Broken)


def test_a_change_whose_own_migrations_fail_has_failed_and_is_told_how(bench) -> None:
    bench.runner.workspaces.not_prepared = "prepare of db exited 1; it said: no such column"

    [result] = bench.judge(command("a", attempts=1))

    assert isinstance(result, Failed)
    assert "it said: no such column; mend it" in result.findings[0].issue
    assert bench.house.asked == []


def test_a_human_gate_waits_and_a_yes_to_this_patch_passes_it(bench) -> None:
    gate = HumanGate("human", ALONE)

    assert isinstance(bench.judge(gate)[0], Waiting)
    yes = (Approval("human", "p1", "fine"),)
    assert isinstance(bench.judge(gate, approvals=yes)[0], Passed)
    assert isinstance(bench.judge(gate, approvals=yes, patch="p2")[0], Waiting)


def test_without_a_change_nothing_can_be_judged(bench) -> None:
    [result] = bench.judge(command("a"), candidate="")

    assert isinstance(result, Broken)


# --- what a gate runs is edited ------------------------------------------------------------------

EDITED = edits("sh a.sh", {"a.sh": "x"}.get, {"a.sh": "y"}.get)


@dataclass
class Wrapped:
    """Gates whose wrappers a change edits; what the run with base's comes to."""

    edited: dict[str, tuple[Edit, ...]]
    comes_to: type[Passed] | type[Failed] = Passed
    asked: list[str] = field(default_factory=list)

    def found(self, it: Evaluation) -> Mapping[str, tuple[Edit, ...]]:
        return self.edited

    def compared(
        self, it: Evaluation, gate: CommandGate, found: object, own: Passed, patience: Patience
    ) -> Passed | Failed:
        self.asked.append(gate.name)
        return own if self.comes_to is Passed else Failed(gate.name, ())


def wrapped(bench: Bench, it: Wrapped) -> Bench:
    wrapping = Wrapping(it.found, it.compared)
    return Bench(bench.house, bench.says, replace(bench.runner, wrapping=wrapping))


@pytest.mark.parametrize("comes_to", [Passed, Failed])
def test_a_gate_whose_wrapper_is_edited_passes_only_if_bases_agrees(bench, comes_to) -> None:
    it = Wrapped({"a": EDITED}, comes_to)

    [result, *_] = wrapped(bench, it).judge(command("a"), command("b"))

    assert it.asked == ["a"]
    assert isinstance(result, comes_to)
    assert not isinstance(result, Passed) or result.asks == ("a.sh",)


def test_a_gate_that_fails_by_itself_is_not_run_with_bases_wrapper(bench) -> None:
    bench.house.plays["a"] = [tried(1)]
    it = Wrapped({"a": EDITED})

    [result] = wrapped(bench, it).judge(command("a", attempts=1))

    assert (it.asked, type(result)) == ([], Failed)


def test_what_a_gate_of_the_train_runs_is_asked_of_on_the_change(bench) -> None:
    it = Wrapped({"late": EDITED})

    [result] = wrapped(bench, it).judge(
        command("a"), command("late", replace(ALONE, on=(Where.TRAIN,)))
    )

    assert it.asked == []
    assert isinstance(result, Passed)
    assert result.asks == ("a.sh",)


def test_a_human_reads_what_gates_run_that_the_change_edits(bench) -> None:
    it = Wrapped({"a": EDITED})

    [result] = wrapped(bench, it).judge(HumanGate("approval", ALONE, "Look"), protected=("a.sh",))

    assert result == Waiting(
        "approval", "Look (protected: a.sh); the change edits what gate a runs: a.sh"
    )


# --- a change with its own set-up ---------------------------------------------------------------


def test_what_a_change_brings_is_told_with_the_pass_and_asks_nobody(bench) -> None:
    bench.runner.workspaces.brings = Brought(("a.lock",), (), ("adds x 1",))

    result, other = bench.judge(command("a"), command("b"))

    assert isinstance(result, Passed)
    assert result.asks == ()
    assert "adds x 1; what judges is as on base" in result.findings[0].issue
    assert isinstance(other, Passed)
    assert other.findings == ()


def test_a_change_that_brings_what_judges_is_one_question_with_the_list(bench) -> None:
    bench.runner.workspaces.brings = Brought(("a.lock",), ("it adds pytest-x 1",), ())

    (result,) = bench.judge(command("a"))
    waits = bench.judge(
        HumanGate(name="approval", place=ALONE, prompt="Look"), protected=("a.lock",)
    )

    assert isinstance(result, Passed)
    assert result.asks == ("a.lock",)
    assert waits == (
        Waiting(
            "approval",
            "Look (protected: a.lock); the change's own set-up differs in what judges it:"
            " it adds pytest-x 1",
        ),
    )


def test_a_set_up_that_fails_on_the_change_fails_the_gate_and_runs_nothing(bench) -> None:
    bench.runner.workspaces.brings = SetUpFailed(("a.lock",), "`x` exited 1: no such package")

    (result,) = bench.judge(command("a"), command("b"))

    assert isinstance(result, Failed)
    assert "no such package" in result.findings[0].issue
    assert bench.house.asked == []


def test_a_set_up_that_fails_on_base_breaks_the_gate(bench) -> None:
    bench.runner.workspaces.broken = "no index"

    (result,) = bench.judge(command("a"))
    (asked,) = bench.judge(
        HumanGate(name="approval", place=ALONE, prompt="Look"), protected=("a.lock",)
    )

    assert isinstance(result, Broken)
    assert "no index" in result.why
    assert asked == Waiting("approval", "Look (protected: a.lock)")
