"""How an action is carried out: services in threads, boxes over the screen, refusals in words."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct
from textual.app import App

from lockgate.errors import LockgateError
from lockgate.faces.tui.look import Line, Lines, cut, one, wrapped
from lockgate.faces.tui.screens.base import Face, Kit
from lockgate.faces.tui.screens.dialogs import Confirm, Write
from lockgate.faces.tui.window import Row
from lockgate.faces.words.task import SHORT, counted

T = TypeVar("T")
Deed = Callable[[Row], str]
SUMMARY = 60  # columns of a summary in a list
TMUX = frozenset({"TMUX", "TMUX_PANE"})  # of ours: a session has a tmux of its own


class Hand(Struct, frozen=True):
    """What all actions use; a refusal is said on the screen that asked."""

    app: App[Any]
    desk: Kit
    pool: Executor
    reload: Callable[[], None]
    commands: Sequence[tuple[str, str]] = ()

    def say(self, text: str, style: str = "plain") -> None:
        screen = self.app.screen
        faces = [it for it in reversed(self.app.screen_stack) if isinstance(it, Face)]
        (screen if isinstance(screen, Face) else faces[0]).say(text, style)

    async def read(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.pool, work)

    async def do(self, work: Callable[[], str]) -> bool:
        """Whether it went well; what was said of it is on the screen."""
        try:
            told = await self.read(work)
        except LockgateError as error:
            self.say(f"{error.what}: {error.why}; {error.fix}", "bad")
            return False
        self.say(told, "ok")
        self._look_again()
        return True

    def _look_again(self) -> None:
        """Where no feed brings what was done."""
        if self.desk.state.link.lost:
            self.reload()

    async def each(self, rows: Sequence[Row], deed: Deed) -> None:
        """One deed for each; the first that is refused is told, the others go on."""
        failed: list[str] = []
        told = ""
        for row in rows:
            try:
                told = await self.read(partial(deed, row))
            except LockgateError as error:
                failed.append(f"{error.what}: {error.why}; {error.fix}")
        self._look_again()
        done = len(rows) - len(failed)
        self.desk.state.marked.difference_update(row.id for row in rows)
        if failed:
            self.say(failed[0] if len(rows) == 1 else f"{done} done; {failed[0]}", "bad")
        else:
            self.say(told if len(rows) == 1 else f"{done} done", "ok")

    async def why_not(self, action: str, row: Row) -> None:
        """In the service's words: what the task waits for now."""
        label = self.desk.keys.named(action).label or action
        why = await self.read(lambda: self.desk.source.why_not(row.id))
        self.say(f"{label}: not now; {row.id}: {why}", "need")

    async def sure(self, asks: str, rows: Sequence[Row]) -> bool:
        about = [about_row(row) for row in rows]
        return await self.app.push_screen_wait(Confirm(self.desk.look, asks, about))

    async def text(self, asks: str, about: Lines = (), text: str = "") -> str:
        """What was written; empty where it was left."""
        found = await self.app.push_screen_wait(Write(self.desk.look, asks, about, text))
        return (found or "").strip()

    def outside(self, argv: Sequence[str], *, pause: bool = False) -> None:
        """Another program has the terminal until it ends; then the same row is there again."""
        kept = {name: value for name, value in os.environ.items() if name not in TMUX}
        before = signal.signal(signal.SIGINT, _left_alone)  # Ctrl-C is for that program
        try:
            with self.app.suspend():
                # Only adapters.run may use subprocess, and that gives no program the terminal.
                code = os.spawnvpe(os.P_WAIT, argv[0], list(argv), kept)  # noqa: S606  # pyright: ignore[reportDeprecated]
                if pause:
                    sys.stdout.write("\nPress Enter to come back to the board. ")
                    sys.stdout.flush()
                    sys.stdin.readline()
        finally:
            signal.signal(signal.SIGINT, before)
        if code:
            self.say(f"{one(argv[0])} ended with {code}", "dim")
        self.reload()

    def wrapped(self, text: str) -> Lines:
        return wrapped(text, max(20, min(104, self.app.size.width - 8)))


def _left_alone(*_: object) -> None:
    """As a handler, not by ignoring the signal: that the other program would inherit."""


def patch_of(row: Row) -> str:
    return row.need.patch if row.need is not None else ""


def gate_of(row: Row) -> str:
    """The gate that waits for a yes; empty where the landing does."""
    return next((it.gate for it in row.gates if it.state == "waiting"), "")


def about_row(row: Row) -> Line:
    """A task in a list of those that something is to be done with."""
    patch = f"  change {patch_of(row)[:SHORT]}" if patch_of(row) else ""
    lines = f" +{row.size.added} -{row.size.removed}"
    size = f"  {counted(row.size.files, 'file')}{lines}" if row.size.files else ""
    kind = f"  {row.need.kind}" if row.need is not None else ""
    summary = cut(one(row.summary), SUMMARY)
    return ((row.id, "head"), (f"{kind}{patch}{size}", "plain"), (f"  {summary}", "dim"))
