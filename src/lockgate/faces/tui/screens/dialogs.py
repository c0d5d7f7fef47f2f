"""Boxes over a screen: a text to write, a yes or no, something to choose, a text to read."""

from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Input, TextArea

from lockgate.faces.tui.look import Line, Lines, Look, cut, wrapped
from lockgate.faces.tui.panes import Bar, Pane

T = TypeVar("T")
BOX = """
{name} {{ align: center middle; background: $background 60%; }}
{name} > #box {{ width: 90%; max-width: 110; height: {height}; max-height: 90%;
                background: $surface; border: round $primary; padding: 0 1; }}
{name} Input, {name} TextArea {{ border: none; padding: 0; background: $panel; }}
{name} Input {{ height: 1; }}
{name}.ascii > #box {{ border: ascii $primary; }}
"""


class Box(ModalScreen[T]):
    """Drawn with ASCII where the terminal has no more."""

    def __init__(self, look: Look) -> None:
        super().__init__(classes="" if look.utf8 else "ascii")
        self.look = look


def title(text: str, width: int = 200) -> Line:
    return ((cut(text, width), "head"),)


class Write(Box[str | None]):
    """A text to write; Ctrl+S gives it, Esc gives None."""

    DEFAULT_CSS = (
        BOX.format(name="Write", height="70%")
        + "Write TextArea { height: 1fr; } Write #about { height: auto; max-height: 50%; }"
    )

    def __init__(self, look: Look, asks: str, about: Lines = (), text: str = "") -> None:
        super().__init__(look)
        self.asks, self.about, self._text = asks, about, text

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Bar(self.look, id="asks")
            if self.about:
                yield Pane(self.look, id="about")
            yield TextArea(self._text, id="text", show_line_numbers=False)
            yield Bar(self.look, id="how")

    def on_mount(self) -> None:
        self.query_one("#asks", Bar).show(title(self.asks))
        how: Line = (("Ctrl+S", "key"), (" done   ", "dim"), ("Esc", "key"), (" leave it", "dim"))
        self.query_one("#how", Bar).show(how)
        if self.about:
            pane = self.query_one("#about", Pane)
            pane.can_focus = False
            pane.styles.height = min(len(self.about), max(1, self.size.height // 3))
            pane.draw(lambda _width: self.about)
        area = self.query_one(TextArea)
        area.focus()
        area.move_cursor(area.document.end)

    def on_key(self, event: Key) -> None:
        if event.key == "ctrl+s":
            event.stop()
            self.dismiss(self.query_one(TextArea).text)
        elif event.key == "escape":
            event.stop()
            self.dismiss(None)


class Prompt(Box[str | None]):
    """One line to write; Enter gives it, Esc gives None."""

    DEFAULT_CSS = BOX.format(name="Prompt", height="auto")

    def __init__(self, look: Look, asks: str, text: str = "") -> None:
        super().__init__(look)
        self.asks, self._text = asks, text

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Bar(self.look, id="asks")
            yield Input(self._text, id="text")

    def on_mount(self) -> None:
        self.query_one("#asks", Bar).show(title(self.asks))
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)

    def on_key(self, event: Key) -> None:
        if event.key == "escape":
            event.stop()
            self.dismiss(None)


class Confirm(Box[bool]):
    """A yes or a no; only `y` is a yes."""

    DEFAULT_CSS = BOX.format(name="Confirm", height="auto") + "Confirm Pane { height: auto; }"

    def __init__(self, look: Look, asks: str, about: Lines = ()) -> None:
        super().__init__(look)
        self.asks, self.about = asks, about

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Bar(self.look, id="asks")
            if self.about:
                yield Pane(self.look, id="about")
            yield Bar(self.look, id="how")

    def on_mount(self) -> None:
        self.query_one("#asks", Bar).show(title(self.asks))
        self.query_one("#how", Bar).show(
            (("y", "key"), (" yes   ", "dim"), ("n", "key"), (" no", "dim"))
        )
        if self.about:
            pane = self.query_one(Pane)
            pane.styles.height = min(len(self.about), max(1, self.size.height // 2))
            pane.draw(lambda _width: self.about)

    def on_key(self, event: Key) -> None:
        event.stop()
        if event.character == "y":
            self.dismiss(result=True)
        elif event.character in {"n", "q"} or event.key == "escape":
            self.dismiss(result=False)


class Choice(Struct, frozen=True):
    value: str
    label: str
    says: str = ""


class Choose(Box[str | None]):
    """One of many: letters narrow the list, Enter takes the one that is lit, Esc gives None."""

    DEFAULT_CSS = BOX.format(name="Choose", height="80%")

    def __init__(self, look: Look, asks: str, choices: Sequence[Choice]) -> None:
        super().__init__(look)
        self.asks, self._all = asks, tuple(choices)
        self._found = self._all

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Bar(self.look, id="asks")
            yield Input(placeholder="type to search", id="text")
            yield Pane(self.look, cursor=True, id="choices")

    def on_mount(self) -> None:
        self.query_one("#asks", Bar).show(title(self.asks))
        pane = self.query_one(Pane)
        pane.can_focus = False
        pane.draw(self._lines)
        self.query_one(Input).focus()

    def _lines(self, width: int) -> Lines:
        most = max((len(it.label) for it in self._found), default=0)
        return [
            (
                (cut(f"{it.label:<{most}}", width), "plain"),
                (cut(f"  {it.says}", width - most), "dim"),
            )
            for it in self._found
        ]

    def on_input_changed(self, event: Input.Changed) -> None:
        words = event.value.lower().split()
        self._found = tuple(
            it for it in self._all if all(word in f"{it.label} {it.says}".lower() for word in words)
        )
        pane = self.query_one(Pane)
        pane.redraw()
        pane.go(0)

    def on_input_submitted(self) -> None:
        self._take(self.query_one(Pane).cursor)

    def on_pane_moved(self, event: Pane.Moved) -> None:
        if event.opened:
            self._take(event.at)

    def _take(self, at: int) -> None:
        self.dismiss(self._found[at].value if at < len(self._found) else None)

    def on_key(self, event: Key) -> None:
        pane = self.query_one(Pane)
        steps = {"down": 1, "up": -1, "ctrl+n": 1, "ctrl+p": -1, "pagedown": 10, "pageup": -10}
        if event.key == "escape":
            event.stop()
            self.dismiss(None)
        elif event.key in steps:
            event.stop()
            event.prevent_default()
            pane.step(steps[event.key])


class Read(Box[None]):
    """A text to read; its lines are made for the width."""

    DEFAULT_CSS = BOX.format(name="Read", height="90%")

    def __init__(self, look: Look, heading: str, text: str = "", lines: Lines = ()) -> None:
        super().__init__(look)
        self.heading, self._text, self._lines = heading, text, lines

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Bar(self.look, id="asks")
            yield Pane(self.look, id="text")

    def on_mount(self) -> None:
        self.query_one("#asks", Bar).show(title(self.heading))
        pane = self.query_one(Pane)
        pane.draw(lambda width: self._lines or wrapped(self._text, width))
        pane.focus()

    def on_key(self, event: Key) -> None:
        event.stop()
        pane = self.query_one(Pane)
        steps = {"j": 1, "k": -1, "down": 1, "up": -1}
        if event.key in {"escape", "q", "enter"} or event.character in {"w", "v", "?"}:
            self.dismiss(None)
        elif event.key in steps:
            pane.step(steps[event.key])
        elif event.key in {"pagedown", "space"}:
            pane.leaf(1)
        elif event.key == "pageup":
            pane.leaf(-1)
        elif event.key in {"home", "end", "g", "G"}:
            pane.ends(last=event.key in {"end", "G"})
