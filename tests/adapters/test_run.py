"""Programs that are started: how they end, and what they get to see."""

import sys
import time

import pytest

from lockgate.adapters.clock import SystemChance, SystemClock
from lockgate.adapters.run import run
from lockgate.errors import Unavailable


def test_a_program_answers_with_its_code_and_both_its_outputs() -> None:
    done = run(("sh", "-c", "echo out; echo err >&2; exit 3"))

    assert (done.code, done.out, done.err) == (3, "out\n", "err\n")


def test_a_program_does_not_wait_for_input() -> None:
    assert run(("cat",)).out == ""


def test_output_that_is_no_text_does_not_hurt() -> None:
    assert run((sys.executable, "-c", "import os; os.write(1, b'\\xff')")).out == "\udcff"


def test_a_program_that_does_not_end_is_ended(tmp_path) -> None:
    begin = time.monotonic()

    with pytest.raises(Unavailable, match="had not finished"):
        run(("sleep", "60"), deadline=0.2)

    assert time.monotonic() - begin < 30


@pytest.mark.parametrize("program", ["no-such-program-here", "/etc/hostname", "/"])
def test_what_cannot_be_started_is_told(program) -> None:
    with pytest.raises(Unavailable, match="was not run"):
        run((program,))


def test_gits_own_variables_are_kept_out_but_an_identity_stays(monkeypatch) -> None:
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "somebody")

    seen = run(("env",)).out.splitlines()

    assert "GIT_AUTHOR_NAME=somebody" in seen
    assert not any(line.startswith("GIT_INDEX_FILE") for line in seen)


def test_tokens_are_long_and_never_the_same() -> None:
    chance = SystemChance()

    tokens = {chance.token() for _ in range(100)}

    assert len(tokens) == 100
    assert min(map(len, tokens)) >= 40
    assert len(chance.suffix()) == 4


def test_the_clock_is_the_systems() -> None:
    assert abs(SystemClock().now() - time.time()) < 60
