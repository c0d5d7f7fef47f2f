"""Which orchestrator may land, and what it makes of a landing that is not settled.

Each orchestrator raises the epoch when it starts. Only the newest writes down what it is about to
land, and settles it. An earlier one may be frozen with its push still to come.
"""

from enum import StrEnum

from msgspec import Struct

PUSH_WITHIN = 180.0  # seconds from before the last look at the epoch until a push is ended
LOST_AFTER = 210.0  # seconds from a new epoch until a push of an earlier one can come no more


class Term(Struct, frozen=True):
    """An orchestrator's epoch, and when it was raised by that orchestrator's own clock."""

    epoch: int = 0
    since: float = 0.0
    lost_after: float = LOST_AFTER

    @property
    def alone_from(self) -> float:
        """When no push of an earlier orchestrator is left, though nothing keeps them out."""
        return self.since + self.lost_after


class Fate(StrEnum):
    LANDED = "landed"
    LOST = "lost"
    UNKNOWN = "unknown"  # its push may still come
    NOT_OURS = "not ours"  # a newer orchestrator settles it


def fate(epoch: int, term: Term, *, there: bool, shut_out: bool, now: float) -> Fate:
    """What became of a landing of this epoch; `there` says whether the target has it.

    `shut_out`: no push of an earlier orchestrator can come any more, whatever the time is.
    """
    if epoch > term.epoch:
        return Fate.NOT_OURS
    if there:
        return Fate.LANDED
    if epoch == term.epoch or shut_out or now >= term.alone_from:
        return Fate.LOST
    return Fate.UNKNOWN
