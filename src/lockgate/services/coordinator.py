"""The wheel: load, decide, commit, act. Every change of status goes through here, whoever asks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from lockgate.core import judging, records, session_turns, turns
from lockgate.core.agents import End
from lockgate.core.decision import Decision, Evidence, Refusal
from lockgate.core.effects import MirrorTask, SpawnAgent
from lockgate.core.evaluation import SingleGateResult
from lockgate.core.model import Actor, Role, Session, SessionId, Task, TaskId
from lockgate.errors import Refused, StaleTask, TransitionRefused
from lockgate.ports import Store
from lockgate.services.callers import Caller, hashed
from lockgate.services.effector import Effector
from lockgate.services.evidence import Look, Witness, behind

TRIES = 8
LOCKGATE = Caller(Actor.ORCHESTRATOR)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a session works, and by which id its program resumes."""

    directory: str | None = None
    native: str = ""


NOWHERE = Place()


@dataclass(frozen=True, slots=True)
class Coordinator:
    store: Store
    witness: Witness
    effector: Effector

    def move(self, id: TaskId, asked: turns.Move, caller: Caller) -> Task:
        """The validated move; TransitionRefused says why not."""
        return self.turn(id, lambda seen: turns.move(seen, asked), caller)

    def resume(self, id: TaskId, directive: str, caller: Caller) -> Task:
        """Out of paused-for-intervention, with the count of failed attempts at nought."""
        return self.turn(id, lambda seen: turns.resumed(seen, directive), caller)

    def attempt_failed(self, id: TaskId, reason: str) -> Task:
        return self.turn(id, lambda seen: turns.attempt_failed(seen, reason))

    def change_taken(self, id: TaskId, commit: str, files: tuple[str, ...]) -> Task:
        return self.turn(id, lambda seen: judging.change_taken(seen, commit, files))

    def judged(self, id: TaskId, results: Sequence[SingleGateResult]) -> Task:
        return self.turn(id, lambda seen: judging.judged(seen, results))

    def session_started(
        self, id: TaskId, spawn: SpawnAgent, token: str, place: Place = NOWHERE
    ) -> Task:
        """The session that the task waits for begins; whoever holds the token acts as its role."""
        token_hash = hashed(token)

        def decide(seen: Evidence) -> Decision | Refusal:
            return session_turns.session_started(
                seen, spawn, token_hash, place.directory, place.native
            )

        return self.turn(id, decide)

    def session_ended(self, id: SessionId, end: End = session_turns.PLAIN) -> Task:
        """An agent is gone, with or without a signal: the same decision either way."""
        session = self._session(id)

        def decide(seen: Evidence) -> Decision | Refusal:
            return session_turns.session_ended(replace(seen, session=self._session(id)), end)

        return self.turn(session.task, decide, Caller(Actor.ORCHESTRATOR, session))

    def respawn(self, id: TaskId, directive: str, caller: Caller) -> Task:
        def decide(seen: Evidence) -> Decision | Refusal:
            alive = any(it.ended is None for it in self._current(seen.task))
            return session_turns.respawned(seen, alive=alive, directive=directive)

        return self.turn(id, decide, caller)

    def take_over(self, id: TaskId, caller: Caller) -> Task:
        return self.turn(id, session_turns.taken_over, caller)

    def hand_back(self, id: TaskId, caller: Caller) -> Task:
        return self.turn(id, session_turns.handed_back, caller)

    def turn(
        self,
        id: TaskId,
        decide: Callable[[Evidence], Decision | Refusal],
        caller: Caller = LOCKGATE,
        write: Callable[[Decision], None] | None = None,
    ) -> Task:
        """One turn of the wheel, taken again when somebody else's came in between."""
        if behind(self.store, id):  # what an earlier turn accepted is written before it is read
            self.effector.carry_out(id)
        for _ in range(TRIES):
            look = self.witness.look(id, caller)
            try:
                if look.tampered is not None:
                    self._put_right(look, look.tampered)
                    continue
                decision = decide(look.evidence)
                if isinstance(decision, Refusal):
                    raise refused(id, decision)
                (write or self.store.commit)(_carrying(decision, look))
            except StaleTask:
                continue
            self.effector.carry_out(id)
            return decision.task
        raise StaleTask(id)

    def _session(self, id: SessionId) -> Session:
        session = self.store.session(id)
        if session is None:
            why, fix = "no session has that id", "lockgate task list"
            raise Refused(f"session {id} was not ended", why=why, fix=fix)
        return session

    def _current(self, task: Task) -> Iterator[Session]:
        """The sessions that are heard: the newest worker, and the reviewers of this evaluation."""
        for session in self.store.sessions(task.id):
            worker = session.role is Role.WORKER
            if session.generation >= (task.generation if worker else task.since):
                yield session

    def _put_right(self, look: Look, found: str) -> None:
        seen = look.evidence
        self.store.commit(records.put_right(seen.task, found, seen.now))
        self.effector.carry_out(seen.task.id)


def _carrying(decision: Decision, look: Look) -> Decision:
    """The decision with the text it was made on, so that the two are on disk together."""
    if not look.merged:
        return replace(decision, body=look.body)
    effects = tuple(
        MirrorTask(accepted=True) if isinstance(effect, MirrorTask) else effect
        for effect in decision.effects
    )
    return replace(decision, body=look.body, effects=effects)


def refused(id: TaskId, refusal: Refusal) -> TransitionRefused:
    return TransitionRefused(id, refusal.source, refusal.target, why=refusal.why, fix=refusal.fix)
