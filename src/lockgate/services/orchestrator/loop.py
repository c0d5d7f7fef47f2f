"""The orchestrator's loop: what is ready starts, what was asked for is done, ends are noticed."""

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from threading import Event

from msgspec import Struct, field

from lockgate.core.lifecycle import advice, records
from lockgate.core.lifecycle.advice import Trouble
from lockgate.core.lifecycle.decision import Decision, EvaluateGates, Evidence, overtaken
from lockgate.core.model.task import Session, SessionId, Task, TaskId
from lockgate.errors import LockgateError, TurnDeclined
from lockgate.ports import Clock, PendingEffect, Sessions, Store, Watch
from lockgate.services.agents.spawner import Monitor
from lockgate.services.gates.runner import Judge
from lockgate.services.orchestrator.effects import Hands, Housekeeper, Starter
from lockgate.services.train.queue import MergeQueue

HEALTH_CHECK = 30.0  # S2's; deaths are noticed by event, and this finds what an event missed
TIDY_EVERY = 600.0
AGAIN_AFTER = 15.0  # seconds before something that failed is tried once more
BATCH = 1000


class Loop(Struct, kw_only=True):
    """One lane a task and one an evaluation: what happens to one task happens in order."""

    store: Store
    starter: Starter
    hands: Hands
    judge: Judge
    monitor: Monitor
    housekeeper: Housekeeper
    trains: MergeQueue
    sessions: Sessions
    watch: Watch
    pool: Executor
    clock: Clock
    report: Callable[[str], None]
    troubles: dict[str, Trouble] = field(default_factory=dict[str, Trouble])  # by lane
    stopping: Event = field(default_factory=Event)
    visited: Callable[[], bool] = lambda: False  # whether somebody waits for an answer
    _busy: set[str] = field(default_factory=set[str])
    _rests: dict[str, float] = field(default_factory=dict[str, float])
    _tried: dict[str, set[str]] = field(default_factory=dict[str, set[str]])  # effects, by lane
    _watched: set[SessionId] = field(default_factory=set[SessionId])
    _changed: deque[TaskId] = field(default_factory=deque[TaskId])
    _checked: float = 0.0
    _tidied: float = 0.0

    def run(self, idle_seconds: float | None = None) -> None:
        """Until it is stopped, or until nothing has been left to do for so long."""
        quiet_since = self.clock.now()
        while not self.stopping.is_set():
            self.turn()
            now, left = self.clock.now(), HEALTH_CHECK
            if not self.is_quiet():
                quiet_since = now
            elif idle_seconds is not None:
                left = quiet_since + idle_seconds - now
                if left <= 0:
                    return
            self.wait(min(HEALTH_CHECK, left))

    def turn(self) -> None:
        """Set going all that can go now."""
        now = self.clock.now()
        if now - self._checked >= HEALTH_CHECK or now < self._checked:
            self._checked = now
            self.look_after(self.store.sessions_alive())
        if now - self._tidied >= TIDY_EVERY:
            self._tidied = now
            self._submit("housekeeping", self._tidy)
        while self._changed:
            self.look_after(self.store.sessions(self._changed.popleft()))
        self.starter.start_ready(self._trouble)
        for project in self.trains.due():
            lane = f"train of {project.name}"
            if lane not in self.troubles or now >= self._rests.get(lane, 0.0):
                self._submit(lane, partial(self.trains.turn, project, self._submit))
        self._dispatch_all(now)

    def wait(self, seconds: float) -> None:
        now = self.clock.now()
        until = min(list(self._rests.values()), default=now + seconds)
        for id in self.watch.wait(max(0.0, min(seconds, until - now))):
            self._finish(id)

    def stop(self) -> None:
        self.stopping.set()
        self.watch.wake()

    def is_quiet(self) -> bool:
        """Whether nothing goes on that will need us; what keeps failing waits for a human."""
        waiting = [lane for lane in list(self._rests) if lane not in self.troubles]
        return not self._busy and not self._watched and not waiting and not self.visited()

    def look_after(self, sessions: Iterable[Session]) -> None:
        """Watch those that live, and record the end of those that do not."""
        for session in sessions:
            id = session.id
            if session.ended is not None:
                continue
            if self.sessions.exit_of(id) is not None:
                self._finish(id)
            elif id not in self._watched and self.sessions.started(id):
                descriptor = self.sessions.watch(id)
                if descriptor is None:
                    self._finish(id)
                else:
                    self._watched.add(id)
                    self.watch.add(id, descriptor)

    def _finish(self, id: SessionId) -> None:
        self._watched.discard(id)
        waiting = [lane for lane in list(self._rests) if lane not in self.troubles]
        for lane in waiting:  # a slot is free
            self._rests.pop(lane, None)
        lane = f"end {id}"
        if lane not in self._busy:  # at once and here: whoever waits for it waits for nothing else
            session = self.store.session(id)
            self._done(
                lane,
                lambda: 0.0 if self.monitor.finish(id) else self.clock.now() + 1.0,
                session.task if session else None,
            )

    def _dispatch_all(self, now: float) -> None:
        by_task: dict[TaskId, list[PendingEffect]] = {}
        for pending in self.store.pending_effects(None, BATCH):
            by_task.setdefault(pending.task, []).append(pending)
        for effects in by_task.values():
            for pending in effects:
                self._dispatch(pending, {it.key for it in effects}, now)

    def _dispatch(self, pending: PendingEffect, known: set[str], now: float) -> None:
        """A lane that waits does so with all effects that it has tried, `known` at that time.

        One that is new, such as a human's wish, does not wait with them.
        """
        judges = isinstance(pending.effect, EvaluateGates)
        lane = f"judge {pending.task}" if judges else f"task {pending.task}"
        if pending.key in self._tried.get(lane, ()) and now < self._rests.get(lane, 0.0):
            return
        work = partial(self._judge, pending) if judges else partial(self._carry_out, pending.task)
        if lane not in self._busy:
            self._tried[lane] = known
            self._submit(lane, work, pending.task)

    def _tidy(self) -> float:
        for id in self.housekeeper.tidy():
            self.report(f"task {id}: its workspace was released to save space; its work is kept")
        return 0.0

    def _carry_out(self, id: TaskId) -> float:
        try:
            return self.hands.carry_out(id)
        finally:
            self._changed.append(id)

    def _judge(self, pending: PendingEffect) -> float:
        def cancelled() -> bool:
            task = self.store.find(pending.task)
            return self.stopping.is_set() or task is None or overtaken(pending.effect, task)

        try:
            if not cancelled():
                self.judge.evaluate(pending.task, cancelled)
        except TurnDeclined:
            pass  # somebody else ended the evaluation meanwhile
        if not self.stopping.is_set():
            self.store.effects_done([pending.key])
        return 0.0

    def _submit(self, lane: str, work: Callable[[], float], task: TaskId | None = None) -> bool:
        """False where the lane is busy, and the work is not taken."""
        if lane in self._busy:
            return False
        self._busy.add(lane)
        self.pool.submit(self._done, lane, work, task)
        return True

    def _done(self, lane: str, work: Callable[[], float], task: TaskId | None = None) -> None:
        """A lane's work answers when to look again, or nought where all is done."""
        try:
            again = work()
            self.troubles.pop(lane, None)
            self._recovered(task)
        except LockgateError as error:
            again = self._trouble(lane, f"{error} ({error.fix})", task)
        except Exception as error:  # noqa: BLE001 - our bug must not end the other lanes
            again = self._trouble(lane, f"a bug in Lockgate: {error!r}", task)
        if again:
            self._rests[lane] = again
        else:
            self._rests.pop(lane, None)
            self._tried.pop(lane, None)
        self._busy.discard(lane)
        self.watch.wake()

    def _trouble(self, lane: str, why: str, task: TaskId | None = None) -> float:
        """Reported once; what fails again and again in the same way needs a human."""
        before = self.troubles.get(lane)
        self.troubles[lane] = now = advice.failed(before, why, task)
        if before is None or before.why != why:
            self.report(f"{lane}: {why}")
        self._record(
            task,
            lambda it: advice.is_news(it, now),
            lambda seen: records.troubled(seen.task, why, seen.now),
        )
        return self.clock.now() + AGAIN_AFTER

    def _recovered(self, task: TaskId | None) -> None:
        """The task needs no human any more, unless another of its lanes still fails."""
        self._record(
            task,
            lambda it: bool(it.troubled) and all(t.task != it.id for t in self.troubles.values()),
            lambda seen: records.recovered(seen.task, seen.now),
        )

    def _record(
        self,
        id: TaskId | None,
        due: Callable[[Task], bool],
        decide: Callable[[Evidence], Decision],
    ) -> None:
        with suppress(LockgateError):  # what fails may be the store; `status` shows it all the same
            task = self.store.find(id) if id else None
            if task and due(task):
                self.hands.coordinator.turn(task.id, decide)
