"""A power cut on the real store: no acknowledged commit is lost, and nothing is damaged."""

import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.crash.power import Op, cut, problems, recorded

COMMITS = 40
pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")


def found(ops: Sequence[Op], place: Path, seeds: range) -> list[str]:
    wrong: list[str] = []
    for seed in seeds:
        files, acks = cut(ops, random.Random(seed))  # noqa: S311 - a seed is to be repeated
        wrong += [f"seed {seed}: {it}" for it in problems(place, files, acks)]
    return wrong


def test_ten_power_cuts_lose_no_acknowledged_commit(tmp_path) -> None:
    ops = recorded(tmp_path, COMMITS)

    assert sum(op.kind == "ack" for op in ops) == COMMITS + 4
    assert found(ops, tmp_path / "left", range(10)) == []


def test_a_store_that_does_not_wait_for_the_disk_is_seen_to_lose_commits(tmp_path) -> None:
    ops = recorded(tmp_path, COMMITS, "careless")

    assert any("lost" in it for it in found(ops, tmp_path / "left", range(10)))


@pytest.mark.slow
def test_five_hundred_power_cuts_lose_no_acknowledged_commit(tmp_path) -> None:
    ops = recorded(tmp_path, 3 * COMMITS)

    assert found(ops, tmp_path / "left", range(10, 510)) == []
