"""`lockgate up` and `down`: the orchestrator."""

import os
import signal
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial
from typing import Protocol

import click
from click.core import ParameterSource
from msgspec.structs import replace

from lockgate.bootstrap import App, orchestrator_pid
from lockgate.bootstrap.assistants import kept_warm, mcp_child
from lockgate.bootstrap.gates import Benches
from lockgate.bootstrap.orchestrator import (
    feed_of,
    install_service,
    orchestrating,
    service_of,
    start_orchestrator,
    stopped_service,
    uninstall_service,
    web_child,
)
from lockgate.core.model.people import Right
from lockgate.errors import LockgateError, Refused, Unavailable
from lockgate.faces.cli.operate.web import served_at
from lockgate.faces.cli.output import app, here, json_option, report, show
from lockgate.faces.cli.serve import answer
from lockgate.services.orchestrator.loop import Loop
from lockgate.services.task.callers import must_be_human

PATIENCE = 10.0
STOPS = 60.0


@click.command()
@click.option("--once", is_flag=True, help="Do what can be done now, then end.")
@click.option("--detach", is_flag=True, help="Run in the background.")
@click.option("--idle", type=float, metavar="SECONDS", help="End after so long with nothing to do.")
@click.option("--web", is_flag=True, help="Serve the web board beside it.")
@click.option("--web-port", "port", default=8440, metavar="PORT", help="Of the web board.")
@click.option(
    "--listen",
    default="",
    metavar="HOST:PORT",
    help="Serve the commands of people on other machines, and the web board, by https.",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "temporal"]),
    default="local",
    help="temporal: as one host of several, see lockgate worker.",
)
@click.option("--install", is_flag=True, help="Have systemd run it, now and at each login.")
@click.option("--uninstall", is_flag=True, help="Have systemd run it no more.")
def up(
    *,
    once: bool,
    detach: bool,
    idle: float | None,
    web: bool,
    port: int,
    listen: str,
    engine: str,
    install: bool,
    uninstall: bool,
) -> None:
    """Run the orchestrator, which starts agents and checks their work.

    --install writes a systemd unit of yours for this home, with the PATH that you have now. It is
    started again whenever it ends, says its words to the journal, and leaves agents at work when it
    is stopped. On macOS a launchd agent is written; that is untried.

    --listen needs a certificate: [server] certificate and key in settings.toml of the home. People
    then log in from their own machines: lockgate login URL.

    --engine temporal takes no other option but --listen.
    """
    it = app()
    if engine == "temporal":
        _work_in_fleet(it, listen)
        return
    more: tuple[str, ...] = ("--web", "--web-port", str(port)) if web else ()
    board = partial(web_child, port, report) if web else None
    if listen:
        host, number = served_at(it, listen)
        more = ("--listen", listen)
        board = partial(web_child, number, report, ("--team", "--listen", host))
    if install or uninstall:
        _install(it, more, install=install)
        return
    with suppress(LockgateError):  # started outside a repository, or in one without a configuration
        it.pull_requests.watch(it.projects.here(here()))
    if detach:
        _must_be_alone(it)
        start_orchestrator(it.home, idle, more)
        _wait(lambda: orchestrator_pid(it.home) is not None, "the orchestrator did not start")
        show(None, f"orchestrator {orchestrator_pid(it.home)} is up", as_json=False)
        return
    _orchestrate(it, board, 0.0 if once else idle)


def _refuse_with_fleet() -> None:
    """What an orchestrator alone can do, and a host of a fleet cannot."""
    context = click.get_current_context()
    given = [
        it.opts[0]
        for it in context.command.params
        if it.name not in {"engine", "listen"}
        and it.name in context.params
        and context.get_parameter_source(it.name) is not ParameterSource.DEFAULT
    ]
    if given:
        raise click.UsageError(
            f"--engine temporal cannot be used with {', '.join(sorted(given))}: leave that out. A"
            " service runs a host (docs/fleet/lockgate-worker.service), and --listen serves its"
            " web board."
        )


def _work_in_fleet(it: App, listen: str) -> None:
    from lockgate.bootstrap.fleet import host_settings
    from lockgate.faces.cli.operate.fleet import serve_host

    _refuse_with_fleet()
    serve_host(it, host_settings(it.home), listen)


class Closing(Protocol):
    def close(self) -> None: ...


def _orchestrate(it: App, board: Callable[[], Closing] | None, idle: float | None) -> None:
    """Until it is stopped, or idle for so long, with the web board beside it."""
    served = replace(it, troubles={})
    served = replace(served, feed=feed_of(served, report))
    with (
        _in_words(it),
        closing(Benches(it.home)) as benches,
        kept_warm(mcp_child(it.home), it.home) as mcp,
        orchestrating(served, partial(answer, served, benches, mcp), report) as loop,
    ):
        if loop is None:
            _must_be_alone(it)
            raise Unavailable("nothing was started", why="another one ended just now", fix="retry")
        visited = loop.visited
        loop.visited = lambda: visited() or mcp.busy or board is not None
        with closing(board()) if board else nullcontext():
            _until_stopped(loop, idle)


def _install(it: App, more: tuple[str, ...], *, install: bool) -> None:
    must_be_human(it.caller, "no service was changed", Right.ADMIN)
    if not install:
        place = uninstall_service(it.home, os.environ)
        show(None, f"removed {place}; the next command starts an orchestrator", as_json=False)
        return
    _must_be_alone(it)
    place = install_service(service_of(it, more), os.environ, start=True)
    told = f"installed {place}\nits words: journalctl --user -u {place.name}"
    show(None, told, as_json=False)


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
    if not stopped_service(it.home, os.environ):
        os.kill(pid, signal.SIGTERM)
    _wait(lambda: orchestrator_pid(it.home) != pid, f"orchestrator {pid} did not stop", STOPS)
    show({"pid": pid}, f"orchestrator {pid} has stopped", as_json=as_json)


def _until_stopped(loop: Loop, idle: float | None) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: loop.stop())
    report(f"orchestrator {os.getpid()} is up")
    loop.run(idle)
    report("orchestrator stops; agents keep working")


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
