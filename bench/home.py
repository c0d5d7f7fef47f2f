"""A throw-away home and repository with one review gate, opened as the program does."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from lockgate.bootstrap import App, open_app
from lockgate.core.lifecycle.moves import Move
from lockgate.core.model.task import Status, Task, TaskId
from lockgate.ports import Project
from lockgate.services.task.callers import HUMAN
from lockgate.services.task.tasks import NewTask

WHO = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")  # HOME may have no identity
CONTEXT = "The login page sends people back to where they were, and then to the login page again."


CONFIG = """\
[project]
agent = "scripted"
[gates]
formula = "none"
[[gates.list]]
name = "review"
type = "parallel_review"
dimensions = ["general"]
"""


def make_home(where: Path, config: str = CONFIG) -> tuple[App, Project]:
    root = where / "repository"
    (root / ".lockgate").mkdir(parents=True)
    (root / ".lockgate" / "config.toml").write_text(config, encoding="utf-8")
    for argv in (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "--all"),
        ("commit", "--quiet", "--message", "A small repository"),
    ):
        subprocess.run(("git", "-C", str(root), *WHO, *argv), check=True)  # noqa: S607
    app = open_app({"LOCKGATE_HOME": str(where / "home")})
    project = app.projects.here(where / "repository")
    app.configuration.agree(project)
    return app, app.store.add_project(project)


def make_trusted(environ: Mapping[str, str], root: Path) -> None:
    """The user's yes to all that the repository asks for, in that home."""
    app = open_app(environ)
    app.configuration.agree(app.projects.here(root))
    app.store.close()


def add_task(app: App, project: Project, summary: str = "Fix the login redirect") -> Task:
    branch = summary.lower().replace(" ", "-")  # two tasks cannot have the same
    asked = NewTask(branch=branch, summary=summary, context=CONTEXT)
    return app.tasks.create(project, asked, HUMAN)


def move(app: App, id: TaskId, target: Status) -> Task:
    return app.coordinator.move(id, Move(target), HUMAN)
