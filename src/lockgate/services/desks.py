"""Where an agent works: the task's clone, or a clean checkout of the change, with its papers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lockgate.core.config.settings import Settings, programs_in
from lockgate.core.lifecycle.decision import SpawnAgent
from lockgate.core.lifecycle.transition import session_id
from lockgate.core.model.task import Role, SessionId, Task
from lockgate.core.prompts.reviewer import sees_no_story
from lockgate.core.text.task_file import Readable, frontmatter, only_sections, shown_to
from lockgate.ports import Desk, Project, Store, TaskFiles, Workspaces


@dataclass(frozen=True, slots=True)
class Desks:
    home: Path
    store: Store
    workspaces: Workspaces
    files: TaskFiles

    def make(self, project: Project, task: Task, spawn: SpawnAgent, settings: Settings) -> Desk:
        blind = sees_no_story(task, spawn.seat)
        if spawn.role is Role.WORKER:
            desk = Desk(directory=self.workspaces.prepare(project, task))
            self.workspaces.set_up(project, task, settings)
        else:
            id = session_id(task.id, spawn.generation, spawn.seat)
            named = programs_in(settings, spawn.agent or task.agent)
            desk = self._review_desk(project, task, id, named, blind=blind)
        self.workspaces.write(desk.directory, self._papers(task, spawn.role, blind=blind))
        return desk

    def _review_desk(
        self, project: Project, task: Task, id: SessionId, named: Sequence[str], *, blind: bool
    ) -> Desk:
        place, commit = self.home / "reviews" / task.id / id, task.candidate
        if blind:
            commit = self.workspaces.squashed(project, task, commit)
        self.workspaces.checkout_for_review(project, task, commit, place / "checkout", named)
        return Desk(directory=place / "desk", checkout=place / "checkout")

    def _papers(self, task: Task, role: Role, *, blind: bool) -> dict[str, str]:
        text = self.files.read(task.id)
        body = text.body if isinstance(text, Readable) else self.store.body(task.id) or ""
        body = only_sections(body, {"Context"}) if blind else body
        facts = frontmatter(shown_to(task, role))
        pinned = task.pinned
        more = {"base": pinned.base, "base_commit": pinned.base_commit} if pinned else {}
        return {
            "TASK.md": self.files.render(facts, body),
            "task.json": json.dumps({**facts, **more}, indent=2) + "\n",
        }
