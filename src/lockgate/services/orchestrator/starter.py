"""Starts the tasks that wait, the urgent first, once what they depend on is done."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct, field

from lockgate.core.lifecycle.moves import Move
from lockgate.core.model.dag import Cycle, TaskDAG, UnknownNode
from lockgate.core.model.task import ProjectId, Status, Task, TaskId
from lockgate.errors import LockgateError
from lockgate.ports import Clock, Configuration, Store, TaskFilter
from lockgate.services.task.coordinator import LOCKGATE, Coordinator
from lockgate.services.task.logins import usage_limits

BATCH = 1000
NO_LIMITS: Mapping[str, float] = {}
AGAIN_AFTER = 30.0  # seconds before a task that could not be started is tried again
AT_WORK = frozenset({Status.WORKING, Status.AGENT_REVIEW})


class Starter(Struct, frozen=True, kw_only=True):
    store: Store
    coordinator: Coordinator
    configuration: Configuration
    clock: Clock
    _refused: dict[TaskId, float] = field(default_factory=dict[TaskId, float])  # until when

    def start_ready(self, trouble: Callable[[str, str, TaskId], object]) -> None:
        slots: dict[ProjectId, int] = {}
        for task in self._ready():
            try:
                left = slots.get(task.project)
                left = self._free_slots(task.project) if left is None else left
                slots[task.project] = left - 1
                if left > 0:
                    self.coordinator.move(task.id, Move(Status.WORKING), LOCKGATE)
            except LockgateError as error:
                slots.setdefault(task.project, 0)  # no other task of it is tried now
                self._refused[task.id] = self.clock.now() + AGAIN_AFTER
                trouble(f"task {task.id}", f"{error} ({error.fix})", task.id)

    def blockers(self, task: Task) -> tuple[Task, ...]:
        """The tasks that it waits for."""
        named = (self.store.find(id) for id in task.depends_on)
        return tuple(it for it in named if it and it.status is not Status.DONE)

    def _ready(self) -> Iterator[Task]:
        pending = [it for it in self._all(frozenset({Status.PENDING})) if it.auto_start]
        pending.sort(key=lambda it: (it.priority, it.created, it.id))
        by_id = {it.id: it for it in pending}
        after = {it.id: _among(it.depends_on, by_id) for it in pending}
        order: TaskDAG[TaskId] | Cycle[TaskId] | UnknownNode[TaskId] = TaskDAG[TaskId].of(after)
        if not isinstance(order, TaskDAG):
            return
        limited = usage_limits(self.store, self.clock.now()) if pending else NO_LIMITS
        for id in order.ready(()):
            task = by_id[id]
            rests = task.agent in limited or self.clock.now() < self._refused.get(id, 0.0)
            if not rests and not self.blockers(task):
                yield task

    def _free_slots(self, project: ProjectId) -> int:
        slots = self.configuration.allowed_of(self.store.project(project)).project.slots
        now = self.clock.now()
        at_work = self._all(AT_WORK, project)
        return slots - sum(1 for it in at_work if not it.dead and it.not_before <= now)

    def _all(self, statuses: frozenset[Status], project: ProjectId | None = None) -> Iterator[Task]:
        which, after = TaskFilter(project, statuses), None
        while True:
            page = self.store.page(which, after, BATCH)
            yield from page.tasks
            after = page.after
            if after is None:
                return


def _among(ids: Iterable[TaskId], known: dict[TaskId, Task]) -> list[TaskId]:
    return [id for id in ids if id in known]
