"""Leads a fleet: plans for all its hosts, until the claim to lead is another's."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

from lockgate.adapters.engine import LocalEngine
from lockgate.adapters.engine.temporal import TemporalEngine
from lockgate.adapters.sessions.sessions import Watch
from lockgate.adapters.store.hosts import SqlHosts
from lockgate.adapters.system import wait
from lockgate.bootstrap.app import App
from lockgate.bootstrap.memory import Memory
from lockgate.bootstrap.offers import labels_of
from lockgate.bootstrap.orchestrator import crew_of, loop_of, notices_of, telling
from lockgate.bootstrap.traces import traced
from lockgate.core.jobs import LIMITS
from lockgate.ports.engine import CalledOff
from lockgate.services.orchestrator.leader import Planner
from lockgate.services.orchestrator.loop import Loop


def lead(
    mine: App,
    engine: TemporalEngine,
    memory: Memory,
    called_off: CalledOff,
    report: Callable[[str], None],
) -> None:
    """`mine` writes nothing any more once another host leads."""
    watch = Watch()
    with ThreadPoolExecutor(sum(it.all for it in LIMITS.values())) as pool:
        near = LocalEngine(pool)
        engine.keep_near(near)
        crew = crew_of(mine, engine, Event(), report, memory)
        near.begin(crew.do, watch.wake)
        loop = loop_of(mine, watch, crew, report)
        loop.attends = loop.tidies = False
        loop.turned = Planner(
            store=mine.store,
            crew=crew,
            engine=engine,
            hosts=SqlHosts(mine.store.database),
            clock=mine.witness.clock,
            can_read=lambda job: labels_of(mine, job) is not None,
        ).turned
        engine.put_all_again()
        Thread(target=_stop_when, args=(called_off, loop), daemon=True).start()
        try:
            with (
                traced(mine, memory.spans, loop, report),
                telling(loop, notices_of(mine, report)),
            ):
                loop.run()
        finally:
            loop.stop()
            near.stop()
    watch.close()


def _stop_when(called_off: CalledOff, loop: Loop) -> None:
    while not called_off() and not loop.stopping.is_set():
        wait(200)
    loop.stop()
