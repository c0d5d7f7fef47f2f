"""How lines are made: widths, colours for all eyes, ASCII, and nothing that moves a cursor."""

import pytest

from lockgate.faces.tui.look import (
    DARK,
    LIGHT,
    NO_COLOURS,
    Look,
    cell,
    cut,
    look_of,
    one,
    plain_text,
    shown,
    spread,
    wide,
    wrapped,
)
from tests.faces.naughty import CONTROL, LONG, UNICODE

HOSTILE = (*CONTROL, *UNICODE, *LONG, "a\x1b]0;owned\x07b", "x" * 10_000_000)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_text_of_others_moves_no_cursor_and_fits(text):
    for made in (shown(text), one(text), cut(one(text), 20), plain_text(wrapped(text[:500], 20))):
        assert not [it for it in made if ord(it) < 32 and it != "\n"]
        assert not set(made) & set("\x7f\x9b\u202e\u2066\u200b\ufeff")
    assert wide(cell(one(text), 20)) == 20
    assert all(wide(line[0][0]) <= 20 for line in wrapped(text[:500], 20))


def test_every_style_is_there_in_every_mode():
    assert DARK.keys() == LIGHT.keys() == NO_COLOURS.keys()
    assert not [it for it in NO_COLOURS.values() if "#" in it]


@pytest.mark.parametrize(
    ("environ", "look"),
    [
        ({"LANG": "C.UTF-8"}, Look("dark", utf8=True)),
        ({"LANG": "C.UTF-8", "COLORFGBG": "0;15"}, Look("light", utf8=True)),
        ({"LANG": "C.UTF-8", "LOCKGATE_THEME": "light"}, Look("light", utf8=True)),
        ({"LANG": "C.UTF-8", "LOCKGATE_THEME": "pink"}, Look("dark", utf8=True)),
        ({"LANG": "C.UTF-8", "NO_COLOR": "1"}, Look("plain", utf8=True)),
        ({"LANG": "C"}, Look("dark", utf8=False)),
        ({"LC_ALL": "POSIX", "LANG": "de_DE.UTF-8"}, Look("dark", utf8=False)),
    ],
)
def test_the_terminal_decides_how_it_looks(environ, look):
    assert look_of(environ) == look


def test_without_utf8_every_character_is_ascii():
    look = Look("dark", utf8=False)

    assert look.text("✓✗·▸◇◆● ─ é 修") == "+x.>o#* - ? ?"


def test_two_ends_of_a_line_are_spread_where_they_fit():
    left, right = (("left", "plain"),), (("right", "plain"),)

    assert plain_text([spread(left, right, 12)]) == "left   right"
    assert plain_text([spread(left, right, 9)]) == "left"
