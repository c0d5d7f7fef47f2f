"""Who is at work on a task: sessions that begin and end, and what people ask of them."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.lifecycle import sessions, words
from lockgate.core.lifecycle.decision import Decision, Declined, Evidence, SpawnAgent
from lockgate.core.model.agents import End
from lockgate.core.model.task import Actor, Role, Session, SessionId, Task, TaskId
from lockgate.errors import Refused
from lockgate.ports import Sessions, Store
from lockgate.services.task.callers import Caller, hashed
from lockgate.services.task.coordinator import Coordinator


class Place(Struct, frozen=True):
    """Where a session works, by which id its program resumes, and what its prompt tells.

    `heard` is the number of the last word of a human that is in the prompt.
    """

    directory: str | None = None
    native: str = ""
    heard: int = 0


NOWHERE = Place()


class AgentSessions(Struct, frozen=True):
    """The sessions of tasks as people watch them."""

    store: Store
    sessions: Sessions

    def of(self, id: TaskId) -> tuple[Session, ...]:
        """Oldest first."""
        return self.store.sessions(id)

    def at_work(self) -> tuple[Session, ...]:
        return self.store.sessions_alive()

    def is_over(self, session: Session) -> bool:
        """Whether its program has ended; its row may not say so yet."""
        return session.ended is not None or self.sessions.exit_of(session.id) is not None

    def output(self, session: Session) -> list[str]:
        return self.sessions.output(session.id).splitlines()

    def attach_command(self, session: Session) -> tuple[str, ...] | None:
        """What a person runs to sit at it; None where it is not interactive, or not yet there."""
        return self.sessions.attach_command(session.id)

    def end_all(self, grace: float) -> None:
        for session in self.at_work():
            self.sessions.end(session.id, grace)


class Attendance(Struct, frozen=True):
    coordinator: Coordinator

    def session_started(
        self, id: TaskId, spawn: SpawnAgent, token: str, place: Place = NOWHERE
    ) -> Task:
        """The session that the task waits for begins; whoever holds the token acts as its role."""
        token_hash = hashed(token)

        def decide(seen: Evidence) -> Decision | Declined:
            return sessions.session_started(
                seen, spawn, token_hash, place.directory, place.native, place.heard
            )

        return self.coordinator.turn(id, decide, what=f"no session of task {id} was started")

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
        what = f"the words for the agent of task {id} stay as they are"
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
