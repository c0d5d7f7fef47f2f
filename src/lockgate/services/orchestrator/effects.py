"""Carries out what decisions asked the world for: workspaces, agents, their end; safe to repeat.

Also starts the tasks that wait, the urgent first, once what they depend on is done.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from msgspec import Struct, field

from lockgate.core.config.settings import in_turn
from lockgate.core.lifecycle.decision import (
    Decision,
    DiscardTask,
    Effect,
    EndSessions,
    EvaluateGates,
    Evidence,
    MirrorTask,
    NotifyHuman,
    PrepareWorkspace,
    PublishChange,
    ReleaseWorkspace,
    SpawnAgent,
    overtaken,
)
from lockgate.core.lifecycle.needs import lost_dependencies
from lockgate.core.lifecycle.records import (
    ENDED,
    IDLE,
    has_its_dependencies,
    is_elsewhere,
    lost_its_dependency,
    publish_skipped,
)
from lockgate.core.lifecycle.transition import session_id
from lockgate.core.model.task import ProjectId, Role, Task, TaskId
from lockgate.errors import LockgateError, TurnDeclined
from lockgate.ports import (
    Clock,
    Configuration,
    PendingEffect,
    Project,
    Sessions,
    Store,
    Workspaces,
    candidate_of,
    of_project,
)
from lockgate.services.agents.day_budget import DayBudget
from lockgate.services.agents.spawner import GRACE, Spawner
from lockgate.services.gates.judge import Judge
from lockgate.services.task.coordinator import Coordinator
from lockgate.services.task.logins import Limits, Logins, usage_limits
from lockgate.services.task.projects import Branches

BATCH = 100
ELSEWHERE = (EvaluateGates, MirrorTask, DiscardTask)  # the loop's, and the effector's
AGAIN_AFTER = 30.0  # seconds before a task that could not be started is tried again
UNWRITTEN = 30.0  # seconds before a TASK.md that could not be written is tried again
Trouble = Callable[[str, str, TaskId], object]  # a lane, why it failed, and its task


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

        The answer is in how many seconds to look again, or 0 where nothing waits.
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
            elif not isinstance(pending.effect, EvaluateGates):
                waits.append(UNWRITTEN)  # the effector was not able to do it
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


SWEPT_AT_ONCE = 1000


class Housekeeper(Struct, frozen=True):
    """A released clone comes back with its work when its task goes on."""

    store: Store
    workspaces: Workspaces
    pool_bytes: int
    set_ups_bytes: int
    clean: Callable[[], tuple[int, int]] = lambda: (0, 0)
    """A step: how many things went for their age, and how many bytes."""
    rotate: Callable[[], object] = lambda: None  # begins another log where ours is too long
    host: str = ""  # this one's name, where there are several

    def tidy(self) -> tuple[TaskId, ...]:
        self.rotate()
        self.workspaces.keep_set_ups_within(self.set_ups_bytes)
        tasks = self.store.page(of_project(None, IDLE), None, SWEPT_AT_ONCE).tasks
        idle = [(self.store.project(it.project), it) for it in tasks if self._is_free(it)]
        return self.workspaces.keep_within(self.pool_bytes, idle)

    def _is_free(self, task: Task) -> bool:
        """Not one of another host: a clone here is an old one, which goes by its age."""
        if is_elsewhere(task, self.host):
            return False
        alive = any(it.ended is None for it in self.store.sessions(task.id))
        return task.pinned is not None and not task.taken_over and not alive


# Tasks that wait are started.


class Starter(Struct, frozen=True, kw_only=True):
    store: Store
    coordinator: Coordinator
    configuration: Configuration
    logins: Logins
    clock: Clock
    budget: DayBudget
    _refused: dict[TaskId | ProjectId, float] = field(
        default_factory=dict[TaskId | ProjectId, float]
    )  # until when, by the clock that nobody sets

    def is_due(self) -> bool:
        """Whether something that was refused may be tried once more."""
        now = self.clock.elapsed()
        return any(until <= now for until in self._refused.values())

    def start_ready(self, trouble: Trouble) -> None:
        """Start what has a slot; what waits for a task in vain is marked, for a human to decide."""
        now = self.clock.elapsed()
        for id in [it for it, until in self._refused.items() if until <= now]:
            del self._refused[id]
        self._mark_in_vain()
        limited: Limits | None = None
        for project in self.store.projects_ready():
            if project not in self._refused:
                if limited is None:
                    limited = usage_limits(self.store, self.clock.now())
                self._start_in(project, limited, trouble)

    def _start_in(self, id: ProjectId, limits: Limits, trouble: Trouble) -> None:
        """Where one task cannot be started, no other of its project is tried now."""
        try:
            project = self.store.project(id)
            if self.budget.wait_until(project):
                return
            slots = self.configuration.allowed_of(project).project.slots
        except LockgateError as error:
            self._refused[id] = self.clock.elapsed() + AGAIN_AFTER
            for task in self.store.ready(id, 1):
                trouble(f"task {task.id}", f"{error} ({error.fix})", task.id)
            return
        free = slots - self.store.at_work(id, self.clock.now())
        for task in self._next(project, free, limits):
            try:
                self.coordinator.start(task.id)
            except TurnDeclined:
                continue  # somebody else was quicker
            except LockgateError as error:
                self._refused[task.id] = self.clock.elapsed() + AGAIN_AFTER
                trouble(f"task {task.id}", f"{error} ({error.fix})", task.id)
                return

    def _next(self, project: Project, free: int, limits: Limits) -> Sequence[Task]:
        """As many as have a slot: none that was just refused, none whose agents are limited."""
        resting: list[str] = []
        while free > 0:
            most = free + len(self._refused)
            found = self.store.ready(project.id, most, resting)
            barred = {it.agent for it in found if limits and self._is_limited(it, project, limits)}
            if not barred:
                return [it for it in found if it.id not in self._refused][:free]
            resting += sorted(barred)
        return ()

    def _is_limited(self, task: Task, project: Project, limits: Limits) -> bool:
        """Whether all that may work on it are; what cannot be read is told when it starts."""
        try:
            settings = self.configuration.settings_of(project)
            return self.logins.turn(in_turn(settings, task.agent), settings, limits)[1] > 0
        except LockgateError:
            return False

    def _mark_in_vain(self) -> None:
        for task in self.store.in_vain():
            named = [(it, self.store.find(it)) for it in task.depends_on]
            why = lost_dependencies({id: it.status if it else None for id, it in named})
            with suppress(LockgateError):  # the next time
                if task.status in ENDED or not why:
                    if task.in_vain:
                        self.coordinator.turn(task.id, _has_back)
                elif why != task.in_vain:
                    self.coordinator.turn(task.id, partial(_lost, why=why))


def _has_back(seen: Evidence) -> Decision:
    return has_its_dependencies(seen.task, seen.now)


def _lost(seen: Evidence, why: str) -> Decision:
    return lost_its_dependency(seen.task, why, seen.now)
