"""A repository with a target branch, changes of tasks in judge.git, and the yard under test."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lockgate.adapters.repository import GitRepository
from lockgate.adapters.train import GitYard
from lockgate.adapters.workspaces.git import fetched
from lockgate.adapters.workspaces.repositories import Repositories, repositories_of
from lockgate.core.config.settings import MergeStrategy
from lockgate.core.model.task import TaskId
from lockgate.core.train.model import Built, Commit, Conflict
from lockgate.ports import Project
from lockgate.ports.train import Load, Span, Target
from tests.adapters.workshop import asked, git

Files = Mapping[str, str | None]  # None takes a file away


@dataclass
class Siding:
    """The user sits on the branch `desk`; `main` is checked out nowhere unless a test does it."""

    root: Path
    home: Path
    remote: str = ""
    yard: GitYard = field(init=False)

    def __post_init__(self) -> None:
        self.yard = GitYard(self.home)

    @classmethod
    def at(cls, place: Path, *init: str) -> "Siding":
        root = place / "the répo"
        root.mkdir(parents=True)
        git(root, "init", "--quiet", "--initial-branch=main", *init)
        it = cls(root, place / "home")
        it.user_commits({"a.txt": "one\ntwo\nthree\n", "b.txt": "b\n"}, "start")
        git(root, "checkout", "--quiet", "-b", "desk")
        return it

    @property
    def project(self) -> Project:
        project = GitRepository().project_at(self.root)
        assert project is not None
        return project

    @property
    def target(self) -> Target:
        return Target(project=self.project, branch="main", remote=self.remote)

    @property
    def repos(self) -> Repositories:
        return repositories_of(self.home, self.project)

    @property
    def main(self) -> Commit:
        return Commit(asked(self.root, "rev-parse", "refs/heads/main"))

    def user_commits(self, files: Files, message: str = "by the user") -> Commit:
        """On the branch that is checked out."""
        write(self.root, files)
        git(self.root, "add", "--all", "--force")
        git(self.root, "commit", "--quiet", "--allow-empty", "--message", message)
        return Commit(asked(self.root, "rev-parse", "HEAD"))

    def user_pushes_main(self, files: Files, message: str = "by the user") -> Commit:
        """Onto main, by way of another branch, so that main need not be checked out."""
        here = asked(self.root, "rev-parse", "--abbrev-ref", "HEAD")
        git(self.root, "checkout", "--quiet", "main")
        made = self.user_commits(files, message)
        git(self.root, "checkout", "--quiet", here)
        return made

    def change(self, task: str, *commits: Files, on: str = "main") -> Load:
        """The commits of a task, taken into judge.git as an agent's work is."""
        self.yard.tip(self.target)
        work = self.root.with_name(f"work of {task}")
        git(self.root, "worktree", "add", "--quiet", "--detach", str(work), on)
        for number, files in enumerate(commits):
            write(work, files)
            git(work, "add", "--all", "--force")
            git(work, "commit", "--quiet", "--allow-empty", "--message", f"{task} {number}")
        return self.taken(task, work)

    def overlap(self, one: Commit, other: Commit, *bases: Commit) -> tuple[str, ...]:
        """Of two changes that were begun on these commits, or on main."""
        first, second = bases or (self.main, self.main)
        return self.yard.overlap(self.project, Span(first, one), Span(second, other))

    def taken(self, task: str, work: Path) -> Load:
        commit = told(work, "rev-parse", "HEAD")
        done = fetched(self.repos.judge, Path(self.project.common_dir), commit)
        assert done.code == 0, done.err
        git(self.root, "worktree", "remove", "--force", str(work))
        git(self.root, "reflog", "expire", "--expire=now", "--all")
        return Load(TaskId(task), Commit(commit), f"Land {task}\n\nBecause.")

    def build(
        self, *loads: Load, onto: Commit | None = None, by: MergeStrategy = MergeStrategy.MERGE
    ) -> Built | Conflict:
        return self.yard.build(self.target, onto or self.yard.tip(self.target).commit, loads, by)

    def built(
        self, *loads: Load, onto: Commit | None = None, by: MergeStrategy = MergeStrategy.MERGE
    ) -> Built:
        found = self.build(*loads, onto=onto, by=by)
        assert isinstance(found, Built), found
        return found

    def shown(self, commit: str, path: str) -> str:
        return asked(self.repos.judge, "show", f"{commit}:{path}")

    def said(self, commit: str, form: str) -> str:
        return asked(self.repos.judge, "log", "-1", f"--format={form}", commit)

    def subjects(self, commit: str) -> list[str]:
        listed = asked(self.repos.judge, "log", "--reverse", "--format=%s", commit)
        return listed.splitlines()

    def status(self, tree: Path | None = None) -> str:
        return told(tree or self.root, "status", "--porcelain", "--untracked-files=all")


def write(root: Path, files: Files) -> None:
    for name, text in files.items():
        path = root / name
        if text is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))


def told(root: Path, *argv: str) -> str:
    """What the user's own git says in a work tree."""
    done = subprocess.run(("git", "-C", str(root), *argv), check=True, capture_output=True)
    return os.fsdecode(done.stdout).removesuffix("\n")
