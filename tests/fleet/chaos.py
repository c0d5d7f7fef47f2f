"""Hosts that break while they do tasks: `python -m tests.fleet.chaos --tasks 20 --seed 1`.

Prints one table of figures, and what is wrong; it ends by itself.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lockgate.adapters.store.hosts import SqlHosts
from lockgate.core.model.task import Status, Task
from lockgate.errors import LockgateError
from tests.fleet.site import ENDED, Site, Times, git_says, opened, plays
from tests.fleet.storm import Storm

AT_ONCE = 6  # tasks that have not ended; then the next is made
HOSTS = ("h1", "h2", "h3")
LOOKS = 0.25  # seconds
TAKEN_OVER = 15.0  # seconds, at most, in which somebody could do it, whatever else was broken
SETTLES = 90.0  # seconds after the last task, for what is left to be done
GATE = "sleep 3; ! grep -rq bad n-*"
TIMES = Times(beat=10, lost=20)


@dataclass(frozen=True)
class Result:
    wrong: list[str]
    figures: dict[str, str]
    story: str

    def table(self) -> str:
        width = max(map(len, self.figures))
        rows = [f"{name:<{width}}  {value}" for name, value in self.figures.items()]
        return "\n".join((*rows, *(f"WRONG: {it}" for it in self.wrong)))


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.fleet.chaos")
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.0, help="at most; 0: 30 for each task")
    parser.add_argument("--old", type=int, default=0, help="hosts of the release before this one")
    parser.add_argument("--story", action="store_true", help="every fault, and what hosts said")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        result = weathered(Path(folder), asked.tasks, asked.seed, asked.seconds, asked.old)
    print(result.table())
    if result.wrong or asked.story:
        print(result.story)
    return 1 if result.wrong else 0


def weathered(place: Path, tasks: int, seed: int, seconds: float = 0.0, old: int = 0) -> Result:
    """Faults go on for the first half of the time at most, and until the tasks have ended.

    So many `old` hosts are of the release before this one.
    """
    seconds = seconds or max(300.0, 30.0 * tasks)
    chance = random.Random(seed)  # noqa: S311 - a seed is to be repeated
    branches = [f"t{number}" for number in range(tasks)]
    scripts = {it: plays(it, chance.uniform(1.0, 12.0)) for it in branches}
    with opened(place, scripts, command=GATE, times=TIMES) as site:
        for number, name in enumerate(HOSTS):
            site.add(name, before=number < old).start()
        site.until(lambda: bool(site.leader()))
        storm, began = Storm(site, seed), time.monotonic()
        left = list(branches)
        while (left or _open(site)) and time.monotonic() - began < seconds:
            storm.turn(wild=time.monotonic() - began < seconds / 2)
            _create(site, left)
            time.sleep(LOOKS)
        took = time.monotonic() - began
        storm.end()
        _settle(site, storm)
        wrong = problems(site, branches)
        wrong += _late(storm)
        told = "\n".join((*storm.told, site.story())) if wrong else "\n".join(storm.told)
        return Result(wrong, _figures(site, storm, took), told)


def _open(site: Site) -> bool:
    with suppress(LockgateError):
        return bool(site.open_tasks())
    return True


def _create(site: Site, left: list[str]) -> None:
    with suppress(LockgateError):  # a server is down: again in the next turn
        if left and len(site.open_tasks()) < AT_ONCE:
            if not site.people.app.store.on_branch(site.project.id, left[0]):
                site.people.create(left[0])
            left.pop(0)


def _settle(site: Site, storm: Storm) -> None:
    """Sessions and workspaces go after the last task has ended."""
    last = time.monotonic() + SETTLES
    while time.monotonic() < last and not _settled(site):
        storm.turn(wild=False)
        time.sleep(LOOKS)


def _settled(site: Site) -> bool:
    with suppress(LockgateError):
        store = site.people.app.store
        tasks = site.all_tasks()
        busy = any(store.pending_effects(it.id, 1) for it in tasks)
        up = all(it.alive() for it in site.hosts.values())
        return up and not busy and not list(store.ids_alive()) and not _runners(site)
    return False


# What must be true at the end, whatever happened on the way.


def problems(site: Site, branches: Iterable[str]) -> list[str]:
    tasks = site.all_tasks()
    known = {it.branch for it in tasks}
    found = [f"{it} was never made" for it in branches if it not in known]
    found += [f"task {it.id} is {it.status}" for it in tasks if it.status not in ENDED]
    broken = site.people.app.store.first_broken_event()
    found += [] if broken is None else [f"the chain of events is broken at {broken}"]
    on_main = Counter(site.on_main())
    for it in tasks:
        found += _of_task(site, it, on_main[it.branch])
    found += [f"a runner of an ended session lives: {it}" for it in _runners(site)]
    return found + _repository(site)


def _of_task(site: Site, task: Task, on_main: int) -> list[str]:
    events = Counter(it.type for it in site.people.app.views.all_events(task.id))
    done = int(task.status is Status.DONE)
    found = list[str]()
    if (events["change.landed"], on_main) != (done, done):
        landed = f"{events['change.landed']} times by its events, {on_main} times on main"
        found.append(f"task {task.id} is {task.status} and landed {landed}")
    moved = {it: n for it, n in counters(task).items() if n}
    if moved:
        found.append(f"task {task.id}: counters moved: {moved}")
    return found


def counters(task: Task) -> dict[str, int]:
    """Those that say what went wrong; of iterations there is one, the first."""
    names = ("crash_count", "failed_attempts", "step_failures", "review_round")
    return {**{it: getattr(task, it) for it in names}, "iteration": max(0, task.iteration - 1)}


def _runners(site: Site) -> list[str]:
    """Of sessions that have ended by the store, on any host."""
    alive = set(site.people.app.store.ids_alive())
    found = list[str]()
    for host in site.hosts.values():
        lines = host.processes() if host.on else []
        for line in (it for it in lines if "/sessions/" in it):
            session = line.partition("/sessions/")[2].split("/")[0].split()[0]
            if session not in alive:
                found.append(f"{host.name}: {line[:200]}")
    return found


def _repository(site: Site) -> list[str]:
    said = git_says(site.repository, "fsck", "--no-dangling").splitlines()
    return [f"git fsck of the hub: {it}" for it in said if it.startswith(("missing", "broken"))]


def _late(storm: Storm) -> list[str]:
    """Also what nobody took over, where its host came back or the job was answered too late."""
    slow = [it for it in (*storm.takeovers, *storm.others) if it.possible > TAKEN_OVER]
    return [f"{it.lane}, {it.fault}: it went on after {it.took}" for it in slow]


# The table.


def _figures(site: Site, storm: Storm, took: float) -> dict[str, str]:
    tasks, store = site.all_tasks(), site.people.app.store
    sessions = [one for it in tasks for one in store.sessions(it.id)]
    on_main = Counter(site.on_main())
    lead = [it.seconds for it in storm.takeovers if it.alone and it.lane == "lead"]
    other = [it.seconds for it in storm.takeovers if it.alone and it.lane != "lead"]
    mixed = [it for it in storm.takeovers if not it.alone]
    row = site.lanes().get("lead", {})
    return {
        "tasks, seed": f"{len(tasks)}, {storm.seed}",
        "seconds": f"{took:.0f}",
        "faults": ", ".join(f"{name} {n}" for name, n in sorted(storm.faults.items())),
        "ended": str(dict(Counter(str(it.status) for it in tasks))),
        "landed once, more": f"{sum(n == 1 for n in on_main.values())}, "
        f"{sum(n > 1 for n in on_main.values())}",
        "counters moved": str(sum(any(counters(it).values()) for it in tasks)),
        "late answers refused, counted": "{}, {}".format(*site.refused()),
        "leaders": f"{row.get('epoch', '?')} by turns, {', '.join(sorted(storm.led))}",
        "hosts": ", ".join(f"{name} {it}" for name, it in _versions(site).items()),
        "lead taken over": _spread(lead),
        "jobs taken over": _spread(other),
        "with more broken": _spread([it.seconds for it in mixed]),
        "less when nobody could": _spread([it.possible for it in mixed]),
        "sessions, tasks": f"{len(sessions)}, {len(tasks)}",
        "trees tested, elsewhere": f"{len(storm.tested)}, {len(storm.tested_elsewhere)}",
        "events": str(store.head()),
    }


def _versions(site: Site) -> dict[str, str]:
    hosts = SqlHosts(site.people.app.store.database).all()
    return {it.name: it.version for it in hosts}


def _spread(seconds: list[float]) -> str:
    if not seconds:
        return "never"
    middle = statistics.median(seconds)
    return f"{len(seconds)} times, median {middle:.1f} s, at most {max(seconds):.1f} s"


if __name__ == "__main__":
    sys.exit(main())
