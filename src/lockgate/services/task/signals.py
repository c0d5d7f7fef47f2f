"""What an agent says while it works: it is done, or here is where it stands."""

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.lifecycle.decision import Decision, Evidence
from lockgate.core.lifecycle.moves import Move, Work, move
from lockgate.core.lifecycle.reviews import handed_in
from lockgate.core.lifecycle.words import heard, waiting_words
from lockgate.core.model.facts import as_facts
from lockgate.core.model.task import Actor, Checkpoint, Session, Status, Task, TaskId
from lockgate.core.prompts.worker import left_behind, spoken
from lockgate.errors import LockgateError, WordsWaiting
from lockgate.ports import Change, Clock, Store, TaskFiles, Workspaces
from lockgate.services.task.callers import Caller
from lockgate.services.task.coordinator import LOCKGATE, Coordinator, refused

NOTHING = Change("", ())
FINAL, INCREMENTAL = "final", "incremental"


class Said(Struct, frozen=True, kw_only=True):
    """What comes with a checkpoint; nobody takes it for more than it is."""

    type: str = FINAL
    summary: str = ""
    confidence: float | None = None


class Signals(Struct, frozen=True, kw_only=True):
    store: Store
    coordinator: Coordinator
    workspaces: Workspaces
    files: TaskFiles
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

    def checkpoint(self, id: TaskId, caller: Caller, said: Said) -> Checkpoint:
        """Keep where the work stands, with a snapshot of it."""
        seen = self.coordinator.witness.look(id, caller).evidence
        return self._checkpoint(seen, said, self._taken(seen.task), caller.session)

    def completed(self, task: Task, change: Change) -> Checkpoint:
        """The final checkpoint of work that no signal brought, or that a signal could not bring."""
        seen = self.coordinator.witness.look(task.id, LOCKGATE).evidence
        return self._checkpoint(seen, Said(), change)

    def _checkpoint(
        self, seen: Evidence, said: Said, change: Change, session: Session | None = None
    ) -> Checkpoint:
        id, hide = seen.task.id, self.coordinator.witness.hide(seen.task)
        before = left_behind(self.files.last_checkpoint(id) or {})
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
        return replace(noted, sequence=self.files.add_checkpoint(id, facts))

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
