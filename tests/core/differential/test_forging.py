"""A test of base in which a failure was planted, and which is reported green all the same."""

from lockgate.core.differential.runs import NotRun, Run
from lockgate.core.differential.table import ChangedFiles, Kind, Row, SourceTest
from lockgate.core.differential.verdict import Kept, Lost, Unjudged, to_break, unbelieved
from lockgate.core.model.results import Outcome, TestResult

CODE = ChangedFiles(code=("app.py",))


def a_test(name: str, file: str = "tests/test_a.py") -> SourceTest:
    return SourceTest(file=file, line=1, names=(name,), body="def ()\nassert 1")


def a_row(test: SourceTest | None, of_base: Outcome | None = Outcome.PASSED) -> Row:
    return Row(id=test.id if test else "x", kind=Kind.KEPT, of_base=of_base, before=test)


ONE, TWO, SCRIPT = a_test("test_one"), a_test("test_two"), a_test("three", "a.test.js")
KEPT = Kept((a_row(ONE), a_row(TWO, Outcome.FAILED), a_row(SCRIPT), a_row(None)), ())


def ran(**outcomes: Outcome) -> Run:
    tests = (TestResult(id=f"tests/test_a.py::{it}", outcome=how) for it, how in outcomes.items())
    return Run(exit_code=1, tests=tuple(tests))


def test_every_python_test_that_passes_on_the_change_gets_a_failure() -> None:
    assert to_break(KEPT, CODE) == (ONE,)
    assert to_break(KEPT, ChangedFiles(tests=("t",))) == (ONE,)
    assert to_break(KEPT, ChangedFiles()) == (), "only prose changed"
    assert to_break(Lost((), ()), CODE) == ()


def test_a_planted_failure_that_is_reported_green_is_a_loss_that_no_other_run_takes_back() -> None:
    found = unbelieved(KEPT, ran(test_one=Outcome.PASSED), (ONE,))

    assert isinstance(found, Lost)
    assert found.final
    assert "tests/test_a.py::test_one" in found.findings[0].issue


def test_what_fails_as_it_must_or_was_not_run_changes_nothing() -> None:
    assert unbelieved(KEPT, ran(test_one=Outcome.FAILED), (ONE,)) is KEPT
    assert unbelieved(KEPT, ran(), (ONE,)) is KEPT
    assert unbelieved(KEPT, NotRun("no room"), (ONE,)) is KEPT
    assert unbelieved(KEPT, ran(test_two=Outcome.PASSED), (TWO,)) is KEPT, "it is red anyway"
    broken = Unjudged("x")
    assert unbelieved(broken, ran(test_one=Outcome.PASSED), (ONE,)) is broken
