"""What people draft: which comments hold up a change, and which a yes keeps."""

import pytest

from lockgate.core.model.findings import Priority
from lockgate.core.model.people import Draft, is_note, noted
from lockgate.core.model.task import TaskId


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
