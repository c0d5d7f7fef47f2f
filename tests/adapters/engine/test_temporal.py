"""What a fleet's engine does when a host or Temporal itself is gone, on a real server."""

import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise
from threading import Event

import pytest
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import WorkflowHandle

from lockgate.adapters.engine.connection import Connection
from lockgate.adapters.engine.host import Answer, Duties, Places, TemporalHost
from lockgate.adapters.engine.temporal import UNCLAIMED, TemporalEngine
from lockgate.core.fleet import Cluster, LaneRow, Pool, Shared, queues_of
from lockgate.core.hosts import Host as CoreHost
from lockgate.core.jobs import CarryOut, Evaluate, lane_of
from lockgate.core.model.task import ProjectId, TaskId
from lockgate.errors import BadConfig, Fenced, Unavailable
from tests.adapters.engine.fleet_yard import KeptLanes, free_port, temporal_server

TIMES = Shared(beat=3.0, sessions_lost_after=1.0)
PATIENCE = 60.0
CLOSE = 0.6  # of the time-out; by itself Temporal's library sends a sign of life every 0.8 of it


def judge(id: str) -> Evaluate:
    return Evaluate(TaskId(id), ProjectId("p"), f"{id}:1:0")


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


class Host:
    """A host of the test: what it did, and what it was told to be lost."""

    def __init__(self, connection: Connection, lanes: KeptLanes, name: str, **more) -> None:
        self.did, self.lost, self.said = list[str](), list[tuple[str, str]](), list[str]()
        self._tokens, self._name = 0, name
        self.work: Callable[[LaneRow, Callable[[], bool]], Answer] = lambda *_: Answer(0.0)
        self._pool = ThreadPoolExecutor(20)
        duties = Duties(
            do=self._do,
            lost=self._lose,
            token=self._token,
            report=self.said.append,
            grace=2.0,
            places=more.get("places", {}),
            own=more.get("own", {}),
        )
        self.host = TemporalHost(connection, lanes, name, duties, self._pool, TIMES)
        me = CoreHost(name=name, labels=more.get("labels", ()), roles=("hands", "lead"))
        self.host.serve(queues_of(me, more.get("classes", ())))

    def close(self) -> None:
        self.host.stop()
        self._pool.shutdown()

    def _do(self, row: LaneRow, called_off: Callable[[], bool]) -> Answer:
        self.did.append(row.lane)
        return self.work(row, called_off)

    def _lose(self, row: LaneRow, host: str) -> Answer:
        self.lost.append((row.lane, host))
        return Answer(0.0)

    def _token(self) -> str:
        self._tokens += 1
        return f"{self._name} {self._tokens}"


@contextmanager
def connected(address: str) -> Generator[Connection]:
    connection = Connection(Cluster(address=address))
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def serving(connection: Connection, lanes: KeptLanes, name: str, **more) -> Generator[Host]:
    host = Host(connection, lanes, name, **more)
    try:
        yield host
    finally:
        host.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Generator[str]:
    with temporal_server(tmp_path_factory.mktemp("temporal")) as (found, _):
        yield found


def test_jobs_of_a_host_that_does_not_come_back_are_told_to_another_as_lost(address) -> None:
    lanes, job = KeptLanes(), judge("lost")
    with connected(address) as connection, serving(connection, lanes, "h1") as host:
        engine = TemporalEngine(connection, lanes, lambda _: "host:h2", times=TIMES)
        engine.put(job)

        until(lambda: not lanes.rows())

        assert host.lost == [(lane_of(job), "h2")]
        assert host.did == []


def test_a_job_that_fails_leaves_its_why_and_a_later_success_takes_it_away(address) -> None:
    lanes, job = KeptLanes(), judge("fails")
    with connected(address) as connection, serving(connection, lanes, "h7") as host:
        engine = TemporalEngine(connection, lanes, lambda _: "any", times=TIMES)
        host.work = lambda *_: Answer(3600.0, "the hub is down")
        engine.put(job)
        until(lambda: [it.why for it in lanes.rows()] == ["the hub is down"])

        host.work = lambda *_: Answer(3600.0)
        engine.hurry(lane_of(job))
        assert engine.put(job)
        assert [it.why for it in lanes.rows()] == [""]  # it is tried again

        until(lambda: len(host.did) == 2 and bool(lanes.rows()[0].until))
        assert [it.why for it in lanes.rows()] == [""]


def test_a_job_that_waits_is_put_elsewhere_when_it_needs_something_else(address) -> None:
    lanes, needs = KeptLanes(), ["fpga"]
    with connected(address) as connection, serving(connection, lanes, "h6") as host:
        engine = TemporalEngine(connection, lanes, lambda _: needs[0], times=TIMES)
        engine.put(judge("moved"))
        assert engine.place_again(lanes.rows()) == lanes.rows()

        needs[0] = "any"
        assert engine.place_again(lanes.rows()) == ()

        until(lambda: not lanes.rows())
        assert host.did == ["judge moved"]


def test_a_host_does_what_only_it_can_do_and_what_its_labels_allow(address) -> None:
    lanes, needs = KeptLanes(), {"judge own": "host:h3", "judge gpu": "gpu"}
    with (
        connected(address) as connection,
        serving(connection, lanes, "h3", labels=("gpu",), classes=("gpu", "arm")) as host,
    ):
        engine = TemporalEngine(connection, lanes, lambda job: needs[lane_of(job)], times=TIMES)
        for id in ("own", "gpu"):
            engine.put(judge(id))

        until(lambda: not lanes.rows())

        assert sorted(host.did) == ["judge gpu", "judge own"]


def test_what_a_host_that_is_stopped_had_begun_is_done_by_another(address) -> None:
    lanes, job = KeptLanes(), judge("moved")
    with connected(address) as connection:
        engine = TemporalEngine(connection, lanes, lambda _: "any", times=TIMES)
        first = Host(connection, lanes, "h4")
        began = Event()

        def until_called_off(row: LaneRow, called_off: Callable[[], bool]) -> Answer:
            began.set()
            until(called_off)
            return Answer(0.0)

        first.work = until_called_off
        engine.put(job)
        assert began.wait(PATIENCE)

        first.close()
        with serving(connection, lanes, "h5") as second:
            until(lambda: second.did == [lane_of(job)])
            until(lambda: not lanes.rows())

    assert first.host.refused == 0


def test_what_a_host_that_is_stopped_has_finished_is_done_by_no_other(address) -> None:
    """What only has an end, and none before it, is answered by the host that came to it."""
    lanes, job = KeptLanes(), CarryOut(TaskId("finished"), ProjectId("p"))
    with connected(address) as connection:
        engine = TemporalEngine(connection, lanes, lambda _: "any", times=TIMES)
        host, began = Host(connection, lanes, "h5b"), Event()

        def finishes(row: LaneRow, called_off: Callable[[], bool]) -> Answer:
            began.set()
            until(called_off)
            return Answer(0.0)

        host.work = finishes
        engine.put(job)
        assert began.wait(PATIENCE)

        host.close()

    assert (lanes.rows(), host.host.refused) == ((), 0)


def test_a_late_answer_is_refused_and_counted(address) -> None:
    lanes, job = KeptLanes(), judge("late")
    with connected(address) as connection, serving(connection, lanes, "h6") as host:
        engine = TemporalEngine(connection, lanes, lambda _: "any", times=TIMES)

        def overtaken(row: LaneRow, called_off: Callable[[], bool]) -> Answer:
            lanes.claim(row.lane, "another", "another's token", time.time())
            return Answer(0.0)

        host.work = overtaken
        engine.put(job)
        until(lambda: host.host.refused == 1)

        assert [it.host for it in lanes.rows()] == ["another"]
        assert host.said == [
            "judge late: a late answer was refused: another has this job now",
        ]
        with pytest.raises(Fenced):
            lanes.done(lane_of(job), "h6 1")


def test_a_job_that_was_given_up_because_another_has_it_is_counted_too(address) -> None:
    lanes, job = KeptLanes(), judge("given-up")
    with connected(address) as connection, serving(connection, lanes, "h6b") as host:
        engine = TemporalEngine(connection, lanes, lambda _: "any", times=TIMES)

        def gives_up(row: LaneRow, called_off: Callable[[], bool]) -> Answer:
            lanes.claim(row.lane, "another", "another's token", time.time())
            flow = connection.client.get_workflow_handle(f"{row.lane} {row.asked:.6f}")
            connection.wait(flow.cancel())
            until(called_off)
            return Answer(0.0)

        host.work = gives_up
        engine.put(job)

        until(lambda: host.host.refused == 1)


def test_a_job_that_the_store_did_not_answer_for_is_tried_again(address) -> None:
    lanes, job, tries = KeptLanes(), judge("again"), list[int]()
    with connected(address) as connection, serving(connection, lanes, "h7") as host:
        engine = TemporalEngine(connection, lanes, lambda _: "any", times=TIMES)

        def once(row: LaneRow, called_off: Callable[[], bool]) -> Answer:
            tries.append(row.epoch)
            if len(tries) == 1:
                raise Unavailable("the database was not changed", why="it is down", fix="wait")
            return Answer(0.0)

        host.work = once
        engine.put(job)

        until(lambda: not lanes.rows())
        assert tries == [1, 2]


def test_a_host_gives_signs_of_life_more_often_than_the_library_does_by_itself(address) -> None:
    """A beat that comes late by a busy machine must not be the only one in the time-out."""
    lanes, job, ends = KeptLanes(), judge("beats"), Event()
    with connected(address) as connection, serving(connection, lanes, "h7b") as host:
        engine = TemporalEngine(connection, lanes, lambda _: "any", times=TIMES)
        host.work = lambda *_: Answer(0.0) if ends.wait(PATIENCE) else Answer(1.0)
        engine.put(job)
        beats = set[float]()

        def close_together() -> bool:
            beats.update(
                it.last_heartbeat_time.ToNanoseconds() / 1e9 for it in held(connection, lanes)
            )
            seen = sorted(it for it in beats if it > 0)
            return any(b - a < CLOSE * TIMES.silence(bound=False) for a, b in pairwise(seen))

        until(close_together)
        ends.set()
        until(lambda: not lanes.rows())


def test_temporal_waits_no_longer_after_many_hosts_that_were_gone_than_after_one(address) -> None:
    """Who leads does so for months, and each takeover is one more attempt at the same job."""
    lanes = KeptLanes()
    with connected(address) as connection, serving(connection, lanes, "h7c"):
        engine = TemporalEngine(connection, lanes, lambda _: "nobody-serves-this", times=TIMES)
        engine.put(judge("gone"))
        until(lambda: bool(held(connection, lanes)))
        told = connection.wait(flow_of(connection, lanes).fetch_history())
        engine.call_off(lane_of(judge("gone")))

    (asked,) = [
        it.activity_task_scheduled_event_attributes.retry_policy
        for it in told.events
        if it.HasField("activity_task_scheduled_event_attributes")
    ]
    assert asked.initial_interval.ToTimedelta() < timedelta(seconds=1)
    assert asked.backoff_coefficient == 1.0
    assert asked.maximum_attempts == 0


def held(connection: Connection, lanes: KeptLanes) -> list[PendingActivityInfo]:
    """What Temporal knows of the one job that is not answered."""
    described = connection.wait(flow_of(connection, lanes).describe())
    return list(described.raw_description.pending_activities)


def flow_of(connection: Connection, lanes: KeptLanes) -> WorkflowHandle[object, object]:
    (row,) = lanes.rows()
    return connection.client.get_workflow_handle(f"{row.lane} {row.asked:.6f}")


def test_no_more_jobs_run_at_once_than_the_host_has_places(address) -> None:
    """Whether any host could do them, or this one alone."""
    lanes, jobs = KeptLanes(), [judge(f"place{it}") for it in range(6)]
    running, most, ends = set[str](), list[int](), Event()
    limits = {"places": {Pool.GATES: lambda: 2}, "own": {Pool.GATES: 2}}
    with connected(address) as connection, serving(connection, lanes, "h8", **limits) as host:
        needs = {lane_of(it): "host:h8" if at % 2 else "any" for at, it in enumerate(jobs)}
        engine = TemporalEngine(connection, lanes, lambda job: needs[lane_of(job)], times=TIMES)

        def counted(row: LaneRow, called_off: Callable[[], bool]) -> Answer:
            running.add(row.lane)
            most.append(len(running))
            assert ends.wait(PATIENCE)
            running.discard(row.lane)
            return Answer(0.0)

        host.work = counted
        for job in jobs:
            engine.put(job)
        until(lambda: len(running) == 2)
        ends.set()

        def all_done() -> bool:
            engine.put_again(engine.unclaimed())  # as a leader does, for Temporal may be slow
            return not lanes.rows()

        until(all_done)
        assert max(most) <= 2


def test_while_temporal_is_down_jobs_wait_in_their_rows_and_are_put_again(tmp_path) -> None:
    lanes, port, said = KeptLanes(), free_port(), list[str]()
    clock = [time.time()]
    with temporal_server(tmp_path, port) as (address, _):
        connection = Connection(Cluster(address=address))
        engine = TemporalEngine(
            connection, lanes, lambda _: "any", report=said.append, now=lambda: clock[0]
        )
    try:
        assert engine.put(judge("down"))
        assert [it.state for it in engine.lanes()] == ["waiting"]
        assert len(said) == 1
        assert said[0].startswith(f"jobs wait: Temporal at {address}")

        with temporal_server(tmp_path, port), serving(connection, lanes, "h9"):
            clock[0] += UNCLAIMED + 1
            until(lambda: bool(engine.put_again(engine.unclaimed())) or not lanes.rows())
            until(lambda: not lanes.rows())
            assert engine.put_again(lanes.rows()) == 0
    finally:
        connection.close()


def test_a_server_that_is_not_there_and_a_key_that_cannot_be_read_are_told() -> None:
    with pytest.raises(Unavailable, match="did not answer"):
        Connection(Cluster(address=f"127.0.0.1:{free_port()}"))
    with pytest.raises(BadConfig, match="cannot be read"):
        Connection(Cluster(cert="/nowhere/cert.pem"))


def test_nothing_is_taken_but_by_asking_for_it() -> None:
    assert Places(lambda: 9).try_reserve_slot(None) is None  # type: ignore[arg-type]  # it is not looked at


def test_a_place_is_one_job_s_however_many_were_brought() -> None:
    places = Places(lambda: 1)
    with places.one() as first, places.one() as second:
        assert first
        assert not second
    with places.one() as third:
        assert third


def test_what_a_host_alone_can_do_waits_for_a_place_until_it_is_given_up() -> None:
    places, looks = Places(lambda: 0), iter((False, True))  # it is drained
    with places.own(1, lambda: False) as first:
        assert first
        with places.own(1, lambda: next(looks)) as second:
            assert not second
    with places.own(1, lambda: False) as third:
        assert third
