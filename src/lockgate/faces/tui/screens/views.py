"""The inbox and the log of events: lists with a cursor that are about one task at a time."""

from collections.abc import Sequence

from textual.app import ComposeResult

from lockgate.core.lifecycle.needs import Need
from lockgate.core.model.facts import StoredEvent
from lockgate.core.model.task import TaskId
from lockgate.faces.tui.look import BLANK, Line, Lines, cell, cut, one, wide, wrapped
from lockgate.faces.tui.panes import Pane
from lockgate.faces.tui.screens.base import Asked, Face, Kit
from lockgate.faces.tui.window import Row
from lockgate.faces.words.board import age, pull_text
from lockgate.faces.words.task import event_story

ASKS = 3  # lines of what is asked
CLOCK = 8  # characters of a time of day


class InboxFace(Face):
    """All that needs you, in all projects, each with its ask and the keys that answer it."""

    VIEW = "inbox"
    AUTO_FOCUS = "#needs"

    def __init__(self, desk: Kit) -> None:
        super().__init__(desk)
        self._owners: list[Need] = []
        self._rows: dict[TaskId, Row] = {}
        self._key = ""

    def body(self) -> ComposeResult:
        yield Pane(self.look, cursor=True, id="needs")

    def on_mount(self) -> None:
        self.query_one(Pane).draw(self._lines)

    def _lines(self, width: int) -> Lines:
        needs, now = self.desk.state.sorted_needs(), self.desk.now()
        lines: list[Line] = []
        self._owners = []
        for need in needs:
            found = need_lines(need, self._named(need), width, now)
            lines += found
            self._owners += [need] * len(found)
        return lines or [BLANK, ((" nothing needs you", "dim"),)]

    def _named(self, need: Need) -> str:
        project = self.desk.state.names.get(need.project, "")
        task = need.task or ""
        return f"{project}/{task}" if project and task else task or project

    def need(self) -> Need | None:
        at = self.query_one(Pane).cursor if self.is_there else 0
        return self._owners[at] if at < len(self._owners) else None

    def row(self) -> Row | None:
        need = self.need()
        if need is None or need.task is None:
            return None
        return self.desk.state.window.row(need.task) or self._rows.get(need.task)

    def keep(self, row: Row) -> None:
        """A row that the board does not hold, as it was read for this need."""
        self._rows[row.id] = row
        self.refresh_bars()

    def on_pane_moved(self, event: Pane.Moved) -> None:
        need = self.need()
        self._key = need.key if need else ""
        if need is not None and need.task is not None and self.row() is None:
            self.post_message(Asked("row"))
        self.refresh_bars()
        if event.opened:
            self.post_message(Asked("open", self.rows()))

    def move(self, action: str) -> None:
        """From need to need."""
        pane = self.query_one(Pane)
        starts = [n for n, it in enumerate(self._owners) if n == 0 or self._owners[n - 1] is not it]
        if not starts:
            return
        here = max((k for k, n in enumerate(starts) if n <= pane.cursor), default=0)
        by = {"down": 1, "up": -1, "page_down": 5, "page_up": -5}.get(action)
        to = here + by if by is not None else (len(starts) - 1 if action == "last" else 0)
        pane.go(starts[max(0, min(to, len(starts) - 1))])

    def news(self, tasks: set[TaskId]) -> None:
        self._rows = {id: row for id, row in self._rows.items() if id not in tasks}
        pane = self.query_one(Pane)
        pane.redraw()
        at = next((n for n, it in enumerate(self._owners) if it.key == self._key), None)
        if at is not None:
            pane.put_cursor(at)
        self.refresh_bars()

    def on_screen_resume(self) -> None:
        if not self.is_there:
            return
        self.news(set())
        need = self.need()
        if need is not None and need.task is not None and self.row() is None:
            self.post_message(Asked("row"))

    def does(self, action: str) -> bool:
        if action in {"next", "previous"}:
            self.move("down" if action == "next" else "up")
            return True
        return False


def need_lines(need: Need, name: str, width: int, now: float) -> list[Line]:
    """Two lines: who and since when, and what is asked."""
    style = "dim" if need.dimmed else "need"
    blocks = f"  {need.blocks} wait behind it" if need.blocks else ""
    first = f" {cell(need.kind, 12)} "
    rest = f"  {age(now - need.since)}{blocks}"
    head: Line = (
        (first, style),
        (cut(one(name), width - wide(first) - len(rest)), "dim" if need.dimmed else "head"),
        (rest, "dim"),
    )
    style = "dim" if need.dimmed else "plain"
    lines = [head, *wrapped(one(need.ask), max(8, width - 1), style, "   ")[:ASKS]]
    if need.pull is not None:
        lines.append(((f"   {cut(pull_text(need.pull), width - 4)}", "dim"),))
    if need.task is None and need.actions:
        lines.append(((f"   {cut(one(need.actions[0].command), width - 4)}", "key"),))
    return lines


class EventsFace(Face):
    """What happens, in plain words; the newest at the bottom."""

    VIEW = "events"
    AUTO_FOCUS = "#log"

    def __init__(self, desk: Kit) -> None:
        super().__init__(desk)
        self._shown: Sequence[StoredEvent] = ()

    def body(self) -> ComposeResult:
        yield Pane(self.look, cursor=True, id="log")

    def on_mount(self) -> None:
        self.query_one(Pane).draw(self._lines)
        self.call_after_refresh(self.query_one(Pane).ends, last=True)

    def _lines(self, width: int) -> Lines:
        told = [(it, event_story(it)) for it in self.desk.state.events]
        self._shown = [it for it, story in told if story]
        lines = [event_line(it, story, width) for it, story in told if story]
        return lines or [((" nothing has happened yet", "dim"),)]

    def row(self) -> Row | None:
        at = self.query_one(Pane).cursor if self.is_there else 0
        return self.desk.state.window.row(self._shown[at].task) if at < len(self._shown) else None

    def on_pane_moved(self, event: Pane.Moved) -> None:
        del event
        self.refresh_bars()

    def news(self, tasks: set[TaskId]) -> None:
        del tasks
        pane = self.query_one(Pane)
        at_end = pane.cursor >= len(pane.lines) - 1
        pane.redraw()
        if at_end:
            pane.put_cursor(max(0, len(pane.lines) - 1))
        self.refresh_bars()

    def on_screen_resume(self) -> None:
        if not self.is_there:
            return
        self.news(set())


def event_line(event: StoredEvent, story: str, width: int) -> Line:
    from time import localtime, strftime

    clock = strftime("%H:%M:%S", localtime(event.time))
    name = cell(event.task, min(24, max(8, width // 4)))
    room = width - CLOCK - wide(name) - 5
    return ((f" {clock}  ", "dim"), (f"{name}  ", "head"), (cut(one(story), room), "plain"))
