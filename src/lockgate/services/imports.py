"""Makes a task of a TASK.md that the database does not know."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lockgate.core.lifecycle import records
from lockgate.core.model.task import Status, Task, TaskId
from lockgate.core.text.task_file import BrokenFrontmatter, Missing, Readable, Unreadable, count_in
from lockgate.errors import Refused
from lockgate.ports import Project, TaskFiles
from lockgate.services.callers import Caller, must_be_human
from lockgate.services.tasks import Tasks, accept, with_body

WHAT = "the task was not imported"
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


@dataclass(frozen=True, slots=True)
class Imports:
    tasks: Tasks
    files: TaskFiles

    def take(self, project: Project, path: Path, caller: Caller) -> Task:
        """The file stays as it is; its text and what its frontmatter says become a task."""
        must_be_human(caller, WHAT)
        text = self._text(path)
        fields = self._fields(text)
        task = self._task(project, fields)
        decision = with_body(records.imported(task), text.body)
        self.tasks.store.create(decision)
        self.tasks.coordinator.effector.carry_out(task.id)
        return task

    def _text(self, path: Path) -> Readable:
        directory, name = (path, "TASK.md") if _is_directory(path) else (path.parent, path.name)
        match self.files.read_at(directory, name):
            case Readable() as text:
                return text
            case Missing():
                raise Refused(WHAT, why=f"there is no file {path}", fix="name a TASK.md")
            case Unreadable() as bad:
                raise Refused(WHAT, why=bad.why, fix=bad.fix)

    def _fields(self, text: Readable) -> Mapping[str, object]:
        fields = self.files.fields(text)
        if isinstance(fields, BrokenFrontmatter):
            raise Refused(
                WHAT,
                why=f"its frontmatter is broken in line {fields.line}: {fields.why}",
                fix="mend the lines between the two '---'",
            )
        return fields

    def _task(self, project: Project, fields: Mapping[str, object]) -> Task:
        summary, branch = _string(fields, "summary"), _string(fields, "branch")
        goal = _string(fields, "goal") if "goal" in fields else summary
        accept(records.check_summary(summary) or records.check_summary(goal), WHAT)
        self.tasks.check_branch(project, branch, WHAT)
        status = _status(fields)
        settings = self.tasks.configuration
        now = self.tasks.clock.now()
        return Task(
            id=self._id(fields, branch),
            project=self.tasks.store.add_project(project).id,
            summary=summary.strip(),
            goal=goal.strip(),
            branch=branch,
            agent=settings.settings_of(project).project.agent,
            created=now,
            updated=now,
            status=status,
            auto_start=False,
            pinned=None if status is Status.PENDING else settings.rules_of(project),
            iteration=_count(fields, "iteration"),
            review_round=_count(fields, "review_round"),
            crash_count=_count(fields, "crash_count"),
        )

    def _id(self, fields: Mapping[str, object], branch: str) -> TaskId:
        """Its own where it has a good one that is free, else a new one."""
        own = fields.get("id")
        if isinstance(own, str) and _ID.fullmatch(own) and own not in self.tasks.store.named(own):
            return TaskId(own)
        return self.tasks.free_id(branch)


def _is_directory(path: Path) -> bool:
    with suppress(OSError):  # its name is too long, for one
        return path.is_dir()
    return False


def _string(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    if isinstance(value, str) and value.strip():
        return value
    has = "has none" if value is None else f"has {value!r}"
    raise Refused(
        WHAT, why=f"{name} must be a text, and the frontmatter {has}", fix=f"add {name}: ..."
    )


def _count(fields: Mapping[str, object], name: str) -> int:
    count = count_in(fields, name)
    if isinstance(count, BrokenFrontmatter):
        raise Refused(WHAT, why=count.why, fix=f"set {name}: 0")
    return count


def _status(fields: Mapping[str, object]) -> Status:
    value = fields.get("status", Status.PENDING.value)
    known = {status.value: status for status in Status}
    if isinstance(value, str) and value in known:
        return known[value]
    raise Refused(WHAT, why=f"there is no status {value!r}", fix=f"use one of: {', '.join(known)}")
