"""The feed: who follows gets every event once and in order, at their own pace."""

import json
import socket
import time
from collections.abc import Generator, Iterable
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from lockgate.adapters.store import open_store
from lockgate.adapters.store.sql_store import SqlStore
from lockgate.core.lifecycle.decision import Decision
from lockgate.core.lifecycle.needs import Trouble
from lockgate.core.model.events import SummaryChanged
from lockgate.core.model.facts import event_line
from lockgate.core.model.task import ProjectId, Task, TaskId
from lockgate.errors import Refused, Unavailable
from lockgate.ports import Project
from lockgate.services.orchestrator import feed as module
from lockgate.services.orchestrator.feed import (
    AT_ONCE,
    BEAT,
    BEHIND,
    MOST,
    Feed,
    Riding,
    Trains,
    Wanted,
)
from tests.given import NOW, TASK

Item = dict[str, Any]


class Noon:
    def now(self) -> float:
        return NOW

    def elapsed(self) -> float:
        return 0.0


class Caller:
    """The other end of a line that is taken: a real connection."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()

    def take(self) -> socket.socket:
        return self.theirs

    def out(self, text: str) -> None: ...
    def err(self, text: str) -> None: ...
    def end(self, code: int) -> None: ...
    def gone(self) -> bool:
        return False


class Wired(Struct):
    """A feed over a real store; the test is the thread that looks."""

    store: SqlStore
    feed: Feed
    callers: list[Caller]
    now: float = 100.0

    def follows(self, **wanted: Any) -> int:
        caller = Caller()
        self.callers.append(caller)
        self.feed.follow(Wanted(**wanted), caller)
        return caller.theirs.fileno()

    def look(self) -> float:
        return self.feed.look(self.now)

    def gets(self, reader: int) -> list[Item]:
        raw = b""
        while piece := self.feed.more(reader):
            raw += piece
        return [json.loads(line) for line in raw.splitlines()]

    def all_of(self, reader: int) -> list[Item]:
        """Until it has all, with as many looks as that takes."""
        items = self.gets(reader)
        while self.look() == 0.0 or self.feed._hungry:
            items += self.gets(reader)
        return items + self.gets(reader)

    def happens(self, times: int = 1, id: str = "t1") -> None:
        """So many events of one task, in one turn."""
        task = self.store.find(TaskId(id)) or self._created(id)
        events = tuple(SummaryChanged(f"{n} ä") for n in range(times))
        self.store.commit(Decision(replace(task, rev=task.rev + 1), events))

    def _created(self, id: str) -> Task:
        task = replace(TASK, id=TaskId(id), rev=0)
        self.store.create(Decision(task))
        return task


@pytest.fixture
def it(tmp_path) -> Generator[Wired]:
    store = open_store(str(tmp_path / "lockgate.db"))
    project = Project(id=ProjectId("p1"), name="shop", root="/shop", common_dir="/shop/.git")
    store.add_project(project)

    def riding(ids: Iterable[TaskId]) -> dict[TaskId, Riding]:
        found = (store.find(id) for id in ids)
        return {it.id: Riding(it.project, {"rev": it.rev}, None) for it in found if it}

    feed = Feed(
        store=store,
        tail=lambda _: pytest.fail("nobody looks"),
        riding=riding,
        needs=dict,
        trains=Trains(dict, lambda _: {}),
        clock=Noon(),
        report=lambda _: None,
        greeting={"pid": 7},
        troubles={},
    )
    store.told = feed.note
    wired = Wired(store, feed, [])
    yield wired
    for caller in wired.callers:
        caller.ours.close()
        caller.theirs.close()


def seqs(items: list[Item]) -> list[int]:
    return [it["event"]["seq"] for it in items if "event" in it]


def test_a_reader_is_greeted_and_gets_what_happens_from_then_on(it) -> None:
    it.happens(2)
    reader = it.follows()
    it.look()
    greeted = it.gets(reader)
    it.happens(3)
    it.look()

    items = it.gets(reader)

    assert greeted[0] == {"hello": {"seq": 2, "pid": 7}}
    assert seqs(greeted) == []
    assert seqs(items) == [3, 4, 5]
    assert items[0]["row"] == {"rev": 2}
    assert items[0]["need"] is None


def test_an_event_is_told_as_it_is_stored(it) -> None:
    reader = it.follows(since=0)
    it.happens()
    it.look()
    it.feed.more(reader)
    raw = next(iter(it.feed._recent.values())).line

    (stored,) = it.store.events(None, 0, 10)

    assert raw.startswith(b'{"event":' + event_line(stored).encode() + b',"row":')


def test_a_reader_who_comes_again_goes_on_after_the_last_event_it_had(it) -> None:
    it.happens(5)
    first, second = it.follows(since=3), it.follows(since=5)
    it.look()

    assert seqs(it.gets(first)) == [4, 5]
    assert seqs(it.gets(second)) == []


def test_the_store_is_read_once_for_all_who_follow(it) -> None:
    readers = [it.follows(since=0) for _ in range(MOST)]
    it.look()
    it.happens(10)
    reads = list[object]()
    events = it.store.events

    def counted(*asked: object) -> object:
        reads.append(asked)
        return events(*asked)

    it.store.events = counted

    it.look()
    got = [seqs(it.gets(reader)) for reader in readers]

    assert got == [list(range(1, 11))] * MOST
    assert len(reads) == 1


def test_what_one_look_does_not_read_the_next_one_does_at_once(it) -> None:
    reader = it.follows(since=0)
    it.happens(2 * AT_ONCE + 1)

    assert it.look() == 0.0
    assert seqs(it.all_of(reader)) == list(range(1, 2 * AT_ONCE + 2))
    assert it.look() == BEAT


def test_a_reader_who_is_too_far_behind_is_told_to_look_again_and_goes_on_from_there(it) -> None:
    frozen, other = it.follows(since=0), it.follows(since=0)
    it.look()
    before = it.gets(frozen)
    for _ in range(BEHIND // AT_ONCE + 1):
        it.happens(AT_ONCE)
        it.look()
        it.gets(other)

    thawed = it.gets(frozen)
    it.happens()
    it.look()

    head = (BEHIND // AT_ONCE + 1) * AT_ONCE
    assert "hello" in before[0]
    assert thawed == [{"resync": head}]
    assert seqs(it.gets(frozen)) == [head + 1]
    assert seqs(it.gets(other)) == [head + 1]


def test_a_reader_who_wants_every_event_gets_them_all_however_far_behind(it) -> None:
    total = 2 * BEHIND + 50
    for _ in range(total // 50):
        it.happens(50)
    late, at_head = it.follows(since=0, every=True), it.follows(since=total)

    got = it.all_of(late)

    assert seqs(got) == list(range(1, total + 1))
    assert [item for item in got if "resync" in item] == []
    assert seqs(it.gets(at_head)) == []


def test_old_events_that_one_reader_wants_hold_up_no_other(it) -> None:
    for _ in range(40):
        it.happens(50)
    late = [it.follows(since=n, every=True) for n in range(5)]
    at_head = it.follows()
    it.look()
    read = [it.feed.more(reader) for reader in late]

    assert [bool(piece.count(b'"event"')) for piece in read] == [True, False, False, False, False]
    assert b"hello" in it.feed.more(at_head)
    assert it.look() == 0.0


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"task": TaskId("t1")}, [1, 2, 4]),
        ({"project": ProjectId("p1")}, [1, 2, 3, 4]),
        ({"project": ProjectId("p2")}, []),
    ],
)
@pytest.mark.parametrize("since", [None, 0])
def test_a_reader_may_follow_one_project_or_one_task(it, wanted, expected, since) -> None:
    early = it.follows(since=since, **wanted)
    it.look()
    it.happens(2, "t1")
    it.happens(1, "t2")
    it.happens(1, "t1")
    late = it.follows(since=0, **wanted)

    assert seqs(it.all_of(early)) == expected
    assert seqs(it.all_of(late)) == expected


def test_a_reader_of_another_log_than_this_one_is_told_to_look_again(it) -> None:
    it.happens(3)
    reader = it.follows(since=99)
    it.look()

    assert {"resync": 3} in it.gets(reader)


def test_a_beat_comes_in_a_silence_and_is_no_event(it) -> None:
    reader = it.follows()
    it.look()
    it.gets(reader)
    it.now += BEAT / 2
    it.look()
    early = it.gets(reader)
    it.now += BEAT
    it.look()

    assert early == []
    assert it.gets(reader) == [{"beat": NOW}]


def test_what_fails_in_the_loop_is_told_when_it_changes_and_to_who_comes(it) -> None:
    first = it.follows()
    it.look()
    it.gets(first)
    it.feed.troubles["queue of shop"] = Trouble(why="git fails", times=1)
    it.look()
    it.look()
    told = it.gets(first)
    second = it.follows()
    it.look()
    it.feed.troubles.clear()
    greeted = it.gets(second)
    it.look()

    assert told == [{"live": {"trouble": {"queue of shop": "git fails"}}}]
    assert told[0] in greeted
    assert it.gets(first) == [{"live": {"trouble": {}}}]


def test_who_follows_one_task_hears_that_what_was_to_be_done_for_it_is_done(it) -> None:
    it.happens()
    follower, other = it.follows(task=TaskId("t1")), it.follows()
    it.look()
    it.gets(follower)
    it.gets(other)
    it.store.effects_done(["t1:1:0"])
    it.look()

    assert it.gets(follower) == [{"live": {"settled": {"task": "t1"}}}]
    assert it.gets(other) == []


def test_the_output_of_a_session_is_looked_at_only_while_somebody_looks(it, monkeypatch) -> None:
    said = [["first"], [], ["second", "third"]]
    looks = list[float]()

    class Tail:
        def lines(self) -> list[str]:
            looks.append(it.now)
            return said.pop(0)

    it.feed.tail = lambda _: Tail()
    monkeypatch.setattr(it.store, "session", lambda id: id)
    other = it.follows()
    it.look()
    assert looks == []
    reader = it.follows(outputs=("t1.w1",))
    pauses = list[float]()
    for _ in range(3):
        it.now += module.GLANCE
        pauses.append(it.look())
        it.look()  # within the same quarter of a second

    lines = [item["live"]["output"] for item in it.gets(reader) if "live" in item]

    assert lines == [
        {"session": "t1.w1", "lines": ["first"]},
        {"session": "t1.w1", "lines": ["second", "third"]},
    ]
    assert (len(looks), max(pauses)) == (3, module.GLANCE)
    assert [item for item in it.gets(other) if "live" in item] == []


def test_a_session_that_is_not_known_has_no_output(it) -> None:
    with pytest.raises(Refused, match="there is no session"):
        it.follows(outputs=("../../etc",))
    assert not it.feed.followed


def test_one_too_many_is_refused_in_words_and_one_who_leaves_makes_room(it) -> None:
    readers = [it.follows() for _ in range(MOST)]

    with pytest.raises(Refused, match=f"{MOST} are open already"):
        it.follows()
    it.feed.left(readers[0])
    it.follows()

    assert it.feed.followed


def test_a_store_that_fails_is_reported_once_and_asked_again(it) -> None:
    reports = list[str]()
    it.feed.report = reports.append
    reader = it.follows(since=0)
    it.look()
    events = it.store.events
    it.store.events = broken
    it.happens()

    pauses = {it.look(), it.look()}
    it.store.events = events
    it.look()

    assert pauses == {module.AGAIN}
    assert reports == ["feed: the database was not read: it is away"]
    assert seqs(it.gets(reader)) == [1]


def broken(*_: object) -> tuple[()]:
    raise Unavailable("the database was not read", why="it is away", fix="wait")


def test_nothing_is_read_and_nobody_is_woken_where_nobody_follows(it) -> None:
    woken = list[int]()
    it.feed.wake = lambda: woken.append(1)
    it.store.events = broken
    it.happens(3)

    assert it.look() == BEAT
    assert woken == []


def test_a_commit_wakes_who_looks(it) -> None:
    it.follows()
    woken = list[int]()
    it.feed.wake = lambda: woken.append(1)

    it.happens()

    assert woken


def test_who_asks_for_needs_gets_all_of_them_and_then_what_comes_and_goes(it) -> None:
    known = {"a:1:stuck": {"task": "a", "project": "p1"}, "p2:trust": {"project": "p2"}}
    it.feed.needs = lambda: known
    other, all_of_them = it.follows(), it.follows(needs=True)
    one_project = it.follows(needs=True, project=ProjectId("p1"))
    it.look()
    first = [needs_in(it.gets(reader)) for reader in (other, all_of_them, one_project)]
    known = {"p2:trust": {"project": "p2"}, "b:1:answer": {"task": "b", "project": "p2"}}
    it.happens()
    it.look()
    then = [needs_in(it.gets(reader)) for reader in (other, all_of_them, one_project)]
    it.happens()
    it.look()

    a, trust, b = {"task": "a", "project": "p1"}, {"project": "p2"}, known["b:1:answer"]
    assert first == [[], [([a, trust], [])], [([a], [])]]
    assert then == [[], [([b], [a])], [([], [a])]]
    assert needs_in(it.gets(all_of_them)) == []


def needs_in(items: list[Item]) -> list[tuple[object, object]]:
    told = [item["live"]["needs"] for item in items if "needs" in item.get("live", {})]
    return [(it["came"], it["went"]) for it in told]


def test_a_train_that_changes_is_told_once_to_who_follows_its_project(it) -> None:
    stands, looks = {ProjectId("p1"): 1}, list[str]()

    def facts(id: ProjectId) -> dict[str, object]:
        looks.append(id)
        return {"project": id, "cars": stands[id] // 2}

    it.feed.trains = Trains(lambda: dict(stands), facts)
    first, other = it.follows(), it.follows(project=ProjectId("p2"))
    told = list[Item]()
    for sign in (1, 1, 2, 3):
        stands[ProjectId("p1")] = sign
        it.look()
        while it.feed._looking:
            time.sleep(0.005)
        it.look()
        told += [item for item in it.gets(first) if "train" in item.get("live", {})]

    assert [item["live"]["train"]["cars"] for item in told] == [0, 1]
    assert looks == ["p1"] * 3
    assert not any("live" in item for item in it.gets(other))
