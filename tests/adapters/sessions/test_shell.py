"""A person's own program in a task's workspace: what it sees there, in the sandbox and without."""

import os
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.adapters.sandbox.bubblewrap import owner
from lockgate.adapters.sessions.prepare import shell_at
from lockgate.ports.work import Shell
from tests.adapters.gatehouse import NEEDS_BUBBLEWRAP


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    tmp_path.chmod(0o755)
    for name in ("workspace", "base.git", "state"):
        (tmp_path / name).mkdir()
        os.chown(tmp_path / name, *owner())
    (tmp_path / "workspace" / "file").write_text("work\n")
    (tmp_path / "state" / "key").write_text("secret\n")
    return Shell(
        argv=(),
        workspace=tmp_path / "workspace",
        home=tmp_path / "homes" / "t-1",
        base=tmp_path / "base.git",
    )


def runs(it: Shell, script: str) -> subprocess.CompletedProcess[str]:
    state = it.workspace.with_name("state")
    made = shell_at(state, replace(it, argv=("/bin/sh", "-c", script)))
    return subprocess.run(
        made.argv,
        env=dict(made.env),
        cwd=made.directory,
        close_fds=False,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@NEEDS_BUBBLEWRAP
def test_in_the_sandbox_it_sees_the_workspace_and_not_the_state(shell) -> None:
    key = shell.workspace.with_name("state") / "key"

    done = runs(shell, f'cat file; echo "$HOME $IS_SANDBOX"; echo x > new; cat "{key}"')

    assert done.stdout.splitlines()[0] == "work"
    assert done.stdout.splitlines()[1].endswith(" 1")
    assert str(shell.home) not in done.stdout
    assert "secret" not in done.stdout
    assert (shell.workspace / "new").read_text() == "x\n"


@NEEDS_BUBBLEWRAP
def test_a_person_who_only_looks_changes_nothing(shell) -> None:
    done = runs(replace(shell, read_only=True), "echo x > new")

    assert done.returncode != 0
    assert "Read-only file system" in done.stderr
    assert not (shell.workspace / "new").exists()


def test_without_a_sandbox_it_has_the_tasks_home_and_nothing_of_the_persons(
    shell, monkeypatch
) -> None:
    monkeypatch.setenv("GIT_AUTHOR_NAME", "ann")

    done = runs(replace(shell, sandboxed=False), 'pwd; echo "$HOME $TERM [$GIT_AUTHOR_NAME]"')

    term = os.environ.get("TERM") or "dumb"
    assert done.stdout == f"{shell.workspace}\n{shell.home} {term} []\n", done.stderr
    assert shell.home.is_dir()


@pytest.mark.parametrize(
    ("own", "started"),
    [("/bin/sh", "/bin/sh"), ("/home/ann/bin/fish", "/bin/bash"), ("/bin/no-such", "/bin/bash")],
)
def test_the_persons_own_shell_is_started_where_a_sandbox_shows_it(
    shell, monkeypatch, own, started
) -> None:
    monkeypatch.setenv("SHELL", own)
    if not os.access(started, os.X_OK):
        pytest.skip(f"needs {started}")

    made = shell_at(shell.workspace.with_name("state"), replace(shell, sandboxed=False))

    assert made.argv == (started,)
