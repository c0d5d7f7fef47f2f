"""Puts the orchestrator together, and starts one in the background."""

import os
import platform
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event, Thread

from msgspec.structs import replace

from lockgate import __version__
from lockgate.adapters.broadcast import Broadcast
from lockgate.adapters.engine import LocalEngine
from lockgate.adapters.kept_child import KeptChild
from lockgate.adapters.notify import FileAddresses, ProcessNotifier
from lockgate.adapters.run import start_detached
from lockgate.adapters.sandbox.scratch import sweep_rooms
from lockgate.adapters.service_unit import Service, install, stopped, uninstall
from lockgate.adapters.sessions.runner.command_socket import Door, Line, Request, ask
from lockgate.adapters.sessions.sessions import Watch
from lockgate.adapters.store.checkpoints import SqlCheckpoints
from lockgate.adapters.store.fenced import FencedDatabase
from lockgate.adapters.store.hosts import SqlHosts
from lockgate.adapters.store.lanes import SqlLanes
from lockgate.adapters.store.notices import SqlNotices
from lockgate.adapters.system import (
    SystemChance,
    allow_many_files,
    holding,
    local_zone,
    pulse,
    rotated,
    sweep,
)
from lockgate.adapters.user_files import link_to
from lockgate.bootstrap.app import PATIENCE, App
from lockgate.bootstrap.assistants import installed
from lockgate.bootstrap.forge import pull_requests
from lockgate.bootstrap.memory import Memory
from lockgate.bootstrap.outside import day_of
from lockgate.bootstrap.rules import POSTGRES
from lockgate.bootstrap.traces import spans_for, traced
from lockgate.bootstrap.upkeep import cleaner_of
from lockgate.core.fleet import host_at_work
from lockgate.core.jobs import LEAD, LIMITS, Lead, lane_of
from lockgate.core.lifecycle.needs import Trouble
from lockgate.core.model.task import ProjectId, TaskId
from lockgate.core.train.model import Term
from lockgate.errors import LockgateError, Refused
from lockgate.ports import Call, GateRuns
from lockgate.ports.engine import Engine
from lockgate.ports.spans import Spans
from lockgate.services.agents.day_budget import DayBudget
from lockgate.services.agents.spawner import NO_LIMIT, Desks, Monitor, Spawner
from lockgate.services.gates.judge import Judge
from lockgate.services.gates.runner import GateRunner
from lockgate.services.orchestrator.crew import Crew
from lockgate.services.orchestrator.effects import Hands, Housekeeper, Starter
from lockgate.services.orchestrator.feed import Feed, Riding, Trains
from lockgate.services.orchestrator.loop import Loop
from lockgate.services.orchestrator.notices import Notices
from lockgate.services.orchestrator.tracing import Traces
from lockgate.services.task.projects import Branches
from lockgate.services.task.sessions import Checkpoints
from lockgate.services.train.landing import Lander
from lockgate.services.train.queue import MergeQueue, TrainTests

# Puts the merge train together.


def merge_queue(
    it: App,
    runner: GateRunner,
    held: dict[str, Trouble],
    report: Callable[[str], None] = lambda _: None,
    term: Term | None = None,
) -> MergeQueue:
    """The train for the orchestrator, which alone acts; `term` where another one leads."""
    view, clock = it.train, it.witness.clock
    term = term or Term(view.log.raise_epoch(), clock.elapsed())
    return MergeQueue(
        view=view,
        lander=Lander(view, it.coordinator, clock, term, report),
        tests=TrainTests(it.workspaces, runner),
        elapsed=clock.elapsed,
        held=held,
        began=it.began,
        standings=it.standings,
    )


LOG = "orchestrator.log"
Say = Callable[[str], None]
install_service, uninstall_service, stopped_service = install, uninstall, stopped
LEAVES = 2.0  # seconds for a message that is on its way


def _begin(it: App) -> None:
    """The home is ours; what processes that were killed have left goes: children, and rooms."""
    _claim(it)
    sweep()
    sweep_rooms(it.home / "runs")
    allow_many_files()


@contextmanager
def orchestrating(
    it: App, answer: Callable[[Call], None], report: Callable[[str], None]
) -> Generator[Loop | None]:
    """The loop with its door open; None where another orchestrator serves this home.

    A call that gets no answer is the caller's own to carry out.
    """
    with holding(it.home) as ours:
        if not ours:
            yield None
            return
        _begin(it)
        watch, places = Watch(), sum(limit.all for limit in LIMITS.values())
        with leading(it), ThreadPoolExecutor(places) as pool:
            engine = LocalEngine(pool)
            loop = _loop(it, watch, engine, report)
            loop.pulse = partial(_pulse, it)
            pulse(it.home, ["its start"])

            spans = loop.crew.judge.runner.spans
            with feeding(it, watch.wake), closing(spans), traced(it, spans, loop, report):
                door = Door(str(it.home / "door.sock"), _answering(answer, loop, it.feed))
                door.serve()
                try:
                    with telling(loop, notices_of(it, report)):
                        yield loop
                finally:
                    loop.stop()
                    engine.stop()
                    pool.shutdown()  # an agent that it still starts finds the door open
                    door.close()
        watch.close()


@contextmanager
def leading(it: App) -> Generator[None]:
    """Nothing is written from here once another leads, however late this one notices it."""
    database, lane = it.store.database, lane_of(Lead())
    lanes, clock, token = SqlLanes(database), it.witness.clock, SystemChance().token()
    claimed = None
    while claimed is None:  # another one that ends at this moment may take the row along
        lanes.ask(Lead(), LEAD, clock.now())
        claimed = lanes.claim(lane, _name(it), token, clock.now())
    it.store.use(FencedDatabase(database, lane, token))
    try:
        yield
    finally:
        it.store.use(database)
        with suppress(LockgateError):
            lanes.done(lane, token)


def _pulse(it: App, doing: list[str]) -> None:
    """After each turn of the loop."""
    pulse(it.home, doing)
    if it.feed is not None:
        it.feed.note(None)


# The feed: who follows hears of each commit of this process, and of others' when they wake us.


def feed_of(it: App, report: Callable[[str], None]) -> Feed:
    return Feed(
        store=it.store,
        tail=it.sessions.tail,
        riding=partial(_riding, it),
        needs=lambda: {need.key: need.facts() for need in it.boards.inbox().needs},
        trains=Trains(partial(_signs, it), lambda id: it.train_boards.of(id).facts()),
        clock=it.witness.clock,
        report=report,
        greeting={"pid": os.getpid(), "version": __version__},
        troubles=it.troubles,
    )


def _riding(it: App, ids: Iterable[TaskId]) -> Mapping[TaskId, Riding]:
    """What the feed tells of tasks with each of their events."""
    return {
        row.id: Riding(row.project, row.facts(), row.need.facts() if row.need else None)
        for row in it.boards.rows(ids)
    }


def _signs(it: App) -> Mapping[ProjectId, object]:
    """What changes with a train, by project: who stands where, and which tests run."""
    tests = frozenset(dict(it.began))
    return {id: (standings, tests) for id, standings in dict(it.standings).items()}


@contextmanager
def feeding(it: App, changed: Callable[[], None]) -> Generator[None]:
    """Where this process has a feed, it is told from here on."""
    if it.feed is None:
        yield
        return
    writer = Broadcast(it.feed)
    it.feed.wake, it.feed.changed = writer.wake, changed
    it.store.told = it.feed.note
    writer.start()
    try:
        yield
    finally:
        it.store.told = lambda _: None
        writer.close()


def _answering(
    answer: Callable[[Call], None], loop: Loop, feed: Feed | None
) -> Callable[[Request, Line], None]:
    """The caller has the answer before the loop looks what it was about."""
    visits = set[Line]()
    loop.visited = lambda: bool(visits) or (feed is not None and feed.followed)

    def heard(asked: Request, line: Line) -> None:
        visits.add(line)
        try:
            answer(call_of(asked, line))
        finally:
            visits.discard(line)
            loop.watch.wake()
            if feed:
                feed.note(None)

    return heard


def call_of(asked: Request, line: Line) -> Call:
    return Call(
        argv=asked.argv,
        token=asked.token,
        directory=Path(asked.cwd),
        stdin=asked.stdin,
        path=asked.path,
        lively=asked.lively,
        line=line,
        columns=asked.columns,
        uid=asked.uid,
    )


def _loop(it: App, watch: Watch, engine: LocalEngine, report: Callable[[str], None]) -> Loop:
    memory = Memory(spans_for(os.environ, report))
    crew = crew_of(it, engine, Event(), report, memory)
    engine.begin(crew.do, watch.wake)
    return loop_of(it, watch, crew, report)


def loop_of(it: App, watch: Watch, crew: Crew, report: Callable[[str], None]) -> Loop:
    clock = it.witness.clock
    return Loop(
        store=it.store,
        starter=Starter(
            store=it.store,
            coordinator=it.coordinator,
            configuration=it.configuration,
            logins=it.logins,
            clock=clock,
            budget=_day_budget(it),
        ),
        crew=crew,
        monitor=Monitor(it.store, it.attendance, it.sessions, it.harnesses, it.configuration),
        stopping=crew.stopping,
        sessions=it.sessions,
        watch=watch,
        engine=crew.engine,
        clock=clock,
        report=report,
    )


def crew_of(
    it: App,
    engine: Engine,
    stopping: Event,
    report: Say,
    memory: Memory,
    term: Term | None = None,
) -> Crew:
    traces = Traces(it.store, memory.spans)
    runner = replace(_gate_runner(it, memory.spans), words=memory.words)
    judge = Judge(
        store=it.store,
        coordinator=it.coordinator,
        workspaces=it.workspaces,
        runner=runner,
        configuration=it.configuration,
        signals=it.signals,
        killed=memory.killed,
    )
    hands = Hands(
        store=it.store,
        coordinator=it.coordinator,
        branches=Branches(it.store, it.projects.repository, it.configuration),
        workspaces=it.workspaces,
        sessions=it.sessions,
        spawner=replace(_spawner(it), trace=traces.session),
        configuration=it.configuration,
        judge=judge,
    )
    trains = _lasting(merge_queue(it, runner, it.troubles, report, term), traces, memory)
    return Crew(
        store=it.store,
        hands=hands,
        judge=judge,
        housekeeper=_housekeeper(it),
        trains=trains,
        forge=pull_requests(it.forge_parts, it.workspaces, trains, it.hints),
        engine=engine,
        stopping=stopping,
        clock=it.witness.clock,
        report=report,
        troubles=it.troubles,
    )


def _housekeeper(it: App) -> Housekeeper:
    rotate = partial(rotated, it.home / "logs" / LOG)
    pool, set_ups = _bytes_in("LOCKGATE_POOL_GB"), _bytes_in("LOCKGATE_SET_UPS_GB")
    clean, host = cleaner_of(it).step, it.witness.host
    return Housekeeper(it.store, it.workspaces, pool, set_ups, clean, rotate, host)


def _lasting(queue: MergeQueue, traces: Traces, memory: Memory) -> MergeQueue:
    tests = replace(queue.tests, trace=traces.task, killed=memory.killed_trees)
    return replace(queue, tests=tests)


def _gate_runner(it: App, spans: Spans) -> GateRunner:
    """Imported here because only an orchestrator judges."""
    from lockgate.adapters.gate_commands import CommandGates
    from lockgate.adapters.reports import read_reports
    from lockgate.bootstrap.gates import gate_runner

    gates: GateRuns = CommandGates(read_reports, it.home)
    if spans.wanted:
        from lockgate.adapters.telemetry import TracedGates

        gates = TracedGates(gates, spans)
    runner = gate_runner(it.home, it.workspaces, gates)
    return replace(runner, secrets=it.coordinator.witness.secrets, spans=spans)


def _spawner(it: App) -> Spawner:
    return Spawner(
        home=it.home,
        store=it.store,
        attendance=it.attendance,
        workspaces=it.workspaces,
        sessions=it.sessions,
        harnesses=it.harnesses,
        checkpoints=Checkpoints(SqlCheckpoints(it.store.database), it.views.files),
        desks=Desks(it.home, it.store, it.workspaces, it.views.files),
        configuration=it.configuration,
        credentials=it.credentials,
        logins=it.logins,
        secrets=it.coordinator.witness.secrets,
        clock=it.witness.clock,
        chance=SystemChance(),
        budget=_day_budget(it),
        tools=installed(),
        wall_seconds=number_said(os.environ, "LOCKGATE_WALL_SECONDS", NO_LIMIT),
    )


def _day_budget(it: App) -> DayBudget:
    return DayBudget(
        log=SqlNotices(it.store.database),
        configuration=it.configuration,
        clock=it.witness.clock,
        zone=local_zone(),
        troubles=it.troubles,
    )


def notices_of(it: App, report: Callable[[str], None]) -> Notices:
    return Notices(
        store=it.store,
        boards=it.boards,
        log=SqlNotices(it.store.database),
        addresses=FileAddresses(it.home),
        notifier=ProcessNotifier(),
        configuration=it.configuration,
        budget=_day_budget(it),
        clock=it.witness.clock,
        zone=local_zone(),
        link=partial(link_to, it.home),
        report=report,
        troubles=it.troubles,
        day=partial(day_of, it),
    )


@contextmanager
def telling(loop: Loop, notices: Notices) -> Generator[None]:
    """People are told beside the loop, which waits for none of it."""
    thread = Thread(target=notices.run, name="notices", daemon=True)
    thread.start()
    before = loop.turned

    def turned() -> None:
        before()
        notices.woken.set()

    loop.turned = turned
    try:
        yield
    finally:
        notices.stop()
        thread.join(LEAVES)  # a message that is on its way is sent again by the next one


def _claim(it: App) -> None:
    """Two orchestrators on one database would both start agents, and pay for them twice."""
    at_work = host_at_work(SqlHosts(it.store.database).all(), it.witness.clock.now())
    other = at_work or it.store.claim(_name(it))
    if other:
        raise Refused(
            "no orchestrator was started",
            why=f"another home uses the same database: {other}",
            fix="stop that one (lockgate down), or give this home its own LOCKGATE_DATABASE",
        )


def _name(it: App) -> str:
    return f"lockgate {os.getpid()}@{platform.node()} {it.home}"


def number_said(environ: Mapping[str, str], name: str, otherwise: float) -> float:
    said = environ.get(name, "")
    return float(said) if said.replace(".", "", 1).isdecimal() else otherwise


def web_child(port: int, report: Callable[[str], None], more: Sequence[str] = ()) -> KeptChild:
    """The web board, in a process of its own that ends with this one."""
    argv = (sys.executable, "-P", "-m", "lockgate", "web", "--port", str(port), "--child")
    return KeptChild((*argv, *more), lambda line: report(f"web: {line}"))


def start_orchestrator(home: Path, idle_seconds: float | None, more: Sequence[str] = ()) -> None:
    """One in the background, which ends when it has been idle for so long."""
    idle = () if idle_seconds is None else ("--idle", str(idle_seconds))
    argv = (sys.executable, "-m", "lockgate", "up", *idle, *more)
    start_detached(argv, home / "logs" / LOG)


def service_of(it: App, more: Sequence[str] = ()) -> Service:
    """With the PATH that agents' programs are found by now."""
    return Service(
        home=it.home,
        python=sys.executable,
        path=os.environ.get("PATH", os.defpath),
        more=tuple(more),
        database=os.environ.get(POSTGRES, ""),
    )


def wake_orchestrator(home: Path, idle_seconds: float) -> None:
    """Tell the one of this home that there is news; where none runs, start one."""
    news = Request(token="", cwd="/", stdin="", argv=("wake",))
    if ask(str(home / "door.sock"), news, patience=PATIENCE) is None:
        start_orchestrator(home, idle_seconds)


def _bytes_in(variable: str) -> int:
    return int(number_said(os.environ, variable, 20) * 10**9)
