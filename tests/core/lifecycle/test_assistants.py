"""What an assistant may carry to a human for a yes or a no, and what it may not."""

import pytest
from msgspec.structs import replace

from lockgate.core.lifecycle.assistants import (
    cannot_ask,
    check_name,
    not_granted,
    only_in_person,
    said_no,
)
from lockgate.core.model.task import GateKind, GateRef, Status
from tests.given import RULES, a_task

COMMAND = "lockgate approve t1"
GATE = GateRef("differential", GateKind.DIFFERENTIAL)


@pytest.mark.parametrize(("name", "good"), [("claude-code", True), ("", False), ("a\nb", False)])
def test_an_assistant_has_a_name_that_fits_into_one_line(name, good) -> None:
    assert (check_name(name) is None) == good


@pytest.mark.parametrize(
    ("files", "told"),
    [(("a",), "look at: a"), (("a", "b", "c", "d"), "look at: a, b, c and 1 more")],
)
def test_a_change_of_protected_files_is_answered_in_person(files, told) -> None:
    declined = only_in_person(a_task(Status.REVIEWING, protected=files), COMMAND)

    assert declined is not None
    assert declined.why.endswith(told)
    assert COMMAND in declined.fix


def test_a_question_about_tests_is_answered_in_person_and_others_may_be_asked_by_form() -> None:
    rules = replace(RULES, gates=(GATE,))
    task = a_task(Status.AGENT_REVIEW, pinned=rules, waiting="differential", seats=())

    asked = only_in_person(task, COMMAND)

    assert asked is not None
    assert "asks about tests" in asked.why
    assert only_in_person(replace(task, waiting="approval"), COMMAND) is None
    assert only_in_person(replace(task, pinned=None), COMMAND) is None


@pytest.mark.parametrize("said", [not_granted("bot", COMMAND), cannot_ask("bot", COMMAND)])
def test_every_refusal_names_the_assistant_and_the_command_for_a_human(said) -> None:
    assert "'bot'" in said.why
    assert COMMAND in said.fix
    assert COMMAND in said_no(COMMAND).fix
