"""Keeps the disk from running away: clones that nobody works in are released, their work kept."""

from dataclasses import dataclass

from lockgate.core.model.task import Status, Task, TaskId
from lockgate.ports import Store, TaskFilter, Workspaces

IDLE = frozenset({Status.STUCK, Status.PAUSED_FOR_INTERVENTION, Status.CLARIFICATION})
BATCH = 1000


@dataclass(frozen=True, slots=True)
class Housekeeper:
    """A released clone comes back with its work when its task goes on."""

    store: Store
    workspaces: Workspaces
    pool_bytes: int

    def tidy(self) -> tuple[TaskId, ...]:
        tasks = self.store.page(TaskFilter(None, IDLE), None, BATCH).tasks
        idle = [(self.store.project(it.project), it) for it in tasks if self._is_free(it)]
        return self.workspaces.keep_within(self.pool_bytes, idle)

    def _is_free(self, task: Task) -> bool:
        alive = any(it.ended is None for it in self.store.sessions(task.id))
        return task.pinned is not None and not task.taken_over and not alive
