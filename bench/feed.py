"""The feed with all places taken: what it costs other commands, how soon all have an event."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from bench import large
from bench.harness import AtMost, Measure, clocked, interleave, main, say
from bench.home import make_home
from lockgate.bootstrap import App, open_app
from lockgate.bootstrap.assistants import mcp_child
from lockgate.bootstrap.gates import Benches
from lockgate.bootstrap.orchestrator import feed_of, orchestrating
from lockgate.core.model.task import TaskId
from lockgate.faces import client
from lockgate.faces.cli.serve import answer
from lockgate.services.orchestrator.feed import MOST
from lockgate.services.task.callers import HUMAN
from lockgate.services.task.tasks import NewTask

ROUNDS = 40
TASKS = 20
FEW = 1
STATUS, EVENT = "lockgate status", "an event is with all who follow"


def bench(where: Path) -> list[Measure]:
    return [*_many_readers(where), _many_events(where)]


def _many_events(where: Path) -> Measure:
    """One follows in a home with a million events, one in a home with ten thousand."""
    say(f"\nfeed, {large.MANY * large.EVENTS:,} events beside {large.FEW * large.EVENTS:,}")
    with ExitStack() as stack:
        homes = {
            count: stack.enter_context(_Home.of_size(count, where / f"large-{count}"))
            for count in (large.FEW, large.MANY)
        }
        found = interleave({str(it): clocked(home.tell) for it, home in homes.items()}, ROUNDS)
    return Measure(
        name=f"{EVENT}, {large.MANY * large.EVENTS:,} before it",
        ours=found[str(large.MANY)],
        peer=f"with {large.FEW * large.EVENTS:,}",
        theirs=found[str(large.FEW)],
        target=AtMost(1.5),
    )


def _many_readers(where: Path) -> list[Measure]:
    say(f"\nfeed, {MOST} readers beside none and beside {FEW}")
    with ExitStack() as stack:
        homes = {
            readers: stack.enter_context(_Home.opened(where / f"{readers}", readers))
            for readers in (0, FEW, MOST)
        }
        found = interleave(
            {
                f"{STATUS} {MOST}": clocked(homes[MOST].status),
                f"{STATUS} 0": clocked(homes[0].status),
                f"{EVENT} {MOST}": clocked(homes[MOST].tell),
                f"{EVENT} {FEW}": clocked(homes[FEW].tell),
            },
            ROUNDS,
        )
    return [
        Measure(
            name=f"{STATUS}, {MOST} follow",
            ours=found[f"{STATUS} {MOST}"],
            peer="nobody follows",
            theirs=found[f"{STATUS} 0"],
            target=AtMost(1.2),
        ),
        Measure(
            name=f"{EVENT}, {MOST} of them",
            ours=found[f"{EVENT} {MOST}"],
            peer="one follows",
            theirs=found[f"{EVENT} {FEW}"],
        ),
    ]


def _ignored(_text: str) -> None:
    pass


class _Home:
    """A home with an orchestrator and so many who follow it."""

    def __init__(self, where: Path, app: App, task: TaskId, feeds: list[socket.socket]) -> None:
        self.where, self.app, self.task, self.feeds = where, app, task, feeds
        self.number = 0

    @staticmethod
    @contextmanager
    def opened(where: Path, readers: int) -> Iterator["_Home"]:
        app, project = make_home(where)
        asked = [
            NewTask(branch=f"task-{n}", summary=f"Task number {n}", auto_start=False)
            for n in range(TASKS)
        ]
        tasks = [app.tasks.create(project, it, HUMAN) for it in asked]
        process = subprocess.Popen(
            [sys.executable, "-m", "lockgate", "up"],
            cwd=where / "repository",
            env=os.environ | {"LOCKGATE_HOME": str(app.home)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            feeds = [_followed(str(app.home / "door.sock")) for _ in range(readers)]
            yield _Home(where, app, tasks[0].id, feeds)
            for feed in feeds:
                feed.close()
        finally:
            process.terminate()
            process.wait(60)
            app.store.close()

    @staticmethod
    @contextmanager
    def of_size(tasks: int, where: Path) -> Iterator["_Home"]:
        """Its orchestrator is in this process and starts nothing: its loop does not turn."""
        home = large.copied(large.large_home(tasks), where)
        app = open_app({"LOCKGATE_HOME": str(home)})
        served = replace(app, troubles={})
        served = replace(served, feed=feed_of(served, _ignored))
        with (
            closing(mcp_child(app.home)) as mcp,
            orchestrating(served, partial(answer, served, Benches(app.home), mcp), _ignored),
        ):
            feed = _followed(str(app.home / "door.sock"))
            yield _Home(where, app, TaskId("task-000000"), [feed])
            feed.close()
        app.close()

    def status(self) -> None:
        lockgate = str(Path(sys.executable).with_name("lockgate"))
        environ = os.environ | {"LOCKGATE_HOME": str(self.app.home)}
        subprocess.run(
            [lockgate, "status"], cwd=self.where, env=environ, check=True, capture_output=True
        )

    def tell(self) -> None:
        """Commit an event as another process, and wait until each reader has it."""
        self.number += 1
        text = f"summary {self.number} of all"
        self.app.tasks.rename(self.task, text, HUMAN)
        with _call(str(self.app.home / "door.sock"), ["wake"]) as woken:
            while woken.recv(100):
                pass
        for feed in self.feeds:
            said = b""
            while text.encode() not in said:
                said += feed.recv(1 << 16)


def _followed(path: str) -> socket.socket:
    until = time.monotonic() + 60
    while True:
        try:
            feed = _call(path, ["feed"])
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
            continue
        said = b""
        while b"hello" not in said:
            said += feed.recv(1 << 16)
        return feed


def _call(path: str, argv: list[str]) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    client.send(connection, path, argv)
    connection.settimeout(60)
    return connection


if __name__ == "__main__":
    main(bench)
