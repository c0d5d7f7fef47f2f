"""The simulated world of the merge train: what every change is like, and what is true of a tree."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from lockgate.core.model.task import TaskId
from lockgate.core.train.model import Built, Change, Commit, Conflict, Entry, Tree

Draw = Callable[[], float]  # the next number of a seeded series, from 0 up to 1
Content = int  # a set of changes, as bits

PRIORITY = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Times are in T, the time of a test; rates are chances, each drawn where it may happen."""

    changes: int
    window: int
    batch: int = 1
    failure_rate: float = 0.0
    backlog: int = 0  # how many wait at any time; 0 is enough for a full train
    endless: bool = True  # the run ends with its changes; the others are left in the queue
    early: bool = False  # failures show at any moment of a test, not at its end
    spread: float = 0.0  # tests take from 1 - spread to 1 + spread
    pair_rate: float = 0.0  # fails together with the change that came before it
    conflict_rate: float = 0.0  # does not merge with the change that came before it
    depends_rate: float = 0.0  # depends on the change that came before it
    any_priority: bool = False
    move_rate: float = 0.0  # strangers push to the target, before any step
    red_rate: float = 0.0  # of those pushes, so many break it
    rewind_rate: float = 0.0  # and so many take back what landed last
    kill_rate: float = 0.0  # the orchestrator is killed, before any step

    @property
    def waiting(self) -> int:
        return self.backlog or 2 * self.window * self.batch


@dataclass(slots=True)
class World:
    """What nobody in the simulation knows but the tests that run in it."""

    scenario: Scenario
    draw: Draw
    made: int = 0
    bits: dict[str, Content] = field(default_factory=dict[str, Content])
    bad: Content = 0  # what fails alone
    faults: dict[Content, float] = field(default_factory=dict[Content, float])
    clashing: list[Content] = field(default_factory=list[Content])
    contents: dict[Commit | Tree, Content] = field(default_factory=dict[Commit | Tree, Content])
    trees: dict[Content, Tree] = field(default_factory=dict[Content, Tree])
    merges: dict[tuple[Commit, tuple[Change, ...]], Built] = field(
        default_factory=dict[tuple[Commit, tuple[Change, ...]], Built]
    )

    def happens(self, rate: float) -> bool:
        return rate > 0 and self.draw() < rate

    def bit(self, name: str) -> Content:
        return self.bits.setdefault(name, 1 << len(self.bits))

    def next_entry(self, landed: int) -> Entry:
        asked, name, before = self.scenario, f"c{self.made}", f"c{self.made - 1}"
        self.made += 1
        both = self.bit(name) | self.bit(before)
        if self.happens(asked.failure_rate):
            self.spoil(self.bit(name))
        if self.happens(asked.pair_rate):
            self.faults[both] = 1 - self.draw()
        if self.happens(asked.conflict_rate):
            self.clashing.append(both)
        return Entry(
            change=Change(TaskId(name), Commit(name)),
            since=self.made,
            entered=landed,
            priority=1 + int(5 * self.draw()) if asked.any_priority else PRIORITY,
            depends_on=(TaskId(before),) if self.happens(asked.depends_rate) else (),
        )

    def spoil(self, one: Content) -> None:
        """From now on tests fail on what has this; when in a test that shows is the fault's own."""
        self.bad |= one
        self.faults[one] = 1 - self.draw()  # above 0

    def is_good(self, content: Content) -> bool:
        if self.bad & content:
            return False
        return not self.scenario.pair_rate or not any(self._shown(content))

    def _shown(self, content: Content) -> Iterator[float]:
        return (shown for fault, shown in self.faults.items() if fault & content == fault)

    def clashes(self, name: str, content: Content) -> bool:
        """Whether the content, which does not have this change, has one that it clashes with."""
        return any(it & ~content == self.bit(name) for it in self.clashing)

    def commit(self, content: Content, id: str) -> Built:
        built = Built(Commit(id), self.trees.setdefault(content, Tree(f"t{len(self.trees)}")))
        self.contents[built.commit] = self.contents[built.tree] = content
        return built

    def merge(self, onto: Commit, changes: tuple[Change, ...]) -> Built | Conflict:
        """The same changes on the same commit give the same commit."""
        content = self.contents[onto]
        for change in changes:
            if self.clashes(change.task, content):
                return Conflict(change.task)
            content |= self.bit(change.task)
        known = self.merges.get((onto, changes))
        return self.merges.setdefault(
            (onto, changes), known or self.commit(content, f"m{len(self.merges)}")
        )

    def test_time(self, tree: Tree) -> float:
        """How long until the result is known."""
        spread = self.scenario.spread
        full = 1 + spread * (2 * self.draw() - 1) if spread else 1.0
        early = self._shown(self.contents[tree]) if self.scenario.early else ()
        return full * min(early, default=1.0)
