"""What every engine promises, shown by threads of this process and by a real Temporal server."""

import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from lockgate.adapters.engine import LocalEngine
from lockgate.adapters.engine.connection import Connection
from lockgate.adapters.engine.host import Answer, Duties, TemporalHost
from lockgate.adapters.engine.temporal import TemporalEngine
from lockgate.core.fleet import Cluster, Pool, Shared, queues_of
from lockgate.core.hosts import Host
from lockgate.core.jobs import LIMITS, Evaluate, Job, Kind, Limit, lane_of
from lockgate.core.model.task import ProjectId, TaskId
from lockgate.ports.engine import Engine, State
from tests.adapters.engine.fleet_yard import KeptLanes, temporal_server

PATIENCE = 60.0
PLACES = 4  # for evaluations


@dataclass
class Yard:
    """Jobs that begin and end when the test says so."""

    begun: list[Job] = field(default_factory=list)
    ended: list[Job] = field(default_factory=list)
    again: dict[str, float] = field(default_factory=dict)
    called_off: dict[str, Callable[[], bool]] = field(default_factory=dict)
    _ends: dict[str, threading.Event] = field(default_factory=dict)

    def do(self, job: Job, called_off: Callable[[], bool]) -> float:
        lane = lane_of(job)
        ends = self._ends.setdefault(lane, threading.Event())
        self.called_off[lane] = called_off
        self.begun.append(job)
        assert ends.wait(PATIENCE)
        ends.clear()
        self.ended.append(job)
        return self.again.get(lane, 0.0)

    def end(self, job: Job) -> None:
        before = len(self.ended)
        self._ends.setdefault(lane_of(job), threading.Event()).set()
        until(lambda: len(self.ended) > before)

    def end_all(self) -> None:
        for job in self.begun:
            self._ends[lane_of(job)].set()


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Generator[str]:
    with temporal_server(tmp_path_factory.mktemp("temporal")) as (found, _):
        yield found


@contextmanager
def local(yard: Yard) -> Generator[Engine]:
    with ThreadPoolExecutor(10) as pool:
        engine = LocalEngine(pool, limits={**LIMITS, Kind.JUDGE: Limit(PLACES, PLACES)})
        engine.begin(yard.do, lambda: None)
        try:
            yield engine
        finally:
            engine.stop()
            yard.end_all()


@contextmanager
def temporal(yard: Yard, address: str) -> Generator[Engine]:
    lanes, tokens = KeptLanes(), iter(range(1000))
    duties = Duties(
        do=lambda row, called_off: Answer(yard.do(row.job, called_off)),
        lost=lambda row, host: Answer(0.0),
        token=lambda: f"token {next(tokens)}",
        places={Pool.GATES: lambda: PLACES},
        grace=5.0,
    )
    connection, times = Connection(Cluster(address=address)), Shared(beat=4.0)
    with ThreadPoolExecutor(10) as pool:
        host = TemporalHost(connection, lanes, "h1", duties, pool, times)
        host.serve(queues_of(Host(name="h1", roles=("hands",)), ()))
        try:
            yield TemporalEngine(connection, lanes, lambda _: "any", times=times)
        finally:
            yard.end_all()
            host.stop()
            connection.close()


@pytest.fixture(params=["local", "temporal"])
def opened(request) -> Generator[tuple[Engine, Yard]]:
    yard = Yard()
    if request.param == "local":
        with local(yard) as engine:
            yield engine, yard
        return
    with temporal(yard, request.getfixturevalue("address")) as engine:
        yield engine, yard


def judge(number: int) -> Evaluate:
    return Evaluate(TaskId(f"t{time.time_ns()}-{number}"), ProjectId("p"), f"t{number}:1:0")


def states(engine: Engine) -> dict[str, State]:
    return {it.name: it.state for it in engine.lanes()}


def test_a_lane_does_one_job_at_a_time_and_takes_the_next_when_it_is_free(opened) -> None:
    engine, yard = opened
    job = judge(1)
    assert engine.put(job)
    assert not engine.put(job)
    until(lambda: yard.begun == [job])
    assert states(engine) == {lane_of(job): State.RUNNING}
    assert not engine.put(job)

    yard.end(job)
    until(lambda: not engine.lanes())

    assert engine.put(job)
    until(lambda: yard.begun == [job, job])


def test_lanes_do_not_wait_for_each_other(opened) -> None:
    engine, yard = opened
    first, second = judge(1), judge(2)
    engine.put(first)
    until(lambda: first in yard.begun)

    engine.put(second)

    until(lambda: second in yard.begun)
    yard.end(second)
    until(lambda: set(states(engine)) == {lane_of(first)})


def test_a_lane_that_is_to_be_looked_at_again_rests_until_then_or_until_it_is_hurried(
    opened,
) -> None:
    engine, yard = opened
    job = judge(1)
    yard.again[lane_of(job)] = 3600.0
    engine.put(job)
    until(lambda: yard.begun == [job])
    yard.end(job)

    until(lambda: states(engine) == {lane_of(job): State.RESTING})
    assert engine.rested() == ()
    assert 0 < (engine.next_rest() or 0) <= 3600

    engine.hurry(lane_of(job))
    assert engine.rested() == (job,)
    assert engine.put(job)
    assert engine.rested() == ()
    until(lambda: yard.begun == [job, job])


def test_a_job_that_is_called_off_hears_of_it_and_its_answer_is_void(opened) -> None:
    engine, yard = opened
    job = judge(1)
    yard.again[lane_of(job)] = 3600.0
    engine.put(job)
    until(lambda: yard.begun == [job])

    engine.call_off(lane_of(job))
    until(yard.called_off[lane_of(job)])
    yard.end(job)

    until(lambda: not engine.lanes())
    assert engine.rested() == ()


def test_a_lane_that_rests_is_empty_when_it_is_called_off(opened) -> None:
    engine, yard = opened
    job = judge(1)
    yard.again[lane_of(job)] = 3600.0
    engine.put(job)
    until(lambda: yard.begun == [job])
    yard.end(job)
    until(lambda: states(engine) == {lane_of(job): State.RESTING})

    engine.call_off(lane_of(job))

    assert engine.lanes() == ()


def test_a_job_that_waits_for_a_place_is_never_done_once_it_is_called_off(opened) -> None:
    engine, yard = opened
    running = [judge(it) for it in range(PLACES)]
    waits = judge(PLACES)
    assert all(engine.put(it) for it in running)
    until(lambda: len(yard.begun) == PLACES)
    assert engine.put(waits)
    assert states(engine)[lane_of(waits)] is State.WAITING

    engine.call_off(lane_of(waits))

    assert lane_of(waits) not in states(engine)
    for it in running:
        yard.end(it)
    until(lambda: not engine.lanes())
    another = judge(PLACES + 1)
    assert engine.put(another)
    until(lambda: another in yard.begun)
    assert waits not in yard.begun
