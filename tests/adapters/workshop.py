"""A repository, a task and its clone, and an agent that does as a test says inside its sandbox."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.adapters.repository import GitRepository
from lockgate.adapters.run import Finished, run
from lockgate.adapters.sandbox import Box, Mount, boxed, run_boxed, trouble
from lockgate.adapters.sandbox.layered import layered_at
from lockgate.adapters.sandbox.scratch import layer_under, room_for
from lockgate.adapters.workspaces import GitWorkspaces
from lockgate.core.model.secrets import Secret
from lockgate.core.model.task import Pinned, Status, Task, TaskId
from lockgate.ports import Change, Project
from tests.given import a_task

NEEDS_BOX = pytest.mark.skipif(trouble() is not None, reason=f"needs bubblewrap: {trouble()}")
BOXED = pytest.param(True, id="sandbox", marks=NEEDS_BOX)
BARE = pytest.param(False, id="no sandbox")
# For the larger tables: what differs without a sandbox is seen in the contract of the workspaces.
BARE_AT_LENGTH = pytest.param(False, id="no sandbox", marks=pytest.mark.slow)


@dataclass
class Workshop:
    root: Path
    home: Path
    sandboxed: bool = True
    secrets: tuple[Secret, ...] = ()

    @classmethod
    def at(cls, place: Path, *, sandboxed: bool = True) -> "Workshop":
        root = place / "the répo"
        root.mkdir(parents=True)
        git(root, "init", "--quiet", "--initial-branch=main")
        (root / "a.txt").write_text("one\n")
        git(root, "add", "--all")
        git(root, "commit", "--quiet", "--message", "one")
        git(root, "config", "user.name", "The User")
        git(root, "config", "user.email", "user@localhost")
        return cls(root, place / "home", sandboxed)

    @property
    def workspaces(self) -> GitWorkspaces:
        known = self.secrets
        return GitWorkspaces(self.home, sandboxed=self.sandboxed, secrets=lambda *_: known)

    @property
    def project(self) -> Project:
        project = GitRepository().project_at(self.root)
        assert project is not None
        return project

    @property
    def judge(self) -> Path:
        return self.workspaces.base(self.project).with_name("judge.git")

    def task(self, id: object = "fix-login-3f9a", **fields: object) -> Task:
        pinned = Pinned(base_commit=asked(self.root, "rev-parse", "main"), config_hash="c")
        given = {"id": TaskId(str(id)), "branch": "fix-login", "pinned": pinned} | fields
        return replace(a_task(Status.WORKING), **given)

    def commit(self, name: str, text: str = "x\n", branch: str = "main") -> str:
        """By the user, on the branch that is checked out."""
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)
        git(self.root, "add", "--all")
        git(self.root, "commit", "--quiet", "--message", name)
        return asked(self.root, "rev-parse", branch)

    def agent(self, task: Task, command: str) -> Finished:
        """Run it in the task's clone, as an agent would."""
        return self.inside(self.workspaces.place(task.id), command)

    def inside(self, place: Path, command: str) -> Finished:
        if not self.sandboxed:
            return run(("sh", "-c", command), cwd=place)
        if layer_under(place) is None:
            it = layered_at(place)
            made = boxed(
                self._box(place, it.mounts(place) if it else ()),
                ("sh", "-c", command),
                entering=it.entering if it else (),
            )
            return run_boxed(made)
        with room_for(place, 256) as room:
            made = boxed(self._box(room.place / "tree"), ("sh", "-c", command))
            entered = room.entered_by(made.direct, None, 4096)
            return run_boxed(replace(made, direct=entered))

    def _box(self, place: Path, mounts: tuple[Mount, ...] = ()) -> Box:
        return Box(
            mounts=(
                Mount(source=place, target="/workspace", writable=True),
                *mounts,
                Mount(source=self.workspaces.base(self.project), target="/base.git"),
            ),
            directory="/workspace",
            env={"GIT_CONFIG_NOSYSTEM": "1"},
        )

    def taken(self, task: Task) -> Change:
        """All work in the task's clone, which is fit to be one."""
        change = self.workspaces.take(self.project, task)
        assert isinstance(change, Change)
        return change

    def shown(self, commit: str, path: str) -> str:
        return asked(self.judge, "show", f"{commit}:{path}")

    def files(self, commit: str) -> list[str]:
        listed = asked(self.judge, "ls-tree", "-r", "-z", "--name-only", commit)
        return listed.split("\0")[:-1]


def git(root: Path, *argv: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    subprocess.run(("git", "-C", str(root), *who, *argv), check=True, capture_output=True)


def asked(git_dir: Path, *argv: str) -> str:
    """What git answers in a repository that no agent has written."""
    where = ("--git-dir", str(git_dir if (git_dir / "objects").is_dir() else git_dir / ".git"))
    done = subprocess.run(("git", *where, *argv), check=True, capture_output=True, env=_ENV)
    return done.stdout.decode(errors="surrogateescape").removesuffix("\n")


_ENV = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
