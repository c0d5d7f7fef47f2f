"""The board beside a bare Textual app: first paint, a key, an event, what it uses while idle."""

import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from textual.app import App, ComposeResult
from textual.events import Key
from textual.widgets import Static

from bench.harness import AtMost, Measure, main, say
from bench.home import add_task, make_home
from bench.listing import fill
from lockgate.bootstrap import open_app
from lockgate.faces.tui.app import BoardApp, make_desk
from lockgate.faces.tui.look import Look

MANY = 100_000
STARTS = 3
KEYS = 40
IDLE = 3.0  # seconds
SIZE = (140, 40)
PATIENCE = 60.0
ME = "bench.board"


class Painted:
    """When the screen was last painted; mixed into an app."""

    at = 0.0

    def post_display_hook(self) -> None:
        self.at = time.perf_counter()


class Bare(Painted, App[None]):
    """One text that a key changes: what Textual takes by itself."""

    count = 0

    def compose(self) -> ComposeResult:
        yield Static("hello", id="it")

    def on_key(self, event: Key) -> None:
        del event
        self.news()

    def news(self) -> None:
        self.count += 1
        self.query_one("#it", Static).update(f"hello {self.count}")


class Ours(Painted, BoardApp):
    """The board, on a home with many tasks."""


def bench(where: Path) -> list[Measure]:
    say("\nboard")
    say(
        f"  {MANY} tasks, {SIZE[0]} x {SIZE[1]}; each app in a process of its own, {STARTS} of each"
    )
    app, project = make_home(where)
    fill(where / "home" / "lockgate.db", add_task(app, project), MANY - 1)
    app.close()
    runs: dict[str, list[dict[str, float]]] = {"board": [], "bare": []}
    for _ in range(STARTS):
        for kind, found in runs.items():
            found.append(_run(kind, where))
    return [
        _measure("board: first paint", "first", 4.0, runs),
        _measure("board: key to paint", "key", 6.0, runs),
        _measure("board: event to paint", "event", 12.0, runs),
        Measure(
            name=f"board: processor in idle, {MANY:,} tasks",
            ours=median(it["idle"] for it in runs["board"]),
            peer="a second",
            theirs=1.0,
            target=AtMost(0.005),
        ),
        _measure("board: memory (ms = MB)", "memory", 2.0, runs),
    ]


def _measure(name: str, of: str, times: float, runs: dict[str, list[dict[str, float]]]) -> Measure:
    ours, theirs = (median(it[of] for it in runs[kind]) for kind in ("board", "bare"))
    return Measure(
        name=f"{name}, {MANY:,} tasks",
        ours=ours,
        peer="bare Textual app",
        theirs=max(theirs, 1e-6),
        target=AtMost(times),
    )


def _run(kind: str, where: Path) -> dict[str, float]:
    """The figures of one app, from a process of its own; its start counts from before that."""
    begun = time.time()
    done = subprocess.run(
        [sys.executable, "-m", ME, kind, str(where), str(begun)],
        capture_output=True,
        check=True,
        cwd=Path(__file__).parent.parent,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


# In that process.


async def _figures(
    app: Any,  # noqa: ANN401 - either of the two
    news: Callable[[], None],
    ready: Callable[[], bool],
    begun: float,
) -> dict[str, float]:
    async with app.run_test(size=SIZE) as pilot:
        await _until(ready)
        first = time.time() - begun
        keys = [await _paint(app, partial(app.simulate_key, "jk"[n % 2])) for n in range(KEYS)]
        events = [await _paint(app, news) for _ in range(KEYS)]
        await pilot.pause(1.0)
        spent = time.process_time()
        await asyncio.sleep(IDLE)
        idle = (time.process_time() - spent) / IDLE
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 / 1000
    keys.sort()
    return {
        "first": first,
        "key": keys[int(0.95 * KEYS)],
        "event": median(events),
        "idle": idle,
        "memory": memory,
    }


async def _paint(app: Any, act: Callable[[], object]) -> float:  # noqa: ANN401 - as above
    """From the act until the screen is painted."""
    begin = time.perf_counter()
    act()
    await _until(lambda: app.at > begin)
    seconds: float = app.at - begin
    await asyncio.sleep(0.06)  # the next one finds it at rest
    return seconds


async def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError
        await asyncio.sleep(0.001)


def _board(where: Path, begun: float) -> dict[str, float]:
    it = open_app({"LOCKGATE_HOME": str(where / "home")})
    desk = make_desk(it, where / "repository", Look(), everywhere=True)
    app = Ours(desk)
    state = desk.state
    seq = [10**9]

    def news() -> None:
        row = it.boards.row(state.window.rows[0].id) if not cached else None
        if row is not None:
            cached.append(row.facts())
        seq[0] += 1
        event = {"seq": seq[0], "time": time.time(), "task": state.window.rows[0].id}
        told = {**event, "type": "word.said", "prev": "", "data": {"text": str(seq[0])}}
        facts = {**cached[0], "usd": float(seq[0] % 100), "updated": time.time()}
        app._hand_over({"event": told, "row": facts, "need": None})  # noqa: SLF001 - as the feed does

    cached: list[dict[str, object]] = []
    return asyncio.run(_figures(app, news, lambda: state.loaded and app.at > 0, begun))


def _bare(begun: float) -> dict[str, float]:
    app = Bare()
    return asyncio.run(_figures(app, app.news, lambda: app.at > 0, begun))


if __name__ == "__main__":
    if len(sys.argv) == 4:  # noqa: PLR2004 - what, where, since when
        kind, place, since = sys.argv[1:]
        figures = _bare(float(since)) if kind == "bare" else _board(Path(place), float(since))
        print(json.dumps(figures))
    else:
        main(bench)
