"""Carries out what decisions asked the world for: workspaces, agents, their end; safe to repeat.

Also starts the tasks that wait, the urgent first, once what they depend on is done.
"""

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct, field

from lockgate.core.config.settings import in_turn
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
from lockgate.core.lifecycle.moves import Move
from lockgate.core.lifecycle.records import publish_skipped
from lockgate.core.lifecycle.transition import session_id
from lockgate.core.model.dag import Cycle, TaskDAG, UnknownNode
from lockgate.core.model.task import ProjectId, Role, Status, Task, TaskId
from lockgate.errors import LockgateError
from lockgate.ports import (
    Clock,
    Configuration,
    PendingEffect,
    Project,
    Sessions,
    Store,
    TaskFilter,
    Workspaces,
    candidate_of,
)
from lockgate.services.agents.spawner import GRACE, Spawner
from lockgate.services.gates.runner import Judge
from lockgate.services.task.coordinator import LOCKGATE, Coordinator
from lockgate.services.task.logins import Limits, Logins, usage_limits
from lockgate.services.task.projects import Branches

BATCH = 100
ELSEWHERE = (EvaluateGates, MirrorTask, DiscardTask)  # the loop's, and the effector's
PAGE = 1000
NO_LIMITS: Limits = {}
AGAIN_AFTER = 30.0  # seconds before a task that could not be started is tried again
AT_WORK = frozenset({Status.WORKING, Status.AGENT_REVIEW})


class Hands(Struct, frozen=True, kw_only=True):
    store: Store
    coordinator: Coordinator
    branches: Branches
    workspaces: Workspaces
    sessions: Sessions
    spawner: Spawner
    configuration: Configuration
    judge: Judge

    def carry_out(self, id: TaskId) -> float:
        """In order, each marked when it is done; one that must wait does not hold up the next.

        The answer is when to look again, or nought where nothing waits.
        """
        self.coordinator.effector.carry_out(id)
        waits: list[float] = []
        for pending in self.store.pending_effects(id, BATCH):
            task = self.store.find(id)
            again = 0.0 if task is None else self._did(pending, task)
            if again:
                waits.append(again)
            elif not isinstance(pending.effect, ELSEWHERE):
                self.store.effects_done([pending.key])
        return min(waits, default=0.0)

    def _did(self, pending: PendingEffect, task: Task) -> float:
        effect = pending.effect
        if overtaken(effect, task):
            self._drop(effect, task)
            return 0.0
        return self._do(effect, task)

    def _do(self, effect: Effect, task: Task) -> float:
        project = self.store.project(task.project)
        match effect:
            case PrepareWorkspace():
                settings = self.configuration.allowed_for(task, project)
                self.workspaces.prepare(project, task)
                self.workspaces.set_up(
                    candidate_of(project, task), settings, self.workspaces.place(task.id)
                )
            case SpawnAgent():
                return self._spawn(effect, task)
            case EndSessions():
                self._end(task, effect)
            case PublishChange() if task.candidate:
                self._publish(project, task)
            case ReleaseWorkspace():
                self.workspaces.release(project, task)
            case NotifyHuman() | PublishChange():
                pass  # the board shows it
            case EvaluateGates() | MirrorTask() | DiscardTask():
                pass
        return 0.0

    def _spawn(self, spawn: SpawnAgent, task: Task) -> float:
        if spawn.role is Role.REVIEWER:
            self.configuration.allowed_for(task, self.store.project(task.project))
        with_change = self.judge.with_change(task) if spawn.role is Role.REVIEWER else task
        return self.spawner.spawn(with_change, spawn) if with_change else 0.0

    def _publish(self, project: Project, task: Task) -> None:
        """Where the branch is not ours to set it stays, which is recorded; the task goes on."""
        self.configuration.allowed_for(task, project)
        problem = self.branches.problem(project, task.branch, task.id)
        why = problem.why if problem else self.workspaces.publish(project, task, task.candidate)
        if why:
            self.coordinator.turn(task.id, lambda seen: publish_skipped(seen.task, why, seen.now))

    def _end(self, task: Task, which: EndSessions) -> None:
        for session in self.store.sessions(task.id):
            meant = which.role in {None, session.role} and session.generation <= which.upto
            if session.ended is None and meant:
                self.sessions.end(session.id, GRACE)

    def _drop(self, effect: Effect, task: Task) -> None:
        """A session that was written down but is wanted no more never starts."""
        if isinstance(effect, SpawnAgent):
            id = session_id(task.id, effect.generation, effect.seat)
            session = self.store.session(id)
            if session and session.ended is None and not self.sessions.started(session.id):
                self.sessions.end(session.id, GRACE)


# Keeps the disk from running away: clones that nobody works in are released, their work kept.


IDLE = frozenset({Status.STUCK, Status.PAUSED_FOR_INTERVENTION, Status.CLARIFICATION})
SWEPT_AT_ONCE = 1000


class Housekeeper(Struct, frozen=True):
    """A released clone comes back with its work when its task goes on."""

    store: Store
    workspaces: Workspaces
    pool_bytes: int
    set_ups_bytes: int

    def tidy(self) -> tuple[TaskId, ...]:
        self.workspaces.keep_set_ups_within(self.set_ups_bytes)
        tasks = self.store.page(TaskFilter(None, IDLE), None, SWEPT_AT_ONCE).tasks
        idle = [(self.store.project(it.project), it) for it in tasks if self._is_free(it)]
        return self.workspaces.keep_within(self.pool_bytes, idle)

    def _is_free(self, task: Task) -> bool:
        alive = any(it.ended is None for it in self.store.sessions(task.id))
        return task.pinned is not None and not task.taken_over and not alive


# Tasks that wait are started.


class Starter(Struct, frozen=True, kw_only=True):
    store: Store
    coordinator: Coordinator
    configuration: Configuration
    logins: Logins
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
            rests = self.clock.now() < self._refused.get(id, 0.0)
            if not rests and not self.blockers(task) and not self._is_limited(task, limited):
                yield task

    def _is_limited(self, task: Task, limits: Limits) -> bool:
        """Whether all that may work on it are; what cannot be read is told when it starts."""
        if not limits:
            return False
        try:
            settings = self.configuration.settings_of(self.store.project(task.project))
            return self.logins.turn(in_turn(settings, task.agent), settings, limits)[1] > 0
        except LockgateError:
            return False

    def _free_slots(self, project: ProjectId) -> int:
        slots = self.configuration.allowed_of(self.store.project(project)).project.slots
        now = self.clock.now()
        at_work = self._all(AT_WORK, project)
        return slots - sum(1 for it in at_work if not it.dead and it.not_before <= now)

    def _all(self, statuses: frozenset[Status], project: ProjectId | None = None) -> Iterator[Task]:
        which, after = TaskFilter(project, statuses), None
        while True:
            page = self.store.page(which, after, PAGE)
            yield from page.tasks
            after = page.after
            if after is None:
                return


def _among(ids: Iterable[TaskId], known: dict[TaskId, Task]) -> list[TaskId]:
    return [id for id in ids if id in known]
