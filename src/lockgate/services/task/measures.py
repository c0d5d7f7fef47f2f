"""What a home comes to, as figures with labels; no task is ever a label."""

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from lockgate.core.lifecycle.needs import Need
from lockgate.core.model.task import Status
from lockgate.ports import Clock, Store
from lockgate.ports.figures import Figures, Sum


class Measure(Struct, frozen=True, kw_only=True):
    """One family: its name, what it is, and its figures."""

    name: str
    kind: str  # gauge or counter
    says: str
    sums: tuple[Sum, ...]


class Counted(Struct):
    """Events by type, counted up to one; only what came since is read."""

    seq: int = 0
    types: Counter[str] = field(default_factory=Counter[str])


class Measures(Struct, frozen=True, kw_only=True):
    store: Store
    figures: Figures
    clock: Clock

    def all(self, needs: Iterable[Need], counted: Counted) -> Iterator[Measure]:
        """`counted` is kept from one call to the next."""
        yield _gauge("tasks", "Tasks by status.", self._tasks())
        yield from self._needs(tuple(needs))
        alive = Counter((it.role.value, it.agent) for it in self.store.sessions_alive())
        them = (_sum(n, role=role, agent=agent) for (role, agent), n in alive.items())
        yield _gauge("sessions_alive", "Agents that run.", them)
        yield _counter("events_total", "Events by type.", self._events(counted))
        yield _counter("gate_results_total", "Results of gates.", self.figures.gates())
        landed = _sum(self.figures.landed())
        yield _counter("landed_total", "Changes that landed.", (landed,))
        usd, tokens = self.figures.spent()
        yield _counter("cost_usd_total", "What agents have cost, in USD.", usd)
        yield _counter("tokens_total", "Tokens that agents have used.", tokens)

    def _tasks(self) -> Iterator[Sum]:
        counts = self.store.counts()
        return (_sum(counts.get(it, 0), status=it.value) for it in Status)

    def _needs(self, needs: tuple[Need, ...]) -> Iterator[Measure]:
        kinds = Counter(it.kind.value for it in needs)
        oldest = {
            kind: self.clock.now() - min(it.since for it in needs if it.kind == kind)
            for kind in kinds
        }
        told = (_sum(n, kind=kind) for kind, n in kinds.items())
        yield _gauge("needs", "What needs a human, by kind.", told)
        ages = (_sum(max(0.0, seconds), kind=kind) for kind, seconds in oldest.items())
        yield _gauge("oldest_need_seconds", "How long the oldest need waits.", ages)

    def _events(self, counted: Counted) -> Iterator[Sum]:
        last, found = self.figures.events(counted.seq)
        for it in found:
            counted.types[it.labels["type"]] += int(it.value)
        counted.seq = last
        return (_sum(n, type=type) for type, n in sorted(counted.types.items()))


def _sum(value: float, **labels: str) -> Sum:
    return Sum(labels=labels, value=float(value))


def _gauge(name: str, says: str, sums: Iterable[Sum]) -> Measure:
    return Measure(name=name, kind="gauge", says=says, sums=tuple(sums))


def _counter(name: str, says: str, sums: Iterable[Sum]) -> Measure:
    return Measure(name=name, kind="counter", says=says, sums=tuple(sums))
