"""Git's own files, as we write them by hand: compared with git, which makes and reads the same."""

from pathlib import Path

import pytest

from lockgate.adapters.workspaces.git_files import (
    SHARED,
    borrow,
    link_objects,
    make_repository,
    ref_at,
    set_ref,
    share_shallow,
    write_commit,
)
from tests.adapters.workshop import asked, git

WHO = ("-c", "user.name=t", "-c", "user.email=t@localhost")
KINDS = pytest.mark.parametrize("kind", ["sha1", "sha256"])


def a_repository(root: Path, kind: str, *, packed: bool = False) -> str:
    """Two commits, made by git; the answer is the second."""
    git(root.parent, "init", "--quiet", f"--object-format={kind}", "-b", "main", root.name)
    for number in range(2):
        (root / "file").write_text(f"{number}\n")
        git(root, "add", "file")
        git(root, *WHO, "commit", "--quiet", "-m", f"commit {number}")
    if packed:
        git(root, "gc", "--quiet")
    return asked(root, "rev-parse", "HEAD")


@pytest.mark.parametrize("kind", ["sha1", "sha256"])
@pytest.mark.parametrize("bare", [True, False])
def test_a_new_repository_is_configured_as_git_would_have_it(tmp_path, kind, bare) -> None:
    how = ("--bare", "--shared=0644") if bare else ()
    git(tmp_path, "init", "--template=", f"--object-format={kind}", *how, "theirs")
    commit = "d" * (64 if kind == "sha256" else 40)

    make_repository(tmp_path / "ours", commit, SHARED if bare else "", bare=bare)

    theirs, ours = (
        dict(line.split("=") for line in asked(tmp_path / it, "config", "--list").splitlines())
        for it in ("theirs", "ours")
    )
    assert theirs.items() <= ours.items()
    assert set(ours) - set(theirs) <= {"core.ignorecase", "core.logallrefupdates"}
    assert (ours["core.ignorecase"], ours["core.logallrefupdates"]) == (
        "false",
        "false" if bare else "true",
    )


@pytest.mark.parametrize("name", ["refs/heads/../../config", "refs/heads//x", "refs/heads/.", ""])
def test_a_ref_whose_name_leads_elsewhere_is_not_written(tmp_path, name) -> None:
    make_repository(tmp_path / "it", "d" * 40, "", bare=True)
    before = sorted(tmp_path.rglob("*"))

    with pytest.raises(ValueError, match="not the name of a ref"):
        set_ref(tmp_path / "it", name, "d" * 40)

    assert sorted(tmp_path.rglob("*")) == before


@KINDS
def test_a_ref_that_we_write_is_what_git_reads_and_the_other_way_round(tmp_path, kind) -> None:
    commit = a_repository(tmp_path / "it", kind)
    git_dir = tmp_path / "it" / ".git"

    set_ref(git_dir, "refs/heads/deep/er", commit)
    set_ref(git_dir, "HEAD", "ref: refs/heads/deep/er")
    git(tmp_path / "it", "branch", "theirs")

    assert asked(tmp_path / "it", "rev-parse", "refs/heads/deep/er") == commit
    assert asked(tmp_path / "it", "symbolic-ref", "HEAD") == "refs/heads/deep/er"
    assert ref_at(git_dir, "refs/heads/theirs") == commit
    assert ref_at(git_dir, "refs/heads/none") is None


@KINDS
@pytest.mark.parametrize("message", ["plain", "two\n\nparts\n", "ö 漢 🚂", ""])
def test_a_commit_that_we_write_is_the_one_that_git_would_write(tmp_path, kind, message) -> None:
    commit = a_repository(tmp_path / "it", kind)
    tree = asked(tmp_path / "it", "rev-parse", f"{commit}^{{tree}}")
    who = "t <t@localhost> 1700000000 +0000"
    text = f"tree {tree}\nparent {commit}\nauthor {who}\ncommitter {who}\n\n{message}\n"
    (tmp_path / "text").write_bytes(text.encode())

    ours = write_commit(tmp_path / "it" / ".git", text)

    theirs = asked(tmp_path / "it", "hash-object", "-t", "commit", str(tmp_path / "text"))
    assert ours == theirs
    assert asked(tmp_path / "it", "cat-file", "-t", ours) == "commit"
    assert asked(tmp_path / "it", "rev-parse", f"{ours}^") == commit
    git(tmp_path / "it", "fsck", "--strict", "--no-dangling", ours)
    assert write_commit(tmp_path / "it" / ".git", text) == ours


@KINDS
@pytest.mark.parametrize("packed", [True, False])
def test_git_finds_the_objects_that_are_borrowed_or_linked(tmp_path, kind, packed) -> None:
    commit = a_repository(tmp_path / "theirs", kind, packed=packed)
    source = tmp_path / "theirs" / ".git" / "objects"
    for name in ("borrows", "borrows-of-it", "links"):
        make_repository(tmp_path / name, commit, "", bare=True)

    borrow(tmp_path / "borrows", str(source))
    borrow(tmp_path / "borrows-of-it", str(tmp_path / "borrows" / "objects"))
    link_objects(tmp_path / "borrows-of-it" / "objects", tmp_path / "links" / "objects")
    (tmp_path / "links" / "objects" / "info" / "alternates").unlink(missing_ok=True)

    for name in ("borrows", "borrows-of-it", "links"):
        set_ref(tmp_path / name, "refs/heads/main", commit)
        assert asked(tmp_path / name, "log", "--format=%s", "main").split("\n") == [
            "commit 1",
            "commit 0",
        ]
        git(tmp_path / name, "fsck", "--strict")
    linked = [it for it in (tmp_path / "links" / "objects").rglob("*") if it.is_file()]
    assert linked
    assert all(it.stat().st_nlink == 2 for it in linked)


def test_git_takes_a_history_for_cut_off_where_we_say_so(tmp_path) -> None:
    a_repository(tmp_path / "whole", "sha1")
    git(tmp_path, "clone", "--quiet", "--bare", "--depth=1", f"file://{tmp_path}/whole", "cut")
    commit = asked(tmp_path / "cut", "rev-parse", "HEAD")
    make_repository(tmp_path / "ours", commit, "", bare=True)
    borrow(tmp_path / "ours", str(tmp_path / "cut" / "objects"))
    set_ref(tmp_path / "ours", "refs/heads/main", commit)

    share_shallow(tmp_path / "cut", tmp_path / "ours")

    assert asked(tmp_path / "ours", "rev-parse", "--is-shallow-repository") == "true"
    assert asked(tmp_path / "ours", "rev-list", "--count", "main") == "1"
