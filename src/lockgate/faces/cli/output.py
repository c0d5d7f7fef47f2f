"""How commands answer: one JSON document or text on stdout, errors in three parts on stderr."""

import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Generic, TextIO, TypeVar

import click
from msgspec import Struct, field

from lockgate import __version__
from lockgate.errors import LockgateError, Refused
from lockgate.faces.cli.flags import json_option as json_option  # noqa: PLC0414 - as one of these
from lockgate.faces.words import task as words

if TYPE_CHECKING:
    from lockgate.bootstrap import App
    from lockgate.bootstrap.gates import Benches
    from lockgate.core.model.task import Task, TaskId
    from lockgate.services.task.projects import BaseConfiguration

BUG = 3
INTERRUPTED = 130
IDLE_SECONDS = 60.0  # after which an orchestrator that a command started ends
USAGE = 2


class Terminal(Struct, frozen=True):
    """Where a command's words go and where it is run from, when that is not this process's own."""

    app: "App"
    directory: Path
    stdin: str
    out: TextIO
    err: TextIO
    benches: "Benches | None" = None  # where commits are judged, if there are any yet
    afterwards: ExitStack = field(default_factory=ExitStack)  # once its answer is out
    lively: bool = False  # a person sees what goes to `err`
    columns: int = 0  # of the terminal that `out` is; 0 where it is none
    gone: Callable[[], bool] = lambda: False  # whether nobody waits for the end any more
    where: Callable[[], Path] | None = None  # on another machine: what stands for the directory


def terminal() -> Terminal | None:
    ctx = click.get_current_context(silent=True)
    return ctx.find_object(Terminal) if ctx else None


def report(text: str) -> None:
    """A line of a program that runs for long, with its time."""
    stamp = time.strftime("%Y-%m-%d %H:%M:%S%z")
    click.echo(f"{stamp} {words.one_line(text)}", err=True)


def echo(text: str, *, err: bool = False, to: Terminal | None = None, nl: bool = True) -> None:
    it = to or terminal()
    file = (it.err if err else it.out) if it else None
    click.echo(text, file=file, err=err, nl=nl)


def lively() -> bool:
    """Whether a person sees what goes to stderr."""
    it = terminal()
    return it.lively if it else sys.stderr.isatty()


def columns() -> int:
    """How wide the terminal is that stdout goes to; 0 where it goes to a pipe or a file."""
    from lockgate.faces.client import columns_of

    it = terminal()
    return it.columns if it else columns_of(1)


def is_far() -> bool:
    """Whether the caller is on another machine: a path of theirs means nothing here."""
    it = terminal()
    return it is not None and it.where is not None


def must_be_wanted() -> None:
    """Ends a command that tells what happens, once nobody listens any more."""
    it = terminal()
    if it and it.gone():
        raise click.exceptions.Exit(INTERRUPTED)


def show(facts: object, text: str, *, as_json: bool) -> None:
    if as_json:
        echo(json.dumps(facts, default=str))  # ASCII: nothing in it moves a cursor
    else:
        echo(words.safe(text))


def show_moved(
    it: "App",
    task: "Task",
    told: "Callable[[Task], str]" = words.moved_text,
    *,
    as_json: bool,
) -> None:
    """Where the task is now; on stderr what is wrong with its TASK.md, which stops no move."""
    from lockgate.services.task.views import task_facts

    trouble = it.views.task(task.id).trouble
    if trouble:
        echo(f"note: {words.one_line(trouble)}", err=True)
    show(task_facts(task), told(task), as_json=as_json)


def app() -> "App":
    it = terminal()
    return it.app if it else open_app()


@contextmanager
def afterwards() -> Generator[ExitStack]:
    """For what is tidied away in the end: nobody waits for that who was answered already."""
    it = terminal()
    if it:
        yield it.afterwards
        return
    with ExitStack() as stack:
        yield stack


def known_configuration() -> "BaseConfiguration | None":
    """The standard input that a process which runs this command for another has read already."""
    it = terminal()
    return it.app.configuration if it else None


def open_app() -> "App":
    """Imported here because some commands need no database."""
    from lockgate import bootstrap

    return bootstrap.open_app()


def named(it: "App", name: str | None) -> "TaskId":
    """The task that is meant: by the beginning of its id, or by where we are."""
    if name is None:
        return it.views.load(it.projects.task_here(here(), it.caller)).id
    return it.projects.task_named(name, it.caller)


def wake() -> None:
    """Tell the orchestrator that there is news; where none runs, start one that ends when idle."""
    alone = "LOCKGATE_NO_ORCHESTRATOR" in os.environ or "--help" in sys.argv
    from lockgate.bootstrap import home_of
    from lockgate.bootstrap.orchestrator import start_orchestrator
    from lockgate.faces import client

    if client.call(["wake"]) is None and not alone:
        start_orchestrator(home_of(os.environ), IDLE_SECONDS)


def here() -> Path:
    it = terminal()
    if it:
        return it.where() if it.where else it.directory
    try:
        return Path.cwd()
    except OSError as error:
        why, fix = "the directory that we are in is gone", "change into a directory that exists"
        raise Refused("nothing was done", why=why, fix=fix) from error


def fail(error: LockgateError, to: Terminal | None, *, as_json: bool) -> int:
    _complain(error.what, error.why, error.fix, to, as_json=as_json)
    return error.exits_with


def fail_usage(error: click.ClickException, to: Terminal | None, *, as_json: bool) -> int:
    command = (
        error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "lockgate"
    )
    fix = f"see: {command} --help"
    _complain("nothing was done", error.format_message(), fix, to, as_json=as_json)
    return USAGE


def fail_bug(error: BaseException, to: Terminal | None, *, as_json: bool) -> int:
    """Our own mistake: the traceback goes to a file, its path to the screen."""
    where = _log(error)
    why = f"this is a bug in Lockgate: {type(error).__name__}: {error}"
    _complain("the command did not finish", why, f"report it with {where}", to, as_json=as_json)
    return BUG


def _complain(what: str, why: str, fix: str, to: Terminal | None, *, as_json: bool) -> None:
    if as_json:
        echo(json.dumps({"error": {"what": what, "why": why, "fix": fix}}), to=to)
    echo(words.error_text(what, why, fix), err=True, to=to)


def _log(error: BaseException) -> str:
    from lockgate.bootstrap.rules import home_of

    lines = [
        f"lockgate {__version__}, Python {sys.version.split()[0]}, {sys.platform}",
        f"command: {' '.join(sys.argv[1:])}",
        *traceback.format_exception(error),
    ]
    try:
        directory = home_of(os.environ) / "logs"
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"bug-{os.getpid()}.log"
        path.write_text("\n".join(lines), encoding="utf-8", errors="replace")
    except OSError:
        click.echo("\n".join(lines), err=True)
        return "the text above"
    return str(path)


# Work that an interrupt ends together with all that it has started.


T = TypeVar("T")
PATIENCE = 15.0  # seconds in which what was called off ends; what does not, dies with us
NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Work(Struct, Generic[T]):
    does: Callable[[Callable[[], bool]], T]
    stop: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    answers: list[T] = field(default_factory=list[T])
    errors: list[BaseException] = field(default_factory=list[BaseException])

    def run(self) -> None:
        try:
            self.answers.append(self.does(self.stop.is_set))
        except BaseException as error:  # noqa: BLE001 - told where the work was asked for
            self.errors.append(error)
        finally:
            self.over.set()


def interruptible(does: Callable[[Callable[[], bool]], T]) -> T:
    """Its answer. It is given a way to ask whether it is still wanted.

    Its thread is not joined: where a signal interrupts that, Python takes it for ended.
    """
    elsewhere = terminal()
    if elsewhere:
        return does(elsewhere.gone)
    work = _Work(does)
    thread = threading.Thread(target=work.run, daemon=True)
    with _raising():
        thread.start()
        try:
            work.over.wait()
        except KeyboardInterrupt:
            work.stop.set()
            for number in NUMBERS:
                signal.signal(number, signal.SIG_IGN)
            work.over.wait(PATIENCE)
            raise
    if work.errors:
        raise work.errors[0]
    return work.answers[0]


@contextmanager
def _raising() -> Generator[None]:
    """A signal to end works as Ctrl-C does; only the first thread receives signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _raise) for number in NUMBERS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
