"""People: the names they may have, what each right includes, and which drafts a yes keeps."""

from itertools import product

import pytest

from lockgate.core.model.findings import Priority
from lockgate.core.model.people import Draft, Right, allows, good_name, is_note, noted
from lockgate.core.model.task import TaskId


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("ann", True),
        ("ann.b_c-d@example.org", True),
        ("7", True),
        ("", False),
        ("-ann", False),
        ("ann b", False),
        ("ann\n", False),
        ("ann" * 22, False),
        ("\u0430nn", False),  # begins with a Cyrillic letter that looks Latin
    ],
)
def test_a_name_cannot_be_taken_for_another_one(name, good) -> None:
    assert good_name(name) is good


def test_each_right_has_all_that_stand_before_it() -> None:
    order = [Right.LOOK, Right.WORK, Right.LAND, Right.ADMIN]

    for has, wanted in product(order, order):
        assert allows(has, wanted) is (order.index(has) >= order.index(wanted))


def draft(text: str, priority: Priority, line: int = 1) -> Draft:
    return Draft(
        task=TaskId("t1"),
        patch="fe",
        file="a.py",
        line=line,
        quote="",
        text=text,
        priority=priority,
    )


@pytest.mark.parametrize("priority", Priority)
def test_only_a_suggestion_is_a_note(priority: Priority):
    assert is_note(draft("x", priority)) == (priority is Priority.P3_SUGGESTION)


def test_a_yes_says_the_notes_with_their_places_and_nothing_else():
    drafts = (
        draft("name the constant", Priority.P3_SUGGESTION, 3),
        draft("this is wrong", Priority.P1_MAJOR, 4),
        draft("good idea", Priority.P3_SUGGESTION, 5),
    )

    assert noted(drafts) == "a.py:3: name the constant; a.py:5: good idea"
    assert noted(drafts[1:2]) == ""
