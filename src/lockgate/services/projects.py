"""Which project a directory belongs to, which task is meant, which branches a task may have."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lockgate.core.lifecycle.records import Unacceptable, check_branch
from lockgate.core.model.task import TaskId
from lockgate.core.text.task_file import Readable
from lockgate.errors import Refused
from lockgate.ports import Configuration, Project, Repository, Store, TaskFiles
from lockgate.services.callers import Caller


@dataclass(frozen=True, slots=True)
class Projects:
    store: Store
    repository: Repository
    files: TaskFiles

    def here(self, directory: Path) -> Project:
        project = self.repository.project_at(directory)
        if project is None:
            raise Refused(
                "no project was found",
                why=f"{directory} is not inside a git repository",
                fix="change into the repository, or make one: git init",
            )
        return project

    def task_here(self, directory: Path, caller: Caller) -> TaskId:
        """The session's own task; without a session, that of the TASK.md that lies here."""
        if caller.session:
            return caller.session.task
        text = self.files.read_at(directory)
        fields = self.files.fields(text) if isinstance(text, Readable) else None
        id = fields.get("id") if isinstance(fields, dict) else None
        if not isinstance(id, str):
            raise Refused(
                "no task was found",
                why="no task is named, and no TASK.md lies in this directory",
                fix="name one: lockgate task list",
            )
        return TaskId(id)


@dataclass(frozen=True, slots=True)
class Branches:
    """Asked when a task is made, and again when its branch is about to be set."""

    store: Store
    repository: Repository
    configuration: Configuration

    def problem(
        self, project: Project, branch: str, task: TaskId | None = None
    ) -> Unacceptable | None:
        """Why a task cannot have this branch; `task` is the one that has it already."""
        others = (it for it in self.store.on_branch(project.id, branch) if it.id != task)
        return check_branch(branch, frozenset(self._landing(project)), others)

    def _landing(self, project: Project) -> Iterator[str]:
        """The base, the branch whose configuration names the base, and the remotes' defaults."""
        yield self.configuration.rules_of(project).base
        usual = self.repository.base_branch(project)
        if usual:
            yield usual.name
        yield from self.repository.default_branches(project)
