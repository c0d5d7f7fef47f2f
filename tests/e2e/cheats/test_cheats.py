"""Cheats are caught and honest changes pass, with the real test runners on the real trees."""

import random
import shutil
from pathlib import Path

import pytest

from lockgate.core.differential import Asked, Kept, Lost
from tests.e2e.cheats.cheats import CHEATS, NODE_CASES, PLAYED, REAL, RESIDUE
from tests.e2e.cheats.honest import HONEST, QUESTIONS
from tests.e2e.cheats.stage import NODE, Case, plain_exit, verdict_of, words_of

EVERY = (*CHEATS, *HONEST, *QUESTIONS, *RESIDUE)
RUN = tuple(it for it in EVERY if it.played is None)
SAMPLE = random.Random(20).sample(RUN, 20)  # noqa: S311 - which cases run is no secret


def named(case: Case) -> str:
    return case.name.replace(" ", "-")


def judged(case: Case, folder: Path) -> None:
    if "node" in case.command and shutil.which("node") is None:
        pytest.skip("needs node")
    folder.mkdir(exist_ok=True)

    verdict = verdict_of(case, folder)

    words = words_of(verdict)
    assert isinstance(verdict, case.expect), words
    assert case.says in words
    if isinstance(verdict, Lost):
        assert any(it.priority in {"P0", "P1"} for it in verdict.findings)


@pytest.mark.parametrize("case", SAMPLE, ids=named)
def test_a_sample_of_all_cases_is_judged_as_expected(case: Case, tmp_path: Path) -> None:
    judged(case, tmp_path / "trees")


@pytest.mark.parametrize("case", [it for it in EVERY if it.played], ids=named)
def test_a_case_of_a_runner_that_is_played_is_judged_as_expected(
    case: Case, tmp_path: Path
) -> None:
    judged(case, tmp_path / "trees")


@pytest.mark.slow
@pytest.mark.parametrize("case", RUN, ids=named)
def test_every_case_is_judged_as_expected(case: Case, tmp_path: Path) -> None:
    judged(case, tmp_path / "trees")

    if case in CHEATS and case.looks_green:
        assert plain_exit(case, tmp_path / "trees") == 0, "the cheat does not even work"


def test_the_corpora_are_as_large_as_promised_and_every_name_is_used_once() -> None:
    assert len(CHEATS) >= 60
    assert len(HONEST) >= 30
    assert len(REAL) + len(NODE_CASES) + len(PLAYED) == len(CHEATS)
    assert all(it.expect in {Lost, Asked} and it.says for it in CHEATS)
    assert all(it.expect is Kept for it in (*HONEST, *RESIDUE))
    assert len({it.name for it in EVERY}) == len(EVERY)
    assert NODE.startswith("node --test")
