"""Programs that take turns on one thread, in an order that a seed decides, on a clock of their own.

A program is a process of the simulated machine: it can be killed and frozen at every point where it
touches the world. The same seed gives the same order, the same faults and the same trace.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count
from random import Random
from typing import Any

from greenlet import greenlet  # type: ignore[import-untyped]  # it brings no stubs

STAYS = 0.7  # how often a fibre goes on at a point, though others are ready
TICK = 0.002  # seconds that a point takes
TRACED = 400  # of the newest lines, the rest is only in the digest


class Killed(BaseException):
    """Its process is dead: nothing more is done for it."""


@dataclass(eq=False)
class Process:
    name: str
    alive: bool = True
    frozen: bool = False
    fibres: "list[Fibre]" = field(default_factory=list)


@dataclass(eq=False)
class Fibre:
    """One thread of a process."""

    process: Process
    name: str
    run: greenlet
    number: int
    ready: bool = True
    sleeps: int = 0  # which sleep it is in; a timer of an earlier one wakes nobody


class Scheduler:
    def __init__(self, seed: int, keep: int = TRACED) -> None:
        self.chance = Random(seed)  # noqa: S311 - a seed is to be repeated
        self.now = 0.0
        self.points = 0
        self.fibres: list[Fibre] = []
        self.current: Fibre | None = None
        self.lines: list[str] = []
        self.idle: Callable[[float], None] = lambda _until: None  # asked before time moves on
        self.failure: BaseException | None = None
        self.favoured = ""  # fibres with this in their name come first: the worst moment
        self._keep = keep
        self._digest = sha256()
        self._timers: list[tuple[float, int, Fibre, int]] = []
        self._numbers = count(1)
        self._hub = greenlet.getcurrent()

    # What fibres call.

    def point(self, what: str) -> None:
        """Here the current fibre may lose its turn, and its process its life."""
        fibre = self.current
        if fibre is None:
            return
        self._must_live(fibre)
        self.points += 1
        self.now += TICK
        self.trace(fibre.name, what)
        if len(self.fibres) > 1 and self.chance.random() >= STAYS:
            self._hub.switch()
        if fibre.process.frozen:
            self._hub.switch()
        self._must_live(fibre)

    def sleep(self, seconds: float) -> None:
        fibre = self.current
        if fibre is None:
            return
        self._must_live(fibre)
        fibre.ready = False
        fibre.sleeps += 1
        timer = (self.now + max(0.0, seconds), next(self._numbers), fibre, fibre.sleeps)
        heapq.heappush(self._timers, timer)
        self._hub.switch()
        self._must_live(fibre)

    def wake(self, fibre: Fibre) -> None:
        """Out of its sleep, before its time."""
        fibre.sleeps += 1
        fibre.ready = True

    # What makes and ends them.

    def start(self, process: Process, name: str, work: Callable[[], Any]) -> Fibre:
        number = next(self._numbers)
        fibre = Fibre(process, f"{process.name}/{name}", greenlet(self._body), number)
        fibre.run.parent = self._hub
        fibre.work = work  # type: ignore[attr-defined]  # only until it begins
        self.fibres.append(fibre)
        process.fibres.append(fibre)
        return fibre

    def kill(self, process: Process) -> None:
        """The current fibre goes on until its next point, where it finds out."""
        if process.alive:
            process.alive, process.frozen = False, False
            self.trace(process.name, "KILLED")
            for fibre in process.fibres:
                self.wake(fibre)

    def freeze(self, process: Process) -> None:
        process.frozen = True
        self.trace(process.name, "FROZEN")

    def thaw(self, process: Process) -> None:
        process.frozen = False
        self.trace(process.name, "GOES ON")

    # The turns.

    def run_until(self, end: float) -> None:
        """Until this time, or until nothing is left that could ever run."""
        while self.failure is None:
            ready = [it for it in self.fibres if it.ready and not it.process.frozen]
            if ready:
                ready = [it for it in ready if self.favoured in it.name] or ready
                self._give(ready[self.chance.randrange(len(ready))])
                continue
            until = self._next()
            if until is None or until > end:
                self.idle(end)
                self.now = max(self.now, end)
                return
            self.idle(until)
            self._advance(until)
        raise self.failure

    def trace(self, who: str, what: str) -> None:
        line = f"{self.points:6} {self.now:10.3f} {who}: {what}"
        self._digest.update(line.encode())
        self.lines.append(line)
        if self._keep and len(self.lines) > 2 * self._keep:
            del self.lines[: -self._keep]

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()[:16]

    def close(self) -> None:
        """Nothing is left behind: whatever still waits is thrown out."""
        for fibre in list(self.fibres):
            fibre.process.alive = False
        for fibre in list(self.fibres):
            while not fibre.run.dead and fibre.run:
                self.current = fibre
                fibre.run.throw(Killed)
        self.current = None
        self.fibres.clear()

    def _body(self, fibre: Fibre) -> None:
        work: Callable[[], Any] = fibre.work  # type: ignore[attr-defined]  # as `start` has it
        del fibre.work  # type: ignore[attr-defined]  # as `start` has it
        try:
            self._must_live(fibre)
            work()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - whoever runs the simulation raises it
            self.failure = self.failure or error
        finally:
            self.fibres.remove(fibre)
            fibre.process.fibres.remove(fibre)

    def _give(self, fibre: Fibre) -> None:
        self.current = fibre
        if fibre.run:
            fibre.run.switch()
        else:
            fibre.run.switch(fibre)
        self.current = None

    def _next(self) -> float | None:
        while self._timers:
            at, _, fibre, sleep = self._timers[0]
            if fibre.sleeps == sleep and not fibre.run.dead and not fibre.process.frozen:
                return at
            if fibre.process.frozen and fibre.sleeps == sleep:
                return self._after_the_frozen()
            heapq.heappop(self._timers)
        return None

    def _after_the_frozen(self) -> float | None:
        """The first timer of a process that is not frozen; those of the frozen stay."""
        live = [
            at
            for at, _, fibre, sleep in self._timers
            if fibre.sleeps == sleep and not fibre.run.dead and not fibre.process.frozen
        ]
        return min(live, default=None)

    def _advance(self, until: float) -> None:
        self.now = max(self.now, until)
        kept: list[tuple[float, int, Fibre, int]] = []
        while self._timers and self._timers[0][0] <= self.now:
            timer = heapq.heappop(self._timers)
            _, _, fibre, sleep = timer
            if fibre.sleeps != sleep or fibre.run.dead:
                continue
            if fibre.process.frozen:
                kept.append(timer)
            else:
                fibre.ready = True
        for timer in kept:
            heapq.heappush(self._timers, timer)

    @staticmethod
    def _must_live(fibre: Fibre) -> None:
        if not fibre.process.alive:
            raise Killed
