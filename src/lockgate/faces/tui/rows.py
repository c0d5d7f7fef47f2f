"""A task as one line of the list: its columns for a width, and what its keys can do."""

from collections.abc import Callable, Iterator

from msgspec import Struct

from lockgate.core.lifecycle.needs import NeedKind
from lockgate.core.model.task import Status
from lockgate.faces.tui.look import Line, cell, cut, one, wide, wrapped
from lockgate.faces.tui.window import ENDED, Row
from lockgate.faces.words.board import age
from lockgate.faces.words.task import MARKS, WORDS

SESSIONS = {"active": "●", "crashed": "✗", "human": "☺", "none": "○"}
GATES = {"passed": "✓", "running": "▸", "waiting": "?", "failed": "✗", "todo": "·"}
GATE_STYLES = {"passed": "ok", "running": "busy", "waiting": "need", "failed": "bad", "todo": "dim"}
ANSWERED_BY_YES = frozenset({NeedKind.APPROVE, NeedKind.LAND, NeedKind.HELD})
DIRECTED = frozenset({NeedKind.STUCK, NeedKind.PAUSED, NeedKind.BUDGET, NeedKind.LOGIN})
STATUS_WIDE, CHANGES_WIDE, COST_WIDE, AGE_WIDE, MOST_GATES = 14, 13, 6, 4, 8
LEAST_NAME = 18
ASKS = 2  # lines of what is asked
LEAST_SUMMARY = 16
MANY = 10_000  # lines from which they are counted in thousands


class Columns(Struct, frozen=True):
    """How wide each column is; 0 leaves it out."""

    name: int
    status: int
    gates: int
    changes: int
    cost: int
    age: int


def columns_for(width: int, gates: int) -> Columns:
    """What fits: the changes go first, then the cost, then the gates."""
    gates = min(max(gates, 5), MOST_GATES)
    wanted = {"changes": CHANGES_WIDE, "cost": COST_WIDE, "gates": gates, "status": STATUS_WIDE}
    kept = {**wanted, "age": AGE_WIDE}

    def room() -> int:
        return width - 6 - sum(it + 2 for it in kept.values())

    for name in wanted:
        if room() >= LEAST_NAME:
            break
        del kept[name]
    least = max(4, room())
    return Columns(
        least, *(kept.get(it, 0) for it in ("status", "gates", "changes", "cost", "age"))
    )


def head_line(columns: Columns) -> Line:
    named = (
        ("TASK", columns.name, False),
        ("STATUS", columns.status, False),
        ("GATES", columns.gates, False),
        ("CHANGES", columns.changes, True),
        ("COST $", columns.cost, True),
        ("AGE", columns.age, True),
    )
    return (
        ("     ", "dim"),
        *((f"{cell(text, to, right=right)}  ", "dim") for text, to, right in named if to),
    )


def row_line(row: Row, columns: Columns, now: float, *, everywhere: bool, marked: bool) -> Line:
    dim = "dim" if row.status in ENDED or (row.need is not None and row.need.dimmed) else "plain"
    style = "need" if row.need is not None and dim == "plain" else dim
    parts: list[tuple[str, str]] = [
        ("*" if marked else " ", "mark"),
        (" " if row.status in ENDED else SESSIONS.get(row.session, "○"), _session_style(row)),
        (" ", "plain"),
        (MARKS[row.status], style),
        (" ", "plain"),
        *_name(row, columns.name, dim, everywhere=everywhere),
        ("  ", "plain"),
    ]
    cells = (
        (((status_word(row), style),), columns.status, False),
        (tuple(_gates(row, columns.gates)), columns.gates, False),
        (tuple(_changes(row)), columns.changes, True),
        (((f"{row.usd:.2f}" if row.usd else "", dim),), columns.cost, True),
        (((age(now - row.updated), dim),), columns.age, True),
    )
    for spans, to, right in cells:
        parts += _fitted(spans, to, right=right) if to else ()
    return tuple(parts)


def _fitted(spans: Line, to: int, *, right: bool) -> Iterator[tuple[str, str]]:
    """Spans of one cell; what is too wide is cut as a whole."""
    text = "".join(it for it, _ in spans)
    if wide(text) > to:
        yield f"{cell(text, to)}  ", spans[0][1]
        return
    space = (" " * (to - wide(text)), "plain")
    yield from (space, *spans) if right else (*spans, space)
    yield "  ", "plain"


def _name(row: Row, to: int, style: str, *, everywhere: bool) -> Iterator[tuple[str, str]]:
    """Its id, and as much of its summary as there is room for."""
    name = cut(f"{one(row.project_name)}/{row.id}" if everywhere else row.id, to)
    yield name, "head" if style == "plain" else style
    rest = to - wide(name) - 2
    yield (
        (f"  {cell(one(row.summary), rest)}", "dim")
        if rest >= LEAST_SUMMARY
        else (" " * (to - wide(name)), style)
    )


def _session_style(row: Row) -> str:
    return {"active": "busy", "crashed": "bad", "human": "mark"}.get(row.session, "dim")


def _gates(row: Row, to: int) -> Iterator[tuple[str, str]]:
    shown = row.gates if len(row.gates) <= to else row.gates[: to - 1]
    yield from ((GATES.get(it.state, "·"), GATE_STYLES.get(it.state, "dim")) for it in shown)
    if len(shown) < len(row.gates):
        yield "…", "dim"


def _changes(row: Row) -> Iterator[tuple[str, str]]:
    size = row.size
    if size.files:
        yield f"{size.commits} ", "dim"
        yield f"+{_short(size.added)}", "add"
        yield " ", "plain"
        yield f"-{_short(size.removed)}", "del"


def _short(number: int) -> str:
    return str(number) if number < MANY else f"{number // 1000}k"


def status_word(row: Row) -> str:
    """In one or two words what it does, and how often it did so."""
    if row.session == "human":
        return "yours"
    if row.place is not None and row.status is Status.REVIEWING:
        position, standing = row.place
        if row.pull is not None:
            return f"pull #{row.pull.number}"
        return f"#{position} {standing}" if row.need is None else WORDS[row.status]
    if row.status is Status.AGENT_REVIEW and row.need is not None:
        return next((f"{one(it.gate)}?" for it in row.gates if it.state == "waiting"), "needs you")
    if row.status is Status.WORKING and row.iteration > 1 and row.max_iterations:
        return f"{WORDS[row.status]} {row.iteration}/{row.max_iterations}"
    return WORDS[row.status]


def ask_lines(row: Row, width: int) -> list[Line]:
    """What the row asks of you, in two lines at most, or in one what it is."""
    if row.need is None:
        waits = f" (waits for {', '.join(row.waits_for)})" if row.waits_for else ""
        return [(("     ", "plain"), (cut(one(row.summary) + waits, width - 6), "dim"))]
    lines = wrapped(one(row.need.ask), max(8, width - 1), "need", "     ")
    return lines[:ASKS]


# What can be done with a row: the service decides, but a key that cannot work is not offered.


def opens(row: Row) -> str:
    """What Enter does with it."""
    kind = row.need.kind if row.need is not None else None
    if kind in ANSWERED_BY_YES:
        return "review"
    if kind is NeedKind.ANSWER:
        return "answer"
    if kind in DIRECTED:
        return "directive"
    if kind in {NeedKind.DEAD, NeedKind.LIMIT} or row.session == "crashed":
        return "restart"
    if row.session in {"active", "human"}:
        return "attach"
    return "start" if row.status is Status.PENDING else "page"


_OFFERS: dict[str, Callable[[Row], bool]] = {
    "approve": lambda row: row.need is not None and row.need.kind in ANSWERED_BY_YES,
    "land": lambda row: row.need is not None and row.need.kind in {NeedKind.LAND, NeedKind.HELD},
    "reject": lambda row: row.status is Status.REVIEWING or _waits_for_yes(row),
    "output": lambda row: row.status is not Status.PENDING,
    "diff": lambda row: bool(row.size.files) or row.session in {"active", "human"},
    "editor": lambda row: bool(row.size.files) or row.session in {"active", "human"},
    "takeover": lambda row: row.status not in ENDED | {Status.PENDING},
    "cancel": lambda row: row.status not in ENDED,
    "delete": lambda row: row.status in ENDED,
    "say": lambda row: row.status in {Status.WORKING, Status.AGENT_REVIEW, Status.PENDING},
    "queue": lambda row: row.status is Status.REVIEWING,
    "seen": lambda row: row.need is not None,
}


def _waits_for_yes(row: Row) -> bool:
    return row.need is not None and row.need.kind is NeedKind.APPROVE


def fits(action: str, row: Row | None) -> bool:
    """Whether a key can work on the row."""
    if row is None:
        return False
    asked = _OFFERS.get(action)
    return asked is None or asked(row)
