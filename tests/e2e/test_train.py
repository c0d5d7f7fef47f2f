"""The merge train with everything real: agents, sandboxes, gates, git, kills."""

import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from lockgate.core.model.task import Status, TaskId
from tests.e2e.orchestra import COMPLETE, Orchestra, hands_off, worker
from tests.scenarios.world import git

S = Status
# A total of more than ten is too much: `a` and `b` are fine alone and with `c`, not together.
GATE = "cat n-* | (t=0; while read n; do t=$((t + n)); done; [ $t -le 10 ] && [ $t -ge 0 ])"
CONFIG = f"""\
[project]
agent = "scripted"
slots = 9
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "{GATE}"
attempts = 1
[merge]
mode = "auto"
"""


def adds(branch: str, number: int) -> str:
    return f'{{ write = "n-{branch}", text = "{number}\\n" }}'


def plays(branch: str, number: int, second: int = 1) -> str:
    """Dropped for what it does together with others, it comes back with another number."""
    return worker(
        adds(branch, second), hands_off(f"{branch} less"), COMPLETE, when="fails on the target"
    ) + worker(adds(branch, number), hands_off(branch), COMPLETE)


SCRIPTS = {"a": plays("a", 6), "b": plays("b", 6), "c": plays("c", 2)}


def told(root: Path, *argv: str) -> str:
    done = subprocess.run(("git", "-C", str(root), *argv), check=True, capture_output=True)
    return done.stdout.decode().strip()


def said(it: Orchestra, *argv: str) -> str:
    """What the orchestrator itself answers, as a user's command has it."""
    environ = {key: it.environ[key] for key in it.environ if key != "LOCKGATE_NO_ORCHESTRATOR"}
    asked = (sys.executable, "-m", "lockgate", *argv)
    done = subprocess.run(asked, env=environ, cwd=it.root, capture_output=True, check=False)
    return done.stdout.decode()


def on_disk(it: Orchestra) -> None:
    (it.root / "n-0").write_text("1\n")
    git(it.root, "add", "--all")
    git(it.root, "commit", "--quiet", "--message", "Start")


def made(place: Path, config: str = CONFIG) -> Iterator[Orchestra]:
    it = Orchestra(place, config=config, scripts=SCRIPTS)
    on_disk(it)
    yield it
    it.close()


@pytest.fixture
def orchestra(tmp_path: Path) -> Iterator[Orchestra]:
    yield from made(tmp_path)


def landed_on(root: Path, branch: str = "main") -> list[str]:
    """Every commit of the branch since the start, by first parents, the oldest first."""
    return told(root, "log", "--first-parent", "--reverse", "--format=%H", branch).split()[2:]


def assert_green_all_along(it: Orchestra, branch: str = "main") -> None:
    """Each landed commit passes the gate's command in a clean checkout, and has its evidence."""
    place = it.place / "checked out"
    git(it.root, "worktree", "add", "--quiet", "--detach", str(place), branch)
    for commit in landed_on(it.root, branch):
        git(place, "checkout", "--quiet", commit)
        done = subprocess.run(("sh", "-c", GATE), cwd=place, check=False)
        assert done.returncode == 0, commit
        assert it.lockgate("verify", commit).returncode == 0, commit
    git(it.root, "worktree", "remove", "--force", str(place))


def all_done(it: Orchestra, ids: Sequence[TaskId]) -> None:
    it.until(lambda: all(it.task(id).status is S.DONE for id in ids), patience=120)
    it.until(lambda: all(it.settled(id) for id in ids))


def test_what_breaks_only_together_is_mended_and_the_target_is_green_all_along(orchestra) -> None:
    ids = [orchestra.create(branch) for branch in SCRIPTS]
    orchestra.up()

    all_done(orchestra, ids)

    assert sum(orchestra.task(id).failed_attempts for id in ids) == 0, "done starts anew"
    dropped = [id for id in ids if "attempt.failed" in orchestra.types(id)]
    assert len(dropped) == 1, orchestra.story()
    assert len(landed_on(orchestra.root)) == 3
    assert_green_all_along(orchestra)
    assert told(orchestra.root, "status", "--porcelain") == "", "the checkout has followed"
    assert {it.name for it in orchestra.root.glob("n-*")} == {"n-0", "n-a", "n-b", "n-c"}
    assert not list((orchestra.home / "runs").glob("train-*/*"))
    assert all(not (orchestra.home / "workspaces" / id).exists() for id in ids)


def killed_again_and_again(it: Orchestra, kills: int, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a story's own
    ids = [it.create(branch) for branch in SCRIPTS]
    for _ in range(kills):
        it.up()
        time.sleep(chance.uniform(0.3, 2.5))
        it.kill()
    it.up()

    all_done(it, ids)

    assert len(landed_on(it.root)) == len(set(landed_on(it.root))) == 3
    assert_green_all_along(it)
    assert [it.types(id).count("change.landed") for id in ids] == [1, 1, 1]
    assert it.app.store.first_broken_event() is None


@pytest.mark.slow
def test_an_orchestrator_that_is_killed_at_any_moment_lands_each_change_once(orchestra) -> None:
    killed_again_and_again(orchestra, 5, seed=5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_an_orchestrator_that_is_killed_often_lands_each_change_once(tmp_path, seed) -> None:
    for it in made(tmp_path):
        killed_again_and_again(it, 12, seed)


def test_a_file_in_the_way_holds_the_landing_until_it_is_cleaned(orchestra) -> None:
    (orchestra.root / "n-c").write_text("mine\n")
    id = orchestra.create("c")
    orchestra.up()
    orchestra.until(lambda: "n-c" in said(orchestra, "status"))
    assert orchestra.task(id).status is S.REVIEWING
    assert "nothing lands now: local edits or untracked files" in said(orchestra, "queue", "list")
    assert (orchestra.root / "n-c").read_text() == "mine\n"

    (orchestra.root / "n-c").unlink()

    all_done(orchestra, [id])
    assert (orchestra.root / "n-c").read_text() == "2\n"
    assert "cannot go on" not in said(orchestra, "status")


def test_a_remote_target_gets_what_was_tested_and_done_follows_that(tmp_path) -> None:
    for it in made(tmp_path / "one", CONFIG + 'target = "remote"\n'):
        bare = tmp_path / "origin.git"
        git(it.root, "init", "--quiet", "--bare", "--initial-branch=main", str(bare))
        git(it.root, "remote", "add", "origin", str(bare))
        git(it.root, "push", "--quiet", "origin", "main")
        before = told(it.root, "rev-parse", "main")
        ids = [it.create(branch) for branch in ("a", "c")]
        it.up()

        all_done(it, ids)

        assert told(it.root, "rev-parse", "main") == before, "the user's own branch stays"
        assert told(bare, "rev-parse", "main") == told(it.root, "rev-parse", "origin/main")
        assert len(landed_on(it.root, "origin/main")) == 2
        assert_green_all_along(it, "origin/main")
