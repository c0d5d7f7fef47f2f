"""`lockgate init --baseline`: what the commands come to on base, before anything is judged."""

import pytest

from lockgate.adapters.sandbox import trouble
from tests.faces.shell import Shell

WHY_NOT = trouble()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"needs a sandbox: {WHY_NOT}")


def with_test(shell: Shell, command: str) -> Shell:
    (shell.repo / "Makefile").write_text(f"test:\n\t@{command}\n", encoding="utf-8")
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "--message", "Add tests")
    return shell


def test_a_green_base_is_said_to_be_green(plain: Shell) -> None:
    said = with_test(plain, "true").did("init", "--agent", "scripted")

    assert "on base, test: green" in said
    assert "committed on main" in said


def test_a_red_base_is_told_with_what_was_found_and_stops_nothing(plain: Shell) -> None:
    with_test(plain, "echo 'AssertionError: two is not one'; false")

    answer = plain.run("init", "--agent", "scripted")

    assert answer.code == 0
    assert "on base, test: red" in answer.out
    assert "AssertionError: two is not one" in answer.out
    assert "Configuration" in plain.git("log", "-1", "--format=%s").title()


def test_what_passes_and_fails_on_the_same_commit_is_flaky(plain: Shell) -> None:
    with_test(plain, "n=$$(date +%N); test $$((1$$n / 1000 % 2)) = 0")

    (found,) = plain.run("init", "--agent", "scripted", "--baseline", "12", "--json").facts[
        "baseline"
    ]

    assert (found["colour"], found["runs"]) == ("flaky", 12)


def test_the_committed_base_is_run_and_not_what_lies_about(plain: Shell) -> None:
    with_test(plain, "true")
    (plain.repo / "Makefile").write_text("test:\n\t@false\n", encoding="utf-8")

    (found,) = plain.run("init", "--agent", "scripted", "--json").facts["baseline"]

    assert found["colour"] == "green"


def test_nothing_is_run_where_that_is_asked_for(plain: Shell) -> None:
    with_test(plain, "false")

    assert plain.run("init", "--baseline", "0", "--json").facts["baseline"] == []


def test_a_set_up_that_fails_is_told_as_such(plain: Shell) -> None:
    with_test(plain, "true")
    (plain.repo / "requirements.txt").write_text("./no-such-directory\n", encoding="utf-8")
    (plain.repo / "conftest.py").write_text("", encoding="utf-8")
    plain.git("add", "--all")
    plain.git("commit", "--quiet", "--message", "Need something")

    answer = plain.run("init", "--agent", "scripted", "--json")

    assert answer.code == 0
    (found,) = answer.facts["baseline"]
    assert found["colour"] == "broken"
    assert "set-up" in found["why"]


def test_a_file_that_is_there_already_is_refused_before_anything_runs(plain: Shell) -> None:
    with_test(plain, "sleep 60").did("init", "--baseline", "0")

    assert plain.run("init").code == 1
