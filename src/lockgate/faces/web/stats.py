"""The statistics: figures of the last days as plots, each with its table and as CSV."""

import csv as tables
import io
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from markupsafe import Markup
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from lockgate.core.model.statistics import Spread
from lockgate.core.model.task import ProjectId, Status
from lockgate.faces.plot import Box, Stack, bar_plot, box_plot
from lockgate.faces.web.site import Site
from lockgate.faces.words import task as words
from lockgate.services.task.statistics import GateStats, Spent, Stats

DAY, HOUR, MINUTE = 86_400, 3600, 60
MOST, USUAL = 365, 30
Rows = tuple[tuple[str | float, ...], ...]


class Figure(Struct, frozen=True, kw_only=True):
    """One plot with the numbers that it is drawn of; `empty` is said where there are none."""

    name: str
    title: str
    head: tuple[str, ...]
    rows: Rows
    svg: Markup
    empty: str


def stats(site: Site, request: Request) -> Response:
    days, found = asked_for(site, request)
    figures = _figures(found)
    plots = figures if any(it.rows for it in figures) else []
    values = {"page": "stats", "days": days, "tiles": _tiles(found), "plots": plots}
    return site.page(request, "stats.html", values)


def csv(site: Site, request: Request) -> Response:
    name = request.path_params["name"]
    found = [it for it in _figures(asked_for(site, request)[1]) if it.name == name]
    if not found:
        return PlainTextResponse("there are no such figures", 404)
    out = io.StringIO()
    written = tables.writer(out)
    written.writerow(found[0].head)
    written.writerows([_harmless(cell) for cell in row] for row in found[0].rows)
    headers = {"content-disposition": f'attachment; filename="{name}.csv"'}
    return Response(out.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)


def asked_for(site: Site, request: Request) -> tuple[int, Stats]:
    said = request.query_params.get("days", "")
    short = said.isascii() and said.isdecimal() and len(said) < 4  # noqa: PLR2004 - up to 999
    days = min(max(1, int(said)), MOST) if short else USUAL
    project = request.query_params.get("project", "")
    known = ProjectId(project) if project else None
    return days, site.app_of(request).statistics.over(days, known)


def long(seconds: float) -> str:
    """How long something takes, in the unit that fits."""
    if seconds < MINUTE:
        return f"{seconds:.0f} s"
    if seconds < HOUR:
        return f"{seconds / MINUTE:.0f} min"
    return f"{seconds / HOUR:.1f} h" if seconds < 2 * DAY else f"{seconds / DAY:.1f} d"


def _tiles(it: Stats) -> list[tuple[str, str]]:
    first = "–" if it.first_pass is None else f"{it.first_pass:.0%}"
    each = "–" if it.per_landed is None else f"${it.per_landed.usd:.2f}"
    return [
        ("landed", str(it.landed)),
        ("dropped", str(it.dropped)),
        ("passed at the first try", first),
        ("a landed change costs", each),
        ("from start to landing, half of them within", _middle(it.lead)),
        ("you are waited for, half of the time less than", _middle(it.human_wait)),
    ]


def _figures(it: Stats) -> list[Figure]:
    status = {words.WORDS[Status(name)]: spread for name, spread in it.status.items()}
    waits = {"from start to landing": it.lead, "for a human": it.human_wait}
    return [
        _throughput(it),
        _gates(it.gates),
        _spreads("status", "Time in each state (half below / nine in ten below)", status),
        _spreads("waits", "How long it takes (half below / nine in ten below)", waits),
        _costs("agents", "Cost by agent, in USD", it.by_agent),
        _costs("projects", "Cost by project, in USD", it.by_project),
    ]


def _throughput(it: Stats) -> Figure:
    named = [(datetime.fromtimestamp(day.day * DAY, UTC).strftime("%d %b"), day) for day in it.days]
    stacks = [Stack(name, (day.landed, day.dropped)) for name, day in named]
    return _bars("throughput", "Landed and dropped a day", ("day", "landed", "dropped"), stacks)


def _gates(gates: Mapping[str, GateStats]) -> Figure:
    stacks = [Stack(name, (it.failed, it.broken, it.flaky)) for name, it in gates.items()]
    head = ("gate", "failed", "broken", "flaky")
    made = _bars("gates", "Gates that did not pass at once", head, stacks)
    rows: Rows = tuple(
        (name, it.passed, it.failed, it.broken, it.flaky) for name, it in gates.items()
    )
    return Figure(
        name=made.name,
        title=made.title,
        head=("gate", "passed", *head[1:]),
        rows=rows if made.rows else (),
        svg=made.svg,
        empty="No gate has failed.",
    )


def _spreads(name: str, title: str, spreads: Mapping[str, Spread]) -> Figure:
    known = {key: it for key, it in spreads.items() if it.n and it.p50 is not None}
    boxes = [Box(words.safe(key), it.p50 or 0.0, it.p90 or 0.0) for key, it in known.items()]
    rows: Rows = tuple((it.name, round(it.middle), round(it.most)) for it in boxes)
    svg = Markup(box_plot(title, boxes, long))  # noqa: S704 - the plot escapes its names
    return Figure(
        name=name,
        title=title,
        head=("", "half below, in seconds", "nine in ten below, in seconds"),
        rows=rows,
        svg=svg,
        empty="No task has got so far yet.",
    )


def _costs(name: str, title: str, spent: Mapping[str, Spent]) -> Figure:
    stacks = [Stack(who or "–", (it.usd,)) for who, it in spent.items()]
    made = _bars(name, title, ("", "usd"), stacks)
    rows: Rows = tuple((who or "–", round(it.usd, 2), it.tokens) for who, it in spent.items())
    return Figure(
        name=name,
        title=title,
        head=("name", "usd", "tokens"),
        rows=rows if made.rows else (),
        svg=made.svg,
        empty="No agent has reported its cost.",
    )


def _bars(name: str, title: str, head: tuple[str, ...], stacks: Sequence[Stack]) -> Figure:
    """Without rows where nothing of it happened in all that time."""
    rows: Rows = tuple((it.name, *(round(value, 2) for value in it.values)) for it in stacks)
    some = any(value for it in stacks for value in it.values)
    drawn = [Stack(words.safe(it.name), it.values) for it in stacks]
    svg = Markup(bar_plot(title, head[1:], drawn))  # noqa: S704 - the plot escapes its names
    empty = "Nothing has landed in this time."
    return Figure(
        name=name, title=title, head=head, rows=rows if some else (), svg=svg, empty=empty
    )


def _middle(spread: Spread) -> str:
    return long(spread.p50) if spread.n and spread.p50 is not None else "–"


def _harmless(cell: str | float) -> str | float:
    """A spreadsheet takes what begins so for a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@")) else cell
