"""What a landing costs beside its tests: look, build and land, against git's own three commands."""

import os
import subprocess
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from bench.harness import AtMost, Measure, Work, interleave, main, say
from bench.home import WHO
from lockgate.adapters.repository import GitRepository
from lockgate.adapters.train import GitYard
from lockgate.adapters.workspaces.git import fetched
from lockgate.adapters.workspaces.repositories import repositories_of
from lockgate.core.config.settings import MergeStrategy
from lockgate.core.model.task import TaskId
from lockgate.core.train.model import Built, Commit
from lockgate.ports.train import Arrived, Load, Target

FILES = 5_000
IN_DIRECTORY = 50
ROUNDS = 30
FLOOR = "merge-tree, commit-tree, update-ref"
FORWARD = "the same, then merge --ff-only"
HIDDEN, SHOWN = "a landing, branch not checked out", "a landing, branch checked out"


def bench(where: Path) -> list[Measure]:
    say(f"\nlanding, {FILES} files")
    contenders: dict[str, Work] = {
        FLOOR: _floor(_repository(where / "floor")),
        HIDDEN: _landing(_repository(where / "hidden"), where / "home", "hidden"),
        FORWARD: _forward(_repository(where / "forward")),
        SHOWN: _landing(_repository(where / "shown"), where / "home", "main"),
    }
    found = interleave(contenders, ROUNDS)
    return [
        Measure(name=HIDDEN, ours=found[HIDDEN], peer=FLOOR, theirs=found[FLOOR], target=AtMost(3)),
        Measure(name=SHOWN, ours=found[SHOWN], peer=FORWARD, theirs=found[FORWARD]),
    ]


def _repository(root: Path) -> Path:
    """With `main` checked out, and `hidden` at the same commit."""
    for number in range(FILES):
        file = root / f"d{number // IN_DIRECTORY}" / f"f{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{number}\n" * 20, encoding="utf-8")
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "add", "--all")
    git(root, *WHO, "commit", "--quiet", "--message", "start")
    git(root, "branch", "hidden")
    return root


def _changes(git_dir: Path, branch: str) -> Callable[[], str]:
    """Each a new commit on the branch as it is now, with two files edited; no work tree is used."""
    numbers, index = count(), git_dir / f"bench-index-{branch}"

    def make() -> str:
        number, tip = next(numbers), git(git_dir, "rev-parse", branch)
        text = git_dir / "bench-text"
        text.write_text(f"{branch} {number}\n", encoding="utf-8")
        blob = git(git_dir, "hash-object", "-w", str(text))
        git(git_dir, "read-tree", tip, index=index)
        for file in (f"d{number % 90}/edited.txt", f"d{number % 80 + 9}/f.txt"):
            entry = f"100644,{blob},{file}"
            git(git_dir, "update-index", "--add", "--cacheinfo", entry, index=index)
        tree = git(git_dir, "write-tree", index=index)
        return git(git_dir, *WHO, "commit-tree", "-p", tip, "-m", "change", tree)

    return make


def _floor(root: Path) -> Work:
    change = _changes(root / ".git", "hidden")

    def run() -> float:
        commit = change()
        begin = time.perf_counter()
        _merged(root, "hidden", commit, "refs/heads/hidden")
        return time.perf_counter() - begin

    return run


def _forward(root: Path) -> Work:
    change = _changes(root / ".git", "main")

    def run() -> float:
        commit = change()
        begin = time.perf_counter()
        made = _merged(root, "main", commit, "refs/bench/candidate")
        git(root, "merge", "--quiet", "--ff-only", made)
        return time.perf_counter() - begin

    return run


def _merged(root: Path, branch: str, commit: str, ref: str) -> str:
    tree = git(root, "merge-tree", "--write-tree", branch, commit)
    made = git(root, *WHO, "commit-tree", "-p", branch, "-p", commit, "-m", "merge", tree)
    git(root, "update-ref", ref, made)
    return made


def _landing(root: Path, home: Path, branch: str) -> Work:
    project = GitRepository().project_at(root)
    assert project is not None, root  # noqa: S101  it was just made
    yard, target = GitYard(home), Target(project=project, branch=branch)
    yard.tip(target)
    judge = repositories_of(home, project).judge
    change = _changes(root / ".git", branch)

    def run() -> float:
        load = Load(TaskId("t1"), Commit(change()), "Land t1")
        fetched(judge, root / ".git", load.commit)
        begin = time.perf_counter()
        tip = yard.tip(target)
        built = yard.build(target, tip.commit, (load,), MergeStrategy.MERGE)
        assert isinstance(built, Built), built  # noqa: S101  else it is not what is measured
        landed = yard.land(target, tip.commit, built.commit)
        seconds = time.perf_counter() - begin
        assert landed == Arrived(), landed  # noqa: S101
        yard.prune(target, ())
        return seconds

    return run


def git(root: Path, *argv: str, index: Path | None = None) -> str:
    env = os.environ | ({"GIT_INDEX_FILE": str(index)} if index else {})
    whole = ("git", "-C", str(root), *argv)
    done = subprocess.run(whole, env=env, check=True, capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    main(bench)
