"""Who is at work on a task: sessions that begin and end, and what people ask of them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lockgate.core import session_turns
from lockgate.core.agents import End
from lockgate.core.decision import Decision, Declined, Evidence
from lockgate.core.effects import SpawnAgent
from lockgate.core.model import Actor, Role, Session, SessionId, Task, TaskId
from lockgate.errors import Refused
from lockgate.services.callers import Caller, hashed
from lockgate.services.coordinator import Coordinator


@dataclass(frozen=True, slots=True)
class Place:
    """Where a session works, and by which id its program resumes."""

    directory: str | None = None
    native: str = ""


NOWHERE = Place()


@dataclass(frozen=True, slots=True)
class Attendance:
    coordinator: Coordinator

    def session_started(
        self, id: TaskId, spawn: SpawnAgent, token: str, place: Place = NOWHERE
    ) -> Task:
        """The session that the task waits for begins; whoever holds the token acts as its role."""
        token_hash = hashed(token)

        def decide(seen: Evidence) -> Decision | Declined:
            return session_turns.session_started(
                seen, spawn, token_hash, place.directory, place.native
            )

        return self.coordinator.turn(id, decide, what=f"no session of task {id} was started")

    def session_ended(self, id: SessionId, end: End = session_turns.PLAIN) -> Task:
        """An agent is gone, with or without a signal: the same decision either way."""
        session = self._session(id)

        def decide(seen: Evidence) -> Decision | Declined:
            return session_turns.session_ended(replace(seen, session=self._session(id)), end)

        caller, what = Caller(Actor.ORCHESTRATOR, session), f"session {id} was not ended"
        return self.coordinator.turn(session.task, decide, caller, what)

    def respawn(self, id: TaskId, directive: str, caller: Caller) -> Task:
        def decide(seen: Evidence) -> Decision | Declined:
            alive = any(it.ended is None for it in self._current(seen.task))
            return session_turns.respawned(seen, alive=alive, directive=directive)

        what = f"the agent of task {id} was not restarted"
        return self.coordinator.turn(id, decide, caller, what)

    def take_over(self, id: TaskId, caller: Caller) -> Task:
        what = f"task {id} was not taken over"
        return self.coordinator.turn(id, session_turns.taken_over, caller, what)

    def hand_back(self, id: TaskId, caller: Caller) -> Task:
        what = f"task {id} was not handed back"
        return self.coordinator.turn(id, session_turns.handed_back, caller, what)

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
