"""A home in which many changes have landed: disk for each of them, and how long a landing takes.

The real orchestrator and scripted agents in sandboxes. `--landings N --home DIR` lets so many more
land in a home that stays, so that a long run can be made of short ones; without them a small number
lands. The last landings are taken in turn with those of a new home, on the same machine and with a
clone of the same repository: how long a landing takes depends on its files, too. Just before them
as many land in the one as in the other: an orchestrator cleans up after them, which takes time.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from statistics import median

from bench.harness import BUILD, AtMost, Measure, place, say, table
from bench.home import WHO, make_home, make_trusted
from lockgate.adapters.sessions.runner.command_socket import Request, ask
from lockgate.bootstrap import App, open_app
from lockgate.bootstrap.upkeep import cleaner_of
from lockgate.core.model.task import Status, TaskId
from lockgate.services.task.callers import HUMAN
from lockgate.services.task.tasks import NewTask

LANDINGS = 40
ROUNDS = 15
BEFORE = 5  # that land in each of the two homes before the landings that are compared
PATIENCE = 380.0  # seconds
LONGEST = 240.0  # for the landings that are compared
ALLOWED = 20_000  # bytes of a landed task
EMPTY = "the same in a new home"
CONFIG = """\
[project]
agent = "scripted"
slots = 3
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "test -d src"
[merge]
mode = "auto"
"""
SCRIPT = """\
[[worker]]
steps = [
  { shell = "n=${LOCKGATE_SESSION#*-}; date +%s%N > src/$((${n%%-*} % FILES)).txt" },
  { section = "Handoff", text = "DONE: a file" },
  { signal = "complete" },
]
"""
FILES = 200  # that changes edit, each that of its number: two at once never the same
AT_ONCE = "[keep]\n" + "".join(
    f"{it} = 0\n"
    for it in ("sessions", "tasks", "branches", "snapshots", "leftovers", "unreachable")
)


class Home:
    """One repository with its home; what others keep for days is not kept here."""

    def __init__(self, where: Path, like: Path | None = None) -> None:
        """A new one works on a clone of the repository that it is to be like."""
        self.where, self.home, self.root = where, where / "home", where / "repository"
        if not where.exists():
            where.mkdir(parents=True)
            if like:
                _git(where, "clone", "--quiet", str(like), "repository")
                make_trusted({"LOCKGATE_HOME": str(self.home)}, self.root)
                self._know()
            else:
                self._make()
            _git(self.root, "config", "user.name", "bench")
            _git(self.root, "config", "user.email", "bench@localhost")
            (self.home / "settings.toml").write_text(AT_ONCE, encoding="utf-8")
        self.app: App = open_app({"LOCKGATE_HOME": str(self.home)})
        self.project = self.app.store.projects()[0]

    def land(self, count: int) -> float:
        """The seconds from a change that has passed its gates to its landing: the median."""
        name = time.time_ns()
        asked = (NewTask(branch=f"t{name}-{n}", summary=f"Change {n}") for n in range(count))
        ids = [self.app.tasks.create(self.project, it, HUMAN).id for it in asked]
        news = Request(token="", cwd="/", stdin="", argv=("wake",))
        ask(str(self.home / "door.sock"), news, patience=5.0)
        self._wait(lambda: all(self._is_over(id) for id in ids))
        return median(self._seconds(id) for id in ids)

    def clean(self) -> int:
        """The bytes on disk afterwards."""
        cleaner = cleaner_of(self.app)
        while cleaner.clean(1000):
            pass
        for project in list(cleaner.to_pack(0, 0)):
            cleaner.pack(project)
        return self.size

    @property
    def size(self) -> int:
        """With the database closed: its log of writes is then part of it."""
        self.app.close()
        self.app = open_app({"LOCKGATE_HOME": str(self.home)})
        return sum(it.size for it in cleaner_of(self.app).usage())

    @property
    def landed(self) -> int:
        return self.app.store.counts()[Status.DONE]

    @contextlib.contextmanager
    def up(self) -> Generator[None]:
        with (self.where / "orchestrator.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "lockgate", "up"],
                cwd=self.root,
                env=os.environ | {"LOCKGATE_HOME": str(self.home)},
                stdout=log,
                stderr=log,
            )
            try:
                self._wait((self.home / "door.sock").exists)
                yield
            finally:
                process.terminate()
                process.wait()

    def _make(self) -> None:
        app, _ = make_home(self.where, CONFIG)
        app.close()
        script = SCRIPT.replace("FILES", str(FILES))
        (self.root / ".lockgate" / "script.toml").write_text(script, encoding="utf-8")
        (self.root / "src").mkdir()
        for number in range(FILES):
            (self.root / "src" / f"{number}.txt").write_text("old\n", encoding="utf-8")
        _git(self.root, "add", "--all")
        _git(self.root, *WHO, "commit", "--quiet", "--message", "A script")

    def _know(self) -> None:
        app = open_app({"LOCKGATE_HOME": str(self.home)})
        app.store.add_project(app.projects.here(self.root))
        app.close()

    def _is_over(self, id: TaskId) -> bool:
        done = self.app.store.load(id).status is Status.DONE
        return done and not self.app.store.pending_effects(id, 1)

    def _wait(self, done: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while not done():
            if time.monotonic() > until:
                raise TimeoutError(f"{self.landed} landed; see {self.where}/orchestrator.log")
            time.sleep(0.05)

    def _seconds(self, id: TaskId) -> float:
        events = self.app.store.events(id, 0, 1000)
        ready = [it.time for it in events if it.data.get("to") == Status.REVIEWING.name]
        return next(it.time for it in events if it.type == "change.landed") - ready[-1]


def bench(where: Path) -> list[Measure]:
    home = Home(where / "old")
    return measured(home, where / "new", LANDINGS)


def measured(home: Home, new: Path, count: int) -> list[Measure]:
    """Let so many land; then one here and one in a new home, in turn."""
    say(f"\n{home.landed + count} landings and a few more in one home")
    empty = Home(new, home.root)
    least = empty.size
    with home.up():
        home.land(max(count, 1))
    home.clean()
    with home.up(), empty.up():
        home.land(BEFORE)
        empty.land(BEFORE)
        pairs = _in_turn(home, empty)
    full, landed = home.size, home.landed
    each = (home.clean() - least) / landed
    say(f"  {full / 1e6:.1f} MB before cleaning, {home.size / 1e6:.1f} MB after it")
    ours, theirs = (median(it) for it in zip(*pairs, strict=True))
    name = f"a landing after {landed}"
    return [
        Measure(name=name, ours=ours, peer=EMPTY, theirs=theirs, target=AtMost(1.2)),
        Measure(
            name=f"disk of one of {landed} landed tasks, 1 ms = 1 byte",
            ours=each / 1000,
            peer="20 KB",
            theirs=ALLOWED / 1000,
            target=AtMost(1),
        ),
    ]


def _git(root: Path, *argv: str) -> None:
    subprocess.run(("git", "-C", str(root), *argv), check=True)  # noqa: S607


def _in_turn(home: Home, empty: Home) -> list[tuple[float, float]]:
    """As many as there is time for, but at least one."""
    until = time.monotonic() + LONGEST
    pairs = [(home.land(1), empty.land(1))]
    while len(pairs) < ROUNDS and time.monotonic() < until:
        pairs.append((home.land(1), empty.land(1)))
    say(f"  medians of {len(pairs)} landings, in turn")
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, help="a home that stays; made where it is missing")
    parser.add_argument("--landings", type=int, default=LANDINGS, help="that are made now")
    parser.add_argument("--grow", action="store_true", help="and measure nothing else")
    asked = parser.parse_args()
    with place(asked.home.parent if asked.home else BUILD) as where:
        home = Home(asked.home or where / "old")
        if asked.grow:
            with home.up():
                seconds = home.land(asked.landings)
            each = home.clean() / home.landed
            say(f"{home.landed} landed, {seconds:.3f} s; {each:.0f} bytes each")
            return
        say(table(measured(home, where / "new", asked.landings)))


if __name__ == "__main__":
    main()
