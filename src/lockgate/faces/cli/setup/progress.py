"""A line on the terminal that moves while something runs: what, for how long, its last words."""

import shutil
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

import click
from msgspec import Struct, field

from lockgate.bootstrap.gates import told_as_it_comes
from lockgate.faces.words.board import cut
from lockgate.faces.words.task import one_line

Cancelled = Callable[[], bool]
T = TypeVar("T")
EVERY = 0.5  # seconds
LAST = 2000  # bytes of output that are looked at


class Line(Struct):
    """Drawn again and again, by a thread of its own."""

    what: str = ""
    since: float = field(default_factory=time.monotonic)
    tail: bytes = b""
    over: threading.Event = field(default_factory=threading.Event)

    def say(self, text: str) -> None:
        self.what, self.since, self.tail = one_line(text), time.monotonic(), b""

    def hear(self, chunk: bytes) -> None:
        self.tail = (self.tail + chunk)[-LAST:]

    def drawn(self, width: int) -> str:
        words = [it.strip() for it in self.tail.decode(errors="replace").splitlines()]
        last = next((it for it in reversed(words) if it), "")
        elapsed = f"{time.monotonic() - self.since:.0f} s"
        told = (f"▸ {elapsed}  {cut(self.what, width // 3)}", one_line(last))
        return cut(" │ ".join(filter(None, told)), width - 1)

    def draw(self) -> None:
        while not self.over.wait(EVERY):
            width = shutil.get_terminal_size().columns
            click.echo(f"\r\x1b[K{self.drawn(width)}", err=True, nl=False)
        click.echo("\r\x1b[K", err=True, nl=False)

    def listening(self, work: Callable[[Cancelled], T]) -> Callable[[Cancelled], T]:
        """The same work, whose output is heard by the thread that does it."""

        def heard(cancelled: Cancelled) -> T:
            with told_as_it_comes(self.hear):
                return work(cancelled)

        return heard


@contextmanager
def progress() -> Generator[Line]:
    """Shown only where somebody watches."""
    line = Line()
    if not sys.stderr.isatty():
        yield line
        return
    thread = threading.Thread(target=line.draw, daemon=True)
    thread.start()
    try:
        yield line
    finally:
        line.over.set()
        thread.join()
