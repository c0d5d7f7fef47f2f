"""The real services of one program, whose every call of the world is a point of the simulation."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from datetime import UTC
from threading import Event
from typing import Any, Protocol

from lockgate.adapters.engine import LocalEngine
from lockgate.adapters.store.checkpoints import SqlCheckpoints
from lockgate.adapters.store.hosts import SqlHosts
from lockgate.adapters.store.notices import SqlNotices
from lockgate.adapters.store.sql_store import SqlStore
from lockgate.adapters.store.train_log import SqlTrainLog
from lockgate.core.jobs import lane_of
from lockgate.core.lifecycle.needs import Trouble
from lockgate.core.train.model import Term
from lockgate.services.agents.day_budget import DayBudget
from lockgate.services.agents.spawner import Desks, Monitor, Spawner
from lockgate.services.gates.judge import Judge
from lockgate.services.gates.runner import GateRunner
from lockgate.services.orchestrator.crew import Crew
from lockgate.services.orchestrator.effects import Hands, Housekeeper, Starter
from lockgate.services.orchestrator.loop import Loop
from lockgate.services.task.coordinator import Coordinator, Effector
from lockgate.services.task.evidence import Witness
from lockgate.services.task.fleet import FilesOfHosts
from lockgate.services.task.logins import Logins
from lockgate.services.task.people import Approvals, People, TaskRunner
from lockgate.services.task.projects import Branches
from lockgate.services.task.sessions import Attendance, Checkpoints, Signals
from lockgate.services.task.tasks import Tasks
from lockgate.services.train.control import Queueing
from lockgate.services.train.landing import Lander
from lockgate.services.train.queue import MergeQueue, TrainTests
from lockgate.services.train.view import TrainView
from tests.scenarios.stage import Always, no_differential
from tests.simulation.machine import NoSecrets, Watch
from tests.simulation.scheduler import Process


class Surroundings(Protocol):
    """What a program is put into; `world.World` is it."""

    scheduler: Any
    clock: Any
    machine: Any
    works: Any
    files: Any
    gates: Any
    yard: Any
    rules: Any
    repository: Any
    harnesses: Any
    credentials: Any
    tokens: Any
    home: Any
    database: Any

    def before(self, process: Process, what: str) -> None: ...
    def after(self, process: Process, what: str) -> None: ...
    def ported(self, name: str, port: Any) -> Any: ...
    def trouble(self, why: str) -> None: ...


class Door:
    """A port: the program may be cut off before each call of it, and after."""

    def __init__(self, world: Surroundings, process: Process, name: str, port: Any) -> None:
        self._world, self._process, self._name = world, process, name
        self._port = world.ported(name, port)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not callable(found):
            return found
        what = f"{self._name}.{name}"

        def called(*args: Any, **kwargs: Any) -> Any:
            self._world.before(self._process, what)
            answer = found(*args, **kwargs)
            self._world.after(self._process, what)
            return answer

        self.__dict__[name] = called
        return called


class Fibres(Executor):
    """Each piece of work is a fibre of the program, and begins when the seed says so."""

    def __init__(self, world: Surroundings, process: Process) -> None:
        self._world, self._process = world, process

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        name = next((lane_of(it.job) for it in args if hasattr(it, "job")), "lane")
        self._world.scheduler.start(self._process, name, lambda: fn(*args, **kwargs))
        return Future()


class Office:
    """What a command of a person or of an agent uses."""

    def __init__(self, world: Surroundings, process: Process) -> None:
        self.world, self.process = world, process
        self.store: Any = self.door("store", SqlStore(world.database))
        self.log: Any = self.door("log", SqlTrainLog(world.database))
        self.sessions: Any = self.door("sessions", world.machine)
        self.workspaces: Any = self.door("workspaces", world.works)
        self.files: Any = self.door("files", world.files)
        kept: Any = self.door("checkpoints", SqlCheckpoints(world.database))
        self.checkpoints = Checkpoints(kept, self.files)
        self.gates: Any = self.door("gates", world.gates)
        self.yard: Any = self.door("yard", world.yard)
        self.rules: Any = world.rules
        self.logins = Logins(world.harnesses, world.credentials)
        self.witness = Witness(
            store=self.store,
            files=self.files,
            repository=world.repository,
            configuration=self.rules,
            harnesses=world.harnesses,
            logins=self.logins,
            clock=world.clock,
            secrets=NoSecrets(),
        )
        self.coordinator = Coordinator(self.store, self.witness, Effector(self.store, self.files))
        self.attendance = Attendance(self.coordinator)
        self.view = TrainView(self.store, self.log, self.yard, self.rules)

    def door(self, name: str, port: Any) -> Door:
        return Door(self.world, self.process, name, port)

    @property
    def signals(self) -> Signals:
        return Signals(
            store=self.store,
            coordinator=self.coordinator,
            workspaces=self.workspaces,
            files=self.files,
            checkpoints=self.checkpoints,
            clock=self.world.clock,
        )

    @property
    def tasks(self) -> Tasks:
        return Tasks(
            store=self.store,
            coordinator=self.coordinator,
            repository=self.world.repository,
            configuration=self.rules,
            harnesses=self.world.harnesses,
            clock=self.world.clock,
            chance=self.world.tokens,
        )

    @property
    def people(self) -> People:
        hosts = FilesOfHosts(SqlHosts(self.store.database), str)
        return People(self.store, self.attendance, self.workspaces, self.files, hosts)

    @property
    def approvals(self) -> Approvals:
        return Approvals(self.coordinator)

    @property
    def queue(self) -> Queueing:
        return Queueing(self.view, self.coordinator, self.world.repository)

    @property
    def runner(self) -> TaskRunner:
        return TaskRunner(self.coordinator)


class Orchestrator(Office):
    """The program that `lockgate up` starts, without its socket."""

    def __init__(self, world: Surroundings, process: Process) -> None:
        super().__init__(world, process)
        self.kernel = Watch(world.scheduler)
        self.watch: Any = world.ported("watch", self.kernel)
        world.machine.watches.append(self.kernel)
        self.turned = world.scheduler.now  # when its loop last did something
        self.loop: Loop | None = None
        self.troubles: dict[str, Trouble] = {}
        self.main: Any = None  # the fibre of its loop
        self.left = -1  # points until it dies, or freezes
        self.freezes = False

    def run(self) -> None:
        try:
            self.loop = self._loop()
            self.loop.run()
        finally:
            self.world.machine.watches.remove(self.kernel)

    def _loop(self) -> Loop:
        world, stopping = self.world, Event()
        engine = LocalEngine(Fibres(world, self.process), world.clock.elapsed)
        crew = self._crew(engine, stopping)
        engine.begin(crew.do, self.watch.wake)
        return Loop(
            store=self.store,
            starter=Starter(
                store=self.store,
                coordinator=self.coordinator,
                configuration=self.rules,
                logins=self.logins,
                clock=world.clock,
                budget=self._budget(),
            ),
            crew=crew,
            monitor=Monitor(
                self.store, self.attendance, self.sessions, world.harnesses, self.rules
            ),
            sessions=self.sessions,
            watch=self.watch,
            engine=engine,
            clock=world.clock,
            report=world.trouble,
            stopping=stopping,
        )

    def _crew(self, engine: LocalEngine, stopping: Event) -> Crew:
        runner = GateRunner(
            home=self.world.home,
            workspaces=self.workspaces,
            gates=self.gates,
            conditions=Always(),
            delay=lambda milliseconds: self.world.scheduler.sleep(milliseconds / 1000),
            differential=no_differential,
        )
        judge = Judge(
            store=self.store,
            coordinator=self.coordinator,
            workspaces=self.workspaces,
            runner=runner,
            configuration=self.rules,
            signals=self.signals,
        )
        return Crew(
            store=self.store,
            hands=self._hands(judge),
            judge=judge,
            housekeeper=Housekeeper(self.store, self.workspaces, 0, 7),
            trains=self._trains(runner),
            engine=engine,
            stopping=stopping,
            clock=self.world.clock,
            report=self.world.trouble,
            troubles=self.troubles,
        )

    def _budget(self) -> DayBudget:
        return DayBudget(
            log=SqlNotices(self.world.database),
            configuration=self.rules,
            clock=self.world.clock,
            zone=UTC,
            troubles=self.troubles,
        )

    def _hands(self, judge: Judge) -> Hands:
        world = self.world
        return Hands(
            store=self.store,
            coordinator=self.coordinator,
            branches=Branches(self.store, world.repository, self.rules),
            workspaces=self.workspaces,
            sessions=self.sessions,
            spawner=Spawner(
                home=world.home,
                store=self.store,
                attendance=self.attendance,
                workspaces=self.workspaces,
                sessions=self.sessions,
                harnesses=world.harnesses,
                checkpoints=self.checkpoints,
                desks=Desks(world.home, self.store, self.workspaces, self.files),
                configuration=self.rules,
                credentials=world.credentials,
                logins=self.logins,
                secrets=NoSecrets(),
                clock=world.clock,
                chance=world.tokens,
                budget=self._budget(),
            ),
            configuration=self.rules,
            judge=judge,
        )

    def _trains(self, runner: GateRunner) -> MergeQueue:
        clock = self.world.clock
        term = Term(self.log.raise_epoch(), clock.elapsed())
        return MergeQueue(
            view=self.view,
            lander=Lander(self.view, self.coordinator, clock, term),
            tests=TrainTests(self.workspaces, runner),
            elapsed=clock.elapsed,
            held=self.troubles,
        )
