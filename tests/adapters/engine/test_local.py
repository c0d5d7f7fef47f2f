"""The engine in this process: lanes in order, kinds apart, projects alike, rests and calls off."""

import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from lockgate.adapters.engine import LocalEngine
from lockgate.core.jobs import (
    LIMITS,
    CarryOut,
    Evaluate,
    Job,
    Kind,
    Limit,
    TurnTrain,
    kind_of,
    lane_of,
    project_of,
)
from lockgate.core.model.task import ProjectId, TaskId
from lockgate.ports.engine import State

PATIENCE = 60.0


@dataclass
class Yard:
    """Jobs that begin and end when the test says so."""

    engine: LocalEngine
    begun: list[Job] = field(default_factory=list)
    again: dict[str, float] = field(default_factory=dict)
    wakes: int = 0
    _ends: dict[str, threading.Event] = field(default_factory=dict)
    _called_off: dict[str, Callable[[], bool]] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def do(self, job: Job, called_off: Callable[[], bool]) -> float:
        lane = lane_of(job)
        with self._changed:
            self.begun.append(job)
            self._called_off[lane] = called_off
            ends = self._ends.setdefault(lane, threading.Event())
            self._changed.notify_all()
        assert ends.wait(PATIENCE)
        ends.clear()
        return self.again.get(lane, 0.0)

    def woken(self) -> None:
        with self._changed:
            self.wakes += 1
            self._changed.notify_all()

    def until(self, true: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(true, PATIENCE)

    def end(self, job: Job) -> None:
        before = self.wakes
        self._ends.setdefault(lane_of(job), threading.Event()).set()
        self.until(lambda: self.wakes > before)

    def is_called_off(self, job: Job) -> bool:
        return self._called_off[lane_of(job)]()

    def running(self) -> list[str]:
        return [it.name for it in self.engine.lanes() if it.state is State.RUNNING]

    def end_all(self) -> None:
        self.engine.stop()
        for job in self.begun:
            self._ends[lane_of(job)].set()


@contextmanager
def opened(**limits: Limit) -> Generator[Yard]:
    known = {**LIMITS, **{Kind(name): limit for name, limit in limits.items()}}
    with ThreadPoolExecutor(100) as pool:
        yard = Yard(LocalEngine(pool, limits=known))
        yard.engine.begin(yard.do, yard.woken)
        try:
            yield yard
        finally:
            yard.end_all()


def judge(project: str, number: int) -> Evaluate:
    return Evaluate(TaskId(f"{project}{number}"), ProjectId(project), f"{project}{number}:1:0")


def test_a_lane_does_one_job_at_a_time_and_takes_the_next_when_it_is_free() -> None:
    with opened() as yard:
        job = judge("a", 1)
        assert yard.engine.put(job)
        assert not yard.engine.put(job)
        yard.until(lambda: len(yard.begun) == 1)

        yard.end(job)

        assert yard.engine.put(job)


def test_landing_and_starting_never_wait_however_many_long_gates_there_are() -> None:
    with opened() as yard:
        for number in range(60):
            yard.engine.put(judge("a", number))
        most = LIMITS[Kind.JUDGE].of_project
        yard.until(lambda: len(yard.begun) == most)

        land, start = TurnTrain(ProjectId("a")), CarryOut(TaskId("x"), ProjectId("a"))
        yard.engine.put(land)
        yard.engine.put(start)

        yard.until(lambda: land in yard.begun and start in yard.begun)
        assert sum(kind_of(it) is Kind.JUDGE for it in yard.begun) == most


def test_another_project_finds_places_and_then_its_turn() -> None:
    with opened(judge=Limit(4, 3)) as yard:
        greedy = [judge("a", number) for number in range(9)]
        modest = [judge("b", number) for number in range(3)]
        for job in (*greedy, *modest):
            yard.engine.put(job)
        yard.until(lambda: len(yard.begun) == 4)
        assert [project_of(it) for it in yard.begun] == ["a", "a", "a", "b"]

        yard.end(greedy[0])

        yard.until(lambda: len(yard.begun) == 5)
        assert project_of(yard.begun[-1]) == "b"  # it has fewer at work


def test_a_lane_that_rests_is_told_when_its_time_has_come_and_can_be_hurried() -> None:
    with opened() as yard:
        job = judge("a", 1)
        yard.again[lane_of(job)] = 3600.0
        yard.engine.put(job)
        yard.until(lambda: len(yard.begun) == 1)
        yard.end(job)

        [lane] = yard.engine.lanes()
        assert lane.state is State.RESTING
        assert yard.engine.rested() == ()
        assert 3000 < (yard.engine.next_rest() or 0) <= 3600

        yard.engine.hurry(lane.name)
        assert yard.engine.rested() == (job,)
        assert yard.engine.put(job)
        assert yard.engine.rested() == ()


@pytest.mark.parametrize("state", ["waiting", "running", "resting"])
def test_what_is_called_off_leaves_its_lane(state) -> None:
    with opened(judge=Limit(1, 1)) as yard:
        first, job = judge("a", 1), judge("a", 2)
        yard.again[lane_of(job)] = 3600.0
        if state == "waiting":
            yard.engine.put(first)
            yard.until(lambda: yard.begun == [first])
        yard.engine.put(job)
        if state != "waiting":
            yard.until(lambda: yard.begun == [job])
        if state == "resting":
            yard.end(job)

        yard.engine.call_off(lane_of(job))
        if state == "running":
            assert yard.is_called_off(job)
            yard.end(job)

        assert lane_of(job) not in [it.name for it in yard.engine.lanes()]


def test_after_a_stop_nothing_begins_any_more() -> None:
    with opened(judge=Limit(1, 1)) as yard:
        first, second = judge("a", 1), judge("a", 2)
        yard.engine.put(first)
        yard.until(lambda: yard.begun == [first])
        yard.engine.put(second)
        yard.engine.stop()

        yard.end(first)

        assert yard.begun == [first]
