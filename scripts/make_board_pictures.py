"""Writes the pictures of the board for the README and docs/board.md, from the demo's own home.

The demo's agents work until all of them wait for a human; that is what the pictures show.
"""

import asyncio
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from lockgate.bootstrap import App, make_demo_repository, open_app
from lockgate.bootstrap.assistants import mcp_child
from lockgate.bootstrap.gates import Benches
from lockgate.bootstrap.orchestrator import feed_of, orchestrating
from lockgate.core.model.task import Status, TaskId
from lockgate.faces.cli.serve import answer
from lockgate.faces.demo.story import GRACE, TASKS
from lockgate.faces.tui.app import BoardApp, make_desk
from lockgate.faces.tui.look import Look
from lockgate.services.orchestrator.loop import Loop
from lockgate.services.task.tasks import NewTask

PATIENCE = 180.0
RESTS = 0.7  # seconds for a screen to have read and drawn all
TARGET = Path(__file__).parent.parent / "docs" / "board"
AGE = 120.0  # seconds that the newest event is old in a picture
LATER = {
    "send-mail": "Send a mail after each order",
    "search-accents": "Make the search ignore accents",
}
SUFFIXES = ("3019", "9ee8", "0c1e", "91b0", "77d2")  # in place of those that chance gave the tasks
# A picture's name, its size, its colours, and the keys that lead there.
PICTURES = (
    ("board", (140, 36), "dark", ()),
    ("board-light", (140, 36), "light", ()),
    ("small", (80, 24), "dark", ()),
    ("inbox", (100, 20), "dark", ("2",)),
    ("review", (140, 36), "dark", ("enter", "]", "j", "j", "j")),
    ("queue", (100, 20), "dark", ("3",)),
    ("statistics", (100, 30), "dark", ("4",)),
    ("events", (110, 24), "dark", ("5",)),
    ("keys", (100, 40), "dark", ("?",)),
)


def main() -> None:
    TARGET.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lockgate-pictures-") as name:
        place = Path(name)
        root = place / "shop"
        make_demo_repository(root)
        app = open_app({"LOCKGATE_HOME": str(place / "home"), "HOME": name})
        app.configuration.agree(app.projects.here(root))
        try:
            asyncio.run(_all_pictures(app, root))
        finally:
            app.agents.end_all(GRACE)
            app.close()


async def _all_pictures(app: App, root: Path) -> None:
    """With the feed open, so that no picture says that there is none."""
    served = replace(app, troubles={})
    served = replace(served, feed=feed_of(served, print))
    with (
        closing(mcp_child(app.home)) as mcp,
        orchestrating(served, partial(answer, served, Benches(app.home), mcp), print) as loop,
    ):
        if loop is None:
            sys.exit("another orchestrator serves this home")
        ids = _worked(served, root, loop)
        wanted = sys.argv[1:]
        for name, size, colours, keys in PICTURES:
            if not wanted or name in wanted:
                svg = await _picture(served, root, Look(colours), (size, keys))
                (TARGET / f"{name}.svg").write_text(_plain(svg, ids), encoding="utf-8")
                print(f"{TARGET / name}.svg")


def _worked(app: App, root: Path, loop: Loop) -> list[TaskId]:
    """The demo's tasks, once each waits for a human."""
    project = app.projects.here(root)
    asked = [NewTask(branch=branch, summary=text) for branch, text in TASKS.items()]
    ids = [app.tasks.create(project, it, app.caller).id for it in asked]
    ids += [app.tasks.create(project, it, app.caller).id for it in _later(ids)]
    end = time.monotonic() + PATIENCE
    while not all(_waits(app, it) for it in ids[: len(TASKS)]):
        if time.monotonic() > end:
            sys.exit(f"they did not all come to wait: {[app.views.load(it).status for it in ids]}")
        loop.turn()
        loop.wait(0.1)
    return ids


def _later(ids: list[TaskId]) -> Iterator[NewTask]:
    """Tasks that nobody has started yet."""
    for branch, text in LATER.items():
        yield NewTask(branch=branch, summary=text, depends_on=(ids[0],), auto_start=False)


def _waits(app: App, id: TaskId) -> bool:
    task = app.views.load(id)
    return bool(task.waiting) or task.status is Status.REVIEWING


async def _picture(
    app: App, root: Path, look: Look, shot: tuple[tuple[int, int], tuple[str, ...]]
) -> str:
    size, keys = shot
    desk = make_desk(app, root, look)
    newest = max(it.time for it in app.views.events(None, 0, 10_000))
    desk.now = lambda: newest + AGE
    board = BoardApp(desk)
    board.title = "lockgate"
    async with board.run_test(size=size) as pilot:
        await pilot.pause(RESTS)
        for key in keys:
            await pilot.press(key)
            await pilot.pause(RESTS)
        return board.export_screenshot(title="lockgate")


def _plain(svg: str, ids: list[TaskId]) -> str:
    """The same each time, with no font from elsewhere, and spaces that every viewer keeps."""
    for id, suffix in zip(ids, SUFFIXES, strict=True):
        svg = svg.replace(id, f"{id[:-4]}{suffix}")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"terminal-\d+", "terminal", svg)
    svg = svg.replace("Fira Code", "DejaVu Sans Mono")
    return re.sub(
        r'<text ([^>]*?)x="([\d.]+)"([^>]*?)textLength="([\d.]+)"([^>]*)>((?:&#160;)+)',
        _shifted,
        svg,
    )


def _shifted(found: re.Match[str]) -> str:
    """A text that begins with spaces begins behind them."""
    spaces = found[6].count("&#160;") * CELL
    x, length = float(found[2]) + spaces, float(found[4]) - spaces
    if length <= 0:
        return found[0]
    return f'<text {found[1]}x="{x:g}"{found[3]}textLength="{length:g}"{found[5]}>'


CELL = 12.2  # the width of a character in what Rich exports

if __name__ == "__main__":
    main()
