"""The merge train's planner: from the queue as it is to the next things to do.

`plan` is asked again after every step and every answer, and keeps nothing in between; the facts it
needs stand in `model`. Its rules:

- Order: by level, then age. A change under test keeps its place; the urgent go in front of
  those who wait.
- Land only the first candidate, built on exactly the present tip and with a green tree of its own.
- A failure or a conflict is held against a change only where it was met on the tip itself, and a
  failure only when the tip is green. Until then the change stands aside, nobody is charged, and
  whatever is behind it is built again without it. If what was in front goes, it is tried again, on
  a siding: nothing is built on it before it has passed.
- A tip that was never tested is tested before anyone is blamed for what failed on it. A red tip
  holds the queue: what failed on it waits. A change that passes on it has mended it, and lands.
- A result belongs to a tree. The same tree is not tested twice, another one always is.
- A revert that a human has land unjudged goes in front of all others and is not tested, but lands
  on a red tip alone. So the tip is tested first; on a green one a human is told to have it judged.
"""

from collections.abc import Iterable, Iterator
from itertools import islice, takewhile

from msgspec import Struct, field

from lockgate.core.model.limits import PRIORITIES
from lockgate.core.model.task import TaskId
from lockgate.core.train.model import (
    Broken,
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
    HoldKind,
    Land,
    Place,
    Queue,
    Red,
    Result,
    SetAside,
    Standing,
    StartTest,
    Step,
    Tree,
)

LANDINGS_A_LEVEL = 10


# One walk along the queue: which candidates make the train, and which changes stand aside.
#
# The walk begins at the tip and couples one candidate after the other, each built on the one in
# front. Changes that are being tested, or have been, keep their places; the others follow by level
# and age. What is known to fail or to conflict where the walk is, stands aside, and the walk goes
# on from there without it: the nearest that does not fail. A batch that fails is halved at once.
#
# A change that failed alone behind something which is gone by now is a suspect: probably, but not
# certainly, at fault. It is tested again at its place, on a siding: the others are not built on it
# before it has passed, or stands on the tip.


class Coupled(Struct, frozen=True):
    """A candidate with its place in the train; no result is a test that runs, or is to start."""

    built: Built
    tasks: tuple[TaskId, ...]
    result: Green | None


class Aside(Struct, frozen=True):
    """Why a change is not in the train. On the tip, nothing in front of it can be the reason."""

    reason: Conflict | Red | Broken
    on_tip: bool


class Train(Struct, frozen=True, kw_only=True):
    coupled: tuple[Coupled, ...]
    sidings: tuple[Coupled, ...]  # tested beside the train
    aside: dict[TaskId, Aside]
    waiting: tuple[Entry, ...]
    build: Build | None
    doubt: bool  # something failed on a tip that nobody has tested

    @property
    def tested(self) -> tuple[Coupled, ...]:
        return (*self.coupled, *self.sidings)


def level(entry: Entry, landed: int) -> int:
    """Its priority, one up for every ten that landed since it came; the first is the highest."""
    waited = (landed - entry.entered) // LANDINGS_A_LEVEL
    return max(PRIORITIES[0], entry.priority - waited)


def in_order(queue: Queue) -> tuple[Entry, ...]:
    return tuple(
        sorted(
            queue.entries,
            key=lambda it: (level(it, queue.landed), it.since, it.change.task),
        )
    )


def walk(queue: Queue) -> Train:
    it = _Walk(queue, queue.tip.commit)
    it.line = {
        entry.change.task: entry for entry in in_order(queue) if not (entry.held or entry.unjudged)
    }
    for candidate in queue.candidates:
        it.known.setdefault(candidate.onto, {})[candidate.changes] = candidate.outcome
    it.suspects = _suspects(queue)
    it.rank = {task: number for number, task in enumerate(it.line)}
    while it.steps_on():
        pass
    return Train(
        coupled=tuple(it.coupled),
        sidings=tuple(it.sidings),
        aside=it.aside,
        waiting=tuple(it.line.values()),
        build=it.build,
        doubt=it.doubt,
    )


def suspicions(queue: Queue) -> tuple[Candidate, ...]:
    """Those of one change that failed, wherever it stood."""
    return tuple(
        it
        for it in queue.candidates
        if len(it.changes) == 1
        and isinstance(it.outcome, Built)
        and isinstance(queue.results.get(it.outcome.tree), Red)
    )


def _suspects(queue: Queue) -> set[Change]:
    """Where many failed, as on a red tip, it was not they: none is a suspect."""
    waiting = {entry.change for entry in queue.entries}
    found = waiting.intersection(it.changes[0] for it in suspicions(queue))
    return found if len(found) <= queue.window // 2 else set()


Group = tuple[Change, ...]


class _Walk(Struct):
    """Where the walk is, what it has passed, and who is still in line."""

    queue: Queue
    at: Commit
    line: dict[TaskId, Entry] = field(default_factory=dict[TaskId, Entry])
    known: dict[Commit, dict[Group, Built | Conflict]] = field(
        default_factory=dict[Commit, dict[Group, Built | Conflict]]
    )
    coupled: list[Coupled] = field(default_factory=list[Coupled])
    aboard: set[TaskId] = field(default_factory=set[TaskId])
    busy: set[Tree] = field(default_factory=set[Tree])
    aside: dict[TaskId, Aside] = field(default_factory=dict[TaskId, Aside])
    halves: list[Group] = field(default_factory=list[Group])
    halved: set[Group] = field(default_factory=set[Group])  # where the walk is now
    sidings: list[Coupled] = field(default_factory=list[Coupled])
    suspects: set[Change] = field(default_factory=set[Change])
    rank: dict[TaskId, int] = field(default_factory=dict[TaskId, int])
    build: Build | None = None
    doubt: bool = False

    def steps_on(self) -> bool:
        """Deal with one group of changes; False where the walk ends."""
        group = self._next()
        if not group:
            return False
        match self.known.get(self.at, {}).get(group):
            case None:
                return self._builds(group)
            case Conflict() as conflict:
                self._step_aside(conflict.task, conflict, own=conflict.task == group[0].task)
                return True
            case Built() as built:
                return self._meets(group, built)

    def _next(self) -> Group:
        """What is known to be bad here comes first: it must not come in again further on."""
        return self._bad() or self._half() or self._live() or self._fresh()

    def _bad(self) -> Group:
        """The smallest group says most about who is at fault."""
        here = self.known.get(self.at, {}).items()
        bad = [it for it, outcome in here if self._is_bad(it, outcome) and it not in self.halved]
        return min((it for it in bad if self._fits(it)), key=len, default=())

    def _is_bad(self, group: Group, outcome: Built | Conflict) -> bool:
        """A conflict with another of the group counts only where that group is formed again."""
        match outcome:
            case Conflict(task):
                return task == group[0].task
            case Built():
                return isinstance(self._result(outcome), Red | Broken)

    def _half(self) -> Group:
        while self.halves:
            group = self._able(self.halves.pop(0))
            if group:
                return group
        return ()

    def _live(self) -> Group:
        """The first that runs or has passed: its changes keep their places."""
        here = self.known.get(self.at, {}).items()
        found = [it for it, outcome in here if self._is_live(outcome) and self._fits(it)]
        return min(found, key=lambda it: (self.rank[it[0].task], -len(it)), default=())

    def _fresh(self) -> Group:
        """A suspect is alone, so that it is known who failed."""
        able = self._abled(it.change for it in self.line.values())
        group = tuple(islice(able, self.queue.batch))
        clean = tuple(takewhile(lambda it: not self._is_suspect(it), group))
        return clean or group[:1]

    def _able(self, group: Group) -> Group:
        """Those of the group that are in line and have what they depend on in front of them."""
        return tuple(self._abled(group))

    def _abled(self, group: Iterable[Change]) -> Iterator[Change]:
        aboard = set(self.aboard)
        for change in group:
            entry = self.line.get(change.task)
            if entry and entry.change == change and aboard.issuperset(entry.depends_on):
                aboard.add(change.task)
                yield change

    def _is_suspect(self, change: Change) -> bool:
        """It failed alone, behind something that is gone. On the tip there is no doubt to give."""
        return change in self.suspects and not self._on_tip()

    def _fits(self, group: Group) -> bool:
        return self._able(group) == group

    def _is_live(self, outcome: Built | Conflict) -> bool:
        match outcome:
            case Conflict():
                return False
            case Built(_, tree):
                return tree in self.queue.running or self._result(outcome) == Green()

    def _result(self, built: Built) -> Result | None:
        return self.queue.results.get(built.tree)

    def _builds(self, group: Group) -> bool:
        """Nothing can be built on what is not built yet, so the walk ends here."""
        if len(self.busy) < self._room():
            self.build = Build(self.at, group)
        return False

    def _room(self) -> int:
        """How many tests may run beside that of the tip."""
        return self.queue.window - self.doubt

    def _meets(self, group: Group, built: Built) -> bool:
        match self._result(built):
            case Red() | Broken() as bad:
                self._fails(group, bad)
                return True
            case Green() as green:
                self._couple(group, built, green)
                return True
            case None:
                return self._takes_slot(group, built)

    def _takes_slot(self, group: Group, built: Built) -> bool:
        """A test that runs goes on; another one starts if there is room."""
        running = built.tree in self.queue.running | self.busy
        if not running and len(self.busy) >= self._room():
            return False
        self.busy.add(built.tree)
        if len(group) == 1 and self._is_suspect(group[0]):
            self.sidings.append(Coupled(built, (group[0].task,), None))
            del self.line[group[0].task]
        else:
            self._couple(group, built, None)
        return True

    def _couple(self, group: Group, built: Built, result: Green | None) -> None:
        tasks = tuple(change.task for change in group)
        self.coupled.append(Coupled(built, tasks, result))
        self.at = built.commit
        self.halved.clear()
        for task in tasks:
            del self.line[task]
            self.aboard.add(task)

    def _fails(self, group: Group, bad: Red | Broken) -> None:
        if self._on_tip() and self.queue.tip.tree not in self.queue.results:
            self.doubt = True
        if len(group) == 1:
            self._step_aside(group[0].task, bad, own=True)
            return
        self.halved.add(group)
        middle = (len(group) + 1) // 2
        self.halves[:0] = [group[:middle], group[middle:]]

    def _step_aside(self, task: TaskId, reason: Conflict | Red | Broken, *, own: bool) -> None:
        """It is its own fault only if nothing that may still go away stands in front of it."""
        del self.line[task]
        self.aside[task] = Aside(reason, own and self._on_tip())

    def _on_tip(self) -> bool:
        return self.at == self.queue.tip.commit


# The plan.

AT_ONCE = "lands without its gates where the target is red"
NOT_RED = "the target is green, so that its gates can judge it: cancel it and undo again"


def plan(queue: Queue) -> tuple[Step, ...]:
    """The steps in their order. Done or not, they may be planned again: all are safe to repeat."""
    train = walk(queue)
    unjudged = tuple(_unjudged(queue))
    if any(isinstance(it, Build | Land | Drop) for it in unjudged):
        return unjudged
    return (
        *_cancels(queue, train),
        *unjudged,
        *_blames(queue, train),
        *_holds(queue, train),
        *_lands(queue, train),
        *((train.build,) if train.build else ()),
        *_tests(queue, train),
    )


def places(queue: Queue) -> tuple[Place, ...]:
    """Every change of the queue, the train first."""
    train = walk(queue)
    aboard = frozenset(task for it in train.coupled for task in it.tasks)
    return (
        *(Place(it.change.task, Standing.NEXT, AT_ONCE) for it in _at_once(queue)),
        *(Place(task, _standing(queue, it)) for it in train.tested for task in it.tasks),
        *(_stands_aside(task, it) for task, it in train.aside.items()),
        *(_waits(entry, aboard) for entry in train.waiting),
        *(
            Place(entry.change.task, Standing.HELD, entry.held)
            for entry in in_order(queue)
            if entry.held
        ),
    )


def stale(queue: Queue) -> tuple[Candidate, ...]:
    """The candidates that no train from this tip needs: they and their refs may go."""
    changes = frozenset(entry.change for entry in queue.entries)
    usable = [it for it in queue.candidates if changes.issuperset(it.changes)]
    suspicious = suspicions(queue)
    reached = {queue.tip.commit}
    before = 0
    while before < len(reached):
        before = len(reached)
        reached.update(
            it.outcome.commit
            for it in usable
            if it.onto in reached and isinstance(it.outcome, Built)
        )
    kept = {it for it in usable if it.onto in reached or it in suspicious}
    return tuple(it for it in queue.candidates if it not in kept)


def _cancels(queue: Queue, train: Train) -> Iterator[Step]:
    wanted = {it.built.tree for it in train.tested if it.result is None}
    if train.doubt or _at_once(queue):
        wanted.add(queue.tip.tree)
    yield from (CancelTest(tree) for tree in sorted(queue.running - wanted))


def _at_once(queue: Queue) -> tuple[Entry, ...]:
    """The reverts that nothing is to judge, unless they are held."""
    return tuple(it for it in in_order(queue) if it.unjudged and not it.held)


def _unjudged(queue: Queue) -> Iterator[Step]:
    """What becomes of the first of them, once it is known whether the tip is red."""
    match queue.results.get(queue.tip.tree):
        case Red():
            yield from (_on_red(queue, it.change) for it in _at_once(queue)[:1])
        case Green():
            yield from (SetAside(it.change.task, NOT_RED) for it in _at_once(queue))
        case Broken() | None:
            pass


def _on_red(queue: Queue, change: Change) -> Step:
    """Built on the tip and landed there, untested."""
    tip, changes = queue.tip.commit, (change,)
    outcomes = (it.outcome for it in queue.candidates if (it.onto, it.changes) == (tip, changes))
    match next(outcomes, None):
        case None:
            return Build(tip, changes)
        case Conflict() as conflict:
            return Drop(change.task, conflict)
        case Built() if queue.blocked:
            return Hold(queue.blocked)
        case Built(commit, tree):
            return Land(tip, commit, tree, (change.task,))


def _blames(queue: Queue, train: Train) -> Iterator[Step]:
    green = queue.results.get(queue.tip.tree) == Green()
    for task, aside in train.aside.items():
        if not aside.on_tip:
            continue
        match aside.reason:
            case Conflict() as conflict:
                yield Drop(task, conflict)
            case Red() as red if green:
                yield Drop(task, red)
            case Broken(why) if green:
                yield SetAside(task, why)
            case Red() | Broken():
                pass


def _holds(queue: Queue, train: Train) -> Iterator[Step]:
    if queue.blocked and _is_ready(train):
        yield Hold(queue.blocked)
    match queue.results.get(queue.tip.tree):
        case Red(evidence):
            yield Hold(f"the target itself is red: {evidence}", HoldKind.RED_TIP)
        case Broken(why):
            yield Hold(f"the target itself could not be judged: {why}", HoldKind.HELD)
        case Green() | None:
            pass


def _lands(queue: Queue, train: Train) -> Iterator[Step]:
    if _is_ready(train) and not queue.blocked:
        first = train.coupled[0]
        yield Land(queue.tip.commit, first.built.commit, first.built.tree, first.tasks)


def _is_ready(train: Train) -> bool:
    return bool(train.coupled) and train.coupled[0].result is not None


def _tests(queue: Queue, train: Train) -> Iterator[Step]:
    untested = _at_once(queue) and queue.tip.tree not in queue.results
    if (train.doubt or untested) and queue.tip.tree not in queue.running:
        yield CheckTip(queue.tip)
    started = set(queue.running)
    for it in train.tested:
        if it.result is None and it.built.tree not in started:
            started.add(it.built.tree)
            yield StartTest(it.built, it.tasks)


def _standing(queue: Queue, it: Coupled) -> Standing:
    if it.result is not None:
        return Standing.TESTED
    return Standing.TESTING if it.built.tree in queue.running else Standing.NEXT


def _stands_aside(task: TaskId, aside: Aside) -> Place:
    match aside.reason:
        case Conflict(_, others, files):
            return Place(task, Standing.CONFLICT, ", ".join((*others, *files)))
        case Red(why) | Broken(why):
            return Place(task, Standing.FAILING, why)


def _waits(entry: Entry, aboard: frozenset[TaskId]) -> Place:
    missing = [task for task in entry.depends_on if task not in aboard]
    if missing:
        return Place(entry.change.task, Standing.WAITING, f"for {', '.join(missing)}")
    return Place(entry.change.task, Standing.QUEUED)
