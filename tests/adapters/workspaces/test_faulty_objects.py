"""Work whose objects git's own check refuses: what is mended, and what goes back to its author."""

from pathlib import Path

import pytest

from lockgate.core.model.findings import Location, Priority
from lockgate.ports import Change, Unfit
from tests.adapters.workshop import BARE_AT_LENGTH, BOXED, Workshop, asked, git

WHO = "author a <a@x> 1700000000 +0000\\ncommitter a <a@x> 1700000000 +0000"
MAKE = """
commit() {  # a commit's lines after its tree and its parent, by hand
  printf "tree %s\\nparent %s\\n$3\\n" "$1" "$2" | git hash-object -t commit -w --literally --stdin
}
echo 2 >> a.txt; git commit -qam two
tree=$(git rev-parse 'HEAD^{tree}') good=$(git rev-parse HEAD)
"""
COMMITS = {
    "zero-padded date": WHO.replace("1700000000", "01700000000"),
    "no address": WHO.replace("author a <a@x>", "author a"),
    "no author": WHO.partition("\\n")[2],
    "a NUL": WHO + "\\n\\nnul \\000 here",
    "no committer": WHO.partition("\\n")[0],
}


@pytest.fixture(params=[BOXED, BARE_AT_LENGTH])
def shop(tmp_path: Path, request: pytest.FixtureRequest) -> Workshop:
    return Workshop.at(tmp_path, sandboxed=request.param)


def _begun(shop: Workshop, command: str):
    task = shop.task()
    shop.workspaces.prepare(shop.project, task)
    done = shop.agent(task, f"set -e; {MAKE}{command}")
    assert done.code == 0, done.err
    return task


def _sound(shop: Workshop, commit: str) -> None:
    """Nothing that is reachable from it, or lies about in judge.git, is refused by fsck."""
    asked(shop.judge, "fsck", "--strict", "--no-dangling")
    assert commit in asked(shop.judge, "for-each-ref", "--format=%(objectname)")


@pytest.mark.parametrize("lines", COMMITS.values(), ids=COMMITS)
def test_a_faulty_commit_is_made_again_from_its_tree_and_its_good_parent(shop, lines) -> None:
    body = lines if "\\n\\n" in lines else f"{lines}\\n\\nThe message"
    task = _begun(shop, f"git update-ref HEAD $(commit $tree $good '{body}'); echo n > new")
    good = shop.agent(task, "git rev-parse HEAD^").out.strip()

    change = shop.workspaces.take(shop.project, task)

    assert isinstance(change, Change)
    assert change.files == ("a.txt", "new")
    assert "fsck" in change.mended
    assert asked(shop.judge, "rev-parse", f"{change.commit}^@").split() == [good]
    assert asked(shop.judge, "log", "-1", "--format=%an", change.commit) == "The User"
    _sound(shop, change.commit)


def test_the_message_of_a_commit_that_is_made_again_stays(shop) -> None:
    lines = COMMITS["zero-padded date"] + "\\n\\nFix the door\\n\\nIt stuck."
    task = _begun(shop, f"git update-ref HEAD $(commit $tree $good '{lines}')")

    change = shop.workspaces.take(shop.project, task)

    assert asked(shop.judge, "log", "-1", "--format=%B", change.commit).strip() == (
        "Fix the door\n\nIt stuck.\n\nCo-authored-by: scripted <scripted@localhost>"
    )


def test_what_was_made_again_is_the_same_change_each_time(shop) -> None:
    lines = COMMITS["zero-padded date"]
    task = _begun(shop, f"git update-ref HEAD $(commit $tree $good '{lines}'); echo n > new")

    first = shop.workspaces.take(shop.project, task)
    shop.agent(task, "sleep 1.1")
    again = shop.workspaces.take(shop.project, task)

    assert first == again


def test_good_commits_on_a_faulty_one_are_joined_into_one_on_its_good_parent(shop) -> None:
    lines = COMMITS["no address"]
    task = _begun(
        shop,
        f"git update-ref HEAD $(commit $tree $good '{lines}');"
        "echo 1 > one; git add one; git commit -qm one; echo 2 > two; git add two;"
        "git commit -qm two",
    )

    change = shop.workspaces.take(shop.project, task)

    assert change.files == ("a.txt", "one", "two")
    assert asked(shop.judge, "rev-list", "--count", f"{task.pinned.base_commit}..{change.commit}")
    _sound(shop, change.commit)


def test_an_old_history_with_faults_is_merged_by_its_tree_alone(shop) -> None:
    old = "root=$(printf 'tree %s\\n%s\\n\\nold\\n' $tree \"$(printf '{}')\" |"
    old = old.format(COMMITS["zero-padded date"])
    task = _begun(
        shop,
        f"{old} git hash-object -t commit -w --literally --stdin);"
        "git merge -q --allow-unrelated-histories -m vendored $root",
    )

    change = shop.workspaces.take(shop.project, task)

    assert change.files == ("a.txt",)
    _sound(shop, change.commit)


def test_faults_below_base_are_not_the_changes(shop) -> None:
    tree = asked(shop.root, "rev-parse", "main^{tree}")
    raw = f"tree {tree}\n" + COMMITS["zero-padded date"].replace("\\n", "\n") + "\n\nold\n"
    (shop.root / "raw").write_text(raw)
    old = asked(
        shop.root, "hash-object", "-t", "commit", "-w", "--literally", str(shop.root / "raw")
    )
    (shop.root / "raw").unlink()
    git(shop.root, "reset", "--quiet", "--hard", old)
    task = _begun(shop, "true")

    change = shop.workspaces.take(shop.project, task)

    assert (change.files, change.mended) == (("a.txt",), "")


TREES = {
    "a command in .gitmodules": (
        (
            "printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = u\\n\\tupdate = !touch x\\n'"
            " > .gitmodules; git add .gitmodules; git commit -qm sub"
        ),
        ".gitmodules",
        "gitmodulesUpdate",
    ),
    "a .git inside": (
        (
            "inner=$(printf '100644 blob %s\\tconfig\\n' $(git hash-object -w a.txt) | git mktree);"
            "evil=$(printf '040000 tree %s\\t.git\\n' $inner | git mktree);"
            "top=$(printf '040000 tree %s\\tsrc\\n' $evil | git mktree);"
            "git update-ref HEAD $(git commit-tree -m evil $top -p HEAD)"
        ),
        "src",
        "hasDotgit",
    ),
    "a command in .gitmodules that was not committed": (
        "printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = -u./evil\\n' > .gitmodules",
        ".gitmodules",
        "gitmodulesUrl",
    ),
}


@pytest.mark.parametrize(("command", "file", "fault"), TREES.values(), ids=TREES)
def test_a_faulty_file_is_a_finding_for_its_author_and_stays_outside(
    shop, command, file, fault
) -> None:
    task = _begun(shop, command)
    before = asked(shop.judge, "for-each-ref")

    found = shop.workspaces.take(shop.project, task)

    assert isinstance(found, Unfit)
    (finding,) = found.findings
    assert (finding.priority, finding.location) == (Priority.P0_CRITICAL, Location(file))
    assert fault in finding.issue
    assert asked(shop.judge, "for-each-ref") == before
    _nothing_lies_about(shop)


def _nothing_lies_about(shop: Workshop) -> None:
    asked(shop.judge, "fsck", "--strict", "--no-dangling")
    assert not [it.name for it in shop.judge.parent.iterdir() if it.name.startswith(".new")]


def test_a_faulty_file_that_was_taken_out_again_does_not_come_along(shop) -> None:
    bad = TREES["a command in .gitmodules"][0]
    task = _begun(shop, f"{bad}; git rm -q .gitmodules; git commit -qm 'Take it out'")

    change = shop.workspaces.take(shop.project, task)

    assert change.files == ("a.txt",)
    assert "gitmodulesUpdate" in change.mended
    _sound(shop, change.commit)


def test_a_clone_whose_work_is_unfit_is_not_removed_and_holds_nobody_up(shop) -> None:
    task = _begun(shop, TREES["a command in .gitmodules"][0])

    shop.workspaces.release(shop.project, task)

    assert (shop.workspaces.place(task.id) / ".gitmodules").exists()
    assert shop.workspaces.keep_within(0, [(shop.project, task)]) == ()
