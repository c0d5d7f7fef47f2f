"""Whole homes from seeds: nothing is lost, doubled, passed by mistake or forgotten.

`make simulate SEED=k` prints one seed's trace; docs/proof.md says what is judged.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What a plant does, and by which words the simulation says that it has seen it.
FOUND = {
    "no-compare-and-set": r"revision \d+ of task \S+ was acknowledged twice",
    "lost-commit": r"was acknowledged twice|\d+ was acknowledged|of \d+ acknowledged",
    "no-count": r"session \S+ began beside .*, and there are \d slots",
    "effect-before-commit": r"was started, and no transaction had asked for it",
    "started-twice": r"was started twice|was started while",
    "no-fence": r"is cancelled, and the target has it: True|a landing brought nothing",
    "no-lease": r"a landing took .* away|landed more than once|a landing brought nothing",
    "lost-wake-up": r"sleeps, and has not looked at what happened",
    "silent-board": r"is stuck for ever, and nobody is told",
    "false-pass": r"passed its gates, and none had run|landed, and no gate had passed",
}

SOON = {"started-twice": 15, "silent-board": 3}  # seeds from which on these are found soon


def simulated(*argv: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONHASHSEED": "0"}
    program = (sys.executable, "-m", "tests.simulation", *argv)
    return subprocess.run(
        program, cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )


def outcomes(*argv: str) -> list[dict[str, object]]:
    done = simulated("--json", *argv)
    assert not done.stderr, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_in_twenty_homes_full_of_faults_all_holds() -> None:
    found = outcomes("--seeds", "20")

    assert len(found) == 20
    assert [it for it in found if it["wrong"]] == []


def test_a_seed_gives_the_same_course_and_the_same_end_each_time() -> None:
    first, second = (outcomes("--first", "7", "--seeds", "2") for _ in range(2))

    assert first == second
    assert first[0]["digest"] != first[1]["digest"]


@pytest.mark.parametrize("plant", FOUND)
def test_a_planted_bug_is_found(plant) -> None:
    first = str(SOON.get(plant, 0))
    done = simulated("--plant", plant, "--first", first, "--seeds", "60", "--stop")

    assert re.search(FOUND[plant], done.stdout), done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 250))
def test_in_two_thousand_homes_full_of_faults_all_holds(first) -> None:
    found = outcomes("--first", str(first), "--seeds", "250")

    assert len(found) == 250
    assert [it for it in found if it["wrong"]] == []
