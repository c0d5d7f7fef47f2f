"""The engine: has jobs done, one at a time in each lane, as many at once as the limits allow."""

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from lockgate.core.jobs import Job

CalledOff = Callable[[], bool]  # whether a job that runs is no longer wanted
Do = Callable[[Job, CalledOff], float]  # does it; in how many seconds to look again, 0 for never


class State(StrEnum):
    WAITING = "waiting"  # for a free place
    RUNNING = "running"
    RESTING = "resting"  # until it is looked at again


class Lane(Struct, frozen=True, kw_only=True):
    """A lane that is not empty; times are by the clock that nobody sets."""

    name: str
    job: Job
    state: State
    since: float  # when it came into this state
    until: float = 0.0  # when its rest ends


class Engine(Protocol):
    def put(self, job: Job) -> bool:
        """Have it done. False, and it is not taken, where its lane waits or runs already.

        A lane that rests takes it at once.
        """
        ...

    def call_off(self, lane: str) -> None:
        """Tell the job that runs there that it is no longer wanted; one that waits goes."""
        ...

    def hurry(self, lane: str) -> None:
        """End its rest now."""
        ...

    def lanes(self) -> tuple[Lane, ...]: ...
    def rested(self) -> tuple[Job, ...]:
        """The jobs whose rest is over, each to be put again."""
        ...

    def next_rest(self) -> float | None:
        """In how many seconds the first rest ends; None where none is resting."""
        ...
