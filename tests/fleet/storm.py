"""Faults of a fleet, drawn by a seed, and how long it takes until others go on."""

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.fleet.hosts import Host
from tests.fleet.site import Row, Site

RESTARTS = 1.0  # seconds between two looks of what starts a worker again that has ended
GAP = (5.0, 20.0)  # seconds between two faults
LEAD = "lead"
NEEDED = {"postgres", "temporal"}  # by a takeover


@dataclass(frozen=True)
class Watch:
    """A lane whose host broke, until another claim of it is seen."""

    lane: str
    token: str
    host: str
    since: float
    fault: str
    alone: bool  # nothing else was broken when it began
    nobody: float  # seconds of the storm, until then, in which nobody could take it over


@dataclass(frozen=True)
class Takeover:
    lane: str
    seconds: float
    nobody: float  # of these: no host was whole, or PostgreSQL or Temporal was down
    fault: str
    alone: bool  # nothing else was broken meanwhile

    @property
    def possible(self) -> float:
        """Seconds in which it could be taken over, whatever else was broken."""
        return self.seconds - self.nobody

    @property
    def took(self) -> str:
        return f"{self.seconds:.1f} s, {self.nobody:.1f} s of them with nobody there to do it"


@dataclass
class Storm:
    """`turn` is called again and again; each fault is undone by itself after a while."""

    site: Site
    seed: int
    faults: Counter[str] = field(default_factory=Counter[str])
    takeovers: list[Takeover] = field(default_factory=list[Takeover])
    others: list[Takeover] = field(default_factory=list[Takeover])  # none was seen: see `_look`
    tested_elsewhere: set[str] = field(default_factory=set[str])  # trees, by another than built
    tested: set[str] = field(default_factory=set[str])
    told: list[str] = field(default_factory=list[str])
    led: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)  # noqa: S311 - a seed is to be repeated
        self._began = time.monotonic()
        self._next = self._began + self.chance.uniform(*GAP)
        self._undo = list[tuple[float, str, Callable[[], None]]]()
        self._watched = list[Watch]()
        self._down = set[str]()  # servers
        self._broken = 0.0  # when something broke last, or a server was not up
        self._tended = 0.0
        self._looked, self._nobody = self._began, 0.0

    def turn(self, *, wild: bool = True) -> None:
        now = time.monotonic()
        self._nobody += 0.0 if self._somebody_could() else now - self._looked
        self._looked = now
        lanes = self.site.lanes()
        self._look(lanes, now)
        for due in [it for it in self._undo if it[0] <= now]:
            self._undo.remove(due)
            self._say(f"{due[1]} ends")
            due[2]()
        if wild and now >= self._next:
            self._next = now + self.chance.uniform(*GAP)
            self._fault(lanes)
        if now - self._tended > RESTARTS:
            self._tended = now
            self._tend()

    def end(self) -> None:
        """All faults are undone."""
        for _, name, undo in self._undo:
            self._say(f"{name} ends")
            undo()
        self._undo.clear()

    def _fault(self, lanes: dict[str, Row]) -> None:
        whole = [it for it in self.site.hosts.values() if _whole(it)]
        of_hosts = {"kill": self._kill, "power": self._power, "freeze": self._freeze}
        of_hosts["cut"] = self._cut
        of_servers = [it for it in ("postgres", "temporal", "hub") if it not in self._down]
        names = [*of_hosts, *of_hosts, *of_servers] if whole else of_servers
        if not names:
            return
        name = self.chance.choice(names)
        self.faults[name] += 1
        self._broken = time.monotonic()
        if name in of_hosts:
            host = self.chance.choice(whole)
            self._say(f"{name} of {host.name}")
            self._watch(lanes, host, name)
            of_hosts[name](host)
        else:
            self._say(f"{name} killed")
            self._server(name)

    def _kill(self, host: Host) -> None:
        """What starts it again is in `_tend`."""
        host.kill()

    def _power(self, host: Host) -> None:
        host.power_off()

        def back() -> None:
            host.power_on()
            host.start()

        self._later(f"power of {host.name}", self.chance.uniform(5, 40), back)

    def _freeze(self, host: Host) -> None:
        host.freeze()
        self._later(f"freeze of {host.name}", self.chance.uniform(3, 30), host.thaw)

    def _cut(self, host: Host) -> None:
        host.network(up=False)
        seconds = self.chance.uniform(3, 40)
        self._later(f"cut of {host.name}", seconds, lambda: host.network(up=True))

    def _server(self, name: str) -> None:
        servers = self.site.servers
        self._down.add(name)
        if name == "postgres":
            servers.postgres.kill()
        else:
            getattr(servers, name).kill()

        def back() -> None:
            if name == "postgres":
                self.site.postgres_up()
            else:
                getattr(servers, name).start()
            self._down.remove(name)
            self._broken = time.monotonic()

        self._later(name, self.chance.uniform(1, 8), back)

    def _later(self, name: str, seconds: float, undo: Callable[[], None]) -> None:
        self._undo.append((time.monotonic() + seconds, name, undo))

    def _tend(self) -> None:
        """As systemd does: a worker that has ended starts again."""
        for host in self.site.hosts.values():
            if host.on and host.wanted and not host.alive():
                host.start()

    # Who goes on with what, after how long.

    def _watch(self, lanes: dict[str, Row], host: Host, fault: str) -> None:
        alone = self._others_are_whole(host.name)
        for row in lanes.values():
            if row["host"] == host.name and row["token"] and _anywhere(row):
                name, token = str(row["lane"]), str(row["token"])
                since, nobody = self._broken, self._nobody
                self._watched.append(Watch(name, token, host.name, since, fault, alone, nobody))

    def _look(self, lanes: dict[str, Row], now: float) -> None:
        self._count_tests(lanes)
        self.led |= {str(lanes[LEAD]["host"])} - {""} if LEAD in lanes else set()
        for it in list(self._watched) if lanes else []:  # none: PostgreSQL is down
            row = lanes.get(it.lane)
            if row is not None and row["token"] not in {"", it.token}:
                self._watched.remove(it)
                self._taken(it, str(row["host"]), now)
            elif row is None or not row["token"] or self._is_back(it):
                self._watched.remove(it)  # answered, called off, or its host goes on with it
                self.others.append(self._ended(it, now))

    def _count_tests(self, lanes: dict[str, Row]) -> None:
        """Who leads has built the trees."""
        tests = [it for lane, it in lanes.items() if lane.startswith("test ") and it["token"]]
        leader = lanes.get(LEAD, {}).get("host", "")
        self.tested |= {str(it["lane"]) for it in tests}
        self.tested_elsewhere |= {str(it["lane"]) for it in tests if it["host"] != leader != ""}

    def _taken(self, it: Watch, by: str, now: float) -> None:
        taken = self._ended(it, now)
        self.takeovers.append(taken)
        self._say(f"{it.lane} of {it.host} taken over by {by} after {taken.took}")

    def _ended(self, it: Watch, now: float) -> Takeover:
        alone = it.alone and self._broken <= it.since and self._others_are_whole(it.host)
        return Takeover(it.lane, now - it.since, self._nobody - it.nobody, it.fault, alone)

    def _is_back(self, it: Watch) -> bool:
        return it.fault in {"freeze", "cut"} and _whole(self.site.hosts[it.host])

    def _somebody_could(self) -> bool:
        return not self._down & NEEDED and any(map(_whole, self.site.hosts.values()))

    def _others_are_whole(self, name: str) -> bool:
        others = (it for it in self.site.hosts.values() if it.name != name)
        return all(map(_whole, others)) and not self._down

    def _say(self, what: str) -> None:
        self.told.append(f"{time.monotonic() - self._began:.1f} {what}")


def _whole(host: Host) -> bool:
    return host.on and host.wanted and not host.frozen and not host.cut


def _anywhere(row: Row) -> bool:
    return not str(row["class"]).startswith("host:")
