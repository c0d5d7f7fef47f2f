"""What hosts share: lanes, themselves, and the last checkpoints of tasks.

Each job has one row, and who claims the row may speak for the job.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from lockgate.core.fleet import LaneRow
from lockgate.core.hosts import Host, HostState
from lockgate.core.jobs import Job
from lockgate.core.model.task import ProjectId, TaskId


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
    def find(self, lane: str) -> LaneRow | None: ...
    def classes(self) -> frozenset[str]:
        """What the jobs that are there need of a host."""
        ...

    def unclaimed(self, before: float) -> tuple[LaneRow, ...]:
        """Those asked for before then that nobody has claimed, each to be put again."""
        ...

    def set_aside(self) -> Mapping[str, str]:
        """Those whose jobs this program cannot read, each with the reason."""
        ...


class Hosts(Protocol):
    """For people, and for who has room; who takes over from whom is never decided by it."""

    def put(self, host: Host, known: Host | None = None) -> bool:
        """In place of `known`. False, and nothing changes, where that is not what is there now."""
        ...

    def find(self, name: str) -> Host | None: ...
    def all(self) -> tuple[Host, ...]:
        """By name."""
        ...

    def seen(
        self, host: Host, now: float, refused: int = 0, ahead: float = 0.0
    ) -> HostState | None:
        """It is there still; what people have asked of it.

        None where it was forgotten, or another machine has its name now.

        `refused` answers more than the last time did not count, because they came too late. Its
        own clock is so many seconds `ahead` of the database's.
        """
        ...

    def mark(self, name: str, state: HostState, why: str = "") -> bool:
        """Whether there is such a host; `why` it does so itself, and no person asked for it."""
        ...

    def forget(self, name: str) -> bool: ...
    def equip(self, name: str, agents: Sequence[str]) -> bool:
        """It has these agents from now on, with their logins. Whether there is such a host."""
        ...

    def at_work(self, name: str, now: float) -> int:
        """How many agents live there, and how many of its tasks wait for theirs to begin."""
        ...

    def tasks_at(self, name: str) -> tuple[tuple[TaskId, ProjectId], ...]:
        """The tasks whose clones are there and that are not over."""
        ...


class LastCheckpoints(Protocol):
    """What the next agent of a task is told of the work before it, on any host."""

    def of(self, task: TaskId) -> Mapping[str, object] | None:
        """With its number as `sequence`; None where the task has none."""
        ...

    def put(self, task: TaskId, number: int, facts: Mapping[str, object]) -> None:
        """Keep it in place of one with a lower number, as long as there is such a task."""
        ...
