"""Landing on a branch of a remote: fetch to look, push with a lease to swap."""

from pathlib import Path

import pytest

from lockgate.adapters.train import GitYard
from lockgate.core.train.model import Built, Commit
from lockgate.errors import Unavailable
from lockgate.ports.train import Arrived, Elsewhere
from tests.adapters.train.sidings import Siding, told
from tests.adapters.workshop import asked, git


@pytest.fixture
def siding(tmp_path: Path) -> Siding:
    """The remote is `hub`; the user's own main stays where it was."""
    it = Siding.at(tmp_path)
    hub = hub_of(it)
    git(tmp_path, "clone", "--quiet", "--bare", str(it.root), str(hub))
    git(it.root, "remote", "add", "hub", "../the hüb.git")
    it.remote = "hub"
    return it


def hub_of(siding: Siding) -> Path:
    return siding.root.with_name("the hüb.git")


def at_hub(siding: Siding) -> str:
    return asked(hub_of(siding), "rev-parse", "refs/heads/main")


def somebody_pushes(siding: Siding, name: str = "theirs.txt", *, amend: bool = False) -> Commit:
    other = Siding(siding.root.with_name(f"other {name}"), siding.home)
    git(siding.home.parent, "clone", "--quiet", "-b", "main", str(hub_of(siding)), str(other.root))
    made = other.user_commits({name: "x\n"})
    if amend:
        git(other.root, "reset", "--quiet", "--soft", "HEAD~1")
        git(other.root, "commit", "--quiet", "--amend", "--message", "rewritten")
        made = Commit(told(other.root, "rev-parse", "HEAD"))
    git(other.root, "push", "--quiet", "--force", "origin", "main")
    return made


def ready(siding: Siding) -> tuple[Commit, Built]:
    was = siding.yard.tip(siding.target).commit
    return was, siding.built(siding.change("t1", {"c.txt": "c\n"}))


def test_the_remote_is_asked_for_the_tip(siding) -> None:
    first = siding.yard.tip(siding.target).commit
    pushed = somebody_pushes(siding)

    assert siding.yard.tip(siding.target).commit == pushed != first
    assert siding.yard.has(siding.target, pushed)
    assert siding.main == first
    rewritten = somebody_pushes(siding, "again", amend=True)
    assert siding.yard.tip(siding.target).commit == rewritten
    assert not siding.yard.has(siding.target, pushed)


def test_a_push_lands_and_leaves_the_user_s_branch_alone(siding) -> None:
    was, built = ready(siding)

    assert siding.yard.land(siding.target, was, built.commit) == Arrived()
    assert siding.yard.land(siding.target, was, built.commit) == Arrived()

    assert at_hub(siding) == built.commit
    assert siding.main == was
    assert siding.status() == ""
    assert siding.yard.tip(siding.target) == built


@pytest.mark.parametrize("amend", [False, True])
def test_a_remote_that_moved_is_left_where_it_is(siding, amend) -> None:
    was, built = ready(siding)
    pushed = somebody_pushes(siding, amend=amend)

    assert siding.yard.land(siding.target, was, built.commit) == Elsewhere()
    assert at_hub(siding) == pushed


def test_what_the_remote_declines_is_said_in_its_words(siding) -> None:
    was, built = ready(siding)
    hook = hub_of(siding) / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho not on a Friday >&2\nexit 1\n")
    hook.chmod(0o755)

    with pytest.raises(Unavailable, match=r"hook declined.*not on a Friday|not on.*declined"):
        siding.yard.land(siding.target, was, built.commit)
    assert at_hub(siding) == was


def test_the_user_s_push_hook_does_not_run(siding) -> None:
    was, built = ready(siding)
    hook = siding.root / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)

    assert siding.yard.land(siding.target, was, built.commit) == Arrived()


def test_a_branch_that_was_deleted_there_is_said(siding) -> None:
    was, built = ready(siding)
    git(hub_of(siding), "update-ref", "-d", "refs/heads/main")

    for act in (
        lambda: siding.yard.tip(siding.target),
        lambda: siding.yard.has(siding.target, was),
        lambda: siding.yard.land(siding.target, was, built.commit),
    ):
        with pytest.raises(Unavailable, match="remote hub has no branch main") as seen:
            act()
        assert "git push hub" in seen.value.fix


def test_a_remote_that_does_not_answer_is_said(siding) -> None:
    was, built = ready(siding)
    hub_of(siding).rename(hub_of(siding).with_name("away"))

    with pytest.raises(Unavailable, match="hub/main was not fetched"):
        siding.yard.tip(siding.target)
    with pytest.raises(Unavailable, match="hub/main was not"):
        siding.yard.land(siding.target, was, built.commit)


def test_what_the_user_configured_for_pushes_does_not_change_what_lands(siding) -> None:
    was, built = ready(siding)
    git(siding.root, "tag", "--annotate", "--message", "x", "v1", "main")
    git(siding.root, "config", "push.followTags", "true")
    git(siding.root, "config", "push.recurseSubmodules", "check")
    git(siding.root, "config", "remote.hub.tagOpt", "--tags")

    assert siding.yard.land(siding.target, was, built.commit) == Arrived()
    assert asked(hub_of(siding), "tag", "--list") == ""


def test_the_same_branch_here_and_there_are_two_targets(siding) -> None:
    _, there = ready(siding)
    siding.remote = ""

    siding.yard.prune(siding.target, ())

    siding.remote = "hub"
    assert GitYard(siding.home).tip(siding.target).commit == at_hub(siding)
    refs = asked(siding.repos.judge, "for-each-ref", "refs/lockgate/train/")
    assert there.commit in refs
