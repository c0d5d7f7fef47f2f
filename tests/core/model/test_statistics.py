"""Events are counted by day; many durations are told as a half and nine in ten."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.core.model.facts import FIRST_PREV, StoredEvent
from lockgate.core.model.statistics import (
    DAY,
    MEASURED,
    UNMEASURED,
    added,
    bucket_of,
    counts_of,
    seconds_of,
    spread_of,
)
from lockgate.core.model.task import TaskId


def event(type: str, **data: object) -> StoredEvent:
    return StoredEvent(
        seq=1, time=3.5 * DAY, task=TaskId("t"), type=type, prev=FIRST_PREV, data=data
    )


@given(st.floats(1, 1e8))
def test_a_bucket_is_at_most_a_fifth_too_long(seconds) -> None:
    told = seconds_of(bucket_of(seconds))

    assert seconds <= told * 1.000001
    assert told <= seconds * 1.2


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=200))
def test_half_and_nine_in_ten_are_where_they_are_among_the_durations_themselves(durations) -> None:
    buckets: dict[int, int] = {}
    for it in durations:
        buckets[bucket_of(it)] = buckets.get(bucket_of(it), 0) + 1

    spread = spread_of(buckets)

    assert spread.n == len(durations)
    for share, told in ((0.5, spread.p50), (0.9, spread.p90)):
        assert told is not None
        within = sum(it <= told * 1.000001 for it in durations)
        assert within >= share * len(durations)


def test_of_nothing_nothing_is_told() -> None:
    spread = spread_of({})

    assert (spread.n, spread.p50, spread.p90) == (0, None, None)


@pytest.mark.parametrize(
    ("it", "told"),
    [
        (
            event("change.landed", seconds=60, usd=0.5, tokens=7, iteration=1),
            {"landed", "lead", "landed-usd", "landed-tokens", "first-pass"},
        ),
        (
            event("change.landed", seconds=60, usd=0.5, tokens=7, iteration=2),
            {"landed", "lead", "landed-usd", "landed-tokens"},
        ),
        (event("change.landed", commit="c"), {"landed"}),
        (
            event("status.changed", **{"from": "STUCK", "to": "WORKING", "seconds": 5}),
            {"status", "human-wait"},
        ),
        (
            event("status.changed", **{"from": "STUCK", "to": "CANCELLED", "seconds": 5}),
            {"status", "dropped"},
        ),
        (
            event(
                "status.changed",
                **{"from": "REVIEWING", "to": "WORKING", "cause": "dropped-from-train"},
            ),
            {"dropped"},
        ),
        (event("GateCompleted", gate_name="tests", result="failed"), {"gate.failed"}),
        (
            event("GateCompleted", gate_name="tests", result="passed", why="FLAKY: once"),
            {"gate.passed", "gate.flaky"},
        ),
        (
            event("GateCompleted", gate_name="d", result="passed", why=f"{MEASURED}: 10 of 10"),
            {"gate.passed", "gate.measured"},
        ),
        (
            event("GateCompleted", gate_name="d", result="waiting", why=f"Less?\n{UNMEASURED}: 1"),
            {"gate.waiting", "gate.unmeasured"},
        ),
        (
            event("GateCompleted", gate_name="tests", result="passed", seconds=3.5),
            {"gate.passed", "gate-seconds"},
        ),
        (event("landing.approved", seconds=5), {"human-wait"}),
        (event("landing.approved"), set()),
        (event("session.ended", agent="a", role="worker", usd=1, tokens=2), {"usd", "tokens"}),
        (event("session.ended", agent="a", crashed=True), {"usd", "tokens", "crash"}),
        (event("summary.changed", summary="x"), set()),
    ],
)
def test_an_event_counts_for_what_it_tells(it, told) -> None:
    counts = tuple(counts_of(it, "p"))

    assert {c.metric for c in counts} == told
    assert {(c.day, c.project) for c in counts} <= {(3, "p")}


@given(st.lists(st.sampled_from(["a", "b"]), max_size=20))
def test_like_counts_become_one(agents) -> None:
    one_by_one = [c for it in agents for c in counts_of(event("session.ended", agent=it), "p")]

    found = {(it.metric, it.label): it.n for it in added(one_by_one)}

    assert found == {
        (metric, f"{it}/"): agents.count(it) for it in set(agents) for metric in ("usd", "tokens")
    }
