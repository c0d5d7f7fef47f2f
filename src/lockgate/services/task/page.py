"""All about one task, as every face shows it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from lockgate.core.model.facts import StoredEvent, json_facts
from lockgate.core.model.findings import Finding, GateFeedback, compared
from lockgate.core.model.task import Approval, IterationRecord, Session, Status, Task, TaskId
from lockgate.core.text.markdown import sections
from lockgate.ports import FileSize
from lockgate.services.task.rows import BoardRow, Live
from lockgate.services.task.views import (
    GateView,
    TaskView,
    Views,
    Why,
    gate_facts,
    pending_facts,
    session_facts,
    task_facts,
    why_facts,
)

if TYPE_CHECKING:
    from lockgate.core.forge.model import Pull


class PageSection(Struct, frozen=True):
    """A part of TASK.md, by its heading."""

    title: str
    text: str


class PageFinding(Struct, frozen=True):
    """What a gate found in the last evaluation; `state` is new, still-there or fixed."""

    gate: str
    finding: Finding
    state: str


class PageFile(Struct, frozen=True):
    """A file of the change; the lines are None where it is no text."""

    path: str
    added: int | None
    removed: int | None
    protected: bool


class Clashing(Struct, frozen=True):
    """Another task whose change would not merge with this one, and where."""

    task: TaskId
    summary: str
    files: tuple[str, ...]


class TaskPage(Struct, frozen=True, kw_only=True):
    """`view` is what the store and TASK.md have; the rest is made of it, or of git."""

    row: BoardRow
    view: TaskView
    file: str
    sections: tuple[PageSection, ...]
    timeline: tuple[StoredEvent, ...]
    findings: tuple[PageFinding, ...]
    files: tuple[PageFile, ...]
    why: Why
    conflicts: tuple[Clashing, ...]
    evidence: Mapping[str, object] | None
    pull: "Pull | None" = None

    @property
    def task(self) -> Task:
        return self.view.task

    @property
    def gates(self) -> tuple[GateView, ...]:
        return self.view.gates

    @property
    def sessions(self) -> tuple[Session, ...]:
        return self.view.sessions

    @property
    def iterations(self) -> tuple[IterationRecord, ...]:
        return self.task.history

    @property
    def approvals(self) -> tuple[Approval, ...]:
        return self.task.approvals

    def facts(self) -> dict[str, object]:
        """The task's own facts, and the parts of the page by name."""
        return {
            **task_facts(self.task),
            "row": self.row.facts(),
            "trouble": self.view.trouble,
            "file": self.file,
            "sections": [json_facts(it) for it in self.sections],
            "timeline": [json_facts(it) for it in self.timeline],
            "gates": [gate_facts(it) for it in self.gates],
            "findings": [json_facts(it) for it in self.findings],
            "iterations": [json_facts(it) for it in self.iterations],
            "sessions": [session_facts(it) for it in self.sessions],
            "pending": [pending_facts(it) for it in self.view.pending],
            "files": [json_facts(it) for it in self.files],
            "why": {
                "why": self.why.advice.why,
                "command": self.why.advice.command or None,
                "arrows": [why_facts(it) for it in self.why.moves],
            },
            "queue": queued(self.task) or None,
            "conflicts": [json_facts(it) for it in self.conflicts],
            "approvals": [json_facts(it) for it in self.approvals],
            "evidence": self.evidence,
            "pull_request": json_facts(self.pull) if self.pull else None,
        }


class Near(Struct, frozen=True, kw_only=True):
    """What git is asked for a page; each is asked only where there is something to ask."""

    sizes: Callable[[Task], Sequence[FileSize]]
    conflicts: Callable[[Task], Sequence[Clashing]]
    evidence: Callable[[Task], Mapping[str, object] | None]
    pull: "Callable[[TaskId], Pull | None]" = lambda _: None


class Pages(Struct, frozen=True):
    views: Views
    near: Near
    live: Live

    def page(self, row: BoardRow) -> TaskPage:
        task = row.task
        view = self.views.task(task.id)
        return TaskPage(
            row=row,
            view=view,
            file=self.views.place(task.id),
            sections=tuple(PageSection(it.title, it.text) for it in sections(view.body or "")),
            timeline=self.views.all_events(task.id),
            findings=tuple(_findings([it.feedback for it in task.history if it.feedback])),
            files=tuple(self._files(task)),
            why=self.views.why(task.id, self.live.troubles),
            conflicts=tuple(self.near.conflicts(task)) if task.candidate else (),
            evidence=self.near.evidence(task) if task.status is Status.DONE else None,
            pull=self.near.pull(task.id),
        )

    def _files(self, task: Task) -> Iterator[PageFile]:
        """What a human must see comes first."""
        found = self.near.sizes(task) if task.candidate else ()
        for first in (True, False):
            for it in found:
                if (it.path in task.protected) is first:
                    yield PageFile(it.path, it.added, it.removed, first)


def queued(task: Task) -> str:
    """In one word where it stands in the queue, as far as its own row says."""
    if task.status is not Status.REVIEWING:
        return ""
    return "landing" if task.landed else "held" if task.held else "queued" if task.to_land else ""


def _findings(told: Sequence[GateFeedback]) -> Iterator[PageFinding]:
    """Of the last evaluation that failed, beside the one before it."""
    if not told:
        return
    now = told[-1]
    if len(told) == 1:
        yield from (PageFinding(now.gate_name, it, "new") for it in now.findings)
        return
    found = compared(told[-2], now)
    yield from (PageFinding(now.gate_name, it, "new") for it in found.new)
    yield from (PageFinding(now.gate_name, it, "still-there") for it in found.still_there)
    yield from (PageFinding(told[-2].gate_name, it, "fixed") for it in found.fixed)
