"""A checkout that stays: brought to the next commit, it is as one that is written anew."""

import os
import shutil
import stat
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.adapters.workspaces import GitWorkspaces
from lockgate.adapters.workspaces.temporary import Checkouts, lend
from lockgate.core.model.task import Task
from lockgate.ports import candidate_of
from tests.adapters.workshop import BARE_AT_LENGTH, BOXED, Workshop, asked, git

STEPS = {
    "begins": "echo one > a; mkdir d; echo two > d/b; ln -s a link; echo x > run; chmod +x run",
    "changes": "echo 1 > a; chmod -x run; ln -sf d link",
    "turns a file into a directory": "rm a; mkdir a; echo deep > a/a; rm -r d; echo flat > d",
    "has odd names": "echo x > 'a b'; printf x > \"$(printf 'new\\nline')\"; mkdir ü; echo x > ü/ä",
    "brings attributes": "echo '*.txt eol=crlf' > .gitattributes; echo x > t.txt",
    "changes attributes": "echo '*.txt -text' > .gitattributes; mkdir -p e; echo y > e/y",
    "drops attributes": "rm .gitattributes; echo 'y eol=crlf' > e/.gitattributes",
    "ignores": "echo ignored > .gitignore; echo x > kept",
    "empties": "rm -rf a e d ü link run t.txt .gitattributes",
    "changes nothing": "true",
}


@pytest.fixture(params=[BARE_AT_LENGTH, BOXED])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Workshop:
    return Workshop.at(tmp_path, sandboxed=request.param)


@pytest.fixture
def kept(shop: Workshop) -> GitWorkspaces:
    return GitWorkspaces(shop.home, sandboxed=shop.sandboxed, check_out=Checkouts().check_out)


def commits(shop: Workshop) -> list[str]:
    made = list[str]()
    git(shop.root, "checkout", "--quiet", "-b", "feature")
    for script in STEPS.values():
        shop_run(shop.root, script)
        git(shop.root, "add", "--all")
        git(shop.root, "commit", "--quiet", "--allow-empty", "--message", script)
        made.append(asked(shop.root, "rev-parse", "HEAD"))
    return made


def shop_run(root: Path, script: str) -> None:
    assert os.system(f"cd '{root}' && {script}") == 0  # noqa: S605 - a test's own words


def brought(it: GitWorkspaces, shop: Workshop, task: Task, commit: str) -> Path:
    place = it.home / "runs" / "desk"
    assert task.pinned is not None
    lend(it.home, shop.project, replace(task.pinned, sandboxed=shop.sandboxed))
    tree = it.checkout(candidate_of(shop.project, task, commit), place)
    assert tree == asked(shop.root, "rev-parse", f"{commit}^{{tree}}")
    return place


def everything(place: Path) -> dict[str, tuple[int, str | bytes]]:
    """All that a gate can see of the files, and what git thinks of them."""
    found: dict[str, tuple[int, str | bytes]] = {}
    for path in sorted(place.rglob("*")):
        name, mode = str(path.relative_to(place)), path.lstat().st_mode
        if not name.startswith(".git/"):
            content = str(path.readlink()) if stat.S_ISLNK(mode) else b""
            found[name] = (mode, path.read_bytes() if stat.S_ISREG(mode) else content)
    return found


def told(shop: Workshop, place: Path) -> str:
    look = "git status --porcelain && git rev-parse HEAD origin/main origin/HEAD && git ls-files -s"
    seen = shop.inside(place, f"{look} && git fsck --strict 2>&1")
    assert seen.code == 0, seen
    return seen.out


@pytest.mark.unmeasured
def test_from_any_commit_to_any_other_it_is_as_one_that_is_new(shop, kept) -> None:
    made = commits(shop)
    steps = [*made, *reversed(made), made[0], made[5], made[2], made[7], made[7]]
    task = shop.task()

    for commit in steps:
        place = brought(kept, shop, task, commit)
        seen = everything(place), told(shop, place)
        fresh = GitWorkspaces(shop.home / "fresh", sandboxed=shop.sandboxed)
        new = brought(fresh, shop, task, commit)

        assert seen == (everything(new), told(shop, new))
        shutil.rmtree(fresh.home)


def test_what_did_not_change_is_not_written_again(shop, kept) -> None:
    first = shop.commit("stays")
    second = shop.commit("comes")
    before = (brought(kept, shop, shop.task(), first) / "stays").stat().st_ino

    place = brought(kept, shop, shop.task(), second)

    assert (place / "stays").stat().st_ino == before
    assert (place / "comes").exists()
    assert asked(place, "rev-parse", "origin/main") == second


@pytest.mark.parametrize(
    "touch",
    [
        "echo changed > a.txt",
        "echo new > new",
        "touch a.txt",
        "mkdir empty",
        "rm a.txt",
        "chmod 600 a.txt",
        "git config core.hooksPath /elsewhere",
        "echo '* -text' > .git/info/attributes || mkdir .git/info",
        "git update-index --assume-unchanged a.txt",
    ],
)
def test_one_that_somebody_touched_is_written_anew(shop, kept, touch) -> None:
    task = shop.task()
    place = brought(kept, shop, task, task.pinned.base_commit)
    before = (place / ".git" / "HEAD").stat().st_mtime_ns
    time.sleep(0.02)  # a gate begins only when the clock has moved on
    assert shop.inside(place, touch).code == 0

    again = brought(kept, shop, task, task.pinned.base_commit)

    assert (again / ".git" / "HEAD").stat().st_mtime_ns != before
    assert (again / "a.txt").read_text() == "one\n"
    assert not (again / "new").exists()
    assert "hooksPath" not in (again / ".git" / "config").read_text()


def test_another_process_knows_nothing_of_it(shop, kept) -> None:
    task = shop.task()
    place = brought(kept, shop, task, task.pinned.base_commit)
    (place / "left by somebody").write_text("x")
    other = GitWorkspaces(shop.home, sandboxed=shop.sandboxed, check_out=Checkouts().check_out)

    brought(other, shop, task, task.pinned.base_commit)

    assert not (place / "left by somebody").exists()


def test_where_git_cannot_go_on_from_it_it_is_written_anew(shop, kept) -> None:
    task = shop.task()
    brought(kept, shop, task, task.pinned.base_commit)
    lost = kept.check_out.__self__
    place, (_, seen) = lost._known.popitem()
    lost._known[place] = ("d" * 40, seen)  # as if it were of a commit that is gone

    again = brought(kept, shop, task, shop.commit("comes"))

    assert (again / "comes").exists()
