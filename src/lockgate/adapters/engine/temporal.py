"""The engine of a fleet for its leader: rows are the truth, Temporal brings them to hosts."""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from threading import Lock

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from lockgate.adapters.engine.connection import PATIENCE, Connection
from lockgate.adapters.engine.flows import FLOWS, Asked, BoundFlow, LaneFlow
from lockgate.core.fleet import LaneRow, Pool, Shared, pool_of, queue_of
from lockgate.core.hosts import host_in
from lockgate.core.jobs import ANY, Job, lane_of
from lockgate.errors import Unavailable
from lockgate.ports.engine import Engine, Lane, State
from lockgate.ports.lanes import Lanes

DECIDES = timedelta(seconds=5)  # for a workflow's own steps: a worker that froze on one delays it
UNCLAIMED = 5.0  # seconds after which a lane that nobody has claimed is put again
LOOKS = 2.0  # seconds after which the leader looks again at the latest: hosts do not wake it


class TemporalEngine:
    """The `Engine` of ports. A job is a row in `lanes` first; all else can be said again."""

    def __init__(
        self,
        connection: Connection,
        lanes: Lanes,
        needs: Callable[[Job], str | None],
        *,
        times: Shared = Shared(),  # noqa: B008 - frozen
        report: Callable[[str], None] = lambda _: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._connection, self._lanes, self._needs = connection, lanes, needs
        self._near: Engine = NoEngine()
        self._times, self._report, self._now = times, report, now
        self._lock = Lock()
        self._hurried = set[str]()
        self._trouble = ""

    def keep_near(self, engine: Engine) -> None:
        """What has no place among hosts is done by this one, in this process."""
        self._near = engine

    def put(self, job: Job) -> bool:
        """What only its asker can do is done in this process, as a host alone does it."""
        asked, needs, lane = self._now(), self._needs(job), lane_of(job)
        if needs is None:
            return self._near.put(job)
        if not self._lanes.ask(job, needs, asked):
            return False
        with self._lock:
            self._hurried.discard(lane)
        self._start(lane, asked, needs, pool_of(job))
        return True

    def call_off(self, lane: str) -> None:
        """The claim is void at once; the host that has it hears of it with its next beat."""
        self._near.call_off(lane)
        known = [it for it in self._lanes.rows() if it.lane == lane]
        self._lanes.call_off(lane)
        for row in known:
            with suppress(Unavailable):
                self._connection.wait(_cancel(self._connection.client, _name(lane, row.asked)))

    def hurry(self, lane: str) -> None:
        self._near.hurry(lane)
        with self._lock:
            self._hurried.add(lane)

    def lanes(self) -> tuple[Lane, ...]:
        return (*self._near.lanes(), *(_shown(it) for it in self._lanes.rows()))

    def rested(self) -> tuple[Job, ...]:
        now = self._now()
        rows = [it for it in self._lanes.rows() if it.until > 0]
        with self._lock:
            due = [it.job for it in rows if it.until <= now or it.lane in self._hurried]
        return (*self._near.rested(), *due)

    def next_rest(self) -> float | None:
        now = self._now()
        ends = (it.until - now for it in self._lanes.rows() if it.until > 0)
        near = self._near.next_rest()
        return max(0.0, min(*ends, LOOKS, LOOKS if near is None else near))

    def unclaimed(self) -> tuple[LaneRow, ...]:
        """Those that nobody has claimed in time."""
        return self._lanes.unclaimed(self._now() - UNCLAIMED)

    def place_again(self, rows: Iterable[LaneRow]) -> tuple[LaneRow, ...]:
        """Put those elsewhere that need something else by now; the others, which stay."""
        moved = [it for it in rows if self._needs(it.job) not in {it.needs, None}]
        for row in moved:
            self.call_off(row.lane)
            self.put(row.job)
        return tuple(it for it in rows if it not in moved)

    def put_all_again(self) -> int:
        """Those too that a host has claimed, as a server may have lost what was done with them."""
        return self.put_again(self.rows())

    def rows(self) -> tuple[LaneRow, ...]:
        return self._lanes.rows()

    def put_again(self, rows: Iterable[LaneRow]) -> int:
        """Say these to Temporal again; how many it did not know."""
        due = [it for it in rows if it.until <= 0]
        return sum(self._start(it.lane, it.asked, it.needs, pool_of(it.job)) for it in due)

    def _start(self, lane: str, asked: float, needs: str, pool: Pool) -> bool:
        """Whether it was not there yet. Where Temporal is down, the row waits to be put again."""
        host = host_in(needs)
        told = Asked(
            lane=lane,
            queue=queue_of(pool, needs),
            beat=self._times.silence(bound=bool(host)),
            host=host,
            elsewhere=queue_of(Pool.LEAD, ANY),
            lost_after=self._times.sessions_lost_after,
        )
        try:
            started = self._connection.wait(
                _started(self._connection.client, _name(lane, asked), told)
            )
        except Unavailable as error:
            self._say(f"jobs wait: {error} ({error.fix})")
            return False
        self._say("")
        return started

    def _say(self, trouble: str) -> None:
        """Once for each that is new."""
        if trouble and not self._trouble:
            self._report(trouble)
        self._trouble = trouble


class NoEngine:
    """Where nothing is done in this process."""

    def put(self, job: Job) -> bool:
        return False

    def call_off(self, lane: str) -> None: ...
    def hurry(self, lane: str) -> None: ...
    def lanes(self) -> tuple[Lane, ...]:
        return ()

    def rested(self) -> tuple[Job, ...]:
        return ()

    def next_rest(self) -> float | None:
        return None


async def _started(client: Client, name: str, told: Asked) -> bool:
    try:
        await client.start_workflow(
            (BoundFlow if told.host else LaneFlow).run,
            told,
            id=name,
            task_queue=FLOWS,
            task_timeout=DECIDES,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            rpc_timeout=timedelta(seconds=PATIENCE - 1),
        )
    except WorkflowAlreadyStartedError:
        return False
    return True


async def _cancel(client: Client, name: str) -> None:
    await client.get_workflow_handle(name).cancel(rpc_timeout=timedelta(seconds=PATIENCE - 1))


def _name(lane: str, asked: float) -> str:
    """A lane that is asked for again is another workflow: the one before may be about to end."""
    return f"{lane} {asked:.6f}"


def _shown(row: LaneRow) -> Lane:
    if row.until > 0:
        state, since = State.RESTING, row.since
    elif row.token:
        state, since = State.RUNNING, row.since
    else:
        state, since = State.WAITING, row.asked
    return Lane(name=row.lane, job=row.job, state=state, since=since, until=row.until)
