"""`lockgate gate run` where a change edits what a gate's command runs."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from lockgate.adapters.sandbox import trouble
from tests.faces.cli.test_gate import BARE, HEAD, LINT, command, edit
from tests.faces.shell import Answer, Shell, commit_config

WHY_NOT = trouble()
LEVELS = [
    pytest.param(BARE, id="bare"),
    pytest.param(
        "",
        id="sandboxed",
        marks=pytest.mark.skipif(WHY_NOT is not None, reason=f"needs a sandbox: {WHY_NOT}"),
    ),
]
SCRIPT = "set -e\n. ./lib.sh\ncheck\n"
LIB = "check() { grep -q hello app.py; }\n"
RED = "print('bye')\n"
TEST = "def test_a():\n    from app import A\n    assert A == 1\n\n\ndef test_b():\n    pass\n"
PYTEST = f"{sys.executable} -m pytest -p no:cacheprovider --junitxml=$OUT/junit.xml"


def a_repository(shell: Shell, run: str, files: dict[str, str], level: str = BARE) -> None:
    """On a branch beside base, which has these files and a gate with this command."""
    for name, text in files.items():
        edit(shell, name, text)
    commit_config(shell, HEAD + level + command("tests", run, "attempts = 1") + LINT)
    shell.git("checkout", "--quiet", "-b", "feature")


def judged(shell: Shell) -> tuple[Answer, str]:
    """With the result of the gate `tests`."""
    answer = shell.run("gate", "run", "--json")
    return answer, next(it["result"] for it in answer.facts["gates"] if it["name"] == "tests")


def said(answer: Answer) -> str:
    return " ".join(
        it["issue"] for gate in answer.facts["gates"] for it in gate.get("findings", ())
    )


@pytest.mark.parametrize("level", LEVELS)
def test_a_change_that_writes_exit_0_into_the_gates_script_fails_it(shell: Shell, level) -> None:
    a_repository(shell, "sh test.sh", {"test.sh": SCRIPT, "lib.sh": LIB}, level)
    edit(shell, "app.py", RED)
    edit(shell, "test.sh", "exit 0\n")

    answer, result = judged(shell)

    assert answer.code == 1
    assert result == "failed"
    assert "the change edits what this gate runs: test.sh" in said(answer)
    assert "with base's it fails" in said(answer)


def test_a_script_that_the_gates_script_names_counts_like_it(shell: Shell) -> None:
    a_repository(shell, "sh test.sh", {"test.sh": SCRIPT, "lib.sh": LIB})
    edit(shell, "app.py", RED)
    edit(shell, "lib.sh", "check() { :; }\n")

    answer, result = judged(shell)

    assert result == "failed"
    assert "runs: lib.sh" in said(answer)


def test_a_file_that_the_change_adds_beside_its_script_does_not_help_it(shell: Shell) -> None:
    script = "[ ! -f local.sh ] || . ./local.sh\ngrep -q hello app.py\n"
    a_repository(shell, "sh test.sh", {"test.sh": script})
    edit(shell, "app.py", RED)
    edit(shell, "local.sh", "exit 0\n")

    answer, result = judged(shell)

    assert result == "failed"
    assert "local.sh" in said(answer)


def test_a_script_that_agrees_with_bases_passes_and_a_human_would_be_asked(shell: Shell) -> None:
    a_repository(shell, "sh test.sh", {"test.sh": SCRIPT, "lib.sh": LIB})
    edit(shell, "test.sh", "echo testing\n" + SCRIPT)

    answer, result = judged(shell)

    assert answer.code == 0, answer
    assert result == "passed"
    assert answer.facts["protected"] == ["test.sh"]
    assert "the change edits test.sh, which this gate runs" in said(answer)


def test_a_change_of_other_files_runs_the_gate_once_and_asks_nobody(shell: Shell) -> None:
    a_repository(shell, "sh test.sh", {"test.sh": SCRIPT, "lib.sh": LIB})
    edit(shell, "other.sh", "exit 0\n")

    answer, result = judged(shell)

    assert result == "passed"
    assert answer.facts["protected"] == []
    assert said(answer) == ""


MAKE = shutil.which("make") is None
MAKEFILE = "test: build\n\tgrep -q $(WORD) app.py\nWORD = hello\nbuild:\n\ttrue\n"


@pytest.mark.skipif(MAKE, reason="needs make")
@pytest.mark.parametrize(
    ("makefile", "named"),
    [
        (MAKEFILE.replace("grep -q $(WORD) app.py", "true"), "make test"),
        (MAKEFILE.replace("WORD = hello", "WORD = bye"), "make variable WORD"),
        (f".IGNORE:\n{MAKEFILE}", "make .IGNORE"),
    ],
)
def test_a_make_target_that_lets_a_red_change_pass_fails_it(shell: Shell, makefile, named) -> None:
    a_repository(shell, "make test", {"Makefile": MAKEFILE})
    edit(shell, "app.py", RED)
    edit(shell, "Makefile", makefile)

    answer, result = judged(shell)

    assert result == "failed"
    assert f"runs: {named}" in said(answer)


@pytest.mark.skipif(MAKE, reason="needs make")
@pytest.mark.parametrize("name", ["test", "test/a.txt"])
def test_a_file_that_keeps_make_from_the_target_fails_the_gate(shell: Shell, name) -> None:
    a_repository(shell, "make test", {"Makefile": "test:\n\tgrep -q hello app.py\n"})
    edit(shell, "app.py", RED)
    edit(shell, name, "x\n")

    answer, result = judged(shell)

    assert result == "failed"
    assert f"runs: {name.removesuffix('a.txt')}" in said(answer)


@pytest.mark.skipif(MAKE, reason="needs make")
def test_a_new_make_target_asks_nobody(shell: Shell) -> None:
    a_repository(shell, "make test", {"Makefile": MAKEFILE})
    edit(shell, "Makefile", f"{MAKEFILE}new: test\n\ttrue\n")

    answer, result = judged(shell)

    assert result == "passed"
    assert answer.facts["protected"] == []


def a_package(**scripts: str) -> str:
    return json.dumps({"name": "a", "version": "1.0.0", "scripts": scripts})


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")
def test_a_package_script_that_lets_a_red_change_pass_fails_it(shell: Shell) -> None:
    before = a_package(test="npm run unit", unit="grep -q hello app.py")
    a_repository(shell, "npm test", {"package.json": before})
    edit(shell, "app.py", RED)
    edit(shell, "package.json", a_package(test="npm run unit", unit="true", new="x"))

    answer, result = judged(shell)

    assert result == "failed"
    assert "runs: package.json scripts.unit" in said(answer)


def test_a_pytest_section_that_hides_a_red_test_fails_the_gate(shell: Shell) -> None:
    files = {
        "app.py": "A = 1  # hello\n",
        "test_app.py": TEST,
        "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-q'\n",
    }
    a_repository(shell, PYTEST, files)
    edit(shell, "app.py", "A = 2  # hello\n")
    edit(shell, "pyproject.toml", "[tool.pytest.ini_options]\naddopts = '-q -k test_b'\n")

    answer, result = judged(shell)

    assert result == "failed"
    assert "runs: pyproject.toml [tool.pytest]" in said(answer)


def test_a_green_test_that_the_changed_section_no_longer_runs_fails_the_gate(shell: Shell) -> None:
    files = {"app.py": "A = 1  # hello\n", "test_app.py": TEST, "setup.cfg": "[tool:pytest]\n"}
    a_repository(shell, PYTEST, files)
    edit(shell, "setup.cfg", "[tool:pytest]\naddopts = -k test_b\n")

    answer, result = judged(shell)

    assert result == "failed"
    assert "does not report that these pass: test_app::test_a" in said(answer)


def test_a_script_that_the_change_removes_is_back_in_the_second_run(shell: Shell) -> None:
    run = "if [ -f test.sh ]; then sh test.sh; fi"
    a_repository(shell, run, {"test.sh": SCRIPT, "lib.sh": LIB})
    edit(shell, "app.py", RED)
    Path(shell.repo / "test.sh").unlink()
    shell.git("commit", "--quiet", "--all", "--message", "Remove it")

    answer, result = judged(shell)

    assert result == "failed"
    assert "test.sh" in said(answer)
