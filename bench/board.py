"""The board beside a bare Textual app: first paint, a key, an event, what it uses while idle."""

import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from textual.app import App, ComposeResult
from textual.events import Key
from textual.widgets import Static

from bench.harness import BUILD, AtMost, Measure, main, say

STARTS = 3
KEYS = 40
IDLE = 5.0  # seconds
SIZE = (140, 40)
PATIENCE = 60.0
ME = "bench.board"
PEER = "with few tasks"
Figures = dict[str, dict[str, float]]
# What is compared, and how many times a bare app's it may be. Processor time does not depend on
# what else the machine does.
RATIOS = (
    ("first paint", "first", 4.0),
    ("first paint, processor", "first_cpu", 4.0),
    ("key to paint, p95", "key", 6.0),
    ("key to paint, p95, processor", "key_cpu", 6.0),
    ("event to paint", "event", 12.0),
    ("event to paint, processor", "event_cpu", 12.0),
    ("memory (ms = MB)", "memory", 2.0),
)
BUDGETS = (
    ("first paint", "first", 0.8),
    ("key to paint, p95", "key", 0.05),
    ("event to paint", "event", 0.15),
    ("processor of a second of idleness", "idle", 0.005),
    ("memory (ms = MB)", "memory", 0.12),
)


class Painted:
    """When the screen was last painted; mixed into an app."""

    at = 0.0
    spent = 0.0  # of the processor, until then

    def post_display_hook(self) -> None:
        self.at, self.spent = time.perf_counter(), time.process_time()


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


def bench(where: Path) -> list[Measure]:
    del where
    from bench.large import EVENTS, FEW, MANY, large_home  # noqa: PLC0415 - a bare app does without

    say("\nboard")
    say(f"  {MANY:,} tasks and {MANY * EVENTS:,} events, beside {FEW:,} and {FEW * EVENTS:,}")
    say(f"  {SIZE[0]} x {SIZE[1]}; each app in a process of its own, {STARTS} of each")
    homes = {"board": large_home(MANY), "few": large_home(FEW), "bare": BUILD}
    runs: dict[str, list[dict[str, float]]] = {kind: [] for kind in homes}
    for _ in range(STARTS):
        for kind, found in runs.items():
            found.append(_run(kind, homes[kind]))
    figures = {
        kind: {name: median(it[name] for it in found) for name in found[0]}
        for kind, found in runs.items()
    }
    return [*_beside(figures), *(_budget(figures["board"], *it) for it in BUDGETS)]


def _beside(figures: Figures) -> Iterator[Measure]:
    """As ratios: to what Textual takes by itself, and to the same board with few tasks."""
    for name, of, most in RATIOS:
        for peer, kind, times in (("bare Textual app", "bare", most), (PEER, "few", 1.5)):
            yield Measure(
                name=f"board: {name}",
                ours=figures["board"][of],
                peer=peer,
                theirs=max(figures[kind][of], 1e-6),
                target=AtMost(times),
            )


def _budget(figures: dict[str, float], name: str, of: str, budget: float) -> Measure:
    return Measure(
        name=f"board: {name}", ours=figures[of], peer="budget", theirs=budget, target=AtMost(1.0)
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
        first, first_cpu = time.time() - begun, time.process_time()
        await pilot.pause(1.0)
        keys = [await _paint(app, partial(app.simulate_key, "jk"[n % 2])) for n in range(KEYS)]
        events = [await _paint(app, news) for _ in range(KEYS)]
        await pilot.pause(1.0)
        spent = time.process_time()
        await asyncio.sleep(IDLE)
        idle = (time.process_time() - spent) / IDLE
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 / 1000
    late = int(0.95 * KEYS)
    return {
        "first": first,
        "first_cpu": first_cpu,
        "key": sorted(wall for wall, _ in keys)[late],
        "key_cpu": sorted(cpu for _, cpu in keys)[late],
        "event": median(wall for wall, _ in events),
        "event_cpu": median(cpu for _, cpu in events),
        "idle": idle,
        "memory": memory,
    }


async def _paint(app: Any, act: Callable[[], object]) -> tuple[float, float]:  # noqa: ANN401 - as above
    """From the act until the screen is painted: by the clock, and of the processor."""
    begin, spent = time.perf_counter(), time.process_time()
    act()
    await _until(lambda: app.at > begin)
    found = (app.at - begin, app.spent - spent)
    await asyncio.sleep(0.06)  # the next one finds it at rest
    return found


async def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError
        await asyncio.sleep(0.001)


def _board(where: Path, begun: float) -> dict[str, float]:
    from lockgate.bootstrap import open_app  # noqa: PLC0415 - as above
    from lockgate.faces.tui.app import BoardApp, make_desk  # noqa: PLC0415
    from lockgate.faces.tui.look import Look  # noqa: PLC0415

    class Ours(Painted, BoardApp):
        """The board, on a home with many tasks."""

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
