"""`lockgate up` and `down`: the orchestrator."""

import os
import signal
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial

import click
from msgspec.structs import replace

from lockgate.bootstrap import App, orchestrator_pid
from lockgate.bootstrap.assistants import mcp_child
from lockgate.bootstrap.gates import Benches
from lockgate.bootstrap.orchestrator import (
    feed_of,
    orchestrating,
    start_orchestrator,
    web_child,
)
from lockgate.errors import LockgateError, Refused, Unavailable
from lockgate.faces.cli.output import app, here, json_option, show
from lockgate.faces.cli.serve import answer
from lockgate.faces.words import task as words
from lockgate.services.orchestrator.loop import Loop

PATIENCE = 10.0
STOPS = 60.0


@click.command()
@click.option("--once", is_flag=True, help="Do what can be done now, then end.")
@click.option("--detach", is_flag=True, help="Run in the background.")
@click.option("--idle", type=float, metavar="SECONDS", help="End after so long with nothing to do.")
@click.option("--web", is_flag=True, help="Serve the web board beside it.")
@click.option("--web-port", "port", default=8440, metavar="PORT", help="Of the web board.")
def up(*, once: bool, detach: bool, idle: float | None, web: bool, port: int) -> None:
    """Run the orchestrator, which starts agents and checks their work."""
    it = app()
    with suppress(LockgateError):  # started outside a repository, or in one without a configuration
        it.pull_requests.watch(it.projects.here(here()))
    if detach:
        _must_be_alone(it)
        start_orchestrator(it.home, idle, ("--web", "--web-port", str(port)) if web else ())
        _wait(lambda: orchestrator_pid(it.home) is not None, "the orchestrator did not start")
        show(None, f"orchestrator {orchestrator_pid(it.home)} is up", as_json=False)
        return
    served = replace(it, troubles={})
    served = replace(served, feed=feed_of(served, _report))
    with (
        _in_words(it),
        closing(Benches(it.home)) as benches,
        closing(mcp_child(it.home)) as mcp,
        orchestrating(served, partial(answer, served, benches, mcp), _report) as loop,
    ):
        if loop is None:
            _must_be_alone(it)
            raise Unavailable("nothing was started", why="another one ended just now", fix="retry")
        visited = loop.visited
        loop.visited = lambda: visited() or mcp.busy or web
        with closing(web_child(port, _report)) if web else nullcontext():
            _until_stopped(loop, 0.0 if once else idle)


@contextmanager
def _in_words(it: App) -> Generator[None]:
    """What the disk refuses at the start is told as every other refusal."""
    try:
        yield
    except OSError as error:
        why, fix = f"{error.strerror or error}: {error.filename or it.home}", f"see to {it.home}"
        raise Unavailable("no orchestrator was started", why=why, fix=fix) from error


@click.command()
@json_option
def down(*, as_json: bool) -> None:
    """Stop the orchestrator. Agents go on, and the next one takes them up again."""
    it = app()
    pid = orchestrator_pid(it.home)
    if not pid:
        show({"pid": None}, "no orchestrator was running", as_json=as_json)
        return
    os.kill(pid, signal.SIGTERM)
    _wait(lambda: orchestrator_pid(it.home) != pid, f"orchestrator {pid} did not stop", STOPS)
    show({"pid": pid}, f"orchestrator {pid} has stopped", as_json=as_json)


def _until_stopped(loop: Loop, idle: float | None) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: loop.stop())
    _report(f"orchestrator {os.getpid()} is up")
    loop.run(idle)
    _report("orchestrator stops; agents keep working")


def _report(text: str) -> None:
    stamp = time.strftime("%Y-%m-%d %H:%M:%S%z")
    click.echo(f"{stamp} {words.one_line(text)}", err=True)


def _must_be_alone(it: App) -> None:
    pid = orchestrator_pid(it.home)
    if pid is not None:
        raise Refused(
            "no orchestrator was started",
            why=f"one is running already, as process {pid}",
            fix="lockgate status, or stop it: lockgate down",
        )


def _wait(done: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    until = time.monotonic() + patience
    while not done():
        if time.monotonic() > until:
            why, fix = f"{patience:.0f} s were not enough", "see logs/orchestrator.log in its home"
            raise Unavailable(what, why=why, fix=fix)
        time.sleep(0.02)
