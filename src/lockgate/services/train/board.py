"""The merge train as people watch it: its cars in the order of landing, and what landed last."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from statistics import median

from msgspec import Struct

from lockgate.core.model.facts import json_facts
from lockgate.core.model.task import ProjectId, Status, TaskId
from lockgate.core.train.entries import train_gates
from lockgate.core.train.model import Began, Built, Green, Hold, Place, Queue, Red, Standing, Tree
from lockgate.core.train.offers import next_steps, standings
from lockgate.core.train.plan import Coupled, walk
from lockgate.errors import LockgateError
from lockgate.ports import Clock
from lockgate.services.train.view import Train, TrainView

LANDED = 20  # landings that are shown, and that the median is of


class CarGate(Struct, frozen=True):
    """A gate of the train on a car; `started` is 0 where it does not run."""

    gate: str
    state: str
    started: float = 0.0


class Car(Struct, frozen=True, kw_only=True):
    """A change in the queue; `eta` is when it may land, None where nobody can tell."""

    position: int
    task: TaskId
    summary: str
    priority: int
    patch: str
    standing: str
    why: str
    onto: str = ""
    commit: str = ""
    tree: str = ""
    gates: tuple[CarGate, ...] = ()
    eta: float | None = None


class Landed(Struct, frozen=True, kw_only=True):
    """A move of the target: the commit, the tasks that it brought, how long its tests took."""

    commit: str
    tasks: tuple[TaskId, ...]
    time: float
    seconds: float


class TrainBoard(Struct, frozen=True, kw_only=True):
    project: ProjectId
    target: str
    tip: str
    mode: str
    holds: tuple[str, ...]
    window: int
    cars: tuple[Car, ...]
    landed: tuple[Landed, ...]
    median_seconds: float | None

    def facts(self) -> dict[str, object]:
        return json_facts(self)


class TrainBoards(Struct, frozen=True, kw_only=True):
    """`began` is the orchestrator's own; where it is empty no test runs."""

    view: TrainView
    began: Began
    clock: Clock

    def of(self, id: ProjectId) -> TrainBoard:
        target, mode = self.view.target(self.view.store.project(id))
        train = self.view.train(target)
        running = {tree: at for (name, tree), at in dict(self.began).items() if name == train.name}
        queue = self.view.queue(train, running)
        landed = tuple(
            Landed(commit=it.commit, tasks=it.tasks, time=it.time, seconds=it.seconds)
            for it in self.view.log.landed_last(train.name, LANDED)
        )
        took = [it.seconds for it in landed if it.seconds > 0]
        usual = median(took) if took else None
        name = f"{target.remote}/{target.branch}" if target.remote else target.branch
        return TrainBoard(
            project=id,
            target=name,
            tip=train.tip.commit,
            mode=mode,
            holds=tuple(it.why for it in next_steps(queue) if isinstance(it, Hold)),
            window=queue.window,
            cars=_Cars(self, train, queue, running, usual).all(),
            landed=landed,
            median_seconds=usual,
        )

    def standings(self, known: Mapping[str, TrainBoard]) -> Iterator[str]:
        """Of the changes in all queues; `known` are those that need not be looked at again."""
        for project in self.view.store.projects():
            if self.view.store.counts([project.id]).get(Status.REVIEWING):
                with suppress(LockgateError):  # its repository is not there, and nothing lands
                    board = known.get(project.id) or self.of(project.id)
                    yield from (it.standing for it in board.cars)


class _Cars(Struct, frozen=True):
    of: TrainBoards
    train: Train
    queue: Queue
    running: Mapping[Tree, float]
    usual: float | None

    def all(self) -> tuple[Car, ...]:
        tested = () if self.queue.pulls else walk(self.queue).tested
        coupled = {task: it for it in tested for task in it.tasks}
        cars, latest = list[Car](), 0.0
        for position, place in enumerate(standings(self.queue), start=1):
            built = coupled.get(place.task)
            ready = self._ready(built)
            latest = max(latest, ready) if ready is not None else latest
            cars.append(self._car(position, place, built, latest if ready is not None else None))
        return tuple(cars)

    def _car(self, position: int, place: Place, it: Coupled | None, eta: float | None) -> Car:
        task = self.of.view.store.load(place.task)
        onto = [c.onto for c in self.queue.candidates if it and c.outcome == it.built]
        return Car(
            position=position,
            task=task.id,
            summary=task.summary,
            priority=task.priority,
            patch=task.patch,
            standing="landing" if task.landed else place.standing,
            why=place.why,
            onto=onto[0] if onto else "",
            commit=it.built.commit if it else "",
            tree=it.built.tree if it else "",
            gates=self._gates(place, it.built if it else None),
            eta=eta,
        )

    def _gates(self, place: Place, built: Built | None) -> tuple[CarGate, ...]:
        result = self.queue.results.get(built.tree) if built else None
        started = self.running.get(built.tree, 0.0) if built else 0.0
        state = "running" if started else "todo"
        if isinstance(result, Green):
            state = "passed"
        elif isinstance(result, Red) or place.standing is Standing.FAILING:
            state = "failed"
        names = (gate.name for gate in train_gates(self.train.settings))
        return tuple(CarGate(name, state, started) for name in names)

    def _ready(self, it: Coupled | None) -> float | None:
        """When its test will have ended, if it takes as long as usual; None where none began."""
        now = self.of.clock.now()
        if it is None:
            return None
        if it.result is not None:
            return now
        started = self.running.get(it.built.tree)
        if started is None or self.usual is None:
            return None
        return max(now, started + self.usual)
