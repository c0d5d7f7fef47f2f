"""`lockgate shell` with everything real: the workspace, the sandbox, a terminal."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockgate.core.model.task import Status, TaskId
from tests.e2e.orchestra import CONFIG, Orchestra, worker
from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.measured

S = Status
RULES = CONFIG.partition('[[gates.list]]\nname = "review"')[0]
SCRIPTS = {"asks": worker("{ hang = true }"), "fails": worker("{ crash = 3 }")}


@pytest.fixture(params=["auto", pytest.param("none", marks=pytest.mark.slow)])
def it(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Orchestra]:
    config = f'{RULES}[sandbox]\nlevel = "{request.param}"\n'
    made = Orchestra(tmp_path, config=config, scripts=SCRIPTS)
    made.environ["GIT_AUTHOR_NAME"] = "not handed on"
    made.up()
    yield made
    made.close()


@pytest.fixture
def enclosed(it: Orchestra) -> bool:
    return 'level = "auto"' in it.config


def stuck(it: Orchestra) -> TaskId:
    """A task that no agent works on; its workspace is there."""
    id = it.create("fails")
    it.wake()
    it.until_status(id, S.STUCK)
    return id


def test_a_person_works_in_a_tasks_workspace_and_hands_it_back(it, enclosed, request) -> None:
    id = stuck(it)

    shell = Terminal(it, "shell", id)
    request.addfinalizer(shell.close)
    shell.until(f'lockgate handback {id} -m "what was done"')
    shell.type("echo good > answer.txt; git add -A; git commit -qm 'By hand'; git log --oneline")
    shell.until(" By hand")
    shell.type("git status --short; tty; pwd; echo done-$((40 + 2)); exit 7")
    shell.until("done-42")
    code = shell.code()
    shown = it.lockgate("task", "list").stdout
    back = it.lockgate("handback", id, "-m", "by hand")
    it.wake()
    task = it.until_status(id, S.REVIEWING)

    assert code == 7
    where = "in its sandbox" if enclosed else "without a sandbox"
    assert f"the workspace of {id}, branch fails, {where}" in shell.said
    assert ("/work" in shell.said) or str(it.home / "workspaces" / id) in shell.said
    assert "not a tty" not in shell.said
    assert f"{id}  yours" in shown
    assert back.returncode == 0
    assert task.passed == ("tests",)
    it.until(lambda: it.settled(id))  # its branch is published
    branch = ("git", "-C", str(it.root), "log", "-1", "--format=%s", "fails", "--")
    subject = subprocess.run(branch, capture_output=True, text=True, check=True).stdout
    assert subject == "By hand\n"


def test_a_command_runs_without_a_terminal_and_gives_its_exit_code(it, enclosed) -> None:
    id = stuck(it)

    status = it.lockgate("shell", id, "--", "git", "status", "--short", "--branch")
    failed = it.lockgate("shell", id, "--", "sh", "-c", "echo $HOME; exit 9")
    none = it.lockgate("shell", id)
    missing = it.lockgate("shell", id, "--", "no-such-program")

    assert (status.returncode, status.stdout) == (0, "## fails\n"), status.stderr
    assert failed.returncode == 9
    assert str(it.place) != failed.stdout.strip(), "not the person's own HOME"
    assert none.returncode == 1
    assert f"lockgate shell {id} -- git status" in none.stderr
    assert missing.returncode != 0
    if enclosed:
        hidden = it.lockgate("shell", id, "--", "ls", str(it.home))
        assert hidden.returncode != 0, "the state of Lockgate is not shown"


def test_while_an_agent_works_a_person_only_looks(it, enclosed) -> None:
    id = it.create("asks")
    it.wake()
    it.until(lambda: any(it.app.sessions.started(s.id) for s in it.app.store.sessions(id)))

    refused = it.lockgate("shell", id, "--", "touch", "x")
    looked = it.lockgate("shell", id, "--read-only", "--", "git", "log", "--format=%s")
    wrote = it.lockgate("shell", id, "--read-only", "--", "touch", "x")

    assert refused.returncode == 1
    assert "its agent works in it" in refused.stderr
    assert f"lockgate shell {id} --read-only" in refused.stderr
    assert not it.task(id).taken_over
    if enclosed:
        assert (looked.returncode, looked.stdout) == (0, "one\n"), looked.stderr
        assert wrote.returncode != 0
        assert "Read-only file system" in wrote.stderr
    else:
        assert "nothing can be mounted read-only" in looked.stderr
        assert f"lockgate open {id}" in looked.stderr


def test_a_task_without_a_workspace_has_no_shell(it) -> None:
    id = it.create("fails", auto_start=False)

    refused = it.lockgate("shell", id, "--", "true")

    assert refused.returncode == 1
    assert "it is pending and has no workspace" in refused.stderr
