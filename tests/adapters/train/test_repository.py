"""The train's yard, with real git: tips, candidates by each strategy, conflicts, evidence."""

import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.adapters.train import GitYard
from lockgate.core.config.settings import MergeStrategy
from lockgate.core.model.task import TaskId
from lockgate.core.train.model import Built, Commit, Conflict, Tree
from lockgate.errors import NotesBroken, Unavailable
from lockgate.ports.train import Load, Reverts, Target
from tests.adapters.train.sidings import Siding, told, write
from tests.adapters.workshop import asked, git

MERGE, SQUASH, REBASE = MergeStrategy.MERGE, MergeStrategy.SQUASH, MergeStrategy.REBASE
ALL = pytest.mark.parametrize("by", [MERGE, SQUASH, REBASE])


@pytest.fixture
def siding(tmp_path: Path) -> Siding:
    return Siding.at(tmp_path)


# --- the tip ------------------------------------------------------------------------------------


def test_the_tip_is_the_branch_as_the_user_has_it(siding) -> None:
    first = siding.yard.tip(siding.target)
    moved = siding.user_pushes_main({"c.txt": "c\n"})
    second = siding.yard.tip(siding.target)

    tree = asked(siding.root, "rev-parse", "main^{tree}")
    assert first.commit != second.commit
    assert second == Built(moved, Tree(tree))
    assert GitYard(siding.home).tip(siding.target) == second


def test_a_rewritten_target_is_just_another_tip(siding) -> None:
    old = siding.yard.tip(siding.target)
    git(siding.root, "checkout", "--quiet", "main")
    git(siding.root, "commit", "--quiet", "--amend", "--message", "rewritten")

    new = siding.yard.tip(siding.target)

    assert new.commit == siding.main != old.commit
    assert not siding.yard.has(siding.target, old.commit)
    assert siding.yard.has(siding.target, new.commit)


def test_a_deleted_target_is_said_with_what_to_do(siding) -> None:
    siding.yard.tip(siding.target)
    git(siding.root, "branch", "-D", "main")

    with pytest.raises(Unavailable, match="has no branch main") as seen:
        siding.yard.tip(siding.target)
    with pytest.raises(Unavailable, match="has no branch main"):
        siding.yard.has(siding.target, Commit("0" * 40))
    siding.yard.prune(siding.target, ())

    assert "git branch main" in seen.value.fix


def test_a_tip_whose_copy_was_killed_is_brought_again(siding) -> None:
    tip = siding.yard.tip(siding.target)
    objects = siding.repos.base / "objects"
    blob = asked(siding.root, "rev-parse", "main:a.txt")
    siding.yard.prune(siding.target, ())
    asked(siding.repos.judge, "update-ref", "-d", _mark(siding, tip.commit))
    loose = objects / blob[:2] / blob[2:]
    loose.unlink(missing_ok=True)
    asked(siding.repos.base, "update-ref", "-d", "refs/heads/main")

    again = GitYard(siding.home).tip(siding.target)

    assert again == tip
    assert siding.shown(tip.commit, "a.txt").startswith("one")


def test_what_a_target_does_not_contain_it_does_not_have(siding) -> None:
    load = siding.change("t1", {"c.txt": "c\n"})

    assert siding.yard.has(siding.target, siding.main)
    assert not siding.yard.has(siding.target, load.commit)
    assert not siding.yard.has(siding.target, Commit("1" * 40))


# --- building -----------------------------------------------------------------------------------


@ALL
def test_the_same_facts_give_the_same_commit(siding, by) -> None:
    one, two = siding.change("t1", {"c.txt": "c\n"}), siding.change("t2", {"d.txt": "d\n"})

    first = siding.built(one, two, by=by)
    again = GitYard(siding.home).build(siding.target, siding.main, (one, two), by)
    chained = siding.built(two, onto=siding.built(one, by=by).commit, by=by)

    assert first == again == chained
    assert siding.shown(first.commit, "c.txt") == "c"
    assert siding.shown(first.commit, "d.txt") == "d"
    assert siding.said(first.commit, "%T") == first.tree
    assert asked(siding.repos.judge, "rev-parse", _mark(siding, first.commit)) == first.commit


def test_a_merge_has_the_target_and_the_change_as_parents(siding) -> None:
    load = siding.change("t1", {"c.txt": "c\n"})

    built = siding.built(load)

    assert siding.said(built.commit, "%P") == f"{siding.main} {load.commit}"
    assert siding.said(built.commit, "%B") == "Merge t1: Land t1\n\nBecause.\n"
    assert siding.said(built.commit, "%an %cn %ae") == "Lockgate Lockgate lockgate@localhost"
    assert siding.said(built.commit, "%ct") == siding.said(load.commit, "%ct")


def test_a_commit_of_ours_is_never_older_than_what_it_is_on(siding, monkeypatch) -> None:
    old = siding.change("t1", {"c.txt": "c\n"})
    monkeypatch.setenv("GIT_COMMITTER_DATE", "@2000000000 +0000")
    siding.user_pushes_main({"d.txt": "d\n"})

    for by in MergeStrategy:
        assert siding.said(siding.built(old, by=by).commit, "%ct") == "2000000000"


def test_a_squash_is_one_commit_on_the_target(siding) -> None:
    load = siding.change("t1", {"c.txt": "c\n"}, {"c.txt": "cc\n"})

    built = siding.built(load, by=SQUASH)

    assert siding.said(built.commit, "%P") == siding.main
    assert siding.subjects(built.commit) == ["start", "Land t1"]
    assert siding.shown(built.commit, "c.txt") == "cc"


def test_a_rebase_replays_each_commit_with_its_author_and_its_words(siding) -> None:
    siding.yard.tip(siding.target)
    work = siding.root.with_name("work")
    git(siding.root, "worktree", "add", "--quiet", "--detach", str(work), "main")
    message = "Grüße\n\n\n  two  blank lines\n# and a hash"
    for name in ("c", "d"):
        write(work, {f"{name}.txt": "x\n"})
        git(work, "add", "--all")
        who = ("-c", "user.name=Jürgen", "-c", "user.email=j@localhost")
        how = ("--cleanup=verbatim", "--date=@1234567890 +0530")
        git(work, *who, "commit", "--quiet", *how, "--message", f"{name}: {message}")
    siding.user_pushes_main({"e.txt": "e\n"})
    load = siding.taken("t1", work)

    built = siding.built(load, by=REBASE)

    assert siding.subjects(built.commit) == ["start", "by the user", "c: Grüße", "d: Grüße"]
    assert siding.said(built.commit, "%B") == f"d: {message}\n"
    assert siding.said(built.commit, "%ai") == "2009-02-14 05:01:30 +0530"
    assert siding.said(built.commit, "%cn") == "Lockgate"
    assert siding.said(built.commit, "%P|%an").endswith(siding.said(load.commit, "|%an"))


def test_a_replayed_commit_in_another_encoding_keeps_its_bytes(siding) -> None:
    siding.yard.tip(siding.target)
    work = siding.root.with_name("work")
    git(siding.root, "worktree", "add", "--quiet", "--detach", str(work), "main")
    write(work, {"c.txt": "x\n"})
    git(work, "add", "--all")
    words = siding.root.with_name("words")
    words.write_bytes("Grüße\n".encode("latin-1"))
    git(work, "-c", "i18n.commitEncoding=latin-1", "commit", "--quiet", "--file", str(words))
    siding.user_pushes_main({"e.txt": "e\n"})

    built = siding.built(siding.taken("t1", work), by=REBASE)

    assert siding.subjects(built.commit)[-1] == "Grüße"


def test_an_empty_commit_is_left_out_of_a_replay(siding) -> None:
    load = siding.change("t1", {"c.txt": "c\n"}, {}, {"d.txt": "d\n"})

    assert siding.subjects(siding.built(load, by=REBASE).commit) == ["start", "t1 0", "t1 2"]


def test_a_merge_inside_a_change_is_replayed_as_what_it_brought(siding) -> None:
    work = siding.root.with_name("work")
    siding.yard.tip(siding.target)
    git(siding.root, "worktree", "add", "--quiet", "--detach", str(work), "main")
    write(work, {"a.txt": "mine\ntwo\nthree\n"})
    git(work, "commit", "--quiet", "--all", "--message", "mine")
    siding.user_pushes_main({"a.txt": "one\ntwo\ntheirs\n"})
    git(work, "merge", "--quiet", "--no-edit", "main")
    write(work, {"c.txt": "c\n"})
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "--message", "after")

    built = siding.built(siding.taken("t1", work), by=REBASE)

    assert siding.subjects(built.commit) == ["start", "by the user", "mine", "after"]
    assert siding.shown(built.commit, "a.txt") == "mine\ntwo\ntheirs"


@ALL
def test_a_change_that_the_target_has_already_adds_nothing(siding, by) -> None:
    load = siding.change("t1", {"c.txt": "c\n"})
    onto = siding.built(load, by=by)

    again = siding.built(load, onto=onto.commit, by=by)

    assert again.tree == onto.tree
    assert (again.commit == onto.commit) == (by is not MERGE)


@ALL
def test_a_change_whose_task_landed_already_and_was_forgotten_adds_no_commit(siding, by) -> None:
    load = replace(siding.change("t1", {"c.txt": "c\n"}), message="c\n\nLockgate-Task: t1")
    other = replace(siding.change("t2", {"d.txt": "d\n"}), message="d\n\nLockgate-Task: t12")
    onto = siding.built(load, other, by=by)

    assert siding.built(load, onto=onto.commit, by=by) == onto
    again = siding.built(replace(other, task=TaskId("t2")), onto=onto.commit, by=by)
    assert (again.commit == onto.commit) == (by is not MERGE)  # no commit names this task


@ALL
def test_no_changes_are_the_commit_itself(siding, by) -> None:
    tip = siding.yard.tip(siding.target)

    assert siding.built(by=by) == tip


def test_a_missing_commit_is_said(siding) -> None:
    siding.yard.tip(siding.target)

    with pytest.raises(Unavailable, match="was not merged"):
        siding.build(Load(TaskId("t1"), Commit("1" * 40), "x"))
    with pytest.raises(Unavailable, match="was not looked up"):
        siding.build(onto=Commit("1" * 40))
    with pytest.raises(Unavailable, match="was not merged"):
        siding.overlap(siding.main, Commit("1" * 40))


@pytest.mark.parametrize("words", ["", "a\0b \ud800\n", "ü" * 200_000])
def test_a_message_of_any_kind_makes_a_sound_commit(siding, words) -> None:
    load = replace(siding.change("t1", {"c.txt": "c\n"}), message=words)

    built = siding.built(load)

    asked(siding.repos.judge, "fsck", "--strict", "--no-dangling", built.commit)
    wanted = {"": "(no summary)\n", "a\0b \ud800\n": "ab ?\n"}.get(words, f"{words}\n")
    assert siding.said(built.commit, "%B") == f"Merge t1: {wanted}"


# --- conflicts ----------------------------------------------------------------------------------


@ALL
def test_a_conflict_names_the_task_and_its_files(siding, by) -> None:
    fine = siding.change("t1", {"a.txt": "ONE\ntwo\nthree\n"})
    clash = siding.change("t2", {"a.txt": "Eins\ntwo\nthree\n", "ö ü.txt": "x\n"})
    both = siding.change("t3", {"ö ü.txt": "y\n"})

    assert siding.build(fine, clash, by=by) == Conflict(TaskId("t2"), files=("a.txt",))
    assert siding.build(clash, both, by=by) == Conflict(TaskId("t3"), files=("ö ü.txt",))
    assert siding.overlap(fine.commit, clash.commit) == ("a.txt",)
    assert siding.overlap(fine.commit, both.commit) == ()


def reverts(load: Load, before: Commit, landed: Commit, *, alone: bool = True) -> Reverts:
    return Reverts(
        task=load.task,
        message=f'Revert "{load.task}"',
        before=before,
        landed=landed,
        change=load.commit,
        alone=alone,
    )


@ALL
def test_a_landed_change_is_reverted_and_what_came_later_stays(siding, by) -> None:
    begun = siding.main
    undone = siding.change("t1", {"a.txt": "ONE\ntwo\nthree\n"}, {"new.txt": "n\n"})
    landed = siding.built(undone, by=by)
    tip = siding.built(siding.change("t2", {"b.txt": "later\n"}), onto=landed.commit, by=by)

    made = siding.yard.revert(siding.target, tip.commit, reverts(undone, begun, landed.commit))

    assert isinstance(made, Built)
    assert siding.shown(made.commit, "a.txt") == "one\ntwo\nthree"
    assert siding.shown(made.commit, "b.txt") == "later"
    files = asked(siding.repos.judge, "ls-tree", "--name-only", made.commit)
    assert "new.txt" not in files
    assert siding.said(made.commit, "%P %s") == f'{tip.commit} Revert "t1"'
    body = siding.said(made.commit, "%b")
    assert body.startswith("It takes back:\n  ")
    assert body.rstrip().endswith("Lockgate-Reverts: t1")
    asked(siding.repos.judge, "fsck", "--strict", "--no-dangling", made.commit)


@ALL
def test_of_changes_that_landed_together_one_is_reverted(siding, by) -> None:
    begun = siding.main
    first = siding.change("t1", {"a.txt": "ONE\ntwo\nthree\n"}, {"new.txt": "n\n"})
    other = siding.change("t2", {"b.txt": "other\n"})
    first, other = (
        replace(it, message=f"Do {it.task}\n\nLockgate-Task: {it.task}\n") for it in (first, other)
    )
    landed = siding.built(first, other, by=by)

    asked_for = reverts(first, begun, landed.commit, alone=False)
    made = siding.yard.revert(siding.target, landed.commit, asked_for)

    assert isinstance(made, Built)
    assert siding.shown(made.commit, "a.txt") == "one\ntwo\nthree"
    assert siding.shown(made.commit, "b.txt") == "other"


def test_the_revert_of_a_change_that_is_gone_is_the_target_itself(siding) -> None:
    begun = siding.main
    undone = siding.change("t1", {"a.txt": "ONE\ntwo\nthree\n"})
    landed = siding.built(undone).commit
    wanted = reverts(undone, begun, landed)
    once = siding.yard.revert(siding.target, landed, wanted)

    again = siding.yard.revert(siding.target, once.commit, wanted)

    assert again == once


def test_a_revert_that_later_changes_are_built_on_is_a_conflict(siding) -> None:
    begun = siding.main
    undone = siding.change("t1", {"a.txt": "ONE\ntwo\nthree\n"})
    front = siding.built(undone)
    later = siding.change("t2", {"a.txt": "ONE AND A HALF\ntwo\nthree\n"}, on=undone.commit)
    tip = siding.built(later, onto=front.commit)

    made = siding.yard.revert(siding.target, tip.commit, reverts(undone, begun, front.commit))

    assert made == Conflict(TaskId("t1"), files=("a.txt",))


def test_a_change_on_a_newer_target_is_not_blamed_for_an_older_ones_conflict(siding) -> None:
    """The older one conflicts with the target in a.txt; the newer one only begins there."""
    begun = siding.main
    old = siding.change("t1", {"a.txt": "ONE\ntwo\nthree\n"})
    moved = siding.user_pushes_main({"a.txt": "Eins\ntwo\nthree\n"})
    new = siding.change("t2", {"c.txt": "c\n"})
    beside = siding.change("t3", {"a.txt": "Eins\ntwo\nthree\n" + "and\n" * 9})
    same = siding.change("t4", {"a.txt": "Uno\ntwo\nthree\n"})

    assert isinstance(siding.build(old), Conflict)
    assert siding.overlap(old.commit, new.commit, begun, moved) == ()
    assert siding.overlap(new.commit, old.commit, moved, begun) == ()
    assert siding.overlap(old.commit, beside.commit, begun, moved) == ()
    assert siding.overlap(old.commit, same.commit, begun, moved) == ("a.txt",)


def test_a_change_that_goes_on_from_another_does_not_conflict_with_it(siding) -> None:
    first = siding.change("t1", {"a.txt": "ONE\ntwo\nthree\n"})
    second = siding.change("t2", {"a.txt": "ONE AND A HALF\ntwo\nthree\n"}, on=first.commit)

    assert siding.overlap(first.commit, second.commit) == ()


def _mode(root: Path, name: str, mode: int) -> None:
    (root / name).chmod(mode)


def _linked(root: Path, name: str, to: str) -> None:
    (root / name).unlink(missing_ok=True)
    (root / name).symlink_to(to)


def _renamed(root: Path, name: str, to: str) -> None:
    git(root, "mv", name, to)


def _nested(root: Path, name: str, commit: str) -> None:
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{commit},{name}")


def _bytes(root: Path, name: str, data: bytes) -> None:
    (root / name).write_bytes(data)


def _gone(root: Path, name: str) -> None:
    git(root, "rm", "--quiet", name)


Act = Callable[[Path], None]
KINDS: dict[str, tuple[Act, Act, set[str]]] = {
    "content": (
        lambda it: _bytes(it, "a.txt", b"x\n"),
        lambda it: _bytes(it, "a.txt", b"y\n"),
        {"a.txt"},
    ),
    "binary": (
        lambda it: _bytes(it, "c", b"\0\1"),
        lambda it: _bytes(it, "c", b"\0\2"),
        {"c"},
    ),
    "modify/delete": (
        lambda it: _gone(it, "a.txt"),
        lambda it: _bytes(it, "a.txt", b"y\n"),
        {"a.txt"},
    ),
    "rename/delete": (
        lambda it: _renamed(it, "a.txt", "n.txt"),
        lambda it: _gone(it, "a.txt"),
        {"a.txt", "n.txt"},
    ),
    "rename/rename": (
        lambda it: _renamed(it, "a.txt", "n.txt"),
        lambda it: _renamed(it, "a.txt", "m.txt"),
        {"a.txt", "m.txt", "n.txt"},
    ),
    "kind": (
        lambda it: _linked(it, "c", "a.txt"),
        lambda it: _bytes(it, "c", b"c\n"),
        {"c"},
    ),
    "submodule": (
        lambda it: _nested(it, "sub", "1" * 40),
        lambda it: _nested(it, "sub", "2" * 40),
        {"sub"},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_conflict_is_one(siding, kind) -> None:
    first, second, files = KINDS[kind]
    loads = list[Load]()
    siding.yard.tip(siding.target)
    for task, act in (("t1", first), ("t2", second)):
        work = siding.root.with_name(f"work of {task}")
        git(siding.root, "worktree", "add", "--quiet", "--detach", str(work), "main")
        act(work)
        if kind != "submodule":
            git(work, "add", "--all")
        git(work, "commit", "--quiet", "--message", kind)
        loads.append(siding.taken(task, work))

    found = siding.build(*loads)

    assert isinstance(found, Conflict)
    assert (found.task, set(found.files)) == ("t2", files)


@ALL
def test_a_file_where_a_directory_is_counts_under_its_own_name(siding, by) -> None:
    file = siding.change("t1", {"thing": "a file\n"})
    folder = siding.change("t2", {"thing/inside": "a directory\n"})

    assert siding.build(file, folder, by=by) == Conflict(TaskId("t2"), files=("thing",))
    assert siding.build(folder, file, by=by) == Conflict(TaskId("t1"), files=("thing",))


@ALL
def test_changes_of_mode_and_content_meet(siding, by) -> None:
    siding.yard.tip(siding.target)
    work = siding.root.with_name("work")
    git(siding.root, "worktree", "add", "--quiet", "--detach", str(work), "main")
    _mode(work, "a.txt", 0o755)
    git(work, "commit", "--quiet", "--all", "--message", "x")
    mode = siding.taken("t1", work)
    text = siding.change("t2", {"a.txt": "1\n2\n3\n"})

    built = siding.built(mode, text, by=by)

    listed = asked(siding.repos.judge, "ls-tree", built.commit, "a.txt")
    assert listed.startswith("100755")
    assert siding.shown(built.commit, "a.txt") == "1\n2\n3"


def test_a_change_that_replays_from_a_root_of_its_own_does_not(siding) -> None:
    siding.yard.tip(siding.target)
    work = siding.root.with_name("work")
    git(siding.root, "worktree", "add", "--quiet", "--detach", str(work), "main")
    git(work, "checkout", "--quiet", "--orphan", "other")
    git(work, "commit", "--quiet", "--message", "another root")
    git(work, "merge", "--quiet", "--no-edit", "--allow-unrelated-histories", "main")

    assert siding.build(siding.taken("t1", work), by=REBASE) == Conflict(TaskId("t1"))


@ALL
def test_a_change_that_shares_no_history_does_not_merge(siding, by) -> None:
    siding.yard.tip(siding.target)
    work = siding.root.with_name("work")
    git(siding.root, "worktree", "add", "--quiet", "--detach", str(work), "main")
    git(work, "checkout", "--quiet", "--orphan", "other")
    git(work, "commit", "--quiet", "--message", "another root")
    load = siding.taken("t1", work)

    assert siding.build(load, by=by) == Conflict(TaskId("t1"))
    assert siding.overlap(siding.main, load.commit) == ()


def test_a_conflict_in_very_many_files_names_some(siding) -> None:
    loads = [siding.change(it, {f"f{n}": it for n in range(60)}) for it in ("t1", "t2")]

    found = siding.overlap(loads[0].commit, loads[1].commit)

    assert len(found) == 50


def test_names_that_are_not_utf_8_come_along(siding) -> None:
    name = "caf\udce9\n~x"
    one, two = (siding.change(it, {name: f"{it}\n"}) for it in ("t1", "t2"))

    assert siding.build(one, two) == Conflict(TaskId("t2"), files=(name,))


# --- what is kept -------------------------------------------------------------------------------


def test_prune_lets_go_of_all_but_those_that_are_kept_and_the_tip(siding) -> None:
    loads = [siding.change(f"t{n}", {f"{n}.txt": "x\n"}) for n in range(3)]
    built = [siding.built(it).commit for it in loads]
    other = Target(project=siding.project, branch="desk")
    theirs = siding.yard.tip(other)

    siding.yard.prune(siding.target, built[:1])

    refs = asked(siding.repos.judge, "for-each-ref", "--format=%(refname)", "refs/lockgate/train/")
    kept = {it.rpartition("/")[2] for it in refs.splitlines()}
    assert kept == {built[0], siding.main, theirs.commit}
    assert siding.yard.tip(siding.target).commit == siding.main
    siding.yard.prune(siding.target, built[:1])


def test_a_note_is_kept_byte_for_byte_and_replaced(siding) -> None:
    commit, text = siding.main, '{"gates": ["ü"],\n\n\n  "x": 1}  \n\n'

    assert siding.yard.note_of(siding.project, "main") == (commit, None)
    siding.yard.note(siding.project, commit, "first")
    siding.yard.note(siding.project, commit, text)

    assert siding.yard.note_of(siding.project, "main") == (commit, text)
    assert siding.yard.note_of(siding.project, commit[:10]) == (commit, text)
    assert siding.yard.note_of(siding.project, "nobody") is None
    assert siding.yard.note_of(siding.project, "--all") is None
    notes = told(siding.root, "log", "-1", "--format=%N", "--notes=lockgate", "main")
    assert '"gates": ["ü"]' in notes


def test_notes_written_at_once_are_all_kept(siding) -> None:
    commits = [siding.user_commits({"n.txt": str(n)}) for n in range(12)]
    yards = [GitYard(siding.home.with_name(f"home {n % 2}")) for n in range(12)]
    project = siding.project
    threads = [
        threading.Thread(target=yard.note, args=(project, commit, f"of {commit}"))
        for yard, commit in zip(yards, commits, strict=True)
    ]
    for it in threads:
        it.start()
    for it in threads:
        it.join()

    for commit in commits:
        assert siding.yard.note_of(project, commit) == (commit, f"of {commit}")


@pytest.mark.parametrize("part", ["commit", "tree", "blob"])
def test_notes_of_which_git_has_lost_a_part_are_noticed_and_written_again(siding, part) -> None:
    first, second = (siding.user_commits({"n.txt": str(n)}) for n in range(2))
    siding.yard.note(siding.project, first, "of the first")
    assert siding.yard.notes_sound(siding.project)
    ref = "refs/notes/lockgate"
    name = {"commit": ref, "tree": f"{ref}^{{tree}}", "blob": f"{ref}:{first}"}[part]
    id = told(siding.root, "rev-parse", name).strip()
    (siding.root / ".git" / "objects" / id[:2] / id[2:]).unlink()

    assert not siding.yard.notes_sound(siding.project)
    if part != "blob":  # git adds a note beside one whose text it has lost
        with pytest.raises(NotesBroken, match="is missing"):
            siding.yard.note(siding.project, second, "of the second")

    notes = {first: "of the first", second: "ü\n\n", Commit("1" * 40): "of one that is gone"}
    assert siding.yard.rewrite_notes(siding.project, notes) == 2
    assert siding.yard.notes_sound(siding.project)
    assert siding.yard.note_of(siding.project, first) == (first, "of the first")
    assert siding.yard.note_of(siding.project, second) == (second, "ü\n\n")
    siding.yard.note(siding.project, siding.main, "and one more")
    assert siding.yard.note_of(siding.project, first) == (first, "of the first")


@pytest.mark.parametrize("part", ["commit", "tree", "blob"])
def test_notes_of_other_people_are_kept_when_the_notes_are_written_again(siding, part) -> None:
    def imports(stream: str) -> None:
        argv = ("git", "-C", str(siding.root), "fast-import", "--quiet")
        subprocess.run(argv, input=stream.encode(), check=True)

    ref, git_dir = "refs/notes/lockgate", siding.root / ".git"
    by = "committer A <a@b> 0 +0000\ndata 1\nx\n"
    imports(f"commit refs/heads/many\n{by}" * 300)
    ours, *theirs = map(Commit, told(siding.root, "rev-list", "many").split())
    notes = "".join(f"N inline {it}\ndata 3\nof\n" for it in theirs)
    imports(f"commit {ref}\n{by}{notes}")
    siding.yard.note(siding.project, ours, "ours")
    paths = told(siding.root, "ls-tree", "-r", "--name-only", ref).splitlines()
    lost = next(it for it in paths if it.replace("/", "") == ours)
    name = {"commit": ref, "tree": f"{ref}^{{tree}}", "blob": f"{ref}:{lost}"}[part]
    id = told(siding.root, "rev-parse", name).strip()
    (git_dir / "objects" / id[:2] / id[2:]).unlink()

    assert siding.yard.rewrite_notes(siding.project, {ours: "ours"}) == 300
    assert siding.yard.note_of(siding.project, ours) == (ours, "ours")
    assert siding.yard.note_of(siding.project, theirs[0]) == (theirs[0], "of\n")
    assert siding.yard.notes_sound(siding.project)


def test_a_repository_without_notes_misses_none(siding) -> None:
    assert siding.yard.notes_sound(siding.project)


def test_a_note_on_nothing_is_said(siding) -> None:
    with pytest.raises(Unavailable, match="was not kept"):
        siding.yard.note(siding.project, Commit("1" * 40), "x")


def test_nothing_of_ours_is_left_lying_about(siding) -> None:
    load = siding.change("t1", {"c.txt": "c\n"})
    siding.built(load, by=REBASE)
    siding.yard.note(siding.project, siding.main, "x")
    siding.yard.land(siding.target, siding.main, siding.built(load).commit)

    assert {it.name for it in siding.repos.directory.iterdir()} == {"base.git", "judge.git"}
    assert not list((siding.root / ".git").glob("lockgate*"))
    fsck = subprocess.run(
        ("git", "-C", str(siding.root), "fsck", "--strict"), capture_output=True, check=True
    )
    assert b"missing" not in fsck.stdout


def _mark(siding: Siding, commit: Commit) -> str:
    refs = asked(siding.repos.judge, "for-each-ref", "--format=%(refname)", "refs/lockgate/train/")
    return next(it for it in refs.splitlines() if it.endswith(commit))
