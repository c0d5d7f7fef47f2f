"""The simulated world of the merge train: what every change is like, and what is true of a tree."""

from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.core.model.task import TaskId
from lockgate.core.train.model import (
    Build,
    Built,
    CancelTest,
    Candidate,
    Change,
    CheckTip,
    Commit,
    Conflict,
    Drop,
    Entry,
    Green,
    Hold,
    Land,
    Offer,
    Queue,
    Red,
    Result,
    SetAside,
    StartTest,
    Step,
    Tree,
)
from lockgate.core.train.plan import plan, stale

Draw = Callable[[], float]  # the next number of a seeded series, from 0 up to 1
Content = int  # a set of changes, as bits

PRIORITY = 3


class Scenario(Struct, frozen=True, kw_only=True):
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


class World(Struct):
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


# One run of the simulated merge train.
#
# It watches what the planner promises: nothing lands that was not tested as it lands, nobody is
# blamed for what others did, no more tests run than may, and every change ends.


TOO_MANY_PLANS = 1_000  # for one change: then the planner goes round in circles
PRUNED_FROM = 50  # candidates
CALM_FROM = 60  # pushes and kills: nothing lands where they come faster than a test ends

Planner = Callable[[Queue], Sequence[Step]]
Doable = CancelTest | Drop | SetAside | Land | Build | CheckTip | StartTest


class Run(Struct):
    """A kill leaves all but `running`, which is what dies with the orchestrator."""

    world: World
    tip: Built
    planner: Planner = plan
    entries: tuple[Entry, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    results: dict[Tree, Result] = field(default_factory=dict[Tree, Result])
    intent: Land | None = None
    planned_on: Content = 0
    running: dict[Tree, int] = field(default_factory=dict[Tree, int])
    answers: list[tuple[float, int, Tree]] = field(default_factory=list[tuple[float, int, Tree]])
    now: float = 0.0
    landed: list[tuple[float, TaskId]] = field(default_factory=list[tuple[float, TaskId]])
    dropped: list[TaskId] = field(default_factory=list[TaskId])
    overtaken: dict[TaskId, int] = field(default_factory=dict[TaskId, int])
    priorities: dict[TaskId, int] = field(default_factory=dict[TaskId, int])
    tests: int = 0
    cancelled: int = 0
    moves: int = 0
    kills: int = 0
    broken_promises: list[str] = field(default_factory=list[str])

    @staticmethod
    def begun(world: World, planner: Planner = plan) -> "Run":
        return Run(world, world.commit(world.bit("base"), "base"), planner)

    def play(self) -> None:
        asked = self.world.scenario
        for _ in range(TOO_MANY_PLANS * asked.changes):
            self._arrive()
            if len(self.landed) + len(self.dropped) >= asked.changes or self.broken_promises:
                return
            self.planned_on = self._content()
            steps = _doable(self.planner(self._queue()))
            if steps:
                self._take(steps)
            else:
                self._wait()
        self.broken_promises.append(f"{len(self.entries)} changes never end")

    def _queue(self) -> Queue:
        return Queue(
            tip=self.tip,
            entries=self.entries,
            candidates=self.candidates,
            results=self.results,
            running=frozenset(self.running),
            landed=len(self.landed),
            window=self.world.scenario.window,
            batch=self.world.scenario.batch,
        )

    def _arrive(self) -> None:
        asked = self.world.scenario
        more = asked.waiting - len(self.entries)
        if not asked.endless:
            more = min(more, asked.changes - self.world.made)
        new = [self.world.next_entry(len(self.landed)) for _ in range(more)]
        if new:
            self.priorities.update((it.change.task, it.priority) for it in new)
            self._queue_up((*self.entries, *new))

    def _queue_up(self, entries: Sequence[Entry]) -> None:
        """What has ended, one way or the other, is waited for no longer."""
        here = {it.change.task for it in entries}
        self.entries = tuple(
            replace(it, depends_on=tuple(on for on in it.depends_on if on in here))
            if it.depends_on
            else it
            for it in entries
        )

    def _take(self, steps: Sequence[Doable]) -> None:
        """One step after the other, unless the orchestrator dies; the target moves when it will."""
        before = self.kills
        for step in steps:
            if self._dies() or self.kills > before:
                return
            if self._strikes(self.world.scenario.move_rate):
                self._move()
            self._do(step)

    def _do(self, step: Doable) -> None:
        match step:
            case CancelTest(tree):
                self.cancelled += 1
                self.running.pop(tree, None)
            case Drop(task, reason):
                self._drop(task, reason)
            case SetAside(task, why):
                self.broken_promises.append(f"{task} was set aside: {why}")
            case Land():
                self._land(step)
            case Build(onto, changes):
                built = Candidate(onto, changes, self.world.merge(onto, changes))
                self.candidates = (*self.candidates, built)
            case CheckTip(built) | StartTest(built):
                self._start(built)

    def _start(self, built: Built) -> None:
        self.tests += 1
        self.running[built.tree] = self.tests
        ends = self.now + self.world.test_time(built.tree)
        heappush(self.answers, (ends, self.tests, built.tree))
        if len(self.running) > self.world.scenario.window:
            self.broken_promises.append(f"{len(self.running)} tests run at once")

    def _wait(self) -> None:
        """The next answer of a test that runs; where none does, a stranger mends the target."""
        while self.answers:
            self.now, number, tree = heappop(self.answers)
            if self.running.get(tree) == number:
                del self.running[tree]
                good = self.world.is_good(self.world.contents[tree])
                self.results[tree] = Green() if good else Red("a test failed")
                return
        if self.world.is_good(self._content()):
            self.broken_promises.append(f"{len(self.entries)} changes wait for nothing")
        self._push(self._content() & ~self.world.bad)

    def _land(self, step: Land) -> None:
        """The intent first, then the target, then the record; a kill may come between any two."""
        self.intent = step
        if self._dies():
            return
        if self.tip.commit == step.expected:
            self._check_landing(step)
            self.tip = Built(step.commit, step.tree)
            if self._dies():
                return
        self._record()

    def _record(self) -> None:
        """What was meant to land has landed if the target has it."""
        landed, self.intent = self.intent, None
        if landed and all(self._content() & self.world.bit(task) for task in landed.tasks):
            self._count_overtaken(landed.tasks)
            self.landed += [(self.now, task) for task in landed.tasks]
            self._leave(landed.tasks)

    def _count_overtaken(self, tasks: tuple[TaskId, ...]) -> None:
        since = {it.change.task: it.since for it in self.entries}
        waiting = [it for it in since if it not in tasks]
        for other in waiting:
            later = sum(since[other] < since[task] for task in tasks)
            self.overtaken[other] = self.overtaken.get(other, 0) + later

    def _drop(self, task: TaskId, reason: Conflict | Red) -> None:
        if not self._is_fair(task, reason):
            self.broken_promises.append(f"{task} was dropped for what others did")
        self.dropped.append(task)
        self._leave((task,))

    def _is_fair(self, task: TaskId, reason: Conflict | Red) -> bool:
        """By the target that was planned on; it may have moved since."""
        content = self.planned_on
        match reason:
            case Conflict():
                return self.world.clashes(task, content)
            case Red():
                with_it = content | self.world.bit(task)
                return self.world.is_good(content) and not self.world.is_good(with_it)

    def _leave(self, tasks: tuple[TaskId, ...]) -> None:
        self._queue_up([it for it in self.entries if it.change.task not in tasks])
        if len(self.candidates) > PRUNED_FROM:
            gone = set(stale(self._queue()))
            self.candidates = tuple(it for it in self.candidates if it not in gone)

    def _check_landing(self, step: Land) -> None:
        if self.results.get(step.tree) != Green() or step.expected not in self._fronts(step):
            self.broken_promises.append(f"{step.commit} landed without a test of its tree")

    def _fronts(self, step: Land) -> set[Commit]:
        """What the landed commit was built on."""
        wanted = Built(step.commit, step.tree)
        return {it.onto for it in self.candidates if it.outcome == wanted}

    def _dies(self) -> bool:
        """A new orchestrator first looks what became of a landing that was under way."""
        if not self._strikes(self.world.scenario.kill_rate):
            return False
        self.kills += 1
        self.running.clear()
        self._record()
        return True

    def _strikes(self, rate: float) -> bool:
        return self.moves + self.kills < CALM_FROM and self.world.happens(rate)

    def _move(self) -> None:
        """A stranger repairs what is broken, and may break it again or revert what landed last."""
        asked = self.world.scenario
        stranger = self.world.bit(f"stranger {self.moves}")
        content = self._content() & ~self.world.bad | stranger
        if self.world.happens(asked.red_rate):
            self.world.spoil(stranger)
        if self.landed and self.world.happens(asked.rewind_rate):
            content &= ~self.world.bit(self.landed[-1][1])
        self._push(content)

    def _push(self, content: Content) -> None:
        self.moves += 1
        self.tip = self.world.commit(content, f"push {self.moves}")

    def _content(self) -> Content:
        return self.world.contents[self.tip.tree]


def _doable(steps: Sequence[Step]) -> list[Doable]:
    return [step for step in steps if not isinstance(step, Hold | Offer)]


# A simulation of the merge train: the real planner, a virtual clock, and a world of our making.


class Simulated(Struct, frozen=True, kw_only=True):
    """What came of it, times in T; a broken promise is a bug in the planner."""

    landed: tuple[tuple[float, TaskId], ...]
    dropped: tuple[TaskId, ...]
    elapsed: float
    tests: int
    cancelled: int
    moves: int
    kills: int
    overtaken: dict[TaskId, int]  # how many that came later landed before it
    priorities: dict[TaskId, int]
    broken_promises: tuple[str, ...]

    @property
    def throughput(self) -> float:
        """Landed changes in the time of one test."""
        return len(self.landed) / self.elapsed if self.elapsed else 0.0


def serial_throughput(failure_rate: float) -> float:
    """One change after the other: landings in the time of one test."""
    return 1 - failure_rate


def chain_throughput(failure_rate: float, window: int) -> float:
    """A chain that starts again behind the first failure, which shows at the end of its test."""
    good = 1 - failure_rate
    return float(window) if failure_rate == 0 else good * (1 - good**window) / failure_rate


def simulate(scenario: Scenario, draw: Draw) -> Simulated:
    run = Run.begun(World(scenario, draw))
    run.play()
    return Simulated(
        landed=tuple(run.landed),
        dropped=tuple(run.dropped),
        elapsed=run.now,
        tests=run.tests,
        cancelled=run.cancelled,
        moves=run.moves,
        kills=run.kills,
        overtaken=run.overtaken,
        priorities=run.priorities,
        broken_promises=tuple(run.broken_promises),
    )
