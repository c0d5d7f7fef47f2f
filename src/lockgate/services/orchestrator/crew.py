"""Does the loop's jobs, and says of each when to look again; failures are counted and told."""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import Event
from typing import Protocol

from msgspec import Struct, field

from lockgate.core.jobs import (
    Attend,
    CarryOut,
    Evaluate,
    FleetJob,
    HostLost,
    Job,
    Lead,
    SyncForge,
    TestTree,
    Tidy,
    TurnTrain,
    lane_of,
    task_of,
)
from lockgate.core.lifecycle import needs, records
from lockgate.core.lifecycle.decision import Decision, EvaluateGates, Evidence, overtaken
from lockgate.core.lifecycle.needs import Trouble
from lockgate.core.model.task import Task, TaskId
from lockgate.errors import Fenced, LockgateError, TurnDeclined, Unavailable
from lockgate.ports import Clock, Project, Store
from lockgate.ports.engine import CalledOff, Engine
from lockgate.services.gates.judge import Judge
from lockgate.services.orchestrator.effects import Hands, Housekeeper
from lockgate.services.train.queue import MergeQueue


class ForgeLane(Protocol):
    """What the loop asks of the service of pull requests."""

    def due(self) -> tuple[Project, ...]: ...
    def sync(self, project: Project, engine: Engine) -> float: ...


class NoForge(Struct, frozen=True):
    """Where no project can have pull requests."""

    def due(self) -> tuple[Project, ...]:
        return ()

    def sync(self, project: Project, engine: Engine) -> float:  # noqa: ARG002 - the port's
        return 0.0


class FleetLane(Protocol):
    """What a host of several does besides; each answers as `Crew.do` does."""

    def attend(self, job: Attend, called_off: CalledOff) -> float: ...
    def host_lost(self, job: HostLost) -> float: ...
    def lead(self, called_off: CalledOff) -> float: ...
    def only_takes(self, job: Evaluate | TestTree) -> bool:
        """Whether the gates run on another host, and here the change is taken at most."""
        ...


class NoFleet(Struct, frozen=True):
    """Where there is one host alone: its loop attends to sessions and leads."""

    def attend(self, job: Attend, called_off: CalledOff) -> float:  # noqa: ARG002 - the port's
        return 0.0

    def host_lost(self, job: HostLost) -> float:  # noqa: ARG002 - the port's
        return 0.0

    def lead(self, called_off: CalledOff) -> float:  # noqa: ARG002 - the port's
        return 0.0

    def only_takes(self, job: Evaluate | TestTree) -> bool:  # noqa: ARG002 - the port's
        return False


class Crew(Struct, kw_only=True):
    store: Store
    hands: Hands
    judge: Judge
    housekeeper: Housekeeper
    trains: MergeQueue
    engine: Engine
    stopping: Event
    clock: Clock
    report: Callable[[str], None]
    troubles: dict[str, Trouble] = field(default_factory=dict[str, Trouble])  # by lane
    changed: deque[TaskId] = field(default_factory=deque[TaskId])  # whose sessions may be new
    forge: ForgeLane = field(default_factory=NoForge)
    fleet: FleetLane = field(default_factory=NoFleet)
    overtaken: bool = False  # something was not written: another has the claim, and does it

    def do(self, job: Job, called_off: CalledOff) -> float:
        """In how many seconds to look at it again; 0 where it is done."""
        return self.attempt(self.title(job), lambda: self._do(job, called_off), task_of(job))

    def title(self, job: Job) -> str:
        """The lane's name for people."""
        if isinstance(job, TurnTrain | SyncForge):
            what = "train" if isinstance(job, TurnTrain) else "forge"
            with suppress(LockgateError):
                return f"{what} of {self.store.project(job.project).name}"
        return lane_of(job)

    def attempt(self, lane: str, work: Callable[[], float], task: TaskId | None = None) -> float:
        """Do the work; where it fails, note that and answer when to try it again."""
        try:
            again = work()
            self.troubles.pop(lane, None)
            self._recovered(task)
        except Fenced:
            self.overtaken = True
            return 0.0
        except LockgateError as error:
            return self.trouble(lane, _told(error), task)
        except Exception as error:  # noqa: BLE001 - our bug must not end the other lanes
            return self.trouble(lane, f"a bug in Lockgate: {error!r}", task)
        return again

    def trouble(self, lane: str, why: str, task: TaskId | None = None) -> float:
        """Reported once; what fails again and again in the same way needs a human."""
        before = self.troubles.get(lane)
        self.troubles[lane] = now = needs.failed(before, why, task, self.clock.now())
        if before is None or before.why != why:
            self.report(f"{lane}: {why}")
        self._record(
            task,
            lambda it: needs.is_news(it, now),
            lambda seen: records.troubled(seen.task, why, seen.now),
        )
        return now.again_after

    def _do(self, job: Job, called_off: CalledOff) -> float:
        match job:
            case CarryOut(task):
                return self._carry_out(task)
            case Evaluate():
                return self._evaluate(job, called_off)
            case TurnTrain(project):
                return self.trains.turn(self.store.project(project), self.engine)
            case TestTree():
                return self._test(job, called_off)
            case SyncForge(project):
                return self.forge.sync(self.store.project(project), self.engine)
            case Tidy():
                return self._tidy()
            case Attend() | HostLost() | Lead():
                return self._of_fleet(job, called_off)

    def _of_fleet(self, job: FleetJob, called_off: CalledOff) -> float:
        match job:
            case Attend():
                return self.fleet.attend(job, called_off)
            case HostLost():
                return self.fleet.host_lost(job)
            case Lead():
                return self.fleet.lead(called_off)

    def _carry_out(self, id: TaskId) -> float:
        try:
            return self.hands.carry_out(id)
        finally:
            self.changed.append(id)

    def _evaluate(self, job: Evaluate, called_off: CalledOff) -> float:
        effects = self.store.pending_effects(job.task, EFFECTS)
        effect = next((it.effect for it in effects if it.key == job.key), None)
        if not isinstance(effect, EvaluateGates):
            return 0.0  # it was done before

        def interrupted() -> bool:
            return called_off() or self.stopping.is_set()

        def cancelled() -> bool:
            if interrupted():
                return True
            task = self.store.find(job.task)
            return task is None or overtaken(effect, task)

        with suppress(TurnDeclined):  # somebody else ended the evaluation meanwhile
            if not cancelled():
                if self._was_taken(job):
                    return AT_ONCE
                self.judge.evaluate(job.task, cancelled)
        if not interrupted():  # else it is still to be done
            self.store.effects_done([job.key])
        return 0.0

    def _was_taken(self, job: Evaluate) -> bool:
        """For another host, which has what the gates need: there is a commit that it can fetch."""
        if not self.fleet.only_takes(job):
            return False
        task = self.judge.with_change(self.store.load(job.task))
        return task is None or bool(task.candidate)

    def _test(self, job: TestTree, called_off: CalledOff) -> float:
        """A tree that keeps failing to be tested for its surroundings is shown to a human."""
        if self.fleet.only_takes(job):
            return NEXT_STEP  # it is put again, for a host that has what its gates need
        try:
            self.trains.test(job, lambda: called_off() or self.stopping.is_set())
        except Unavailable as error:
            before = self.troubles.get(self.title(job))
            if not needs.failed(before, _told(error)).needs_human:
                raise
            self.trains.could_not_test(job, str(error))
        return 0.0

    def _tidy(self) -> float:
        for id in self.housekeeper.tidy():
            self.report(f"task {id}: its workspace was released to save space; its work is kept")
        gone, size = self.housekeeper.clean()
        if not gone:
            return 0.0
        self.report(f"housekeeping: {gone} things were too old, {size / 1e6:.1f} MB")
        return NEXT_STEP

    def _recovered(self, task: TaskId | None) -> None:
        """The task needs no human any more, unless another of its lanes still fails."""
        self._record(
            task,
            lambda it: (
                bool(it.troubled)
                and all(known.task != it.id for known in list(self.troubles.values()))
            ),
            lambda seen: records.recovered(seen.task, seen.now),
        )

    def _record(
        self,
        id: TaskId | None,
        due: Callable[[Task], bool],
        decide: Callable[[Evidence], Decision],
    ) -> None:
        with suppress(LockgateError):  # what fails may be the store; `status` shows it all the same
            task = self.store.find(id) if id else None
            if task and due(task):
                self.hands.coordinator.turn(task.id, decide)


def _told(error: LockgateError) -> str:
    return f"{error} ({error.fix})"


AT_ONCE = 0.001
NEXT_STEP = 5.0  # seconds until more is cleaned, or a test is put elsewhere
EFFECTS = 100  # of one task, at most, that are still to do
