"""The door to what a home comes to, for those who draw it: counters and gauges of Prometheus."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from lockgate.core.model.statistics import Count


class Sum(Struct, frozen=True, kw_only=True):
    """One figure of a group of rows, with what the group is known by."""

    labels: Mapping[str, str]
    value: float
    part: str = ""  # of a histogram: what its name ends with


class Figures(Protocol):
    """Each is one statement over a whole table; a caller that asks often keeps the answers."""

    def events(self, since: int) -> tuple[int, tuple[Sum, ...]]:
        """How many events of each type there are after that one, and the last one's number."""
        ...

    def gates(self) -> tuple[Sum, ...]:
        """How often each gate had each result."""
        ...

    def spent(self) -> tuple[tuple[Sum, ...], tuple[Sum, ...]]:
        """USD and tokens, by agent and role."""
        ...

    def landed(self) -> int:
        """How many changes the target branches were moved by."""
        ...


class DailyCounts(Protocol):
    """The statistics of days, made of the events; each method that writes is one transaction."""

    def head(self) -> int:
        """The seq of the last event that is counted."""
        ...

    def add(self, before: int, seq: int, counts: Sequence[Count]) -> bool:
        """Count the events up to this one; False where somebody else has counted meanwhile."""
        ...

    def since(self, day: int, project: str) -> tuple[Count, ...]:
        """What was counted from that day on; of all projects for no name."""
        ...

    def forget(self) -> None:
        """Start again from the first event."""
        ...
