"""Work taken out of a clone that a hostile agent has had in its hands."""

import os
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.adapters.workspaces import GitWorkspaces
from lockgate.adapters.workspaces.snapshot import _named
from lockgate.errors import Unavailable
from lockgate.ports import Unfit, candidate_of
from tests.adapters.workshop import BARE_AT_LENGTH, BOXED, Workshop, asked, git


@pytest.fixture(params=[BOXED, BARE_AT_LENGTH])
def shop(tmp_path: Path, request: pytest.FixtureRequest) -> Workshop:
    return Workshop.at(tmp_path, sandboxed=request.param)


def _begun(shop: Workshop, **fields: object):
    task = shop.task(**fields)
    shop.workspaces.prepare(shop.project, task)
    return task


# --- what is taken ------------------------------------------------------------------------------


def test_nothing_done_is_the_base_commit(shop) -> None:
    task = _begun(shop)

    change = shop.workspaces.take(shop.project, task)

    assert (change.commit, change.files) == (task.pinned.base_commit, ())


def test_commits_are_taken_as_they_are(shop) -> None:
    task = _begun(shop)
    head = shop.agent(task, "echo 2 >> a.txt; git commit -qam two; git rev-parse HEAD").out.strip()

    change = shop.workspaces.take(shop.project, task)

    assert (change.commit, change.files) == (head, ("a.txt",))
    assert asked(shop.judge, "rev-parse", f"refs/lockgate/changes/{task.id}") == head
    assert asked(shop.judge, "rev-parse", f"refs/lockgate/snapshots/{task.id}/{head}") == head


def test_work_that_was_not_committed_is_committed_on_top(shop) -> None:
    task = _begun(shop)
    head = shop.agent(
        task,
        "echo 2 >> a.txt; git commit -qam two; git rev-parse HEAD;"
        "rm a.txt; echo n > new; mkdir d; echo s > d/staged; git add d; chmod +x new",
    ).out.strip()

    change = shop.workspaces.take(shop.project, task)

    assert change.files == ("a.txt", "d/staged", "new")
    assert asked(shop.judge, "rev-parse", f"{change.commit}^") == head
    said = asked(shop.judge, "log", "-1", "--format=%an|%s", change.commit)
    assert said == f"The User|{task.goal}"
    assert shop.files(change.commit) == ["d/staged", "new"]
    assert asked(shop.judge, "ls-tree", change.commit, "new").startswith("100755")


def test_the_same_work_is_the_same_change_however_often_it_is_taken(shop) -> None:
    task = _begun(shop)
    shop.agent(task, "echo n > new")
    first = shop.workspaces.take(shop.project, task)
    time.sleep(1.1)  # the commit's date has seconds

    again = shop.workspaces.take(shop.project, task)
    shop.agent(task, "echo m > new")
    other = shop.workspaces.take(shop.project, task)

    assert first == again
    assert other.commit != first.commit
    assert shop.shown(first.commit, "new") == "n"
    kept = asked(shop.judge, "for-each-ref", "--format=%(objectname)", "refs/lockgate/snapshots")
    assert set(kept.split()) == {first.commit, other.commit}


def test_the_clone_is_not_changed_by_being_read(shop) -> None:
    task = _begun(shop)
    shop.agent(task, "echo 2 >> a.txt; git add a.txt; echo 3 >> a.txt; echo n > new")
    place = shop.workspaces.place(task.id)
    before = {str(it): it.lstat().st_mtime_ns for it in place.rglob("*")}

    shop.workspaces.take(shop.project, task)

    assert {str(it): it.lstat().st_mtime_ns for it in place.rglob("*")} == before
    assert [it.name for it in place.parent.iterdir()] == [task.id]


def test_ignored_files_and_our_own_stay_out(shop) -> None:
    shop.commit(".gitignore", "*.log\n")
    task = _begun(shop)
    place = shop.workspaces.place(task.id)
    shop.workspaces.write(place, {"TASK.md": "x", "task.json": "{}"})
    shop.agent(
        task, "echo l > x.log; echo h > .aider.chat.history.md; echo n > new; cp new .TASK.md.0"
    )

    change = shop.workspaces.take(shop.project, task)

    assert change.files == ("new",)


@pytest.mark.parametrize("how", ["git add -f TASK.md task.json; git commit -qm x", "true"])
def test_a_task_file_that_the_agent_commits_is_taken_out_again(shop, how) -> None:
    task = _begun(shop)
    place = shop.workspaces.place(task.id)
    shop.workspaces.write(place, {"TASK.md": "x", "task.json": "{}"})
    shop.agent(task, f"echo n > new; {how}; git add -f TASK.md")

    change = shop.workspaces.take(shop.project, task)

    assert change.files == ("new",)


@pytest.mark.parametrize(
    "how", ["git commit -qam x", "git add -f TASK.md; git commit -qm x", "true"]
)
def test_a_task_file_that_the_repository_tracks_never_changes(shop, how) -> None:
    shop.commit("TASK.md", "the project's own\n")
    task = _begun(shop)
    place = shop.workspaces.place(task.id)
    shop.workspaces.write(place, {"TASK.md": "the task\n"})

    clean = shop.agent(task, "git status --porcelain")
    shop.agent(task, f"echo n > new; git add new; echo more >> TASK.md; {how}")
    change = shop.workspaces.take(shop.project, task)

    assert clean.out == ""
    assert change.files == ("new",)
    assert shop.shown(change.commit, "TASK.md") == "the project's own"
    assert (place / "TASK.md").read_text() == "the task\nmore\n"


def test_a_directory_by_the_name_of_a_task_file_stays_as_it_was(shop) -> None:
    shop.commit("TASK.md/inner.txt", "1\n")
    task = _begun(shop)
    shop.workspaces.write(shop.workspaces.place(task.id), {"TASK.md": "the task\n"})

    change = shop.workspaces.take(shop.project, task)

    assert (change.files, shop.files(change.commit)) == ((), ["TASK.md/inner.txt", "a.txt"])


def test_any_name_is_taken(shop) -> None:
    task = _begun(shop)
    names = ["a b", "ü/ö", "new\nline", "-dash", "'q\"", ":(exclude)x", "*", "\udcff", "tab\t"]
    place = shop.workspaces.place(task.id)
    for name in names:
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text("x")

    change = shop.workspaces.take(shop.project, task)

    assert set(change.files) == set(names)


def test_a_submodule_that_is_not_there_keeps_its_place(shop, tmp_path) -> None:
    library = Workshop.at(tmp_path / "library").root
    git(
        shop.root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "lib"
    )
    git(shop.root, "commit", "--quiet", "--message", "lib")
    task = _begun(shop)
    shop.agent(task, "echo n > new")

    change = shop.workspaces.take(shop.project, task)

    assert change.files == ("new",)
    assert asked(shop.judge, "ls-tree", change.commit, "lib").startswith("160000 commit")


def test_a_rename_counts_under_both_names(shop) -> None:
    shop.commit("ci.yml", "a\nb\nc\n")
    task = _begun(shop)
    shop.agent(task, "git mv ci.yml other.yml")

    change = shop.workspaces.take(shop.project, task)

    assert change.files == ("ci.yml", "other.yml")
    assert "ci.yml" in shop.workspaces.diff(shop.project, task, change.commit)


def test_a_history_with_nothing_in_common_is_compared_with_the_base(shop) -> None:
    task = _begun(shop)
    shop.agent(
        task,
        "git checkout -q --orphan o; git rm -qrf .; echo n > new; git add new; git commit -qm o",
    )

    change = shop.workspaces.take(shop.project, task)

    assert change.files == ("a.txt", "new")
    again = shop.workspaces.change(candidate_of(shop.project, task, change.commit))
    assert replace(again, commits=change.commits) == change


def test_only_what_the_task_did_counts_though_the_target_moved_on(shop) -> None:
    task = _begun(shop)
    shop.commit("later.txt")
    later = shop.task("later-1", branch="later")
    shop.workspaces.prepare(shop.project, later)
    done = shop.agent(
        task, "git fetch -q origin && git merge -q origin/main && echo n > new && git add new"
    )

    change = shop.workspaces.take(shop.project, replace(task, pinned=later.pinned))

    assert done.code == 0, done.err
    assert change.files == ("new",)


# --- clones that were broken --------------------------------------------------------------------

BROKEN = {
    "no .git": "rm -rf .git",
    ".git is rubbish": "rm -rf .git; echo rubbish > .git",
    ".git is empty": "rm -rf .git; mkdir .git",
    "no HEAD": "rm .git/HEAD",
    "HEAD is nowhere": "echo ref: refs/heads/none > .git/HEAD",
    "HEAD is rubbish": "head -c 64 /dev/urandom > .git/HEAD",
    "objects are gone": "git add -A; git commit -qm x; rm -rf .git/objects",
    "no alternates": "rm .git/objects/info/alternates",
    "a commit is broken": "git add -A; git commit -qm x;"
    "find .git/objects -type f -name '?*' -size -2 -exec chmod u+w {} + -exec truncate -s 3 {} +",
    ".git is unreadable": "chmod 000 .git",
    "shallow": "git rev-parse HEAD > .git/shallow; git add -A; git commit -qm x",
    ".git is a link to itself": "rm -rf .git; ln -s .git .git",
    ".git is a pipe": "rm -rf .git; mkfifo .git",
}


@pytest.mark.parametrize("damage", BROKEN.values(), ids=BROKEN)
@pytest.mark.unmeasured
def test_a_clone_that_is_no_repository_any_more_still_gives_its_files(shop, damage) -> None:
    task = _begun(shop)
    shop.agent(task, f"echo n > new; {damage}")

    change = shop.workspaces.take(shop.project, task)

    assert change.files == ("new",)
    assert shop.shown(change.commit, "new") == "n"


def test_files_without_a_repository_lie_on_the_last_change_we_have(shop) -> None:
    task = _begun(shop)
    shop.agent(task, "echo 1 > one; git add one; git commit -qm one")
    first = shop.workspaces.take(shop.project, task)
    shop.agent(task, "echo 2 > two; rm -rf .git")

    change = shop.workspaces.take(shop.project, task)

    assert change.files == ("one", "two")
    assert asked(shop.judge, "rev-parse", f"{change.commit}^") == first.commit


def test_a_half_written_index_and_stale_locks_do_not_matter(shop) -> None:
    task = _begun(shop)
    shop.agent(
        task,
        "echo n > new; git add new; truncate -s 40 .git/index;"
        "touch .git/index.lock .git/HEAD.lock .git/refs/heads/fix-login.lock",
    )

    assert shop.workspaces.take(shop.project, task).files == ("new",)


def test_a_clone_that_is_gone_leaves_the_last_change(shop) -> None:
    task = _begun(shop)
    shop.agent(task, "echo n > new")
    last = shop.workspaces.take(shop.project, task)
    place = shop.workspaces.place(task.id)
    place.rename(place.with_name("elsewhere"))

    assert shop.workspaces.take(shop.project, task) == last


def test_a_clone_that_never_was_leaves_the_base_commit(shop) -> None:
    task = shop.task()

    change = shop.workspaces.take(shop.project, task)

    assert (change.commit, change.files) == (task.pinned.base_commit, ())


def test_a_clone_that_was_swapped_for_a_link_is_not_followed(shop, tmp_path) -> None:
    task = _begun(shop)
    place = shop.workspaces.place(task.id)
    place.rename(tmp_path / "moved")
    (tmp_path / "moved" / "new").write_text("n")
    place.symlink_to(tmp_path / "moved")

    assert shop.workspaces.take(shop.project, task).files == ()


# --- clones that attack -------------------------------------------------------------------------

EVIL = """
evil="touch {marker}; cat"
plant() {{
  git -C "$1" config core.fsmonitor "$evil"
  git -C "$1" config core.hooksPath "$PWD/hooks"
  git -C "$1" config uploadpack.packObjectsHook "$evil"
  git -C "$1" config core.alternateRefsCommand "$evil"
  git -C "$1" config core.sshCommand "$evil"
  git -C "$1" config core.gitProxy "$evil"
  git -C "$1" config filter.x.clean "$evil"
  git -C "$1" config filter.x.smudge "$evil"
  git -C "$1" config filter.x.process "$evil"
  git -C "$1" config diff.external "$evil"
  git -C "$1" config diff.x.textconv "$evil"
  git -C "$1" config diff.x.command "$evil"
  git -C "$1" config merge.x.driver "$evil"
  git -C "$1" config gpg.program "$evil"
  git -C "$1" config commit.gpgSign true
  git -C "$1" config alias.upload-pack "!$evil"
  git -C "$1" config include.path "$PWD/more.config"
}}
mkdir hooks
for hook in pre-commit post-checkout reference-transaction post-index-change pre-auto-gc \\
  proc-receive update post-update; do
  printf '#!/bin/sh\\ntouch {marker}\\n' > hooks/$hook; chmod +x hooks/$hook; done
echo '* filter=x diff=x merge=x' > .gitattributes
git init -q nested; echo n > nested/n; git -C nested add n
GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x \\
  git -C nested commit -qm n
echo '* filter=x' > nested/.gitattributes; echo m >> nested/n
mkdir -p deep; cp -r nested deep/er
git add -f nested deep 2>/dev/null
plant nested; plant deep/er; plant .
echo n > new
"""


def test_nothing_that_a_clone_configures_is_ever_run(shop, tmp_path) -> None:
    marker = tmp_path / "ran"
    task = _begun(shop)
    done = shop.agent(task, EVIL.format(marker=marker))
    marker.unlink(missing_ok=True)  # the agent's own git ran it already, without a sandbox

    change = shop.workspaces.take(shop.project, task)
    shop.workspaces.diff(shop.project, task, change.commit)
    shop.workspaces.checkout(
        candidate_of(shop.project, task, change.commit), shop.home / "runs" / "1"
    )
    shop.workspaces.publish(shop.project, task, change.commit)
    shop.workspaces.release(shop.project, task)

    assert done.code == 0, done.err
    assert not marker.exists()
    assert "new" in change.files
    assert not [it for it in change.files if it.startswith(("nested/", "deep/"))]


def test_a_nested_repository_does_not_stop_the_rest(shop) -> None:
    task = _begun(shop)
    shop.agent(
        task,
        "git init -q in; echo 1 > in/file; mkdir -p 'we ird'; git init -q 'we ird/x\ny';"
        "mkdir empty; touch empty/.git; mkdir half; mkdir half/.git; echo n > new",
    )

    assert shop.workspaces.take(shop.project, task).files == ("new",)


def test_what_is_no_plain_file_or_cannot_be_read_is_left_out(shop) -> None:
    shop.commit("was-file")
    task = _begun(shop)
    shop.agent(
        task,
        "mkfifo pipe; rm was-file; mkfifo was-file; ln -s / root; ln -s loop loop; mkdir shut;"
        "echo s > shut/s; chmod 000 shut; echo r > unread; chmod 000 unread; mkdir .GIT;"
        "echo c > .GIT/config; echo n > new;"
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'",
    )

    files = shop.workspaces.take(shop.project, task).files

    assert {"new", "root", "loop"} <= set(files)
    assert not {"pipe", "sock", ".GIT/config"} & set(files)
    shop.workspaces.release(shop.project, task)
    assert not shop.workspaces.place(task.id).exists()


def test_a_link_in_place_of_a_directory_is_taken_as_a_link(shop, tmp_path) -> None:
    shop.commit("src/code.txt", "1\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "code.txt").write_text("a secret of the host\n")
    task = _begun(shop)
    shop.agent(task, f"rm -r src; ln -s {tmp_path / 'outside'} src")

    change = shop.workspaces.take(shop.project, task)

    assert shop.files(change.commit) == ["a.txt", "src"]
    assert "secret" not in shop.workspaces.diff(shop.project, task, change.commit)


def test_objects_that_git_holds_for_dangerous_are_not_let_in(shop) -> None:
    task = _begun(shop)
    done = shop.agent(
        task,
        """
        blob=$(echo x | git hash-object -w --stdin)
        inner=$(printf '100644 blob %s\\tconfig\\n' $blob | git mktree)
        tree=$(printf '040000 tree %s\\t.git\\n' $inner | git mktree)
        git update-ref HEAD $(git commit-tree -m evil $tree -p HEAD)
        """,
    )
    before = asked(shop.judge, "for-each-ref")

    found = shop.workspaces.take(shop.project, task)

    assert isinstance(found, Unfit)
    assert done.code == 0, done.err
    assert asked(shop.judge, "for-each-ref") == before
    assert shop.workspaces.place(task.id).exists()


def test_a_replaced_commit_is_taken_as_it_really_is(shop) -> None:
    task = _begun(shop)
    shop.agent(
        task,
        "echo bad > new; git add new; git commit -qm bad; bad=$(git rev-parse HEAD);"
        "echo good > new; git commit -qam good --amend; git reset -q --hard $bad;"
        "git replace $bad $(git rev-parse HEAD@{1})",
    )

    change = shop.workspaces.take(shop.project, task)

    assert shop.shown(change.commit, "new") == "bad"
    assert "+bad" in shop.workspaces.diff(shop.project, task, change.commit)


def test_reading_that_does_not_end_is_ended_and_nothing_is_lost(shop) -> None:
    task = _begun(shop)
    shop.agent(task, "for n in $(seq 3000); do echo $n > f$n; done")
    hasty = GitWorkspaces(shop.home, sandboxed=shop.sandboxed, take_seconds=0.05)

    with pytest.raises(Unavailable, match="had not finished"):
        hasty.release(shop.project, task)

    assert (shop.workspaces.place(task.id) / "f3000").exists()
    assert len(shop.workspaces.take(shop.project, task).files) == 3000


@pytest.mark.parametrize("planted", ["link", "pipe", "directory", "words"])
def test_an_answer_that_is_not_a_plain_file_with_a_commit_is_none(tmp_path, planted) -> None:
    (tmp_path / "real").write_text("d" * 40)
    answer = tmp_path / "commit"
    match planted:
        case "link":
            answer.symlink_to(tmp_path / "real")
        case "pipe":
            os.mkfifo(answer)
        case "directory":
            answer.mkdir()
        case _:
            answer.write_text("--upload-pack=touch x")

    assert _named(tmp_path) is None
    assert _named(tmp_path / "nowhere") is None


def test_directories_deeper_than_python_recurses_are_taken_and_checked_out(shop) -> None:
    task = _begun(shop)
    deep = "/".join(["d"] * 1200)
    shop.agent(task, f"mkdir -p {deep} && echo n > {deep}/n")

    change = shop.workspaces.take(shop.project, task)
    desk = shop.home / "runs" / "1"
    shop.workspaces.checkout(candidate_of(shop.project, task, change.commit), desk)

    assert change.files == (f"{deep}/n",)
    assert shop.inside(desk, f"cat {deep}/n && git status --porcelain").out == "n\n"
    assert shop.workspaces.tree(shop.project, change.commit) == asked(
        shop.judge, "rev-parse", f"{change.commit}^{{tree}}"
    )
    shop.workspaces.discard(desk)
    shop.workspaces.release(shop.project, task)
    assert not list((shop.home / "workspaces").iterdir())
    assert not desk.exists()


@pytest.mark.parametrize("each", [50, pytest.param(1000, marks=pytest.mark.slow)])
def test_many_thousand_files_are_taken(shop, each) -> None:
    task = _begun(shop)
    place = shop.workspaces.place(task.id)
    for folder in range(100):
        (place / f"d{folder}").mkdir()
        for file in range(each):
            (place / f"d{folder}" / f"{file}").write_text(f"{folder} {file}\n")

    assert len(shop.workspaces.take(shop.project, task).files) == 100 * each


def test_a_change_says_how_many_bytes_it_adds(shop) -> None:
    task = _begun(shop)
    shop.agent(task, "printf 'two\\n' >> a.txt; head -c 5000 /dev/urandom > noise; echo '++ x' > p")

    change = shop.workspaces.take(shop.project, task)

    assert (change.size.files, change.size.added) == (3, 4 + 5000 + 5)
