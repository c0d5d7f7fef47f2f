"""What people do to a task besides moving it: answer a gate, take over, repin, resume."""

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from lockgate.core.config.settings import SandboxLevel
from lockgate.core.fleet import Asked, Needed
from lockgate.core.lifecycle import approvals, records
from lockgate.core.lifecycle.decision import Decision, Declined, Evidence
from lockgate.core.lifecycle.moves import Move
from lockgate.core.lifecycle.records import repinned
from lockgate.core.lifecycle.words import edited
from lockgate.core.model.escalation import EscalationGuard, escalation_guard
from lockgate.core.model.findings import Finding
from lockgate.core.model.task import Status, Task, TaskId
from lockgate.core.text.task_file import (
    WORKER_SECTIONS,
    Readable,
    frontmatter,
    merge_sections,
    replace_section,
    section_text,
)
from lockgate.errors import Refused
from lockgate.ports import (
    Change,
    Configuration,
    Harnesses,
    Project,
    Store,
    TaskFiles,
    Workspaces,
    candidate_of,
)
from lockgate.ports.work import Becomes, Shell
from lockgate.services.task.callers import HUMAN, Caller, must_be_human
from lockgate.services.task.coordinator import Coordinator, refused
from lockgate.services.task.fleet import FilesOfHosts
from lockgate.services.task.sessions import Attendance
from lockgate.services.task.tasks import accept


class Approvals(Struct, frozen=True):
    """`patch` is the change that was shown, or how it begins; empty is the one that is there."""

    coordinator: Coordinator

    def reject(
        self, id: TaskId, comment: str, findings: Sequence[Finding], patch: str, caller: Caller
    ) -> Task:
        def decide(seen: Evidence) -> Decision | Declined:
            return approvals.rejected(seen, comment, findings, patch)

        return self._answer(id, f"task {id} was not rejected", decide, caller)

    def comment(self, id: TaskId, text: str, caller: Caller) -> Task:
        def decide(seen: Evidence) -> Decision | Declined:
            return approvals.commented(seen, text)

        return self._answer(id, f"the comment on task {id} was not saved", decide, caller)

    def _answer(
        self,
        id: TaskId,
        otherwise: str,
        decide: Callable[[Evidence], Decision | Declined],
        caller: Caller,
    ) -> Task:
        must_be_human(caller, otherwise)
        return self.coordinator.turn(id, decide, caller, otherwise)


# What people do with a task besides moving it: answer, take over, hand back, look.


class People(Struct, frozen=True):
    store: Store
    attendance: Attendance
    workspaces: Workspaces
    files: TaskFiles
    hosts: FilesOfHosts

    def answer(self, id: TaskId, text: str, caller: Caller) -> Task:
        """What a clarification asked for; the agent goes on with it."""
        must_be_human(caller, f"task {id} was not answered")
        status = self.store.load(id).status
        if status is not Status.CLARIFICATION:
            raise Refused(
                f"task {id} was not answered",
                why=f"it is {status}, and asks no question",
                fix=f"lockgate task show {id}",
            )
        return self.attendance.coordinator.move(id, Move(Status.WORKING, "answered", text), caller)

    def say(self, id: TaskId, text: str, caller: Caller, *, at_once: bool = False) -> Task:
        must_be_human(caller, f"nothing was said to the agent of task {id}")
        return self.attendance.say(id, text, caller, at_once=at_once)

    def change_word(self, id: TaskId, place: int, text: str, caller: Caller) -> Task:
        """Another text for a word that its agent has yet to hear; an empty one takes it out."""
        must_be_human(caller, f"the messages to the agent of task {id} stay as they are")
        return self.attendance.change_word(id, place, text, caller)

    def description(self, id: TaskId) -> tuple[str, str]:
        """The goal and the Context of a task, as `edit` takes them."""
        canonical = self.files.read(id)
        body = canonical.body if isinstance(canonical, Readable) else self.store.body(id) or ""
        return self.store.load(id).goal, section_text(body, "Context")

    def edit(self, id: TaskId, goal: str, context: str, caller: Caller) -> Task:
        """Another goal or Context; what cannot be taken changes nothing."""
        what = f"task {id} was not edited"
        must_be_human(caller, what)
        accept(records.check_summary(goal), what)
        accept(records.check_context(context), what)
        _, before = self.description(id)
        coordinator = self.attendance.coordinator

        def decide(seen: Evidence) -> Decision | Declined:
            return edited(seen, goal, before, context)

        look = coordinator.witness.look(id, caller)
        answer = decide(look.evidence)
        if not isinstance(answer, Decision):
            raise refused(id, answer, what)
        body = replace_section(look.body or "", "Context", context)
        self.files.write(id, frontmatter(look.evidence.task), body)
        return coordinator.turn(id, decide, caller, what)

    def take_over(self, id: TaskId, caller: Caller) -> Task:
        what = f"task {id} was not taken over"
        must_be_human(caller, what)
        asked = Asked(what, f"takeover {id}")
        self.hosts.must_be_here(asked, self.store.load(id), Needed.CLONE)
        return self.attendance.take_over(id, caller)

    def hand_back(self, id: TaskId, caller: Caller, done: str = "") -> Task:
        """With the worker's sections as the workspace has them, or these words as Handoff."""
        what = f"task {id} was not handed back"
        must_be_human(caller, what)
        task = self.store.load(id)
        asked = Asked(what, f"handback {id}")
        self.hosts.must_be_here(asked, task, Needed.CLONE)
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
            return task, self.workspaces.change(candidate_of(project, task))
        asked = Asked(f"the change of task {id} is not shown", f"diff {id}", f"/t/{id}/review")
        self.hosts.must_be_here(asked, task, Needed.CHANGE)
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

    def judged_files(self, task: Task) -> tuple[str, ...]:
        """Of the commit that is judged, which there must be."""
        return self.workspaces.change(candidate_of(self.store.project(task.project), task)).files

    def check_out(self, task: Task, change: Change, directory: Path) -> None:
        """A copy of the whole checkout of a change."""
        project = self.store.project(task.project)
        self.workspaces.checkout(candidate_of(project, task, change.commit), directory)

    def diff(self, id: TaskId) -> str:
        task, change = self.change(id)
        return self.workspaces.diff(self.store.project(task.project), task, change.commit)


# `shell`: a human's own program in a task's workspace, as the task's agent would see it.


class Shells(Struct, frozen=True, kw_only=True):
    home: Path
    people: People
    configuration: Configuration
    harnesses: Harnesses
    enclose: Callable[[Shell], Becomes]

    def open(
        self, id: TaskId, caller: Caller, argv: tuple[str, ...], *, read_only: bool, terminal: bool
    ) -> tuple[Task, Becomes]:
        """The task, which is the human's from now on unless they only look, and what to run.

        Without a command it is a shell.
        """
        what = f"no shell was opened in the workspace of task {id}"
        must_be_human(caller, what)
        task, workspaces = self.people.store.load(id), self.people.workspaces
        self.people.hosts.must_be_here(Asked(what, f"shell {id}"), task, Needed.CLONE)
        place = workspaces.place(id)
        if not place.is_dir():
            why, fix = f"it is {task.status} and has no workspace", f"lockgate task why {id}"
            raise Refused(what, why=why, fix=fix)
        project = self.people.store.project(task.project)
        settings = self.configuration.allowed_for(task, project)
        sandboxed = settings.sandbox.level is SandboxLevel.AUTO
        if read_only and not sandboxed:
            why = "without a sandbox nothing can be mounted read-only"
            raise Refused(what, why=why, fix=f"look at a copy: lockgate open {id}")
        workspaces.set_up(candidate_of(project, task), settings, place)
        shell = Shell(
            argv=argv,
            workspace=place,
            home=self.home / "homes" / id,
            base=workspaces.base(project),
            read=(*self.harnesses.paths(task.agent, settings), *settings.sandbox.read),
            sandboxed=sandboxed,
            read_only=read_only,
            terminal=terminal,
        )
        if not read_only:
            task = self.people.attendance.sit_down(id, caller)
        return task, self.enclose(shell)


# `task repin`: the rules of the base branch as it is now, for a task that has others.


class Repinning(Struct, frozen=True):
    coordinator: Coordinator
    configuration: Configuration

    def repin(self, id: TaskId, caller: Caller) -> Task:
        """BadConfig where the base's configuration cannot be taken: then nothing changes."""
        what = f"task {id} keeps its rules"
        must_be_human(caller, what)
        store = self.coordinator.store
        rules = self.configuration.rules_of(store.project(store.load(id).project))
        return self.coordinator.turn(id, lambda seen: repinned(seen, rules), caller, what)


# S4's task runner: attempts until the work is handed on, and stops at the threshold.


# One attempt at a task's work; the answer is why it failed, or None where it handed on.
Implementer = Callable[[Task], str | None]


class TaskRunner(Struct, frozen=True):
    """The guard holds no truth: it is loaded from the task's row before it is asked."""

    coordinator: Coordinator
    guard: EscalationGuard = escalation_guard

    def run(self, id: TaskId, implement: Implementer) -> Task:
        """Attempt the task while it is working; no attempt is scheduled that the guard forbids."""
        task = self._loaded(id)
        while task.status is Status.WORKING and not self.guard.should_escalate(id):
            failure = implement(task)
            if failure is not None:
                self.coordinator.attempt_failed(id, failure)
            task = self._loaded(id)
            if failure is None:
                break
        return task

    def resume(self, id: TaskId, directive: str = "", caller: Caller = HUMAN) -> Task:
        """Out of the pause and back into the queue: the row first, then the guard's memory."""
        task = self.coordinator.resume(id, directive, caller)
        self.guard.reset(id)
        return task

    def _loaded(self, id: TaskId) -> Task:
        task = self.coordinator.store.load(id)
        threshold = task.pinned.limits.escalation_threshold if task.pinned else None
        self.guard.load(id, task.failed_attempts, threshold)
        return task
