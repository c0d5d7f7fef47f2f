"""What the leader of hosts plans besides: who attends to sessions, and what is put again."""

from collections.abc import Callable, Iterable
from typing import Protocol

from msgspec import Struct, field

from lockgate.core.fleet import LaneRow, why_held
from lockgate.core.hosts import why_waiting
from lockgate.core.jobs import Attend, Job, TestTree, host_of, task_of
from lockgate.ports import Clock, Store
from lockgate.ports.engine import Lane
from lockgate.ports.lanes import Hosts
from lockgate.services.orchestrator.crew import Crew
from lockgate.services.orchestrator.loop import MINE

AGAIN = 5.0  # seconds between two times that waiting jobs are said to the engine again


class FleetEngine(Protocol):
    """The engine, as far as what waits for a host is concerned."""

    def put(self, job: Job) -> bool: ...
    def lanes(self) -> tuple[Lane, ...]: ...
    def unclaimed(self) -> tuple[LaneRow, ...]: ...
    def place_again(self, rows: Iterable[LaneRow]) -> tuple[LaneRow, ...]:
        """Put those elsewhere that need something else by now; the others, which stay."""
        ...

    def put_again(self, rows: Iterable[LaneRow]) -> int: ...
    def put_all_again(self) -> int: ...
    def rows(self) -> tuple[LaneRow, ...]: ...


class Planner(Struct, kw_only=True):
    """After each turn of the leader's loop."""

    store: Store
    crew: Crew
    engine: FleetEngine
    hosts: Hosts
    clock: Clock
    can_read: Callable[[Job], bool] = lambda _: True  # the rules by which a job is done
    _tests: dict[str, TestTree] = field(default_factory=dict[str, TestTree])
    _wait: set[str] = field(default_factory=set[str])  # the lanes that no host can do, as told
    _said: float = -AGAIN

    def turned(self) -> None:
        lanes = {it.name: it.job for it in self.engine.lanes()}
        self._attend(lanes)
        self._notice_tests(lanes)
        if MINE in self.crew.troubles:  # the turns before this one failed
            self.engine.put_all_again()
        now = self.clock.elapsed()
        if now - self._said >= AGAIN:
            self._said = now
            waiting = self._placed_again(self.engine.unclaimed())
            self.engine.put_again(waiting)
            self._tell(waiting)

    def _placed_again(self, rows: tuple[LaneRow, ...]) -> tuple[LaneRow, ...]:
        """Those that wait still. What a job needs is not known where its rules cannot be read."""
        known = tuple(it for it in rows if self.can_read(it.job))
        stay = tuple(it for it in rows if it not in known)
        return (*stay, *self.engine.place_again(known))

    def _attend(self, lanes: dict[str, Job]) -> None:
        for id in self.store.ids_alive():
            session = self.store.session(id)
            task = self.store.find(session.task) if session else None
            if task and host_of(session, task) and f"session {id}" not in lanes:
                self.engine.put(Attend(id, task.id, task.project))

    def _notice_tests(self, lanes: dict[str, Job]) -> None:
        """A test that has ended on another host is a reason to plan its train."""
        now = {name: job for name, job in lanes.items() if isinstance(job, TestTree)}
        for name in self._tests.keys() - now.keys():
            self.crew.trains.nudge(self._tests[name].project)
        self._tests = now

    def _tell(self, waiting: tuple[LaneRow, ...]) -> None:
        """As what fails: a job that no host can do needs a human, if it stays so."""
        hosts, now = self.hosts.all(), self.clock.now()
        stuck = [(why_waiting(it.needs, hosts), it.job) for it in waiting]
        stuck += [(why_held(it, hosts, now), it.job) for it in self.engine.rows()]
        told = {self.crew.title(job): (why, job) for why, job in stuck if why}
        for lane, (why, job) in told.items():
            self.crew.trouble(lane, why, task_of(job))
        for lane in self._wait - told.keys():
            self.crew.troubles.pop(lane, None)
        self._wait = set(told)
