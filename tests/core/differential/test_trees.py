"""Which tree each run is made on, which runs need not be made, and what a run comes to."""

import pytest
from msgspec.structs import replace

from lockgate.core.differential.canaries import canary_file, lots
from lockgate.core.differential.plan import (
    Ended,
    Mixed,
    Plan,
    Sides,
    TestRules,
    Tree,
    Which,
    canaries_in,
    disagreeing,
    files_of,
    nonce_of,
    package_of,
    passed_in,
    plan,
    planted_in,
    run_of,
    runs_of,
    stand_ins,
    to_keep,
    to_run,
    tree_of,
    unfit,
)
from lockgate.core.differential.runs import Canaries, NotRun, Run, Runs
from lockgate.core.differential.table import ChangedFiles
from lockgate.core.differential.test_files import Runner
from lockgate.core.differential.verdict import Kept, Lost, after_a_loss, judge
from lockgate.core.lifecycle.approvals import consented
from lockgate.core.model.gates import Report
from lockgate.core.model.results import (
    Failed,
    Outcome,
    Passed,
    ReportRead,
    TestResult,
    Unreadable,
    Waiting,
)
from lockgate.core.model.task import Approval, Status
from tests.given import a_task

P, F = Outcome.PASSED, Outcome.FAILED
BASE = {"app.py": "1", "tests/test_a.py": "1", "old.py": "1"}
RULES = TestRules(command="pytest")
READ = ReportRead(format=Report.JUNIT, tests=(TestResult(id="a", outcome=P),))


def sides(**candidate: str) -> Sides:
    return Sides(base=BASE, candidate={**BASE, **candidate})


def planned(it: Sides) -> Plan:
    return plan(it, RULES, "n0nce")


def run(*outcomes: Outcome, **more) -> Run:
    tests = tuple(TestResult(id=f"t{at}", outcome=it) for at, it in enumerate(outcomes))
    return Run(**{"exit_code": 1, "tests": tests, **more})


# --- trees --------------------------------------------------------------------------------------


def test_each_run_starts_as_the_side_whose_code_it_runs() -> None:
    it = Sides(
        base=BASE,
        candidate={"app.py": "2", "tests/test_a.py": "2", "tests/test_b.py": "2", "old.py": "1"},
    )
    laid = {which: files_of(tree_of(which, planned(it)), it) for which in Which}

    assert laid[Which.BASE] == laid[Which.AGAIN] == it.base
    assert laid[Which.CHANGE] == it.candidate
    assert laid[Which.OF_BASE] == {**BASE, "app.py": "2"}
    assert laid[Which.ON_BASE] == {**it.candidate, "app.py": "1"}
    assert to_run(planned(it), it) == (Which.CHANGE, Which.OF_BASE, Which.ON_BASE)


def test_a_dropped_file_is_gone_and_a_taken_one_is_the_others() -> None:
    tree = Tree(of_change=True, mixed=Mixed(take=("old.py",), drop=("app.py",)))

    assert files_of(tree, sides(**{"old.py": "2"})) == {"tests/test_a.py": "1", "old.py": "1"}


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"app.py": "2"}, {Which.OF_BASE: Which.CHANGE, Which.ON_BASE: Which.AGAIN}),
        ({"tests/test_a.py": "2"}, {Which.OF_BASE: Which.AGAIN, Which.ON_BASE: Which.CHANGE}),
        ({}, {Which.OF_BASE: Which.CHANGE, Which.ON_BASE: Which.AGAIN}),
        ({"app.py": "2", "tests/test_a.py": "2"}, {}),
    ],
    ids=["code", "tests", "nothing", "both"],
)
def test_a_tree_that_is_anothers_is_not_run(change, same) -> None:
    it = sides(**change)

    assert stand_ins(planned(it), it) == same
    assert Which.CHANGE in to_run(planned(it), it)


def test_a_run_that_was_not_made_is_the_one_that_stands_for_it() -> None:
    made = {which: run(P, exit_code=at) for at, which in enumerate(Which)}

    runs = runs_of(made, {Which.OF_BASE: Which.CHANGE})

    assert runs.base_on_candidate is runs.candidate is made[Which.CHANGE]
    assert (runs.base, runs.base_again) == (made[Which.BASE], made[Which.AGAIN])
    assert runs.candidate_on_base is made[Which.ON_BASE]


def test_only_base_alone_is_run_without_canaries() -> None:
    both = sides()
    it = planned(both)

    assert planted_in(Which.BASE, it, both, {}) == ()
    assert all(planted_in(which, it, both, {}) for which in Which if which.value != "base")


def test_canaries_stand_in_no_file_that_the_change_edited() -> None:
    both = sides(**{"tests/test_a.py": "2"})
    it = replace(planned(both), hosts=("tests/test_a.py",))
    texts = {"tests/test_a.py": "def test_a():\n    pass\n"}

    on_change, of_base = (
        planted_in(which, it, both, texts) for which in (Which.CHANGE, Which.OF_BASE)
    )

    assert len(on_change) == 1
    assert [file.path for file in of_base[1:]] == ["tests/test_a.py"]


def test_a_nonce_has_letters_and_digits_only() -> None:
    assert nonce_of("Ab-_9é" + "x" * 40) == "ab9" + "x" * 13


@pytest.mark.parametrize(
    ("base", "candidate", "command", "package"),
    [
        ({"a/x_test.go": "package deep\n", "b/y_test.go": "package b"}, {}, "go test", "deep"),
        ({"a/x_test.go": "// no\n", "a/y_test.go": "package a_test\n"}, {}, "go test", "a_test"),
        ({"x_test.go": "nothing"}, {}, "go test", "main"),
        ({}, {"a/x_test.go": "package new\n"}, "go test", "new"),
        ({}, {}, "go test", "main"),
        ({"x_test.go": "package x"}, {}, "pytest", "main"),
    ],
)
def test_gos_package_is_that_of_the_directory_with_the_canary(
    base, candidate, command, package
) -> None:
    both = Sides(base=base, candidate=candidate)

    assert package_of(both, TestRules(command=command), {**candidate, **base}) == package


# --- base alone ---------------------------------------------------------------------------------


def test_base_is_kept_only_where_it_can_be_compared_with_and_says_the_same_twice() -> None:
    canaries = Canaries(("t1",), ("t2",))
    again = run(P, F, P, canaries=canaries)

    assert to_keep(run(P), again) == (run(P), again)
    assert to_keep(run(F), again) is None
    assert to_keep(NotRun("no"), again) is None
    assert to_keep(run(P), NotRun("no")) is None
    assert to_keep(run(P), run(P, P, P, canaries=canaries)) is None
    assert to_keep(run(P, complete=False), again) is None
    assert disagreeing(run(F), again) == (run(F), again)
    assert disagreeing(run(P), again) is None
    assert disagreeing(NotRun("no"), again) is None
    assert disagreeing(run(F), NotRun("no")) is None
    assert disagreeing(run(F, complete=False), again) is None


def test_base_alone_shows_that_nothing_can_be_compared() -> None:
    assert unfit(run(P), run(P)) is None
    assert "not run on base: why" in (unfit(NotRun("why"), run(P)) or "")
    assert "on base once more" in (unfit(run(P), NotRun("why")) or "")


def test_what_passed_is_told_without_canaries() -> None:
    assert passed_in(run(P, F, P, canaries=Canaries((), ("t2",)))) == ("t0",)
    assert passed_in(NotRun("no")) == ()


# --- what one run comes to ----------------------------------------------------------------------


@pytest.mark.parametrize("on_base", [True, False])
def test_a_run_with_a_whole_report_is_what_it_says(on_base) -> None:
    canaries = Canaries(("x",), ())

    found = run_of(Ended(exit_code=1), READ, canaries, on_base=on_base)

    assert found == Run(exit_code=1, tests=READ.tests or (), canaries=canaries)


@pytest.mark.parametrize(
    "read",
    [
        Unreadable("none"),
        ReportRead(format=Report.GENERIC),
        ReportRead(format=Report.JUNIT, tests=(), complete=False),
    ],
)
def test_a_run_whose_report_names_no_tests_is_not_whole(read) -> None:
    found = run_of(Ended(exit_code=0), read, None, on_base=False)

    assert found == Run(exit_code=0, tests=(), complete=False)


def test_what_base_wrote_is_kept_only_where_its_report_is_not_whole() -> None:
    ended = Ended(exit_code=4, said="unrecognized arguments")

    assert run_of(ended, Unreadable("none"), None, on_base=True) == Run(
        exit_code=4, tests=(), complete=False, said="unrecognized arguments"
    )
    assert run_of(ended, READ, None, on_base=True) == Run(exit_code=4, tests=READ.tests or ())


def test_what_was_cut_off_was_not_run_on_either_side() -> None:
    ended = Ended(exit_code=None, not_run="it used up its memory")

    assert run_of(ended, READ, None, on_base=False) == NotRun("it used up its memory")
    assert run_of(ended, READ, None, on_base=True) == NotRun("it used up its memory")


def test_too_long_is_the_changes_fault_and_never_bases() -> None:
    ended = Ended(exit_code=None, overtime="ended after 600 seconds")

    late = run_of(ended, READ, None, on_base=False)

    assert run_of(ended, READ, None, on_base=True) == NotRun("ended after 600 seconds")
    assert isinstance(late, Run)
    assert (late.complete, late.overtime) == (False, "ended after 600 seconds")


@pytest.mark.parametrize("code", [126, 127])
def test_a_command_that_cannot_be_started_is_no_run_of_base(code) -> None:
    ended = Ended(exit_code=code, said="sh: pytest: not found")

    on_change = run_of(ended, Unreadable("none"), None, on_base=False)

    assert run_of(ended, Unreadable("none"), None, on_base=True) == NotRun(
        "its command cannot be started: sh: pytest: not found"
    )
    assert on_change == Run(exit_code=code, tests=(), complete=False)


def test_the_canaries_of_a_tree_are_those_of_all_its_files() -> None:
    files = [canary_file(Runner.NODE, "", lots(seed, ())) for seed in ("one", "two")]

    found = canaries_in(files)

    assert found is not None
    assert len(found.must_fail) == 6
    assert len(found.must_pass) == 2
    assert canaries_in(()) is None


# --- a loss that may be taken back, and one that may not ----------------------------------------


def lost(**more: Run) -> Lost:
    known = {"base": run(P), "base_on_candidate": run(F), "candidate": run(F)}
    runs = Runs(**{**known, "candidate_on_base": run(P), **more})
    verdict = judge(runs, (), (), ChangedFiles(code=("app.py",)))
    assert isinstance(verdict, Lost)
    return verdict


def test_a_forged_run_or_one_that_took_too_long_is_lost_for_good() -> None:
    late = run(complete=False, exit_code=None, overtime="ended after 9 seconds")
    forged = run(P, P, canaries=Canaries(("t1",), ()))

    assert not lost().final
    assert lost(candidate=late).final
    assert lost(base_on_candidate=late).final
    assert lost(candidate=forged).final
    assert "the command ended after 9 seconds without a complete report" in (
        lost(candidate=late).findings[0].issue
    )


def test_a_later_attempt_that_keeps_everything_says_that_an_earlier_one_did_not() -> None:
    kept = after_a_loss(Kept((), ()), 3)

    assert isinstance(kept, Kept)
    assert [it.issue for it in kept.findings] == ["FLAKY: nothing was lost only in attempt 3"]
    assert after_a_loss(lost(), 3) == lost()


# --- a yes --------------------------------------------------------------------------------------


def test_a_yes_answers_what_a_gate_asks_about_the_same_change() -> None:
    yes = (Approval("differential", "p1", "fine"),)
    task = a_task(Status.AGENT_REVIEW, patch="p1", approvals=yes)
    asks = Waiting("differential", "Is that wanted?")

    assert isinstance(consented(task, asks), Passed)
    assert consented(a_task(Status.AGENT_REVIEW, patch="p2", approvals=yes), asks) == asks
    assert consented(task, Waiting("other", "?")) == Waiting("other", "?")
    assert consented(task, Failed("differential", ())) == Failed("differential", ())
    assert consented(None, asks) == asks
