"""The user's repository, asked through a real git."""

import contextlib
import os
import subprocess
from pathlib import Path

import pytest

from lockgate.adapters.repository import GitRepository
from lockgate.core.config.settings import Branch
from lockgate.errors import Refused, Unavailable
from lockgate.ports import Standing
from tests.scenarios.world import a_repository, git

REPOSITORY = GitRepository()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = a_repository(tmp_path / "a repo ü")
    git(root, "config", "user.name", "t")
    git(root, "config", "user.email", "t@localhost")
    return root


def _commit(root: Path, name: str, text: str = "x\n") -> None:
    (root / name).write_text(text)
    git(root, "add", name)
    git(root, "commit", "--quiet", "--message", name)


def _project(root: Path):
    project = REPOSITORY.project_at(root)
    assert project is not None
    return project


# --- projects -----------------------------------------------------------------------------------


def test_every_directory_of_a_repository_is_the_same_project(root, tmp_path) -> None:
    (root / "deep" / "down").mkdir(parents=True)
    (tmp_path / "by-link").symlink_to(root)

    ids = {_project(place).id for place in (root, root / "deep" / "down", tmp_path / "by-link")}

    assert len(ids) == 1
    assert _project(root).name == "a repo ü"


def test_a_linked_worktree_belongs_to_its_main_repository(root, tmp_path) -> None:
    git(root, "worktree", "add", "--quiet", str(tmp_path / "tree"), "-b", "other")

    assert _project(tmp_path / "tree").id == _project(root).id


def test_outside_of_git_there_is_no_project(tmp_path) -> None:
    assert REPOSITORY.project_at(tmp_path) is None


def test_a_hook_that_calls_us_does_not_point_us_elsewhere(root, tmp_path, monkeypatch) -> None:
    other = a_repository(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))

    assert _project(root).name == "a repo ü"


def test_a_path_may_have_a_newline(tmp_path) -> None:
    root = a_repository(tmp_path / "a\nrepo")

    assert (_project(root).root, _project(root).name) == (str(root), "a\nrepo")


def test_a_bare_repository_is_a_project(tmp_path) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "bare.git")

    project = _project(tmp_path / "bare.git")

    assert project.root == project.common_dir == str(tmp_path / "bare.git")


# --- the work tree ------------------------------------------------------------------------------


def _standing(directory: Path) -> Standing:
    found = REPOSITORY.standing(directory)
    assert found is not None
    return found


def test_outside_of_git_nobody_stands_anywhere(tmp_path) -> None:
    assert REPOSITORY.standing(tmp_path) is None


def test_what_is_checked_out_is_the_base_only_while_it_is_the_only_branch(root) -> None:
    git(root, "branch", "--move", "trunk")
    assert _standing(root).base == REPOSITORY.base_branch(_project(root))

    git(root, "checkout", "--quiet", "-b", "other")

    assert _standing(root).base is None
    assert _base_of(root) == "other", "a task starts where its user stands"


def test_a_branch_that_was_recorded_is_the_base_while_it_is_there(root, tmp_path) -> None:
    repository = GitRepository(bases=tmp_path / "home" / "bases")
    project = _project(root)
    git(root, "branch", "--move", "trunk")
    git(root, "checkout", "--quiet", "-b", "other")

    repository.record_base(project, "trunk")
    found = repository.standing(root)

    assert found is not None
    assert found.base == Branch("trunk", REPOSITORY.commit_of(project, "trunk") or "")
    git(root, "branch", "--quiet", "-D", "trunk")
    gone = repository.standing(root)
    assert gone is not None
    assert gone.base == Branch("other", found.commit or "")


def test_the_remotes_default_branch_is_the_base_and_local_branches_come_first(
    root, tmp_path
) -> None:
    git(root, "branch", "--move", "develop")
    git(root, "branch", "main")
    git(tmp_path, "clone", "--quiet", str(root), "clone")
    there = tmp_path / "clone"
    _commit(there, "more.txt")

    here, fetched = _standing(there), REPOSITORY.standing(there, fetched_first=True)

    assert here.base == Branch("develop", here.commit or "")
    assert fetched is not None
    assert fetched.base is not None
    assert (fetched.base.ref, fetched.base.commit == here.commit) == ("origin/develop", False)
    assert REPOSITORY.tip(_project(there), "main", fetched_first=False) == Branch(
        "main", fetched.base.commit, "origin/main"
    )
    assert REPOSITORY.tip(_project(there), "none", fetched_first=True) is None


def test_a_work_tree_stands_on_a_commit_and_a_branch_with_what_was_edited_in_it(root) -> None:
    _commit(root, "b.txt")
    (root / "deep").mkdir()
    clean = _standing(root / "deep")
    (root / "a.txt").write_text("edited\n")
    git(root, "mv", "b.txt", "c d.txt")
    (root / "new\n").write_text("")

    found = _standing(root)

    assert clean.base == found.base == REPOSITORY.base_branch(_project(root))
    assert (clean.commit, clean.branch) == (REPOSITORY.revision(_project(root), "HEAD"), "main")
    assert (found.commit, found.branch) == (clean.commit, "main")
    assert found.project == _project(root)
    assert clean.edited == ()
    assert sorted(found.edited) == ["a.txt", "b.txt", "c d.txt", "new\n"]


def test_what_clashes_in_a_work_tree_counts_as_edited(root) -> None:
    git(root, "checkout", "--quiet", "-b", "other")
    _commit(root, "a.txt", "theirs\n")
    git(root, "checkout", "--quiet", "main")
    _commit(root, "a.txt", "ours\n")
    with contextlib.suppress(subprocess.CalledProcessError):
        git(root, "merge", "other")

    assert _standing(root).edited == ("a.txt",)


def test_a_detached_head_is_on_no_branch_and_a_new_repository_on_no_commit(root, tmp_path) -> None:
    git(root, "checkout", "--quiet", "--detach")
    git(tmp_path, "init", "--quiet", "--initial-branch=main", "new")
    git(tmp_path, "clone", "--quiet", "--bare", str(root), "bare.git")

    detached, new, bare = (_standing(it) for it in (root, tmp_path / "new", tmp_path / "bare.git"))

    assert (detached.commit, detached.branch) == (bare.commit, "")
    assert (new.commit, new.branch) == (None, "main")
    assert (bare.branch, bare.edited) == ("main", ())


# --- branches -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fix-login", "feature/x", "ümlaut", "a.b_c"])
def test_what_git_takes_for_a_branch_is_one(name) -> None:
    assert REPOSITORY.valid_branch(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-x",
        "--help",
        "a b",
        "a..b",
        "a~1",
        "a^",
        "a:b",
        "/a",
        "a/",
        "a.lock",
        "@{",
        "a\nb",
        "\x1b",
    ],
)
def test_what_git_does_not_take_is_none(name) -> None:
    assert not REPOSITORY.valid_branch(name)


def _base_of(root: Path) -> str:
    base = REPOSITORY.base_branch(_project(root))
    assert base is not None
    assert base.commit == REPOSITORY.commit_of(_project(root), base.name)
    return base.name


@pytest.mark.parametrize(("names", "base"), [(["main", "x"], "main"), (["master"], "master")])
def test_the_usual_base_is_found_whatever_is_checked_out(tmp_path, names, base) -> None:
    root = a_repository(tmp_path / "r")
    git(root, "branch", "--move", names[0])
    for name in names[1:]:
        git(root, "checkout", "--quiet", "-b", name)

    assert _base_of(root) == base


def test_with_no_usual_base_it_is_what_is_checked_out(tmp_path) -> None:
    root = a_repository(tmp_path / "r")
    git(root, "branch", "--move", "trunk")

    assert _base_of(root) == "trunk"


def test_a_repository_without_commits_has_no_base(tmp_path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=main")

    assert REPOSITORY.base_branch(_project(tmp_path)) is None


def test_a_file_is_read_from_the_commit_and_not_from_the_work_tree(root) -> None:
    project = _project(root)
    commit = REPOSITORY.commit_of(project, "main")
    assert commit is not None
    (root / "a.txt").write_text("edited\n")

    assert REPOSITORY.file_at(project, commit, "a.txt") == "one\n"
    assert REPOSITORY.file_at(project, commit, "no.txt") is None


# --- landed -------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["--no-ff", "--ff-only", "--squash"])
def test_a_change_has_landed_however_it_was_merged(root, way) -> None:
    git(root, "checkout", "--quiet", "-b", "change")
    _commit(root, "b.txt")
    git(root, "checkout", "--quiet", "main")
    if way != "--ff-only":
        _commit(root, "unrelated.txt")
    assert not REPOSITORY.landed(_project(root), "change", "main")

    git(root, "merge", "--quiet", way, "change")
    if way == "--squash":
        git(root, "commit", "--quiet", "--message", "squashed")

    assert REPOSITORY.landed(_project(root), "change", "main")


def test_a_change_of_which_a_part_is_missing_has_not_landed(root) -> None:
    git(root, "checkout", "--quiet", "-b", "change")
    _commit(root, "b.txt")
    first = REPOSITORY.commit_of(_project(root), "change")
    _commit(root, "c.txt")
    git(root, "checkout", "--quiet", "main")

    git(root, "merge", "--quiet", str(first))

    assert not REPOSITORY.landed(_project(root), "change", "main")


def test_a_branch_that_is_not_there_has_not_landed(root) -> None:
    assert not REPOSITORY.landed(_project(root), "nothing", "main")
    assert not REPOSITORY.landed(_project(root), "main", "nothing")


def test_a_change_that_conflicts_has_not_landed(root) -> None:
    git(root, "checkout", "--quiet", "-b", "change")
    _commit(root, "a.txt", "theirs\n")
    git(root, "checkout", "--quiet", "main")
    _commit(root, "a.txt", "ours\n")

    assert not REPOSITORY.landed(_project(root), "change", "main")


# --- writing ------------------------------------------------------------------------------------


def test_only_the_one_file_is_committed(root) -> None:
    (root / "a.txt").write_text("dirty\n")
    (root / "staged.txt").write_text("x\n")
    git(root, "add", "staged.txt")
    project = _project(root)

    REPOSITORY.write_file(project, ".lockgate/extra.toml", "x = 1\n", replace=False)
    branch = REPOSITORY.commit_file(project, ".lockgate/extra.toml", "Add it")

    assert branch == "main"
    commit = str(REPOSITORY.commit_of(project, "main"))
    assert REPOSITORY.file_at(project, commit, ".lockgate/extra.toml") == "x = 1\n"
    assert REPOSITORY.file_at(project, commit, "staged.txt") is None
    assert REPOSITORY.file_at(project, commit, "a.txt") == "one\n"


def test_a_file_that_is_there_is_replaced_only_when_asked(root) -> None:
    project = _project(root)

    with pytest.raises(Refused, match="there already"):
        REPOSITORY.write_file(project, "a.txt", "new\n", replace=False)
    REPOSITORY.write_file(project, "a.txt", "new\n", replace=True)

    assert (root / "a.txt").read_text() == "new\n"


def test_a_link_is_never_written_through(root, tmp_path) -> None:
    (tmp_path / "precious").write_text("mine\n")
    (root / "link").symlink_to(tmp_path / "precious")

    with pytest.raises(Refused):
        REPOSITORY.write_file(_project(root), "link", "new\n", replace=True)

    assert (tmp_path / "precious").read_text() == "mine\n"


def test_a_directory_that_cannot_be_made_is_told(root) -> None:
    with pytest.raises(Unavailable, match="not written"):
        REPOSITORY.write_file(_project(root), "a.txt/config.toml", "x\n", replace=False)


def test_a_commit_that_a_hook_refuses_is_told_with_its_words(root) -> None:
    hook = root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho not on a Friday >&2\nexit 1\n")
    hook.chmod(0o755)
    project = _project(root)
    REPOSITORY.write_file(project, "b.txt", "x\n", replace=False)

    with pytest.raises(Unavailable, match="not on a Friday"):
        REPOSITORY.commit_file(project, "b.txt", "Add it")


def test_a_commit_by_a_person_whom_git_does_not_know_is_told_in_three_short_lines(
    root, monkeypatch
) -> None:
    project = _project(root)
    REPOSITORY.write_file(project, "b.txt", "x\n", replace=False)
    for name in (
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    for key in ("user.name", "user.email"):
        subprocess.run(["git", "-C", str(root), "config", "--unset", key], check=False)
    subprocess.run(["git", "-C", str(root), "config", "user.useConfigOnly", "true"], check=True)

    with pytest.raises(Unavailable) as caught:
        REPOSITORY.commit_file(project, "b.txt", "Add it")

    assert caught.value.why == "git does not know your name and email address"
    assert caught.value.fix.startswith('git config --global user.name "Your Name" && ')
    assert caught.value.fix.endswith("git add b.txt && git commit b.txt")


def test_of_a_hook_that_says_much_the_end_is_told(root) -> None:
    hook = root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nseq 1 500 >&2\necho 'file b.txt: bad' >&2\nexit 1\n")
    hook.chmod(0o755)
    project = _project(root)
    REPOSITORY.write_file(project, "b.txt", "x\n", replace=False)

    with pytest.raises(Unavailable) as caught:
        REPOSITORY.commit_file(project, "b.txt", "Add it")

    assert caught.value.why == "499; 500; file b.txt: bad"


def test_a_git_that_is_not_there_is_told(tmp_path) -> None:
    with pytest.raises(Unavailable, match="git-nowhere was not run") as caught:
        GitRepository("git-nowhere").project_at(tmp_path)

    assert "install" in caught.value.fix
    assert os.environ.get("GIT_DIR") is None
