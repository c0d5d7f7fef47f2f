"""What can go wrong between Lockgate and GitHub, each as a switch of the test server."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

Matches = Callable[[str, str], bool]


class Kind(StrEnum):
    TOO_MANY = "429"
    SECONDARY = "secondary limit, with retry-after"
    SECONDARY_SILENT = "secondary limit, without retry-after"
    BROKEN_AFTER = "502 after the write happened"
    BROKEN_BEFORE = "502, nothing happened"
    SILENT = "no answer"
    SILENT_AFTER = "no answer, but the write happened"
    CUT = "half of the answer"
    STALE = "an old answer"


HAPPENS = frozenset(
    {Kind.BROKEN_AFTER, Kind.SILENT_AFTER, Kind.CUT, Kind.STALE}
)  # the request is carried out all the same


@dataclass
class Fault:
    """A kind of fault for the next `times` requests that match."""

    kind: Kind
    times: int = 1
    matches: Matches = lambda _method, _path: True
    retry_after: int = 1


def on(method: str, ending: str = "") -> Matches:
    """Requests of one method whose path ends so."""
    return lambda asked, path: asked == method and path.split("?", maxsplit=1)[0].endswith(ending)


class Faults:
    """The faults that are switched on; each request takes the first that fits."""

    def __init__(self) -> None:
        self.planned: list[Fault] = []

    def plan(
        self, kind: Kind, *, times: int = 1, matches: Matches | None = None, retry_after: int = 1
    ) -> None:
        self.planned.append(Fault(kind, times, matches or (lambda _m, _p: True), retry_after))

    def take(self, method: str, path: str) -> Fault | None:
        for fault in self.planned:
            if fault.times > 0 and fault.matches(method, path):
                fault.times -= 1
                return fault
        return None

    def clear(self) -> None:
        self.planned.clear()
