"""The keys: every action has one, and keys.toml rebinds them or says why not."""

from pathlib import Path

import pytest

from lockgate.faces.tui.keys import ACTIONS, ALWAYS, LIST, REVIEW, keys_of, rebound, theme_of


@pytest.mark.parametrize("where", [LIST, REVIEW])
def test_no_key_asks_for_two_things_in_one_place(where):
    keys = [key for it in ACTIONS if it.where in {where, ALWAYS} for key in it.keys]

    assert len(keys) == len(set(keys))


def test_no_destructive_key_lies_beside_those_that_move():
    destructive = {
        key for it in ACTIONS if it.name in {"cancel", "delete", "queue"} for key in it.keys
    }

    assert not destructive & set("hjkluiom,nJK")


def test_the_same_key_means_another_thing_in_the_review():
    keys = rebound({})

    assert keys.action(["n"]) == "next"
    assert keys.action(["n"], review=True) == "hunk"
    assert keys.action(["a"], review=True) == "approve"
    assert keys.action(["x"], review=True) is None


def test_a_file_rebinds_keys(tmp_path: Path):
    (tmp_path / "keys.toml").write_text('cancel = "C"\nwhy = ["w", "f2"]\ntheme = "light"\n')

    keys = keys_of(tmp_path)

    assert keys.troubles == ()
    assert keys.action(["C"]) == "cancel"
    assert keys.action(["x"]) is None
    assert keys.action(["f2"]) == "why"
    assert theme_of(tmp_path) == "light"


def test_without_a_file_the_keys_are_as_they_are(tmp_path: Path):
    assert keys_of(tmp_path).table == ACTIONS
    assert theme_of(tmp_path) == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("cancel = [", "keys.toml was not read"),
        ('fly = "F"', "there is no action 'fly'"),
        ("cancel = 3", "cancel must be a key"),
        ('cancel = "w"', "w is both why and cancel"),
        ("\udcff", "keys.toml was not read"),
    ],
)
def test_a_file_that_is_wrong_is_told_and_changes_nothing(tmp_path: Path, text: str, why: str):
    (tmp_path / "keys.toml").write_bytes(text.encode(errors="surrogateescape"))

    keys = keys_of(tmp_path)

    assert why in keys.troubles[0]
    assert keys.action(["x"]) == "cancel"


def test_the_board_says_what_is_wrong_with_the_file(own):
    (own.shell.home / "keys.toml").write_text('fly = "F"\n', encoding="utf-8")

    async def story(board) -> None:
        await board.sees("keys.toml: there is no action 'fly'")

    own.drive(story)
