"""The list as a window of rows around the cursor: pages that come and go, rows that change."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct, field

from lockgate.core.lifecycle.needs import Need, order
from lockgate.core.model.landings import PullShown
from lockgate.core.model.task import ProjectId, Status, TaskId
from lockgate.faces.tui.look import Line, Lines
from lockgate.services.task.rows import Board, Cell, RowSize

PAGE = 200
KEPT = 5  # pages that are held at once
NEAR = 60  # rows before the end of what is held, from which more is asked for
ENDED = frozenset({Status.DONE, Status.CANCELLED})
GROUPS = ("NEEDS YOU", "ACTIVE", "ENDED")
NEEDS, ACTIVE, OVER = range(3)


class Row(Struct, frozen=True, kw_only=True):
    """A task as its facts are, in a page of the board and in a line of the feed alike."""

    id: TaskId
    project: ProjectId
    project_name: str
    summary: str
    branch: str
    agent: str
    status: Status
    priority: int
    iteration: int
    max_iterations: int
    usd: float
    updated: float
    rev: int
    session: str  # active, crashed, human or none
    gates: tuple[Cell, ...]
    need: Need | None
    place: tuple[int, str] | None
    entered: float
    size: RowSize
    waits_for: tuple[TaskId, ...] = ()
    not_before: float = 0.0
    pull: PullShown | None = None
    host: str = ""  # of a fleet, where its clone is


def row_of(facts: Mapping[str, object]) -> Row:
    return msgspec.convert(facts, Row)


class Head(Struct, frozen=True):
    """The line above a group."""

    group: int
    count: int


class Ask(Struct, frozen=True):
    """A line below the row that is selected, where there is no room for a preview."""

    line: Line


class Gap(Struct, frozen=True):
    """A row that is not held now."""

    at: int


Item = Head | Row | Ask | Gap


def rows_of(board: Board) -> list[Row]:
    return [row_of(it.facts()) for it in board.rows]


def group_of(row: Row) -> int:
    if row.need is not None:
        return NEEDS
    return OVER if row.status in ENDED else ACTIVE


def place_of(row: Row) -> tuple[object, ...]:
    """By this the rows are sorted, as the service sorts its pages."""
    group = group_of(row)
    if row.need is not None:
        return (group, *order(row.need))
    return group, -row.updated, row.id


class Window(Struct):
    """Rows `first` to `first + len(rows)` of all there are.

    `tokens[n]` is after what page `first // PAGE + n` begins; `after` is where the next one would.
    """

    rows: list[Row] = field(default_factory=list[Row])
    first: int = 0
    after: str | None = None
    counts: Mapping[Status, int] = {}
    needs: int = 0
    tokens: list[str | None] = field(default_factory=list[str | None])

    def load(self, board: Board) -> None:
        """The first page, in place of all that was held."""
        self.rows, self.first, self.tokens = rows_of(board), 0, [None]
        self.after, self.counts = board.after, board.counts
        self.needs = len(board.needs)

    def load_next(self, board: Board) -> None:
        """The page behind those that are held; the first one goes where there are many."""
        known = {row.id for row in self.rows}
        self.tokens.append(self.after)
        self.rows += [row for row in rows_of(board) if row.id not in known]
        self.after = board.after
        if len(self.rows) > KEPT * PAGE:
            gone = self.rows[:PAGE]
            del self.rows[:PAGE]
            self.first += len(gone)

    def load_before(self, board: Board) -> None:
        """The page before those that are held; the last one goes, and is asked for again later."""
        known = {row.id for row in self.rows}
        back = [row for row in rows_of(board) if row.id not in known]
        self.rows[:0] = back
        self.first = max(0, self.first - len(back))
        if self._before() == 0:
            self.first = 0
        if len(self.rows) > KEPT * PAGE:
            del self.rows[KEPT * PAGE :]
            self.after = self.tokens.pop()

    def token_before(self) -> str | None:
        """After what the page before the first one begins."""
        return self.tokens[max(0, self._before() - 1)] if self.tokens else None

    def _before(self) -> int:
        """Pages before those that are held."""
        return max(0, len(self.tokens) - max(1, -(-len(self.rows) // PAGE)))

    # --- what changes ---------------------------------------------------------------------------

    def put(self, row: Row) -> None:
        """The row as it is now, at its place; left out where that is behind what is held."""
        self.remove(row.id)
        place = place_of(row)
        at = next((n for n, it in enumerate(self.rows) if place_of(it) > place), len(self.rows))
        if at == len(self.rows) and self.after is not None:
            return
        if at == 0 and self.first:
            return
        self.rows.insert(at, row)

    def remove(self, id: TaskId) -> None:
        at = self.index(id)
        if at is not None:
            del self.rows[at]

    # --- what is there --------------------------------------------------------------------------

    def index(self, id: TaskId | None) -> int | None:
        return next((n for n, it in enumerate(self.rows) if it.id == id), None)

    def row(self, id: TaskId | None) -> Row | None:
        at = self.index(id)
        return None if at is None else self.rows[at]

    def total(self, statuses: Iterable[Status]) -> int:
        return sum(self.counts.get(it, 0) for it in statuses)

    def heads(self) -> dict[int, int]:
        """How many rows each group has, as far as they are held, and all of the ended ones."""
        held = {group: sum(group_of(it) == group for it in self.rows) for group in range(3)}
        return {**held, OVER: max(held[OVER], self.total(ENDED))}


def items(
    window: Window, selected: TaskId | None, asks: Callable[[Row], Lines] = lambda _: ()
) -> list[Item]:
    """What stands below each other; under the selected row what it asks."""
    found: list[Item] = [Gap(n) for n in range(window.first)]
    last = -1 if not window.first else group_of(window.rows[0]) if window.rows else -1
    heads = window.heads()
    for row in window.rows:
        group = group_of(row)
        if group != last:
            found.append(Head(group, heads[group]))
            last = group
        found.append(row)
        if row.id == selected:
            found += map(Ask, asks(row))
    if last < OVER and heads[OVER] and window.after is None:
        found.append(Head(OVER, heads[OVER]))
    return found


def rows_in(found: Sequence[Item]) -> Iterator[tuple[int, Row]]:
    return ((n, it) for n, it in enumerate(found) if isinstance(it, Row))
