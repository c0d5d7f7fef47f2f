"""A board on a home, driven by keys, and what is on its screen."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.pilot import Pilot

from lockgate.bootstrap import App
from lockgate.faces.tui.app import BoardApp, make_desk
from lockgate.faces.tui.look import Look
from lockgate.faces.tui.screens.base import Face
from lockgate.faces.tui.window import Row

PATIENCE = float(os.environ.get("PATIENCE", "60"))  # seconds, on a busy machine
DARK = Look()
Story = Callable[["Driven"], Awaitable[None]]


class Driven:
    """What a test does with a board, and sees on it. `keys` counts what was pressed."""

    def __init__(self, app: BoardApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot, self.keys = app, pilot, 0

    async def press(self, *keys: str) -> None:
        for key in keys:
            self.keys += 1
            await self.pilot.press(key)

    async def write(self, text: str) -> None:
        """A text into the box that is open, by its keys; they are not counted."""
        for key in text:
            await self.pilot.press(key)

    async def until(self, holds: Callable[[], object], what: str = "") -> None:
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, f"{what}\n{self.text}"
            await self.pilot.pause(0.03)

    async def sees(self, *texts: str) -> None:
        await self.until(lambda: all(it in self.text for it in texts), f"waits for {texts}")

    async def no_longer(self, text: str) -> None:
        await self.until(lambda: text not in self.text, f"waits until {text} is gone")

    async def selects(self, name: str) -> Row:
        """The cursor at the task whose id begins so."""
        state = self.app.desk.state
        await self.until(lambda: any(it.id.startswith(name) for it in state.window.rows), name)
        state.selected = next(it.id for it in state.window.rows if it.id.startswith(name))
        assert isinstance(self.app.screen, Face)
        self.app.screen.news(set())
        await self.pilot.pause()
        row = state.window.row(state.selected)
        assert row is not None
        return row

    @property
    def lines(self) -> list[str]:
        return [it.text for it in self.app.screen._compositor.render_strips()]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def notice(self) -> str:
        faces = [it for it in self.app.screen_stack if isinstance(it, Face)]
        return faces[-1].said


def drive(
    it: App,
    story: Story,
    *,
    where: Path,
    size: tuple[int, int] = (80, 24),
    look: Look = DARK,
    read_only: bool = False,
    everywhere: bool = False,
) -> None:
    async def run() -> None:
        desk = make_desk(it, where, look, everywhere=everywhere, read_only=read_only)
        app = BoardApp(desk, (("status", "Show what needs you."),))
        async with app.run_test(size=size) as pilot:
            driven = Driven(app, pilot)
            await driven.until(lambda: desk.state.loaded, "the first page")
            await story(driven)

    asyncio.run(run())
