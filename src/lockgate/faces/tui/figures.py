"""Lines of the merge queue and of the statistics: bars, tables, small curves."""

from collections.abc import Iterator, Sequence
from datetime import date, datetime

from lockgate.core.fleet import FleetSeen
from lockgate.core.model.task import Status, TaskId
from lockgate.faces.tui.look import BLANK, Line, cell, cut, one, shown, wide
from lockgate.faces.words.board import age
from lockgate.faces.words.fleet import fleet_lines, fleet_text, is_whole
from lockgate.faces.words.task import SHORT, WORDS, agent_text
from lockgate.services.task.statistics import Spent, Stats
from lockgate.services.train.board import Car, TrainBoard

BLOCKS = "▁▂▃▄▅▆▇█"
BAR = 10  # characters of a bar


def clock(seconds: float) -> str:
    """Minutes and seconds, as a test takes them."""
    whole = max(0, int(seconds))
    return f"{whole // 60}:{whole % 60:02}"


def bar(part: float, to: int = BAR) -> str:
    done = max(0, min(to, round(part * to)))
    return "█" * done + "░" * (to - done)


def curve(values: Sequence[float]) -> str:
    """A small curve: one character a value."""
    top = max(values, default=0.0)
    if not top:
        return BLOCKS[0] * len(values)
    last = len(BLOCKS) - 1
    return "".join(BLOCKS[round(it / top * last)] for it in values)


# The merge queue.


def train_lines(
    board: TrainBoard, name: str, width: int, now: float, yes: str
) -> Iterator[tuple[Line, TaskId | None]]:
    """Each line, and the task that it is about; `yes` is the key that lets a change land."""
    usual = f"median {clock(board.median_seconds)}" if board.median_seconds else "no test yet"
    mode = f"{board.mode} landing, window {board.window}"
    today = sum(_day(it.time) == _day(now) for it in board.landed)
    title: Line = (
        (f" {one(name)}: {shown(board.target)} ", "head"),
        (board.tip[:SHORT], "plain"),
        (f"  {mode}  landed today {today}  {usual}", "dim"),
    )
    yield title, None
    for why in board.holds:
        yield ((cut(f" nothing lands: {one(why)}", width), "need"),), None
    if not board.cars:
        yield ((" nothing waits to land", "dim"),), None
    for car in board.cars:
        yield car_line(car, board, width, now), car.task
        command = f"it waits for: lockgate approve {car.task}"
        why = one(car.why).replace(command, f"it waits for your yes: {yes}") or one(car.summary)
        yield ((cut(f"      {why}", width), "dim"),), car.task
    if board.landed:
        yield BLANK, None
        yield ((" landed", "dim"),), None
    for it in board.landed:
        tasks = ", ".join(it.tasks)
        took = f"  tested in {clock(it.seconds)}" if it.seconds else ""
        text = f" ✓ {it.commit[:SHORT]}  {cell(age(now - it.time), 4, right=True)}  {tasks}{took}"
        yield ((cut(text, width), "dim"),), (it.tasks[0] if it.tasks else None)


def _day(time: float) -> date:
    """Of people here."""
    return datetime.fromtimestamp(time).astimezone().date()


def car_line(car: Car, board: TrainBoard, width: int, now: float) -> Line:
    """Who and where, and how far its tests are."""
    style = CAR_STYLES.get(car.standing, "plain")
    name = cell(car.task, min(28, max(12, width // 4)))
    spans: list[tuple[str, str]] = [
        (f" {car.position:>2} ", "dim"),
        (f"{name} ", "head"),
        (f"{cell(STANDINGS.get(car.standing, car.standing), 18)} ", style),
    ]
    running = [it for it in car.gates if it.started]
    if running:
        spent = now - running[0].started
        usual = board.median_seconds or 0.0
        part = min(1.0, spent / usual) if usual else 0.0
        spans.append((f"{one(running[0].gate)} {bar(part)} ", "busy"))
        spans.append((f"{clock(spent)}/{clock(usual)}" if usual else clock(spent), "plain"))
    if car.eta is not None and car.standing != "landing":
        spans.append((f"  lands in ~{clock(car.eta - now)}", "dim"))
    return tuple(spans)


CAR_STYLES = {
    "testing": "busy",
    "landing": "busy",
    "ready": "ok",
    "failing": "bad",
    "held": "need",
    "aside": "dim",
}


STANDINGS = {"held": "waits for approval"}


# The hosts.


def host_lines(seen: FleetSeen, width: int) -> Iterator[Line]:
    """Who leads, what each host has at work, and which jobs wait for one."""
    yield ((f" {fleet_text(seen)}", "head" if is_whole(seen) else "bad"),)
    yield from (((cut(f" {it}", width), "plain"),) for it in fleet_lines(seen))
    yield BLANK


# The statistics.


def stats_lines(stats: Stats, width: int) -> Iterator[Line]:
    """What landed and what it cost, how long it took, what failed."""
    landed = [float(it.landed) for it in stats.days]
    shown_days = landed[-max(1, width - 40) :]
    yield ((f" the last {len(stats.days)} days", "head"),)
    yield (
        (f" landed {stats.landed:,}  ", "plain"),
        (curve(shown_days), "ok"),
        (f"  dropped {stats.dropped:,}", "dim"),
    )
    first = "none yet" if stats.first_pass is None else f"{stats.first_pass:.0%}"
    yield ((f" passed at the first try: {first}", "plain"),)
    cost = stats.per_landed
    told = f"${cost.usd:,.2f}, {cost.tokens:,} tokens" if cost else "nothing has landed"
    yield ((f" a landed change costs: {told}", "plain"),)
    yield BLANK
    each = {WORDS[Status(name)]: it for name, it in stats.status.items()}
    times = {"until it landed": stats.lead, "waits for people": stats.human_wait, **each}
    rows = [(name, f"{it.n:,}", _span(it.p50), _span(it.p90)) for name, it in times.items()]
    yield from table(("time", "times", "half within", "90 % within"), rows, width)
    yield BLANK
    yield from _gate_table(stats, width)
    yield BLANK
    yield from _cost_table(stats, width)


def _span(seconds: float | None) -> str:
    return "" if seconds is None else age(seconds)


def _gate_table(stats: Stats, width: int) -> Iterator[Line]:
    rows = [
        (
            name,
            f"{it.passed:,}",
            f"{it.failed:,}",
            f"{it.broken:,}",
            f"{it.flaky:,}",
            "" if it.seconds is None else clock(it.seconds),
        )
        for name, it in stats.gates.items()
    ]
    if rows:
        yield from table(
            ("gate", "passed", "failed", "could not run", "flaky", "takes"), rows, width
        )


def _cost_table(stats: Stats, width: int) -> Iterator[Line]:
    """By agent with its crashes, then by role."""
    names = dict.fromkeys((*stats.by_agent, *stats.crashes))
    rows = [_cost(name, stats.by_agent.get(name), stats.crashes.get(name, 0)) for name in names]
    rows += [_cost(f"all {role}s", it, None) for role, it in stats.by_role.items()]
    if rows:
        yield from table(("agent", "cost $", "tokens", "crashes"), rows, width)


def _cost(name: str, spent: Spent | None, crashes: int | None) -> tuple[str, str, str, str]:
    usd, tokens = (spent.usd, spent.tokens) if spent else (0.0, 0)
    return agent_text(name), f"{usd:,.2f}", f"{tokens:,}", "" if crashes is None else f"{crashes:,}"


# Tables.


def table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[Line]:
    """The first column to the left, the others to the right."""
    widths = [max(wide(it[n]) for it in (head, *rows)) for n in range(len(head))]
    widths[0] = min(widths[0], max(8, width - sum(it + 2 for it in widths[1:]) - 2))
    for n, row in enumerate((head, *rows)):
        cells = (
            cell(one(text), to, right=k > 0)
            for k, (text, to) in enumerate(zip(row, widths, strict=True))
        )
        yield ((cut(f"  {'  '.join(cells)}", width), "plain" if n else "dim"),)
