"""`shell`: a human's own program in a task's workspace, as the task's agent would see it."""

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from lockgate.core.config.settings import SandboxLevel
from lockgate.core.model.task import Task, TaskId
from lockgate.errors import Refused
from lockgate.ports import Configuration, Harnesses, Store, Workspaces
from lockgate.ports.work import Becomes, Shell
from lockgate.services.task.callers import Caller, must_be_human
from lockgate.services.task.sessions import Attendance


class Wanted(Struct, frozen=True, kw_only=True):
    """What a person asks for: a command, or a shell where there is none."""

    argv: tuple[str, ...] = ()
    read_only: bool = False
    terminal: bool = False


class Shells(Struct, frozen=True, kw_only=True):
    home: Path
    store: Store
    attendance: Attendance
    workspaces: Workspaces
    configuration: Configuration
    harnesses: Harnesses
    enclose: Callable[[Shell], Becomes]

    def open(self, id: TaskId, caller: Caller, asked: Wanted) -> tuple[Task, Becomes]:
        """The task, which is the human's from now on unless they only look, and what to run."""
        what = f"no shell was opened in the workspace of task {id}"
        must_be_human(caller, what)
        task = self.store.load(id)
        place = self.workspaces.place(id)
        if not place.is_dir():
            why, fix = f"it is {task.status} and has no workspace", f"lockgate task why {id}"
            raise Refused(what, why=why, fix=fix)
        project = self.store.project(task.project)
        settings = self.configuration.allowed_for(task, project)
        sandboxed = settings.sandbox.level is SandboxLevel.AUTO
        if asked.read_only and not sandboxed:
            why = "without a sandbox nothing can be mounted read-only"
            raise Refused(what, why=why, fix=f"look at a copy: lockgate open {id}")
        shell = Shell(
            argv=asked.argv,
            workspace=place,
            home=self.home / "homes" / id,
            base=self.workspaces.base(project),
            read=(*self.harnesses.paths(task.agent, settings), *settings.sandbox.read),
            sandboxed=sandboxed,
            read_only=asked.read_only,
            terminal=asked.terminal,
        )
        if not asked.read_only:
            task = self.attendance.sit_down(id, caller)
        return task, self.enclose(shell)
