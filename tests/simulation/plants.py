"""Bugs of each kind, planted by a wrapper around a port: the simulation has to find them."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from lockgate.adapters.store.database import Run
from lockgate.adapters.store.rows import Values
from lockgate.core.lifecycle.decision import Decision
from lockgate.core.model.task import Status, Task
from lockgate.ports import Attempt, Start


class Around:
    """All of a port, but for what a plant changes."""

    def __init__(self, world: Any, port: Any) -> None:
        self.world, self.port = world, port

    def __getattr__(self, name: str) -> Any:
        return getattr(self.port, name)


class NoCompareAndSet(Around):
    """Writes over whatever revision is there."""

    def commit(self, decision: Decision) -> None:
        def forget(run: Run) -> None:
            values: Values = {"id": decision.task.id, "rev": decision.task.rev - 1}
            run("UPDATE tasks SET rev = :rev WHERE id = :id", values)

        self.world.database.write(forget)
        self.port.commit(decision)


class LazyStore(Around):
    """Now and then says that a commit is done, and forgets it."""

    def commit(self, decision: Decision) -> None:
        if not self.world.happens(0.02):
            self.port.commit(decision)


class NoCount(Around):
    """Begins a session without counting those that are at work."""

    def commit(self, decision: Decision) -> None:
        self.port.commit(replace(decision, slots=0))


class EagerSessions(Around):
    """Starts the agent before the transaction that asks for it."""

    def note(self, start: Start) -> None:
        self.port.start(start)


class ForgetfulSessions(Around):
    """Starts what it is asked for, though it lives already; and does not know that it does."""

    def started(self, id: str) -> bool:
        return False

    def start(self, start: Start) -> None:
        self.port.note(start)
        self.port.begin(start)


class NoEpoch(Around):
    """Every orchestrator has the same epoch: nobody is ever overtaken."""

    def raise_epoch(self) -> int:
        [row] = self.world.database.read("SELECT epoch FROM orchestration", {})
        return int(str(row["epoch"]))


class NoFence(Around):
    """A push is not refused where the fence has moved, nor ended in time."""

    def land(self, *args: Any) -> Any:
        self.port.checks_fence = False
        return self.port.land(*args)


class NoLease(Around):
    """The target is moved from wherever it is."""

    def land(self, *args: Any) -> Any:
        self.port.checks_lease = False
        return self.port.land(*args)


class DeafWatch(Around):
    """Loses what it is woken for."""

    def wake(self) -> None: ...


class LenientGates(Around):
    """Takes a gate that could not judge for one that passed."""

    def attempt(self, *args: Any) -> Attempt:
        made: Attempt = self.port.attempt(*args)
        return replace(made, exit_code=0, cut=None) if made.cut else made


class SilentBoard(Around):
    """`status` forgets the tasks that are stuck."""

    def needs(self, *args: Any) -> tuple[Task, ...]:
        found: tuple[Task, ...] = self.port.needs(*args)
        return tuple(it for it in found if it.status is not Status.STUCK)


# Some bugs hurt in bad weather only: how often the world does what they need.
WEATHER: Mapping[str, Mapping[str, float]] = {
    "no-fence": {"frozen": 0.6, "stranger": 0.0, "pushes": 0.0, "freeze": 60.0},
    "no-lease": {"stranger": 0.8},
}
PLANTS: Mapping[str, Mapping[str, Callable[[Any, Any], Any]]] = {
    "no-compare-and-set": {"store": NoCompareAndSet},
    "lost-commit": {"store": LazyStore},
    "no-count": {"store": NoCount},
    "effect-before-commit": {"sessions": EagerSessions},
    "started-twice": {"sessions": ForgetfulSessions},
    "no-fence": {"log": NoEpoch, "yard": NoFence},
    "no-lease": {"yard": NoLease},
    "lost-wake-up": {"watch": DeafWatch},
    "false-pass": {"gates": LenientGates},
    "silent-board": {"board": SilentBoard},
}
