"""The words of a notification."""

from lockgate.core.notices.plan import Call
from lockgate.core.notices.text import MOST, message_of, size_text


def a_call(number: int) -> Call:
    return Call(
        key=f"t{number}:1:approve",
        kind="approve",
        project="p",
        time=0.0,
        title=f"shop/t{number}: approve",
        text="gate approval waits",
        link="",
    )


def test_one_need_is_a_message_of_its_own() -> None:
    assert message_of([a_call(1)]).title == "shop/t1: approve"


def test_needs_that_come_together_are_counted_and_the_first_ones_are_named() -> None:
    message = message_of([a_call(it) for it in range(MOST + 2)])

    assert message.title == f"{MOST + 2} things need you"
    assert "shop/t0: approve" in message.body
    assert message.body.endswith("and 2 more")


def test_a_change_is_told_by_its_files_and_lines_and_no_change_not_at_all() -> None:
    assert size_text({"files": 2, "added": 41, "removed": 7}) == "2 files +41 -7"
    assert size_text({}) == ""
