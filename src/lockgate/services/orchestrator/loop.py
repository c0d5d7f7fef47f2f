"""The orchestrator's loop: it plans what is to be done, and the engine has it done."""

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Event

from msgspec import Struct, field

from lockgate.core.jobs import CarryOut, Evaluate, Job, SyncForge, Tidy, TurnTrain, lane_of
from lockgate.core.lifecycle.decision import EvaluateGates
from lockgate.core.lifecycle.needs import Trouble, failed
from lockgate.core.model.task import SessionId, TaskId
from lockgate.errors import Fenced, LockgateError, Overtaken, Restored, SchemaIsNewer
from lockgate.ports import Clock, Mark, PendingEffect, Sessions, Store, Watch
from lockgate.ports.engine import Engine, State
from lockgate.services.agents.spawner import Monitor
from lockgate.services.orchestrator.crew import Crew
from lockgate.services.orchestrator.effects import Starter

HEALTH_CHECK = 30.0  # S2's; deaths are noticed by event, and this finds what an event missed
TIDY_EVERY = 600.0
SOON = 1.0  # seconds until the end of a session that could not be read is looked at again
BATCH = 1000
AT_A_TURN = 25  # sessions that a health check looks at before the loop listens again
OVER = (Fenced, Overtaken, Restored, SchemaIsNewer)  # after these nothing may be written from here
MINE = "the loop"  # the lane of what the loop itself fails to do


class Loop(Struct, kw_only=True):
    """One lane a task and one an evaluation: what happens to one task happens in order."""

    store: Store
    starter: Starter
    crew: Crew
    monitor: Monitor
    sessions: Sessions
    watch: Watch
    engine: Engine
    clock: Clock
    report: Callable[[str], None]
    stopping: Event = field(default_factory=Event)
    visited: Callable[[], bool] = lambda: False  # whether somebody waits for an answer
    pulse: Callable[[list[str]], None] = lambda _: None  # told which lanes are at work
    turned: Callable[[], None] = lambda: None  # after each turn: whatever there is to tell
    attends: bool = True  # to sessions; in a fleet each host does that to its own
    tidies: bool = True  # the home; in a fleet each host does that to its own
    _watched: set[SessionId] = field(default_factory=set[SessionId])
    _unseen: deque[SessionId] = field(default_factory=deque[SessionId])  # of a health check
    _put_off: dict[str, Job] = field(default_factory=dict[str, Job])  # by lane, which is busy
    _ends: dict[SessionId, float] = field(default_factory=dict[SessionId, float])  # look again at
    _read: Mark = Mark()  # how far the outbox was read
    _turn: int = -1  # the last that was seen
    _checked: float = -HEALTH_CHECK
    _tidied: float = -TIDY_EVERY

    @property
    def troubles(self) -> dict[str, Trouble]:
        return self.crew.troubles

    def run(self, idle_seconds: float | None = None) -> None:
        """Until it is stopped, or until nothing has been left to do for so long.

        A store that does not answer is waited for; one that is another than it was ends the loop.
        """
        quiet_since = self.clock.elapsed()
        while not self.stopping.is_set():
            left = self._turned()
            now = self.clock.elapsed()
            if not self.is_quiet():
                quiet_since = now
            elif idle_seconds is not None:
                left = min(left, quiet_since + idle_seconds - now)
                if left <= 0:
                    return
            self.wait(left)

    def turn(self) -> None:
        """Set going all that can go now."""
        now, turn = self.clock.elapsed(), self.store.pulse()
        checks = now - self._checked >= HEALTH_CHECK
        if checks:
            self._unseen = deque(self.store.ids_alive() if self.attends else ())
            self._checked = now
        few = range(min(AT_A_TURN, len(self._unseen)))
        self.look_after([self._unseen.popleft() for _ in few])
        self._look_again(now)
        if self.tidies and now - self._tidied >= TIDY_EVERY:
            self._tidied = now
            self.engine.put(Tidy())
        while self.crew.changed:
            known = self.store.sessions(self.crew.changed.popleft())
            self.look_after(it.id for it in known if it.ended is None)
        if checks or turn != self._turn or self.starter.is_due():
            self.starter.start_ready(self.crew.trouble)
        self._put_trains()
        for job in (*self._put_off.values(), *self.engine.rested()):
            self._put(job)
        self._read_outbox()
        self._turn = turn
        lanes = self.engine.lanes()
        self.pulse(sorted(it.name for it in lanes if it.state is State.RUNNING))
        self.turned()

    def wait(self, seconds: float) -> None:
        """Until something happens or is due; after a turn that failed nothing is due earlier."""
        left = seconds if MINE in self.troubles else min(seconds, self._next_due(seconds))
        for id in self.watch.wait(max(0.0, left)):
            self._finish(id)

    def _next_due(self, otherwise: float) -> float:
        """In how many seconds an end, a lane or the next sessions are to be looked at again."""
        if self._unseen:
            return 0.0
        now, rest = self.clock.elapsed(), self.engine.next_rest()
        ends = (at - now for at in self._ends.values())
        return min(*ends, otherwise if rest is None else rest, otherwise)

    def stop(self) -> None:
        self.stopping.set()
        self.watch.wake()

    def is_quiet(self) -> bool:
        """Whether nothing goes on that will need us; what keeps failing waits for a human."""
        lanes = self.engine.lanes()
        at_work = any(it.state is not State.RESTING or not self._fails(it.job) for it in lanes)
        watching = self._watched or self._ends or self._unseen
        return not (at_work or watching or self.visited())

    def look_after(self, ids: Iterable[SessionId]) -> None:
        """Watch the sessions that live, and record the end of those that do not."""
        for id in ids:
            if self.sessions.exit_of(id) is not None:
                self._finish(id)
            elif id not in self._watched and self.sessions.started(id):
                descriptor = self.sessions.watch(id)
                if descriptor is None:
                    self._finish(id)
                else:
                    self._watched.add(id)
                    self.watch.add(id, descriptor)

    def _turned(self) -> float:
        """One turn; for how long to wait then, at most."""
        try:
            self.turn()
        except OVER as error:
            self.report(f"{error} ({error.fix})")
            self.stop()
            return 0.0
        except LockgateError as error:
            return self._failed(f"{error} ({error.fix})")
        except Exception as error:  # noqa: BLE001 - our bug must not end the orchestrator
            return self._failed(f"a bug in Lockgate: {error!r}")
        if self.troubles.pop(MINE, None):
            self.report("the orchestrator goes on: what it needs answers again")
        return HEALTH_CHECK

    def _failed(self, why: str) -> float:
        """Told once, and tried again ever more rarely, but at least as often as by itself."""
        self._read = Mark()  # what was read may not have been put
        before = self.troubles.get(MINE)
        self.troubles[MINE] = now = failed(before, why, now=self.clock.now())
        if before is None:
            self.report(f"the orchestrator waits, and tries again: {why}")
        return min(now.again_after / 5, HEALTH_CHECK)

    def _look_again(self, now: float) -> None:
        for id, at in list(self._ends.items()):
            if at <= now:
                self._finish(id)

    def _finish(self, id: SessionId) -> None:
        """Inline, not as a job: recording an end must not wait for anything slower."""
        self._watched.discard(id)
        for lane in self.engine.lanes():  # a slot is free
            if lane.state is State.RESTING and not self._fails(lane.job):
                self.engine.hurry(lane.name)

        def work() -> float:
            return 0.0 if self.monitor.finish(id) else SOON

        again = self.crew.attempt(f"end {id}", work, self._task_of(id))
        if again:
            self._ends[id] = self.clock.elapsed() + again
        else:
            self._ends.pop(id, None)

    def _task_of(self, id: SessionId) -> TaskId | None:
        with suppress(LockgateError):  # what fails is then told of the lane alone
            session = self.store.session(id)
            return session.task if session else None
        return None

    def _fails(self, job: Job) -> bool:
        return self.crew.title(job) in self.troubles

    def _put_trains(self) -> None:
        """A train that failed waits for its time; else it is turned when something has changed."""
        resting = {it.name for it in self.engine.lanes() if it.state is State.RESTING}
        jobs: list[Job] = [TurnTrain(it.id) for it in self.crew.trains.due()]
        jobs += [SyncForge(it.id) for it in self.crew.forge.due()]
        for job in jobs:
            if lane_of(job) not in resting or not self._fails(job):
                self.engine.put(job)

    def _read_outbox(self) -> None:
        """What is new in it since the last time, to the end."""
        while True:
            found, self._read = self.store.effects_after(self._read, BATCH)
            jobs = (_job_for(it) for it in found)
            for job in {lane_of(it): it for it in jobs}.values():  # once for all that is new in it
                self._put(job)
            if len(found) < BATCH:
                return

    def _put(self, job: Job) -> None:
        """What finds its lane busy is put when that is free: it may be new since it began."""
        lane = lane_of(job)
        if self.engine.put(job):
            self._put_off.pop(lane, None)
        else:
            self._put_off[lane] = job


def _job_for(pending: PendingEffect) -> Job:
    if isinstance(pending.effect, EvaluateGates):
        return Evaluate(pending.task, pending.project, pending.key)
    return CarryOut(pending.task, pending.project)
