"""`lockgate demo`: the real orchestrator at work on a throw-away repository."""

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import click
from msgspec.structs import replace

from lockgate.bootstrap import App, make_demo_repository, open_app
from lockgate.bootstrap.assistants import mcp_child
from lockgate.bootstrap.gates import Benches
from lockgate.bootstrap.orchestrator import feed_of, orchestrating
from lockgate.errors import Unavailable
from lockgate.faces.cli.commands import SAYS
from lockgate.faces.cli.look.tui import BY_A_SIGNAL, guard, must_open
from lockgate.faces.cli.serve import answer
from lockgate.faces.demo.story import GRACE, LAST, LOOK_EVERY, TASKS, Story, StoryBroke
from lockgate.services.orchestrator.loop import Loop
from lockgate.services.task.tasks import NewTask

THINKING = 1.0  # seconds that each scripted agent takes, so that one can watch
PATIENCE = 3.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command()
@click.option("--keep", is_flag=True, help="Leave the repository and the state there afterwards.")
@click.option("--fast", is_flag=True, help="Agents that do not think; they never do in a pipe.")
@click.option("--board", is_flag=True, help="On the board, where you answer what is asked.")
def demo(*, keep: bool, fast: bool, board: bool) -> None:
    """Watch three agents at work in a throw-away repository.

    One fails its tests, one deletes a test that it broke, one crashes and is told of a hole by a
    reviewer. Two of the changes break only together; the target stays green. Needs git only: no
    agent, no key, no network. Your own repositories and state are not touched. With --board you
    answer what the gates ask, by the keys of the board.
    """
    if board:
        must_open()
    place = _place()
    waits = _guarded(place, keep=keep) if board else None
    thinking = THINKING if sys.stdout.isatty() and not fast else 0.0
    with _interruptible_once():
        try:
            _show(place, thinking, waits)
        finally:
            _ignore_signals()
            _leave(place, keep=keep)


def _place() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="lockgate-demo-"))
    except OSError as error:
        fix = "let TMPDIR name a directory that you can write"
        raise Unavailable("the demo did not begin", why=str(error), fix=fix) from error


def _guarded(place: Path, *, keep: bool) -> int:
    """Goes on in a child; where that is killed, what it started is ended and put away here."""
    try:
        return guard("the demo's agents are ended with it")
    except click.exceptions.Exit as ended:
        if ended.exit_code > BY_A_SIGNAL and place.exists():
            _ignore_signals()
            with closing(open_app(_environment(place))) as app:
                app.agents.end_all(GRACE)
            _leave(place, keep=keep)
        raise


def _show(place: Path, thinking: float, waits: int | None) -> None:
    """On the board where somebody `waits` for that to end; else the story is told."""
    why_bare = make_demo_repository(place / "repository", thinking)
    app = open_app(_environment(place))
    if why_bare:  # it is the user's own, who is told of it
        app.configuration.agree(app.projects.here(place / "repository"))
    try:
        if waits is not None:
            show_board(app, place / "repository", waits)
        else:
            Story(app, place / "repository").tell(why_bare)
    finally:
        _ignore_signals()
        app.agents.end_all(GRACE)
        app.close()


def _environment(place: Path) -> dict[str, str]:
    """Ours without what points at another home, another database or another script."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("LOCKGATE_")}
    return kept | {"LOCKGATE_HOME": str(place / "home")}


def _leave(place: Path, *, keep: bool) -> None:
    if keep:
        click.echo(f"\nkept: {place}")
        click.echo(f"  cd {place / 'repository'} && LOCKGATE_HOME={place / 'home'} lockgate")
        return
    until = time.monotonic() + PATIENCE
    while place.exists() and time.monotonic() < until:
        shutil.rmtree(place, ignore_errors=True)  # an agent's last words may come after its end
    if place.exists():
        click.echo(f"\nnot all of {place} could be removed", err=True)


@contextmanager
def _interruptible_once() -> Generator[None]:
    """The first of these signals ends the story; none of them stops what puts things away."""

    def interrupt(*_: object) -> None:
        _ignore_signals()
        raise KeyboardInterrupt

    before = [(number, signal.signal(number, interrupt)) for number in SIGNALS]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def _ignore_signals() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


# The demo on the board.


def show_board(app: App, root: Path, waits: int) -> None:
    """Nobody answers for you here: what a gate asks waits on the board."""
    from lockgate.faces.tui.app import Opening, open_board

    with at_work(app, root):
        open_board(app, root, Opening(tuple(SAYS.items()), parent=waits))


@contextmanager
def at_work(app: App, root: Path) -> Generator[None]:
    """The demo's tasks, and an orchestrator in this process that works on them."""
    project = app.projects.here(root)
    for branch, summary in TASKS.items():
        priority = 4 if branch == LAST else 3
        asked = NewTask(branch=branch, summary=summary, priority=priority)
        app.tasks.create(project, asked, app.caller)
    served = replace(app, troubles={})
    served = replace(served, feed=feed_of(served, _nothing))
    with (
        closing(mcp_child(app.home)) as mcp,
        orchestrating(served, partial(answer, served, Benches(app.home), mcp), _nothing) as loop,
    ):
        if loop is None:
            raise StoryBroke("another orchestrator serves the demo's own home")
        over = threading.Event()
        thread = threading.Thread(target=_turning, args=(loop, over), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            app.agents.end_all(GRACE)  # while the door is open: an agent that asks is answered


def _nothing(_text: str) -> None:
    """What goes wrong stands on the board."""


def _turning(loop: Loop, over: threading.Event) -> None:
    while not over.is_set():
        loop.turn()
        loop.wait(LOOK_EVERY)
