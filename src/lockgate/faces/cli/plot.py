"""Lines in a plot, as SVG text."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 60, 620, 40, 350
TICKS = 5
NICE = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
COLOURS = ("#1f6feb", "#d29922", "#8b949e", "#2da44e", "#cf222e")
STYLE = "font-family: sans-serif; font-size: 13px; fill: #57606a"

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Series:
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
        _text((LEFT, TOP - 16), title),
        *_grid(most, top),
        _text(((LEFT + RIGHT) / 2, HEIGHT - 10), x_name, "middle"),
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
        yield _text((LEFT - 8, y + 4), f"{share * top:g}", "end")
        yield _text((x, BOTTOM + 18), f"{share * most:g}", "middle")


def _line(number: int, series: Series, most: Point) -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (_at(it, most) for it in series.points))
    return f'<polyline points="{points}" fill="none" stroke="{_colour(number)}" stroke-width="2"/>'


def _legend(number: int, name: str) -> str:
    y = TOP + 16 + 18 * number
    mark = f'<path d="M{LEFT + 12} {y}h20" stroke="{_colour(number)}" stroke-width="2"/>'
    return mark + _text((LEFT + 38, y + 4), name)


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _text(place: Point, words: str, anchor: str = "start") -> str:
    x, y = place
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _at(point: Point, most: Point) -> Point:
    x, y = point[0] / most[0], point[1] / most[1]
    return LEFT + x * (RIGHT - LEFT), BOTTOM - y * (BOTTOM - TOP)
