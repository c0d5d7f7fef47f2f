"""Cheats are caught and honest changes pass, with the real test runners on the real trees."""

import shutil

import pytest

from lockgate.adapters.test_sources import FileTestSources
from lockgate.core.differential.strength import Side, Strength, subject_of, weighed
from lockgate.core.differential.test_files import files_of_tests
from lockgate.core.differential.verdict import Asked, Kept, Lost
from lockgate.core.model.results import Failed, Passed, SingleGateResult
from tests.e2e.cheats.by_name import BY_NAME, MARKED, RECOGNISED
from tests.e2e.cheats.cheats import CHEATS, NODE_CASES, PLAYED, REAL, RESIDUE
from tests.e2e.cheats.honest import HONEST, QUESTIONS
from tests.e2e.cheats.outside import OUTSIDE, OUTSIDE_HONEST, OUTSIDE_TEXTS
from tests.e2e.cheats.refactored import ASKED_ONCE, REFACTORED
from tests.e2e.cheats.runners import RUNNERS, cases_of
from tests.e2e.cheats.stage import (
    NODE,
    RESULTS,
    Case,
    Files,
    Theatre,
    changes_of,
    played_result,
    words_of,
)
from tests.e2e.cheats.structural import STRUCTURAL
from tests.e2e.cheats.weakened import GO_WEAKENED, JEST_WEAKENED, NODE_WEAKENED, UNNOTICED, WEAKENED
from tests.e2e.cheats.wrapped import WRAPPED, WRAPPED_HONEST

MORE_CHEATS = (
    *BY_NAME,
    *MARKED,
    *RECOGNISED,
    *WEAKENED,
    *STRUCTURAL,
    *WRAPPED,
    *OUTSIDE,
    *OUTSIDE_TEXTS,
    *NODE_WEAKENED,
)
MORE_HONEST = (*WRAPPED_HONEST, *OUTSIDE_HONEST, *REFACTORED)
EVERY = (
    *CHEATS,
    *MORE_CHEATS,
    *HONEST,
    *MORE_HONEST,
    *QUESTIONS,
    *ASKED_ONCE,
    *RESIDUE,
    *UNNOTICED,
)
RUN = tuple(it for it in EVERY if it.played is None)
# One of each kind, the quicker ones; `make soak` runs them all.
CHECKED = (
    "pytest.exit with 0",
    "node weakened",
    "unittest: a test is broken",
    "make: the target is emptied",
    "structure: own wave",
    "outside: broken without an edit",
    "by name: reports are rewritten",
    "recognised: the plain temporary folder",
    "weakened: loop over nothing",
    "refactored code",
)
SAMPLE = tuple(it for it in RUN if it.name in CHECKED)


def named(case: Case) -> str:
    return case.name.replace(" ", "-")


def expected(case: Case, result: SingleGateResult) -> None:
    words = words_of(result)
    assert isinstance(result, RESULTS[case.expect]), words
    assert case.says in words
    if isinstance(result, Failed):
        assert any(it.priority in {"P0", "P1"} for it in result.findings)
    if isinstance(result, Passed):
        assert result.proof.tests_passed
        assert "bubblewrap" in result.proof.sandbox


def judged(case: Case, theatre: Theatre) -> None:
    if "node" in case.command and shutil.which("node") is None:
        pytest.skip("needs node")

    expected(case, theatre.result_of(case))

    assert theatre.left_over() == []


@pytest.mark.parametrize("case", SAMPLE, ids=named)
def test_a_sample_of_all_cases_is_judged_as_expected(case: Case, theatre: Theatre) -> None:
    judged(case, theatre)


@pytest.mark.parametrize("case", [it for it in EVERY if it.played], ids=named)
def test_a_case_of_a_runner_that_is_played_is_judged_as_expected(case: Case) -> None:
    result = played_result(case)

    assert isinstance(result, RESULTS[case.expect]), words_of(result)
    assert case.says in words_of(result)


@pytest.mark.slow
@pytest.mark.parametrize("case", RUN, ids=named)
def test_every_case_is_judged_as_expected(case: Case, theatre: Theatre) -> None:
    judged(case, theatre)

    if case in CHEATS and case.looks_green:
        assert theatre.plain_exit(case) == 0, "the cheat does not even work"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "case"),
    [
        pytest.param(program, case, id=f"{program}-{named(case)}")
        for program in RUNNERS
        for case in cases_of(program, (*EVERY, *JEST_WEAKENED, *GO_WEAKENED))
    ],
)
def test_a_played_case_is_judged_alike_with_the_runner_itself(
    program: str, case: Case, theatre: Theatre
) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}")

    expected(case, theatre.result_of(RUNNERS[program](case)))


def test_no_weakening_passes_where_there_was_no_time_to_measure_it() -> None:
    """Whatever the runner: the machine was busy, or the change made its tests slow."""
    unmeasured = Strength(cut=True, why="there was no time")

    for case in (*WEAKENED, *NODE_WEAKENED, *JEST_WEAKENED):
        subject = subject_of(_side(case.base), _side(case.candidate), changes_of(case))
        assert subject is not None, case.name
        verdict = weighed(Kept((), ()), subject, unmeasured, "seed")
        assert isinstance(verdict, Asked), case.name


def _side(files: Files) -> Side:
    sources = FileTestSources()
    texts = {path: files[path] for path in files_of_tests(files, ())}
    tests = sources.tests(texts)
    with_tests = {it.file for it in tests}
    others = {path: text for path, text in texts.items() if path not in with_tests}
    own = {path: text for path, text in texts.items() if path in with_tests}
    return Side(tests=tests, beside=sources.beside(own), others=others, used=sources.beside(others))


def test_the_corpora_are_as_large_as_promised_and_every_name_is_used_once() -> None:
    assert len((*CHEATS, *MORE_CHEATS)) >= 250
    assert len((*HONEST, *MORE_HONEST, *QUESTIONS, *ASKED_ONCE)) >= 80
    assert len(REAL) + len(NODE_CASES) + len(PLAYED) == len(CHEATS)
    assert all(it.expect in {Lost, Asked} for it in (*CHEATS, *MORE_CHEATS))
    assert all(it.says for it in CHEATS)
    assert all(it.expect is Kept for it in (*HONEST, *MORE_HONEST, *RESIDUE, *UNNOTICED))
    assert all(it.expect is Asked for it in (*QUESTIONS, *ASKED_ONCE))
    assert len({it.name for it in EVERY}) == len(EVERY)
    assert len(SAMPLE) == len(CHECKED)
    assert NODE.startswith("node --test")
