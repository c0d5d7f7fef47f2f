"""What people do with a task besides moving it: answer, take over, hand back, look."""

from dataclasses import dataclass

from lockgate.core.lifecycle.moves import Move
from lockgate.core.model.task import Status, Task, TaskId
from lockgate.core.text.task_file import (
    WORKER_SECTIONS,
    Readable,
    frontmatter,
    merge_sections,
    replace_section,
)
from lockgate.errors import Refused
from lockgate.ports import Change, Project, Store, TaskFiles, Workspaces
from lockgate.services.attendance import Attendance
from lockgate.services.callers import Caller, must_be_human


@dataclass(frozen=True, slots=True)
class People:
    store: Store
    attendance: Attendance
    workspaces: Workspaces
    files: TaskFiles

    def answer(self, id: TaskId, text: str, caller: Caller) -> Task:
        """What a clarification asked for; the agent goes on with it."""
        must_be_human(caller, f"task {id} was not answered")
        status = self.store.load(id).status
        if status is not Status.CLARIFICATION:
            raise Refused(
                f"task {id} was not answered",
                why=f"it is {status}, and nobody waits for an answer",
                fix=f"lockgate task show {id}",
            )
        return self.attendance.coordinator.move(id, Move(Status.WORKING, "answered", text), caller)

    def take_over(self, id: TaskId, caller: Caller) -> Task:
        must_be_human(caller, f"task {id} was not taken over")
        return self.attendance.take_over(id, caller)

    def hand_back(self, id: TaskId, caller: Caller, done: str = "") -> Task:
        """With the worker's sections as the workspace has them, or these words as Handoff."""
        must_be_human(caller, f"task {id} was not handed back")
        task = self.store.load(id)
        canonical = self.files.read(id)
        body = canonical.body if isinstance(canonical, Readable) else self.store.body(id) or ""
        theirs = self.files.read_at(self.workspaces.place(id))
        if isinstance(theirs, Readable):
            hide = self.attendance.coordinator.witness.hide(task)
            body = merge_sections(body, hide(theirs.body), WORKER_SECTIONS)
        if done:
            body = replace_section(body, "Handoff", f"DONE: {done}")
        self.files.write(id, frontmatter(task), body)
        return self.attendance.hand_back(id, caller)

    def change(self, id: TaskId) -> tuple[Task, Change]:
        """The work as it is judged, or as it lies in the workspace now."""
        task = self.store.load(id)
        project = self.store.project(task.project)
        if task.pinned is None:
            raise Refused(
                f"there is no change of task {id}",
                why="it has not been started",
                fix=f"lockgate task start {id}",
            )
        if task.candidate:
            return task, self.workspaces.change(project, task, task.candidate)
        if self.workspaces.place(id).is_dir():
            return task, self._taken(project, task)
        change = self.workspaces.adopt(project, task)
        if change is None:
            raise Refused(
                f"there is no change of task {id}",
                why=f"it has no workspace, and there is no branch {task.branch}",
                fix=f"lockgate task show {id}",
            )
        return task, change

    def _taken(self, project: Project, task: Task) -> Change:
        taken = self.workspaces.take(project, task)
        if isinstance(taken, Change):
            return taken
        raise Refused(
            f"the work of task {task.id} is not shown as a change",
            why="; ".join(it.issue for it in taken.findings),
            fix=f"see the clone: {self.workspaces.place(task.id)}",
        )

    def diff(self, id: TaskId) -> str:
        task, change = self.change(id)
        return self.workspaces.diff(self.store.project(task.project), task, change.commit)
