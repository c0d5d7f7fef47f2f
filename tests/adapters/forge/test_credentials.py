"""With which login GitHub is asked, and that nobody else gets it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lockgate.adapters.forge import credentials
from lockgate.adapters.forge.credentials import NAME, github_login
from lockgate.adapters.sandbox import attempt, bubblewrap
from lockgate.adapters.sandbox.bubblewrap import Box
from lockgate.adapters.sessions import prepare
from lockgate.errors import Refused

LOGINS = frozenset({"GH_TOKEN", "GITHUB_TOKEN", "GH_CONFIG_DIR", NAME})


@pytest.fixture
def no_gh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


def test_what_was_stored_comes_first_then_the_variable():
    stored = github_login("github.com/o/r", "", lambda: {NAME: "stored"}, {NAME: "set"})
    named = github_login("github.com/o/r", "", dict, {NAME: "set"})

    assert (stored.token(), named.token()) == ("stored", "set")
    assert (stored.repository, stored.api) == ("o/r", "https://api.github.com/")


def test_gh_is_asked_where_nothing_else_is_there(tmp_path, monkeypatch):
    gh = tmp_path / "gh"
    gh.write_text('#!/bin/sh\n[ "$*" = "auth token --hostname ghe.corp" ] && echo gho_x\n')
    gh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    found = github_login("ghe.corp/o/r", "", dict, {})

    assert (found.token(), found.api) == ("gho_x", "https://ghe.corp/api/v3/")


@pytest.mark.usefixtures("no_gh")
def test_no_login_is_told_with_the_command():
    with pytest.raises(Refused, match="no login") as raised:
        github_login("github.com/o/r", "", dict, {}).token()

    assert "lockgate auth github" in raised.value.fix


def test_the_token_of_an_actions_job_is_refused():
    environ = {"GITHUB_ACTIONS": "true", "GITHUB_TOKEN": "ghs_x", NAME: "ghs_x"}

    with pytest.raises(Refused, match="starts no workflows"):
        github_login("github.com/o/r", "", dict, environ).token()


def test_another_server_and_another_repository_can_be_named():
    found = github_login("", "a/b", dict, {credentials.API: "http://127.0.0.1:1", NAME: "x"})

    assert (found.api, found.repository) == ("http://127.0.0.1:1/", "a/b")


def test_an_origin_that_is_no_forge_is_told():
    with pytest.raises(Refused, match="origin is no address"):
        github_login("", "", dict, {})


def test_no_gate_and_no_agent_gets_a_login(monkeypatch):
    for name in LOGINS:
        monkeypatch.setenv(name, "secret")
    start: Any = SimpleNamespace(launch=SimpleNamespace(env={}), interactive=False, home="/h")

    given = (
        attempt._environment("/place"),
        bubblewrap._environment(Box(mounts=(), directory="/", env={}), bubblewrap.host_now()),
        prepare._environment(start),
        prepare._bare_environment(start, Path("/door")),
    )

    for environment in given:
        assert "secret" not in environment.values()
        assert not LOGINS & environment.keys()
        assert environment["HOME"] != str(Path.home())  # gh's own files are not there
