"""Trees mixed from two commits, by real git; both sides as paths and texts."""

import os
import stat
from pathlib import Path

import pytest

from lockgate.adapters.workspaces.changes import TEXT
from lockgate.adapters.workspaces.mixed_trees import GitTrees
from lockgate.core.config.settings import EnvSettings, Settings
from lockgate.core.differential.plan import Mixed
from lockgate.core.model.task import Task
from lockgate.errors import Unavailable
from lockgate.ports import candidate_of
from lockgate.ports.differential import Blend
from tests.adapters.workshop import BARE, BOXED, Workshop, asked, git


@pytest.fixture(params=[BOXED, BARE])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Workshop:
    return Workshop.at(tmp_path, sandboxed=request.param)


@pytest.fixture
def bare(tmp_path: Path) -> Workshop:
    return Workshop.at(tmp_path, sandboxed=False)


def trees(shop: Workshop) -> GitTrees:
    return GitTrees(shop.home, sandboxed=shop.sandboxed)


def taken(shop: Workshop, task: Task) -> str:
    """The task's branch, as the user has it."""
    change = shop.workspaces.adopt(shop.project, task)
    assert change is not None
    return change.commit


def on_branch(shop: Workshop) -> Task:
    task = shop.task()
    git(shop.root, "checkout", "--quiet", "-b", task.branch)
    return task


def blended(shop: Workshop, task: Task, commit: str, **more) -> Path:
    known = {"other": commit, "mixed": Mixed((), ()), "planted": {}}
    place = shop.home / "runs" / task.id / "1-differential-change"
    blend = Blend(**{"commit": commit, **known, **more})
    trees(shop).blend(candidate_of(shop.project, task), blend, place)
    return place


def test_files_are_taken_dropped_and_planted_and_git_sees_nothing_odd(shop) -> None:
    shop.commit("tests/test_a.py", "base\n")
    shop.commit("tests/test_gone.py", "base\n")
    task = on_branch(shop)
    (shop.root / "tests" / "test_gone.py").unlink()
    shop.commit("tests/test_a.py", "change\n")
    change = shop.commit("tests/test_new.py", "change\n", branch=task.branch)
    taken(shop, task)
    mixed = Mixed(("tests/test_a.py", "tests/test_gone.py"), ("tests/test_new.py",))
    base = asked(shop.root, "rev-parse", "main")

    place = blended(
        shop, task, change, other=base, mixed=mixed, planted={"tests/test_ours.py": "ours é\n"}
    )

    texts = {it.name: it.read_text() for it in (place / "tests").iterdir()}
    assert texts == {
        "test_a.py": "base\n",
        "test_gone.py": "base\n",
        "test_ours.py": "ours é\n",
    }
    assert not list((place / ".git").glob("lockgate-*"))
    said = shop.inside(place, "git status --porcelain; git log --oneline | wc -l")
    assert said.out.strip() == "6", said


def test_a_link_or_a_file_in_the_place_of_a_directory_leads_nowhere(shop) -> None:
    outside = shop.root.parent / "outside"
    outside.mkdir()
    base = shop.commit("tests/test_a.py", "base\n")
    task = on_branch(shop)
    git(shop.root, "rm", "-r", "--quiet", "tests")
    (shop.root / "tests").symlink_to(outside)
    (shop.root / "conftest.py").symlink_to("/etc/passwd")
    change = shop.commit("a.txt", "two\n", branch=task.branch)
    taken(shop, task)

    place = blended(
        shop,
        task,
        change,
        other=base,
        mixed=Mixed(("tests/test_a.py",), ()),
        planted={"conftest.py": "ours\n", "tests/deep/test_x.py": "ours\n", "a.txt/b": "ours\n"},
    )

    assert (place / "tests").is_dir()
    assert not (place / "tests").is_symlink()
    assert (place / "tests" / "test_a.py").read_text() == "base\n"
    assert not (place / "conftest.py").is_symlink()
    assert (place / "a.txt" / "b").read_text() == "ours\n"
    assert list(outside.iterdir()) == []


def test_modes_links_and_odd_names_come_along(bare) -> None:
    name = "tests/a\nb \udcff.py"
    (bare.root / "tests").mkdir()
    (bare.root / os.fsencode(name).decode("utf-8", "surrogateescape")).write_text("odd\n")
    (bare.root / "tests" / "run.sh").write_text("x\n")
    (bare.root / "tests" / "run.sh").chmod(0o755)
    (bare.root / "tests" / "link").symlink_to("run.sh")
    base = bare.commit("tests/plain", "x\n")
    task = on_branch(bare)
    git(bare.root, "rm", "-r", "--quiet", "tests")
    change = bare.commit("a.txt", "two\n", branch=task.branch)
    taken(bare, task)
    files = trees(bare).blobs(bare.project, base)
    take = tuple(path for path in files if path.startswith("tests/"))

    place = blended(
        bare, task, change, other=base, mixed=Mixed(take, ()), planted={"tests/run.sh": "y\n"}
    )

    assert name in take
    assert (place / name).read_text() == "odd\n"
    assert (place / "tests" / "run.sh").read_text() == "y\n"
    assert (place / "tests" / "run.sh").stat().st_mode & stat.S_IXUSR
    assert (place / "tests" / "link").readlink() == Path("run.sh")


def test_the_texts_are_those_of_plain_files_that_are_utf_8_and_not_too_big(bare) -> None:
    (bare.root / "binary").write_bytes(b"\xff\xfe\x00")
    (bare.root / "empty").write_text("")
    (bare.root / "large").write_text("x" * (TEXT + 1))
    (bare.root / "fits").write_text("x" * TEXT)
    (bare.root / "same").write_text("one\n")
    (bare.root / "link").symlink_to("a.txt")
    bare.commit("é.py", "ü\nü\n")
    task = on_branch(bare)
    change = taken(bare, task)
    files = trees(bare).blobs(bare.project, change)

    texts = trees(bare).texts(bare.project, tuple(files.values()))

    found = {path: texts[blob] for path, blob in files.items() if blob in texts}
    assert found.pop("fits") == "x" * TEXT
    assert found == {"a.txt": "one\n", "same": "one\n", "empty": "", "é.py": "ü\nü\n"}
    assert set(files) - set(found) == {"binary", "large", "fits", "link"}
    assert files["link"].startswith("120000 ")
    assert trees(bare).texts(bare.project, ()) == {}
    left = {it.name for it in bare.judge.parent.iterdir()}
    assert left <= {"base.git", "judge.git", "lock"}


def test_a_file_of_python_may_say_which_encoding_it_has(bare) -> None:
    (bare.root / "old.py").write_bytes("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"))
    (bare.root / "odd.py").write_bytes(b"# coding: no-such-thing\n")
    bare.commit("b.txt")
    files = trees(bare).blobs(bare.project, taken(bare, on_branch(bare)))

    texts = trees(bare).texts(bare.project, tuple(files.values()))

    assert texts[files["old.py"]].endswith("x = 'é'\n")
    assert files["odd.py"] not in texts


def test_the_fork_is_where_the_change_left_its_base(bare) -> None:
    start = asked(bare.root, "rev-parse", "main")
    task = on_branch(bare)
    bare.commit("b.txt")
    change = taken(bare, task)
    git(bare.root, "checkout", "--quiet", "main")
    newer = bare.commit("c.txt")
    moved = bare.task()

    assert moved.pinned is not None
    assert moved.pinned.base_commit == newer
    assert trees(bare).fork(candidate_of(bare.project, moved, change)) == start


def test_a_commit_that_is_not_there_is_said(bare) -> None:
    task = on_branch(bare)
    taken(bare, task)

    with pytest.raises(Unavailable, match="were not listed"):
        trees(bare).blobs(bare.project, "0" * 40)
    assert trees(bare).texts(bare.project, (f"100644 {'0' * 40}",)) == {}
    with pytest.raises(Unavailable, match="no clone was made"):
        blended(bare, task, "0" * 40)
    assert not list((bare.home / "runs").glob("*/*"))


def test_what_replaces_a_checkout_is_set_up_anew(shop) -> None:
    settings = Settings(formula="none", gates=(), env=EnvSettings(setup="echo made >made.txt"))
    task = on_branch(shop)
    change = taken(shop, task)
    place = shop.home / "runs" / task.id / "1-tests"

    for _ in range(2):
        shop.workspaces.discard(place)
        shop.workspaces.checkout(candidate_of(shop.project, task, change), place)
        shop.workspaces.set_up(candidate_of(shop.project, task), settings, place)
        assert shop.inside(place, "cat made.txt").out == "made\n"
    shop.workspaces.discard(place)

    assert not list(place.parent.iterdir())
