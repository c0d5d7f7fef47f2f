"""What a home comes to, as figures with labels; no task is ever a label."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from lockgate.core.fleet import FleetSeen
from lockgate.core.lifecycle.needs import Need
from lockgate.core.model.statistics import STEPS, Count, seconds_of
from lockgate.core.model.task import Status
from lockgate.ports import Clock, Store
from lockgate.ports.figures import Figures, Sum
from lockgate.services.task.statistics import Statistics

BOUNDS = range(0, 13 * STEPS, STEPS)  # of a histogram: 1 s, and each twice the one before


class Measure(Struct, frozen=True, kw_only=True):
    """One family: its name, what it is, and its figures."""

    name: str
    kind: str  # gauge, counter or histogram
    says: str
    sums: tuple[Sum, ...]


class Counted(Struct):
    """Events by type, counted up to one; only what came since is read."""

    seq: int = 0
    types: Counter[str] = field(default_factory=Counter[str])


class Measures(Struct, frozen=True, kw_only=True):
    store: Store
    figures: Figures
    statistics: Statistics
    clock: Clock

    def all(
        self,
        needs: Iterable[Need],
        standings: Iterable[str],
        counted: Counted,
        fleet: FleetSeen | None = None,
    ) -> Iterator[Measure]:
        """`standings` are those of the changes in all merge queues.

        `counted` is kept from one call to the next.
        """
        yield _gauge("tasks", "Tasks by status.", self._tasks())
        yield from self._needs(tuple(needs))
        alive = Counter((it.role.value, it.agent) for it in self.store.sessions_alive())
        them = (_sum(n, role=role, agent=agent) for (role, agent), n in alive.items())
        yield _gauge("sessions_alive", "Agents that run.", them)
        yield _counter("events_total", "Events by type.", self._events(counted))
        yield _counter("gate_results_total", "Results of gates.", self.figures.gates())
        ever = self.statistics.ever()
        yield _histogram("gate_seconds", "How long gates took that passed.", ever)
        landed = _sum(self.figures.landed())
        yield _counter("landed_total", "Changes that landed.", (landed,))
        dropped = Counter[str]()
        for it in ever:
            dropped[it.label] += it.n if it.metric == "dropped" else 0
        them = (_sum(n, reason=reason) for reason, n in sorted(dropped.items()) if n)
        yield _counter("dropped_total", "Changes that did not land, by reason.", them)
        queued = Counter(standings)
        them = (_sum(n, standing=standing) for standing, n in sorted(queued.items()))
        yield _gauge("queue_length", "Changes in the merge queues, by standing.", them)
        usd, tokens = self.figures.spent()
        yield _counter("cost_usd_total", "What agents have cost, in USD.", usd)
        yield _counter("tokens_total", "Tokens that agents have used.", tokens)
        if fleet:
            yield from _of_fleet(fleet)

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


def _sum(value: float, part: str = "", **labels: str) -> Sum:
    return Sum(labels=labels, value=float(value), part=part)


def _of_fleet(seen: FleetSeen) -> Iterator[Measure]:
    states = Counter(it.host.state.value for it in seen.hosts)
    them = (_sum(n, state=state) for state, n in sorted(states.items()))
    yield _gauge("hosts", "Hosts of the fleet, by state.", them)
    silent = (_sum(it.silent, host=it.host.name) for it in seen.hosts)
    yield _gauge("host_silent_seconds", "Since a host was seen last.", silent)
    leads = (_sum(seen.led),) if seen.leader else ()
    yield _gauge("leader_seconds", "For how long the leader leads; none where nobody does.", leads)
    oldest = (_sum(seen.oldest),)
    yield _gauge("oldest_job_seconds", "How long the oldest job waits for a host.", oldest)
    refused = (_sum(it.host.refused, host=it.host.name) for it in seen.hosts)
    yield _counter("refused_answers_total", "Late answers of hosts that did not count.", refused)


def _gauge(name: str, says: str, sums: Iterable[Sum]) -> Measure:
    return Measure(name=name, kind="gauge", says=says, sums=tuple(sums))


def _counter(name: str, says: str, sums: Iterable[Sum]) -> Measure:
    return Measure(name=name, kind="counter", says=says, sums=tuple(sums))


def _histogram(name: str, says: str, counts: Iterable[Count]) -> Measure:
    """Of the seconds that each gate took; each bucket has the shorter ones in it too."""
    buckets, took = defaultdict[str, Counter[int]](Counter), defaultdict[str, float](float)
    for it in counts:
        if it.metric == "gate-seconds":
            buckets[it.label][it.bucket] += it.n
            took[it.label] += it.amount
    sums: list[Sum] = []
    for gate, found in sorted(buckets.items()):
        for most in BOUNDS:
            within = sum(n for bucket, n in found.items() if bucket <= most)
            sums.append(_sum(within, "_bucket", gate=gate, le=f"{seconds_of(most):g}"))
        sums.append(_sum(found.total(), "_bucket", gate=gate, le="+Inf"))
        sums.append(_sum(took[gate], "_sum", gate=gate))
        sums.append(_sum(found.total(), "_count", gate=gate))
    return Measure(name=name, kind="histogram", says=says, sums=tuple(sums))
