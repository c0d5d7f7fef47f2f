"""Landing on a branch of the user's repository: compare-and-swap, with and without a checkout."""

import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from lockgate.adapters.train import GitYard
from lockgate.core.train.model import Built, Commit
from lockgate.errors import Overtaken, Refused, Unavailable
from lockgate.ports.train import Arrived, Elsewhere, InTheWay, Leave
from tests.adapters.train.sidings import Siding, told, write
from tests.adapters.workshop import asked, git

ARRIVED, ELSEWHERE = Arrived(), Elsewhere()
CHANGED = {"a.txt": "one\ntwo\nTHREE\n", "new/c.txt": "c\n", "b.txt": None}


@pytest.fixture
def siding(tmp_path: Path) -> Siding:
    return Siding.at(tmp_path)


@pytest.fixture
def seated(siding: Siding) -> Siding:
    """The user has main checked out."""
    git(siding.root, "checkout", "--quiet", "main")
    return siding


def ready(siding: Siding) -> Built:
    return siding.built(siding.change("t1", CHANGED))


def land(siding: Siding, built: Built) -> Arrived | Elsewhere | InTheWay:
    return siding.yard.land(siding.target, siding.yard.tip(siding.target).commit, built.commit)


# --- checked out nowhere ------------------------------------------------------------------------


def test_a_branch_that_nobody_shows_is_moved_and_nothing_else_is(siding) -> None:
    built = ready(siding)
    write(siding.root, {"a.txt": "being edited\n"})

    assert land(siding, built) == ARRIVED

    assert siding.main == built.commit
    assert siding.yard.tip(siding.target) == built
    assert siding.yard.has(siding.target, built.commit)
    assert siding.status() == " M a.txt"
    log = told(siding.root, "reflog", "-1", "--format=%gs by %gn", "main")
    assert log == f"lockgate: landed {built.commit[:12]} by Lockgate"
    assert told(siding.root, "fsck", "--strict", "--connectivity-only") == ""


def test_what_has_landed_can_be_fetched_by_agents_once_it_is_lent(siding) -> None:
    built = ready(siding)
    assert land(siding, built) == ARRIVED

    siding.yard.lend(siding.target, built.commit)
    siding.yard.lend(siding.target, built.commit)

    assert asked(siding.repos.base, "rev-parse", "refs/heads/main") == built.commit


def test_a_commit_that_is_not_there_is_not_lent(siding) -> None:
    siding.yard.tip(siding.target)

    with pytest.raises(Unavailable, match="was not shown to agents"):
        siding.yard.lend(siding.target, Commit("1" * 40))


def test_an_orchestrator_that_was_overtaken_leaves_the_branch_where_it_is(siding) -> None:
    was, built = siding.main, ready(siding)

    def overtaken() -> None:
        raise Overtaken

    with pytest.raises(Overtaken):
        siding.yard.land(siding.target, was, built.commit, Leave(1, 1, overtaken))

    assert siding.main == was
    assert siding.yard.land(siding.target, was, built.commit) == ARRIVED


def test_whoever_takes_over_looks_only_when_the_one_before_has_moved_the_branch(siding) -> None:
    """The last look at the epoch and the move are made under one lock, which is waited for."""
    was, built = siding.main, ready(siding)
    shut_out, order = threading.Event(), list[str]()

    def takes_over() -> None:
        GitYard(siding.home).shut_out(siding.target, Leave(2))
        order.append("shut out")
        shut_out.set()

    newer = threading.Thread(target=takes_over)

    def looks() -> None:
        newer.start()
        assert not shut_out.wait(0.5)
        order.append("looked")

    assert siding.yard.land(siding.target, was, built.commit, Leave(1, 1, looks)) == ARRIVED
    newer.join(10)

    assert order == ["looked", "shut out"]
    assert siding.main == built.commit


def test_a_landing_that_is_repeated_has_arrived(siding) -> None:
    built, was = ready(siding), siding.main

    assert siding.yard.land(siding.target, was, built.commit) == ARRIVED
    assert siding.yard.land(siding.target, was, built.commit) == ARRIVED


@pytest.mark.parametrize("shows", ["desk", "main"])
def test_a_target_that_moved_is_left_where_it_is(siding, shows) -> None:
    git(siding.root, "checkout", "--quiet", shows)
    built, was = ready(siding), siding.main
    moved = siding.user_pushes_main({"d.txt": "d\n"})

    assert siding.yard.land(siding.target, was, built.commit) == ELSEWHERE
    assert siding.main == moved
    assert siding.status() == ""


@pytest.mark.parametrize("shows", ["desk", "main"])
def test_a_target_that_was_rewritten_is_left_where_it_is(siding, shows) -> None:
    git(siding.root, "checkout", "--quiet", "main")
    built, was = ready(siding), siding.main
    git(siding.root, "commit", "--quiet", "--amend", "--message", "rewritten")
    moved = siding.main
    git(siding.root, "checkout", "--quiet", shows)

    assert siding.yard.land(siding.target, was, built.commit) == ELSEWHERE
    assert siding.main == moved


def test_nothing_lands_that_does_not_contain_what_is_there(siding) -> None:
    start = siding.main
    stray = siding.built(siding.change("t1", {"c.txt": "c\n"}))
    moved = siding.user_pushes_main({"d.txt": "d\n"})

    with pytest.raises(Refused, match="does not contain"):
        siding.yard.land(siding.target, moved, stray.commit)
    with pytest.raises(Refused, match="does not contain"):
        GitYard(siding.home).land(siding.target, moved, start)
    assert siding.main == moved


def test_a_candidate_on_a_candidate_lands_at_once(siding) -> None:
    start = siding.main
    one = siding.built(siding.change("t1", {"c.txt": "c\n"}))
    two = siding.built(siding.change("t2", {"d.txt": "d\n"}), onto=one.commit)

    assert siding.yard.land(siding.target, start, two.commit) == ARRIVED
    assert siding.yard.has(siding.target, one.commit)


def test_a_deleted_target_is_not_made_again(siding) -> None:
    built, was = ready(siding), siding.main
    git(siding.root, "branch", "-D", "main")

    with pytest.raises(Unavailable, match="has no branch main"):
        siding.yard.land(siding.target, was, built.commit)
    assert told(siding.root, "branch", "--list", "main") == ""


def test_a_lock_on_the_branch_is_git_s_own_words(siding) -> None:
    built, was = ready(siding), siding.main
    lock = siding.root / ".git" / "refs" / "heads" / "main.lock"
    lock.touch()

    with pytest.raises(Unavailable, match=r"main\.lock"):
        siding.yard.land(siding.target, was, built.commit)
    lock.unlink()
    assert siding.yard.land(siding.target, was, built.commit) == ARRIVED


@pytest.mark.parametrize("shows", ["desk", "main"])
def test_of_two_that_land_at_once_one_arrives(siding, shows) -> None:
    git(siding.root, "checkout", "--quiet", shows)
    one, two = (siding.built(siding.change(it, {f"{it}.txt": "x\n"})) for it in ("t1", "t2"))
    was, target, found = siding.main, siding.target, list[object]()

    def lands(built: Built) -> None:
        found.append(GitYard(siding.home).land(target, was, built.commit))

    threads = [threading.Thread(target=lands, args=(it,)) for it in (one, two)]
    for it in threads:
        it.start()
    for it in threads:
        it.join()

    assert sorted(map(str, found)) == ["Arrived()", "Elsewhere()"]
    assert siding.main in {one.commit, two.commit}
    assert siding.status() == ""


def test_a_lock_of_ours_whose_owner_died_holds_nobody_up(siding) -> None:
    built = ready(siding)
    (siding.root / ".git" / "lockgate-landing").touch()

    assert land(siding, built) == ARRIVED
    assert not (siding.root / ".git" / "lockgate-landing").exists()


def test_a_repository_that_cannot_be_locked_is_said(siding) -> None:
    built, was = ready(siding), siding.main
    (siding.root / ".git" / "lockgate-landing").mkdir()

    with pytest.raises(Unavailable, match="was not changed"):
        siding.yard.land(siding.target, was, built.commit)
    assert siding.main == was


# --- checked out --------------------------------------------------------------------------------


def test_a_checkout_of_the_branch_follows_and_keeps_unrelated_edits(seated) -> None:
    seated.user_commits({"d.txt": "d\n", "e.txt": "e\n"})
    built = ready(seated)
    write(seated.root, {"d.txt": "edited\n", "e.txt": "staged\n", "untracked": "u\n"})
    git(seated.root, "add", "e.txt")

    assert land(seated, built) == ARRIVED

    assert seated.main == built.commit
    assert seated.status() == " M d.txt\nM  e.txt\n?? untracked"
    assert (seated.root / "new" / "c.txt").read_text() == "c\n"
    assert (seated.root / "d.txt").read_text() == "edited\n"
    assert not (seated.root / "b.txt").exists()
    log = told(seated.root, "reflog", "-1", "--format=%gs", "HEAD")
    assert log == "lockgate: landed: Fast-forward"


def test_a_linked_work_tree_follows_too(siding) -> None:
    linked = siding.root.with_name("linked ü")
    git(siding.root, "worktree", "add", "--quiet", str(linked), "main")
    built = ready(siding)
    write(linked, {"unrelated": "u\n"})

    assert land(siding, built) == ARRIVED

    assert siding.main == built.commit
    assert siding.status(linked) == "?? unrelated"
    assert siding.status() == ""


def test_edited_staged_and_untracked_files_in_the_way_are_named(seated) -> None:
    built, was = ready(seated), seated.main
    write(seated.root, {"a.txt": "edited\n", "b.txt": "staged\n", "new/c.txt": "untracked\n"})
    git(seated.root, "add", "b.txt")
    before = seated.status()

    found = seated.yard.land(seated.target, was, built.commit)

    assert isinstance(found, InTheWay)
    assert set(found.files) == {"a.txt", "b.txt", "new/c.txt"}
    assert str(seated.root) in found.why
    assert (seated.main, seated.status()) == (was, before)
    assert (seated.root / "new" / "c.txt").read_text() == "untracked\n"


def test_an_ignored_file_in_the_way_is_not_overwritten(seated) -> None:
    seated.user_commits({".gitignore": "/new/\n"})
    built, was = ready(seated), seated.main
    write(seated.root, {"new/c.txt": "a secret\n"})

    found = seated.yard.land(seated.target, was, built.commit)

    assert isinstance(found, InTheWay)
    assert found.files == ("new/c.txt",)
    assert (seated.root / "new" / "c.txt").read_text() == "a secret\n"
    assert seated.main == was


def test_what_is_already_what_lands_is_not_in_the_way(seated) -> None:
    """As after a fast-forward that was killed while it wrote the files."""
    built = ready(seated)
    write(seated.root, CHANGED)

    assert land(seated, built) == ARRIVED
    assert (seated.main, seated.status()) == (built.commit, "")


def test_an_index_that_is_already_what_lands_is_not_in_the_way(seated) -> None:
    """As after a fast-forward that was killed before it moved the branch."""
    built = ready(seated)
    write(seated.root, CHANGED)
    git(seated.root, "add", "--all")

    assert land(seated, built) == ARRIVED
    assert (seated.main, seated.status()) == (built.commit, "")


def test_an_edit_beside_what_already_landed_is_not_lost(seated) -> None:
    built, was = ready(seated), seated.main
    write(seated.root, {**CHANGED, "new/c.txt": "mine\n"})
    before = seated.status()

    found = seated.yard.land(seated.target, was, built.commit)

    assert isinstance(found, InTheWay)
    assert "new/c.txt" in found.files
    assert (seated.main, seated.status()) == (was, before)


def test_a_link_in_place_of_a_file_is_in_the_way(seated) -> None:
    built, was = ready(seated), seated.main
    (seated.root / "a.txt").unlink()
    (seated.root / "a.txt").symlink_to("b.txt")

    found = seated.yard.land(seated.target, was, built.commit)

    assert isinstance(found, InTheWay)
    assert found.files == ("a.txt",)


def test_an_index_lock_is_left_alone_and_named(seated) -> None:
    built, was = ready(seated), seated.main
    lock = seated.root / ".git" / "index.lock"
    lock.touch()

    found = seated.yard.land(seated.target, was, built.commit)

    assert isinstance(found, InTheWay)
    assert str(lock) in found.why
    assert lock.exists()
    lock.unlink()
    assert seated.yard.land(seated.target, was, built.commit) == ARRIVED


UNDER_WAY = {
    "a merge": ("merge", "other"),
    "a cherry-pick": ("cherry-pick", "other"),
    "a revert": ("revert", "--no-edit", "HEAD~1"),
    "bisect": ("bisect", "start", "HEAD", "HEAD~2"),
    "rebase": ("rebase", "other"),
    "bisected": ("bisect", "start"),
}


@pytest.mark.parametrize("work", UNDER_WAY)
def test_work_of_the_user_that_is_under_way_is_in_the_way(seated, work) -> None:
    seated.user_commits({"z.txt": "1\n"})
    seated.user_commits({"z.txt": "2\n"})
    git(seated.root, "checkout", "--quiet", "-b", "other", "HEAD~1")
    seated.user_commits({"z.txt": "other\n"})
    git(seated.root, "checkout", "--quiet", "main")
    seated.user_commits({"z.txt": "3\n"})
    built, was = ready(seated), seated.main
    _tried(seated.root, *UNDER_WAY[work])

    found = seated.yard.land(seated.target, was, built.commit)

    assert isinstance(found, InTheWay)
    assert work in found.why
    assert seated.main == was


def test_a_detached_head_is_nobody_s_checkout(seated) -> None:
    built = ready(seated)
    git(seated.root, "checkout", "--quiet", "--detach")

    assert land(seated, built) == ARRIVED
    assert seated.status() == ""


def test_a_work_tree_that_is_gone_holds_nobody_up(siding) -> None:
    linked = siding.root.with_name("linked")
    git(siding.root, "worktree", "add", "--quiet", str(linked), "main")
    built = ready(siding)
    linked.rename(siding.root.with_name("elsewhere"))

    assert land(siding, built) == ARRIVED


def test_a_locked_work_tree_that_is_not_there_is_in_the_way(siding) -> None:
    linked = siding.root.with_name("linked")
    git(siding.root, "worktree", "add", "--quiet", str(linked), "main")
    git(siding.root, "worktree", "lock", str(linked))
    built = ready(siding)
    linked.rename(siding.root.with_name("elsewhere"))

    found = land(siding, built)

    assert isinstance(found, InTheWay)
    assert "is not there" in found.why


def test_a_branch_that_is_checked_out_twice_is_in_the_way(seated) -> None:
    linked = seated.root.with_name("linked")
    git(seated.root, "worktree", "add", "--quiet", "--force", str(linked), "main")

    found = land(seated, ready(seated))

    assert isinstance(found, InTheWay)
    assert "more than once" in found.why


def test_the_user_s_filters_are_heard_and_their_hooks_are_not(seated) -> None:
    seated.user_commits({".gitattributes": "*.up filter=up\n"})
    git(seated.root, "config", "filter.up.smudge", "tr a-z A-Z")
    git(seated.root, "config", "filter.up.clean", "tr A-Z a-z")
    built = seated.built(seated.change("t1", {"x.up": "shout\n"}))
    for hook in ("post-merge", "reference-transaction", "post-checkout"):
        path = seated.root / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\ntouch ./hook-ran\n")
        path.chmod(0o755)

    assert land(seated, built) == ARRIVED

    assert (seated.root / "x.up").read_text() == "SHOUT\n"
    assert seated.status() == ""
    assert not (seated.root / "hook-ran").exists()
    assert seated.main == built.commit


@pytest.mark.parametrize("options", [("--no-ff",), ("--squash",), ("--no-commit",)])
def test_what_the_user_configured_for_merges_does_not_change_what_lands(seated, options) -> None:
    built = ready(seated)
    git(seated.root, "config", "branch.main.mergeOptions", *options)
    git(seated.root, "config", "merge.verifySignatures", "true")
    git(seated.root, "config", "merge.autoStash", "true")

    assert land(seated, built) == ARRIVED
    assert (seated.main, seated.status()) == (built.commit, "")


# --- odd repositories ---------------------------------------------------------------------------


def test_a_repository_with_longer_ids_works_all_the_way(tmp_path) -> None:
    siding = Siding.at(tmp_path, "--object-format=sha256")
    for shows in ("desk", "main"):
        git(siding.root, "checkout", "--quiet", shows)
        built = siding.built(siding.change(shows, {f"{shows}.txt": "x\n"}))
        assert len(built.commit) == 64
        assert land(siding, built) == ARRIVED
    siding.yard.note(siding.project, siding.main, "x")
    assert siding.yard.note_of(siding.project, "main") == (siding.main, "x")


def test_a_bare_repository_works_all_the_way(tmp_path, siding) -> None:
    bare = Siding(tmp_path / "bäre repo.git", tmp_path / "bare home")
    git(tmp_path, "clone", "--quiet", "--bare", str(siding.root), str(bare.root))
    git(bare.root, "symbolic-ref", "HEAD", "refs/heads/main")
    built = bare.built(bare.change("t1", CHANGED))

    assert land(bare, built) == ARRIVED

    assert asked(bare.root, "rev-parse", "main") == built.commit
    bare.yard.note(bare.project, built.commit, "x")
    assert bare.yard.note_of(bare.project, "HEAD") == (built.commit, "x")


def test_a_repository_whose_history_is_cut_off_lands(tmp_path, seated) -> None:
    seated.user_commits({"d.txt": "d\n"})
    shallow = Siding(tmp_path / "shallow", tmp_path / "shallow home")
    source = f"file://{seated.root}"
    git(tmp_path, "clone", "--quiet", "--depth=1", source, str(shallow.root))
    one = shallow.built(shallow.change("t1", {"c.txt": "c\n"}))
    assert land(shallow, one) == ARRIVED
    assert told(shallow.root, "rev-list", "--count", "main") == "3"

    git(shallow.root, "fetch", "--quiet", "--unshallow")
    two = shallow.built(shallow.change("t2", {"e.txt": "e\n"}))
    assert land(shallow, two) == ARRIVED

    assert told(shallow.root, "rev-parse", "--is-shallow-repository") == "false"
    assert told(shallow.root, "fsck", "--strict", "--connectivity-only") == ""
    assert shallow.status() == ""


def test_a_change_from_before_the_cut_is_said(tmp_path, seated) -> None:
    first = seated.main
    seated.user_commits({"d.txt": "d\n"})
    shallow = Siding(tmp_path / "shallow", tmp_path / "shallow home")
    source = f"file://{seated.root}"
    git(tmp_path, "clone", "--quiet", "--depth=1", source, str(shallow.root))
    git(shallow.root, "fetch", "--quiet", "--depth=1", "origin", first)
    load = shallow.change("t1", {"c.txt": "c\n"}, on=first)

    with pytest.raises(Unavailable, match="cut off") as seen:
        shallow.build(load)
    assert "--unshallow" in seen.value.fix
    git(shallow.root, "fetch", "--quiet", "--unshallow")
    assert land(shallow, shallow.built(load)) == ARRIVED


def test_a_submodule_follows_in_its_own_work_tree(tmp_path, seated) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "--quiet")
    add = ("-c", "protocol.file.allow=always", "submodule", "add", "--quiet")
    git(outer, *add, str(seated.root), "inner")
    inner = Siding(outer / "inner", tmp_path / "inner home")
    built = inner.built(inner.change("t1", CHANGED))

    assert land(inner, built) == ARRIVED
    assert told(inner.root, "rev-parse", "HEAD") == built.commit
    assert inner.status() == ""


def _tried(root: Path, *argv: str) -> None:
    """It may stop with a conflict, as it should."""
    with suppress(subprocess.CalledProcessError):
        git(root, *argv)
