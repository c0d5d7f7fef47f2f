"""The differential gate as a service: what it runs, what it need not, and what it makes of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.core.config.settings import SandboxLevel, SandboxSettings, Settings
from lockgate.core.model.gates import DifferentialGate, Placement, Report, Where
from lockgate.core.model.results import (
    Broken,
    Failed,
    Passed,
    ReportRead,
    SingleGateResult,
    Unreadable,
    Waiting,
)
from lockgate.core.model.task import Cause, NeedsFixes, Pinned, ProjectId, Status, TaskId
from lockgate.errors import Unavailable
from lockgate.ports import Cut, Project
from lockgate.services.gates.runner import evaluation_of
from lockgate.services.task.callers import HUMAN
from tests.given import HANDOFF, a_task
from tests.scenarios.gates.comparing import (
    BASE,
    CANDIDATE,
    FakeMeasurements,
    FakeTrees,
    Suite,
    a_judge,
    ended,
)
from tests.scenarios.stage import Stage

PROJECT = Project(id=ProjectId("p1"), name="p", common_dir="/p", root="/p")
PLACE = Placement(serial=True, on=(Where.CHANGE,))
FILES = {"app.txt": "one two", "checks/a": "first one\nsecond two\n"}
PINNED = Pinned(base_commit=BASE, config_hash="rules")
DEFAULT = Settings(formula="none", gates=())
AS_IT_IS = ReportRead(format=Report.JUNIT, tests=())


@dataclass
class Table:
    suite: Suite
    known: FakeMeasurements
    home: Path

    def judge(
        self, change: dict[str, str | None], settings: Settings | None = None, **fields: object
    ) -> SingleGateResult:
        both = {**self.suite.trees.base, **change}
        self.suite.trees.candidate = {it: text for it, text in both.items() if text is not None}
        kept: dict[str, object] = {"attempts": 1, "command": "make check", "place": PLACE}
        gate = DifferentialGate(name="differential", **{**kept, **fields})  # type: ignore[arg-type]  # a test's own
        task = a_task(Status.AGENT_REVIEW, candidate=CANDIDATE, patch="p", pinned=PINNED)
        settings = settings or Settings(formula="none", gates=(gate,), test_paths=("checks/**",))
        it = evaluation_of(PROJECT, task, (), settings)
        return a_judge(self.home, self.suite, self.known).result(it, gate, lambda: False)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(Suite(FakeTrees(dict(FILES), {})), FakeMeasurements(), tmp_path)


def checks(text: str, code: str = "one two") -> dict[str, str | None]:
    return {"checks/a": text, "app.txt": code}


# --- what is run --------------------------------------------------------------------------------


def test_a_change_of_code_alone_is_run_once_beside_base(table) -> None:
    result = table.judge({"app.txt": "one two three"})

    assert sorted(table.suite.ran) == ["again", "base", "change"]
    assert isinstance(result, Passed)
    assert result.proof.ran == (
        "make check (base)",
        "make check (base once more)",
        "make check (the change)",
    )
    assert result.proof.tests_passed == ("checks::first", "checks::second")
    assert (result.proof.commit, result.proof.config_hash) == (CANDIDATE, "rules")
    assert (result.proof.sandbox, result.proof.seconds) == ("bubblewrap", 1.5)


def test_a_change_of_tests_alone_is_run_once_too(table) -> None:
    result = table.judge(checks("first one\nsecond two\nthird one\n"))

    assert sorted(table.suite.ran) == ["again", "base", "change"]
    assert isinstance(result, Passed)
    assert "proves nothing" in result.findings[0].issue


def test_a_change_of_both_is_run_on_every_mixture(table) -> None:
    result = table.judge(checks("first one\nsecond two\nthird three\n", "one two three"))

    assert sorted(table.suite.ran) == ["again", "base", "change", "of_base", "on_base"]
    assert table.suite.trees.laid["1-differential-of_base"] == {
        **FILES,
        "app.txt": "one two three",
    }
    assert table.suite.trees.laid["1-differential-on_base"] == {
        **FILES,
        "checks/a": "first one\nsecond two\nthird three\n",
    }
    assert isinstance(result, Passed)
    [noted] = result.findings
    assert noted.issue.startswith("strength of changed tests not measured")


def test_base_is_measured_once_for_many_changes_and_a_verdict_never_is(table) -> None:
    table.judge({"app.txt": "one two three"})
    table.suite.ran.clear()

    again = table.judge({"app.txt": "one two four"})
    worse = table.judge({"app.txt": "one"})
    worse_again = table.judge({"app.txt": "one"})

    assert table.suite.ran == ["change", "change", "change"]
    assert isinstance(again, Passed)
    assert isinstance(worse, Failed)
    assert isinstance(worse_again, Failed)


def test_other_rules_another_command_or_another_set_up_measure_base_anew(table) -> None:
    table.judge({})
    table.judge({}, command="make checks")

    assert len(table.known.kept) == 2
    assert {key[:3] for key in table.known.kept} == {("p1", "t" * 40, "rules")}


@pytest.mark.parametrize("again", ["passed first\nfailed second", "passed first"])
def test_a_base_that_says_one_thing_and_then_another_is_not_kept(table, again) -> None:
    table.suite.plays["again"] = [again]

    result = table.judge({"app.txt": "one"})

    assert isinstance(result, Passed), "what is flaky on base is left out"
    assert all(key[-1] == "flaky" for key in table.known.kept), "as what to compare with"


def test_two_runs_go_at_once_but_not_where_they_could_meet(table) -> None:
    bare = Settings(
        formula="none",
        gates=(),
        test_paths=("checks/**",),
        sandbox=SandboxSettings(level=SandboxLevel.NONE),
    )

    table.judge({}, place=replace(PLACE, exclusive="database"))
    table.judge({}, bare, command="make checks")

    assert table.suite.most == 1


def test_what_a_runner_is_told_reaches_its_command(table) -> None:
    table.suite.trees.base = {**FILES, "tests/test_a.py": "def test_a():\n    assert 1\n"}

    result = table.judge({}, DEFAULT, command="pytest 'a b'")

    for command in table.suite.commands:
        assert (
            'PYTEST_ADDOPTS="--continue-on-collection-errors --junitxml=$OUT/pytest.xml"' in command
        )
        assert command.endswith("\npytest 'a b'")
    laid = {*table.suite.trees.laid["1-differential-again"]} - {*table.suite.trees.base}
    [canary] = [it for it in laid if it.startswith("tests/test_")]
    assert laid == {
        canary,
        ".abc1/sitecustomize.py",
        ".abc1/wabc1.json",
        ".abc1/wabc1.py",
    }
    assert isinstance(result, Broken), "this runner knows no Python"
    assert "were not run by the command" in result.why


def test_the_canary_of_go_is_in_the_package_of_its_directory(table) -> None:
    table.suite.trees.base = {"calc/a_test.go": "// x\npackage calc_test\n", "main.go": "package x"}

    table.judge({}, DEFAULT, command="go test -json ./...")

    laid = table.suite.trees.laid["1-differential-again"]
    [text] = [text for path, text in laid.items() if path not in table.suite.trees.base]
    assert text.startswith("package calc_test\n")


def test_what_npm_runs_says_which_runner_it_is(table) -> None:
    package = '{"scripts": {"test": "node --test"}}'
    table.suite.trees.base = {"package.json": package, "a.test.mjs": "test('a', () => {});\n"}

    table.judge({}, DEFAULT, command="npm test")

    laid = table.suite.trees.laid["1-differential-again"]
    assert next(it for it in laid if it not in table.suite.trees.base).endswith(".test.mjs")
    assert laid["a.test.mjs"].startswith("test('a', () => {});\n")
    assert len(laid["a.test.mjs"]) > 100, "each script has canaries of its own"


# --- what it makes of that ----------------------------------------------------------------------


def test_a_test_that_is_taken_out_is_a_question(table) -> None:
    result = table.judge(checks("first one\n", "one"))

    assert isinstance(result, Waiting)
    assert "deleted: checks::second" in result.prompt


def test_a_test_that_is_skipped_is_a_loss(table) -> None:
    result = table.judge(checks("first one\nsecond skip\n", "one"))

    assert isinstance(result, Failed)
    assert "is skipped now" in result.findings[0].issue


def test_our_time_out_on_the_change_is_a_loss_that_no_other_attempt_takes_back(table) -> None:
    table.suite.plays["change"] = [ended(None, Cut.DEADLINE)]

    result = table.judge({"app.txt": "one two three"}, attempts=3)

    assert isinstance(result, Failed)
    assert "cut: deadline" in result.findings[0].issue
    assert table.suite.ran.count("change") == 1


@pytest.mark.parametrize("which", ["base", "again"])
def test_our_time_out_on_base_says_nothing_about_the_change(table, which) -> None:
    table.suite.plays[which] = [ended(None, Cut.DEADLINE)]

    result = table.judge({"app.txt": "one"})

    assert isinstance(result, Broken)
    assert "cut: deadline" in result.why
    assert "change" not in table.suite.ran


def test_a_new_test_that_hangs_on_bases_code_is_proof_enough(table) -> None:
    table.suite.plays["on_base"] = [ended(None, Cut.DEADLINE)]

    result = table.judge(checks("first one\nsecond two\nthird three\n", "one two three"))

    assert isinstance(result, Passed)


@pytest.mark.parametrize("cut", [Cut.MEMORY, Cut.BOX, Cut.SERVICE, Cut.SCRATCH, Cut.PIDS])
@pytest.mark.parametrize("which", ["base", "again", "change"])
def test_what_the_surroundings_cut_off_is_broken(table, which, cut) -> None:
    table.suite.plays[which] = [ended(None, cut)] * 3

    result = table.judge({"app.txt": "one"}, attempts=3)

    assert isinstance(result, Broken)
    assert f"cut: {cut}" in result.why
    assert table.suite.ran.count("change") <= 1


def test_a_command_that_cannot_be_started_on_base_is_broken(table) -> None:
    table.suite.plays["base"] = [ended(127, err="sh: make: not found")]

    result = table.judge({"app.txt": "one"})

    assert isinstance(result, Broken)
    assert "cannot be started" in result.why
    assert "make: not found" in result.why


def test_a_command_that_only_the_change_keeps_from_starting_is_the_changes_loss(table) -> None:
    table.suite.plays["change"] = [ended(127, err="sh: ./check: not found")]

    result = table.judge({"app.txt": "one two three"})

    assert isinstance(result, Failed)
    assert "exited 127" in result.findings[0].issue


@pytest.mark.parametrize(
    ("report", "which", "kind"),
    [
        (Unreadable("it left no report"), "base", Broken),
        (Unreadable("it left no report"), "change", Failed),
        (replace(AS_IT_IS, complete=False), "base", Broken),
        (replace(AS_IT_IS, complete=False), "change", Failed),
        (replace(AS_IT_IS, tests=None), "base", Broken),
        (replace(AS_IT_IS, tests=None), "change", Failed),
    ],
)
def test_a_report_that_is_missing_cut_off_or_names_no_test(table, report, which, kind) -> None:
    table.suite.reports["odd"] = report
    table.suite.plays[which] = [ended(0, out="odd")]

    assert isinstance(table.judge({"app.txt": "one two three"}), kind)


def test_where_no_test_runs_on_either_side_nothing_is_said(table) -> None:
    table.suite.trees.base = {"app.txt": "one"}

    result = table.judge({"app.txt": "two"})

    assert result == Broken("differential", "no test ran, neither on base nor on the change")


def test_what_git_cannot_do_is_broken(table) -> None:
    class NoTrees(FakeTrees):
        def fork(self, *_: object) -> str:
            raise Unavailable("no tree", why="the disk is full", fix="make room")

    table.suite.trees = NoTrees(dict(FILES), {})

    result = table.judge({})

    assert isinstance(result, Broken)
    assert "the disk is full" in result.why


# --- a loss is confirmed ------------------------------------------------------------------------


def test_a_loss_must_repeat_itself_in_every_attempt(table) -> None:
    result = table.judge({"app.txt": "one"}, attempts=3)

    assert isinstance(result, Failed)
    assert table.suite.ran.count("change") == 3
    assert sorted(table.suite.ran) == ["again", "base", "change", "change", "change"]


def test_a_loss_that_does_not_repeat_itself_passes_and_says_so(table) -> None:
    table.suite.plays["change"] = ["passed first\nfailed second"]

    result = table.judge({"app.txt": "one two three"}, attempts=3)

    assert isinstance(result, Passed)
    assert result.findings[0].issue == "FLAKY: nothing was lost only in attempt 2"
    assert result.findings[0].priority == "P2"
    assert table.suite.ran.count("change") == 2


def test_a_question_is_not_asked_of_the_runner_again(table) -> None:
    table.judge(checks("first one\n", "one"), attempts=3)

    assert table.suite.ran.count("change") == 1


# --- under the loop -----------------------------------------------------------------------------

CONFIG = """\
[project]
agent = "scripted"
[gates]
formula = "none"
[[gates.list]]
name = "differential"
type = "differential"
command = "make check"
attempts = 1
[[gates.list]]
name = "tests"
type = "command"
command = "true"
attempts = 1
[tests]
paths = ["checks/**"]
"""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path, CONFIG)
    suite = Suite(FakeTrees(dict(FILES), {"app.txt": "one", "checks/a": "first one\n"}))
    made.differential = a_judge(tmp_path, suite, FakeMeasurements()).result
    made.app.store.close()
    made.restart()
    yield made
    made.app.store.close()


def handed_off(stage: Stage, id: TaskId | None = None) -> TaskId:
    id = id or stage.world.create()
    stage.turn()
    [session] = stage.alive(id)
    (stage.workspaces.place(id) / "TASK.md").write_text(f"{HANDOFF}\n{session}\n")
    stage.dies(session)
    stage.event(session)
    stage.turn()
    return id


def test_a_human_says_yes_to_what_a_change_took_back_and_it_goes_on(stage) -> None:
    id = handed_off(stage)
    waiting = stage.world.task(id)

    stage.app.queue.say_yes(id, "not wanted any more", waiting.patch, HUMAN)
    stage.turn()

    assert (waiting.status, waiting.waiting) == (Status.AGENT_REVIEW, "differential")
    asked = [it for it in stage.app.views.all_events(id) if it.type == "HumanReviewRequested"]
    assert "deleted: checks::second" in str(asked[0].data)
    assert stage.world.task(id).status is Status.REVIEWING


def test_a_yes_holds_for_the_same_change_when_it_comes_back_and_for_no_other(stage) -> None:
    stage.gates.results = ["fail", "pass"]
    id = handed_off(stage)
    stage.app.queue.say_yes(id, "", "", HUMAN)
    stage.turn()
    back = stage.world.task(id)

    handed_off(stage, id)

    assert back.status is Status.WORKING, "the gate behind it failed"
    assert stage.world.task(id).status is Status.REVIEWING, "nobody was asked again"


def test_another_change_is_asked_about_anew(stage) -> None:
    stage.gates.results = ["fail", "pass"]
    id = handed_off(stage)
    stage.app.queue.say_yes(id, "", "", HUMAN)
    stage.turn()
    stage.workspaces.work = replace(stage.workspaces.work, patch="q" * 64)

    handed_off(stage, id)

    assert stage.world.task(id).waiting == "differential"


def test_a_no_sends_the_change_back_with_what_the_human_said(stage) -> None:
    id = handed_off(stage)

    stage.app.approvals.reject(id, "keep the second test", (), "", HUMAN)

    task = stage.world.task(id)
    assert task.status is Status.WORKING
    assert isinstance(task.phase, NeedsFixes)
    assert "keep the second test" in str(task.phase)


def test_a_gate_that_could_not_judge_stops_the_task_and_costs_it_nothing(stage) -> None:
    def broken(*_: object) -> SingleGateResult:
        return Broken("differential", "no report names a test of base")

    stage.differential = broken
    stage.app.store.close()
    stage.restart()

    id = handed_off(stage)

    task = stage.world.task(id)
    assert (task.status, task.cause) == (Status.STUCK, Cause.GATE_BROKEN)
    assert task.failed_attempts == 0
