"""A home that is thrown away, and the user's objects under a second name in it."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from lockgate.adapters.repository import GitRepository
from lockgate.adapters.workspaces.temporary import PREFIX, YOUNG, lend, throw_away_home
from lockgate.core.model.task import Pinned
from lockgate.errors import Unavailable
from lockgate.ports import Project


def git(root: Path, *argv: str) -> str:
    who = ("-c", "user.name=Test", "-c", "user.email=test@localhost")
    done = subprocess.run(["git", "-C", str(root), *who, *argv], capture_output=True, check=True)
    return done.stdout.decode().strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    for number in range(3):
        (root / "file").write_text(f"{number}\n")
        git(root, "add", "file")
        git(root, "commit", "--quiet", "--message", f"Number {number}")
        if number == 0:
            git(root, "gc", "--quiet")
    return root


def project_of(root: Path) -> Project:
    project = GitRepository().project_at(root)
    assert project is not None
    return project


def lent(home: Path, project: Project, commit: str, *, sandboxed: bool = True) -> Path:
    lend(home, project, Pinned(base_commit=commit, config_hash="", sandboxed=sandboxed))
    return home / "repos" / project.id


# --- the home -----------------------------------------------------------------------------------


def test_it_lies_in_the_real_home_and_is_gone_afterwards(tmp_path: Path) -> None:
    real = tmp_path / "home"
    real.mkdir()

    with throw_away_home(real) as home:
        assert home.parent == real.resolve()
        (home / "deep").mkdir()
        (home / "layers" / "kept").write_text("")

    assert not home.exists()
    assert (real / "layers" / "kept").exists()


def test_where_there_is_no_home_none_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    with throw_away_home(tmp_path / "home") as home:
        assert home.parent == tmp_path.resolve()

    assert list(tmp_path.glob(f"{PREFIX}*")) == []
    assert not (tmp_path / "home").exists()


def test_nobody_else_can_list_or_read_what_lies_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory() as everybodys:
        Path(everybodys).chmod(0o777)
        monkeypatch.setattr(tempfile, "tempdir", everybodys)
        with throw_away_home(tmp_path / "home") as home:
            (home / "checkout").mkdir()
            (home / "checkout").chmod(0o755)
            (home / "checkout" / "file").write_text("secret\n")
            mode = home.stat().st_mode & 0o777
            seen = as_nobody(f"ls -a {everybodys}")
            got = [as_nobody(f"{it} {home}{what}") for it, what in TRIED]
        monkeypatch.undo()

    assert mode == 0o700
    assert home.name in seen or os.geteuid() != 0
    assert got == [""] * len(TRIED)


TRIED = (("ls -a", ""), ("ls", "/checkout"), ("cat", "/checkout/file"))


def as_nobody(command: str) -> str:
    """What another user gets out of it, where we can become one; a user's modes say it alone."""
    if os.geteuid() != 0:
        return ""
    who = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")
    done = subprocess.run(
        [*who, "sh", "-c", f"cd / && {command}"], capture_output=True, check=False
    )
    return done.stdout.decode()


def test_what_a_killed_one_left_goes_with_the_next(tmp_path: Path) -> None:
    script = (
        "import os, sys, pathlib\n"
        "from lockgate.adapters.workspaces.temporary import throw_away_home\n"
        "with throw_away_home(pathlib.Path(sys.argv[1])) as home:\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    (left,) = tmp_path.glob(f"{PREFIX}*")

    with throw_away_home(tmp_path):
        assert left.exists(), "it may be one that is being made"
    past = left.stat().st_mtime - YOUNG - 1
    os.utime(left, (past, past))
    with throw_away_home(tmp_path):
        assert not left.exists()


def test_one_that_is_in_use_stays_however_old(tmp_path: Path) -> None:
    with throw_away_home(tmp_path) as home:
        past = home.stat().st_mtime - YOUNG - 1
        os.utime(home, (past, past))
        (tmp_path / f"{PREFIX}file").write_text("no directory")

        with throw_away_home(tmp_path):
            assert home.exists()


# --- the objects --------------------------------------------------------------------------------


@pytest.mark.parametrize("sandboxed", [True, False])
@pytest.mark.parametrize("name", ["repo", "a\n repo"])
def test_every_commit_is_there_loose_or_packed(
    repo: Path, tmp_path: Path, name: str, sandboxed: bool
) -> None:
    repo = repo.rename(tmp_path / name)
    head = git(repo, "rev-parse", "HEAD")

    place = lent(tmp_path / "home", project_of(repo), head, sandboxed=sandboxed)

    for either in ("base.git", "judge.git"):
        assert git(place / either, "rev-list", "--count", head) == "3"
    assert git(place / "base.git", "rev-parse", "main") == head


def test_what_was_borrowed_is_linked_once_it_is_enclosed(repo: Path, tmp_path: Path) -> None:
    head = git(repo, "rev-parse", "HEAD")
    lent(tmp_path / "home", project_of(repo), head, sandboxed=False)

    place = lent(tmp_path / "home", project_of(repo), head)

    repo.rename(tmp_path / "out of sight")
    assert not (place / "base.git" / "objects" / "info" / "alternates").exists()
    assert git(place / "base.git", "rev-list", "--count", head) == "3"


def test_the_users_own_objects_are_left_as_they_are(repo: Path, tmp_path: Path) -> None:
    def seen() -> dict[str, tuple[int, int, int]]:
        files = (it for it in (repo / ".git" / "objects").rglob("*") if it.is_file())
        stats = {str(it): it.stat() for it in files}
        return {name: (it.st_mode, it.st_uid, it.st_size) for name, it in stats.items()}

    before = seen()
    with throw_away_home(tmp_path / "none") as home:
        lent(home, project_of(repo), git(repo, "rev-parse", "HEAD"))

    assert seen() == before
    assert git(repo, "fsck", "--strict") == ""


@pytest.mark.parametrize("sandboxed", [True, False])
def test_what_the_repository_borrows_is_lent_too(
    repo: Path, tmp_path: Path, sandboxed: bool
) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--shared", str(repo), str(clone))
    head = git(clone, "rev-parse", "HEAD")

    place = lent(tmp_path / "home", project_of(clone), head, sandboxed=sandboxed)

    assert git(place / "base.git", "rev-list", "--count", head) == "3"


def test_a_history_that_is_cut_off_stays_cut_off(repo: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{repo}", str(clone))
    head = git(clone, "rev-parse", "HEAD")

    place = lent(tmp_path / "home", project_of(clone), head)

    assert git(place / "judge.git", "rev-list", "--count", head) == "1"


def test_a_repository_that_cannot_be_read_is_told_as_such(repo: Path, tmp_path: Path) -> None:
    project = project_of(repo)
    head = git(repo, "rev-parse", "HEAD")
    (repo / ".git" / "objects").rename(repo / "gone")

    with pytest.raises(Unavailable, match="were not lent"):
        lent(tmp_path / "home", project, head)


DISKS = (Path("/dev/shm"), Path("/var/tmp"))  # noqa: S108 - one is not that of a test's own files


def test_on_another_disk_the_objects_are_copied(repo: Path) -> None:
    there = (it for it in DISKS if os.access(it, os.W_OK))
    other = next((it for it in there if it.stat().st_dev != repo.stat().st_dev), None)
    if other is None:
        pytest.skip("needs a second file system at /dev/shm or /var/tmp")
    head = git(repo, "rev-parse", "HEAD")

    with tempfile.TemporaryDirectory(dir=other) as name:
        place = lent(Path(name), project_of(repo), head)

        assert git(place / "base.git", "rev-list", "--count", head) == "3"
