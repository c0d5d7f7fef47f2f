"""Real services on a real database, real files and a real repository, for stories."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lockgate.bootstrap import App, open_app
from lockgate.core.lifecycle.decision import SpawnAgent
from lockgate.core.lifecycle.moves import Move
from lockgate.core.lifecycle.sessions import NOWHERE, Place
from lockgate.core.model.task import Role, Status, Task, TaskId
from lockgate.ports import Project
from lockgate.services.task.callers import HUMAN, Caller, identify
from lockgate.services.task.tasks import NewTask
from tests.agreeing import agree

REVIEW_ONLY = """\
[project]
agent = "scripted"
[gates]
formula = "none"
[[gates.list]]
name = "review"
type = "parallel_review"
dimensions = ["general"]
"""


def _asked(target: Status, fields: dict[str, object]) -> Move:
    return Move(target, **fields)  # type: ignore[arg-type]  # a test's own


def git(root: Path, *argv: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    subprocess.run(("git", "-C", str(root), *who, *argv), check=True, capture_output=True)


def a_repository(root: Path, config: str | None = REVIEW_ONLY) -> Path:
    root.mkdir(parents=True)
    git(root, "init", "--quiet", "--initial-branch=main")
    (root / "a.txt").write_text("one\n")
    if config is not None:
        (root / ".lockgate").mkdir()
        (root / ".lockgate" / "config.toml").write_text(config)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "one")
    return root


@dataclass
class World:
    """One home, one repository; `restart` opens the services anew."""

    root: Path
    home: Path
    app: App

    @classmethod
    def at(cls, place: Path, config: str | None = REVIEW_ONLY) -> "World":
        home = place / "home"
        root = a_repository(place / "repo", config)
        agree(root, {"LOCKGATE_HOME": str(home)})
        return cls(root, home, open_app({"LOCKGATE_HOME": str(home)}))

    def restart(self) -> None:
        self.app.store.close()
        self.app = open_app({"LOCKGATE_HOME": str(self.home)})

    def project(self) -> Project:
        return self.app.projects.here(self.root)

    def create(self, branch: str = "fix-login", **fields: object) -> TaskId:
        asked = NewTask(branch=branch, summary="Fix it", **fields)  # type: ignore[arg-type]  # a test's own
        return self.app.tasks.create(self.project(), asked, HUMAN).id

    def started(self, branch: str = "fix-login") -> TaskId:
        id = self.create(branch)
        self.move(id, Status.WORKING)
        return id

    def move(self, id: TaskId, target: Status, caller: Caller = HUMAN, **fields: object) -> Task:
        return self.app.coordinator.move(id, _asked(target, fields), caller)

    def wanted(self, id: TaskId, role: Role) -> SpawnAgent:
        """The session that the outbox asks for."""
        pending = [it.effect for it in self.app.store.pending_effects(id, 100)]
        return [it for it in pending if isinstance(it, SpawnAgent) and it.role is role][-1]

    def begin(self, id: TaskId, role: Role, directory: Path | None = None) -> Caller:
        spawn = self.wanted(id, role)
        token = f"{id}-{role}-{spawn.generation}-{os.urandom(4).hex()}"
        place = Place(str(directory)) if directory else NOWHERE
        self.app.attendance.session_started(id, spawn, token, place)
        return identify(self.app.store, token)

    def ends(self, caller: Caller) -> Task:
        assert caller.session is not None
        return self.app.attendance.session_ended(caller.session.id)

    def task(self, id: TaskId) -> Task:
        return self.app.store.load(id)

    def path(self, id: TaskId) -> Path:
        return self.home / "tasks" / id / "TASK.md"

    def write(self, id: TaskId, text: str) -> None:
        with self.path(id).open("a") as file:
            file.write(f"\n{text}")

    def types(self, id: TaskId) -> list[str]:
        return [event.type for event in self.app.views.all_events(id)]
