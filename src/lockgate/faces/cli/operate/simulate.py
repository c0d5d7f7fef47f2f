"""`lockgate queue simulate`: what the merge train does with changes that we make up."""

import math
import random
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

import click
from msgspec import Struct

from lockgate.core.config.settings import MergeSettings
from lockgate.errors import Refused
from lockgate.faces.cli.output import json_option, show
from lockgate.faces.words import task as words
from lockgate.services.train.simulator import (
    Scenario,
    Simulated,
    chain_throughput,
    serial_throughput,
    simulate,
)

# Lines in a plot, as SVG text.


WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 60, 620, 40, 350
TICKS = 5
NICE = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
COLOURS = ("#1f6feb", "#d29922", "#8b949e", "#2da44e", "#cf222e")
STYLE = "font-family: sans-serif; font-size: 13px; fill: #57606a"

Point = tuple[float, float]


class Series(Struct, frozen=True):
    name: str
    points: Sequence[Point]


def line_plot(names: tuple[str, str], series: Sequence[Series]) -> str:
    """`names` are those of the plot and of its x axis; both axes begin at 0."""
    title, x_name = names
    most = _ceiling([x for it in series for x, _ in it.points])
    top = _ceiling([y for it in series for _, y in it.points])
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<g style="{STYLE}">',
        _label((LEFT, TOP - 16), title),
        *_grid(most, top),
        _label(((LEFT + RIGHT) / 2, HEIGHT - 10), x_name, "middle"),
        *(_line(number, it, (most, top)) for number, it in enumerate(series)),
        *(_legend(number, it.name) for number, it in enumerate(series)),
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _ceiling(values: Sequence[float]) -> float:
    """The next number above all of them that five ticks divide well."""
    highest = max(values, default=0.0) or 1.0
    unit = 10.0 ** math.floor(math.log10(highest))
    return next(it * unit for it in NICE if it * unit >= highest)


def _grid(most: float, top: float) -> Iterator[str]:
    for tick in range(TICKS + 1):
        share = tick / TICKS
        x, y = _at((share * most, share * top), (most, top))
        yield f'<path d="M{LEFT} {y:.1f}H{RIGHT}" stroke="#d0d7de" stroke-width="1"/>'
        yield _label((LEFT - 8, y + 4), f"{share * top:g}", "end")
        yield _label((x, BOTTOM + 18), f"{share * most:g}", "middle")


def _line(number: int, series: Series, most: Point) -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (_at(it, most) for it in series.points))
    return f'<polyline points="{points}" fill="none" stroke="{_colour(number)}" stroke-width="2"/>'


def _legend(number: int, name: str) -> str:
    y = TOP + 16 + 18 * number
    mark = f'<path d="M{LEFT + 12} {y}h20" stroke="{_colour(number)}" stroke-width="2"/>'
    return mark + _label((LEFT + 38, y + 4), name)


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _label(place: Point, words: str, anchor: str = "start") -> str:
    x, y = place
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _at(point: Point, most: Point) -> Point:
    x, y = point[0] / most[0], point[1] / most[1]
    return LEFT + x * (RIGHT - LEFT), BOTTOM - y * (BOTTOM - TOP)


DEFAULTS = MergeSettings()
MOST = 64


def a_rate(_ctx: click.Context, _param: click.Parameter, value: float) -> float:
    if math.isnan(value):
        raise click.BadParameter("nan is not a number from 0 up to 1.")
    return value


@click.command("simulate")
@click.option("--changes", default=500, show_default=True, type=click.IntRange(1, 20_000))
@click.option(
    "--failure-rate",
    default=0.1,
    show_default=True,
    callback=a_rate,
    type=click.FloatRange(0, 1, max_open=True),
    help="The chance that a change fails on a good target.",
)
@click.option(
    "--window",
    default=DEFAULTS.window,
    show_default=True,
    type=click.IntRange(1, MOST),
    help="Candidates that are tested at once.",
)
@click.option(
    "--batch",
    default=DEFAULTS.batch,
    show_default=True,
    type=click.IntRange(1, MOST),
    help="Changes in one candidate.",
)
@click.option("--early", is_flag=True, help="Failures show at any moment, not at a test's end.")
@click.option("--seed", default=1, show_default=True, type=int, help="The same gives the same.")
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Draw it here too.")
@json_option
def simulate_queue(
    *,
    changes: int,
    failure_rate: float,
    window: int,
    batch: int,
    early: bool,
    seed: int,
    svg: Path | None,
    as_json: bool,
) -> None:
    """Run the queue's planner on made-up changes, and compare it with others.

    The changes never run out and all tests take the same time, T. The serial queue tests one change
    after the other; the chain is a train of single changes that starts again behind a failure.
    """
    scenario = Scenario(
        changes=changes, failure_rate=failure_rate, window=window, batch=batch, early=early
    )
    done = _simulated(scenario, seed)
    if svg:
        _write(svg, _picture(scenario, done))
    show(_facts(scenario, done), _text(scenario, done), as_json=as_json)


def picture(scenario: Scenario, seed: int) -> str:
    return _picture(scenario, _simulated(scenario, seed))


def _simulated(scenario: Scenario, seed: int) -> Simulated:
    return simulate(scenario, random.Random(seed).random)  # noqa: S311 - a simulation


def _picture(scenario: Scenario, done: Simulated) -> str:
    """Landings over time; the formulas are straight lines."""
    end = done.elapsed
    p, window = scenario.failure_rate, scenario.window
    landed = [(time, float(count)) for count, (time, _) in enumerate(done.landed, start=1)]
    return line_plot(
        (f"Landed, {p:.0%} of the changes fail, window {window}", "time in T"),
        (
            Series("the train", [(0.0, 0.0), *landed]),
            Series("chain formula", [(0.0, 0.0), (end, end * chain_throughput(p, window))]),
            Series("serial queue", [(0.0, 0.0), (end, end * serial_throughput(p))]),
        ),
    )


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        what, why = "the plot was not written", error.strerror or str(error)
        raise Refused(what, why=f"{path}: {why}", fix="name a file that can be written") from error


def _facts(scenario: Scenario, done: Simulated) -> dict[str, object]:
    chain = chain_throughput(scenario.failure_rate, scenario.window)
    serial = serial_throughput(scenario.failure_rate)
    return {
        "landed": len(done.landed),
        "dropped": len(done.dropped),
        "elapsed": done.elapsed,
        "tests": done.tests,
        "cancelled": done.cancelled,
        "throughput": done.throughput,
        "serial": serial,
        "chain": chain,
        "times_serial": done.throughput / serial,
        "times_chain": done.throughput / chain,
        "broken_promises": list(done.broken_promises),
    }


def _text(scenario: Scenario, done: Simulated) -> str:
    chain = chain_throughput(scenario.failure_rate, scenario.window)
    serial = serial_throughput(scenario.failure_rate)
    rows = [
        ("", "LANDED PER T", "THE TRAIN IS"),
        ("the train", f"{done.throughput:.2f}", ""),
        ("chain formula", f"{chain:.2f}", f"{done.throughput / chain:.2f} x"),
        ("serial queue", f"{serial:.2f}", f"{done.throughput / serial:.2f} x"),
    ]
    ended = f"{len(done.landed)} landed and {len(done.dropped)} dropped in {done.elapsed:.1f} T"
    cost = f"{done.tests} tests, {done.cancelled} of them cancelled"
    broken = [f"broken: {it}" for it in done.broken_promises]
    return "\n".join([words.table(rows), "", f"{ended}; {cost}", *broken])
