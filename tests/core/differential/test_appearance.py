"""The same tests in a run that looks another way: what is said there, and what follows from it."""

import pytest

from lockgate.core.differential.appearance import (
    differing,
    look_of,
    passing,
    rounds,
    unmasked,
    wants_another_look,
)
from lockgate.core.differential.plan import Plan, Sides, TestRules, plan
from lockgate.core.differential.runs import NotRun, Run
from lockgate.core.differential.table import ChangedFiles, Kind, Row
from lockgate.core.differential.verdict import Asked, Kept, Lost
from lockgate.core.model.results import Outcome, TestResult

P, F = Outcome.PASSED, Outcome.FAILED
ROWS = (
    Row(id="a", kind=Kind.KEPT, of_base=P),
    Row(id="b", kind=Kind.KEPT, of_base=P),
    Row(id="c", kind=Kind.ALREADY_RED, of_base=F),
)
KEPT = Kept(ROWS, ())
CODE = ChangedFiles(code=("app.py",))


def planned(command: str, file: str = "tests/test_a.py") -> Plan:
    return plan(Sides(base={file: "1"}, candidate={file: "1"}), TestRules(command=command), "n0nce")


def ran(**outcomes: Outcome) -> Run:
    tests = tuple(TestResult(id=id, outcome=it) for id, it in outcomes.items())
    return Run(exit_code=1, tests=tests)


@pytest.mark.parametrize(
    ("command", "file", "options"),
    [
        ("pytest", "tests/test_a.py", "--junitxml=$OUT/pytest.xml -p "),
        ("pytest --junitxml=$OUT/a.xml", "tests/test_a.py", "-p "),
        ("python -m unittest", "tests/test_a.py", ""),
        ("npx jest", "a.test.js", ""),
    ],
)
def test_each_look_has_other_folders_and_variables(command, file, options) -> None:
    it = planned(command, file)

    second, third = (look_of(it, command, seed) for seed in ("second", "third"))
    text = "\n".join(second.lines)

    assert second == look_of(it, command, "second")
    assert not {*second.lines[:-1]} & {*third.lines[:-1]} - {"unset PYTHONDONTWRITEBYTECODE"}
    assert "TMPDIR" in text
    assert ("PYTHONHASHSEED" in text) is file.endswith(".py")
    assert f'PYTEST_ADDOPTS="{options}{second.plug_in}"' in text or not options
    assert bool(second.plug_in) is bool(options)


def test_a_second_look_is_for_code_that_was_not_refused() -> None:
    assert wants_another_look(KEPT, CODE)
    assert not wants_another_look(KEPT, ChangedFiles(tests=("t",)))
    assert not wants_another_look(Lost((), ()), CODE)


def test_only_tests_that_passed_and_now_fail_differ() -> None:
    assert differing(KEPT, ran(a=F, b=P, c=F)) == ("a",)
    assert differing(KEPT, ran(b=P)) == (), "what is not there says nothing"
    assert differing(KEPT, NotRun("no room")) == ()
    assert differing(KEPT, Run(exit_code=None, tests=(), complete=False)) == ()
    assert differing(Lost((), ()), ran(a=F)) == ()
    assert passing(ran(a=P, b=F), ("a", "b", "c")) == ("a",)


@pytest.mark.parametrize(("attempts", "times"), [(0, 1), (1, 1), (3, 3), (20, 5)])
def test_what_may_be_chance_is_tried_as_often_as_a_loss(attempts, times) -> None:
    assert rounds(attempts) == times


def test_a_difference_is_a_question_and_a_second_one_is_asked_with_the_first() -> None:
    alone = unmasked(KEPT, ("a",))
    both = unmasked(Asked(ROWS, (), "Deleted x?", doubted=True), ("a",))

    assert isinstance(alone, Asked)
    assert "only look different" in alone.prompt
    assert isinstance(both, Asked)
    assert both.prompt.startswith("Deleted x?\n")
    assert not both.doubted
    assert unmasked(KEPT, ()) is KEPT
    lost = Lost((), ())
    assert unmasked(lost, ("a",)) is lost
