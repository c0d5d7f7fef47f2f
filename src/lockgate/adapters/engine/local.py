"""Jobs in threads of this process: each kind has places of its own, shared fairly by projects."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from threading import Event, Lock

from msgspec import Struct, field

from lockgate.core.jobs import LIMITS, Job, Kind, Limit, kind_of, lane_of, next_project, project_of
from lockgate.core.model.task import ProjectId
from lockgate.ports.engine import Do, Lane, State


class _Lane(Struct, eq=False):
    job: Job
    state: State
    since: float
    until: float = 0.0
    called_off: Event = field(default_factory=Event)


class _Places(Struct):
    """The places of one kind: who waits for them, who has them, and whose turn is how long ago."""

    waiting: dict[ProjectId, deque[_Lane]] = field(default_factory=dict[ProjectId, deque[_Lane]])
    running: dict[ProjectId, int] = field(default_factory=dict[ProjectId, int])
    served: dict[ProjectId, int] = field(default_factory=dict[ProjectId, int])
    turns: int = 0

    def ask(self, lane: _Lane) -> None:
        self.waiting.setdefault(project_of(lane.job), deque()).append(lane)

    def take(self, limit: Limit) -> _Lane | None:
        """The lane that begins next, counted as running; None where none may."""
        project = next_project(self.waiting, self.running, self.served, limit)
        if project is None:
            return None
        lane = self.waiting[project].popleft()
        if not self.waiting[project]:
            del self.waiting[project]
        self.turns += 1
        self.served[project] = self.turns
        self.running[project] = self.running.get(project, 0) + 1
        return lane

    def give_back(self, project: ProjectId) -> None:
        left = self.running[project] - 1
        if left:
            self.running[project] = left
        else:
            del self.running[project]
        if project not in self.running and project not in self.waiting:
            self.served.pop(project, None)  # else every project ever seen would be kept

    def leave(self, lane: _Lane) -> None:
        project = project_of(lane.job)
        self.waiting[project].remove(lane)
        if not self.waiting[project]:
            del self.waiting[project]


class LocalEngine:
    """The `Engine` of ports. Nothing of it is on disk: who starts again finds the jobs there."""

    def __init__(
        self,
        pool: Executor,
        elapsed: Callable[[], float] = time.monotonic,
        limits: Mapping[Kind, Limit] = LIMITS,
    ) -> None:
        self._pool, self._elapsed, self._limits = pool, elapsed, limits
        self._lock = Lock()
        self._lanes: dict[str, _Lane] = {}
        self._resting: dict[str, _Lane] = {}
        self._places = {kind: _Places() for kind in Kind}
        self._stopped = False

    def begin(self, do: Do, wake: Callable[[], None]) -> None:
        """`do` does a job, and never raises; `wake` is called when a lane has become free."""
        self._do, self._wake = do, wake

    def stop(self) -> None:
        """Nothing that waits begins any more; what runs ends by itself."""
        with self._lock:
            self._stopped = True

    def put(self, job: Job) -> bool:
        name, kind = lane_of(job), kind_of(job)
        with self._lock:
            known = self._lanes.get(name)
            if known and known.state is not State.RESTING:
                return False
            lane = _Lane(job, State.WAITING, self._elapsed())
            self._lanes[name] = lane
            self._resting.pop(name, None)
            self._places[kind].ask(lane)
        self._begin_next(kind)
        return True

    def call_off(self, lane: str) -> None:
        with self._lock:
            known = self._lanes.get(lane)
            if known is None:
                return
            known.called_off.set()
            if known.state is State.WAITING:
                self._places[kind_of(known.job)].leave(known)
            if known.state is not State.RUNNING:
                self._forget(lane)

    def hurry(self, lane: str) -> None:
        with self._lock:
            known = self._resting.get(lane)
            if known:
                known.until = self._elapsed()

    def lanes(self) -> tuple[Lane, ...]:
        with self._lock:
            return tuple(
                Lane(name=name, job=it.job, state=it.state, since=it.since, until=it.until)
                for name, it in self._lanes.items()
            )

    def rested(self) -> tuple[Job, ...]:
        now = self._elapsed()
        with self._lock:
            return tuple(it.job for it in self._resting.values() if it.until <= now)

    def next_rest(self) -> float | None:
        now = self._elapsed()
        with self._lock:
            ends = min((it.until for it in self._resting.values()), default=None)
        return None if ends is None else max(0.0, ends - now)

    def _begin_next(self, kind: Kind) -> None:
        """As many as have a place now."""
        while True:
            with self._lock:
                lane = None if self._stopped else self._places[kind].take(self._limits[kind])
                if lane is None:
                    return
                lane.state, lane.since = State.RUNNING, self._elapsed()
            self._pool.submit(self._run, lane)

    def _run(self, lane: _Lane) -> None:
        kind, name = kind_of(lane.job), lane_of(lane.job)
        again = 0.0
        try:
            again = self._do(lane.job, lane.called_off.is_set)
        finally:
            with self._lock:
                self._places[kind].give_back(project_of(lane.job))
                self._rest_or_forget(name, lane, again)
            self._begin_next(kind)
            self._wake()

    def _rest_or_forget(self, name: str, lane: _Lane, again: float) -> None:
        if again <= 0 or lane.called_off.is_set():
            self._forget(name)
            return
        lane.state, lane.since = State.RESTING, self._elapsed()
        lane.until = lane.since + again
        self._resting[name] = lane

    def _forget(self, name: str) -> None:
        self._lanes.pop(name, None)
        self._resting.pop(name, None)
