"""What the screens read, each by one call of a service; all of it in threads of their own."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lockgate.bootstrap import App
from lockgate.core.lifecycle.needs import asks
from lockgate.core.model.facts import StoredEvent
from lockgate.core.model.findings import Finding
from lockgate.core.model.people import Draft
from lockgate.core.model.task import Approval, ProjectId, Session, SessionId, Task, TaskId
from lockgate.errors import LockgateError, NoSuchTask
from lockgate.faces import feed_client
from lockgate.faces.tui.diff import DiffFile, Note, Side, parsed
from lockgate.faces.tui.state import FILTERS, State
from lockgate.faces.tui.window import PAGE, Row, row_of
from lockgate.faces.words import queue
from lockgate.faces.words import task as words
from lockgate.services.task.boards import ALL, Inbox
from lockgate.services.task.page import Clashing, PageFile
from lockgate.services.task.rows import Board
from lockgate.services.task.statistics import Stats
from lockgate.services.task.views import GateView, Why
from lockgate.services.train.board import TrainBoard

RECENT = 300  # events that the log begins with
TIMELINE = 200  # events of a task that are shown
OPEN = 4  # sessions that are shown at once
LIVE_FIRST = 400  # lines of a session's output that are shown at first
IDLE_SECONDS = 60.0  # after which an orchestrator that we started ends


class Known(Struct, frozen=True):
    """A project that has, or had, a task."""

    id: ProjectId
    name: str
    root: str


class Page(Struct, frozen=True, kw_only=True):
    """All about a task that the list does not say."""

    row: Row
    why: Why
    gates: tuple[GateView, ...] = ()
    earlier: tuple[str, ...] = ()
    files: tuple[PageFile, ...] = ()
    conflicts: tuple[Clashing, ...] = ()
    approvals: tuple[Approval, ...] = ()
    runs: tuple[Session, ...] = ()
    timeline: tuple[StoredEvent, ...] = ()


class Shown(Struct, frozen=True, kw_only=True):
    """A change as it is shown for a yes or a no, which are bound to `patch`."""

    row: Row
    patch: str
    gate: str = ""  # that waits for the yes; empty where the landing does
    files: tuple[DiffFile, ...] = ()
    protected: tuple[str, ...] = ()
    asks: str = ""  # what a human is asked
    judged: str = ""  # what the gates said
    earlier: tuple[str, ...] = ()  # what was wrong in earlier iterations
    notes: tuple[Note, ...] = ()  # at lines
    general: tuple[Note, ...] = ()  # at none


class Reading(Struct, frozen=True):
    """`where` is the directory that the board was opened in."""

    app: App
    where: Path

    # --- lists ----------------------------------------------------------------------------------

    def board(self, state: State, after: str | None = None) -> Board:
        which = replace(
            ALL,
            projects=frozenset({state.project} if state.project else ()),
            statuses=FILTERS[state.filter],
            text=state.text,
            needs=state.filter == "needs you",
        )
        return self.app.boards.board(which, after, PAGE)

    def inbox(self) -> Inbox:
        return self.app.boards.inbox()

    def projects(self) -> tuple[Known, ...]:
        found = self.app.projects.known()
        return tuple(Known(it.id, words.one_line(it.name), it.root) for it in found)

    def row(self, id: TaskId) -> Row | None:
        found = self.app.boards.row(id)
        return None if found is None else row_of(found.facts())

    def recent(self, seq: int) -> tuple[StoredEvent, ...]:
        return self.app.views.events(None, max(0, seq - RECENT), RECENT)

    def trains(
        self, project: ProjectId | None, told: Mapping[ProjectId, TrainBoard]
    ) -> list[TrainBoard]:
        """Of one project, or of all; what cannot be read of one does not hide the others.

        What the orchestrator told is taken: only it knows which tests run.
        """
        known = [it.id for it in self.app.projects.known() if project in {None, it.id}]
        found: list[TrainBoard] = []
        for id in known:
            with suppress(LockgateError):
                found.append(told.get(id) or self.app.train_boards.of(id))
        return found

    def stats(self, days: int, project: ProjectId | None) -> Stats:
        return self.app.statistics.over(days, project)

    def spent_today(self, project: ProjectId | None) -> float:
        """Since midnight, as people here have it."""
        from lockgate.bootstrap.outside import day_of  # the first screen does without

        midnight = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
        ids = (it.id for it in self.app.projects.known() if project in {None, it.id})
        return sum(day_of(self.app, it, midnight.timestamp()).usd for it in ids)

    def at_work(self) -> tuple[Session, ...]:
        return self.app.agents.at_work()

    # --- one task -------------------------------------------------------------------------------

    def page(self, id: TaskId) -> Page | None:
        """None where it is gone."""
        try:
            seen = self.app.boards.page(id)
        except NoSuchTask:
            return None
        view = seen.view
        return Page(
            row=row_of(seen.row.facts()),
            why=seen.why,
            gates=seen.gates,
            earlier=tuple(words.feedback(seen.task)),
            files=seen.files,
            conflicts=seen.conflicts,
            approvals=seen.approvals,
            runs=view.sessions,
            timeline=seen.timeline[-TIMELINE:],
        )

    def why(self, id: TaskId) -> str:
        return words.why_text(self.app.views.why(id, self.app.troubles))

    def why_not(self, id: TaskId) -> str:
        """What the task waits for, and the command that moves it on."""
        advice = self.app.views.why(id, self.app.troubles).advice
        return f"{advice.why}: {advice.command}" if advice.command else advice.why

    def told(self, id: TaskId) -> str:
        page = self.app.boards.page(id)
        return words.task_text(page, queue.queue_lines_of(page))

    def task_md(self, id: TaskId) -> str:
        return self.app.views.task(id).body or "its TASK.md cannot be read"

    def question(self, id: TaskId) -> str:
        return asks(self.app.views.load(id))

    # --- the change -----------------------------------------------------------------------------

    def change(self, id: TaskId) -> Shown:
        """What is judged or, while an agent works, what lies in the workspace."""
        seen = self.app.views.task(id)
        task, row = seen.task, self.row(id)
        files = parsed(self.app.people.diff(id))
        notes = tuple(findings_of(task))
        drafts = tuple(self.drafts(id))
        return Shown(
            row=row or row_of(self.app.boards.row_of(task).facts()),
            patch=task.patch,
            gate=task.waiting,
            files=files,
            protected=task.protected,
            asks=f"{task.waiting} asks: {task.asked}" if task.waiting else _ask(row),
            judged=", ".join(f"{it.gate} {it.result}" for it in seen.gates),
            earlier=tuple(words.feedback(task)),
            notes=(*(it for it in notes if it.line), *drafts),
            general=tuple(it for it in notes if not it.line),
        )

    def drafts(self, id: TaskId) -> tuple[Note, ...]:
        """The caller's own."""
        return tuple(_own(it) for it in self.app.desk.drafts(id, self.app.caller))

    # --- sessions -------------------------------------------------------------------------------

    def runs(self, ids: Sequence[TaskId]) -> tuple[Session, ...]:
        """Of each task those that live; of one where none does, its last."""
        found: list[Session] = []
        for id in ids:
            known = self.app.agents.of(id)
            alive = [it for it in known if not self.app.agents.is_over(it)]
            found += alive or known[-1:]
        return tuple(found[:OPEN])

    def is_over(self, session: Session) -> bool:
        return self.app.agents.is_over(session)

    def output(self, session: Session) -> tuple[list[str], bool]:
        """The newest lines, and whether there will be no more."""
        over = self.app.agents.is_over(session)
        return self.app.agents.output(session)[-LIVE_FIRST:], over

    # --- the feed -------------------------------------------------------------------------------

    def follow(self, since: int | None, output: Sequence[SessionId] = ()) -> feed_client.Following:
        """Blocks between two items; `close` from another thread ends it."""
        flags = () if output else ("--needs",)
        return feed_client.follow(str(self.app.home), since, output=output, flags=flags)

    def wake(self) -> None:
        """Tell the orchestrator that there is news; where none runs, start one."""
        if "LOCKGATE_NO_ORCHESTRATOR" not in os.environ:
            from lockgate.bootstrap.orchestrator import wake_orchestrator  # as above

            wake_orchestrator(self.app.home, IDLE_SECONDS)


def findings_of(task: Task) -> Iterator[Note]:
    """What the gates found last, each at its line where it has one."""
    told = [it.feedback for it in task.history if it.feedback]
    for finding in told[-1].findings if told else ():
        yield _note(finding, told[-1].gate_name)


def _note(finding: Finding, gate: str) -> Note:
    where = finding.location
    return Note(
        text=finding.issue,
        by=gate,
        priority=finding.priority,
        file=where.file if where else "",
        line=(where.line or 0) if where else 0,
    )


def _own(draft: Draft) -> Note:
    return Note(
        text=draft.text,
        by="you",
        priority=draft.priority,
        file=draft.file,
        line=draft.line,
        side=Side(draft.side),
        quote=draft.quote,
        draft=draft.id,
    )


def _ask(row: Row | None) -> str:
    return row.need.ask if row is not None and row.need is not None else ""
