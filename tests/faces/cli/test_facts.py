"""What `--json` prints is what the services give to every face."""

import json

import pytest

from lockgate.core.model.task import Status
from lockgate.services.task.boards import BoardFilter


@pytest.fixture
def asked(shell):
    """A home with a task that asks, one that waits and one that has ended."""
    one, two, three = (shell.create(it) for it in ("one", "two", "three"))
    shell.bring(one, Status.STUCK)
    shell.did("task", "cancel", three)
    return shell, one, two, three


def plain(facts: object) -> object:
    return json.loads(json.dumps(facts, default=str))


def test_the_board_the_inbox_and_a_page_are_the_facts_of_the_one_model(asked):
    shell, one, *_ = asked
    board = json.loads(shell.did("task", "list", "--json"))
    inbox = json.loads(shell.did("inbox", "--json"))
    page = json.loads(shell.did("task", "show", one, "--json"))
    status = json.loads(shell.did("status", "--json"))

    app = shell.app()
    which = BoardFilter(projects=frozenset({app.projects.here(shell.repo).id}))
    assert {**board, "conflicts": None} == {**app.boards.board(which).facts(), "conflicts": None}
    assert inbox == app.boards.inbox().facts()
    assert page == plain(app.boards.page(one).facts())
    assert status["needs"] == inbox["needs"]
    app.close()


def test_the_inbox_tells_every_need_with_its_commands(asked):
    shell, one, *_ = asked

    told = shell.did("inbox")

    assert told.startswith("NEEDS YOU (1)\nstuck")
    assert f"lockgate task why {one}" in told


def test_statistics_are_told_as_text_as_facts_and_as_rows(asked):
    shell, *_ = asked

    text = shell.did("stats", "--days", "7")
    facts = json.loads(shell.did("stats", "--days", "7", "--json"))
    rows = shell.did("stats", "--days", "7", "--csv").splitlines()

    assert text.startswith("the last 7 days: 0 landed, 1 dropped\n")
    assert (facts["dropped"], len(facts["days"])) == (1, 7)
    assert rows[0] == "what,label,figure,value"
    assert len([it for it in rows if it.startswith("day,")]) == 14


def test_people_are_listed_and_a_right_that_there_is_not_is_refused(shell):
    assert "the owner of the home has all rights" in shell.did("people", "list")

    shell.did("people", "add", "ann", "--may", "land")

    assert "ann" in shell.did("people", "list")
    [ann] = json.loads(shell.did("people", "list", "--json"))
    assert (ann["name"], ann["may"]) == ("ann", "land")
    assert shell.run("people", "add", "ann", "--may", "rule").code == 2
    assert shell.run("people", "remove", "bob").code == 1
    shell.did("people", "remove", "ann")
    assert json.loads(shell.did("people", "list", "--json")) == []
