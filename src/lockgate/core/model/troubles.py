"""Events of what keeps a task from going on: Lockgate's own failures, and lost dependencies."""

from msgspec import Struct


class TaskTroubled(Struct, frozen=True):
    """Lockgate failed several times in the same way to do its part for the task."""

    why: str


class TaskRecovered(Struct, frozen=True):
    """What had failed was done after all."""


class DependencyLost(Struct, frozen=True):
    """A task that this one waits for will not be done by itself: a human decides."""

    why: str


class DependencyBack(Struct, frozen=True):
    """Every task that this one waits for can be done again by itself."""


class DependencyDropped(Struct, frozen=True):
    """A human decided that the task does not wait for this other one any more."""

    needs: str


TroubleEvent = TaskTroubled | TaskRecovered | DependencyLost | DependencyBack | DependencyDropped
