"""The board and its orchestrator: what it does comes by itself, and its absence is told."""

import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import partial

import pytest
from msgspec.structs import replace

from lockgate.bootstrap import App
from lockgate.bootstrap.assistants import mcp_child
from lockgate.bootstrap.gates import Benches
from lockgate.bootstrap.orchestrator import feed_of, orchestrating, wake_orchestrator
from lockgate.core.lifecycle.needs import Need, NeedKind
from lockgate.core.model.task import ProjectId, Status
from lockgate.faces.cli.serve import answer
from lockgate.faces.tui.state import Link, State
from lockgate.services.task.boards import Inbox
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


@pytest.mark.slow  # in two of four whole runs its head said that nothing needs you
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


@pytest.mark.parametrize(("seq", "reading", "kept"), [(7, False, 1), (6, False, 0), (7, True, 0)])
def test_a_look_at_all_needs_counts_unless_the_feed_has_told_something_newer(seq, reading, kept):
    state = State(seq=7, reading=reading)
    need = Need(key="t1:1:stuck", kind=NeedKind.STUCK, project=ProjectId("p"), ask="x", since=0.0)

    state.check(Inbox((need,), seq))

    assert len(state.needs) == kept
