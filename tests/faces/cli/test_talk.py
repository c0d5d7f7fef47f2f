"""Words to an agent and long descriptions, from the command line."""

import pytest

from lockgate.core.model.task import Status
from tests.faces.cli.test_agents import Seat
from tests.faces.shell import Shell

pytestmark = pytest.mark.measured


def editor(shell: Shell, text: str) -> str:
    """A program that writes this text above what it is given."""
    place = shell.repo.parent / "editor"
    place.write_text(
        f"#!/bin/sh\ncat \"$1\" > '{shell.repo.parent}/given'\nprintf '%s' '{text}' > \"$1\"\n",
        encoding="utf-8",
    )
    place.chmod(0o755)
    return str(place)


def given(shell: Shell) -> str:
    return (shell.repo.parent / "given").read_text(encoding="utf-8")


def test_words_are_queued_shown_edited_and_taken_out(shell):
    id = shell.create("fix-login", "--no-start")

    first = shell.run("say", id, "use blue")
    shell.program("say", id, "--file", "-", stdin=b"and\na test\n")
    shell.run("say", id, "--edit", "1", "use red")
    shown = shell.run("say", id)

    assert "the next one reads it when it starts" in first.out
    assert "1. use red" in shown.out
    assert "2. and a test" in shown.out
    assert "word:" in shell.run("task", "show", id).out
    dropped = shell.run("say", id, "--drop", "1", "--json")
    assert [it["text"] for it in dropped.facts["words"]] == ["and\na test"]
    assert "no word 5 waits" in shell.run("say", id, "--drop", "5").why


def test_a_word_that_nobody_can_hear_now_is_refused_with_the_way_that_works(shell):
    id = shell.create("fix-login", "--no-start")

    answer = shell.run("say", id, "--now", "stop")

    assert "leave --now out" in answer.why
    assert "is empty" in shell.run("say", id, " ").why
    assert shell.run("say", id, "a", "--drop", "1").code == 2


def test_a_description_comes_from_a_file_whose_first_line_is_the_goal(shell):
    text = "Fix the login\n\nIt loops.\n"

    id = shell.program(
        "task", "create", "fix", "--file", "-", "--no-start", stdin=text.encode()
    ).out.strip()
    other = shell.program(
        "task", "create", "other", "Do it", "--file", "-", "--no-start", stdin=text.encode()
    ).out.strip()

    assert shell.facts(id)["goal"] == "Fix the login"
    assert "## Context\n\nIt loops.\n" in shell.file(id).read_text(encoding="utf-8")
    assert shell.facts(other)["goal"] == "Do it"
    assert "Fix the login\n\nIt loops.\n" in shell.file(other).read_text(encoding="utf-8")


@pytest.mark.parametrize("argv", [("task", "create", "fix"), ("run",)])
def test_where_there_is_no_terminal_a_description_must_be_given(shell, argv):
    answer = shell.run(*argv)

    assert (answer.code, "--file FILE" in answer.err) == (2, True)
    assert shell.program(*argv, "--file", "-", "--context", "-", stdin=b"x").code == 2


def test_a_description_is_written_in_the_users_editor(shell):
    text = "Fix the login\n\nIt loops."
    seat = Seat(shell, "task", "create", "fix", "--no-start", EDITOR=editor(shell, text))

    assert seat.end() == 0, seat.seen
    [id] = [it for it in seat.seen.decode().split() if it.startswith("fix-")][:1]
    assert shell.facts(id)["goal"] == "Fix the login"
    assert "Nothing below this line is read" in given(shell)


def test_a_task_is_edited_in_the_users_editor(shell):
    id = shell.create("fix-login", "--no-start")
    seat = Seat(shell, "task", "edit", id, EDITOR=editor(shell, "Fix the logout\n\nIt hangs."))

    assert seat.end() == 0, seat.seen
    assert given(shell).startswith("Fix the login\n")
    assert shell.facts(id)["goal"] == "Fix the logout"
    assert "It hangs." in shell.file(id).read_text(encoding="utf-8")
    assert (
        "neither its goal"
        in shell.program(
            "task", "edit", id, "--file", "-", stdin=b"Fix the logout\n\nIt hangs.\n"
        ).why
    )
    assert "no terminal" in shell.run("task", "edit", id).why


def test_an_edit_that_leaves_nothing_changes_nothing(shell):
    id = shell.create("fix-login", "--no-start")
    before = shell.facts(id)
    seat = Seat(shell, "task", "edit", id, EDITOR=editor(shell, ""))

    assert seat.end() == 1
    assert b"the text is empty" in seat.seen
    assert shell.facts(id) == before


def test_a_task_that_has_ended_is_not_edited(shell):
    id = shell.create()
    shell.bring(id, Status.CANCELLED)

    answer = shell.program("task", "edit", id, "--file", "-", stdin=b"Another goal")

    assert "it is cancelled" in answer.why
    assert "it is cancelled" in shell.run("say", id, "hello").why
