"""The board as a program: its views, the feed that keeps them fresh, and what keys ask for."""

import asyncio
import signal
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeVar

from msgspec import Struct
from textual.app import App
from textual.binding import Binding, BindingType
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message
from textual.worker import Worker

from lockgate.bootstrap import App as Services
from lockgate.errors import LockgateError
from lockgate.faces.feed_client import FeedRefused, Following
from lockgate.faces.tui.actions.hand import Hand
from lockgate.faces.tui.actions.on_board import OnBoard
from lockgate.faces.tui.actions.on_reviews import OnReviews
from lockgate.faces.tui.actions.on_tasks import OnTasks
from lockgate.faces.tui.deeds import Deeds
from lockgate.faces.tui.keys import keys_of, theme_of
from lockgate.faces.tui.look import THEMES, Look, look_of
from lockgate.faces.tui.rows import fits
from lockgate.faces.tui.screens.base import VIEWS, Asked, Face, Kit
from lockgate.faces.tui.screens.board import BoardFace
from lockgate.faces.tui.screens.figures import StatsFace, TrainFace
from lockgate.faces.tui.screens.review import ReviewFace
from lockgate.faces.tui.screens.views import EventsFace, InboxFace
from lockgate.faces.tui.source import Reading
from lockgate.faces.tui.state import Changed, Facts, State
from lockgate.faces.tui.window import Row

T = TypeVar("T")
Work = Callable[[], Coroutine[None, None, None]]
READERS = 4
AGAIN = 5.0  # seconds after which what was refused, a feed or a page, is asked for again
PATIENCE = 2.0  # seconds that the feed has to end with us
PAINTS = 0.05  # seconds between two paints while news comes
AGES = 10  # ticks between two paints of the ages
HOUR = 3600  # ticks after which the day may be another one, and cost less
LEAST = (60, 16)  # below this there is only the inbox
FACES: Mapping[str, Callable[[Kit], Face]] = {
    "board": BoardFace,
    "inbox": InboxFace,
    "train": TrainFace,
    "stats": StatsFace,
    "events": EventsFace,
}


class Acting(Struct, frozen=True):
    """Finds what an action does, in the review or on the list."""

    hand: Hand

    async def perform(self, action: str, rows: tuple[Row, ...]) -> None:
        """What could not be done is said on the screen."""
        try:
            await self._perform(action, rows)
        except LockgateError as error:
            self.hand.say(f"{error.what}: {error.why}; {error.fix}", "bad")

    async def _perform(self, action: str, rows: tuple[Row, ...]) -> None:
        reviews = OnReviews(self.hand) if isinstance(self.hand.app.screen, ReviewFace) else None
        for found in (reviews, OnBoard(self.hand)):
            alone: Callable[[], Awaitable[None]] | None = getattr(found, action, None)
            if alone is not None:
                await alone()
                return
        does: Callable[[tuple[Row, ...]], Awaitable[None]] = getattr(OnTasks(self.hand), action)
        able = tuple(row for row in rows if fits(action, row))
        if able:
            await does(able)
        elif rows:
            await self.hand.why_not(action, rows[0])
        else:
            self.hand.say("no task is selected", "dim")


class News(Message):
    """The feed has brought something."""


class BoardApp(App[None]):
    CSS = "Screen { background: $background; }"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+q", "quit", priority=True, show=False)]

    def __init__(
        self, desk: Kit, commands: Sequence[tuple[str, str]] = (), parent: int | None = None
    ) -> None:
        super().__init__(ansi_color=True if desk.look.colours == "plain" else None)
        for theme in THEMES.values():
            self.register_theme(theme)
        self.theme = desk.look.theme.name
        self.desk = desk
        self._waiter = parent
        self._pool = ThreadPoolExecutor(READERS, thread_name_prefix="board")
        self._hand = Hand(self, desk, self._pool, self.reload, commands)
        self._heard: deque[Facts] = deque()
        self._over = threading.Event()
        self._painting = False
        self._ticks = 0
        self._paging = False
        self._feeds: list[tuple[Following, threading.Thread]] = []
        self._view = "board"  # that was asked for; a small terminal shows another
        for name in FACES:
            self.add_mode(name, self._maker(name))  # pyright: ignore[reportUnknownMemberType] - a Screen of anything

    def let_go(self) -> None:
        """Where the terminal went first, Textual ends without its thread that reads there."""
        if isinstance(self._driver, LinuxDriver):
            self._driver.exit_event.set()

    def _maker(self, name: str) -> Callable[[], Face]:
        return lambda: FACES[name](self.desk)

    # --- begin and end --------------------------------------------------------------------------

    def on_mount(self) -> None:
        self.switch_mode("inbox" if self._is_small() else "board")
        self.reload()
        self.set_interval(1.0, self._tick)
        for number in (signal.SIGTERM, signal.SIGHUP):
            self._on_signal(number)
        if self._waiter is not None:
            asyncio.get_running_loop().add_reader(self._waiter, self._leave_alone)

    def _leave_alone(self) -> None:
        """Who waited for us is gone, and the terminal is another's: we may still put it right."""
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        self.exit()

    def _on_signal(self, number: signal.Signals) -> None:
        """Restore the terminal when a signal ends the board."""
        if threading.current_thread() is threading.main_thread():
            asyncio.get_running_loop().add_signal_handler(number, self.exit)

    def on_unmount(self) -> None:
        self._over.set()
        for following, _ in self._feeds:
            following.close()
        for _, thread in self._feeds[:1]:
            thread.join(PATIENCE)
        self._pool.shutdown(wait=False, cancel_futures=True)

    # --- reading --------------------------------------------------------------------------------

    def _begin(self, work: Work, group: str, *, exclusive: bool = False) -> None:
        """Beside what goes on; where it is exclusive, in place of the one before it."""
        guarded = partial(self._guarded, work, group)
        _: Worker[None] = self.run_worker(guarded, group=group, exclusive=exclusive)

    async def _guarded(self, work: Work, what: str) -> None:
        """A bug of ours is told, and takes nobody's board away."""
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - as above
            self._say(f"this is a bug in Lockgate: {what}: {error!r}", "bad")

    async def _read(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def reload(self) -> None:
        """The first page again: after another filter, and where we have missed something."""
        self._begin(self._load, "load", exclusive=True)

    async def _load(self) -> None:
        state = self.desk.state
        state.begin_reading()
        try:
            board = await self._read(lambda: self.desk.source.board(state))
            inbox = await self._read(self.desk.source.inbox)
            projects = await self._read(self.desk.source.projects)
        except LockgateError as error:
            state.reading = False
            self._say(f"{error.what}: {error.why}; {error.fix}", "bad")
            self.set_timer(AGAIN, self.reload)
            return
        state.names = {it.id: it.name for it in projects}
        state.load(board, inbox)
        self._paint(Changed(rows=True, events=True))
        if not self._feeds:
            for trouble in self.desk.keys.troubles:
                self._say(trouble, "bad")
            events = await self._read(lambda: self.desk.source.recent(board.seq))
            state.events.extend(events)
            self._hear_from(self.desk.source.follow(board.seq))
            self._read_figures()

    async def _more(self, *, before: bool) -> None:
        """The next page, or the one before, while the cursor comes near."""
        window = self.desk.state.window
        if self._paging or (not before and window.after is None):
            return
        self._paging = True
        try:
            token = window.token_before() if before else window.after
            board = await self._read(lambda: self.desk.source.board(self.desk.state, token))
            (window.load_before if before else window.load_next)(board)
            self._paint(Changed(rows=True))
        finally:
            self._paging = False

    def _read_figures(self) -> None:
        self._begin(self._figures, "figures", exclusive=True)

    async def _figures(self) -> None:
        state = self.desk.state
        try:
            state.agents = len(await self._read(self.desk.source.at_work))
            state.today = await self._read(lambda: self.desk.source.spent_today(state.project))
            state.hosts = await self._read(self.desk.source.app.fleet)
        except LockgateError as error:
            self._say(f"{error.what}: {error.why}", "bad")
        self._paint(Changed(link=True))

    # --- the feed -------------------------------------------------------------------------------

    def _hear_from(self, following: Following) -> None:
        thread = threading.Thread(target=self._follow, args=(following,), daemon=True)
        self._feeds.append((following, thread))
        thread.start()

    def _follow(self, following: Following) -> None:
        """In a thread: what the feed says is handed over, and painted a few times a second."""
        while not self._over.is_set():
            try:
                for item in following:
                    self._hand_over(item)
            except FeedRefused as error:
                self._hand_over({"lost": str(error)})
                self._over.wait(AGAIN)
                following = self.desk.source.follow(self.desk.state.seq)
                self._feeds.append((following, threading.current_thread()))

    def _hand_over(self, item: Facts) -> None:
        self._heard.append(item)
        if not self._painting and not self._over.is_set():
            self._painting = True
            self.post_message(News())

    def on_news(self) -> None:
        self._hear()
        self.set_timer(PAINTS, self._rested)

    def _rested(self) -> None:
        """What came while we did not paint is painted now."""
        self._painting = False
        if self._heard:
            self._painting = True
            self.on_news()

    def _hear(self) -> None:
        changed, now = Changed(), self.desk.now()
        sessions = False
        while self._heard:
            item = self._heard.popleft()
            told = self.desk.state.hear(item, now)
            changed.add(told)
            sessions = sessions or told.agents
        if changed.resync:
            self.reload()
        if sessions:
            self._read_figures()
        self._paint(changed)

    def _paint(self, changed: Changed) -> None:
        for screen in self.screen_stack:
            if not isinstance(screen, Face) or not screen.is_there:
                continue
            if changed.rows or changed.events or changed.train:
                screen.news(changed.tasks)
            screen.refresh_bars()
            if changed.train and isinstance(screen, TrainFace):
                self._begin(self._read_view, "view", exclusive=True)
            if isinstance(screen, ReviewFace) and screen.task_id in changed.tasks:
                refresh = partial(OnReviews(self._hand).refresh, screen.task_id)
                self._begin(refresh, "review")

    def _tick(self) -> None:
        self._ticks += 1
        self._fit()
        screen = self.screen
        if isinstance(screen, Face) and screen.is_there:
            screen.refresh_bars()
            if self._ticks % AGES == 0:
                screen.news(set())
        if self._ticks % HOUR == 0:
            self._read_figures()

    # --- keys -----------------------------------------------------------------------------------

    def _say(self, text: str, style: str) -> None:
        if isinstance(self.screen, Face):
            self.screen.say(text, style)

    def on_asked(self, event: Asked) -> None:
        match event.action:
            case "quit":
                self.exit()
            case "more" | "more_before":
                more = partial(self._more, before=event.action == "more_before")
                self._begin(more, "more")
            case "page":
                self._begin(partial(self._page, event), "page", exclusive=True)
            case "row":
                self._begin(self._row, "row", exclusive=True)
            case "read_trains" | "read_stats":
                self._begin(self._read_view, "view", exclusive=True)
            case view if view in VIEWS:
                self._go(view)
            case action:
                doing = partial(Acting(self._hand).perform, action, event.rows)
                self._begin(doing, action)

    async def _page(self, event: Asked) -> None:
        screen = self.screen
        if not event.rows or not isinstance(screen, BoardFace):
            return
        page = await self._read(lambda: self.desk.source.page(event.rows[0].id))
        if page is not None:
            screen.show_page(page)

    async def _read_view(self) -> None:
        screen, project = self.screen, self.desk.state.project
        try:
            if isinstance(screen, TrainFace):
                told = dict(self.desk.state.trains)
                found = await self._read(lambda: self.desk.source.trains(project, told))
                screen.show_trains(found)
            elif isinstance(screen, StatsFace):
                days = screen.days
                self.desk.state.hosts = await self._read(self.desk.source.app.fleet)
                screen.show_stats(await self._read(lambda: self.desk.source.stats(days, project)))
        except LockgateError as error:
            self._say(f"{error.what}: {error.why}; {error.fix}", "bad")

    async def _row(self) -> None:
        """The task of a need that the board does not hold."""
        screen = self.screen
        need = screen.need() if isinstance(screen, InboxFace) else None
        if need is not None and need.task is not None and isinstance(screen, InboxFace):
            id = need.task
            row = await self._read(lambda: self.desk.source.row(id))
            if row is not None:
                screen.keep(row)

    # --- views ----------------------------------------------------------------------------------

    def _go(self, view: str) -> None:
        if self._is_small() and view != "inbox":
            self._say("this terminal is too small for more than the inbox (60 x 16)", "need")
            return
        self._view = view
        if len(self.screen_stack) == 1 and view != self.current_mode:
            self.switch_mode(view)

    def _is_small(self) -> bool:
        return self.size.width < LEAST[0] or self.size.height < LEAST[1]

    def on_resize(self) -> None:
        self._fit()

    def _fit(self) -> None:
        """A box that is open stays open; the view below it is another one once it has closed."""
        wanted = "inbox" if self._is_small() else self._view
        if (
            len(self.screen_stack) == 1
            and self.current_mode in VIEWS
            and wanted != self.current_mode
        ):
            self.switch_mode(wanted)


# Opening it.


def make_desk(
    it: Services, where: Path, look: Look, *, everywhere: bool = False, read_only: bool = False
) -> Kit:
    """All projects where the directory is in none."""
    state = State()
    if not everywhere:
        with suppress(LockgateError):
            project = it.projects.here(where)
            state.project, state.name = project.id, project.name
    source = Reading(it, where)
    deeds = Deeds(it, source.wake, read_only)
    return Kit(source, deeds, keys_of(it.home), look, state, time.time)


class Opening(Struct, frozen=True):
    """How it is opened; at the end of what `parent` reads the process is gone that waits for us."""

    commands: Sequence[tuple[str, str]] = ()
    everywhere: bool = False
    read_only: bool = False
    parent: int | None = None


def open_board(it: Services, where: Path, how: Opening) -> None:
    look = look_of(chosen=theme_of(it.home))
    desk = make_desk(it, where, look, everywhere=how.everywhere, read_only=how.read_only)
    board = BoardApp(desk, how.commands, how.parent)
    try:
        board.run()
    finally:
        board.let_go()
