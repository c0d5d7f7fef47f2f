"""The feed: what happens in a home, as lines of JSON for all who follow, each at their own pace.

The store is read once for all of them. One thread looks and tells (it calls what `FeedSource`
has); a reader may be let in and a change noted from any thread.
"""

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from threading import Lock, Thread
from typing import TypeVar

from msgspec import Struct, field

from lockgate.core.lifecycle.needs import Trouble
from lockgate.core.model.facts import StoredEvent, event_line
from lockgate.core.model.task import ProjectId, SessionId, TaskId
from lockgate.errors import LockgateError, Refused
from lockgate.ports import Clock, Line, Store, Tail, Taken

MOST = 64  # who follow at once
BEHIND = 1000  # events after which a reader is told to look again
AT_ONCE = 200  # events that are read at once
PIECE = 1 << 16  # bytes that one reader gets at once
BEAT = 15.0  # seconds
GLANCE = 0.25  # seconds between two looks at a session's output
SOON = 0.5  # seconds after which a train that has changed is looked at once more
AGAIN = 1.0  # seconds after which a store that failed is asked again
WAITING = 100  # live lines that wait for one reader; older ones are dropped
OLDER = 16  # batches of old events that are kept for the next who wants them

Facts = Mapping[str, object]
T = TypeVar("T")


class Wanted(Struct, frozen=True, kw_only=True):
    """What a reader follows: all events after `since`, from now on where that is None."""

    since: int | None = None
    project: ProjectId | None = None
    task: TaskId | None = None
    outputs: tuple[SessionId, ...] = ()
    every: bool = False  # however far behind, every event is told
    needs: bool = False  # also what comes to need a human, and what no longer does

    def has(self, item: "Item") -> bool:
        """What belongs to no project any more is told to everybody."""
        if self.task is not None:
            return item.task == self.task
        return self.project is None or item.project in {None, self.project}


class Riding(Struct, frozen=True):
    """What rides with each event of a task, as it is now; a task that is gone has nothing."""

    project: ProjectId | None = None
    row: Facts | None = None
    need: Facts | None = None


GONE = Riding()


class Item(Struct, frozen=True, kw_only=True):
    seq: int
    task: TaskId
    project: ProjectId | None
    line: bytes


class Trains(Struct, frozen=True):
    """`signs` change when a train does, and cost nothing; `facts` of one may take git its time."""

    signs: Callable[[], Mapping[ProjectId, object]]
    facts: Callable[[ProjectId], Facts]


class Reader(Struct, kw_only=True):
    """`seq` is the last event that was passed; None until the first look at this reader."""

    wanted: Wanted
    seq: int | None = None
    tails: Mapping[SessionId, Tail] = field(default_factory=dict[SessionId, Tail])
    needed: Mapping[str, Facts] | None = None  # as they were told last
    said: deque[bytes] = field(default_factory=lambda: deque[bytes](maxlen=WAITING))


class Feed(Struct, kw_only=True):
    store: Store
    tail: Callable[[SessionId], Tail]
    riding: Callable[[Iterable[TaskId]], Mapping[TaskId, Riding]]
    needs: Callable[[], Mapping[str, Facts]]  # all that needs a human, by key
    trains: Trains
    clock: Clock
    report: Callable[[str], None]
    greeting: Facts  # of this process: pid, version
    troubles: Mapping[str, Trouble]
    wake: Callable[[], None] = lambda: None  # the thread that looks
    changed: Callable[[], None] = lambda: None  # somebody came or left
    _readers: dict[int, Reader] = field(default_factory=dict[int, Reader])
    _arrived: list[Taken] = field(default_factory=list[Taken])
    _guard: Lock = field(default_factory=Lock)  # of these two
    _recent: dict[int, Item] = field(default_factory=dict[int, Item])  # by seq, the newest
    _older: dict[tuple[TaskId | None, int], tuple[Item, ...]] = field(
        default_factory=dict[tuple[TaskId | None, int], tuple[Item, ...]]
    )
    _seq: int = 0  # of the newest that was read
    _settled: deque[TaskId] = field(default_factory=deque[TaskId])
    _signs: Mapping[ProjectId, object] = field(default_factory=dict[ProjectId, object])
    _trains: dict[ProjectId, Facts] = field(default_factory=dict[ProjectId, Facts])
    _looked_at: deque[Facts] = field(default_factory=deque[Facts])  # trains, to be told
    _looking: bool = False  # at trains, in a thread of its own
    _told: Facts = field(default_factory=dict[str, object])  # the troubles, as they were told last
    _failed: str = ""
    _beaten: float = 0.0
    _glanced: float = 0.0
    _may_read: bool = False  # one batch of old events a look, so that nobody waits for another
    _hungry: bool = False  # whether somebody waits for one

    # From any thread.

    @property
    def followed(self) -> bool:
        return bool(self._readers)

    def follow(self, wanted: Wanted, line: Line) -> None:
        """The caller gets all lines from here on; Refused where too many readers are connected."""
        for id in wanted.outputs:
            if self.store.session(id) is None:
                raise _unknown(id)
        reader = Reader(wanted=wanted, tails={it: self.tail(it) for it in wanted.outputs})
        with self._guard:
            if len(self._readers) >= MOST:
                raise _full()
            connection = line.take()
            self._readers[connection.fileno()] = reader
            self._arrived.append(connection)
        self.wake()
        self.changed()

    def note(self, settled: TaskId | None) -> None:
        """Something was committed; or what was to be done for this task is done."""
        if self._readers:
            if settled is not None:
                self._settled.append(settled)
            self.wake()

    # From the thread that tells.

    def arrived(self) -> Sequence[Taken]:
        with self._guard:
            came, self._arrived = self._arrived, []
        return came

    def left(self, reader: int) -> None:
        with self._guard:
            self._readers.pop(reader, None)
        self.changed()

    def farewell(self) -> bytes:
        return _line({"bye": "the orchestrator was stopped"})

    def look(self, now: float) -> float:
        with self._guard:
            readers = list(self._readers.values())
        if not readers:
            return BEAT
        hungry, self._may_read, self._hungry = self._hungry, True, False
        before, beats = (self._seq, self._told), now - self._beaten >= BEAT
        pause = self._guarded(lambda: 0.0 if self._read(readers) or hungry else BEAT, AGAIN)
        self._tell_live(readers)
        self._show_output(readers, now)
        if self._look_at_trains(readers):
            pause = min(pause, SOON)
        if beats:
            self._beaten = now
            _tell(readers, {"beat": self.clock.now()})
        if beats or before != (self._seq, self._told) or self._newly_needs(readers):
            self._guarded(lambda: self._tell_needs(readers), None)
        return min(pause, GLANCE if any(it.tails for it in readers) else BEAT)

    def more(self, reader: int) -> bytes:
        it = self._readers.get(reader)
        if it is None or it.seq is None:
            return b""
        lines, size = list[bytes](), 0
        while size < PIECE:
            found = (
                (it.said.popleft(),) if it.said else self._guarded(partial(self._next, it), None)
            )
            if found is None:
                break
            lines += found
            size += sum(map(len, found))
        return b"".join(lines)

    def _read(self, readers: Sequence[Reader]) -> bool:
        """What is new, once for all; whether there may be more."""
        for reader in readers:
            if reader.seq is None:
                self._begin(reader, alone=all(it.seq is None for it in readers))
        events = self.store.events(None, self._seq, AT_ONCE)
        for item in self._items(events):
            self._recent[item.seq] = item
            self._recent.pop(item.seq - BEHIND, None)
            self._seq = item.seq
        return len(events) == AT_ONCE

    def _begin(self, reader: Reader, *, alone: bool) -> None:
        """The first of all decides from where on events are kept at hand."""
        head, since = self.store.head(), reader.wanted.since
        reader.seq = head if since is None else min(since, head)
        if alone:
            self._recent.clear()
            self._older.clear()
            self._seq = max(reader.seq, head - BEHIND)
        reader.said.append(_line({"hello": {"seq": head, **self.greeting}}))
        if since is not None and since > head:  # another log than the reader knows
            reader.said.append(_line({"resync": head}))
        if self._told:
            reader.said.append(_line(_live("trouble", self._told)))
        for train in tuple(self._trains.values()):
            if reader.wanted.project in {None, train.get("project")}:
                reader.said.append(_line(_live("train", train)))

    def _next(self, reader: Reader) -> tuple[bytes, ...] | None:
        """What comes next, if it is for this reader; None where there is no more now."""
        seq = reader.seq
        if seq is None or seq >= self._seq:
            return None
        item = self._recent.get(seq + 1)
        if item is not None:
            reader.seq = item.seq
            return (item.line,) if reader.wanted.has(item) else ()
        if self._seq - seq > BEHIND and not reader.wanted.every:
            reader.seq = self._seq
            return (_line({"resync": self._seq}),)
        return self._catch_up(reader, seq)

    def _catch_up(self, reader: Reader, seq: int) -> tuple[bytes, ...] | None:
        """From the store, as it was read for another who came by here, or once a look."""
        key = (reader.wanted.task, seq)
        items = self._older.get(key)
        if items is None:
            if not self._may_read:
                self._hungry = True
                return None
            self._may_read = False
            items = self._items(self.store.events(*key, AT_ONCE))
            if len(items) == AT_ONCE:  # what is not full is not the same the next time
                self._older[key] = items
            if len(self._older) > OLDER:
                self._older.pop(next(iter(self._older)))
        known = [it for it in items if it.seq <= self._seq]
        reader.seq = known[-1].seq if len(known) == AT_ONCE else self._seq
        return tuple(it.line for it in known if reader.wanted.has(it))

    def _items(self, events: Sequence[StoredEvent]) -> tuple[Item, ...]:
        """Each with what rides along, which is looked up once for each task."""
        tasks = dict.fromkeys(it.task for it in events)
        riding = dict.fromkeys(tasks, GONE) | dict(self.riding(tasks) if tasks else {})
        tails = {id: _rides(it) for id, it in riding.items()}
        return tuple(
            Item(
                seq=it.seq,
                task=it.task,
                project=riding[it.task].project,
                line=b'{"event":%b%b' % (event_line(it).encode(errors="replace"), tails[it.task]),
            )
            for it in events
        )

    def _guarded(self, work: Callable[[], T], otherwise: T) -> T:
        """A store that fails, or a bug of ours, ends nobody's feed; each is reported once."""
        try:
            return work()
        except LockgateError as error:
            why = str(error)
        except Exception as error:  # noqa: BLE001 - as above
            why = f"a bug in Lockgate: {error!r}"
        if why != self._failed:
            self._failed = why
            self.report(f"feed: {why}")
        return otherwise

    def _tell_live(self, readers: Sequence[Reader]) -> None:
        troubles = {lane: it.why for lane, it in dict(self.troubles).items()}
        if troubles != self._told:
            self._told = troubles
            _tell(readers, _live("trouble", troubles))
        while self._settled:
            id = self._settled.popleft()
            about = [it for it in readers if it.wanted.task == id]
            _tell(about, _live("settled", {"task": id}))

    def _look_at_trains(self, readers: Sequence[Reader]) -> bool:
        """Whether one has changed; it is looked at aside, so that nobody waits for git."""
        while self._looked_at:
            train = self._looked_at.popleft()
            of = train.get("project")
            _tell([it for it in readers if it.wanted.project in {None, of}], _live("train", train))
        signs = self.trains.signs()
        changed = [id for id, sign in signs.items() if self._signs.get(id) != sign]
        if changed and not self._looking:
            self._signs, self._looking = signs, True
            Thread(target=self._look_aside, args=(changed,), daemon=True).start()
        return bool(changed)

    def _look_aside(self, projects: Sequence[ProjectId]) -> None:
        for id in projects:
            facts = self._guarded(partial(self.trains.facts, id), self._trains.get(id, {}))
            if facts != self._trains.get(id, {}):
                self._trains[id] = facts
                self._looked_at.append(facts)
        self._looking = False
        self.wake()

    def _newly_needs(self, readers: Sequence[Reader]) -> bool:
        return any(it.wanted.needs and it.needed is None for it in readers)

    def _tell_needs(self, readers: Sequence[Reader]) -> None:
        """To each who wants it what has changed since it was told last; at first all of it."""
        readers = [it for it in readers if it.wanted.needs]
        if not readers:
            return
        now = dict(self.needs())
        for reader in readers:
            before, reader.needed = reader.needed or {}, now
            came = [now[key] for key in now if key not in before and _is_of(reader, now[key])]
            went = [before[key] for key in before if key not in now and _is_of(reader, before[key])]
            if came or went:
                _tell([reader], _live("needs", {"came": came, "went": went}))

    def _show_output(self, readers: Sequence[Reader], now: float) -> None:
        if now - self._glanced < GLANCE:
            return
        self._glanced = now
        for reader in readers:
            for session, tail in reader.tails.items():
                lines = tail.lines()
                if lines:
                    _tell([reader], _live("output", {"session": session, "lines": lines}))


def _live(kind: str, facts: Facts) -> Facts:
    return {"live": {kind: facts}}


def _is_of(reader: Reader, need: Facts) -> bool:
    """What is of no project is told to everybody."""
    wanted = reader.wanted
    if wanted.task is not None:
        return need.get("task") == wanted.task
    return wanted.project is None or need.get("project") in {None, "", wanted.project}


def _tell(readers: Sequence[Reader], said: Facts) -> None:
    line = _line(said)
    for reader in readers:
        reader.said.append(line)


def _rides(it: Riding) -> bytes:
    """The end of a line that begins with an event."""
    return b',"row":%b,"need":%b}\n' % (_json(it.row), _json(it.need))


def _line(said: Facts) -> bytes:
    return _json(said) + b"\n"


def _json(it: Facts | None) -> bytes:
    """In ASCII: nothing in it moves a cursor."""
    return json.dumps(it, default=str, separators=(",", ":")).encode()


def _full() -> Refused:
    return Refused(
        "no feed was opened",
        why=f"{MOST} are open already",
        fix="close a board or a lockgate events --follow, then try again",
    )


def _unknown(id: SessionId) -> Refused:
    what, why = "no feed was opened", f"there is no session {id}"
    return Refused(what, why=why, fix="name one of the sessions that lockgate task show lists")
