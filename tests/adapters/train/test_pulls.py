"""Git's side of a pull request, on real repositories: what is pushed, and what never is."""

from pathlib import Path

import pytest

from lockgate.adapters.train import GitPullYard
from lockgate.core.forge.model import Relation
from lockgate.core.train.model import Built, Commit
from lockgate.errors import Unavailable
from lockgate.ports.forge import OfferedCommit, Overwrites, Pushed, Refused
from lockgate.ports.train import InTheWay
from tests.adapters.train.sidings import Siding, told
from tests.adapters.train.test_remote import hub_of, siding
from tests.adapters.workshop import asked, git

__all__ = ["siding"]
BRANCH = "lockgate/t1"


@pytest.fixture
def yard(siding) -> GitPullYard:
    return GitPullYard(siding.home)


def offered(siding: Siding, yard: GitPullYard, built: Built, *parents: Commit) -> Commit:
    it = OfferedCommit(tree=built.tree, parents=parents, message="Fix it", like=built.commit)
    return yard.compose(siding.target, it)


def first_push(siding: Siding, yard: GitPullYard) -> tuple[Commit, Commit]:
    tip = siding.yard.tip(siding.target).commit
    built = siding.built(siding.change("t1", {"secret.txt": "s\n"}, {"secret.txt": None, "c": "1"}))
    commit = offered(siding, yard, built, tip)
    assert yard.push_branch(siding.target, BRANCH, commit, None) == Pushed()
    return tip, commit


def at_hub(siding: Siding, branch: str = BRANCH) -> str:
    return asked(hub_of(siding), "rev-parse", f"refs/heads/{branch}")


def somebody(siding: Siding) -> Path:
    other = siding.root.with_name("somebody")
    git(siding.home.parent, "clone", "--quiet", "-b", BRANCH, str(hub_of(siding)), str(other))
    return other


def pushes_on_top(siding: Siding, *argv: str) -> Commit:
    other = somebody(siding)
    (other / "theirs").write_text("x")
    git(other, "add", "theirs")
    git(other, "commit", "--quiet", "--message", "theirs", *argv)
    git(other, "push", "--quiet", "--force", "origin", BRANCH)
    return Commit(told(other, "rev-parse", "HEAD"))


def test_what_is_pushed_is_one_commit_with_the_judged_tree_and_none_of_the_agents_history(
    siding, yard
):
    tip, commit = first_push(siding, yard)

    assert at_hub(siding) == commit
    assert asked(hub_of(siding), "rev-list", "--count", f"{tip}..{commit}") == "1"
    assert "secret.txt" not in asked(hub_of(siding), "log", "--name-only", f"{tip}..{commit}")


def test_the_same_facts_give_the_same_commit(siding, yard):
    tip = siding.yard.tip(siding.target).commit
    built = siding.built(siding.change("t1", {"c": "1"}))

    assert offered(siding, yard, built, tip) == offered(siding, yard, built, tip)


def test_a_commit_that_would_change_nothing_is_not_made(siding, yard):
    tip = siding.yard.tip(siding.target)

    assert offered(siding, yard, tip, tip.commit) == tip.commit


def test_a_second_push_goes_on_top(siding, yard):
    _, first = first_push(siding, yard)
    built = siding.built(siding.change("t1", {"c": "2"}))
    second = offered(siding, yard, built, first)

    assert yard.push_branch(siding.target, BRANCH, second, first) == Pushed()
    assert asked(hub_of(siding), "rev-parse", f"{second}^") == first
    assert yard.push_branch(siding.target, BRANCH, second, first) == Pushed()


def test_a_persons_push_is_never_overwritten(siding, yard):
    _, first = first_push(siding, yard)
    theirs = pushes_on_top(siding)
    built = siding.built(siding.change("t1", {"c": "2"}))

    found = yard.push_branch(siding.target, BRANCH, offered(siding, yard, built, first), first)

    assert found == Overwrites()
    assert at_hub(siding) == theirs


def test_a_branch_that_exists_is_not_taken_for_a_first_push(siding, yard):
    first_push(siding, yard)
    built = siding.built(siding.change("t1", {"c": "2"}))
    other = offered(siding, yard, built, siding.yard.tip(siding.target).commit)

    assert yard.push_branch(siding.target, BRANCH, other, None) == Overwrites()


@pytest.mark.parametrize("code", ["GH006", "GH013"])
def test_what_a_remote_refuses_is_told_in_its_words(siding, yard, code):
    hook = hub_of(siding) / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\necho 'error: {code}: no' >&2\nexit 1\n")
    hook.chmod(0o755)
    tip = siding.yard.tip(siding.target).commit
    built = siding.built(siding.change("t1", {"c": "1"}))

    found = yard.push_branch(siding.target, BRANCH, offered(siding, yard, built, tip), None)

    assert isinstance(found, Refused)
    assert code in found.why
    landed = siding.yard.land(siding.target, tip, built.commit)
    assert isinstance(landed, InTheWay)
    assert landed.why == 'main takes pull requests only: set [merge] target = "pull_request"'


def test_how_a_head_stands_to_what_was_pushed(siding, yard):
    _, first = first_push(siding, yard)
    target = siding.target

    assert yard.relation(target, first, first) is Relation.SAME
    assert yard.relation(target, first, Commit("e" * 40)) is Relation.UNKNOWN
    theirs = pushes_on_top(siding)
    assert yard.branch_at(target, BRANCH) == theirs
    assert yard.relation(target, first, theirs) is Relation.AHEAD
    assert yard.relation(target, theirs, first) is Relation.BEHIND


def test_a_head_that_was_rewritten_is_known_as_such(siding, yard):
    _, first = first_push(siding, yard)
    theirs = pushes_on_top(siding, "--amend")

    assert yard.branch_at(siding.target, BRANCH) == theirs
    assert yard.relation(siding.target, first, theirs) is Relation.REWRITTEN


def test_a_head_has_a_commit_of_the_target_that_it_is_built_on(siding, yard):
    tip, first = first_push(siding, yard)

    assert yard.fork(siding.target, first) == tip
    assert yard.fork(siding.target, Commit("e" * 40)) is None


def test_a_persons_commit_comes_to_where_gates_find_it(siding, yard):
    _, first = first_push(siding, yard)
    theirs = pushes_on_top(siding)
    yard.branch_at(siding.target, BRANCH)

    yard.bring(siding.target, BRANCH, theirs)

    assert yard.contains(siding.target, theirs, first)
    assert not yard.contains(siding.target, first, theirs)
    with pytest.raises(Unavailable, match="was not taken"):
        yard.bring(siding.target, BRANCH, Commit("e" * 40))


def test_a_commit_of_the_forges_queue_comes_to_where_gates_find_it(siding, yard):
    first_push(siding, yard)
    theirs = pushes_on_top(siding)

    assert yard.tree_of(siding.target, theirs) == asked(
        hub_of(siding), "rev-parse", f"{theirs}^{{tree}}"
    )
    assert yard.contains(siding.target, theirs, theirs)
    assert yard.tree_of(siding.target, Commit("e" * 40)) is None


def test_a_branch_is_deleted_only_where_it_is_ours(siding, yard):
    _, first = first_push(siding, yard)
    theirs = pushes_on_top(siding)

    assert not yard.delete_branch(siding.target, BRANCH, first)
    assert at_hub(siding) == theirs
    assert yard.delete_branch(siding.target, BRANCH, theirs)
    assert yard.branch_at(siding.target, BRANCH) is None


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_a_merge_of_any_kind_is_recognised_by_what_is_in_the_target(siding, yard, how):
    _, first = first_push(siding, yard)
    merge = merged_by(siding, how)

    found = yard.merged(siding.target, merge, first)

    assert found is not None
    assert found.whole
    assert found.tree == asked(hub_of(siding), "rev-parse", "main^{tree}")


def test_a_merge_that_lost_a_line_is_not_whole(siding, yard):
    _, first = first_push(siding, yard)
    merge = merged_by(siding, "squash", {"c": "another"})

    found = yard.merged(siding.target, merge, first)

    assert found is not None
    assert not found.whole


def test_a_merge_that_is_not_in_the_target_is_none(siding, yard):
    _, first = first_push(siding, yard)

    assert yard.merged(siding.target, first, first) is None


def test_a_remote_that_does_not_answer_is_told(siding, yard):
    siding.yard.tip(siding.target)
    git(siding.root, "remote", "set-url", "hub", "../gone.git")

    with pytest.raises(Unavailable, match="was not fetched"):
        yard.branch_at(siding.target, BRANCH)


def merged_by(siding: Siding, how: str, edits: dict[str, str] | None = None) -> Commit:
    other = somebody(siding)
    git(other, "checkout", "--quiet", "main")
    (other / "main.txt").write_text("more")
    git(other, "add", "main.txt")
    git(other, "commit", "--quiet", "--message", "main goes on")
    if how == "rebase":
        git(other, "cherry-pick", BRANCH)
    else:
        flag = "--squash" if how == "squash" else "--no-ff"
        git(other, "merge", "--quiet", flag, "--no-commit", BRANCH)
        for name, text in (edits or {}).items():
            (other / name).write_text(text)
            git(other, "add", name)
        git(other, "commit", "--quiet", "--message", "merged")
    git(other, "push", "--quiet", "origin", "main")
    return Commit(told(other, "rev-parse", "HEAD"))
