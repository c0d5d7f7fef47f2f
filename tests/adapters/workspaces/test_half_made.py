"""A kill between making a directory and giving it away must not leave it ours for ever."""

import os
from pathlib import Path

import pytest

from lockgate.adapters.sessions.prepare import AgentHome
from lockgate.adapters.workspaces.files import write_files

NOBODY = 65534

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")


def _owner(path: Path) -> int:
    return path.stat().st_uid


def test_a_home_that_was_made_but_not_given_away_is_given_away_by_the_next_start(tmp_path) -> None:
    home = tmp_path / "home"
    (home / ".config" / "agent").mkdir(parents=True)

    it = AgentHome(home, (NOBODY, NOBODY))
    it.make()
    it.write({".config/agent/settings.json": "{}"}, replace=True)

    made = (home, home / ".config", home / ".config" / "agent")
    assert [_owner(path) for path in made] == [NOBODY] * 3


def test_what_an_agent_has_made_stays_as_it_is(tmp_path) -> None:
    home = tmp_path / "home"
    it = AgentHome(home, (NOBODY, NOBODY))
    it.make()
    theirs = home / "theirs"
    theirs.mkdir()
    os.chown(theirs, 1234, 1234)

    it.write({"theirs/file": "x"}, replace=True)

    assert _owner(theirs) == 1234


def test_a_desk_that_was_made_but_not_given_away_is_given_away_too(tmp_path) -> None:
    desk = tmp_path / "desk"
    desk.mkdir()

    write_files(desk, {"TASK.md": "x"}, NOBODY, NOBODY)

    assert _owner(desk) == NOBODY
