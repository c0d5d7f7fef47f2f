"""The planner where changes land by pull requests.

Each change is tested alone on the tip, before people see it and again before it lands: nothing is
built on a change that the forge may still keep or alter. Green and not offered: offer it. Green
and ready: land it, one at a time. A failure counts only where the tip itself is green.
"""

from collections.abc import Iterator

from msgspec import Struct

from lockgate.core.model.task import TaskId
from lockgate.core.train.model import (
    Broken,
    Build,
    Built,
    CancelTest,
    CheckTip,
    Conflict,
    Drop,
    Entry,
    Green,
    Hold,
    HoldKind,
    Land,
    Offer,
    Place,
    Queue,
    Red,
    Result,
    SetAside,
    Standing,
    StartTest,
    Step,
)
from lockgate.core.train.plan import in_order, places, plan


class Car(Struct, frozen=True):
    """A change that may go on, with what was built of it on the tip."""

    entry: Entry
    built: Built | Conflict | None


def next_steps(queue: Queue) -> tuple[Step, ...]:
    """By the planner that the target asks for."""
    return plan_offers(queue) if queue.pulls else plan(queue)


def standings(queue: Queue) -> tuple[Place, ...]:
    return offer_places(queue) if queue.pulls else places(queue)


def plan_offers(queue: Queue) -> tuple[Step, ...]:
    """The steps in their order; all are safe to repeat."""
    cars = tuple(_cars(queue))
    return (
        *_cancels(queue, cars),
        *_blames(queue, cars),
        *_holds(queue),
        *_goes_on(queue, cars),
        *_builds(queue, cars),
        *_tests(queue, cars),
    )


def offer_places(queue: Queue) -> tuple[Place, ...]:
    able = {it.entry.change.task: it for it in _cars(queue)}
    return tuple(_place(queue, entry, able.get(entry.change.task)) for entry in in_order(queue))


def _cars(queue: Queue) -> Iterator[Car]:
    known = {it.changes: it.outcome for it in queue.candidates if it.onto == queue.tip.commit}
    for entry in in_order(queue):
        if not (entry.held or entry.depends_on):
            yield Car(entry, known.get((entry.change,)))


def _cancels(queue: Queue, cars: tuple[Car, ...]) -> Iterator[Step]:
    wanted = {it.built.tree for it in cars if isinstance(it.built, Built)} | {queue.tip.tree}
    yield from (CancelTest(tree) for tree in sorted(queue.running - wanted))


def _blames(queue: Queue, cars: tuple[Car, ...]) -> Iterator[Step]:
    green = queue.results.get(queue.tip.tree) == Green()
    for it in cars:
        task = it.entry.change.task
        match it.built:
            case Conflict() as conflict:
                yield Drop(task, conflict)
            case Built(_, tree) if green:
                match queue.results.get(tree):
                    case Red() as red:
                        yield Drop(task, red)
                    case Broken(why):
                        yield SetAside(task, why)
                    case Green() | None:
                        pass
            case Built() | None:
                pass


def _holds(queue: Queue) -> Iterator[Step]:
    match queue.results.get(queue.tip.tree):
        case Red(evidence):
            yield Hold(f"the target itself is red: {evidence}", HoldKind.RED_TIP)
        case Broken(why):
            yield Hold(f"the target itself could not be judged: {why}", HoldKind.HELD)
        case Green() | None:
            pass


def _goes_on(queue: Queue, cars: tuple[Car, ...]) -> Iterator[Step]:
    """Offers come as they are green; of those that are ready one lands at a time.

    The next one is tested on what the forge made of the last; its own queue does that itself.
    """
    landing = any(it.landing and not it.queued for it in queue.entries)
    for it in cars:
        step = _next(queue, it)
        if isinstance(step, Offer) and it.entry.offered is None:
            yield step
        elif step is not None and not landing:
            landing = True
            yield step


def _next(queue: Queue, it: Car) -> Offer | Land | None:
    entry, task = it.entry, it.entry.change.task
    if entry.offered is not None and entry.queued:
        return Land(queue.tip.commit, entry.offered, queue.tip.tree, (task,))
    if not isinstance(it.built, Built) or queue.results.get(it.built.tree) != Green():
        return None
    if entry.offered is None or entry.behind:
        return Offer(task, it.built, queue.tip.commit)
    return Land(queue.tip.commit, it.built.commit, it.built.tree, (task,))


def _builds(queue: Queue, cars: tuple[Car, ...]) -> Iterator[Step]:
    for it in cars:
        if it.built is None and not (it.entry.offered is not None and it.entry.queued):
            yield Build(queue.tip.commit, (it.entry.change,))
            return


def _tests(queue: Queue, cars: tuple[Car, ...]) -> Iterator[Step]:
    built = [(it.entry.change.task, it.built) for it in cars if isinstance(it.built, Built)]
    bad = any(isinstance(queue.results.get(it.tree), Red | Broken) for _, it in built)
    if bad and queue.tip.tree not in queue.results and queue.tip.tree not in queue.running:
        yield CheckTip(queue.tip)
    started = set(queue.running)
    for task, it in built:
        new = it.tree not in queue.results and it.tree not in started
        if new and len(started) < queue.window:
            started.add(it.tree)
            yield StartTest(it, (task,))


def _place(queue: Queue, entry: Entry, car: Car | None) -> Place:
    task = entry.change.task
    if entry.held:
        return Place(task, Standing.HELD, entry.held)
    if car is None:
        return Place(task, Standing.WAITING, f"for {', '.join(entry.depends_on)}")
    match car.built:
        case None:
            return Place(task, Standing.QUEUED)
        case Conflict(_, others, files):
            return Place(task, Standing.CONFLICT, ", ".join((*others, *files)))
        case Built(_, tree):
            return _tested(task, queue.results.get(tree), running=tree in queue.running)


def _tested(task: TaskId, result: Result | None, *, running: bool) -> Place:
    match result:
        case Green():
            return Place(task, Standing.TESTED)
        case Red(why) | Broken(why):
            return Place(task, Standing.FAILING, why)
        case None:
            return Place(task, Standing.TESTING if running else Standing.NEXT)
