"""What every screen of the board has: a head, a notice, the keys, and the way they are heard."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from textual.app import ComposeResult
from textual.events import Key
from textual.message import Message
from textual.screen import Screen

from lockgate.core.lifecycle.needs import NeedKind
from lockgate.core.model.task import TaskId
from lockgate.faces.tui.deeds import Deeds
from lockgate.faces.tui.keys import Action, Keys, written
from lockgate.faces.tui.look import Line, Lines, Look, cut, joined, length, one, spread, wrapped
from lockgate.faces.tui.panes import Bar, Pane
from lockgate.faces.tui.rows import fits, opens
from lockgate.faces.tui.source import Reading
from lockgate.faces.tui.state import State
from lockgate.faces.tui.window import Row
from lockgate.faces.words.fleet import is_whole

VIEWS = {"board": "Board", "inbox": "Inbox", "train": "Queue", "stats": "Stats", "events": "Events"}
STOPS = frozenset({NeedKind.RED_TIP, NeedKind.CHECKOUT})  # a merge queue
TALL = 12  # rows from which a notice may have three
MOVES = ("down", "up", "page_down", "page_up", "first", "last")


class Kit(Struct):
    """What the screens share."""

    source: Reading
    deeds: Deeds
    keys: Keys
    look: Look
    state: State
    now: Callable[[], float]


class Asked(Message):
    """A key was pressed that the screen does not answer itself."""

    def __init__(self, action: str, rows: Sequence[Row] = ()) -> None:
        super().__init__()
        self.action, self.rows = action, tuple(rows)


class Face(Screen[None]):
    """Below the head is the screen's own part; it says which task it shows."""

    AUTO_FOCUS = "Pane"
    DEFAULT_CSS = "Face { background: $background; layers: base; }"
    VIEW = ""
    REVIEWS = False

    def __init__(self, desk: Kit) -> None:
        super().__init__()
        self.desk = desk
        self._said = ("", "plain")

    @property
    def look(self) -> Look:
        return self.desk.look

    def compose(self) -> ComposeResult:
        yield Bar(self.look, over="bar", id="head")
        yield from self.body()
        yield Bar(self.look, over="hot", id="trouble")
        yield Bar(self.look, id="notice")
        yield Bar(self.look, over="bar", id="foot")

    def body(self) -> ComposeResult:
        yield Pane(self.look, id="text")

    @property
    def is_there(self) -> bool:
        """Whether its parts are: news may come while it is made, or taken away."""
        return self.is_mounted and bool(self.query("#foot"))

    # --- what it is about -----------------------------------------------------------------------

    def row(self) -> Row | None:
        """The task that keys are about; None where there is none."""
        return None

    def rows(self) -> tuple[Row, ...]:
        row = self.row()
        return () if row is None else (row,)

    def news(self, tasks: set[TaskId]) -> None:
        """Something has changed; these tasks among others."""

    def on_screen_resume(self) -> None:
        self.refresh_bars()

    def on_resize(self) -> None:
        self.refresh_bars()

    # --- the bars -------------------------------------------------------------------------------

    def refresh_bars(self) -> None:
        if not self.is_there:
            return
        self.query_one("#head", Bar).show(self.head(self.size.width))
        self.query_one("#foot", Bar).show(self.foot(self.size.width))
        trouble = self.desk.state.link.trouble(self.desk.now())
        bar = self.query_one("#trouble", Bar)
        bar.display = bool(trouble)
        bar.show(((f" {cut(one(trouble), self.size.width - 2)}", "hot"),))
        self.query_one("#notice", Bar).show_all(self._notice(self.size.width))

    def say(self, text: str, style: str = "plain") -> None:
        """A notice, until the next one."""
        self._said = (one(text), style)
        self.refresh_bars()

    @property
    def said(self) -> str:
        return self._said[0]

    def _notice(self, width: int) -> Lines:
        """One line at least, so that the screen does not jump; a long refusal has more."""
        text, style = self._said
        most = 3 if self.size.height >= TALL else 1
        return wrapped(f" {text}", max(10, width - 1), style)[:most]

    def head(self, width: int) -> Line:
        state = self.desk.state
        name = one(state.name) if state.project else f"all projects ({len(state.names)})"
        what = f" [{state.filter}{f' /{one(state.text)}' if state.text else ''}]"
        left: Line = ((" lockgate", "head"), (f"  {name}", "plain"), (what, "dim"))
        tabs = self._tabs()
        right = joined(self._counts())
        if width >= length(left) + length(tabs) + length(right) + 6:
            left = (*left, ("   ", "plain"), *tabs)
        return spread(left, (*right, (" ", "plain")), width)

    def _tabs(self) -> Line:
        spans: list[tuple[str, str]] = []
        for view, name in VIEWS.items():
            label = f" {self.desk.keys.key(view)} {name} "
            spans.append((label, "tab" if view == self.VIEW else "dim"))
        return tuple(spans)

    def _counts(self) -> Iterator[Line]:
        state = self.desk.state
        needs = len([it for it in state.needs.values() if not it.dimmed])
        dimmed = len(state.needs) - needs
        if needs or not dimmed:
            yield ((f" needs you {needs} ", "hot"),) if needs else (("nothing needs you", "dim"),)
        if dimmed:
            yield ((f"{dimmed} dimmed", "dim"),)
        if any(it.kind in STOPS and state.here(it.project) for it in state.needs.values()):
            yield (("nothing lands", "bad"),)
        yield ((f"agents {state.agents}", "busy" if state.agents else "dim"),)
        if state.hosts is not None:
            yield ((f"hosts {len(state.hosts.hosts)}", "dim" if is_whole(state.hosts) else "bad"),)
        yield ((f"${state.today:.2f} today", "dim"),) if state.today else ()

    def foot(self, width: int) -> Line:
        """The keys that can work here, as many as fit; the last ones always do."""
        last = [(self.desk.keys.key(it), self.desk.keys.named(it).label) for it in ("keys", "quit")]
        room = width - sum(len(key) + len(label) + 3 for key, label in last)
        shown: list[tuple[str, str]] = []
        for key, label in self.offers():
            room -= len(key) + len(label) + 3
            if room < 0:
                break
            shown.append((key, label))
        spans: list[tuple[str, str]] = []
        for key, label in (*shown, *last):
            spans += ((f" {key} ", "key"), (f"{label} ", "dim"))
        return tuple(spans)

    def offers(self) -> Iterator[tuple[str, str]]:
        """Keys and labels in their order of importance."""
        row = self.row()
        keys = self.desk.keys
        if row is not None:
            yield keys.key("open"), opens(row)
        names = ("approve", "reject", "why", "diff", "output", "say", "takeover", "queue")
        more = ("view", "cancel", "delete", "mark", "filter", "search", "create", "palette")
        for name in (*names, *more):
            if (row is not None and fits(name, row)) or name in {"filter", "search", "create"}:
                yield keys.key(name), self.label(keys.named(name), row)

    def label(self, action: Action, row: Row | None) -> str:
        if action.name == "takeover" and row is not None and row.session == "human":
            return "hand back"
        return action.label

    # --- keys -----------------------------------------------------------------------------------

    def pane(self) -> Pane:
        """The pane that keys move in."""
        focused = self.focused
        return focused if isinstance(focused, Pane) else self.query_one(Pane)

    def on_key(self, event: Key) -> None:
        names = [event.key, *([event.character] if event.character else [])]
        action = self.desk.keys.action(names, review=self.REVIEWS)
        if action is None:
            if event.is_printable:
                told = f"{written(event.character or event.key)} does nothing here;"
                self.say(f"{told} {self.desk.keys.key('keys')} lists the keys", "dim")
            return
        event.stop()
        event.prevent_default()
        if action in MOVES:
            self.move(action)
        elif not self.does(action):
            self.post_message(Asked(action, self.rows()))

    def does(self, action: str) -> bool:
        """Whether the screen has answered it itself."""
        del action
        return False

    def move(self, action: str) -> None:
        pane = self.pane()
        match action:
            case "down" | "up":
                pane.step(1 if action == "down" else -1)
            case "page_down" | "page_up":
                pane.leaf(1 if action == "page_down" else -1)
            case _:
                pane.ends(last=action == "last")
