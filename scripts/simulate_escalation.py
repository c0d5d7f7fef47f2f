"""Plays an agent that fails five times, and shows that the task's row is paused then."""

import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from lockgate.bootstrap import make_demo_repository, open_app
from lockgate.core.lifecycle.moves import Move
from lockgate.core.model.limits import ESCALATION_THRESHOLD
from lockgate.core.model.task import Status
from lockgate.services.task.callers import HUMAN
from lockgate.services.task.tasks import NewTask

WANTED = "PAUSED_FOR_INTERVENTION"


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="lockgate-escalation-") as place:
        return simulate(Path(place))


def simulate(place: Path) -> int:
    make_demo_repository(place / "repository")
    app = open_app({"LOCKGATE_HOME": str(place / "home")})
    project = app.projects.here(place / "repository")
    task = app.tasks.create(project, NewTask(branch="speed-up", summary="Halve it"), HUMAN)
    app.coordinator.move(task.id, Move(Status.WORKING), HUMAN)
    attempts: list[str] = []

    def always_fails(_task: object) -> str:
        attempts.append("failed")
        print(f"attempt {len(attempts)} failed")
        return "the tests are red"

    app.runner.run(task.id, always_fails)
    app.store.close()
    with closing(sqlite3.connect(place / "home" / "lockgate.db")) as database:
        [[status]] = database.execute(
            "SELECT status FROM tasks WHERE id = ?", (task.id,)
        ).fetchall()
    print(f"the row of {task.id} reads {status} after {len(attempts)} attempts")
    return 0 if status == WANTED and len(attempts) == ESCALATION_THRESHOLD else 1


if __name__ == "__main__":
    sys.exit(main())
