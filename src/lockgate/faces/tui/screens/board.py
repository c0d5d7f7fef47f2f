"""The board: every task in its group, what needs you first, and the task under the cursor."""

from msgspec import Struct
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.timer import Timer

from lockgate.core.model.task import TaskId
from lockgate.faces.tui.look import BLANK, Line, Lines
from lockgate.faces.tui.panes import Bar, Made, Pane
from lockgate.faces.tui.preview import page_lines, row_lines
from lockgate.faces.tui.rows import Columns, ask_lines, columns_for, head_line, row_line
from lockgate.faces.tui.screens.base import Asked, Face, Kit
from lockgate.faces.tui.source import Page
from lockgate.faces.tui.window import GROUPS, NEAR, Ask, Gap, Head, Item, Row, items, rows_in

PREVIEW_FROM = 100  # columns
RESTS = 0.08  # seconds that the cursor stays at a row before its page is read
AGES = 10  # seconds after which the ages at the right are told again
LOW = 8  # rows below which the list has no head
ROOMS = ("both", "list", "task")


class Told(Struct, frozen=True):
    """The lines at the right. They keep what they are of, whose ids are the key."""

    key: tuple[int, ...] = ()
    of: tuple[object, ...] = ()
    lines: Lines = ()


class BoardFace(Face):
    VIEW = "board"
    DEFAULT_CSS = """
    BoardFace #both { height: 1fr; }
    BoardFace #list { width: 1fr; }
    BoardFace #task { width: 42%; padding: 0 1; background: $surface; }
    """

    def __init__(self, desk: Kit) -> None:
        super().__init__(desk)
        self._items: list[Item] = []
        self._page: Page | None = None
        self._shown: TaskId | None = None  # at the right
        self._told = Told()
        self._zoom = 0
        self._timer: Timer | None = None

    def body(self) -> ComposeResult:
        yield Bar(self.look, id="columns")
        with Horizontal(id="both"):
            yield Pane(self.look, cursor=True, id="list")
            yield Pane(self.look, id="task")

    def on_mount(self) -> None:
        self._list().draw(self._lines)
        self.query_one("#task", Pane).draw(self._task_lines)
        self._lay_out()

    def on_resize(self) -> None:
        self._lay_out()
        super().on_resize()

    # --- what is shown --------------------------------------------------------------------------

    def _list(self) -> Pane:
        return self.query_one("#list", Pane)

    @property
    def previews(self) -> bool:
        return self.size.width >= PREVIEW_FROM

    def _lay_out(self) -> None:
        room = ROOMS[self._zoom]
        shows_task = room == "task" or (room == "both" and self.previews)
        self.query_one("#task").display = shows_task
        self._list().display = room != "task"
        self.query_one("#columns").display = room != "task" and self.size.height > LOW
        self.query_one("#task").styles.width = "100%" if room == "task" else "42%"
        self.call_after_refresh(self.refresh_rows)

    def refresh_rows(self) -> None:
        """The list again, with the cursor at the same task as before."""
        if not self.is_there:
            return
        state = self.desk.state
        before = [it.id for _, it in rows_in(self._items)]
        self._select_again(before)
        pane = self._list()
        width = pane.scrollable_content_region.width or pane.size.width
        alone = not self.query_one("#task").display
        self._items = items(
            state.window, state.selected, lambda row: ask_lines(row, width) if alone else ()
        )
        pane.redraw()
        at = next((n for n, row in rows_in(self._items) if row.id == state.selected), None)
        if at is not None and at != pane.cursor:
            pane.put_cursor(at)
        self.query_one("#columns", Bar).show(head_line(self._columns(width)))
        self._show_task()
        self.refresh_bars()

    def _show_task(self) -> None:
        """The task under the cursor, where there is room for it; another one from its top."""
        task = self.query_one("#task", Pane)
        if not task.display:
            return
        if self._shown != self.desk.state.selected:
            self._shown = self.desk.state.selected
            task.ends(last=False)
            self.read_page()
        task.redraw()

    def _select_again(self, before: list[TaskId]) -> None:
        """Where the task has gone, the one that stood next to it."""
        state = self.desk.state
        window = state.window
        if window.row(state.selected) is not None or not window.rows:
            return
        at = next((n for n, it in enumerate(before) if it == state.selected), 0)
        near = [it for it in (*before[at:], *reversed(before[:at])) if window.row(it) is not None]
        state.selected = near[0] if near else window.rows[0].id
        self._page = None

    def _columns(self, width: int) -> Columns:
        gates = max((len(it.gates) for it in self.desk.state.window.rows[:50]), default=0)
        return columns_for(width, gates)

    def _lines(self, width: int) -> Lines:
        if not self.desk.state.loaded:
            return [((" reading …", "dim"),)]
        if not self._items:
            return self._empty()
        columns, now = self._columns(width), self.desk.now()
        return Made(len(self._items), lambda n: self._line(self._items[n], columns, now, width))

    def _line(self, item: Item, columns: Columns, now: float, width: int) -> Line:
        match item:
            case Head():
                count = f"{item.count:,}"
                rule = "─" * max(0, width - len(GROUPS[item.group]) - len(count) - 4)
                style = "need" if item.group == 0 else "dim"
                return ((f" {GROUPS[item.group]} ", style), (f"{count} ", "dim"), (rule, "rule"))
            case Ask():
                return item.line
            case Gap():
                return ((" …", "dim"),)
            case Row():
                state = self.desk.state
                return row_line(
                    item,
                    columns,
                    now,
                    everywhere=state.project is None,
                    marked=item.id in state.marked,
                )

    def _empty(self) -> Lines:
        state, keys = self.desk.state, self.desk.keys
        if state.text or state.filter not in {"active", "all"}:
            told = f" no task here; {keys.key('back')} shows all that is active"
        else:
            told = f" no task is active; {keys.key('create')} creates one"
        return [BLANK, ((told, "dim"),)]

    def _task_lines(self, width: int) -> Lines:
        """Made again only for another task, width or page, and now and then for its ages."""
        row, now = self.row(), self.desk.now()
        if row is None:
            return ()
        page = self._page if self._page is not None and self._page.row.id == row.id else None
        key = (id(row), id(page), width, int(now) // AGES)
        if self._told.key != key:
            made = row_lines(row, width, now) if page is None else page_lines(page, width, now)
            self._told = Told(key, (row, page), made)
        return self._told.lines

    # --- the cursor -----------------------------------------------------------------------------

    def row(self) -> Row | None:
        return self.desk.state.window.row(self.desk.state.selected)

    def rows(self) -> tuple[Row, ...]:
        """The marked ones, where there are any."""
        state = self.desk.state
        marked = tuple(it for it in state.window.rows if it.id in state.marked)
        return marked or super().rows()

    def on_pane_moved(self, event: Pane.Moved) -> None:
        if event.pane.id != "list":
            return
        self._select_here()
        row = self.row()
        if event.opened and row is not None:
            self.post_message(Asked("open", (row,)))

    def _select_here(self) -> None:
        """The row that the cursor is at now: the next key is about that one, however fast."""
        at = self._list().cursor
        item = self._items[at] if at < len(self._items) else None
        if isinstance(item, Row):
            self._select(item)
        elif isinstance(item, Gap):
            self.post_message(Asked("more_before"))

    def _select(self, row: Row) -> None:
        if row.id != self.desk.state.selected:
            self.desk.state.selected = row.id
            self.refresh_rows()
        self._ask_for_more()

    def _ask_for_more(self) -> None:
        window = self.desk.state.window
        at = window.index(self.desk.state.selected) or 0
        if window.after is not None and at >= len(window.rows) - NEAR:
            self.post_message(Asked("more"))
        elif window.first and at < NEAR:
            self.post_message(Asked("more_before"))

    def move(self, action: str) -> None:
        """From row to row; heads are passed over."""
        pane = self.pane()
        found = [n for n, _ in rows_in(self._items)]
        if pane.id != "list" or not found:
            super().move(action)
            return
        here = next((k for k, n in enumerate(found) if n >= pane.cursor), len(found) - 1)
        page = max(1, pane.size.height - 2)
        by = {"down": 1, "up": -1, "page_down": page, "page_up": -page}.get(action)
        to = here + by if by is not None else (len(found) - 1 if action == "last" else 0)
        pane.go(found[max(0, min(to, len(found) - 1))])
        self._select_here()
        if to <= 0:
            pane.reveal(0)

    def to_need(self, by: int) -> None:
        """The next or previous task that needs a human, around the end."""
        found = [(n, row) for n, row in rows_in(self._items) if row.need is not None]
        if not found:
            self.say("nothing on this board needs you", "dim")
            return
        at = self._list().cursor
        beyond = [n for n, _ in found if (n > at if by > 0 else n < at)]
        around = found[0][0] if by > 0 else found[-1][0]
        self._list().go((beyond[0] if by > 0 else beyond[-1]) if beyond else around)
        self._select_here()

    # --- the task at the right ------------------------------------------------------------------

    def read_page(self) -> None:
        """Once the cursor rests: who moves fast reads nothing."""
        if not self.is_there or not self.query_one("#task").display:
            return
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(
            RESTS, lambda: self.post_message(Asked("page", self.rows_here()))
        )

    def rows_here(self) -> tuple[Row, ...]:
        row = self.row()
        return () if row is None else (row,)

    def show_page(self, page: Page) -> None:
        row = self.row()
        if self.is_there and row is not None and row.id == page.row.id:
            self._page = page
            self.query_one("#task", Pane).redraw()

    # --- news and keys --------------------------------------------------------------------------

    def news(self, tasks: set[TaskId]) -> None:
        self.refresh_rows()
        if self.desk.state.selected in tasks:
            self.read_page()

    def on_screen_resume(self) -> None:
        self.refresh_rows()
        self.read_page()

    def does(self, action: str) -> bool:
        state = self.desk.state
        match action:
            case "next" | "previous":
                self.to_need(1 if action == "next" else -1)
            case "zoom":
                self._zoom = (self._zoom + 1) % len(ROOMS)
                self._lay_out()
            case "mark":
                self._mark()
            case "back" if state.marked:
                state.marked.clear()
                self.refresh_rows()
            case _:
                return False
        return True

    def _mark(self) -> None:
        row, marked = self.row(), self.desk.state.marked
        if row is not None:
            marked.symmetric_difference_update({row.id})
            self.refresh_rows()
            self.say(
                f"{len(marked)} marked; a, x, Q and Enter act on all of them" if marked else ""
            )
            self.move("down")
