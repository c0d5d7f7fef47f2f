"""`lockgate demo`: the real orchestrator at work on a throw-away repository."""

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import click

from lockgate.bootstrap import make_demo_repository, open_app
from lockgate.errors import Unavailable
from lockgate.faces.demo.story import GRACE, Story

THINKING = 1.0  # seconds that each scripted agent takes, so that one can watch
PATIENCE = 3.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command()
@click.option("--keep", is_flag=True, help="Leave the repository and the state there afterwards.")
@click.option("--fast", is_flag=True, help="Agents that do not think; they never do in a pipe.")
def demo(*, keep: bool, fast: bool) -> None:
    """Watch three agents at work in a throw-away repository.

    One fails its tests, one deletes a test that it broke, one crashes and is told of a hole by a
    reviewer. Two of the changes break only together; the target stays green. Needs git only: no
    agent, no key, no network. Your own repositories and state are not touched.
    """
    place = _place()
    thinking = THINKING if sys.stdout.isatty() and not fast else 0.0
    with _interruptible_once():
        try:
            _show(place, thinking)
        finally:
            _ignore_signals()
            _leave(place, keep=keep)


def _place() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="lockgate-demo-"))
    except OSError as error:
        fix = "let TMPDIR name a directory that you can write"
        raise Unavailable("the demo did not begin", why=str(error), fix=fix) from error


def _show(place: Path, thinking: float) -> None:
    why_bare = make_demo_repository(place / "repository", thinking)
    app = open_app(_environment(place))
    if why_bare:  # it is the user's own, who is told of it
        app.configuration.agree(app.projects.here(place / "repository"))
    try:
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
