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


def test_a_command_that_passes_whatever_the_source_is_is_not_called_ready(plain: Shell) -> None:
    said = with_test(plain, "true").did("init", "--agent", "scripted")

    assert "on main, tests: green" in said
    assert "with app.py broken it stayed green" in said
    assert "committed on main" in said
    assert said.splitlines()[-1].startswith("not ready: the tests pass with the source broken")


def test_a_command_that_notices_a_broken_source_is_ready(plain: Shell) -> None:
    said = with_test(plain, "! grep -q lockgate app.py").did("init", "--agent", "scripted")

    assert "with app.py broken it turned red, as it should" in said
    assert said.splitlines()[-2:] == [
        "gate check: ok: every change must pass a gate that runs a command",
        'next: lockgate run "what to do"',
    ]


def test_a_red_command_is_left_out_and_the_end_says_what_to_do(plain: Shell) -> None:
    with_test(plain, "echo 'AssertionError: two is not one'; false")

    answer = plain.run("init", "--agent", "scripted")

    assert answer.code == 0
    assert "on main, tests: red" in answer.out
    assert "AssertionError: two is not one" in answer.out
    assert answer.out.splitlines()[-1] == (
        "not ready: `make test` fails on main. Mend that,"
        ' or name another command: lockgate init --force --test-command "…"'
    )
    config = plain.git("show", "main:.lockgate/config.toml")
    assert "# Left out: tests, `make test`: " in config
    assert 'skip = ["tests", "typecheck"]' in config


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
    (plain.repo / "test_x.py").write_text("", encoding="utf-8")
    plain.git("add", "--all")
    plain.git("commit", "--quiet", "--message", "Need something")

    answer = plain.run("init", "--agent", "scripted", "--json")

    assert answer.code == 0
    (found,) = answer.facts["baseline"]
    assert found["colour"] == "broken"
    assert "set-up" in found["why"]
    assert answer.facts["next"].startswith("not ready: gate tests could not be run")


def test_a_file_that_is_there_already_is_refused_before_anything_runs(plain: Shell) -> None:
    with_test(plain, "sleep 60").did("init", "--baseline", "0")

    assert plain.run("init").code == 1


# --- what a human says --------------------------------------------------------------------------


def test_a_command_and_a_set_up_can_be_named(plain: Shell) -> None:
    asked = ("--test-command", "test -s made && ! grep -q lockgate app.py", "--setup", "date >made")

    facts = plain.run("init", "--agent", "scripted", *asked, "--json").facts

    assert facts["ready"] is True
    assert facts["found"]["setup"] == "date >made (found in --setup)"
    assert facts["baseline"][0]["broke"] == "app.py"


def test_a_dry_run_prints_the_file_and_where_it_was_seen_and_does_no_more(plain: Shell) -> None:
    with_test(plain, "true")
    plain.did("task", "list")
    before = plain.traces()

    said = plain.did("init", "--agent", "scripted", "--dry-run")

    assert "found  test: make test (found in Makefile)" in said
    assert 'test = "make test"  # found in Makefile' in said
    assert plain.traces() == before
    facts = plain.run("init", "--agent", "scripted", "--dry-run", "--json").facts
    assert 'formula = "plain"' in facts["text"]


CI = "jobs: {test: {steps: [{run: ./gradlew test}]}}\n"


def test_what_only_ci_knows_is_offered_and_taken_with_yes(plain: Shell) -> None:
    (plain.repo / ".github/workflows").mkdir(parents=True)
    (plain.repo / ".github/workflows/ci.yml").write_text(CI, encoding="utf-8")
    plain.git("add", "--all")
    plain.git("commit", "--quiet", "--message", "Test in CI")

    said = plain.did("init", "--agent", "scripted")
    taken = plain.run("init", "--agent", "scripted", "--yes", "--force", "--json").facts

    assert said.splitlines()[-1] == (
        "not ready: no command was found that tests this repository."
        ' Name it: lockgate init --force --test-command "./gradlew test" (seen in CI)'
    )
    assert taken["baseline"][0]["command"] == "./gradlew test"


def test_without_a_commit_and_with_nothing_run_it_is_not_called_ready(plain: Shell) -> None:
    said = with_test(plain, "true").did("init", "--agent", "scripted", "--baseline", "0")

    assert said.splitlines()[-1] == (
        "not ready: nothing was run. See whether it passes: lockgate gate run"
    )
