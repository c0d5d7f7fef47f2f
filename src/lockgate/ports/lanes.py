"""Lanes and hosts on disk: each job has one row, and who claims the row may speak for the job."""

from typing import Protocol

from msgspec import Struct

from lockgate.core.hosts import Host, HostState
from lockgate.core.jobs import Job
from lockgate.core.model.task import ProjectId, TaskId


class LaneRow(Struct, frozen=True, kw_only=True):
    """A lane that is not empty. Times are by the clock of people; no takeover compares them."""

    lane: str
    job: Job
    needs: str  # what a host must have: a class, "any" or labels joined by +
    epoch: int  # how often it was claimed
    token: str  # of the last claim, made by chance; empty where nobody claims it
    host: str  # who has claimed it
    asked: float
    since: float  # when it was claimed
    until: float  # when its rest ends; 0 where it does not rest
    why: str  # why it rests or waits


class Lanes(Protocol):
    def ask(self, job: Job, needs: str, now: float) -> bool:
        """Put it in its lane. False, and nothing changes, where one is there that does not rest."""
        ...

    def claim(self, lane: str, host: str, token: str, now: float) -> LaneRow | None:
        """Have it, with this token, and nobody else any more. None where it was answered."""
        ...

    def done(self, lane: str, token: str) -> None:
        """Empty it. Fenced where another has claimed it."""
        ...

    def rest(self, lane: str, token: str, until: float, why: str) -> None:
        """Leave it until then. Fenced where another has claimed it."""
        ...

    def call_off(self, lane: str) -> None:
        """Empty it, whoever has claimed it: what that one says no longer counts."""
        ...

    def rows(self) -> tuple[LaneRow, ...]: ...
    def unclaimed(self, before: float) -> tuple[LaneRow, ...]:
        """Those asked for before then that nobody has claimed, each to be put again."""
        ...


class Hosts(Protocol):
    """For people, and for who has room; who takes over from whom is never decided by it."""

    def put(self, host: Host) -> None: ...
    def find(self, name: str) -> Host | None: ...
    def all(self) -> tuple[Host, ...]:
        """By name."""
        ...

    def seen(self, name: str, now: float) -> HostState | None:
        """It is there still; what people have asked of it. None where it was forgotten."""
        ...

    def mark(self, name: str, state: HostState) -> bool:
        """Whether there is such a host."""
        ...

    def forget(self, name: str) -> bool: ...
    def tasks_at(self, name: str) -> tuple[tuple[TaskId, ProjectId], ...]:
        """The tasks whose clones are there and that are not over."""
        ...
