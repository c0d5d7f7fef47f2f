"""A hub that is tried by `fleet check`, with hubs that lack something."""

import hashlib
import os
from pathlib import Path

import pytest

from lockgate.adapters.hub import GitTrial
from lockgate.core.hub import Tried, judged
from tests.adapters.hub.hosts import Fleet, config
from tests.adapters.workshop import git


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def digest(place: Path) -> str:
    return hashlib.sha256((place / "config").read_bytes()).hexdigest()


def test_a_hub_that_will_do_is_left_as_it_was(fleet) -> None:
    before = digest(fleet.hub)

    assert GitTrial().tried(fleet.url) == Tried(branches=1)

    assert fleet.refs("refs") == ["refs/heads/main"]
    assert digest(fleet.hub) == before


def test_a_hub_of_longer_names_and_one_without_a_branch_are_tried_too(tmp_path) -> None:
    long = ("--object-format=sha256", "--initial-branch=main")
    for name, more in (("empty.git", ()), ("long.git", long)):
        git(tmp_path, "init", "--quiet", "--bare", *more, str(tmp_path / name))
    work = tmp_path / "work"
    git(tmp_path, "init", "--quiet", *long, str(work))
    git(work, "commit", "--quiet", "--allow-empty", "--message", "one")
    git(work, "push", "--quiet", str(tmp_path / "long.git"), "HEAD:main")

    assert GitTrial().tried(str(tmp_path / "empty.git")) == Tried(branches=0)
    assert GitTrial().tried(str(tmp_path / "long.git")) == Tried(branches=1)


LACKS = {
    "no atomic push": (("receive.advertiseAtomic", "false"), "atomic"),
    "refs that are hidden": (("transfer.hideRefs", "refs/lockgate"), "hidden"),
    "refs that are not shown": (("uploadpack.hideRefs", "refs/lockgate"), "is not shown there"),
}


@pytest.mark.parametrize("lacks", LACKS)
def test_what_a_hub_does_not_do_is_told_in_its_own_words(fleet, lacks) -> None:
    setting, words = LACKS[lacks]
    config(fleet.hub, *setting)

    tried = GitTrial().tried(fleet.url)

    assert words in tried.pushed
    assert not all(it.ok for it in judged(fleet.url, tried, fenced=True))


def test_a_hub_that_deletes_nothing_is_told(fleet) -> None:
    hook = fleet.hub / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ncase $3 in *[!0]*) ;; *) echo no deletions; exit 1;; esac\n")
    hook.chmod(0o755)

    tried = GitTrial().tried(fleet.url)

    assert "no deletions" in tried.removed
    assert (tried.pushed, tried.refused) == ("", True)


def test_a_hub_that_is_not_there_is_told(fleet) -> None:
    fleet.goes_away()

    tried = GitTrial().tried(fleet.url)

    assert "does not appear to be a git repository" in tried.read
    assert "Please" not in tried.read


def test_why_ssh_was_refused_is_told(tmp_path, monkeypatch) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\necho 'git@hub.test: Permission denied (publickey).' >&2\nexit 255\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    tried = GitTrial().tried("ssh://git@hub.test/hub.git")

    denied = "git@hub.test: Permission denied (publickey)."
    assert tried.read == f"{denied}; fatal: Could not read from remote repository."
