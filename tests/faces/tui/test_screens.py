"""The board at every size and in every mode: what must be there is there, and nothing breaks."""

from functools import partial

import pytest
from textual.app import App

from lockgate.faces.tui.look import Look
from lockgate.faces.tui.screens.base import Face
from lockgate.faces.tui.screens.dialogs import Confirm, Write
from tests.faces.tui.conftest import Home
from tests.faces.tui.driving import Driven

DARK, LIGHT, PLAIN, ASCII = Look(), Look("light"), Look("plain"), Look("dark", utf8=False)
MODES = pytest.mark.parametrize(
    "look", [DARK, LIGHT, PLAIN, ASCII], ids=["dark", "light", "plain", "ascii"]
)
SIZES = ((60, 16), (80, 24), (140, 40), (200, 60))


@MODES
@pytest.mark.unmeasured
def test_the_board_shows_needs_first_at_every_size(seeded: Home, look):
    async def story(board: Driven) -> None:
        for size in SIZES:
            await board.pilot.resize_terminal(*size)
            await board.until(partial(_has, board, size[1]), str(size))
            await board.sees("NEEDS YOU 8", "approve-it", "needs you", "? keys", "q quit")
            assert all(len(it) == size[0] for it in board.lines)
            assert look.utf8 or board.text.isascii()
            if size[0] >= 100:
                await board.sees("After login, go on to the page", "Timeline", "Gates")
            else:
                await board.sees("gate sign_off waits for you: Only pages of ours?")
            _check_colours(board.app, look)

    seeded.drive(story, size=SIZES[0], look=look)


def _has(board: Driven, height: int) -> bool:
    return len(board.lines) == height


def _check_colours(app: App[None], look: Look) -> None:
    """Without colours there are none; what needs you is told from the rest in each mode."""
    strips = app.screen._compositor.render_strips()
    styles = [segment.style for strip in strips for segment in strip if segment.style]
    coloured = [it for it in styles if it.color and not it.color.is_default]
    assert bool(coloured) == (look.colours != "plain")
    line = next(it for it in strips if "land-it" in it.text)
    assert any(it.style and it.style.bold for it in line)


@MODES
def test_every_view_opens_in_every_mode(seeded: Home, look):
    there = {"2": "all gates passed", "3": "main", "4": "landed", "5": "has a question for you"}

    async def story(board: Driven) -> None:
        for view, text in there.items():
            await board.press(view)
            await board.sees(text)
            assert look.utf8 or board.text.isascii()

    seeded.drive(story, size=(100, 30), look=look)


def test_a_small_terminal_has_the_inbox_only(seeded: Home):
    async def story(board: Driven) -> None:
        await board.sees("approve", "gate sign_off waits for you")
        assert "GATES" not in board.text
        await board.press("1")
        await board.sees("too small")
        await board.pilot.resize_terminal(80, 24)
        await board.sees("GATES", "NEEDS YOU")
        await board.pilot.resize_terminal(50, 14)
        await board.no_longer("GATES")

    seeded.drive(story, size=(50, 14))


@pytest.mark.parametrize("size", [(20, 5), (1, 1), (5, 2), (300, 3)], ids=str)
def test_no_terminal_is_too_small_to_live(seeded: Home, size):
    async def story(board: Driven) -> None:
        for key in (
            "j",
            "w",
            "escape",
            "2",
            "?",
            "escape",
            "a",
            "escape",
            "1",
            "x",
            "n",
            "c",
            "escape",
        ):
            await board.press(key)
            await board.pilot.pause()
        assert len(board.lines) == size[1]

    seeded.drive(story, size=size, read_only=True)


@pytest.mark.unmeasured
def test_a_terminal_is_resized_while_a_box_is_open(seeded: Home):
    async def story(board: Driven) -> None:
        await board.selects("stuck")
        await board.press("x")
        await board.until(lambda: isinstance(board.app.screen, Confirm), "the question")
        for size in ((140, 40), (20, 5), (59, 15), (80, 24)):
            await board.pilot.resize_terminal(*size)
            await board.pilot.pause()
        await board.sees("Cancel 1 task?")
        await board.press("n", "enter")
        await board.until(lambda: isinstance(board.app.screen, Write), "the box")
        await board.pilot.resize_terminal(20, 5)
        await board.press("a", "escape")
        await board.pilot.resize_terminal(80, 24)
        await board.until(lambda: isinstance(board.app.screen, Face), "the board")
        await board.sees("NEEDS YOU")

    seeded.drive(story)


def test_zoom_shows_the_list_alone_then_the_task_alone(seeded: Home):
    async def story(board: Driven) -> None:
        await board.sees("NEEDS YOU", "Timeline")
        await board.press("z")
        await board.no_longer("Timeline")
        await board.press("z")
        await board.no_longer("NEEDS YOU")
        await board.sees("Timeline")
        await board.press("z")
        await board.sees("NEEDS YOU", "Timeline")

    seeded.drive(story, size=(140, 40))


def test_tab_moves_the_keys_to_the_task_and_back(seeded: Home):
    async def story(board: Driven) -> None:
        await board.sees("Timeline")
        before = board.app.desk.state.selected
        await board.press("tab", "j", "j")
        assert board.app.desk.state.selected == before
        await board.press("tab", "j")
        assert board.app.desk.state.selected != before

    seeded.drive(story, size=(140, 40))


def test_the_inbox_goes_from_need_to_need_and_answers_them(seeded: Home):
    async def story(board: Driven) -> None:
        await board.press("2")
        await board.sees("approve", "all gates passed")
        await board.press("j", "j", "enter")
        await board.sees("comma or semicolon?", "Answer")

    seeded.drive(story, read_only=True)


def test_the_mouse_selects_a_row_and_opens_it(seeded: Home):
    async def story(board: Driven) -> None:
        await board.sees("NEEDS YOU")
        at = next(n for n, it in enumerate(board.lines) if "land-it" in it)
        await board.pilot.click(offset=(10, at))
        await board.until(lambda: board.app.desk.state.selected == seeded.ids["land"], "selected")

    seeded.drive(story)
