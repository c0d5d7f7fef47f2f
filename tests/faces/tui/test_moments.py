"""The moments that the board is for, with the keys counted; a review from both of its sides."""

import sys
import threading
from collections.abc import Callable

import pytest

from lockgate.core.model.task import Status, TaskId
from lockgate.faces.tui.screens.base import Face
from lockgate.faces.tui.screens.dialogs import Write
from lockgate.faces.tui.screens.review import ReviewFace
from lockgate.faces.tui.source import Reading, Shown
from lockgate.faces.tui.state import Changed
from tests.faces.tui.conftest import Home, hand_in
from tests.faces.tui.driving import Driven


async def reviews(board: Driven) -> ReviewFace:
    await board.until(lambda: isinstance(board.app.screen, ReviewFace), "the review")
    screen = board.app.screen
    assert isinstance(screen, ReviewFace)
    return screen


async def writes(board: Driven, text: str) -> None:
    await board.until(lambda: isinstance(board.app.screen, Write), "the box")
    await board.write(text)
    await board.press("ctrl+s")
    await board.until(lambda: not isinstance(board.app.screen, Write), "the box closes")


def test_the_morning_glance_takes_no_key(seeded: Home):
    async def story(board: Driven) -> None:
        await board.sees("needs you 8", "NEEDS YOU 8", "ACTIVE 2", "ENDED 2")
        assert board.keys == 0

    seeded.drive(story)


@pytest.mark.req("R131", "R132")
def test_a_plain_yes_takes_two_keys_and_shows_what_it_is_for(own: Home):
    id = own.ids["approve"]
    patch = own.shell.facts(id)["patch"]

    async def story(board: Driven) -> None:
        await board.selects("approve")
        await board.press("a")
        await reviews(board)
        await board.sees(
            f"change {patch[:12]}",
            "sign_off asks: Only pages of ours?",
            ".github/ci.yml",
            "login.py",
        )
        await board.press("a")
        await board.until(lambda: isinstance(board.app.screen, Face), "the board")
        await board.until(lambda: own.shell.status(id) is Status.REVIEWING, "approved")
        assert board.keys == 2

    own.drive(story)

    [approval] = own.shell.facts(id)["approvals"]
    assert approval["patch"] == patch


@pytest.mark.req("R132")
def test_a_gate_that_nobody_answers_goes_on_waiting(own: Home):
    async def story(board: Driven) -> None:
        await board.selects("approve")
        await board.press("a")
        await reviews(board)
        await board.press("escape")
        await board.until(lambda: not isinstance(board.app.screen, ReviewFace), "the board")

    own.drive(story)

    assert own.shell.facts(own.ids["approve"])["waiting"] == "sign_off"


def test_why_it_is_stuck_takes_one_key(seeded: Home):
    async def story(board: Driven) -> None:
        row = await board.selects("limit")
        await board.press("w")
        await board.sees(f"Why {row.id}", "its gates failed too often", "lockgate task update")
        assert board.keys == 1

    seeded.drive(story)


def test_comments_go_back_to_the_agent_as_findings(own: Home):
    id = own.ids["approve"]

    async def story(board: Driven) -> None:
        await board.selects("approve")
        await board.press("a")
        screen = await reviews(board)
        await board.press("]", "]", "n", "j", "j")
        place = screen.place_here()
        assert place is not None
        await board.press("c")
        await writes(board, "this sends people to //evil")
        await board.sees("this sends people to //evil", "[draft]", "1 comment")
        await board.press("r")
        await writes(board, "Only pages of ours.")
        await board.until(lambda: own.shell.status(id) is Status.WORKING, "sent back")
        assert board.keys == 2 + 1 + 3 + 2 + 2  # of them 5 to get to the line

    own.drive(story, size=(100, 30))

    [feedback] = [it["feedback"] for it in own.shell.facts(id)["history"]]
    [finding] = [it for it in feedback["findings"] if it["location"]]
    assert finding["issue"] == "this sends people to //evil"
    assert finding["location"]["file"] == "login.py"
    assert "Only pages of ours." in feedback["summary"]
    assert "SpawnAgent" in str(own.shell.facts(id)["pending"])


async def comments(board: Driven, text: str, shown: str) -> None:
    await board.press("c")
    await writes(board, text)
    await board.sees(shown)


@pytest.mark.parametrize("kind", ["approve", "land"])
def test_a_yes_keeps_the_notes_and_says_which_comments_it_leaves(own: Home, kind: str):
    """`~` in front makes a comment a note: it asks for nothing, and stands with the yes."""
    id = own.ids[kind]

    async def story(board: Driven) -> None:
        await board.selects(kind)
        await board.press("a")
        screen = await reviews(board)
        await board.press(*"]" * len(screen.files), "j", "j")
        await comments(board, "~name the constant", "P3 you: name the constant")
        await comments(board, "", "P3 you: name the constant")  # its mark is there again
        await board.press("j", "j")
        await comments(board, "and this?", "P1 you: and this?")
        await board.press("a")
        await board.until(lambda: not isinstance(board.app.screen, ReviewFace), "the board")
        await board.sees("1 comment not sent")

    own.drive(story, size=(100, 40))

    file = {"approve": "login.py", "land": "names.py"}[kind]
    said = own.shell.facts(id)["approvals"][-1]["comment"]
    assert said.startswith(f"{file}:")
    assert said.endswith(": name the constant")
    assert said in own.shell.did("task", "show", id)
    app = own.app()
    assert [it.text for it in app.desk.drafts(id, app.caller)] == ["and this?"]
    app.close()


def test_a_draft_is_there_again_when_the_review_is_opened_again(own: Home):
    async def story(board: Driven) -> None:
        await board.selects("approve")
        await board.press("a")
        await reviews(board)
        await board.press("]", "j", "j", "c")
        await writes(board, "why?")
        await board.sees("why?", "[draft]")

    async def later(board: Driven) -> None:
        await board.selects("approve")
        await board.press("a")
        await reviews(board)
        await board.sees("why?", "1 comment")
        await board.press("]", "j", "j", "X")
        await board.sees("no comments")

    own.drive(story)
    own.drive(later)


def test_the_merge_queue_takes_one_key(seeded: Home):
    async def story(board: Driven) -> None:
        await board.press("3")
        await board.sees("main", seeded.ids["land"])
        assert board.keys == 1

    seeded.drive(story)


class Counted:
    """The keys of each moment, up to what they bring about."""

    def __init__(self, board: Driven) -> None:
        self.board, self.keys = board, dict[str, int]()

    async def __call__(self, moment: str, *keys: str, until: Callable[[], object]) -> None:
        before = self.board.keys
        await self.board.press(*keys)
        await self.board.until(until, moment)
        self.keys[moment] = self.keys.get(moment, 0) + self.board.keys - before

    def shows(self, text: str) -> Callable[[], bool]:
        return lambda: text in self.board.text

    def writing(self) -> bool:
        return isinstance(self.board.app.screen, Write)


async def five_moments(board: Driven, own: Home) -> dict[str, int]:
    count, land, approve = Counted(board), own.ids["land"], own.ids["approve"]
    await count("morning glance", until=count.shows("needs you 8"))
    await board.selects("limit")
    await count("why it is stuck", "w", until=count.shows("its gates failed too often"))
    await board.press("escape")
    await count("the merge queue", "3", until=count.shows(land))
    await board.press("1")
    await board.selects("land")
    await count("a plain yes", "a", until=count.shows("change "))
    await count("a plain yes", "a", until=lambda: own.shell.facts(land)["to_land"])
    await board.selects("approve")
    await board.press("a")
    await reviews(board)
    await board.press("]", "j", "j")
    await count("a comment, and back", "c", until=count.writing)
    await board.write("no")
    await count("a comment, and back", "ctrl+s", until=count.shows("[draft]"))
    await count("a comment, and back", "r", until=count.writing)
    sent_back = lambda: own.shell.status(approve) is Status.WORKING  # noqa: E731 - one line
    await count("a comment, and back", "ctrl+s", until=sent_back)
    return count.keys


def test_the_five_moments_take_no_more_keys_than_they_should(own: Home):
    """Without those that lead to a line, and the words themselves."""

    async def story(board: Driven) -> None:
        keys = await five_moments(board, own)
        sys.stdout.write("".join(f"{moment}: {count} keys\n" for moment, count in keys.items()))
        assert keys == {
            "morning glance": 0,
            "why it is stuck": 1,
            "the merge queue": 1,
            "a plain yes": 2,
            "a comment, and back": 4,
        }

    own.drive(story)


# --- somebody else was there ---------------------------------------------------------------------


def test_a_change_that_moved_is_not_approved_and_the_new_one_is_shown(own: Home):
    id = own.ids["approve"]

    async def story(board: Driven) -> None:
        await board.selects("approve")
        await board.press("a")
        screen = await reviews(board)
        old = screen.change.patch
        own.shell.did("reject", id, "-m", "Not like this.")
        own.shell.git("switch", "--quiet", "approve-it")
        (own.shell.repo / "more.py").write_text("more\n", encoding="utf-8")
        own.shell.git("add", "--all")
        own.shell.git("commit", "--quiet", "--message", "More")
        own.shell.git("switch", "--quiet", "main")
        hand_in(own.shell, id, "more work")
        await board.press("a")
        await board.until(lambda: screen.change.patch != old, "the new change")
        await board.sees("the change has moved while you read")
        assert isinstance(board.app.screen, ReviewFace)

    try:
        own.drive(story)
    finally:
        own.shell.git("branch", "--force", "approve-it", "approve-it~1")

    assert own.shell.facts(id)["waiting"] == "sign_off"


def test_the_second_who_answers_is_told(own: Home):
    id = own.ids["approve"]

    async def story(board: Driven) -> None:
        await board.selects("approve")
        await board.press("a")
        await reviews(board)
        own.shell.did("approve", id, "-m", "good")
        await board.press("a")
        await board.sees("was not approved", "has answered gate sign_off already")

    own.drive(story)

    assert own.shell.facts(id)["to_land"] is False


def test_a_review_that_is_left_while_its_change_is_read_again_ends_nothing(own: Home):
    """The yes itself is an event, and what it changes is read while the review closes."""
    read = threading.Event()

    class Slow(Reading, frozen=True):
        def change(self, id: TaskId) -> Shown:
            found = super().change(id)
            read.wait(60)
            return found

    async def story(board: Driven) -> None:
        row = await board.selects("approve")
        await board.press("a")
        await reviews(board)
        board.app.desk.source = Slow(board.app.desk.source.app, own.shell.repo)
        board.app._paint(Changed(tasks={row.id}))
        await board.press("escape")
        await board.until(lambda: not isinstance(board.app.screen, ReviewFace), "the board")
        read.set()
        await board.until(lambda: not any(it.is_running for it in board.app.workers), "all read")
        assert "bug" not in board.notice

    own.drive(story)


def test_a_task_that_is_deleted_under_the_cursor_leaves_it_at_the_next(own: Home):
    async def story(board: Driven) -> None:
        board.app.desk.state.filter = "ended"
        board.app.reload()
        row = await board.selects("done")
        own.shell.did("task", "delete", row.id)
        await board.press("v")
        await board.until(lambda: board.notice, "it is gone")
        board.app.reload()
        await board.until(lambda: board.app.desk.state.window.row(row.id) is None, "gone")
        await board.pilot.pause()
        assert board.app.desk.state.selected == own.ids["cancelled"]

    own.drive(story)
