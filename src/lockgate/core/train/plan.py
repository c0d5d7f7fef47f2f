"""The merge train's planner: from the queue as it is to the next things to do.

`plan` is asked again after every step and every answer, and keeps nothing in between; the facts it
needs stand in `train_model`. Its rules:

- Order: by level, then age. Whoever is being tested keeps the place; the urgent go in front of
  those who wait.
- Land only the first candidate, built on exactly the present tip and with a green tree of its own.
- A failure or a conflict is held against a change only where it was met on the tip itself, and a
  failure only when the tip is green. Until then the change stands aside, nobody is charged, and
  whatever is behind it is built anew without it. If what was in front goes, it is tried again, on
  a siding: nothing is built on it before it has passed.
- A tip that was never tested is tested before anyone is blamed for what failed on it. A red tip
  holds the queue: what failed on it waits. A change that passes on it has mended it, and lands.
- A result belongs to a tree. The same tree is not tested twice, another one always is.
"""

from collections.abc import Iterator

from lockgate.core.model.task import TaskId
from lockgate.core.train.model import (
    Broken,
    Built,
    CancelTest,
    Candidate,
    CheckTip,
    Conflict,
    Drop,
    Entry,
    Green,
    Hold,
    Land,
    Place,
    Queue,
    Red,
    SetAside,
    Standing,
    StartTest,
    Step,
)
from lockgate.core.train.walk import Aside, Coupled, Train, in_order, suspicions, walk


def plan(queue: Queue) -> tuple[Step, ...]:
    """The steps in their order. Done or not, they may be planned again: all are safe to repeat."""
    train = walk(queue)
    return (
        *_cancels(queue, train),
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
    if train.doubt:
        wanted.add(queue.tip.tree)
    yield from (CancelTest(tree) for tree in sorted(queue.running - wanted))


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
            yield Hold(f"the target itself is red: {evidence}")
        case Broken(why):
            yield Hold(f"the target itself could not be judged: {why}")
        case Green() | None:
            pass


def _lands(queue: Queue, train: Train) -> Iterator[Step]:
    if _is_ready(train) and not queue.blocked:
        first = train.coupled[0]
        yield Land(queue.tip.commit, first.built.commit, first.built.tree, first.tasks)


def _is_ready(train: Train) -> bool:
    return bool(train.coupled) and train.coupled[0].result is not None


def _tests(queue: Queue, train: Train) -> Iterator[Step]:
    if train.doubt and queue.tip.tree not in queue.running:
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
