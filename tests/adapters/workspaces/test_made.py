"""Repositories that we write ourselves: git finds nothing wrong with them, and starts seldom."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.adapters.run import run
from lockgate.adapters.workspaces.temporary import lend
from lockgate.core.config.settings import Settings
from lockgate.core.model.task import Pinned, Task
from lockgate.errors import Unavailable
from lockgate.ports import candidate_of
from tests.adapters.workshop import BARE, BOXED, Workshop, asked, git

DISKS = (Path("/dev/shm"), Path("/var/tmp"))  # noqa: S108 - one is not that of a test's own files

WHO = ("-c", "user.name=t", "-c", "user.email=t@localhost")


@pytest.fixture(params=[BOXED, BARE])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Workshop:
    return Workshop.at(tmp_path, sandboxed=request.param)


@pytest.fixture
def bare(tmp_path: Path) -> Workshop:
    return Workshop.at(tmp_path, sandboxed=False)


def with_a_change(shop: Workshop, command: str, **fields: object) -> tuple[Task, str]:
    task = shop.task(**fields)
    shop.workspaces.prepare(shop.project, task)
    done = shop.agent(task, command)
    assert done.code == 0, done.err
    return task, shop.taken(task).commit


def packs(git_dir: Path) -> list[Path]:
    return list((git_dir / "objects" / "pack").glob("*.pack"))


# --- as git makes them --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sha1", "sha256"])
def test_git_finds_nothing_wrong_with_any_of_them(tmp_path, kind) -> None:
    root = tmp_path / kind
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main", f"--object-format={kind}")
    shop = Workshop(root, tmp_path / "home", sandboxed=False)
    shop.commit("a file")
    task, commit = with_a_change(shop, "echo y > y; git add y; git commit -qm y; echo z > z")
    desk = shop.home / "runs" / "desk"

    shop.workspaces.checkout(candidate_of(shop.project, task, commit), desk)

    for place in (desk, shop.workspaces.place(task.id)):
        look = "git fsck --strict && git status --porcelain && git log --format=%s origin/main"
        assert shop.inside(place, look).out.splitlines()[-1:] == ["a file"]
        assert shop.inside(place, look).err == ""
    assert shop.inside(desk, "git status --porcelain; git fetch 2>&1; git gc 2>&1").out == ""
    assert asked(desk, "rev-parse", "HEAD", "origin/HEAD").split() == [
        commit,
        asked(root, "rev-parse", "main"),
    ]
    for repository in (shop.judge, shop.workspaces.base(shop.project)):
        assert asked(repository, "fsck", "--strict", "--no-dangling") == ""


def test_a_base_branch_whose_name_is_a_path_works_too(shop) -> None:
    git(shop.root, "checkout", "--quiet", "-b", "feature/x")
    tip = shop.commit("on feature", branch="feature/x")
    pinned = Pinned(base_commit=tip, config_hash="c", base="feature/x")

    task, commit = with_a_change(
        shop, "git fetch -q && echo two > b.txt", pinned=pinned, branch="a/task/of-mine"
    )
    desk = shop.home / "runs" / "desk"
    shop.workspaces.checkout(candidate_of(shop.project, task, commit), desk)

    seen = shop.inside(desk, "git rev-parse origin/feature/x && git diff --name-only origin/HEAD")
    assert seen.out.split() == [tip, "b.txt"], seen.err
    assert shop.agent(task, "git symbolic-ref HEAD").out == "refs/heads/a/task/of-mine\n"


# --- what is copied -----------------------------------------------------------------------------


def test_a_checkout_of_the_base_commit_copies_nothing(bare) -> None:
    task, desk = bare.task(), bare.home / "runs" / "desk"

    bare.workspaces.checkout(candidate_of(bare.project, task, task.pinned.base_commit), desk)

    objects = desk / ".git" / "objects"
    assert [it.name for it in objects.rglob("*") if it.is_file()] == ["alternates"]
    assert bare.inside(desk, "git fsck --strict && git status --porcelain").out == ""


def test_a_checkout_of_a_change_has_what_base_lacks_and_no_more(bare) -> None:
    bare.commit("large", "large\n" * 1000)
    task, commit = with_a_change(bare, "echo y > y; git add y; git commit -qm y; echo z > z")
    desk = bare.home / "runs" / "desk"

    bare.workspaces.checkout(candidate_of(bare.project, task, commit), desk)

    (pack,) = packs(desk / ".git")
    listed = asked(desk, "verify-pack", "-v", str(pack))
    kinds = [line.split()[1] for line in listed.splitlines() if len(line.split()) in {5, 7}]
    assert sorted(kinds) == ["blob", "blob", "commit", "commit", "tree", "tree"]


def test_a_change_that_merged_a_newer_target_is_whole(shop) -> None:
    task = shop.task()
    shop.workspaces.prepare(shop.project, task)
    newer = shop.commit("newer")
    shop.workspaces.prepare(shop.project, shop.task("other-1", branch="other"))  # brings it
    work = "echo y > y; git add y; git commit -qm y"
    assert shop.agent(task, f"{work}; git fetch -q && git merge -q -m m origin/main").code == 0
    commit = shop.workspaces.take(shop.project, task).commit
    desk = shop.home / "runs" / "desk"

    shop.workspaces.checkout(candidate_of(shop.project, task, commit), desk)

    assert (desk / "newer").exists()
    seen = shop.inside(desk, f"git fsck --strict && git merge-base --is-ancestor {newer} HEAD")
    assert seen.code == 0, seen.err


def test_a_change_on_a_history_with_nothing_in_common_is_whole(bare) -> None:
    task, commit = with_a_change(
        bare, "git checkout -q --orphan new && git rm -qrf . && echo z > z && git add z &&"
        " git commit -qm z"
    )  # fmt: skip
    desk = bare.home / "runs" / "desk"

    bare.workspaces.checkout(candidate_of(bare.project, task, commit), desk)

    seen = bare.inside(desk, "git fsck --strict && git log --format=%s && ls")
    assert seen.out.split() == ["z", "z"], seen.err


@pytest.mark.parametrize("deepened", [False, True])
def test_a_checkout_of_a_change_where_history_is_cut_off(shop, tmp_path, deepened) -> None:
    shop.commit("b.txt")
    shop.commit("c.txt")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{shop.root}", str(shallow))
    shop.root = shallow
    task, commit = with_a_change(shop, "echo z > z && git add z && git commit -qm z")
    if deepened:
        git(shallow, "fetch", "--quiet", "--unshallow")
        shop.commit("d.txt")
        shop.workspaces.prepare(shop.project, shop.task("other-1", branch="other"))
    desk = shop.home / "runs" / "desk"

    shop.workspaces.checkout(candidate_of(shop.project, task, commit), desk)

    look = "git fsck --strict --no-dangling && git log --format=%s && git status --porcelain"
    seen = shop.inside(desk, look)
    assert seen.out.split()[:2] == ["z", "c.txt"], seen.err


def test_a_change_is_copied_to_another_disk_too(bare) -> None:
    there = (it for it in DISKS if os.access(it, os.W_OK))
    other = next((it for it in there if it.stat().st_dev != bare.root.stat().st_dev), None)
    if other is None:
        pytest.skip("needs a second file system at /dev/shm or /var/tmp")
    task, commit = with_a_change(bare, "echo z > z")

    with tempfile.TemporaryDirectory(dir=other) as elsewhere:
        desk = Path(elsewhere) / "desk"
        bare.workspaces.checkout(candidate_of(bare.project, task, commit), desk)

        assert bare.inside(desk, "git fsck --strict && git status --porcelain").out == ""
        assert (desk / "z").exists()
    assert not list((bare.judge / "objects" / "pack").glob("tmp_*"))


def test_what_is_lent_is_not_copied_again(bare) -> None:
    git(bare.root, "checkout", "--quiet", "-b", "mine")
    head, task = bare.commit("z", branch="mine"), bare.task()
    lend(bare.home, bare.project, task.pinned)
    desk = bare.home / "runs" / "desk"

    bare.workspaces.checkout(candidate_of(bare.project, task, head), desk)

    assert packs(desk / ".git") == []
    assert bare.inside(desk, "git fsck --strict && git status --porcelain").out == ""


def test_a_commit_that_is_not_whole_is_told_and_leaves_nothing(bare) -> None:
    task = bare.task()
    bare.workspaces.prepare(bare.project, task)
    entry = bare.root.parent / "entry"
    entry.write_text(f"100644 blob {'d' * 40}\tgone\n")
    made = run(("git", f"--git-dir={bare.judge}", "mktree", "--missing"), given=entry)
    commit = asked(bare.judge, *WHO, "commit-tree", "-m", "x", made.out.strip())
    desk = bare.home / "runs" / "desk"

    with pytest.raises(Unavailable, match="was not taken from"):
        bare.workspaces.checkout(candidate_of(bare.project, task, commit), desk)

    assert not list(desk.parent.iterdir())


# --- what a change is ---------------------------------------------------------------------------


def test_a_change_names_its_files_in_order_however_they_are_called(bare) -> None:
    names = ("a-b", "a/b", ":100 R", "two\nlines", " R", '"', "é")
    task = bare.task()
    place = bare.workspaces.prepare(bare.project, task)
    (place / "a").mkdir()
    for name in names:
        (place / name).write_text(f"{name}\n")
    assert bare.agent(task, "git mv a.txt 'R old name' && ln -s a-b link && chmod +x a-b").code == 0

    change = bare.workspaces.take(bare.project, task)

    wanted = {*names, "a.txt", "R old name", "link"}
    assert list(change.files) == sorted(wanted, key=os.fsencode)


def test_the_same_lines_on_another_base_are_the_same_patch(bare) -> None:
    work = "echo z > z && mv a.txt b.txt"
    task, commit = with_a_change(bare, work)
    base = bare.commit("elsewhere")
    other, moved = with_a_change(bare, work, id="other-1", branch="other")

    one = bare.workspaces.change(candidate_of(bare.project, task, commit))

    assert bare.workspaces.change(candidate_of(bare.project, other, moved)).patch == one.patch
    assert bare.workspaces.change(candidate_of(bare.project, other, base)).patch != one.patch


def test_a_commit_with_the_files_of_its_base_changes_nothing(bare) -> None:
    base = asked(bare.root, "rev-parse", "main")
    task, commit = with_a_change(bare, "git commit -q --allow-empty -m empty")

    empty = bare.workspaces.change(candidate_of(bare.project, task, commit))

    assert commit != base
    assert empty == replace(
        bare.workspaces.change(candidate_of(bare.project, task, base)), commit=commit
    )


# --- how often git is started -------------------------------------------------------------------


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A line for each git, however it was started."""
    place, calls = tmp_path / "shim", tmp_path / "calls"
    place.mkdir()
    for name in ("git", "env", "sh"):
        shim = place / name
        real = shutil.which(name)
        shim.write_text(f'#!/bin/sh\necho "{name} $*" >>"{calls}"\nexec {real} "$@"\n')
        shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    return calls


@pytest.mark.parametrize(("command", "most"), [("true", 2), ("echo z > z", 3)])
def test_a_checkout_starts_few_programs(bare, started, command, most) -> None:
    task, commit = with_a_change(bare, command)
    project, desk = bare.project, bare.home / "runs" / "desk"
    started.unlink()

    bare.workspaces.checkout(candidate_of(project, task, commit), desk)
    settings = Settings(formula="none", gates=())
    bare.workspaces.set_up(candidate_of(project, task), settings, desk)

    assert len(started.read_text().splitlines()) <= most


def test_lending_starts_no_program_and_a_change_one(bare, started) -> None:
    git(bare.root, "checkout", "--quiet", "-b", "mine")
    head, task, project = bare.commit("z", branch="mine"), bare.task(), bare.project
    started.unlink()

    lend(bare.home, project, task.pinned)
    assert not started.exists()
    change = bare.workspaces.change(candidate_of(project, task, head))

    assert change.files == ("z",)
    assert len(started.read_text().splitlines()) == 1


# --- who commits in it --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "who"),
    [
        ("[user]\nname = First\nname = Last\nemail = l@x\n", "Last <l@x>"),
        ('[user]\nname = "  "\nemail = l@x\n', "codex <l@x>"),
        ("[User]\nEmail = l@x\n", "codex <l@x>"),
        ('[user]\nname = "Two \\"Words\\" é"\n', 'Two "Words" é <codex@localhost>'),
        ('[user "x"]\nname = Other\n', "codex <codex@localhost>"),
    ],
)
def test_the_user_is_who_their_git_says(bare, config, who) -> None:
    file = bare.root / ".git" / "config"
    for key in ("name", "email"):
        git(bare.root, "config", "--unset", f"user.{key}")
    file.write_text(file.read_text() + config)
    task = bare.task(agent="codex")
    place = bare.workspaces.prepare(bare.project, task)

    name, email = (asked(place, "config", f"user.{it}") for it in ("name", "email"))

    assert f"{name} <{email}>" == who


# --- who may read it ----------------------------------------------------------------------------


def test_an_umask_that_shuts_others_out_does_not_shut_them_out_of_what_is_lent(bare) -> None:
    git(bare.root, "checkout", "--quiet", "-b", "feature/x")
    (bare.root / ".git" / "shallow").write_text(f"{asked(bare.root, 'rev-parse', 'main')}\n")
    before = os.umask(0o077)
    try:
        commit = asked(bare.root, "rev-parse", "main")
        lend(bare.home, bare.project, Pinned(base_commit=commit, config_hash="", base="feature/x"))
    finally:
        os.umask(before)

    base = bare.workspaces.base(bare.project)
    shut = [it for it in (base, *base.rglob("*")) if not it.stat().st_mode & 0o004]
    assert shut == []
    assert all(it.stat().st_mode & 0o001 for it in (base, *base.rglob("*")) if it.is_dir())
