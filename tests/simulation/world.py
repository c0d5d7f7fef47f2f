"""One simulated home from a seed: its tasks, its programs, its weather, and how it ended."""

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lockgate.adapters.task_file import TaskFiles
from lockgate.core.lifecycle.decision import Decision, DiscardTask, MirrorTask, NotifyHuman
from lockgate.core.lifecycle.needs import Need
from lockgate.core.model.agents import Ending, Exit
from lockgate.core.model.task import ProjectId, Status
from lockgate.errors import LockgateError
from lockgate.ports import Project
from lockgate.services.task.boards import Boards
from lockgate.services.task.rows import Live, Source
from tests.scenarios.stage import FakeLogins
from tests.simulation import invariants
from tests.simulation.machine import (
    Clock,
    Gates,
    Machine,
    MemoryDatabase,
    Repository,
    Rules,
    Tokens,
    Works,
    Yard,
    unavailable,
)
from tests.simulation.office import Office, Orchestrator
from tests.simulation.plants import PLANTS, WEATHER
from tests.simulation.players import Agents, Harnesses, Human
from tests.simulation.scheduler import Killed, Process, Scheduler

T = TypeVar("T")
CALM = 3600.0  # seconds without a fault in which a home comes to rest
REST = 1200.0  # and without its human
PATIENCE = 10.0  # seconds that a command waits for its answer
RECENT = 120.0  # seconds after a fault of the store in which a loop may be slow
KILLED_WITHIN = 600  # points of an orchestrator, where it is one that dies
FAILING = frozenset(
    {
        *("workspaces.prepare", "workspaces.take", "workspaces.checkout", "workspaces.publish"),
        *("workspaces.checkout_for_review", "workspaces.set_up", "workspaces.release"),
        *("sessions.note", "sessions.start", "files.write", "yard.tip", "yard.build", "yard.note"),
    }
)
WRITES = frozenset(
    {
        *("store.create", "store.commit", "store.delete", "store.effects_done", "log.intend"),
        *("log.settle", "log.add_candidate", "log.put_result", "log.raise_epoch", "yard.land"),
        *("yard.shut_out", "sessions.note", "sessions.start", "sessions.end", "yard.note"),
    }
)
CONFIG = """\
[project]
agent = "scripted"
slots = {slots}
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "true"
attempts = 1
{more}
[limits]
call_attempts = {attempts}
[merge]
mode = "{mode}"
window = 4
batch = {batch}
"""
SETTLED = (MirrorTask, DiscardTask, NotifyHuman)  # by the turn itself, or by nobody
REVIEW = '[[gates.list]]\nname = "review"\ntype = "parallel_review"\ndimensions = ["general"]\n'
HUMAN = '[[gates.list]]\nname = "approval"\ntype = "human"\nprompt = "Well?"\n'


class Violated(Exception):
    """An invariant does not hold."""


@dataclass(frozen=True)
class Outcome:
    seed: int
    points: int
    seconds: float  # of the simulation's own time
    digest: str
    statuses: Mapping[str, int]
    faults: Mapping[str, int]
    wrong: Sequence[str]
    trace: Sequence[str]


class World:
    """Implements what `office.Surroundings` asks for."""

    def __init__(self, seed: int, plant: str = "", keep: int = 400) -> None:
        self.seed, self.plant = seed, PLANTS[plant] if plant else {}
        self.scheduler = Scheduler(seed, keep)
        self.scheduler.idle = self._before_time_moves
        self.wild = True
        self.violations: list[str] = []
        self.faults: dict[str, int] = {}
        self.home = Path(tempfile.mkdtemp(prefix="lockgate-simulation-", dir=_quick_place()))
        self.project = Project(id=ProjectId("p1"), name="p", common_dir="/r/.git", root="/r")
        self._make_world()
        self.orchestrators: list[Orchestrator] = []
        self.commands = 0
        self._store_failed = -RECENT
        self._gone_until = 0.0
        self._rates: dict[str, float] = {
            "fails": self.one_of((0.0, 0.0, 0.01, 0.04)),
            "busy": self.one_of((0.0, 0.0, 0.01, 0.04)),
            "frozen": self.one_of((0.0, 0.2, 0.7)),
            "stranger": self.one_of((0.0, 0.0, 0.3, 0.6)),
            "pushes": 1.0,  # by people, now and then
            "freeze": 400.0,  # seconds, at most
            **WEATHER.get(plant, {}),
        }

    def _make_world(self) -> None:
        self.clock, self.tokens = Clock(self.scheduler), Tokens()
        self.database = MemoryDatabase()
        self.truth = invariants.Truth(self.database)
        self.truth.store.add_project(self.project)
        self.ledger = invariants.Ledger(self)
        self.yard = Yard(self.scheduler, self.seed, fenced=self.happens(0.6))
        self.yard.at_push = self._at_push
        self.repository = Repository(self.yard)
        self.gates = Gates(self.yard, self.scheduler, lambda: self.wild and self.happens(0.08))
        self.works = Works(self.home, self.yard)
        self.files = TaskFiles(self.home)
        self.agents, self.human = Agents(self), Human(self)
        self.machine = Machine(self.scheduler, self.truth.session, self.agents.plays)
        self.machine.wrong = self.wrong
        self.harnesses, self.credentials = Harnesses(), FakeLogins()
        self.rules = Rules.of(
            CONFIG.format(
                slots=self.one_of((1, 2, 4)),
                more=self.one_of(("", "", REVIEW, REVIEW, HUMAN)),
                attempts=self.one_of((1, 2)),
                mode=self.one_of(("auto", "auto", "manual")),
                batch=self.one_of((1, 1, 2)),
            )
        )

    def needs(self) -> tuple[Need, ...]:
        """What `lockgate status` lists under "needs you"."""
        troubles = {lane: it for up in self.up() for lane, it in up.troubles.items()}
        rules: Any = self.rules
        pages: Any = None  # no page of a task is asked for
        store = self.ported("board", self.truth.store)
        source = Source(store=store, configuration=rules, clock=self.clock, live=Live(troubles))
        return Boards(source, pages).inbox().needs

    # Chance.

    def draw(self, least: float, most: float) -> float:
        return self.scheduler.chance.uniform(least, most)

    def happens(self, rate: float) -> bool:
        return self.scheduler.chance.random() < rate

    def one_of(self, them: Sequence[T]) -> T:
        return them[self.scheduler.chance.randrange(len(them))]

    def pick(self, weights: Mapping[str, int]) -> str:
        return self.scheduler.chance.choices(tuple(weights), tuple(weights.values()))[0]

    # What programs meet at their doors.

    def before(self, process: Process, what: str) -> None:
        self.scheduler.point(what)
        it = self._orchestrator(process)
        if it:
            self._die_or_freeze(it)
            if self.scheduler.current is it.main:
                it.turned = self.scheduler.now
                self._must(invariants.spins(self))
        if self.wild:
            self._fail(what)

    def after(self, process: Process, what: str) -> None:
        it = self._orchestrator(process)
        if it and what == "store.commit" and self.scheduler.current is not it.main:
            asks = any(not isinstance(effect, SETTLED) for effect in self.decided.effects)
            it.kernel.news = self.scheduler.now if asks else it.kernel.news
        if what not in WRITES:
            return
        self.scheduler.point(f"{what} done")
        if it:
            self._die_or_freeze(it)
        if self.wild and what == "store.commit" and self.happens(self._rates["busy"] / 4):
            self._counted("commit whose answer was lost")
            self._store_failed = self.scheduler.now
            raise unavailable("the connection was lost")

    def ported(self, name: str, port: Any) -> Any:
        planted = self.plant[name](self, port) if name in self.plant else port
        return self.ledger.over(planted) if name == "store" else planted

    def trouble(self, why: str) -> None:
        self.scheduler.trace("report", why)

    def _die_or_freeze(self, it: Orchestrator) -> None:
        if not self.wild:
            return
        it.left -= 1
        if it.left == 0 and it.freezes:
            self._freeze(it)
            self.scheduler.point("is frozen")
        elif it.left == 0:
            self._counted("orchestrator killed")
            self.scheduler.kill(it.process)
            raise Killed

    def _fail(self, what: str) -> None:
        door = what.partition(".")[0]
        if door in {"store", "log"}:
            if self.scheduler.now < self._gone_until:
                self._store_failed = self.scheduler.now
                raise unavailable("the database is gone")
            if what in WRITES and self.happens(self._rates["busy"]):
                self._counted("database busy")
                self._store_failed = self.scheduler.now
                raise unavailable("the database is busy")
        elif what in FAILING and self.happens(self._rates["fails"]):
            self._counted(f"{door} failed")
            raise unavailable(f"{what} failed")

    # Programs.

    def command(self, name: str, work: Callable[[Office], object]) -> str:
        """As the client does it: by an orchestrator that is up, else by itself.

        "done", "no answer", or why it was refused.
        """
        self.commands += 1
        listen = self.up() if self.scheduler.favoured else self.orchestrators
        up = [it for it in listen if it.process.alive and it.loop]
        host = self.one_of(up) if up else None
        process = host.process if host else Process(f"command {self.commands}")
        office: Office = host or Office(self, process)
        answers: list[str] = []
        caller = self.scheduler.current
        assert caller is not None

        def done() -> None:
            try:
                answers.append(_carried_out(work, office))
            finally:
                if host:
                    host.watch.wake()
                self.scheduler.wake(caller)

        self.scheduler.start(process, name, done)
        self.scheduler.sleep(PATIENCE)
        told = answers[0] if answers else "no answer"
        self.scheduler.trace(name, told)
        return told

    def start_orchestrator(self) -> Orchestrator:
        process = Process(f"orchestrator {len(self.orchestrators) + 1}")
        it = Orchestrator(self, process)
        it.left = self.scheduler.chance.randrange(1, KILLED_WITHIN) if self.happens(0.6) else -1
        it.freezes = self.happens(0.3)
        self.orchestrators.append(it)
        it.main = self.scheduler.start(process, "loop", lambda: self._run(it))
        return it

    def _run(self, it: Orchestrator) -> None:
        try:
            it.run()
        except Exception as error:
            if it.loop:
                self.wrong(f"{it.process.name} ended by itself: {error!r}")
            self._counted("orchestrator that could not start")
            self.scheduler.kill(it.process)
            raise Killed from error

    def _excusable(self) -> bool:
        return self.scheduler.now - self._store_failed < RECENT

    def _orchestrator(self, process: Process) -> Orchestrator | None:
        return next((it for it in self.orchestrators if it.process is process), None)

    # Weather.

    def _supervise(self) -> None:
        """Somebody always starts another orchestrator, sooner or later."""
        while True:
            if not self.wild:
                self._down_if_overtaken()
            if not self.up():
                self.start_orchestrator()
            self.scheduler.sleep(self.draw(0.5, 20.0) if self.wild else 1.0)

    def _down_if_overtaken(self) -> None:
        """What its trouble asks for: `lockgate down`, for a newer one was there and is gone."""
        for it in self.up():
            if it.loop and any("newer orchestrator" in t.why for t in it.troubles.values()):
                self.scheduler.kill(it.process)

    def _weather(self) -> None:
        acts: dict[str, Callable[[], None]] = {
            "kill": self._kill_one,
            "freeze": lambda: self._freeze(self._one_up()),
            "second": self._second,
            "jump": self._jump,
            "gone": self._database_gone,
            "push": self._someone_pushes,
            "lose": self._lose_an_agent,
            "power": self._power_cut,
        }
        chosen = [it for it in acts if self.happens(0.6)] or ["kill"]
        while self.wild:
            self.scheduler.sleep(self.scheduler.chance.expovariate(1 / 60))
            if self.wild:
                name = self.one_of(chosen)
                self._counted(name)
                acts[name]()

    def up(self) -> list[Orchestrator]:
        return [it for it in self.orchestrators if it.process.alive and not it.process.frozen]

    def _one_up(self) -> Orchestrator | None:
        up = self.up()
        return self.one_of(up) if up else None

    def _kill_one(self) -> None:
        it = self._one_up()
        if it:
            self.scheduler.kill(it.process)

    def _freeze(self, it: Orchestrator | None) -> None:
        """And another one takes over, for whoever supervises takes it for dead."""
        if it is None:
            return
        self._counted("orchestrator frozen")
        self.scheduler.freeze(it.process)
        seconds = self.draw(5.0, self._rates["freeze"])

        def thaw() -> None:
            self.scheduler.sleep(seconds)
            self.scheduler.thaw(it.process)

        self.scheduler.start(Process(f"thaw {it.process.name}"), "timer", thaw)

    def _at_push(self) -> None:
        """Between the last look and the push itself is where it hurts most."""
        fibre = self.scheduler.current
        it = self._orchestrator(fibre.process) if fibre else None
        if not (it and self.wild):
            return
        if self.happens(self._rates["stranger"]):
            self._stranger_pushes()
        if self.happens(self._rates["frozen"]):
            self._freeze(it)
            for task in self.truth.tasks():
                if task.landed and task.status is Status.REVIEWING:
                    people = Process(f"impatient {task.id}")
                    self.scheduler.start(people, "human", partial(self.human.regrets, task.id))

    def _someone_pushes(self) -> None:
        if self.happens(self._rates["pushes"]):
            self._stranger_pushes()

    def _stranger_pushes(self) -> None:
        self.yard.stranger_pushes(f"stranger{len(self.yard.history)}")

    def _second(self) -> None:
        if sum(it.process.alive for it in self.orchestrators) < 3:
            self.start_orchestrator()

    def _jump(self) -> None:
        by = self.one_of((-86400.0, -3600.0, -30.0, 45.0, 3600.0, 86400.0))
        self.clock.offset += by
        self.scheduler.trace("clock", f"jumps by {by:.0f} s")

    def _database_gone(self) -> None:
        self._gone_until = self.scheduler.now + self.draw(0.5, 40.0)
        self.scheduler.trace("database", f"is gone until {self._gone_until:.3f}")

    def _lose_an_agent(self) -> None:
        runs = self.machine.alive()
        if runs:
            ending = self.one_of((Ending.LOST, Ending.EXITED, Ending.SILENT))
            self.machine.exits_as(self.one_of(runs), Exit(ending=ending, code=1))

    def _power_cut(self) -> None:
        for it in self.orchestrators:
            self.scheduler.kill(it.process)
        for run in self.machine.alive():
            self.machine.exits_as(run, Exit(ending=Ending.INTERRUPTED))

    # The course of it, and what is found.

    def live(self) -> Outcome:
        try:
            self._live()
        except Violated:
            pass
        finally:
            self.scheduler.close()
        statuses: dict[str, int] = {}
        for task in self.truth.tasks():
            statuses[task.status] = statuses.get(task.status, 0) + 1
        outcome = Outcome(
            self.seed,
            self.scheduler.points,
            self.scheduler.now,
            self.scheduler.digest,
            dict(sorted(statuses.items())),
            dict(sorted(self.faults.items())),
            tuple(self.violations),
            tuple(self.scheduler.lines),
        )
        self.database.close()
        shutil.rmtree(self.home, ignore_errors=True)
        return outcome

    def _live(self) -> None:
        scheduler = self.scheduler
        people = Process("people")
        scheduler.start(Process("init"), "supervisor", self._supervise)
        scheduler.start(Process("sky"), "weather", self._weather)
        scheduler.start(people, "creates", self._create_all)
        scheduler.start(people, "answers", self.human.lives)
        scheduler.run_until(self.draw(200.0, 1500.0))
        self.wild = False
        self.clock.put_right()
        scheduler.trace("sky", "CALM")
        self._until(scheduler.now + CALM)
        self.human.away = True
        scheduler.run_until(scheduler.now + REST)
        for check in (
            invariants.nothing_lost,
            invariants.replays,
            invariants.landed_once,
            invariants.nobody_is_forgotten,
        ):
            self.violations += check(self)

    def _until(self, end: float) -> None:
        """Until all have ended, or the time is over."""
        while self.scheduler.now < end:
            self.scheduler.run_until(self.scheduler.now + 60.0)
            tasks = self.truth.tasks()
            if tasks and all(it.status in invariants.ENDED for it in tasks):
                return

    def _create_all(self) -> None:
        for number in range(1, self.scheduler.chance.randrange(3, 7)):
            self.human.creates(number)
            self.scheduler.sleep(self.draw(0.0, 60.0))

    def wrong(self, why: str) -> None:
        self.scheduler.trace("INVARIANT", why)
        self.violations.append(why)
        self.scheduler.failure = self.scheduler.failure or Violated(why)

    def seen_arriving(self, decision: Decision) -> None:
        self.decided = decision
        if decision.task.status is Status.REVIEWING and decision.task.since == decision.task.rev:
            self._must(invariants.was_judged(self, decision.task))
        self._must(invariants.has_a_slot(self, decision))

    def _before_time_moves(self, _until: float) -> None:
        if not self._excusable():
            self._must(invariants.asleep(self))

    def _must(self, why: str) -> None:
        if why:
            self.wrong(why)

    def _counted(self, fault: str) -> None:
        self.faults[fault] = self.faults.get(fault, 0) + 1


def _carried_out(work: Callable[[Office], object], office: Office) -> str:
    try:
        work(office)
    except LockgateError as error:
        return f"refused: {error}"
    return "done"


def _quick_place() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - nothing is to last


def simulate(seed: int, plant: str = "", keep: int = 400) -> Outcome:
    return World(seed, plant, keep).live()
