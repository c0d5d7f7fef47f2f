"""What agents print, as they print it: up to four sessions side by side."""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from threading import Thread
from typing import Any

from textual.app import ComposeResult
from textual.containers import Grid
from textual.message import Message

from lockgate.core.model.task import Session, SessionId
from lockgate.errors import Refused
from lockgate.faces.feed_client import FeedRefused, Following
from lockgate.faces.tui.look import Line, Lines, cut, one, wrapped
from lockgate.faces.tui.panes import Pane
from lockgate.faces.tui.screens.base import Face, Kit
from lockgate.faces.words.output import readable
from lockgate.faces.words.task import agent_text

MOST = 4
BESIDE_FROM = 100  # columns from which two stand side by side
REMEMBERED = 2_000  # lines of a session that can be scrolled to


class SessionPane(Pane):
    """The lines of one session; it stays at the end while the end is in sight."""

    DEFAULT_CSS = (
        "SessionPane { border: round $panel; } SessionPane:focus { border: round $primary; }"
    )

    def __init__(self, desk: Kit, session: Session) -> None:
        super().__init__(desk.look)
        if not desk.look.utf8:
            self.styles.border = ("ascii", "grey")
        self.session = session
        self.follows = True
        self.over = False
        self._said: deque[str] = deque(maxlen=REMEMBERED)
        role = f"{session.role}, {agent_text(session.agent)}" if session.agent else session.role
        self.border_title = _unmarked(f"{session.id} ({role})")

    def on_mount(self) -> None:
        self.draw(self._wrapped)

    def add(self, lines: Sequence[str]) -> None:
        self._said.extend(readable(list(lines)))
        self.redraw()

    def _wrapped(self, width: int) -> Lines:
        if not self._said:
            return [((" it has printed nothing yet", "dim"),)]
        lines: list[Line] = []
        for text in self._said:
            lines += wrapped(text, width, "busy" if text.startswith("> ") else "plain")
        return lines + ([((" it has ended", "dim"),)] if self.over else [])

    def step(self, by: int) -> None:
        self.follows = False
        super().step(by)
        self.follows = by > 0 and self.scroll_offset.y >= self.max_scroll_y

    def ends(self, *, last: bool) -> None:
        self.follows = last
        super().ends(last=last)


def _unmarked(text: str) -> str:
    """A border's title takes markup: none of it is ours."""
    return cut(one(text), 80).replace("[", "(").replace("]", ")")


class Printed(Message):
    """A session has printed something, or has ended."""

    def __init__(self, session: SessionId, lines: Sequence[str], *, over: bool = False) -> None:
        super().__init__()
        self.session, self.lines, self.over = session, lines, over


class OutputFace(Face):
    """Each session in a pane; the feed brings what they print while somebody looks."""

    AUTO_FOCUS = "SessionPane"
    DEFAULT_CSS = "OutputFace Grid { height: 1fr; grid-gutter: 0; }"

    def __init__(self, desk: Kit, sessions: Sequence[Session]) -> None:
        super().__init__(desk)
        self.watched = tuple(sessions[:MOST])
        self._zoomed = False
        self._following: Following | None = None

    def body(self) -> ComposeResult:
        with Grid():
            yield from (SessionPane(self.desk, it) for it in self.watched)

    def on_mount(self) -> None:
        self._lay_out()
        Thread(target=self._read_all, daemon=True).start()

    def on_unmount(self) -> None:
        if self._following is not None:
            self._following.close()

    def on_resize(self) -> None:
        self._lay_out()
        super().on_resize()

    def _lay_out(self) -> None:
        panes = list(self.query(SessionPane))
        for pane in panes:
            pane.display = not self._zoomed or pane.has_focus
        across = 2 if len(panes) > 1 and self.size.width >= BESIDE_FROM and not self._zoomed else 1
        self.query_one(Grid).styles.grid_size_columns = across

    # --- reading, in a thread of its own --------------------------------------------------------

    def _read_all(self) -> None:
        """What has ended is read once; what lives comes with the feed, or once where none is."""
        alive: list[SessionId] = []
        for it in self.watched:
            try:
                lines, over = self.desk.source.output(it)
            except Refused as error:
                self.post_message(Printed(it.id, (f"{error.what}: {error.why}", error.fix)))
                continue
            if over or self.desk.state.link.lost:
                self.post_message(Printed(it.id, lines, over=over))
            else:
                alive.append(it.id)
        if alive and self.is_running:
            self._following = self.desk.source.follow(None, alive)
            with suppress(FeedRefused):
                self._hear(self._following)

    def _hear(self, following: Following) -> None:
        for item in following:
            told: dict[str, Any] = item.get("live", {}).get("output", {})
            if told:
                self.post_message(Printed(SessionId(told["session"]), told["lines"]))
            elif item.get("event", {}).get("type") == "session.ended":
                self._note_ends()

    def _note_ends(self) -> None:
        for it in self.watched:
            if self.desk.source.is_over(it):
                self.post_message(Printed(it.id, (), over=True))

    def on_printed(self, event: Printed) -> None:
        for pane in self.query(SessionPane):
            if pane.session.id == event.session:
                pane.over = pane.over or event.over
                pane.add(event.lines)

    # --- what is shown, and keys ----------------------------------------------------------------

    def head(self, width: int) -> Line:
        told = f" output of {', '.join(it.id for it in self.watched)}"
        return ((cut(told, width), "head"),)

    def offers(self) -> Iterator[tuple[str, str]]:
        keys = self.desk.keys
        if len(self.watched) > 1:
            yield "Tab", "next session"
            yield keys.key("zoom"), "zoom"
        yield keys.key("last"), "newest"
        yield keys.key("back"), "back"

    def does(self, action: str) -> bool:
        match action:
            case "back" | "quit" | "output":
                self.dismiss()
            case "zoom":
                self._zoomed = not self._zoomed
                self._lay_out()
            case _:
                return False
        return True
