"""Who is at work on a task: sessions that begin and end, and what people ask of them.

Also what an agent says while it works: it is done, or here is where it stands.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.fleet import Asked, Needed
from lockgate.core.lifecycle import sessions, words
from lockgate.core.lifecycle.decision import Decision, Declined, Evidence, SpawnAgent
from lockgate.core.lifecycle.moves import Move, Work, move
from lockgate.core.lifecycle.reviews import handed_in
from lockgate.core.lifecycle.sessions import NOWHERE, Place
from lockgate.core.lifecycle.words import asked_text, heard, waiting_words
from lockgate.core.model.agents import End
from lockgate.core.model.facts import as_facts
from lockgate.core.model.task import (
    Actor,
    Checkpoint,
    Role,
    Session,
    SessionId,
    Status,
    Task,
    TaskId,
)
from lockgate.core.prompts.worker import left_behind, spoken
from lockgate.core.text.checkpoints import newer, number_of
from lockgate.core.text.task_file import Readable, frontmatter, replace_section
from lockgate.errors import LockgateError, Refused, WordsWaiting
from lockgate.ports import Change, Clock, Sessions, Store, TaskFiles, Workspaces
from lockgate.ports.lanes import LastCheckpoints
from lockgate.services.task.callers import Caller, hashed, must_be_heard
from lockgate.services.task.coordinator import LOCKGATE, Coordinator, refused
from lockgate.services.task.fleet import FilesOfHosts

NOTHING = Change("", ())
FINAL, INCREMENTAL = "final", "incremental"


class AgentSessions(Struct, frozen=True):
    """The sessions of tasks as people watch them."""

    store: Store
    sessions: Sessions
    hosts: FilesOfHosts

    def of(self, id: TaskId) -> tuple[Session, ...]:
        """Oldest first."""
        return self.store.sessions(id)

    def at_work(self) -> tuple[Session, ...]:
        return self.store.sessions_alive()

    def is_over(self, session: Session) -> bool:
        """Whether its program has ended; its row may not say so yet."""
        return session.ended is not None or self.sessions.exit_of(session.id) is not None

    def output(self, session: Session) -> list[str]:
        """Refused where another host has it; the database is asked only where none is here."""
        said = self.sessions.output(session.id)
        if not said:
            id, task = session.task, self.store.load(session.task)
            what, page = f"no output of task {id} is shown", f"/t/{id}/output/{session.id}"
            asked = Asked(what, f"task peek {id} --session {session.id}", page)
            self.hosts.must_be_here(asked, task, Needed.SESSION, session)
        return said.splitlines()

    def attach_command(self, id: SessionId) -> tuple[str, ...] | None:
        """What a person runs to sit at it; None where it is not interactive, or not yet there."""
        return self.sessions.attach_command(id)

    def has_ended(self, id: SessionId) -> bool:
        """As its own files say, by which one can wait for it: the database is not asked."""
        return self.sessions.exit_of(id) is not None

    def end_all(self, grace: float) -> None:
        for session in self.at_work():
            self.sessions.end(session.id, grace)


class Attendance(Struct, frozen=True):
    coordinator: Coordinator

    def session_started(
        self, id: TaskId, spawn: SpawnAgent, token: str, place: Place = NOWHERE, slots: int = 0
    ) -> Task:
        """Begin the session that the task waits for; the holder of the token acts in its role.

        NoFreeSlot where so many of other tasks of its project are at work already; 0 is no limit.
        """
        token_hash = hashed(token)
        place = replace(place, host=self.coordinator.witness.host)

        def decide(seen: Evidence) -> Decision | Declined:
            return sessions.session_started(seen, spawn, token_hash, place, slots)

        return self.coordinator.turn(id, decide, what=f"no session of task {id} was started")

    def keep_waiting(self, id: TaskId, spawn: SpawnAgent, until: float) -> Task:
        """All agents of the task are limited, and a human is to say when it goes on."""

        def decide(seen: Evidence) -> Decision | Declined:
            return sessions.kept_waiting(seen, spawn, until)

        return self.coordinator.turn(id, decide, what=f"task {id} does not wait for a human")

    def session_ended(self, id: SessionId, end: End = sessions.PLAIN) -> Task:
        """An agent is gone, with or without a signal: the same decision either way."""
        session = self._session(id)

        def decide(seen: Evidence) -> Decision | Declined:
            return sessions.session_ended(replace(seen, session=self._session(id)), end)

        caller, what = Caller(Actor.ORCHESTRATOR, session), f"session {id} was not ended"
        return self.coordinator.turn(session.task, decide, caller, what)

    def ask(self, id: TaskId, said: str, caller: Caller) -> Task:
        """Note that the Stop hook holds the agent up; declined where it has been asked before."""
        what = f"the agent of task {id} was not asked to hand in"
        return self.coordinator.turn(
            id, lambda seen: sessions.asked_to_hand_in(seen, said), caller, what
        )

    def say(self, id: TaskId, text: str, caller: Caller, *, at_once: bool) -> Task:
        """Queue a human's word for the agent; at once, its session ends and goes on with it."""
        resumes = at_once and self.coordinator.witness.can_resume(id)
        return self.coordinator.turn(
            id,
            lambda seen: words.said(seen, text, at_once=at_once, resumes=resumes),
            caller,
            f"nothing was said to the agent of task {id}",
        )

    def change_word(self, id: TaskId, place: int, text: str, caller: Caller) -> Task:
        what = f"the messages to the agent of task {id} stay as they are"
        return self.coordinator.turn(
            id, lambda seen: words.word_changed(seen, place, text), caller, what
        )

    def respawn(self, id: TaskId, directive: str, caller: Caller) -> Task:
        def decide(seen: Evidence) -> Decision | Declined:
            alive = any(it.ended is None for it in self._current(seen.task))
            return sessions.respawned(seen, alive=alive, directive=directive)

        what = f"the agent of task {id} was not restarted"
        return self.coordinator.turn(id, decide, caller, what)

    def take_over(self, id: TaskId, caller: Caller) -> Task:
        what = f"task {id} was not taken over"
        return self.coordinator.turn(id, sessions.taken_over, caller, what)

    def sit_down(self, id: TaskId, caller: Caller) -> Task:
        """A human works in the workspace by hand; declined while an agent does."""

        def decide(seen: Evidence) -> Decision | Declined:
            alive = any(it.ended is None for it in self._current(seen.task))
            return sessions.sat_down(seen, alive=alive)

        what = f"no shell was opened in the workspace of task {id}"
        return self.coordinator.turn(id, decide, caller, what)

    def hand_back(self, id: TaskId, caller: Caller) -> Task:
        what = f"task {id} was not handed back"
        return self.coordinator.turn(id, sessions.handed_back, caller, what)

    def _session(self, id: SessionId) -> Session:
        session = self.coordinator.store.session(id)
        if session is None:
            why, fix = "no session has that id", "lockgate task list"
            raise Refused(f"session {id} was not ended", why=why, fix=fix)
        return session

    def _current(self, task: Task) -> Iterator[Session]:
        """The sessions that are heard: the newest worker, and the reviewers of this evaluation."""
        for session in self.coordinator.store.sessions(task.id):
            worker = session.role is Role.WORKER
            if session.generation >= (task.generation if worker else task.since):
                yield session


# What an agent says while it works.


class Said(Struct, frozen=True, kw_only=True):
    """What comes with a checkpoint; nobody takes it for more than it is."""

    type: str = FINAL
    summary: str = ""
    confidence: float | None = None


class Checkpoints(Struct, frozen=True):
    """The last checkpoint of each task, for all hosts; each is a file on the host that made it."""

    kept: LastCheckpoints
    files: TaskFiles

    def last(self, id: TaskId) -> Mapping[str, object]:
        """Empty where the task has none."""
        return newer(self.kept.of(id), self.files.last_checkpoint(id))

    def add(self, id: TaskId, facts: Mapping[str, object], after: int) -> int:
        """Keep it under a number higher than `after`, which is the answer."""
        number = self.files.add_checkpoint(id, facts, after)
        self.kept.put(id, number, facts)
        return number


class Signals(Struct, frozen=True, kw_only=True):
    store: Store
    coordinator: Coordinator
    workspaces: Workspaces
    files: TaskFiles
    checkpoints: Checkpoints
    clock: Clock

    def move(self, id: TaskId, asked: Move, caller: Caller, said: Said | None = None) -> Task:
        """The validated move. A worker's done signal takes its work along, as it is now."""
        if asked.target is not Status.AGENT_REVIEW or caller.actor is not Actor.WORKER:
            return self.coordinator.move(id, asked, caller)
        self.hear(id, caller)
        seen = self.coordinator.witness.look(id, caller).evidence
        answer = move(seen, asked)
        if not isinstance(answer, Decision):
            raise refused(id, answer, f"task {id} was not moved")
        change = self._taken(seen.task)
        noted = self._checkpoint(seen, said or Said(), change, caller.session)
        work = Work(noted, change.commit, change.patch, change.size, change.mended)
        return self.coordinator.move(id, Move(asked.target, asked.reason, work=work), caller)

    def hear(self, id: TaskId, caller: Caller) -> None:
        """Raise WordsWaiting with what humans said since the agent last listened: told once."""
        words = waiting_words(self.store.load(id))
        if not words:
            return
        upto = words[-1].number
        what = f"task {id} was not moved"
        self.coordinator.turn(id, lambda seen: heard(seen, upto), caller, what)
        fix = "do what it asks for, then hand in again"
        raise WordsWaiting(what, why=spoken(words), fix=fix)

    def review(self, id: TaskId, text: str, caller: Caller) -> Task:
        """What a reviewer hands in, whole or not at all."""
        what = f"no review of task {id} was handed in"
        return self.coordinator.turn(id, lambda seen: handed_in(seen, text), caller, what)

    def ask(self, id: TaskId, questions: Sequence[str], caller: Caller) -> Task:
        """A worker asks a human: its `## Questions`, as it would write them, and the move."""
        what = f"no question of task {id} was asked"
        text = asked_text(questions)
        if isinstance(text, Declined):
            raise refused(id, text, what)
        asked = Move(Status.CLARIFICATION)
        answer = move(self.coordinator.witness.look(id, caller).evidence, asked)
        if not isinstance(answer, Decision):
            raise refused(id, answer, what)
        self._write(self.store.load(id), "Questions", text, caller.session)
        return self.coordinator.move(id, asked, caller)

    def _write(self, task: Task, title: str, text: str, session: Session | None) -> None:
        """Into the TASK.md that the session works with, which is read for what it says."""
        where = session.directory if session else None
        found = self.files.read(task.id) if where is None else self.files.read_at(Path(where))
        body = found.body if isinstance(found, Readable) else ""
        if where is None:
            self.files.write(task.id, frontmatter(task), replace_section(body, title, text))
            return
        kept = found if isinstance(found, Readable) else Readable(None, "", "")
        self.files.write_at(Path(where), kept, replace_section(body, title, text))

    def checkpoint(self, id: TaskId, caller: Caller, said: Said) -> Checkpoint:
        """Keep where the work stands, with a snapshot of it."""
        seen = self.coordinator.witness.look(id, caller).evidence
        must_be_heard(seen, f"no checkpoint of task {id} was kept")
        return self._checkpoint(seen, said, self._taken(seen.task), caller.session)

    def completed(self, task: Task, change: Change) -> Checkpoint:
        """The final checkpoint of work that no signal brought, or that a signal could not bring."""
        seen = self.coordinator.witness.look(task.id, LOCKGATE).evidence
        return self._checkpoint(seen, Said(), change)

    def _checkpoint(
        self, seen: Evidence, said: Said, change: Change, session: Session | None = None
    ) -> Checkpoint:
        id, hide = seen.task.id, self.coordinator.witness.hide(seen.task)
        last = self.checkpoints.last(id)
        before = left_behind(last)
        noted = Checkpoint(
            sequence=0,
            type=said.type,
            files_modified=change.files if change.commit else before.files,
            work_summary=hide(said.summary.strip()) or _handoff(seen) or before.work_summary,
            confidence=said.confidence,
        )
        facts: dict[str, object] = {
            **{key: value for key, value in as_facts(noted).items() if key != "sequence"},
            "time": self.clock.now(),
            "commit": change.commit,
            "session": session.id if session else None,
        }
        return replace(noted, sequence=self.checkpoints.add(id, facts, number_of(last)))

    def _taken(self, task: Task) -> Change:
        """The work as a commit; where it cannot be had now, or is unfit, the evaluation says so."""
        if task.pinned is None or not self.workspaces.place(task.id).is_dir():
            return NOTHING
        try:
            taken = self.workspaces.take(self.store.project(task.project), task)
        except LockgateError:
            return NOTHING
        return taken if isinstance(taken, Change) else NOTHING


def _handoff(seen: Evidence) -> str:
    return (seen.found.handoff or "").strip()
