"""Programs that are started: how they end, and what they get to see."""

import sys
import time

import pytest

from lockgate.adapters.run import run
from lockgate.adapters.system import SystemChance, SystemClock
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


def test_a_program_that_closes_its_outputs_and_goes_on_is_ended_too() -> None:
    begin = time.monotonic()

    with pytest.raises(Unavailable, match="had not finished"):
        run(("sh", "-c", "exec >&- 2>&-; exec sleep 60"), deadline=0.3)

    assert time.monotonic() - begin < 30


def test_outputs_larger_than_a_pipe_come_whole_from_both() -> None:
    done = run(("sh", "-c", "head -c 300000 /dev/zero | tr '\\0' e | tee /dev/stderr"))

    assert (done.out, done.err) == ("e" * 300_000, "e" * 300_000)


def test_a_program_reads_the_file_that_it_is_given(tmp_path) -> None:
    given = tmp_path / "given"
    given.write_bytes(b"x\n" * 100_000)

    assert run(("cat",), given=given).out == "x\n" * 100_000


def test_a_variable_that_is_given_wins_over_ours_and_goes_to_that_program_only(monkeypatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/of/the/user")
    show = ("sh", "-c", "echo $GIT_CONFIG_GLOBAL $LOCKGATE_GIVEN")

    given = run(show, environment={"GIT_CONFIG_GLOBAL": "/dev/null", "LOCKGATE_GIVEN": "it is"})

    assert given.out == "/dev/null it is\n"
    assert run(show).out == "/of/the/user\n"


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
