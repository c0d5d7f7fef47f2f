"""The statistics as text for people, and as rows for a table of their own."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from lockgate.core.model.statistics import Spread
from lockgate.faces.words.board import age
from lockgate.faces.words.task import counted, one_line, table
from lockgate.services.task.statistics import Spent, Stats

FIRST_DAY = datetime(1970, 1, 1, tzinfo=UTC)
Row = tuple[str, str, str, float]  # what it is of, whose, which figure, and the figure

Rows = Iterator[Row]
HEAD = ("what", "label", "figure", "value")


def stats_text(seen: Stats) -> str:
    days = len(seen.days)
    first = f"{seen.first_pass:.0%}" if seen.first_pass is not None else "not known"
    lines = [
        f"the last {counted(days, 'day')}: {seen.landed} landed, {seen.dropped} dropped",
        f"passed at the first try: {first}",
        f"from created to landed: {_spread(seen.lead)}",
        f"waited for a human: {_spread(seen.human_wait)}",
    ]
    if seen.per_landed:
        lines.append(f"cost of a landed change: {_spent(seen.per_landed)}")
    unmeasured = sum(it.unmeasured for it in seen.gates.values())
    every = unmeasured + sum(it.measured for it in seen.gates.values())
    if every:
        lines.append(
            f"changes of tests whose strength could not be measured: {unmeasured} of {every}"
        )
    status = [(name, _spread(it)) for name, it in seen.status.items()]
    lines += _part("TIME IN", ("STATUS", "TOOK"), status)
    gates = [
        (
            one_line(name),
            str(it.passed),
            str(it.failed),
            str(it.broken),
            str(it.flaky),
            f"{it.seconds:.1f}s" if it.seconds is not None else "",
        )
        for name, it in seen.gates.items()
    ]
    lines += _part("GATES", ("GATE", "PASSED", "FAILED", "BROKEN", "FLAKY", "A PASS TOOK"), gates)
    cost = [(one_line(who) or "not known", _spent(it)) for who, it in seen.by_agent.items()]
    lines += _part("COST BY AGENT", ("AGENT", "COST"), cost)
    lines += _part(
        "COST BY ROLE", ("ROLE", "COST"), [(k, _spent(v)) for k, v in seen.by_role.items()]
    )
    projects = [(one_line(name), _spent(it)) for name, it in seen.by_project.items()]
    lines += _part("COST BY PROJECT", ("PROJECT", "COST"), projects)
    crashes = [(one_line(who) or "not known", str(n)) for who, n in seen.crashes.items()]
    return "\n".join((*lines, *_part("CRASHES", ("AGENT", "TIMES"), crashes)))


def stats_rows(seen: Stats) -> Rows:
    """Every figure in a row of its own, for a spreadsheet."""
    for day in seen.days:
        date = (FIRST_DAY + timedelta(days=day.day)).strftime("%Y-%m-%d")
        yield "day", date, "landed", day.landed
        yield "day", date, "dropped", day.dropped
    yield from _spread_rows("lead", "", seen.lead)
    yield from _spread_rows("human wait", "", seen.human_wait)
    for name, spread in seen.status.items():
        yield from _spread_rows("status", name, spread)
    for name, gate in seen.gates.items():
        yield "gate", name, "passed", gate.passed
        yield "gate", name, "failed", gate.failed
        yield "gate", name, "broken", gate.broken
        yield "gate", name, "flaky", gate.flaky
        yield "gate", name, "strength measured", gate.measured
        yield "gate", name, "strength not measured", gate.unmeasured
    if seen.first_pass is not None:
        yield "first pass", "", "share", seen.first_pass
    for what, them in (
        ("agent", seen.by_agent),
        ("role", seen.by_role),
        ("project", seen.by_project),
        ("landed change", {"": seen.per_landed} if seen.per_landed else {}),
    ):
        for name, spent in them.items():
            yield what, name, "usd", spent.usd
            yield what, name, "tokens", spent.tokens
    for name, times in seen.crashes.items():
        yield "crashes", name, "times", times


def _part(title: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    return [title, *table([head, *rows]).splitlines()] if rows else []


def _spread(it: Spread) -> str:
    if it.p50 is None or it.p90 is None:
        return "not known"
    return f"half within {age(it.p50)}, nine in ten within {age(it.p90)} (of {it.n})"


def _spent(it: Spent) -> str:
    usd = f"${it.usd:.2f}" if it.usd else "not reported"
    return f"{usd}, {counted(it.tokens, 'token')}"


def _spread_rows(what: str, label: str, it: Spread) -> Iterator[Row]:
    if it.p50 is not None and it.p90 is not None:
        yield what, label, "p50 seconds", it.p50
        yield what, label, "p90 seconds", it.p90
        yield what, label, "count", it.n
