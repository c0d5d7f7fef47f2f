"""The merge queue and the statistics: what they show is read when it may have changed."""

from collections.abc import Iterator, Sequence

from textual.app import ComposeResult
from textual.timer import Timer

from lockgate.core.model.task import TaskId
from lockgate.faces.tui.figures import host_lines, stats_lines, train_lines
from lockgate.faces.tui.look import BLANK, Line, Lines
from lockgate.faces.tui.panes import Pane
from lockgate.faces.tui.screens.base import Asked, Face, Kit
from lockgate.faces.tui.window import Row
from lockgate.services.task.statistics import Stats
from lockgate.services.train.board import TrainBoard

SPANS = (14, 30, 90, 365)  # days that the statistics are of
SETTLES = 0.2  # seconds that news may take to come together before it is read


class Figures(Face):
    """A view that is read as a whole: at first, and a little after news."""

    READS = ""

    def __init__(self, desk: Kit) -> None:
        super().__init__(desk)
        self._due: Timer | None = None

    def on_screen_resume(self) -> None:
        self.post_message(Asked(self.READS))
        super().on_screen_resume()

    def news(self, tasks: set[TaskId]) -> None:
        if tasks and self._due is None and self.is_current:
            self._due = self.set_timer(SETTLES, self._ask)
        self.query_one(Pane).redraw()

    def _ask(self) -> None:
        self._due = None
        self.post_message(Asked(self.READS))


class TrainFace(Figures):
    VIEW = "train"
    AUTO_FOCUS = "#train"
    READS = "read_trains"

    def __init__(self, desk: Kit) -> None:
        super().__init__(desk)
        self._boards: Sequence[TrainBoard] | None = None
        self._tasks: list[TaskId | None] = []

    def body(self) -> ComposeResult:
        yield Pane(self.look, cursor=True, id="train")

    def on_mount(self) -> None:
        self.query_one(Pane).draw(self._lines)
        self.set_interval(1.0, self._move_on)

    def _move_on(self) -> None:
        """While something is tested, its bar moves."""
        tested = any(it.started for of in self._boards or () for car in of.cars for it in car.gates)
        if tested and self.is_there and self.is_current:
            self.query_one(Pane).redraw()

    def show_trains(self, boards: Sequence[TrainBoard]) -> None:
        self._boards = boards
        if not self.is_there:
            return
        pane = self.query_one(Pane)
        pane.redraw()
        if self.row() is None:
            pane.put_cursor(next((n for n, it in enumerate(self._tasks) if it), 0))
        self.refresh_bars()

    def _lines(self, width: int) -> Lines:
        if self._boards is None:
            return [((" reading …", "dim"),)]
        lines: list[Line] = []
        self._tasks = []
        names, now = self.desk.state.names, self.desk.now()
        yes = self.desk.keys.key("approve")
        for board in self._boards:
            name = names.get(board.project, "")
            for line, task in (*train_lines(board, name, width, now, yes), (BLANK, None)):
                lines.append(line)
                self._tasks.append(task)
        return lines or [((" no project has a task yet", "dim"),)]

    def row(self) -> Row | None:
        at = self.query_one(Pane).cursor if self.is_there else 0
        task = self._tasks[at] if at < len(self._tasks) else None
        return self.desk.state.window.row(task)

    def on_pane_moved(self, event: Pane.Moved) -> None:
        self.refresh_bars()
        if event.opened:
            self.post_message(Asked("open", self.rows()))


class StatsFace(Figures):
    """`f` looks further back."""

    VIEW = "stats"
    AUTO_FOCUS = "#stats"
    READS = "read_stats"

    def __init__(self, desk: Kit) -> None:
        super().__init__(desk)
        self.days = SPANS[0]
        self._stats: Stats | None = None

    def body(self) -> ComposeResult:
        yield Pane(self.look, id="stats")

    def on_mount(self) -> None:
        self.query_one(Pane).draw(self._lines)

    def show_stats(self, stats: Stats) -> None:
        self._stats = stats
        if self.is_there:
            self.query_one(Pane).redraw()

    def _lines(self, width: int) -> Lines:
        if self._stats is None:
            return [((" reading …", "dim"),)]
        fleet = self.desk.state.hosts
        hosts = host_lines(fleet, width) if fleet else ()
        return [*hosts, *stats_lines(self._stats, width)]

    def offers(self) -> Iterator[tuple[str, str]]:
        further = SPANS[(SPANS.index(self.days) + 1) % len(SPANS)]
        yield self.desk.keys.key("filter"), f"{further} days"
        yield self.desk.keys.key("board"), "board"

    def does(self, action: str) -> bool:
        if action != "filter":
            return False
        self.days = SPANS[(SPANS.index(self.days) + 1) % len(SPANS)]
        self.post_message(Asked(self.READS))
        self.refresh_bars()
        return True
