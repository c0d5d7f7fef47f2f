"""Plots as SVG text: lines for a file of its own, bars and boxes for a page.

What is for a page has classes in place of colours: the page's sheet colours it, also in the dark.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape

from msgspec import Struct

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


# For a page: bars over days or names, and boxes of how long things take.


class Stack(Struct, frozen=True):
    """What stands at one place of the x axis; a value for each name of the plot."""

    name: str
    values: Sequence[float]


class Box(Struct, frozen=True):
    """How a measure is spread: half of all are below `middle`, nine in ten below `most`."""

    name: str
    middle: float
    most: float


BARS_HIGH, BARS_WIDE, BARS_LEFT, BARS_TOP = 150, 520, 44, 26
ROW = 30
NAMES_WIDE = 130
LABELS = 7  # at most, below the x axis
Say = Callable[[float], str]


def bar_plot(title: str, names: Sequence[str], stacks: Sequence[Stack]) -> str:
    """One bar for each stack, its values on top of each other."""
    top = _ceiling([sum(it.values) for it in stacks])
    height = BARS_TOP + BARS_HIGH + 24
    each = (BARS_WIDE - BARS_LEFT - 6) / max(1, len(stacks))
    parts = [
        _start(title, height),
        *_bar_grid(top),
        *_bar_legend(names),
        *(_bar(n, it, each, top) for n, it in enumerate(stacks)),
        *_bar_names(stacks, each),
        "</svg>",
    ]
    return "".join(parts)


def box_plot(title: str, boxes: Sequence[Box], say: Say) -> str:
    """A row for each: a bar to the middle, a thinner one to what nine in ten stay below."""
    top = max((it.most for it in boxes), default=0.0) or 1.0
    height = ROW * len(boxes) + 6
    wide = BARS_WIDE - NAMES_WIDE - 90
    rows = (
        f'<g class="c0" transform="translate(0 {n * ROW})"><text class="ink" x="{NAMES_WIDE - 8}"'
        f' y="19" text-anchor="end" font-size="13">{escape(it.name)}</text>'
        f'<rect class="fill" opacity="0.35" x="{NAMES_WIDE}" y="10"'
        f' width="{max(1.0, it.most / top * wide):.1f}" height="10" rx="2"/>'
        f'<rect class="fill" x="{NAMES_WIDE}" y="6"'
        f' width="{max(1.0, it.middle / top * wide):.1f}" height="18" rx="2"/>'
        f'<text class="faint" x="{NAMES_WIDE + it.most / top * wide + 6:.1f}" y="19"'
        f' font-size="12">{escape(say(it.middle))} / {escape(say(it.most))}</text></g>'
        for n, it in enumerate(boxes)
    )
    return f"{_start(title, height)}{''.join(rows)}</svg>"


def _start(title: str, height: float) -> str:
    size = f'viewBox="0 0 {BARS_WIDE} {height}"'
    return f'<svg class="plot" {size} role="img" aria-label="{escape(title)}">'


def _bar_grid(top: float) -> Iterator[str]:
    for tick in (0, 1, 2):
        y = BARS_TOP + BARS_HIGH - tick / 2 * BARS_HIGH
        yield f'<path class="rule" d="M{BARS_LEFT} {y:.1f}H{BARS_WIDE}"/>'
        yield (
            f'<text class="faint" x="{BARS_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end"'
            f' font-size="12">{top * tick / 2:g}</text>'
        )


def _bar_legend(names: Sequence[str]) -> Iterator[str]:
    x = float(BARS_LEFT)
    for number, name in enumerate(names):
        yield (
            f'<g class="c{number % 6}"><rect class="fill" x="{x:.1f}" y="4" width="11" height="11"'
            f' rx="2"/><text class="faint" x="{x + 16:.1f}" y="14" font-size="12">'
            f"{escape(name)}</text></g>"
        )
        x += 30 + 7.0 * len(name)


def _bar(number: int, stack: Stack, each: float, top: float) -> str:
    x, y = BARS_LEFT + 3 + number * each, float(BARS_TOP + BARS_HIGH)
    parts: list[str] = []
    for place, value in enumerate(stack.values):
        high = value / top * BARS_HIGH
        y -= high
        if value:
            parts.append(
                f'<g class="c{place % 6}"><rect class="fill" x="{x + each * 0.12:.1f}" y="{y:.1f}"'
                f' width="{each * 0.76:.1f}" height="{high:.1f}"/></g>'
            )
    return "".join(parts)


def _bar_names(stacks: Sequence[Stack], each: float) -> Iterator[str]:
    step = max(1, math.ceil(len(stacks) / LABELS))
    for number in range(0, len(stacks), step):
        x = BARS_LEFT + 3 + (number + 0.5) * each
        yield (
            f'<text class="faint" x="{x:.1f}" y="{BARS_TOP + BARS_HIGH + 17}"'
            f' text-anchor="middle" font-size="12">{escape(stacks[number].name)}</text>'
        )
