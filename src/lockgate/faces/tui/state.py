"""What the board knows now: its rows, the needs, the last events, and how fresh all that is."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import cast

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from lockgate import __version__
from lockgate.core.fleet import FleetSeen
from lockgate.core.lifecycle.needs import Need, order
from lockgate.core.model.facts import StoredEvent
from lockgate.core.model.task import ProjectId, Status, TaskId
from lockgate.faces.tui.window import ENDED, Row, Window, row_of
from lockgate.faces.words.board import age
from lockgate.services.task.boards import Inbox
from lockgate.services.task.rows import Board
from lockgate.services.train.board import TrainBoard

Facts = Mapping[str, object]
QUIET = 40.0  # seconds without a sign of life, which comes every 15, from which we say so
REMEMBERED = 1_000  # events
CREATED, MOVED, DELETED = "task.created", "status.changed", "task.deleted"
FILTERS: Mapping[str, frozenset[Status]] = {
    "all": frozenset(Status),
    "active": frozenset(Status) - ENDED,
    "needs you": frozenset(Status) - ENDED,
    "ended": ENDED,
}


class Link(Struct):
    """The way to the orchestrator: when it last said something, and what is wrong with it."""

    heard: float = 0.0
    lost: str = ""
    version: str = ""
    pid: int = 0

    def trouble(self, now: float) -> str:
        """What people must know of it; empty where all is well."""
        old = f"what you see is {age(now - self.heard)} old: " if self.heard else "no news: "
        if self.lost:
            return f"{old}{self.lost}"
        if self.heard and now - self.heard > QUIET:
            return f"{old}the orchestrator says nothing"
        if self.version and self.version != __version__:
            told = f"the orchestrator is version {self.version}, this board is {__version__}"
            return f"{told}: lockgate down, then lockgate up"
        return ""


class Changed(Struct):
    """What of the screen a piece of news concerns."""

    rows: bool = False
    events: bool = False
    train: bool = False
    link: bool = False
    resync: bool = False
    agents: bool = False
    tasks: set[TaskId] = field(default_factory=set[TaskId])

    def add(self, other: "Changed") -> None:
        for name in ("rows", "events", "train", "link", "resync", "agents"):
            setattr(self, name, getattr(self, name) or getattr(other, name))
        self.tasks |= other.tasks


class State(Struct):
    """Only the screen's own thread changes it."""

    window: Window = field(default_factory=Window)
    needs: dict[str, Need] = field(default_factory=dict[str, Need])
    untasked: dict[str, Need] = field(default_factory=dict[str, Need])  # of projects and the loop
    events: deque[StoredEvent] = field(
        default_factory=lambda: deque[StoredEvent](maxlen=REMEMBERED)
    )
    trains: dict[ProjectId, TrainBoard] = field(default_factory=dict[ProjectId, TrainBoard])
    link: Link = field(default_factory=Link)
    project: ProjectId | None = None
    name: str = ""  # of that project
    names: dict[ProjectId, str] = field(default_factory=dict[ProjectId, str])
    filter: str = "active"
    text: str = ""
    marked: set[TaskId] = field(default_factory=set[TaskId])
    selected: TaskId | None = None
    seq: int = 0
    counted: int = 0  # the last event that the counts have
    agents: int = 0
    today: float = 0.0
    hosts: FleetSeen | None = None  # None where this machine works alone
    loaded: bool = False
    reading: bool = False  # a first page; what is heard meanwhile is newer than that
    heard: dict[TaskId, Row | None] = field(default_factory=dict[TaskId, Row | None])

    def begin_reading(self) -> None:
        self.heard.clear()
        self.reading = True

    def load(self, board: Board, inbox: Inbox) -> None:
        """A first page, and the needs of all projects; what the feed told meanwhile is newer."""
        self.reading = False
        self.window.load(board)
        self._stand()
        self.needs = {it.key: it for it in inbox.needs} | self.untasked
        self.seq, self.counted = max(self.seq, board.seq), board.seq
        self.loaded = True
        for id, row in self.heard.items():
            known = self.window.row(id)
            if row is None:
                self._gone(id, Changed())
            elif known is None or known.rev < row.rev:
                self._row(row, Changed())

    def sorted_needs(self) -> list[Need]:
        return sorted(self.needs.values(), key=order)

    def here(self, project: ProjectId) -> bool:
        return self.project is None or self.project == project

    def shows(self, row: Row) -> bool:
        """Whether the row belongs to what is asked for."""
        if not self.here(row.project) or row.status not in FILTERS[self.filter]:
            return False
        if self.filter == "needs you" and row.need is None:
            return False
        text = self.text.lower()
        return any(text in it.lower() for it in (row.id, row.branch, row.summary))

    # --- news -----------------------------------------------------------------------------------

    def hear(self, item: Facts, now: float) -> Changed:
        """One line of the feed."""
        changed = Changed()
        gone = item.get("lost") or item.get("bye")
        if gone:
            changed.link = self.link.lost != gone
            self.link.lost = str(gone)
            return changed
        self.link.heard = now
        changed.link = bool(self.link.lost) or "hello" in item
        self.link.lost = ""
        if "hello" in item:
            hello = cast("Facts", item["hello"])
            self.link.version, self.link.pid = str(hello["version"]), cast("int", hello["pid"])
            self._untasked((), tuple(self.untasked), changed)  # what there is now comes next
            self.trains.clear()
        elif "event" in item:
            self._event(item, changed)
        elif "live" in item:
            self._live(cast("Facts", item["live"]), changed)
        elif "resync" in item:
            changed.resync = True
        return changed

    def _live(self, live: Facts, changed: Changed) -> None:
        if "train" in live:
            train = msgspec.convert(live["train"], TrainBoard)
            self.trains[train.project] = train
            self._stand()
            changed.train = changed.rows = True
        if "needs" in live:
            told = cast("Mapping[str, list[Facts]]", live["needs"])
            came = tuple(msgspec.convert(it, Need) for it in told["came"])
            self._untasked(came, tuple(str(it["key"]) for it in told["went"]), changed)

    def _stand(self) -> None:
        """Where each change stands in its queue: only the orchestrator knows which are tested."""
        cars = {it.task: it for train in self.trains.values() for it in train.cars}
        for at, row in enumerate(self.window.rows):
            car = cars.get(row.id)
            place = (car.position, car.standing) if car else row.place
            if row.status is Status.REVIEWING and place != row.place:
                self.window.rows[at] = replace(row, place=place)

    def _untasked(self, came: Sequence[Need], went: Sequence[str], changed: Changed) -> None:
        """Needs of projects and of the loop; those of tasks come with their rows."""
        for key in went:
            if self.untasked.pop(key, None) is not None:
                self.needs.pop(key, None)
                changed.rows = True
        for need in came:
            if need.task is None:
                self.untasked[need.key] = self.needs[need.key] = need
                changed.rows = True

    def _event(self, item: Facts, changed: Changed) -> None:
        """The log may have it already; its row is newer than what was read with the log."""
        event = msgspec.convert(item["event"], StoredEvent, strict=False)
        self.seq = max(self.seq, event.seq)
        changed.events = True
        if not self.events or self.events[-1].seq < event.seq:
            self.events.append(event)
        changed.tasks.add(event.task)
        changed.agents = event.type.startswith(("session.", "agent."))
        if item.get("row") is None:
            self._gone(event.task, changed)
            changed.resync = event.type == DELETED  # nobody tells which count it was in
            return
        row = row_of(cast("Facts", item["row"]))
        self._count(event, row)
        self._row(row, changed)

    def _count(self, event: StoredEvent, row: Row) -> None:
        """How many tasks are in each status, of those that are shown."""
        if event.seq <= self.counted or not self.here(row.project):
            return
        self.counted = event.seq
        moved = {CREATED: (None, "PENDING"), MOVED: (event.data.get("from"), event.data.get("to"))}
        left, came = moved.get(event.type, (None, None))
        counts = dict(self.window.counts)
        for name, by in ((left, -1), (came, 1)):
            if isinstance(name, str):
                status = Status[name]
                counts[status] = counts.get(status, 0) + by
        self.window.counts = counts

    def _gone(self, id: TaskId, changed: Changed) -> None:
        if self.reading:
            self.heard[id] = None
        if self.window.row(id) is not None:
            self.window.remove(id)
            self.marked.discard(id)
            changed.rows = True
        self._drop_needs(id)

    def _row(self, row: Row, changed: Changed) -> None:
        if self.reading:
            self.heard[row.id] = row
        self._drop_needs(row.id)
        if row.need is not None:
            self.needs[row.need.key] = row.need
        self.names[row.project] = row.project_name
        changed.rows = True
        if self.shows(row):
            self.window.put(row)
        else:
            self.window.remove(row.id)

    def _drop_needs(self, id: TaskId) -> None:
        for key in [key for key, need in self.needs.items() if need.task == id]:
            del self.needs[key]
