"""Hours of a place's own time, also over the days on which its clock changes."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.core.notices.hours import (
    DAY,
    Hours,
    day_began,
    hours_of,
    is_quiet,
    last_time,
    loud_from,
    moment,
    next_day,
    next_time,
    seconds_of,
)

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = [ZoneInfo(it) for it in ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe")]
MOMENTS = st.floats(min_value=1.7e9, max_value=1.83e9)  # four years, with all their changes
MINUTES = st.integers(0, DAY - 1)


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("22:00-07:00", Hours(1320, 420)),
        ("09:30-10:00", Hours(570, 600)),
        ("", None),
        ("7-8", None),
        ("07:00-07:00", None),
        ("24:00-07:00", None),
    ],
)
def test_hours_are_read_as_they_are_written(text: str, found: Hours | None) -> None:
    assert hours_of(text) == found


@pytest.mark.parametrize(
    ("text", "seconds"), [("4h", 14400.0), ("30m", 1800.0), ("1d", 86400.0), ("", 0.0), ("4", 0.0)]
)
def test_a_length_of_time_has_its_unit(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@given(MOMENTS, MINUTES, MINUTES, st.sampled_from(ZONES))
def test_what_waits_for_the_end_of_quiet_hours_is_told_when_they_are_over(now, begin, end, zone):
    hours = Hours(begin, end) if begin != end else None

    told = loud_from(now, hours, zone)

    assert told >= now
    assert not is_quiet(told, hours, zone) or told == now
    assert told - now <= 26 * 3600
    if not is_quiet(now, hours, zone):
        assert told == now


@given(MOMENTS, MINUTES, MINUTES, st.sampled_from(ZONES), st.floats(0, 1))
def test_nothing_between_now_and_the_end_of_quiet_hours_is_loud(now, begin, end, zone, share):
    hours = Hours(begin, end) if begin != end else None
    told = loud_from(now, hours, zone)
    between = now + (told - now) * share

    if told - now > 1 and between < told - 3600:  # a jump of the clock may end them early
        assert is_quiet(between, hours, zone)


@pytest.mark.parametrize(
    ("now", "told"),
    [
        # On 2026-03-29 at 02:00 the clock goes to 03:00; on 2026-10-25 at 03:00 to 02:00.
        ("2026-03-28T23:30:00", "2026-03-29T05:00:00"),
        ("2026-10-25T00:30:00", "2026-10-25T06:00:00"),
        ("2026-10-25T01:30:00", "2026-10-25T06:00:00"),
        ("2026-10-25T06:00:00", "2026-10-25T06:00:00"),
        ("2026-07-01T12:00:00", "2026-07-01T12:00:00"),
    ],
)
def test_quiet_hours_end_by_the_clock_on_the_wall_also_when_it_changes(now: str, told: str) -> None:
    assert loud_from(at(now), hours_of("22:00-07:00"), BERLIN) == at(told)


@given(MOMENTS, st.sampled_from(ZONES))
def test_a_day_begins_before_now_and_ends_after_it(now: float, zone: ZoneInfo) -> None:
    assert day_began(now, zone) <= now < next_day(now, zone)
    assert 22 <= (next_day(now, zone) - day_began(now, zone)) / 3600 <= 26


@given(MOMENTS, MINUTES, st.sampled_from(ZONES))
def test_each_time_of_day_comes_once_a_day(now: float, minute: int, zone: ZoneInfo) -> None:
    clock = f"{minute // 60:02}:{minute % 60:02}"

    last, following = last_time(now, clock, zone), next_time(now, clock, zone)

    assert last <= now < following
    assert 22 <= (following - last) / 3600 <= 26


def test_a_time_that_the_clock_jumps_over_is_told_an_hour_later_by_the_clock() -> None:
    told = moment(date(2026, 3, 29), 150, BERLIN)

    assert datetime.fromtimestamp(told, BERLIN).strftime("%H:%M") == "03:30"
