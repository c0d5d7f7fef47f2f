"""A host of a fleet: it serves queues of Temporal, and does each job under a claim of its lane."""

import asyncio
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from datetime import timedelta
from threading import Event, Lock

from msgspec import Struct
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.worker import (
    CustomSlotSupplier,
    FixedSizeSlotSupplier,
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
    UnsandboxedWorkflowRunner,
    Worker,
    WorkerTuner,
)

from lockgate.adapters.engine.connection import Connection
from lockgate.adapters.engine.flows import DO, FLOWS, LOST, BoundFlow, LaneFlow
from lockgate.core.fleet import LaneRow, Pool, Queue, Shared, pool_of
from lockgate.core.jobs import stops_early
from lockgate.errors import Fenced, LockgateError
from lockgate.ports.engine import CalledOff
from lockgate.ports.lanes import Lanes

STICKY = timedelta(seconds=1)  # a workflow that a dead worker had in its cache waits so long for it
LOOKS = 0.2  # seconds between two looks whether a place is free
BEATS = 3  # in the time after which a job without one is given to the next host
AGAIN = timedelta(seconds=2)  # until a job is tried again that a server was not there for
MANY = 1000


class Answer(Struct, frozen=True):
    """In how many seconds to look again, 0 for never; and why, where it did not work."""

    again: float
    why: str = ""


class Duties(Struct, frozen=True, kw_only=True):
    """What a host does with the jobs that come to it. None of it raises but `Fenced`."""

    do: Callable[[LaneRow, CalledOff], Answer]
    lost: Callable[[LaneRow, str], Answer]  # the job's host, by its name, does not come back
    token: Callable[[], str]  # by chance, for one claim
    places: Mapping[Pool, Callable[[], int]]  # how many jobs at once; others have no limit
    own: Mapping[Pool, int] = {}  # how many, with what only this host can do, drained or not
    grace: float = 30.0  # seconds, for what runs when it is stopped
    report: Callable[[str], None] = lambda _: None
    now: Callable[[], float] = time.time  # by the clock that all hosts share


class TemporalHost:
    """Serves until it is stopped. `refused` counts the late answers that did not count."""

    def __init__(
        self,
        connection: Connection,
        lanes: Lanes,
        name: str,
        duties: Duties,
        pool: Executor,
        times: Shared = Shared(),  # noqa: B008 - frozen
    ) -> None:
        self._connection, self._lanes, self._name, self._duties = connection, lanes, name, duties
        self._pool, self._times, self._grace = pool, times, duties.grace
        self._places = {kind: Places(limit) for kind, limit in duties.places.items()}
        self._places_of = dict[str, Places]()  # by queue
        self._workers = dict[str, asyncio.Task[None]]()
        self._at_work = dict[str, Worker]()
        self.stopping = Event()
        self.refused = 0

    def serve(self, queues: Iterable[Queue]) -> None:
        """These from now on, and the workflows' own; those that it serves already go on."""
        self._connection.wait(self._serve(tuple(queues)))

    def stop(self) -> None:
        """Nothing new; what runs is told, and has some seconds. What is not done goes elsewhere."""
        self.stopping.set()
        self._connection.wait(self._stopped(), self._grace + 10)

    async def _serve(self, queues: tuple[Queue, ...]) -> None:
        if self._lacks(FLOWS):
            self._start(FLOWS, self._deciding())
        for queue in queues:
            if self._lacks(queue.name):
                self._start(queue.name, self._doing(queue))

    def _lacks(self, name: str) -> bool:
        """One that has ended by a fault of the server's is started again."""
        return name not in self._workers or self._workers[name].done()

    def _start(self, name: str, worker: Worker) -> None:
        self._at_work[name] = worker
        self._workers[name] = asyncio.create_task(worker.run())

    async def _stopped(self) -> None:
        alive = [it for name, it in self._at_work.items() if not self._workers[name].done()]
        await asyncio.gather(*(it.shutdown() for it in alive))
        await asyncio.gather(*self._workers.values(), return_exceptions=True)

    def _deciding(self) -> Worker:
        """Flows import nothing and touch nothing, so that they need no sandbox of Temporal's."""
        return Worker(
            self._connection.client,
            task_queue=FLOWS,
            workflows=[LaneFlow, BoundFlow],
            workflow_runner=UnsandboxedWorkflowRunner(),
            sticky_queue_schedule_to_start_timeout=STICKY,
        )

    def _doing(self, queue: Queue) -> Worker:
        limited = self._places.get(queue.pool)
        if limited:
            self._places_of[queue.name] = limited
        few = FixedSizeSlotSupplier(1)
        return Worker(
            self._connection.client,
            task_queue=queue.name,
            activities=[self.do, self.lost],
            tuner=WorkerTuner.create_composite(
                workflow_supplier=few,
                activity_supplier=limited or FixedSizeSlotSupplier(MANY),
                local_activity_supplier=few,
                nexus_supplier=few,
            ),
            max_concurrent_activity_task_polls=1,  # an idle one keeps no place from another queue
            max_heartbeat_throttle_interval=self._between_beats(queue),
            graceful_shutdown_timeout=timedelta(seconds=self._grace),
        )

    @activity.defn(name=DO)
    async def do(self, lane: str) -> None:
        places = self._places_of.get(activity.info().task_queue)
        if places is None:
            await self._in_thread(lambda off: self._carry_out(lane, off, self._do_own))
            return
        with places.one() as free:
            if not free:
                raise _not_answered(lane, "no place is free here", "Full")
            await self._in_thread(lambda off: self._carry_out(lane, off, self._duties.do))

    def _do_own(self, row: LaneRow, called_off: CalledOff) -> Answer:
        """It was brought at once, for busy must not look lost; it may wait here for a place."""
        pool = pool_of(row.job)
        most = self._duties.own.get(pool)
        if most is None:
            return self._duties.do(row, called_off)
        with self._places[pool].own(most, called_off) as free:
            return self._duties.do(row, called_off) if free else Answer(0.0)

    @activity.defn(name=LOST)
    async def lost(self, lane: str, host: str) -> None:
        def work(row: LaneRow, _called_off: CalledOff) -> Answer:
            return self._duties.lost(row, host)

        await self._in_thread(lambda off: self._carry_out(lane, off, work))

    async def _in_thread(self, work: Callable[[CalledOff], None]) -> None:
        """The event loop beats, not the job: what takes long has deadlines of its own."""
        called_off = Event()
        running = asyncio.get_running_loop().run_in_executor(
            self._pool, work, lambda: called_off.is_set() or self.stopping.is_set()
        )
        beating = asyncio.create_task(self._beat())
        try:
            while not running.done():
                try:
                    await asyncio.shield(running)
                except asyncio.CancelledError:
                    called_off.set()
            running.result()
        finally:
            beating.cancel()
            with suppress(asyncio.CancelledError):
                await beating

    def _between_beats(self, queue: Queue) -> timedelta:
        """The library sends one in four fifths of the time-out, unless it is told to send more.

        That is enough for what no other host can do: it is tried again here.
        """
        if queue.pool is Pool.OWN:
            return timedelta(seconds=self._times.beat)
        return timedelta(seconds=self._times.silence(bound=False) / BEATS)

    async def _beat(self) -> None:
        silence = activity.info().heartbeat_timeout or timedelta(seconds=self._times.beat)
        while True:
            activity.heartbeat()
            await asyncio.sleep(silence.total_seconds() / BEATS)

    def _carry_out(
        self, lane: str, called_off: CalledOff, work: Callable[[LaneRow, CalledOff], Answer]
    ) -> None:
        """A job that stopped before its end is not answered: who claims it next does that."""
        try:
            row = self._lanes.claim(lane, self._name, self._duties.token(), self._duties.now())
            if row is None:
                return
            answer = work(row, called_off)
            if called_off() and stops_early(row.job):
                self._must_be_ours(row)
                raise _not_answered(lane, "interrupted", "Interrupted")
            self._record(row, answer)
        except Fenced:
            self.refused += 1
            self._duties.report(f"{lane}: a late answer was refused: another has this job now")
        except LockgateError as error:
            why, name = f"{error} ({error.fix})", type(error).__name__
            raise _not_answered(lane, why, name, AGAIN) from error

    def _must_be_ours(self, row: LaneRow) -> None:
        """Fenced where another has claimed it since; one that was called off has no row."""
        if any(it.lane == row.lane and it.epoch > row.epoch for it in self._lanes.rows()):
            raise Fenced(row.lane)

    def _record(self, row: LaneRow, answer: Answer) -> None:
        if answer.again > 0:
            until = self._duties.now() + answer.again
            self._lanes.rest(row.lane, row.token, until, answer.why)
        else:
            self._lanes.done(row.lane, row.token)


def _not_answered(
    lane: str, why: str, name: str, after: timedelta | None = None
) -> ApplicationError:
    """Temporal tries it again, here or elsewhere; its library need not tell of it."""
    return ApplicationError(
        f"{lane}: {why}",
        type=name,
        next_retry_delay=after,
        category=ApplicationErrorCategory.BENIGN,
    )


class Places(CustomSlotSupplier):
    """The places of one pool of jobs, shared by all queues of it.

    Each queue may ask for one more job while the last it got has not begun yet: `one` counts.
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit, self._lock = limit, Lock()
        self._used = self._running = self._own = 0

    @contextmanager
    def one(self) -> Generator[bool]:
        """Whether there is a place for this job, which it then has."""
        free = self._began(self._limit())
        try:
            yield free
        finally:
            self._end(free)

    @contextmanager
    def own(self, most: int, given_up: Callable[[], bool]) -> Generator[bool]:
        """One of `most`, waited for; False where it was given up. Nothing else is asked for then.

        In a thread of the job's.
        """
        free = False
        with self._lock:
            self._own += 1
        try:
            while not free and not given_up():
                free = self._began(most)
                if not free:
                    time.sleep(LOOKS)
            yield free
        finally:
            with self._lock:
                self._own -= 1
            self._end(free)

    def _began(self, most: int) -> bool:
        with self._lock:
            free = self._running < most
            self._running += free
        return free

    def _end(self, places: int) -> None:
        with self._lock:
            self._running -= places

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:
        while self._used + self._own >= self._limit():  # noqa: ASYNC110 - the limit too may change
            await asyncio.sleep(LOOKS)
        return SlotPermit()

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:
        return None  # nothing is taken but by asking for it

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        self._used += 1

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        if ctx.slot_info is not None:  # one that was used
            self._used -= 1
