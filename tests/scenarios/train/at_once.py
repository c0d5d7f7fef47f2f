"""An engine that tests a tree where it is told to, and keeps no lane."""

from collections.abc import Callable

from lockgate.core.jobs import Job, TestTree
from lockgate.ports.engine import Lane
from lockgate.services.train.queue import MergeQueue


class TestsAtOnce:
    __test__ = False

    def __init__(self, trains: MergeQueue, after: Callable[[], None] = lambda: None) -> None:
        self.trains, self.after = trains, after
        self.takes = True
        self.asked: list[Job] = []

    def put(self, job: Job) -> bool:
        self.asked.append(job)
        if self.takes and isinstance(job, TestTree):
            self.trains.test(job, lambda: False)
            self.after()
        return self.takes

    def call_off(self, lane: str) -> None: ...

    def hurry(self, lane: str) -> None: ...

    def lanes(self) -> tuple[Lane, ...]:
        return ()

    def rested(self) -> tuple[Job, ...]:
        return ()

    def next_rest(self) -> float | None:
        return None
