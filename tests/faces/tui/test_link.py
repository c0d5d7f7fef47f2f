"""The board and its orchestrator: what it does comes by itself, and its absence is told."""

import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from lockgate.bootstrap import App
from lockgate.bootstrap.assistants import mcp_child
from lockgate.bootstrap.gates import Benches
from lockgate.bootstrap.orchestrator import feed_of, orchestrating, wake_orchestrator
from lockgate.core.lifecycle.needs import NeedKind, Trouble
from lockgate.core.model.facts import StoredEvent
from lockgate.core.model.task import Status, TaskId
from lockgate.errors import Unavailable
from lockgate.faces.cli.serve import answer
from lockgate.faces.tui import app as app_of_board
from lockgate.faces.tui.source import Reading
from lockgate.faces.tui.state import Link, State
from lockgate.services.task.boards import Inbox
from lockgate.services.task.rows import BoardRow
from lockgate.services.train.board import CarGate
from tests.faces.tui.conftest import Home
from tests.faces.tui.driving import Driven, drive

NOW = 1_800_000_000.0


@contextmanager
def feeding(home: Home) -> Generator[App]:
    """An orchestrator's door and feed, which starts no agent: its loop does not turn."""
    app = home.app()
    served = replace(app, troubles={})
    served = replace(served, feed=feed_of(served, _ignored))
    with (
        closing(mcp_child(app.home)) as mcp,
        orchestrating(served, partial(answer, served, Benches(app.home), mcp), _ignored),
    ):
        yield served
    app.close()


def _ignored(_text: str) -> None:
    pass


def test_what_others_do_comes_by_itself(own: Home):
    async def story(board: Driven) -> None:
        await board.until(lambda: board.app.desk.state.link.pid, "the feed")
        await board.selects("working")
        id = own.shell.did("task", "create", "from-afar", "Somebody made this").strip()
        own.shell.run("task", "cancel", own.ids["stuck"])
        wake(own)
        await board.sees(id)
        await board.no_longer(own.ids["stuck"])
        assert board.app.desk.state.selected == own.ids["working"]
        await board.press("5")
        await board.sees("Somebody made this", "is cancelled")

    with feeding(own) as served:
        drive(served, story, where=own.shell.repo)


def wake(own: Home) -> None:
    wake_orchestrator(own.shell.home, 1.0)


@pytest.mark.req("R131", "R96")
def test_a_gate_that_begins_to_wait_is_on_the_board_at_once(own: Home):
    """A human gate tells the one who watches; so does an agent that has died."""

    async def story(board: Driven) -> None:
        await board.until(lambda: board.app.desk.state.link.pid, "the feed")
        await board.sees("needs you 8")
        own.shell.dies(own.ids["working"])
        wake(own)
        await board.sees("needs you 9")
        line = next(it for it in board.lines if own.ids["working"] in it)
        assert "✗" in line

    with feeding(own) as served:
        drive(served, story, where=own.shell.repo, size=(80, 40))


@pytest.mark.parametrize("board_is_opened", ["before", "after"])
def test_what_the_loop_needs_a_human_for_comes_and_goes(own: Home, board_is_opened: str):
    """Only the orchestrator knows of it: it is in no row, and the board has another process."""
    task = own.shell.facts(own.ids["land"])
    red = Trouble(why="main fails", kind=NeedKind.RED_TIP, project=task["project"], since=NOW)

    async def story(board: Driven) -> None:
        await board.until(lambda: board.app.desk.state.link.pid, "the feed")
        if board_is_opened == "before":
            await board.sees("needs you 8")
            served.troubles["queue of main"] = red
            wake(own)
        await board.sees("needs you 9", "nothing lands")
        await board.press("2")
        await board.sees("red-tip", "main fails", "lockgate queue list")
        del served.troubles["queue of main"]
        wake(own)
        await board.sees("needs you 8")
        await board.no_longer("red-tip")

    with feeding(own) as served:
        if board_is_opened == "after":
            served.troubles["queue of main"] = red
        own.drive(story, size=(100, 60))


def test_where_a_change_stands_in_its_queue_is_what_the_orchestrator_says(own: Home):
    """Only it knows which tests run, also of what was there before the board was opened."""
    own.shell.did("approve", own.ids["land"])
    now = time.time()

    async def story(board: Driven) -> None:
        await board.sees("#1 testing")
        await board.press("3")
        await board.sees("lands in ~", "tests █")

    with feeding(own) as served:
        train = served.train_boards.of(served.store.load(own.ids["land"]).project)
        [car] = train.cars
        runs = (CarGate("tests", "running", now - 30),)
        car = replace(car, standing="testing", gates=runs, eta=now + 600)
        assert served.feed is not None
        told = replace(train, cars=(car,), median_seconds=48.0)
        served.feed._trains[train.project] = told.facts()
        own.drive(story, size=(100, 40))


def test_an_orchestrator_that_goes_is_told_and_its_return_too(own: Home):
    async def story(board: Driven) -> None:
        with feeding(own):
            await board.until(lambda: board.app.desk.state.link.pid, "the feed")
            await board.no_longer("no news")
        await board.sees("what you see is", "old: the orchestrator was stopped")
        own.shell.did("task", "cancel", own.ids["stuck"])
        await board.press("j", "k")
        with feeding(own):
            await board.no_longer("what you see is")
            await board.no_longer(own.ids["stuck"])

    own.drive(story)


def test_a_silent_orchestrator_is_told_with_the_age_of_what_is_shown():
    link = Link(heard=NOW, pid=1)

    assert link.trouble(NOW + 10) == ""
    assert link.trouble(NOW + 130) == "what you see is 2m old: the orchestrator says nothing"


def test_an_orchestrator_of_another_version_is_told():
    link = Link(heard=NOW, version="9.9")

    assert "is version 9.9, this board is" in link.trouble(NOW)
    assert "lockgate down" in link.trouble(NOW)


def test_what_is_lost_is_told_with_why():
    state = State()
    state.hear({"beat": NOW}, NOW)

    changed = state.hear({"lost": "process 7 is stopped"}, NOW + 70)

    assert changed.link
    assert state.link.trouble(NOW + 70) == "what you see is 1m old: process 7 is stopped"
    state.hear({"back": {"seq": 1}}, NOW + 80)
    assert state.link.trouble(NOW + 80) == ""


def test_a_gap_in_the_feed_is_read_again(own: Home):
    async def story(board: Driven) -> None:
        await board.selects("working")
        own.shell.did("task", "cancel", own.ids["stuck"])
        board.app._heard.append({"resync": 10**6})
        board.app.on_news()
        await board.no_longer(own.ids["stuck"])

    own.drive(story)


@pytest.mark.unmeasured
def test_thousands_of_events_leave_the_keys_quick(own: Home):
    """While news pours in, a key is answered; the events are told in the end."""

    async def story(board: Driven) -> None:
        row = await board.selects("working")
        found = own.app()
        facts = found.boards.row(row.id)
        found.close()
        assert facts is not None
        over = threading.Event()

        def pour() -> None:
            for seq in range(10_000, 15_000):
                event = {"seq": seq, "time": NOW, "task": row.id, "type": "word.said"}
                told = {**event, "prev": "", "data": {"text": f"word {seq}"}}
                board.app._heard.append({"event": told, "row": facts.facts(), "need": None})
            over.set()

        threading.Thread(target=pour).start()
        board.app.on_news()
        before = board.app.desk.state.selected
        await board.press("k")
        assert board.app.desk.state.selected != before
        await board.until(over.is_set, "all poured")
        board.app.on_news()
        await board.until(lambda: board.app.desk.state.seq == 14_999, "all heard")

    own.drive(story)
    assert own.shell.status(own.ids["working"]) is Status.WORKING


def told(seq: int, task: TaskId, row: BoardRow | None) -> dict[str, Any]:
    """A line of the feed."""
    event = {"seq": seq, "time": NOW, "task": task, "type": "word.said", "prev": "", "data": {}}
    return {"event": event, "row": row.facts() if row else None, "need": None}


def test_an_event_that_the_log_has_already_still_brings_its_row(own: Home):
    """It was committed after the rows were read, and before the log was."""
    app = own.app()
    board, row = app.boards.board(), app.boards.row(own.ids["working"])
    app.close()
    assert row is not None
    state = State()
    state.load(board, Inbox((), 7))
    state.events.append(
        StoredEvent(seq=8, time=NOW, task=row.id, type="word.said", prev="", data={})
    )

    state.hear(told(8, row.id, replace(row, rev=row.rev + 1, summary="another one")), NOW)

    shown = state.window.row(row.id)
    assert shown is not None
    assert shown.summary == "another one"
    assert [it.seq for it in state.events] == [8]


def test_what_moves_is_counted_where_it_is_now(own: Home):
    app = own.app()
    board, row = app.boards.board(), app.boards.row(own.ids["working"])
    app.close()
    assert row is not None
    state = State()
    state.load(board, Inbox((), board.seq))
    ended, works = (board.counts.get(it, 0) for it in (Status.DONE, Status.WORKING))
    line = told(board.seq + 1, row.id, row)
    moved = {"type": "status.changed", "data": {"from": "WORKING", "to": "DONE"}}

    for _ in range(2):  # the second time it is known already
        state.hear({**line, "event": {**line["event"], **moved}}, NOW)

    assert state.window.counts[Status.DONE] == ended + 1
    assert state.window.counts[Status.WORKING] == works - 1
    state.hear(told(board.seq + 2, row.id, row), NOW)
    assert state.window.counts[Status.DONE] == ended + 1


def test_a_task_that_is_deleted_while_a_page_is_read_does_not_come_back(own: Home):
    app = own.app()
    board, inbox = app.boards.board(), app.boards.inbox()
    app.close()
    state = State()
    state.load(board, inbox)
    state.begin_reading()

    state.hear(told(10**6, own.ids["stuck"], None), NOW)
    state.load(board, inbox)

    assert state.window.row(own.ids["stuck"]) is None
    assert not [it for it in state.needs.values() if it.task == own.ids["stuck"]]


def test_a_page_that_cannot_be_read_is_read_again(own: Home, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(app_of_board, "AGAIN", 0.05)
    failing = [Unavailable("the database was not read", why="it is locked", fix="try again")]

    class Once(Reading, frozen=True):
        def inbox(self) -> Inbox:
            if failing:
                raise failing.pop()
            return super().inbox()

    async def story(board: Driven) -> None:
        board.app.desk.source = Once(board.app.desk.source.app, own.shell.repo)
        board.app.desk.state.needs.clear()
        board.app.reload()
        await board.until(lambda: not failing, "it fails")
        await board.sees("needs you 8")
        assert not board.app.desk.state.reading

    own.drive(story)
