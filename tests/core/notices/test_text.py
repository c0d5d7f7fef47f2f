"""The words of a notification."""

import pytest
from msgspec.structs import replace

from lockgate.core.notices.plan import Call, Entry
from lockgate.core.notices.text import (
    MOST,
    Day,
    digest,
    facts_of,
    long,
    message_id,
    message_of,
    size_text,
    threshold,
)


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


def test_a_program_is_told_whether_it_is_a_need_a_reminder_or_an_event() -> None:
    call = a_call(1)
    first = Entry(key=call.key, target="hook")
    again = replace(first, nth=2)
    event = replace(call, kind="landed", lasts=False, facts={"a": 1})

    assert [facts_of(call, it)["event"] for it in (first, again)] == ["need", "reminder"]
    assert facts_of(call, first)["type"] == "need.approve"
    assert facts_of(call, first)["time"] == "1970-01-01T00:00:00+00:00"
    assert (facts_of(event, first)["event"], facts_of(event, first)["need"]) == ("landed", None)
    assert (message_id(first), message_id(again)) == ("t1:1:approve", "t1:1:approve#2")


def test_the_digest_has_a_part_for_each_project_with_its_oldest_needs() -> None:
    busy = Day(name="shop", landed=2, usd=1.5, needs=(("approve t1", 7200.0),) * (MOST + 1))
    idle = Day(name="blog")

    told = digest((busy, idle))

    assert told.title == f"Lockgate: {MOST + 1} needs open, 2 landed"
    assert told.body.startswith("shop: 2 landed, 0 dropped, 1.50 USD since yesterday\n- approve t1")
    assert "- and 1 more\n\nblog: 0 landed" in told.body
    assert told.body.endswith("nothing needs you")


def test_a_share_of_the_budget_is_told_with_both_sums() -> None:
    told = threshold("shop", 0.8, 8.0, 10.0)

    assert told.title == "shop: 80% of today's budget is used"
    assert told.body == "The agents have cost 8.00 USD of 10.00 USD today."


@pytest.mark.parametrize(
    ("seconds", "words"), [(59.0, "0 min"), (3600.0, "1 h"), (47 * 3600.0, "47 h"), (2e5, "2 days")]
)
def test_how_long_something_waits_is_said_shortly(seconds, words) -> None:
    assert long(seconds) == words
