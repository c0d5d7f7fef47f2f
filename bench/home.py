"""A throw-away home and repository with the demo's configuration, opened as the program does."""

from pathlib import Path

from lockgate.bootstrap import App, make_demo_repository, open_app
from lockgate.core.model import Status, Task, TaskId
from lockgate.core.turns import Move
from lockgate.ports import Project
from lockgate.services.callers import HUMAN
from lockgate.services.tasks import NewTask

CONTEXT = "The login page sends people back to where they were, and then to the login page again."


def make_home(where: Path) -> tuple[App, Project]:
    make_demo_repository(where / "repository")
    app = open_app({"LOCKGATE_HOME": str(where / "home")})
    project = app.projects.here(where / "repository")
    return app, app.store.add_project(project)


def add_task(app: App, project: Project, summary: str = "Fix the login redirect") -> Task:
    asked = NewTask(branch="fix-login", summary=summary, context=CONTEXT)
    return app.tasks.create(project, asked, HUMAN)


def move(app: App, id: TaskId, target: Status) -> Task:
    return app.coordinator.move(id, Move(target), HUMAN)
