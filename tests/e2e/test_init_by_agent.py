"""`lockgate init --with AGENT`: an agent proposes the commands; what does not hold is refused."""

from pathlib import Path

import pytest

from lockgate.adapters.sandbox import trouble
from tests.e2e.test_first_day import GREET, GREET_TEST, broken, project
from tests.faces.shell import Answer, Shell

WHY_NOT = trouble()
pytestmark = [
    pytest.mark.measured,
    pytest.mark.skipif(WHY_NOT is not None, reason=f"needs a sandbox: {WHY_NOT}"),
]

# No file says how this is tested: only somebody who reads it can know.
UNKNOWN = {"checks/all.sh": GREET_TEST, "greet.sh": GREET}
TOLD = "the scripted agent's set-up was not accepted"


def asked(shell: Shell, proposal: str, *more: str) -> Answer:
    """With an agent that hands in this proposal."""
    script = shell.place / "script.toml"
    steps = f"""{{ write = "lockgate-setup.toml", text = '''{proposal}''' }}"""
    script.write_text(f"[[worker]]\nsteps = [ {steps} ]\n", encoding="utf-8")
    env = {"LOCKGATE_SCRIPT": str(script)}
    return shell.program("init", "--with", "scripted", *more, env=env)


def test_a_proposal_that_is_green_three_times_and_red_on_faults_is_committed(
    tmp_path: Path,
) -> None:
    shell = project(tmp_path, UNKNOWN)

    said = asked(shell, 'test = "test -e ready && sh checks/all.sh"\nsetup = "touch ready"\n')

    assert said.out.splitlines()[-1] == 'next: lockgate run "what to do"', said
    assert "asking scripted to write the set-up" in said.err
    assert "found  test: test -e ready && sh checks/all.sh (found in scripted)" in said.out
    assert "on main, tests: green, 3 of 3 runs passed" in said.out
    config = shell.git("show", "main:.lockgate/config.toml")
    assert 'setup = "touch ready"' in config
    assert shell.run("gate", "run").code == 0
    broken(shell, "greet.sh", "hello", "hey")
    assert shell.run("gate", "run").code == 1
    assert not list((shell.home / "trials").iterdir())


REFUSED = [
    ('test = "sh checks/none.sh"', "`sh checks/none.sh` fails on main"),
    ('setup = "true"', "lockgate-setup.toml names no `test`"),
    ("test = [", "lockgate-setup.toml is no TOML"),
]


@pytest.mark.parametrize(
    ("proposal", "why"),
    [
        ('test = "true"', "`true` passes with the source broken, so it does not test it"),
        *(pytest.param(*it, marks=pytest.mark.slow) for it in REFUSED),  # core has them all
    ],
)
def test_a_proposal_that_does_not_hold_is_refused_and_nothing_is_written(
    tmp_path: Path, proposal: str, why: str
) -> None:
    shell = project(tmp_path, UNKNOWN)
    before = shell.git("rev-parse", "main")

    answer = asked(shell, proposal)

    assert answer.code == 1
    assert answer.err.splitlines()[-2].startswith(f"{TOLD}: {why}"), answer
    assert "lockgate init --test-command" in answer.err.splitlines()[-1]
    assert shell.git("rev-parse", "main") == before
    assert shell.git("status", "--short") == ""


def test_an_agent_that_hands_in_nothing_is_told_with_its_last_words(tmp_path: Path) -> None:
    shell = project(tmp_path, UNKNOWN)
    script = tmp_path / "script.toml"
    script.write_text('[[worker]]\nsteps = [ { say = "I found no tests." } ]\n', encoding="utf-8")

    answer = shell.program(
        "init", "--with", "scripted", "--json", env={"LOCKGATE_SCRIPT": str(script)}
    )

    assert answer.code == 1
    assert answer.facts["error"]["why"] == (
        "it ended without writing lockgate-setup.toml. Its last words: I found no tests."
    )


def test_an_agent_that_is_not_there_is_told_before_anything_is_run(tmp_path: Path) -> None:
    shell = project(tmp_path, UNKNOWN)

    answer = shell.run("init", "--with", "nosuch")

    assert "agent 'nosuch' was not found" in answer.why
