"""A durable transition through the coordinator, beside the disk's own floor and two engines."""

import cProfile
import os
import pstats
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path

from bench.harness import (
    AtMost,
    Faster,
    Measure,
    Medians,
    Work,
    arguments,
    clocked,
    interleave,
    place,
    say,
    table,
)
from bench.home import add_task, make_home, move
from lockgate.bootstrap import App
from lockgate.core.lifecycle import moves
from lockgate.core.lifecycle.decision import Decision
from lockgate.core.model.task import Status, Task
from lockgate.core.text.task_file import frontmatter
from lockgate.ports import Project
from lockgate.services.task.callers import HUMAN

ROUNDS = 100
PROFILED = 500
FORGOTTEN = 6.0  # seconds: ext4 without a journal is slow to make files where some were removed
SHOWN = 15
BLOCK = bytes(4096)
MEMORY = Path("/dev/shm")  # noqa: S108  not for secrets: the same work without a disk
FLOOR, REPLACE = "fdatasync of 4 KiB", "a file replaced durably"
WHOLE, PYTHON = "transition", "transition in memory"
COMMIT, MIRROR, DECIDE = "store.commit alone", "TASK.md write alone", "decide alone"
PEERS = {"bench.peer_langgraph": Faster(6), "bench.peer_dbos": Faster(12)}


class Walker:
    """A task that a human moves to and fro, which asks for no artifact."""

    def __init__(self, app: App, project: Project, number: int = 0) -> None:
        self.app = app
        made = add_task(app, project, f"Task number {number}")
        self.task = move(app, made.id, Status.WORKING)

    def transition(self) -> None:
        self.task = move(self.app, self.task.id, self._target())

    def decide(self) -> float:
        """The rules alone, on evidence that is there."""
        seen = self.app.coordinator.witness.look(self.task.id, HUMAN).evidence
        asked = moves.Move(self._target())
        return clocked(lambda: moves.move(seen, asked), repeat=20)()

    def commit(self) -> float:
        """The store's part: task, events and outbox. What else a turn does is not counted."""
        seen = self.app.coordinator.witness.look(self.task.id, HUMAN).evidence
        decision = moves.move(seen, moves.Move(self._target()))
        assert isinstance(decision, Decision)  # noqa: S101  a human may always go there
        begin = time.perf_counter()
        self.app.store.commit(decision)
        seconds = time.perf_counter() - begin
        self.app.coordinator.effector.carry_out(self.task.id)
        self.task = decision.task
        return seconds

    def mirror(self) -> None:
        _write(self.app, self.task)

    def _target(self) -> Status:
        working = self.task.status is Status.WORKING
        return Status.CLARIFICATION if working else Status.WORKING


def bench(where: Path) -> list[Measure]:
    say("\ntransition")
    with ExitStack() as stack:
        peers = dict(_peers(where, stack))
        contenders = {
            FLOOR: stack.enter_context(appending(where / "floor")),
            REPLACE: clocked(lambda: _replace(where / "replaced")),
            **_ours(where),
            **{name: work for name, (work, _) in peers.items()},
        }
        if MEMORY.is_dir():
            memory = stack.enter_context(tempfile.TemporaryDirectory(dir=MEMORY))
            walker = Walker(*make_home(Path(memory)))
            stack.callback(walker.app.store.close)
            contenders[PYTHON] = clocked(walker.transition)
        else:
            say(f"  no {MEMORY}: the Python work is not known")
        time.sleep(FORGOTTEN)
        found = interleave(contenders, ROUNDS)
    return [
        *_against_the_floor(found),
        *(_line(found, WHOLE, name, target) for name, (_, target) in peers.items()),
        *(_line(found, COMMIT, name) for name in peers),
    ]


def profile(where: Path) -> None:
    """Where the Python time of a transition goes, in memory where there is such a place."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else where) as memory:
        walker = Walker(*make_home(Path(memory)))
        watch = cProfile.Profile()
        watch.enable()
        for _ in range(PROFILED):
            walker.transition()
        watch.disable()
        walker.app.store.close()
        pstats.Stats(watch, stream=sys.stdout).sort_stats("cumulative").print_stats(SHOWN)


def _ours(where: Path) -> dict[str, Work]:
    """Each part has its own task, all in one home."""
    app, project = make_home(where)
    whole, commit, mirror, decide = (Walker(app, project, it) for it in range(4))
    return {
        WHOLE: clocked(whole.transition),
        COMMIT: commit.commit,
        MIRROR: clocked(mirror.mirror),
        DECIDE: decide.decide,
    }


def _peers(where: Path, stack: ExitStack) -> Iterator[tuple[str, tuple[Work, Faster]]]:
    for module, target in PEERS.items():
        try:
            peer = import_module(module)
        except ImportError as error:
            say(f"  {module}: not measured, {error.name} is not installed (pip install '.[bench]')")
        else:
            yield peer.NAME, (stack.enter_context(peer.opened(where)), target)


@contextmanager
def appending(path: Path) -> Iterator[Work]:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def append() -> None:
        os.write(file, BLOCK)
        os.fdatasync(file)

    try:
        append()
        yield clocked(append)
    finally:
        os.close(file)


def _replace(path: Path) -> None:
    """The least that a new text in place of an old one costs: TASK.md is written so."""
    beside = path.with_suffix(".new")
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(file, BLOCK[:512])
        os.fdatasync(file)
    finally:
        os.close(file)
    beside.replace(path)


def _against_the_floor(found: Medians) -> list[Measure]:
    lines = [_line(found, it, FLOOR) for it in (WHOLE, COMMIT, MIRROR)]
    lines += [_line(found, MIRROR, REPLACE), _line(found, DECIDE, WHOLE)]
    if PYTHON not in found:
        return lines
    limit = Measure(
        name=WHOLE,
        ours=found[WHOLE],
        peer="2 x fdatasync + in memory",
        theirs=2 * found[FLOOR] + found[PYTHON],
        target=AtMost(1),
    )
    return [limit, *lines, _line(found, PYTHON, WHOLE)]


def _line(found: Medians, ours: str, peer: str, target: Faster | None = None) -> Measure:
    return Measure(name=ours, ours=found[ours], peer=peer, theirs=found[peer], target=target)


def _write(app: App, task: Task) -> None:
    app.coordinator.effector.files.write(task.id, frontmatter(task), "## Context\n")


if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("--profile", action="store_true", help="where the Python time goes")
    asked = arguments(parser)
    with place(asked.dir) as directory:
        if asked.profile:
            profile(directory)
        else:
            say(table(bench(directory)))
