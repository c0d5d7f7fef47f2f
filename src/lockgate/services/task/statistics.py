"""What landed and what it cost, how long things took, what failed: over the last days."""

from collections import Counter, defaultdict
from collections.abc import Mapping

from msgspec import Struct, field

from lockgate.core.model.facts import json_facts
from lockgate.core.model.statistics import (
    Count,
    Spread,
    added,
    counts_of,
    day_of,
    spread_of,
)
from lockgate.core.model.task import ProjectId, TaskId
from lockgate.ports import Clock, Store
from lockgate.ports.figures import DailyCounts

BATCH = 1000
MOST_DAYS = 3650


class Day(Struct, frozen=True):
    """What landed on a day, and what was dropped: cancelled, or taken out of the merge queue."""

    day: int  # since 1970, in UTC
    landed: int = 0
    dropped: int = 0


class GateStats(Struct, frozen=True):
    """How often a gate gave which result, and how long a pass took on average."""

    passed: int = 0
    failed: int = 0
    broken: int = 0
    flaky: int = 0  # passes that came only in a later attempt
    measured: int = 0  # changes of tests with enough planted faults to compare them by
    unmeasured: int = 0  # those without
    seconds: float | None = None


class Spent(Struct, frozen=True):
    usd: float = 0.0
    tokens: int = 0


class Stats(Struct, frozen=True, kw_only=True):
    """`first_pass` is the share of landed changes that passed their gates at the first try."""

    days: tuple[Day, ...]
    project: str
    landed: int
    dropped: int
    lead: Spread
    status: Mapping[str, Spread]
    human_wait: Spread
    gates: Mapping[str, GateStats]
    first_pass: float | None
    crashes: Mapping[str, int]
    by_agent: Mapping[str, Spent]
    by_role: Mapping[str, Spent]
    by_project: Mapping[str, Spent]
    per_landed: Spent | None
    seq: int

    def facts(self) -> dict[str, object]:
        return json_facts(self)


class Statistics(Struct, frozen=True):
    store: Store
    daily: DailyCounts
    clock: Clock

    def over(self, days: int, project: ProjectId | None = None) -> Stats:
        """Of the last days, today among them; of one project or of all."""
        seq = self.catch_up()
        today = day_of(self.clock.now())
        first = today - min(max(days, 1), MOST_DAYS) + 1
        found = _Sums()
        for it in self.daily.since(first, project or ""):
            found.take(it)
        names = {it.id: it.name for it in self.store.projects()}
        return found.stats(range(first, today + 1), project or "", names, seq)

    def ever(self) -> tuple[Count, ...]:
        """All that was counted since the first event, of all projects."""
        self.catch_up()
        return self.daily.since(0, "")

    def catch_up(self) -> int:
        """Count the events that came since; the seq of the last one that is counted."""
        projects: dict[TaskId, str] = {}
        seq = self.daily.head()
        while events := self.store.events(None, seq, BATCH):
            for id in {it.task for it in events} - set(projects):
                task = self.store.find(id)
                projects[id] = task.project if task else ""
            counts = added(c for it in events for c in counts_of(it, projects[it.task]))
            if not self.daily.add(seq, events[-1].seq, counts):
                seq = self.daily.head()  # somebody else has counted them
                continue
            seq = events[-1].seq
        return seq

    def rebuild(self) -> int:
        """Count all events again."""
        self.daily.forget()
        return self.catch_up()


class _Sums(Struct):
    """What the counts of many days come to, by metric and label."""

    n: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    amount: defaultdict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    by_day: Counter[tuple[int, str]] = field(default_factory=Counter[tuple[int, str]])
    projects: defaultdict[tuple[str, str], float] = field(
        default_factory=lambda: defaultdict(float)
    )
    buckets: dict[tuple[str, str], Counter[int]] = field(
        default_factory=dict[tuple[str, str], Counter[int]]
    )

    def take(self, it: Count) -> None:
        key = (it.metric, it.label)
        self.n[key] += it.n
        self.amount[key] += it.amount
        self.by_day[it.day, it.metric] += it.n
        self.projects[it.metric, it.project] += it.amount
        if it.bucket or it.metric in {"lead", "status", "human-wait"}:
            self.buckets.setdefault(key, Counter())[it.bucket] += it.n

    def stats(self, days: range, project: str, names: Mapping[ProjectId, str], seq: int) -> Stats:
        landed = self.total("landed")
        with_cost = sum(self.buckets.get(("lead", ""), Counter[int]()).values())
        usd, tokens = (self.amount[f"landed-{it}", ""] for it in ("usd", "tokens"))
        return Stats(
            days=tuple(
                Day(it, self.by_day[it, "landed"], self.by_day[it, "dropped"]) for it in days
            ),
            project=project,
            landed=landed,
            dropped=self.total("dropped"),
            lead=spread_of(self.buckets.get(("lead", ""), {})),
            status={key[1]: spread_of(self.buckets[key]) for key in self._keys("status")},
            human_wait=spread_of(self.buckets.get(("human-wait", ""), {})),
            gates={it: self._gate(it) for it in self._labels("gate.")},
            first_pass=self.total("first-pass") / with_cost if with_cost else None,
            crashes={label: self.n["crash", label] for _, label in self._keys("crash")},
            by_agent=self._spent(0),
            by_role=self._spent(1),
            by_project={name: self._of_project(id) for id, name in sorted(names.items())},
            per_landed=Spent(usd / with_cost, round(tokens / with_cost)) if with_cost else None,
            seq=seq,
        )

    def total(self, metric: str) -> int:
        return sum(self.n[key] for key in self._keys(metric))

    def _keys(self, metric: str) -> list[tuple[str, str]]:
        return sorted(key for key in self.n if key[0] == metric)

    def _labels(self, prefix: str) -> list[str]:
        return sorted({label for metric, label in self.n if metric.startswith(prefix)})

    def _gate(self, gate: str) -> GateStats:
        names = ("passed", "failed", "broken", "flaky", "measured", "unmeasured")
        passed, failed, broken, flaky, *strength = (self.n[f"gate.{it}", gate] for it in names)
        took = self.amount["gate.passed", gate] / passed if passed else None
        return GateStats(passed, failed, broken, flaky, strength[0], strength[1], took)

    def _spent(self, part: int) -> dict[str, Spent]:
        """By the agents' names, or by their roles."""
        usd, tokens = defaultdict[str, float](float), defaultdict[str, float](float)
        for metric, found in (("usd", usd), ("tokens", tokens)):
            for _, label in self._keys(metric):
                who = label.rpartition("/")
                found[who[0] if part == 0 else who[2]] += self.amount[metric, label]
        return {it: Spent(usd[it], round(tokens[it])) for it in sorted({*usd, *tokens})}

    def _of_project(self, id: str) -> Spent:
        return Spent(self.projects["usd", id], round(self.projects["tokens", id]))
