"""A small home that goes through all stories, and what must be true of it at the end.

One program of it can be told to die at one point. It is started again, as a person or a supervisor
would do; whoever got no answer asks again. Then the end must be the same as without the kill.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from lockgate.adapters.system import holder
from lockgate.core.model.task import Status, Task, TaskId
from lockgate.ports import TaskFilter
from tests.crash.doomed import VARIES
from tests.e2e.orchestra import PATIENCE, Orchestra, hands_off, worker, writes

ROOT = Path(__file__).parents[2]
S = Status
CONFIG = """\
[project]
agent = "scripted"
slots = 9
[sandbox]
level = "none"
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "grep -q good answer.txt"
attempts = 1
[[gates.list]]
name = "approval"
type = "human"
prompt = "Well?"
[limits]
escalation_threshold = 1
[merge]
mode = "manual"
"""
WAITS = '{ shell = "until [ -e ~/go ]; do sleep 0.02; done" }'
COMPLETE = '{ signal = "complete" }'
GOOD = (writes("good"), hands_off("good"))


def _script(branch: str, *steps: str, when: str = "") -> str:
    """Each start leaves a line beside the home, which outlives the workspace."""
    return worker(f'{{ shell = "echo . >> ~/../../../started-{branch}" }}', *steps, when=when)


SCRIPTS = {
    "lands": _script("lands", *GOOD, WAITS, COMPLETE),
    "exits": _script("exits", WAITS, *GOOD),
    "cancels": _script("cancels", '{ shell = "sleep 1000" }'),
    "resumes": _script("resumes", *GOOD, COMPLETE, when="try it so")
    + _script("resumes", WAITS, "{ crash = 1 }"),
}
MOST_RESTARTS = 60
LOOKS = 0.03  # seconds between two looks whether a step has ended
MANY = 100
LONG = 2 * PATIENCE  # seconds for a step, on a machine that has other things to do
Point = tuple[str, str, int]


@dataclass
class Step:
    """`act` is what somebody does, again where nothing came of it; `done` is how it ends."""

    story: str
    act: Callable[[], object]
    done: Callable[[], bool]


@dataclass
class Home(Orchestra):
    """An orchestra whose programs note their points, and may be killed at one of them."""

    config: str = CONFIG
    scripts: dict[str, str] = field(default_factory=lambda: dict(SCRIPTS))
    kills: list[Point] = field(default_factory=list)
    killed: list[Point] = field(default_factory=list)
    restarts: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.log, self.phase = self.place / "points", self.place / "story"
        self.log.touch()
        self.phase.write_text("up\n")

    def doomed(self, *argv: str) -> subprocess.Popen[bytes]:
        """With its orders: the kills that are left."""
        orders = self.place / "orders.json"
        facts = {"log": str(self.log), "story": str(self.phase), "root": str(self.place)}
        orders.write_text(json.dumps({**facts, "kills": self.kills}))
        environ = {**self.environ, "PYTHONPATH": str(ROOT)}
        if argv[0] == "task" and "cancelled" in argv:
            environ.pop("LOCKGATE_NO_ORCHESTRATOR")
        with (self.place / "orchestrator.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.crash.doomed", str(orders), *argv],
                env=environ,
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def up(self, *more: str) -> None:
        self.process = self.doomed("up", *more)

    def command(self, *argv: str) -> bool:
        """Whether it was acknowledged."""
        done = self.doomed(*argv).wait(PATIENCE)
        self._note_kill()
        return done == 0

    def tend(self) -> bool:
        """Whether the orchestrator was gone, and is started again; a command may have done so."""
        if self.process is None or self.process.poll() is None:
            return False
        self._note_kill()
        if holder(self.home) is not None:
            return False
        self.restarts += 1
        assert self.restarts < MOST_RESTARTS, self.story()
        self.up()
        return True

    def down(self) -> None:
        super().down()
        last = time.monotonic() + PATIENCE
        while (other := holder(self.home)) is not None and time.monotonic() < last:
            with suppress(ProcessLookupError):
                if other:  # it has said its number by now
                    os.kill(other, signal.SIGTERM)
            time.sleep(LOOKS)

    def _note_kill(self) -> None:
        for point in self.points("killed")[len(self.killed) :]:
            self.killed.append(point)
            if point in self.kills:  # two programs may have come there at once
                self.kills.remove(point)

    def points(self, kind: str = "point") -> list[Point]:
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [(story, what, nth) for it, story, what, nth in lines if it == kind]

    def named(self, branch: str) -> Task | None:
        found = [it for it in self.tasks() if it.branch == branch]
        return found[0] if found else None

    def tasks(self) -> Sequence[Task]:
        found = self.app.store.page(TaskFilter(), None, MANY).tasks
        return sorted(found, key=lambda it: list(SCRIPTS).index(it.branch))

    def there(self, branch: str) -> bool:
        return self.named(branch) is not None

    def is_(self, branch: str, *statuses: Status) -> bool:
        task = self.named(branch)
        return task is not None and task.status in statuses

    def at_work(self, branch: str) -> bool:
        task = self.named(branch)
        return task is not None and self.is_(branch, S.WORKING) and self.started(branch) > 0

    def moves(self, id: TaskId) -> list[str]:
        """Every status that it had, in their order."""
        events = self.app.views.all_events(id)
        return [str(it.data["to"]) for it in events if it.type == "status.changed"]

    def started(self, branch: str) -> int:
        file = self.place / f"started-{branch}"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def rests(self, branch: str, status: Status) -> bool:
        task = self.named(branch)
        return task is not None and task.status is status and self.settled(task.id)

    def goes(self, branch: str) -> None:
        task = self.named(branch)
        assert task
        (self.home / "homes" / task.id / "go").touch()


def nothing() -> None:
    """The world goes on by itself."""


def course(it: Home) -> list[Step]:
    def create(branch: str) -> Callable[[], object]:
        def once() -> object:
            argv = ("task", "create", branch, f"Do {branch}")
            return it.named(branch) or it.command(*argv)

        return once

    def id(branch: str) -> TaskId:
        task = it.named(branch)
        assert task
        return task.id

    def asks() -> bool:
        task = it.named("lands")
        return task is not None and task.waiting == "approval" and it.settled(task.id)

    def approve_landing() -> object:
        """Once: a second yes would be told in an event of its own."""
        task = it.named("lands")
        said = task is not None and (task.to_land or task.status is S.DONE)
        return said or it.command("queue", "approve", id("lands"))

    return [
        *(Step("create", create(name), partial(it.there, name)) for name in SCRIPTS),
        Step("start", it.up, lambda: all(it.at_work(name) for name in SCRIPTS)),
        Step("signal", lambda: it.goes("lands"), lambda: it.is_("lands", S.AGENT_REVIEW)),
        Step("evaluate", nothing, asks),
        Step("exit", lambda: it.goes("exits"), lambda: _waits_for_a_human(it, "exits")),
        Step(
            "human answer",
            lambda: it.command("approve", id("lands")),
            lambda: it.is_("lands", S.REVIEWING, S.DONE),
        ),
        Step(
            "land",
            approve_landing,
            lambda: it.rests("lands", S.DONE),
        ),
        Step(
            "cancel",
            lambda: it.command("task", "update", id("cancels"), "--status", "cancelled"),
            lambda: it.rests("cancels", S.CANCELLED),
        ),
        Step(
            "pause",
            lambda: it.goes("resumes"),
            lambda: it.is_("resumes", S.PAUSED_FOR_INTERVENTION),
        ),
        Step(
            "resume",
            lambda: it.command("resume", id("resumes"), "--directive", "try it so"),
            lambda: _waits_for_a_human(it, "resumes"),
        ),
    ]


def _waits_for_a_human(it: Home, branch: str) -> bool:
    task = it.named(branch)
    return task is not None and task.waiting == "approval" and it.settled(task.id)


def play(it: Home) -> None:
    """All stories in their order; what dies is started again."""
    for step in course(it):
        it.phase.write_text(f"{step.story}\n")
        step.act()
        acted, last = time.monotonic(), time.monotonic() + LONG
        while not step.done():
            if it.tend():
                last = time.monotonic() + LONG
            if time.monotonic() > acted + 1.0 and step.act != it.up:
                step.act()  # nothing came of it: once more
                acted = time.monotonic()
            assert time.monotonic() < last, f"{step.story} did not end\n{it.story()}"
            time.sleep(LOOKS)
        it.tend()
    it.phase.write_text("over\n")


# What must be true at the end.


@dataclass(frozen=True)
class End:
    """How a home ended, such that two runs can be compared."""

    statuses: dict[str, list[str]]
    events: dict[str, list[str]]
    starts: dict[str, int]
    landed: int
    files: list[str]


def end_of(it: Home) -> End:
    tasks = {task.branch: task for task in it.tasks()}
    landed = subprocess.run(
        ("git", "-C", str(it.root), "log", "--format=%H", "main"), check=True, capture_output=True
    )
    return End(
        statuses={name: it.moves(task.id) for name, task in tasks.items()},
        events={name: _told(it.types(task.id)) for name, task in tasks.items()},
        starts={name: it.started(name) for name in tasks},
        landed=len(landed.stdout.split()),
        files=sorted(_left(it)),
    )


def _told(types: Sequence[str]) -> list[str]:
    """What happens side by side may be told in another order; moves are told in theirs.

    What Lockgate failed to do for a moment, and that it did it then, is no transition.
    """
    return sorted(it for it in types if it not in {"task.troubled", "task.recovered"})


def _left(it: Home) -> set[str]:
    """Directories and files of the home that someone must clean up, as patterns."""
    found: set[str] = set()
    for top in ("runs", "workspaces", "reviews"):
        base = it.home / top
        for path in base.iterdir() if base.is_dir() else ():
            found.add(VARIES.sub("#", f"{top}/{path.name}"))
            if top == "runs":
                found |= {
                    VARIES.sub("#", f"{top}/{path.name}/{sub.name}") for sub in path.iterdir()
                }
    for task in it.tasks():
        folder = it.home / "tasks" / task.id
        found |= {VARIES.sub("#", f"tasks/{task.branch}/{sub.name}") for sub in folder.iterdir()}
    return found


def wrongs(it: Home, expected: End) -> list[str]:
    """What is not as it is without a kill."""
    found: list[str] = []
    end = end_of(it)
    for name in ("statuses", "events", "starts", "landed", "files"):
        one, other = getattr(end, name), getattr(expected, name)
        if one != other:
            found.append(f"{name}: {_difference(one, other)}")
    broken = it.app.store.first_broken_event()
    if broken is not None:
        found.append(f"the chain of events is broken at {broken}")
    tip = subprocess.run(
        ("git", "-C", str(it.root), "rev-parse", "main"), check=True, capture_output=True
    )
    project = it.app.projects.here(it.root)
    verified = it.app.queue.verify(project, tip.stdout.decode().strip())
    if verified is None or verified.problem:
        found.append(f"what landed is not verified: {verified and verified.problem}")
    if len({task.branch for task in it.tasks()}) != len(it.tasks()):
        found.append("a task was made twice")
    return found


def _difference(one: object, other: object) -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [key for key in sorted({*one, *other}) if one.get(key) != other.get(key)]
        return "; ".join(f"{key}: {one.get(key)} instead of {other.get(key)}" for key in keys)
    if isinstance(one, list) and isinstance(other, list):
        return f"{sorted(set(one) - set(other))} more, {sorted(set(other) - set(one))} less"
    return f"{one} instead of {other}"


def gone(it: Home) -> list[str]:
    """After all is down: processes and mounts that are still there."""
    it.down()
    for session in it.app.store.sessions_alive():
        it.app.sessions.end(session.id, 0.0)
    until = time.monotonic() + 20
    while it.left_over() and time.monotonic() < until:
        time.sleep(0.05)
    mounts = [
        line for line in Path("/proc/mounts").read_text().splitlines() if str(it.home) in line
    ]
    return [*(f"a process is left: {re.sub(r' +', ' ', line)}" for line in it.left_over()), *mounts]


def run(place: Path, kills: Sequence[Point] = (), expected: End | None = None) -> "Result":
    """One home from its creation to its end; it is removed."""
    shutil.rmtree(place, ignore_errors=True)
    it = Home(place, kills=list(kills))
    try:
        play(it)
        end = end_of(it)
        found = wrongs(it, expected) if expected else []
        found += gone(it)
        return Result(it.points(), tuple(it.killed), end, tuple(found), it.story() if found else "")
    finally:
        it.close()
        shutil.rmtree(place, ignore_errors=True)


@dataclass(frozen=True)
class Result:
    points: Sequence[Point]
    killed: Sequence[Point]
    end: End
    wrong: Sequence[str]
    story: str


def quick_place() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - nothing lasts
