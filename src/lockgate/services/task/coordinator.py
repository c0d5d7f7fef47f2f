"""The wheel: load, decide, commit, act. Every change of status goes through here.

Effects are carried out once the decision is on disk, each safe to do twice. What has no hands yet
stays in the outbox, for an orchestrator that has them.
"""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.lifecycle import moves, records
from lockgate.core.lifecycle.decision import (
    Decision,
    Declined,
    DiscardTask,
    Effect,
    EndSessions,
    EvaluateGates,
    Evidence,
    MirrorTask,
    NotifyHuman,
    PrepareWorkspace,
    PublishChange,
    Refusal,
    ReleaseWorkspace,
    SpawnAgent,
    overtaken,
)
from lockgate.core.model.facts import event_line, redacted
from lockgate.core.model.task import Actor, Task, TaskId
from lockgate.core.text.task_file import Readable, TaskText, Unreadable, frontmatter
from lockgate.errors import StaleTask, TransitionRefused, TurnDeclined, Unavailable
from lockgate.ports import Store, TaskFiles
from lockgate.services.task.callers import Caller, must_be_human
from lockgate.services.task.evidence import Look, Witness, behind

BATCH = 100
TRIES = 8
LOCKGATE = Caller(Actor.ORCHESTRATOR)


# The effects of a decision.


class Effector(Struct, frozen=True):
    store: Store
    files: TaskFiles

    def carry_out(self, id: TaskId) -> None:
        pending = self.store.pending_effects(id, BATCH)
        task = self.store.find(id)
        done = [it.key for it in pending if self._tried(it.effect, id, task)]
        if done:
            self.store.effects_done(done)

    def _tried(self, effect: Effect, id: TaskId, task: Task | None) -> bool:
        """What the surroundings did not let us do stays to be done; the decision stands."""
        try:
            return self._did(effect, id, task)
        except Unavailable:
            return False

    def _did(self, effect: Effect, id: TaskId, task: Task | None) -> bool:
        if isinstance(effect, DiscardTask):
            self.files.discard(id)
            return True
        if task is None:
            return True
        match effect:
            case MirrorTask(accepted):
                return self._mirror(task, accepted=accepted)
            case PrepareWorkspace() | SpawnAgent() | EvaluateGates() | NotifyHuman():
                return overtaken(effect, task)
            case EndSessions() | PublishChange() | ReleaseWorkspace():
                return overtaken(effect, task)

    def _mirror(self, task: Task, *, accepted: bool) -> bool:
        """A TASK.md that cannot be read is left for a human: writing would lose what is in it."""
        id, text = task.id, self.files.read(task.id)
        if isinstance(text, Unreadable):
            return False
        kept = text.body if isinstance(text, Readable) and not accepted else None
        if kept is None or _blank(text):
            kept = self.store.body(id) or ""
        self.files.write(id, frontmatter(task), kept)
        since = self.files.last_exported(id)
        news = self.store.events(id, since, BATCH)
        self.files.append_history(id, [event_line(event) for event in news])
        return True


def _blank(text: TaskText) -> bool:
    """As a power cut may leave a file: nothing in it, not even the frontmatter."""
    return isinstance(text, Readable) and text.frontmatter is None and not text.body.strip()


# The wheel.


class Coordinator(Struct, frozen=True):
    store: Store
    witness: Witness
    effector: Effector

    def move(self, id: TaskId, asked: moves.Move, caller: Caller) -> Task:
        """The validated move; TransitionRefused says why not."""
        return self.turn(
            id, lambda seen: moves.move(seen, asked), caller, f"task {id} was not moved"
        )

    def start(self, id: TaskId) -> Task:
        return self.turn(id, moves.started, what=f"task {id} was not started")

    def resume(self, id: TaskId, directive: str, caller: Caller) -> Task:
        """Move out of paused-for-intervention and set the count of failed attempts to 0."""
        what = f"task {id} was not resumed"
        return self.turn(id, lambda seen: moves.resumed(seen, directive), caller, what)

    def attempt_failed(self, id: TaskId, reason: str) -> Task:
        return self.turn(id, lambda seen: moves.attempt_failed(seen, reason))

    def turn(
        self,
        id: TaskId,
        decide: Callable[[Evidence], Decision | Refusal | Declined],
        caller: Caller = LOCKGATE,
        what: str = "",
        write: Callable[[Decision], None] | None = None,
    ) -> Task:
        """One turn of the wheel, taken again when somebody else's came in between.

        `what` says what did not happen where the decision declines.
        """
        if caller.actor is Actor.HUMAN:
            must_be_human(caller, what or f"task {id} was not changed")
        if behind(self.store, id):  # what an earlier turn accepted is written before it is read
            self.effector.carry_out(id)
        for _ in range(TRIES):
            look = self.witness.look(id, caller)
            try:
                if look.tampered is not None:
                    self._put_right(look, look.tampered)
                    continue
                decision = decide(look.evidence)
                if not isinstance(decision, Decision):
                    raise refused(id, decision, what)
                decision = redacted(_carrying(decision, look), look.hide)
                decision = replace(decision, by=caller.by, how=caller.how)
                (write or self.store.commit)(decision)
            except StaleTask:
                continue
            self.effector.carry_out(id)
            return decision.task
        raise StaleTask(id)

    def _put_right(self, look: Look, found: str) -> None:
        seen = look.evidence
        self.store.commit(records.put_right(seen.task, found, seen.now))
        self.effector.carry_out(seen.task.id)


def _carrying(decision: Decision, look: Look) -> Decision:
    """The decision with the text it was made on, so that the two are on disk together."""
    body = look.body_with(decision)
    if not look.merged and body == look.body:
        return replace(decision, body=body)
    effects = tuple(
        MirrorTask(accepted=True) if isinstance(effect, MirrorTask) else effect
        for effect in decision.effects
    )
    return replace(decision, body=body, effects=effects)


def refused(
    id: TaskId, answer: Refusal | Declined, what: str = ""
) -> TransitionRefused | TurnDeclined:
    match answer:
        case Refusal(source=source, target=target, why=why, fix=fix):
            return TransitionRefused(id, source, target, why=why, fix=fix)
        case Declined(why, fix):
            return TurnDeclined(what or f"task {id} was not changed", why=why, fix=fix)
