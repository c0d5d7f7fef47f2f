"""Work that an interrupt ends together with all that it has started."""

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Generic, TypeVar

from lockgate.faces.cli.output import terminal

T = TypeVar("T")
PATIENCE = 15.0  # seconds in which what was called off ends; what does not, dies with us
NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(slots=True)
class _Work(Generic[T]):
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
    """Whoever ends us ends us as Ctrl-C does; another thread than the first hears no signals."""
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
