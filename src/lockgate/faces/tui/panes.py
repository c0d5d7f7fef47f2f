"""Widgets that draw lines: one row for a bar, a pane that scrolls, a list with a cursor."""

from collections.abc import Callable, Sequence
from typing import overload

from rich.segment import Segment
from rich.style import Style
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from lockgate.faces.tui.look import BLANK, Line, Lines, Look

KEPT = 500  # lines as they are drawn, which Textual then need not take apart again
Painted = tuple[Line, str, int]  # a line, what lies below it, and how wide it is


class Made(Sequence[Line]):
    """Lines that are made when they are drawn: most of a long list never is."""

    def __init__(self, count: int, make: Callable[[int], Line]) -> None:
        self._count, self._make = count, make

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> Line: ...
    @overload
    def __getitem__(self, at: slice) -> list[Line]: ...
    def __getitem__(self, at: int | slice) -> Line | list[Line]:
        if isinstance(at, slice):
            return [self._make(n) for n in range(*at.indices(self._count))]
        return self._make(at)


def strip_of(line: Line, look: Look, over: str = "") -> Strip:
    """`over` is the style that lies below the spans' own, such as the cursor's."""
    base = look.style(over)
    return Strip(Segment(look.text(text), base + look.style(name)) for text, name in line if text)


def drawn(line: Line, look: Look, over: str, below: Style, width: int) -> Strip:
    """A line as wide as its widget. `below` is the widget's own style."""
    strip = strip_of(line, look, over).apply_style(below)
    return strip.crop_extend(0, width, below + look.style(over))


class Bar(Widget):
    """A row, or a few: the head, a notice, the keys. It is as high as what it shows."""

    DEFAULT_CSS = "Bar { height: 1; width: 1fr; }"

    def __init__(self, look: Look, *, over: str = "", id: str | None = None) -> None:
        super().__init__(id=id)
        self.look = look
        self._lit = over
        self._rows: Lines = (BLANK,)

    def show(self, line: Line) -> None:
        self.show_all((line,))

    def show_all(self, lines: Lines) -> None:
        if lines != self._rows:
            if len(lines) != len(self._rows):
                self.styles.height = len(lines)
            self._rows = lines
            self.refresh()

    def render_line(self, y: int) -> Strip:
        line = self._rows[y] if y < len(self._rows) else BLANK
        return drawn(line, self.look, self._lit, self.rich_style, self.size.width)


class Pane(ScrollView, can_focus=True):
    """Lines that scroll. They are made for the width that the pane has, when it has one.

    With a cursor the line at it is lit, and `Pane.Moved` says where it went.
    """

    DEFAULT_CSS = """
    Pane { height: 1fr; width: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden;
           scrollbar-gutter: stable; scrollbar-background: $background; scrollbar-color: $panel; }
    """

    class Moved(Message):
        """The cursor is at another line."""

        def __init__(self, pane: "Pane", at: int, *, opened: bool = False) -> None:
            super().__init__()
            self.pane, self.at, self.opened = pane, at, opened

    def __init__(self, look: Look, *, cursor: bool = False, id: str | None = None) -> None:
        super().__init__(id=id)
        self.look = look
        self.follows = False  # stay at the end as lines come
        self._draws: Callable[[int], Lines] | None = None
        self._lines: Lines = ()
        self._made: dict[int, Line] = {}  # of these, those that were looked at
        self._painted: dict[int, Painted] = {}  # by its place on the screen
        self._strips: dict[Painted, Strip] = {}
        self._below: Style | None = None
        self._cursor: int | None = 0 if cursor else None
        if not look.utf8:
            self.styles.scrollbar_size_vertical = 0  # it is drawn with blocks

    # --- what is shown --------------------------------------------------------------------------

    @property
    def lines(self) -> Lines:
        return self._lines

    def draw(self, lines_for: Callable[[int], Lines]) -> None:
        """Show what this makes for a width; it is asked again when the width changes."""
        self._draws = lines_for
        self.redraw()

    def redraw(self) -> None:
        if self._draws is None or not self.size.width:
            return
        self._lines = self._draws(self.scrollable_content_region.width or self.size.width)
        self._made.clear()
        # Another height lays the whole screen out again: where nothing scrolls it stays the same.
        self.virtual_size = Size(self.size.width, max(len(self._lines), self.size.height))
        if self._cursor is not None:
            self._cursor = max(0, min(self._cursor, len(self._lines) - 1))
        if self.follows:
            self.scroll_to(y=len(self._lines), animate=False, immediate=True)
        self._repaint()

    def _repaint(self) -> None:
        """Only those lines that are others than the screen has."""
        top = self.scroll_offset.y
        for y in range(self.size.height):
            if self._painted.get(y) != self._wanted(top + y):
                self.refresh_line(top + y)

    def _wanted(self, at: int) -> Painted:
        if at not in self._made:
            self._made[at] = self._lines[at] if at < len(self._lines) else BLANK
        return self._made[at], self._over(at), self.size.width

    def on_resize(self) -> None:
        self.redraw()

    def notify_style_update(self) -> None:
        self._below = None
        self._strips.clear()
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        wanted = self._painted[y] = self._wanted(y + self.scroll_offset.y)
        strip = self._strips.get(wanted)
        if strip is None:
            if len(self._strips) > KEPT:
                self._strips.clear()
            self._below = self._below or self.rich_style
            line, over, width = wanted
            strip = self._strips[wanted] = drawn(line, self.look, over, self._below, width)
        return strip

    def _over(self, at: int) -> str:
        if at != self._cursor:
            return ""
        return "cursor" if self.has_focus else "pale"

    # --- the cursor -----------------------------------------------------------------------------

    @property
    def cursor(self) -> int:
        return self._cursor or 0

    def go(self, to: int) -> None:
        """Put the cursor there, and that line on the screen."""
        if self._cursor is None:
            self.scroll_to(y=to, animate=False, immediate=True)
            return
        to = max(0, min(to, len(self._lines) - 1))
        if to != self._cursor:
            self._cursor = to
            self._repaint()
            self.post_message(self.Moved(self, to))
        self.reveal(to)

    def put_cursor(self, at: int) -> None:
        """As `go`, but nobody moved it: what it points at has moved."""
        self._cursor = at
        self.reveal(at)
        self._repaint()

    def reveal(self, at: int) -> None:
        region = Region(0, at, max(1, self.size.width), 1)
        self.scroll_to_region(region, animate=False, immediate=True, force=True)

    def step(self, by: int) -> None:
        if self._cursor is None:
            self.scroll_relative(y=by, animate=False, immediate=True)
        else:
            self.go(self._cursor + by)

    def leaf(self, pages: int) -> None:
        self.step(pages * max(1, self.size.height - 1))

    def ends(self, *, last: bool) -> None:
        self.go(len(self._lines) - 1 if last else 0)

    def on_click(self, event: Click) -> None:
        self.focus()
        if self._cursor is None:
            return
        at = event.y + self.scroll_offset.y
        if at < len(self._lines):
            again = at == self._cursor
            self.go(at)
            if again and event.chain > 1:
                self.post_message(self.Moved(self, at, opened=True))

    def on_focus(self) -> None:
        self._repaint()

    def on_blur(self) -> None:
        self._repaint()
