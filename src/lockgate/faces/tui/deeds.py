"""What the board does for a person: each deed is one call of a service, and answers in words."""

import os
import shlex
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from lockgate.bootstrap import App
from lockgate.core.lifecycle.moves import Move
from lockgate.core.lifecycle.needs import SENT_BACK, UNSTUCK
from lockgate.core.lifecycle.transition import session_id
from lockgate.core.model.findings import Finding, Location, Priority
from lockgate.core.model.people import Draft, is_note, noted
from lockgate.core.model.task import Status, Task, TaskId
from lockgate.errors import Refused, Unavailable
from lockgate.faces.tui.diff import DiffLine, Note
from lockgate.faces.words import task as words
from lockgate.services.task.tasks import NewTask

PATIENCE = 60.0
PAUSE = 0.1
QUOTE = 500  # characters of a line that a comment quotes
PRIORITIES = {"!": Priority.P0_CRITICAL, "~": Priority.P3_SUGGESTION}


class Place(Struct, frozen=True):
    """A line of a change that is shown, as a comment is bound to it."""

    task: TaskId
    patch: str
    file: str
    line: DiffLine


def as_written(note: Note) -> str:
    """A comment as its author wrote it, with the mark of its priority."""
    marks = {priority: mark for mark, priority in PRIORITIES.items()}
    return f"{marks.get(Priority(note.priority), '')}{note.text}"


class Deeds(Struct, frozen=True):
    """`wake` tells the orchestrator that there is news. A board that only looks does nothing."""

    app: App
    wake: Callable[[], None]
    read_only: bool = False

    # --- answers --------------------------------------------------------------------------------

    def approve(self, id: TaskId, patch: str, gate: str) -> str:
        """Yes to the gate that was shown, or to the landing where that is empty; to no other."""
        return self._yes(id, lambda it, said: it.queue.say_yes(id, said, patch, it.caller, gate))

    def land(self, id: TaskId, patch: str) -> str:
        return self._yes(id, lambda it, said: it.queue.approve(id, patch, it.caller, said))

    def _yes(self, id: TaskId, deed: Callable[[App, str], Task]) -> str:
        """The person's notes on the change are kept with the yes; other comments stay drafts."""
        drafts = self.app.desk.drafts(id, self.app.caller)
        told = self._did(id, lambda it: deed(it, noted(drafts)))
        notes = tuple(it.id for it in drafts if is_note(it))
        if notes:
            self.app.desk.discard(id, notes, self.app.caller)
        left = len(drafts) - len(notes)
        return f"{told}; {words.counted(left, 'comment')} not sent" if left else told

    def reject(self, id: TaskId, patch: str, message: str, notes: Sequence[Note] = ()) -> str:
        findings = [_finding(it) for it in notes]
        return self._did(
            id, lambda it: it.approvals.reject(id, message, findings, patch, it.caller)
        )

    def answer(self, id: TaskId, text: str) -> str:
        return self._did(id, lambda it: it.people.answer(id, text, it.caller))

    def say(self, id: TaskId, text: str) -> str:
        task = self._done(id, lambda it: it.people.say(id, text, it.caller))
        return words.said_text(task, at_once=False)

    def direct(self, id: TaskId, directive: str) -> str:
        """Let a task that is stuck or paused go on, with a hint for its next agent."""
        task = self.app.views.load(id)
        if task.status is Status.PAUSED_FOR_INTERVENTION:
            return self._did(id, lambda it: it.runner.resume(id, directive, it.caller))
        status = Status(UNSTUCK.get(task.cause, SENT_BACK)[1].split()[0])
        return self._move(id, Move(status, directive=directive))

    # --- what a person keeps for later -------------------------------------------------------

    def keep_draft(self, at: Place, text: str, old: Note | None) -> None:
        """A new comment, or another text for one that is there."""
        self._must_act("the comment was not saved")
        mark = text[:1] if text[:1] in PRIORITIES else ""
        draft = Draft(
            id=old.draft if old else "",
            task=at.task,
            patch=at.patch,
            file=at.file,
            side=at.line.side,
            line=at.line.number,
            quote=at.line.text[:QUOTE],
            text=text.removeprefix(mark).strip(),
            priority=PRIORITIES.get(mark, Priority.P1_MAJOR),
        )
        self.app.desk.save(draft, self.app.caller)

    def forget_drafts(self, id: TaskId, drafts: Sequence[Note]) -> None:
        self._must_act("no comment was discarded")
        if drafts:  # none would be all of them
            self.app.desk.discard(id, tuple(it.draft for it in drafts), self.app.caller)

    def snooze(self, needs: Sequence[str], seconds: float) -> None:
        self._must_act("no need was dimmed")
        for key in needs:
            self.app.desk.snooze(key, seconds, self.app.caller)

    # --- moves ----------------------------------------------------------------------------------

    def start(self, id: TaskId) -> str:
        return self._move(id, Move(Status.WORKING))

    def restart(self, id: TaskId) -> str:
        self._done(id, lambda it: it.attendance.respawn(id, "", it.caller))
        return f"{id}: a new agent starts in the same workspace"

    def cancel(self, id: TaskId) -> str:
        return self._move(id, Move(Status.CANCELLED, "cancelled on the board"))

    def delete(self, id: TaskId) -> str:
        self._done(id, lambda it: it.tasks.delete(id, it.caller))
        return f"{id} is deleted"

    def hold(self, id: TaskId, why: str) -> str:
        return self._did(id, lambda it: it.queue.hold(id, why, it.caller))

    def drop(self, id: TaskId, why: str) -> str:
        return self._did(id, lambda it: it.queue.drop(id, why, it.caller))

    def create(self, root: Path, text: str) -> TaskId:
        """The first line is the goal, what is below it the Context."""
        self._must_act("the task was not created")
        goal, _, more = text.strip().partition("\n")
        project = self.app.projects.here(root)
        asked = NewTask(
            branch=self.app.readiness.branch_for(project, goal.strip()),
            summary=goal.strip(),
            context=more.strip(),
        )
        task = self.app.tasks.create(project, asked, self.app.caller)
        self.wake()
        return task.id

    # --- sitting down at a task -----------------------------------------------------------------

    def take_over(self, id: TaskId) -> tuple[str, ...]:
        """The command that opens its session, once that runs."""
        task = self._done(id, lambda it: it.people.take_over(id, it.caller))
        session, until = session_id(task.id, task.generation), time.monotonic() + PATIENCE
        while time.monotonic() < until:  # its files are watched, not the database
            command = self.app.agents.attach_command(session)
            if command:
                return command
            if self.app.agents.has_ended(session):
                break
            time.sleep(PAUSE)
        what, why = f"task {id} is yours, but its session is not there", "it did not start"
        raise Unavailable(
            what, why=why, fix=f"see logs/orchestrator.log, or: lockgate handback {id}"
        )

    def hand_back(self, id: TaskId, done: str) -> str:
        task = self._done(id, lambda it: it.people.hand_back(id, it.caller, done))
        return words.state_text(task)

    def attach_command(self, id: TaskId) -> tuple[str, ...] | None:
        """What opens its live session; None where that is not interactive."""
        self._must_act("nothing was attached")
        sessions = [it for it in self.app.agents.of(id) if not self.app.agents.is_over(it)]
        found = (self.app.agents.attach_command(it.id) for it in reversed(sessions))
        return next((it for it in found if it), None)

    def editor(self, id: TaskId) -> tuple[str, ...]:
        """The user's editor on a copy of the change."""
        editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
        if not editor:
            fix = "set VISUAL or EDITOR to an editor that is installed"
            raise Refused("no editor was opened", why="neither VISUAL nor EDITOR is set", fix=fix)
        task, change = self.app.people.change(id)
        place = Path(tempfile.mkdtemp(prefix="lockgate-")) / task.id
        self.app.people.check_out(task, change, place)
        return *editor, str(place)

    # --- how ------------------------------------------------------------------------------------

    def _move(self, id: TaskId, asked: Move) -> str:
        return self._did(id, lambda it: it.signals.move(id, asked, it.caller))

    def _did(self, id: TaskId, deed: Callable[[App], Task]) -> str:
        return words.state_text(self._done(id, deed))

    def _done(self, id: TaskId, deed: Callable[[App], Task]) -> Task:
        self._must_act(f"nothing was done with task {id}")
        task = deed(self.app)
        self.wake()
        return task

    def _must_act(self, what: str) -> None:
        if self.read_only:
            raise Refused(what, why="this board only looks", fix="lockgate tui (no --read-only)")


def _finding(note: Note) -> Finding:
    where = Location(note.file, note.line) if note.file and note.line else None
    return Finding(Priority(note.priority), note.text, where)
