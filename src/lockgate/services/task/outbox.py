"""Carries out effects once the decision is on disk, each safe to do twice.

What has no hands yet stays in the outbox, for an orchestrator that has them.
"""

from msgspec import Struct

from lockgate.core.lifecycle.decision import (
    DiscardTask,
    Effect,
    EndSessions,
    EvaluateGates,
    MirrorTask,
    NotifyHuman,
    PrepareWorkspace,
    PublishChange,
    ReleaseWorkspace,
    SpawnAgent,
    overtaken,
)
from lockgate.core.model.facts import event_line
from lockgate.core.model.task import Task, TaskId
from lockgate.core.text.task_file import Readable, TaskText, Unreadable, frontmatter
from lockgate.errors import Unavailable
from lockgate.ports import Store, TaskFiles

BATCH = 100


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
