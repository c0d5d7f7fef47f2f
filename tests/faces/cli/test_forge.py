"""`lockgate forge`, `pr`, `issue` and `auth github`, against the test server."""

import json
import os
import shutil
from pathlib import Path

import pytest

from lockgate.adapters.store.pulls import SqlPulls
from lockgate.core.forge.model import Pull
from lockgate.core.model.task import TaskId
from tests.faces.cli.test_agents import asked
from tests.faces.shell import CONFIG, Shell
from tests.forge.conftest import hub
from tests.forge.hub import TOKEN, Hub
from tests.scenarios.world import git

pytestmark = pytest.mark.measured

__all__ = ["hub"]
MORE = """
[merge]
target = "pull_request"
[forge]
repo = "octo/demo"
[forge.intake]
label = "lockgate"
"""


class ForgeShell(Shell):
    """A shell that finds the test server in GitHub's place."""

    api = ""

    def environment(self, token: str | None = None, **more: str) -> dict[str, str]:
        return super().environment(token, **more) | {"LOCKGATE_GITHUB_API": self.api}


@pytest.fixture
def shell(tmp_path: Path, bare_of_config: Path, hub: Hub) -> ForgeShell:
    it = ForgeShell(tmp_path / "shell")
    it.api = hub.url
    shutil.copytree(bare_of_config, it.repo)
    (it.repo / ".lockgate").mkdir(exist_ok=True)
    (it.repo / ".lockgate" / "config.toml").write_text(CONFIG + MORE)
    git(it.repo, "add", "--all")
    git(it.repo, "commit", "--quiet", "--message", "config")
    it.agree()
    return it


def logged_in(shell: Shell) -> Shell:
    done = shell.program("auth", "github", "--token-stdin", stdin=TOKEN.encode())
    assert done.code == 0, done
    assert TOKEN not in done.out + done.err
    return shell


def test_a_check_shows_what_the_login_may_and_the_target_asks_for(shell):
    logged_in(shell)

    text = shell.did("forge", "check")
    facts = json.loads(shell.did("forge", "check", "--json"))

    assert "login                     @lockgate[bot] (app)" in text
    assert "warning: what lands may differ from what was tested" in text
    assert (facts["checks"], facts["approvals"]) == (["build"], 1)


def test_without_a_login_the_command_for_it_is_told(shell, monkeypatch, tmp_path):
    gh = tmp_path / "gh"
    gh.write_text("#!/bin/sh\nexit 1\n")
    gh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    assert "lockgate auth github" in shell.run("forge", "check").why


def test_a_login_is_stored_shown_and_forgotten(shell):
    assert "no login" in shell.did("auth", "github", "--show")
    logged_in(shell)
    assert "is stored" in shell.did("auth", "github", "--show")
    assert "removed" in shell.did("auth", "github", "--forget")
    assert "no login at GitHub was stored" in shell.did("auth", "github", "--forget")


def test_an_app_is_stored_with_its_key(shell, tmp_path):
    key = tmp_path / "app.pem"
    key.write_text("no key")
    assert "has no private key" in shell.run("auth", "github", "--app", "7", "--key", str(key)).why
    assert "github needs both" in shell.run("auth", "github", "--app", "7").why
    unread = {"gone.pem": "there is no file", ".": "cannot be read: Is a dir", "odd": "is no text"}
    (tmp_path / "odd").write_bytes(b"\xff\xfe")
    for name, why in unread.items():
        said = shell.run("auth", "github", "--app", "7", "--key", str(tmp_path / name)).why
        assert why in said
        assert "Errno" not in said
    key.write_text("-----BEGIN RSA PRIVATE KEY-----\nx\n-----END RSA PRIVATE KEY-----\n")

    said = shell.did("auth", "github", "--app", "7", "--key", str(key))

    assert "stored in" in said
    assert "BEGIN" not in said
    assert "is stored" in shell.did("auth", "github", "--show")


def test_issues_are_listed_and_taken(shell, hub):
    logged_in(shell)
    assert "no issue has the label" in shell.did("issue", "list")
    hub.people.writes_issue("maria", "Answer it", label="lockgate")

    assert "#1 Answer it: becomes a task" in shell.did("issue", "list")
    shell.did("issue", "take")
    [row] = json.loads(shell.did("issue", "list", "--json"))["issues"]
    assert row["state"].startswith("task issue-1")


def test_a_pull_request_is_shown_by_itself_and_with_its_task(shell):
    id = shell.create()
    assert "has no pull request" in shell.run("pr", "show", id).why
    app = shell.app()
    pull = Pull(
        task=TaskId(id),
        project=app.store.load(TaskId(id)).project,
        number=12,
        url="https://github.com/octo/demo/pull/12",
        branch=f"lockgate/{id}",
        pushed="a" * 40,
        ci="running: build",
        issue="github.com/octo/demo#5",
    )
    SqlPulls(app.store.database).put(pull)
    app.store.close()

    assert "pull request #12 CI running: build" in shell.did("pr", "show", id)
    assert json.loads(shell.did("pr", "show", id, "--json"))["issue"] == pull.issue
    assert "#12 CI running: build https://github.com" in shell.did("task", "show", id)
    assert "pull request #12" in shell.did("task", "why", id)
    assert "pull request #12: CI running: build https://" in shell.did("task", "list")
    [row] = json.loads(shell.did("task", "list", "--json"))["rows"]
    assert (row["pull"]["number"], row["pull"]["ci"]) == (12, "running: build")


def test_a_look_needs_an_orchestrator(shell):
    assert "no orchestrator runs" in shell.run("forge", "sync").why


def test_a_look_is_asked_of_the_orchestrator_itself(shell):
    """It once ran in a process of its own, whose hints nobody reads."""
    app = shell.app()

    looked = asked(app, shell.repo, "forge", "sync", "--hint")
    listens = asked(app, shell.repo, "forge", "listen", "--secret-stdin")
    app.store.close()

    assert "no orchestrator runs" in looked.err
    assert "not served here" in listens.err


def test_a_listener_needs_a_secret(shell):
    done = shell.program("forge", "listen", "--secret-stdin", stdin=b"\n")

    assert done.code == 1
    assert "the secret is empty" in done.err


@pytest.fixture
def fresh(tmp_path: Path, bare_of_config: Path, hub: Hub) -> ForgeShell:
    """A repository that is not set up, of a base branch that takes no push."""
    it = ForgeShell(tmp_path / "fresh")
    it.api = hub.url
    shutil.copytree(bare_of_config, it.repo)
    git(it.repo, "remote", "add", "origin", "https://github.com/octo/demo.git")
    logged_in(it)
    return it


INIT = ("init", "--test-command", "true", "--baseline", "0", "--no-commit")


def test_init_writes_the_setting_where_the_base_takes_no_push_and_the_user_says_yes(fresh):
    fresh.did(*INIT, "--yes")

    assert 'target = "pull_request"' in (fresh.repo / ".lockgate" / "config.toml").read_text()


def test_init_only_advises_where_nobody_is_asked(fresh):
    done = fresh.run(*INIT)

    assert 'set [merge] target = "pull_request"' in done.err
    assert "pull_request" not in (fresh.repo / ".lockgate" / "config.toml").read_text()
