"""Repositories that `lockgate init` cannot make ready, or that are odd: each has its outcome."""

import subprocess
from pathlib import Path

import pytest

from lockgate.adapters.sandbox import trouble
from tests.e2e.test_first_day import GREET, GREET_TEST, MAKEFILE, project
from tests.faces.shell import Shell

WHY_NOT = trouble()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"needs a sandbox: {WHY_NOT}")

TESTED = {"Makefile": MAKEFILE, "check.sh": GREET_TEST, "greet.sh": GREET}
READY = 'next: lockgate run "what to do"'


def last(shell: Shell, *argv: str) -> str:
    answer = shell.run("init", *argv)
    assert answer.code == 0, answer
    return answer.out.splitlines()[-1]


def test_no_tests_at_all(tmp_path: Path) -> None:
    shell = project(tmp_path, {"README.md": "Nothing.\n"})

    assert last(shell) == (
        "not ready: no command was found that tests this repository."
        ' Name it: lockgate init --force --test-command "…"'
    )
    assert shell.run("gate", "check").code == 1


def test_tests_that_need_the_network(tmp_path: Path) -> None:
    ask = 'getent hosts example.com || { echo "Could not resolve host: example.com"; exit 1; }\n'
    shell = project(tmp_path, {**TESTED, "check.sh": ask})

    answer = shell.run("init")

    assert "it seems to need the network, which gates do not have" in answer.out
    assert answer.out.splitlines()[-1].startswith("not ready: `make test` fails on main.")


def test_tests_that_write_into_the_source_tree(tmp_path: Path) -> None:
    check = f"test ! -e left && touch left && {GREET_TEST.replace(chr(10), ' && ', 1)}"
    shell = project(tmp_path, {**TESTED, "check.sh": check})

    assert last(shell) == READY
    assert shell.git("status", "--short") == ""
    assert shell.run("gate", "run", "--base", "main").code == 0


def test_tests_that_take_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lockgate.core.model.gates.TIMEOUT_SECONDS", 2)  # not ten minutes
    shell = project(tmp_path, {**TESTED, "check.sh": "sleep 3600\n"})

    answer = shell.run("init")

    assert "on main, tests: red" in answer.out
    assert answer.out.splitlines()[-1] == (
        "not ready: `make test` did not end in time (2 s). Name a shorter command:"
        ' lockgate init --force --test-command "…"; or give its gate more `timeout`'
    )


def test_tests_that_never_end_once_the_source_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockgate.core.discovery.faults.LEAST_PATIENCE", 2)  # not a minute
    files = {
        "Makefile": "test:\n\tsh tests/check.sh\n",
        "greet.sh": GREET,
        "tests/check.sh": "sh -n greet.sh || sleep 3600\n",
    }
    shell = project(tmp_path, files)

    answer = shell.run("init")

    assert "with greet.sh broken it turned red, as it should" in answer.out
    assert answer.out.splitlines()[-1] == READY


def test_a_set_up_that_asks_a_question(tmp_path: Path) -> None:
    shell = project(tmp_path, TESTED)

    answer = shell.run("init", "--setup", "read -r answer && test -n $answer")

    assert "the set-up did not finish" in answer.out
    assert answer.out.splitlines()[-1].startswith("not ready: gate tests could not be run.")


@pytest.mark.slow
def test_a_set_up_that_asks_at_a_terminal(tmp_path: Path) -> None:
    shell = project(tmp_path, TESTED)

    answer = shell.run("init", "--setup", "read -r answer </dev/tty")

    assert "the set-up did not finish" in answer.out
    assert answer.out.splitlines()[-1].startswith("not ready: gate tests could not be run.")


def test_a_set_up_knows_how_this_machine_reaches_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = project(tmp_path, TESTED)
    asks = 'test "$HTTPS_PROXY $NODE_EXTRA_CA_CERTS" = "http://proxy.test /etc/ca.pem"'
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.test")
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", "/etc/ca.pem")

    assert last(shell, "--setup", asks) == READY


def test_a_set_up_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lockgate.adapters.workspaces.layers.SECONDS", 2.0)  # not half an hour
    files = {
        "package.json": '{"scripts": {"test": "sh check.sh", "preinstall": "sleep 3600"}}',
        "check.sh": GREET_TEST,
        "greet.sh": GREET,
    }
    shell = project(tmp_path, files)

    answer = shell.run("init")

    assert "did not end within 2 s (nobody answers what it asks)" in answer.out
    assert answer.out.count("on main, tests: broken") == 1
    assert answer.out.splitlines()[-1].startswith("not ready: gate tests could not be run.")


MANY = 100_000


def with_many_files(place: Path) -> Shell:
    """A repository with so many files in its commit and its index; most do not lie there."""
    shell = project(place, TESTED)
    lines = ["commit refs/heads/main", "committer T <t@localhost> 1700000000 +0000", "data 4"]
    lines += ["Many", "from refs/heads/main^0"]
    lines += [f"M 100644 inline data/{n % 250}/file-{n}.txt\ndata 2\nx" for n in range(MANY)]
    subprocess.run(
        ["git", "-C", str(shell.repo), "fast-import", "--quiet"],
        input="\n".join((*lines, "")).encode(),
        check=True,
        timeout=60,
    )
    shell.git("read-tree", "HEAD")
    return shell


@pytest.mark.unmeasured
def test_what_is_proposed_for_a_hundred_thousand_files(tmp_path: Path) -> None:
    shell = with_many_files(tmp_path)

    answer = shell.run("init", "--dry-run")

    assert "found  test: make test (found in Makefile)" in answer.out


@pytest.mark.slow
def test_a_hundred_thousand_files(tmp_path: Path) -> None:
    shell = with_many_files(tmp_path)

    answer = shell.program("init", seconds=1200)

    assert answer.out.splitlines()[-1] == READY, answer
    assert "data/0/file-0.txt" in shell.git("ls-tree", "-r", "--name-only", "main", "data/0/")


def test_files_of_git_lfs_are_remarked_upon(tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    files = {".gitattributes": "*.bin filter=lfs -text\n", "big.bin": pointer}
    shell = project(tmp_path, {**TESTED, **files})

    answer = shell.run("init")

    assert "note: files of git-lfs are pointers where gates run" in answer.out
    assert answer.out.splitlines()[-1] == READY


@pytest.mark.parametrize(
    "how", ["partial", *(pytest.param(it, marks=pytest.mark.slow) for it in ("shallow", "sparse"))]
)
def test_a_clone_that_is_not_whole(tmp_path: Path, how: str) -> None:
    whole = project(tmp_path / "whole", {**TESTED, "extra/file": "x\n"})
    (whole.repo / "more").write_text("more\n", encoding="utf-8")
    whole.git("add", "--all")
    whole.git("commit", "--quiet", "--message", "More")
    whole.git("config", "uploadpack.allowFilter", "true")
    shell = Shell(tmp_path / "part")
    options = {
        "shallow": ["--depth=1"],
        "sparse": ["--sparse"],
        "partial": ["--filter=blob:none", "--no-checkout"],
    }
    source = f"file://{whole.repo}"
    clone = ["git", "clone", "--quiet", *options[how], source, str(shell.repo)]
    subprocess.run(clone, check=True, capture_output=True)
    if how == "partial":
        shell.git("checkout", "--quiet", "main")
    for key, value in (("user.name", "Test"), ("user.email", "test@localhost")):
        shell.git("config", key, value)

    assert last(shell) == READY
    assert shell.run("gate", "run", "--base", "main").code == 0


def test_windows_line_ends(tmp_path: Path) -> None:
    files = {
        "Makefile": "test:\r\n\t! grep -q lockgate app.py\r\n",
        "app.py": "def a():\r\n    1\r\n",
    }
    shell = project(tmp_path, files)

    assert last(shell) == READY


def test_a_submodule_is_remarked_upon(tmp_path: Path) -> None:
    shell = project(tmp_path, TESTED)
    commit = shell.git("rev-parse", "HEAD").strip()
    shell.git("update-index", "--add", "--cacheinfo", f"160000,{commit},vendor/x")
    shell.git("commit", "--quiet", "--message", "Submodule")

    answer = shell.run("init")

    assert "note: submodules are not checked out where gates run: vendor/x" in answer.out


def test_an_unborn_head_gets_a_file_and_the_next_step(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.repo.mkdir()
    shell.git("init", "--quiet", "--initial-branch=main")
    for key, value in (("user.name", "Test"), ("user.email", "test@localhost")):
        shell.git("config", key, value)
    (shell.repo / "Makefile").write_text(MAKEFILE, encoding="utf-8")

    assert last(shell) == (
        "not ready: nothing was run, for nothing was committed yet."
        " Commit your files, then: lockgate init --force"
    )


def test_a_gitignore_that_ignores_every_hidden_file(tmp_path: Path) -> None:
    shell = project(tmp_path, {**TESTED, ".gitignore": ".*\n"})

    assert last(shell) == READY
