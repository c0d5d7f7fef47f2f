"""Puts a host of a fleet together: it does the jobs that Temporal brings, and may lead."""

import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from threading import Event, Thread

from msgspec.structs import replace

from lockgate.adapters.engine.connection import Connection
from lockgate.adapters.engine.host import Answer, Duties, TemporalHost
from lockgate.adapters.engine.temporal import TemporalEngine
from lockgate.adapters.hub import GitExchange
from lockgate.adapters.hub.trial import GitTrial
from lockgate.adapters.sandbox.scratch import sweep_rooms
from lockgate.adapters.sessions.runner.command_socket import Door, Line, Request
from lockgate.adapters.store.fenced import FencedDatabase
from lockgate.adapters.store.hosts import SqlHosts
from lockgate.adapters.store.lanes import SqlLanes
from lockgate.adapters.store.sql_store import SqlStore
from lockgate.adapters.system import (
    SystemChance,
    allow_many_files,
    free_space,
    holding,
    sweep,
    wait,
)
from lockgate.bootstrap.app import App
from lockgate.bootstrap.leading import lead
from lockgate.bootstrap.memory import Memory
from lockgate.bootstrap.offers import agents_of, host_of, labels_of, lacking_for
from lockgate.bootstrap.orchestrator import (
    call_of,
    crew_of,
    feeding,
)
from lockgate.bootstrap.traces import spans_for
from lockgate.bootstrap.upkeep import cleaner_of
from lockgate.core.fleet import (
    FleetSettings,
    HostRole,
    LaneRow,
    Pool,
    is_able,
    needs_of,
    queues_of,
)
from lockgate.core.hosts import (
    Disk,
    HostState,
    another_may_lead,
    clock_trouble,
    host_in,
    looked_at,
    name_lost,
    name_taken,
    next_look_at_hubs,
    shared_look,
    state_at_start,
    was_full,
    why_drained,
)
from lockgate.core.jobs import (
    LEAD,
    Attend,
    CarryOut,
    HostLost,
    Job,
    Lead,
    Tidy,
    project_of,
    session_of,
    task_of,
)
from lockgate.core.model.task import SessionId
from lockgate.core.train.model import Term
from lockgate.errors import Fenced, LockgateError, Refused
from lockgate.ports import Call
from lockgate.ports.engine import CalledOff
from lockgate.services.agents.spawner import Monitor
from lockgate.services.orchestrator.crew import Crew
from lockgate.services.orchestrator.hosts import HostWork, Placing
from lockgate.services.orchestrator.loop import TIDY_EVERY
from lockgate.services.setup.hubs import Hubs

ENDS = 30.0  # seconds between two looks for agents whose sessions are over
RENAME = "give this one another name: lockgate worker --name NAME, or wait for 15 seconds"
LEAVES = 60.0  # seconds, at most, that a forgotten host waits until its loss is recorded
TICK = 1.0  # seconds between two looks at the rows
EQUIPS = 30.0  # seconds between two looks which agents are here
SAYS = 5.0  # seconds between two signs of life for people
SEES = 3.0  # seconds between two looks whether somebody leads
AT_ONCE = 0.001
THREADS = 256
GRACE = 30.0


def fenced(it: App, row: LaneRow) -> App:
    """The same services, which write nothing any more once the claim of this lane is another's."""
    store = SqlStore(FencedDatabase(it.store.database, row.lane, row.token))
    store.told, store.placed = it.store.told, it.store.placed
    witness = replace(it.witness, store=store)
    return replace(
        it,
        store=store,
        witness=witness,
        projects=replace(it.projects, store=store),
        views=replace(it.views, store=store, witness=witness),
    )


class Worker:
    """One host, until it is stopped."""

    def __init__(self, it: App, settings: FleetSettings, report: Callable[[str], None]) -> None:
        self.me = host_of(it, settings)
        it = _as_host(it, self.me.name, settings)
        self._app, self._settings, self._report = it, settings, report
        self._hosts, self._lanes = SqlHosts(it.store.database), SqlLanes(it.store.database)
        self._stopping, self._said, self._saw, self._equipped = Event(), 0.0, 0.0, 0.0
        self._placing = Placing(hosts=self._hosts, clock=it.witness.clock)
        self._memory = Memory(spans_for(os.environ, report))
        self._state, self._trouble, self._ended = HostState.GONE, "", 0.0
        self._disk, self._full = Disk(), False
        self._nameless = ""  # why it must stop at once
        self._leaves = 0.0  # when it ends at the latest: it was forgotten
        self._gives_up = False  # to lead: its disk is full, and another host may
        self._clock_differs = False  # as told
        self._refused = 0  # late answers, as far as they were told
        self._astray: Mapping[str, str] = {}  # projects whose hubs do not answer
        self._followed, self._of_hosts = 0.0, 1
        self._queues = queues_of(self.me, ())
        self._following = Future[None]()
        self._following.set_result(None)
        self._leading: App | None = None  # its services under the claim to lead, while it leads
        self._cleaning, self._cleans = Thread(), 0.0  # the last time, and when next
        self._connection = Connection(settings.temporal, self.me.name)
        self._pool = ThreadPoolExecutor(THREADS, "job")
        self._host = TemporalHost(
            self._connection,
            self._lanes,
            self.me.name,
            self._duties(),
            self._pool,
            settings.fleet,
        )
        self._engine = self._engine_on(it)

    def run(self) -> None:
        """What the store or Temporal does not answer is told once, and asked again."""
        self._enter()
        self._report(f"host {self.me.name} is up: {', '.join(self.me.roles)}")
        while not self._stopping.is_set():
            try:
                self._turn()
                if self._app.feed:
                    self._app.feed.note(None)  # others commit too
                if self._trouble or time.monotonic() - self._ended >= ENDS:
                    self._end_what_is_over()
                if self._leaves:
                    self._leave()
                self._trouble = ""
            except LockgateError as error:
                if not self._trouble:
                    self._report(f"the host waits, and tries again: {error} ({error.fix})")
                self._trouble = str(error)
            self._stopping.wait(TICK)
        if self._nameless:
            raise Refused("the host stops", why=self._nameless, fix=RENAME)

    def stop(self) -> None:
        self._stopping.set()

    def close(self) -> None:
        """Runners live on; what was not done here is done elsewhere."""
        with suppress(LockgateError):
            self._host.stop()
        self._connection.close()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._memory.spans.close()
        with suppress(LockgateError):
            if self._state is HostState.UP:
                self._hosts.mark(self.me.name, HostState.GONE)

    def _enter(self) -> None:
        self._end_what_is_over()
        while not self._take_name():  # another machine was faster, or a person has drained it
            pass
        self._work(self._app).adopt(self._sessions_here())

    def _take_name(self) -> bool:
        now = self._app.witness.clock.now()
        known = self._hosts.find(self.me.name)
        why = name_taken(known, self.me.boot, now)
        if why:
            raise Refused("the host was not started", why=why, fix=RENAME)
        state = state_at_start(known)
        me = replace(self.me, seen=now, ahead=self._ahead(now), state=state)
        if not self._hosts.put(me, known):
            return False
        self._state, self._full = state, bool(known and known.why)
        return True

    def _end_what_is_over(self) -> bool:
        """Whether no agent here works on."""
        self._ended = time.monotonic()
        return not self._work(self._app).end_what_is_over(self._sessions_here())

    def _sessions_here(self) -> Iterator[SessionId]:
        runs = (self._app.home / "sessions").glob("*/run.json")
        return (SessionId(it.parent.name) for it in runs)

    def _leave(self) -> None:
        """Stop once the loss of its tasks is recorded: what is left is ended at the next start."""
        idle = self._end_what_is_over() and not self._hosts.tasks_at(self.me.name)
        if idle or time.monotonic() > self._leaves:
            self.stop()

    def _turn(self) -> None:
        self._look_at_disk(free_space(self._app.home))
        now = time.monotonic()
        self._placing.look(self.me)
        self._host.serve(self._queues)
        self._clean_when_due(now)
        if now - self._said >= SAYS or self._host.refused > self._refused:
            self._said = now
            self._say_so()
            self._queues = queues_of(self.me, self._lanes.classes())
        if self._following.done():
            every = next_look_at_hubs(self._of_hosts, leads=self._leading is not None)
            if now - self._equipped >= EQUIPS:
                self._equipped, self._following = now, self._pool.submit(self._equip)
            elif now - self._followed >= every:
                self._followed, self._following = now, self._pool.submit(self._follow)
        if now - self._saw >= shared_look(SEES, self._of_hosts):
            self._saw = now
            self._see_to_the_lead()

    def _see_to_the_lead(self) -> None:
        """Somebody must be asked to lead, also where Temporal has forgotten that."""
        if HostRole.LEAD in self.me.roles and not self._gives_up and not self._engine.put(Lead()):
            row = self._lanes.find(LEAD)
            self._engine.put_again([row] if row else [])

    def _clean_when_due(self, now: float) -> None:
        """In a thread that no stop waits for: what it has not removed goes the next time."""
        if now >= self._cleans and not self._cleaning.is_alive():
            self._cleans = now + TIDY_EVERY
            self._cleaning = Thread(target=self._clean, name="cleaning", daemon=True)
            self._cleaning.start()

    def _clean(self) -> None:
        """This host's own home; what all hosts share too while it leads, under that claim."""
        leading = self._leading
        it = leading or self._app
        crew = self._crew(it)
        clean = cleaner_of(it, leads=leading is not None).step
        crew.housekeeper = replace(crew.housekeeper, clean=clean)
        again = crew.do(Tidy(), self._stopping.is_set)
        if again:
            self._cleans = time.monotonic() + again

    def _look_at_disk(self, free: int) -> None:
        """While it is full nothing new comes here, and another leads; in the end it drains."""
        now = self._app.witness.clock.now()
        if self._state is HostState.UP:
            before, self._disk = self._disk, looked_at(self._disk, free, now)
            self._full = now < self._disk.until
            if self._disk is not before:
                self._report(f"the disk of {self._app.home} is full: this host gets nothing new")
            if self._disk.drains:
                self._hosts.mark(self.me.name, HostState.DRAINING, why_drained(self._disk))
                self._state, self._disk = HostState.DRAINING, Disk()
        self._gives_up = self._full and another_may_lead(self.me.name, self._hosts.all(), now)

    @property
    def _takes(self) -> bool:
        return self._state is HostState.UP and not self._full

    def _follow(self) -> None:
        """What starts next starts from where the hubs are now."""
        trouble = Hubs(self._app.store, GitExchange(self._app.home), GitTrial()).follow()
        for name in trouble.keys() - self._astray.keys():
            self._report(f"{name}: {trouble[name]}")
        self._astray, self._of_hosts = trouble, len(self._hosts.all())

    def _equip(self) -> None:
        """Which agents are here: somebody may have installed one, or given it a login."""
        agents = agents_of(self._app)
        if agents != self.me.agents:
            self.me = replace(self.me, agents=agents)
            self._hosts.equip(self.me.name, agents)
            self._report(f"host {self.me.name} has these agents now: {', '.join(agents) or 'none'}")

    def _say_so(self) -> None:
        more, now = self._host.refused - self._refused, self._app.witness.clock.now()
        state = self._hosts.seen(self.me, now, more, self._ahead(now))
        self._refused += more
        if state is None:
            self._end_soon()
        elif state is HostState.GONE:
            self._hosts.mark(self.me.name, HostState.UP)
        self._state = state or HostState.GONE

    def _end_soon(self) -> None:
        self._nameless = name_lost(self._hosts.find(self.me.name), self.me.boot)
        if self._nameless:
            self.stop()
        elif not self._leaves:
            self._report("this host was forgotten by a person: it ends its agents, then it stops")
            self._leaves = time.monotonic() + LEAVES

    def _ahead(self, now: float) -> float:
        """By how much this machine's clock differs; told once, and again after it was right."""
        ahead = time.time() - now
        why = clock_trouble(self.me.name, ahead)
        if bool(why) != self._clock_differs:
            self._report(why or f"the clock of {self.me.name} is right again")
        self._clock_differs = bool(why)
        return ahead

    def _duties(self) -> Duties:
        return Duties(
            do=self._do,
            lost=self._lost,
            token=SystemChance().token,
            report=self._report,
            now=self._app.witness.clock.now,
            grace=GRACE,
            own={Pool.GATES: max(1, self.me.judges)},
            places={
                Pool.HANDS: lambda: self._placing.places if self._takes else 0,
                Pool.GATES: lambda: self.me.judges if self._takes else 0,
                Pool.LEAD: lambda: 0 if self._gives_up else THREADS,
            },
        )

    def _do(self, row: LaneRow, called_off: CalledOff) -> Answer:
        mine = fenced(self._app, row)
        if isinstance(row.job, Lead):
            self._lead(mine, lambda: called_off() or self._gives_up)
            return Answer(AT_ONCE if self._gives_up else 0.0)
        if isinstance(row.job, HostLost) and row.job.moves and row.job.host == self.me.name:
            self._state = HostState.DRAINING  # it may not have heard of that yet
        if not isinstance(row.job, CarryOut):
            return self._done(mine, row, called_off)
        work, lacking = self._work(mine), lacking_for(mine, row)
        if not work.may_take_on(row.job.task):
            return Answer(AT_ONCE)  # it is put again, for the host that has the task
        with self._placing.place(row.job.task, self.me, work, lacking) as why:
            if not why:
                return self._done(mine, row, called_off)
        if lacking:
            self._equip()
        return Answer(SAYS if lacking or host_in(row.needs) else AT_ONCE, why)

    def _lead(self, mine: App, called_off: CalledOff) -> None:
        self._report(f"host {self.me.name} leads")
        self._leading, self._followed = mine, 0.0
        try:
            lead(mine, self._engine_on(mine), self._memory, called_off, self._report)
        finally:
            self._leading = None
        self._report(f"host {self.me.name} leads no more")

    def _done(self, mine: App, row: LaneRow, called_off: CalledOff) -> Answer:
        crew = self._crew(mine)
        again = crew.do(row.job, called_off)
        if crew.overtaken:
            raise Fenced(row.lane)
        trouble = mine.troubles.get(crew.title(row.job))
        if again and trouble and was_full(trouble.why):
            self._look_at_disk(0)
            return self._elsewhere(mine, row, Answer(again, trouble.why))
        return Answer(again, trouble.why if trouble and again else "")

    def _elsewhere(self, mine: App, row: LaneRow, answer: Answer) -> Answer:
        """What another host can do goes on there: this one gets nothing new for a while."""
        if host_in(row.needs):
            return answer
        if isinstance(row.job, CarryOut):  # it has just come here, and has no clone yet
            self._work(mine).place(row.job.task, "")
        mine.troubles.pop(self._crew(mine).title(row.job), None)
        return Answer(AT_ONCE, answer.why)

    def _lost(self, row: LaneRow, host: str) -> Answer:
        """The lane itself is put again, where its job can be done elsewhere."""
        mine, task = fenced(self._app, row), task_of(row.job)
        if task is not None and mine.store.find(task) is not None:
            self._report(f"host {host} is lost: task {task} goes on elsewhere")
            self._work(mine).host_lost(HostLost(task, project_of(row.job), host))
        return Answer(0.0 if isinstance(row.job, Attend | HostLost) else AT_ONCE)

    def _crew(self, mine: App) -> Crew:
        """`Term()`: trains are another's to turn."""
        crew = crew_of(
            mine, self._engine_on(mine), self._host.stopping, self._report, self._memory, Term()
        )
        crew.fleet = self._work(mine)
        return crew

    def _work(self, mine: App) -> HostWork:
        return HostWork(
            store=mine.store,
            attendance=mine.attendance,
            monitor=Monitor(
                mine.store, mine.attendance, mine.sessions, mine.harnesses, mine.configuration
            ),
            sessions=mine.sessions,
            workspaces=mine.workspaces,
            clock=mine.witness.clock,
            wait=wait,
            snapshot_every=self._settings.fleet.snapshot_every,
            name=self.me.name,
            lacks=lambda job: not is_able(self.me, labels_of(mine, job) or ()),
        )

    def _engine_on(self, mine: App) -> TemporalEngine:
        return TemporalEngine(
            self._connection,
            SqlLanes(mine.store.database),
            partial(self._needs, mine),
            times=self._settings.fleet,
            report=self._report,
            now=mine.witness.clock.now,
        )

    def _needs(self, mine: App, job: Job) -> str | None:
        task, project, session = task_of(job), project_of(job), session_of(job)
        return needs_of(
            job,
            mine.store.find(task) if task else None,
            labels_of(mine, job) or (),
            hub=bool(project and mine.store.project(project).url),
            leader=self.me,
            session=mine.store.session(session) if session else None,
        )


def _as_host(it: App, name: str, settings: FleetSettings) -> App:
    witness = replace(it.witness, host=name)
    views = replace(it.views, witness=witness)
    return replace(it, hub_fence=settings.fleet.fence, witness=witness, views=views)


@contextmanager
def working(
    it: App,
    settings: FleetSettings,
    answer: Callable[[Call], None],
    report: Callable[[str], None],
) -> Generator[Worker | None]:
    """A host with its door open; None where another process serves this home."""
    with holding(it.home) as ours:
        if not ours:
            yield None
            return
        sweep()
        sweep_rooms(it.home / "runs")
        allow_many_files()
        worker = Worker(it, settings, report)
        door = Door(str(it.home / "door.sock"), partial(_heard, answer))
        with feeding(it, lambda: None):
            door.serve()
            try:
                yield worker
            finally:
                worker.close()
                door.close()


def _heard(answer: Callable[[Call], None], asked: Request, line: Line) -> None:
    answer(call_of(asked, line))
