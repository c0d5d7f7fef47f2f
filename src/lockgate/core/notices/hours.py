"""Hours as people set them: quiet hours, the time of a digest, a day; over clocks that change.

All are of a place's own time, so that the zone is an argument.
"""

import re
from datetime import date, datetime, time, timedelta, tzinfo

from msgspec import Struct

MINUTES = 60
DAY = 24 * MINUTES
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
HOURS = r"([01][0-9]|2[0-3]):[0-5][0-9]"
CLOCK = re.compile(rf"^{HOURS}$")
SPAN = re.compile(rf"^{HOURS}-{HOURS}$")
LENGTH = re.compile(r"^[1-9][0-9]{0,4}[smhd]$")


class Hours(Struct, frozen=True):
    """From one time of day until another, in minutes from midnight; over midnight where it ends
    before it begins.
    """

    begin: int
    end: int

    def has(self, minute: int) -> bool:
        if self.begin <= self.end:
            return self.begin <= minute < self.end
        return minute >= self.begin or minute < self.end


def hours_of(text: str) -> Hours | None:
    """`22:00-07:00`; None where nothing is set, and for a span without length."""
    if not SPAN.match(text):
        return None
    begin, end = (_minute_of(it) for it in text.split("-"))
    return Hours(begin, end) if begin != end else None


def seconds_of(text: str) -> float:
    """`30m`, `4h`, `1d`; 0 where nothing is set."""
    return int(text[:-1]) * UNITS[text[-1]] if LENGTH.match(text) else 0.0


def is_quiet(now: float, hours: Hours | None, zone: tzinfo) -> bool:
    """By the clock on the wall: an hour that comes twice is quiet twice."""
    if hours is None:
        return False
    local = datetime.fromtimestamp(now, zone)
    return hours.has(local.hour * MINUTES + local.minute)


def loud_from(now: float, hours: Hours | None, zone: tzinfo) -> float:
    """The first moment from now on that is not quiet."""
    if hours is None or not is_quiet(now, hours, zone):
        return now
    today = datetime.fromtimestamp(now, zone).date()
    ends = [moment(today + timedelta(n), hours.end, zone, fold) for n in (0, 1) for fold in (0, 1)]
    return min((it for it in ends if it > now and not is_quiet(it, hours, zone)), default=now)


def day_of(now: float, zone: tzinfo) -> date:
    return datetime.fromtimestamp(now, zone).date()


def day_began(now: float, zone: tzinfo) -> float:
    """The midnight before now."""
    return moment(day_of(now, zone), 0, zone)


def next_day(now: float, zone: tzinfo) -> float:
    return moment(day_of(now, zone) + timedelta(1), 0, zone)


def last_time(now: float, clock: str, zone: tzinfo) -> float:
    """When it was this time of day last."""
    today = day_of(now, zone)
    there = (moment(today - timedelta(n), _minute_of(clock), zone) for n in (0, 1, 2))
    return next(it for it in there if it <= now)


def next_time(now: float, clock: str, zone: tzinfo) -> float:
    today = day_of(now, zone)
    there = (moment(today + timedelta(n), _minute_of(clock), zone) for n in (0, 1, 2))
    return next(it for it in there if it > now)


def moment(day: date, minute: int, zone: tzinfo, fold: int = 0) -> float:
    """A time that the clock jumps over is as long after midnight as it would have been."""
    clock = time(minute // MINUTES, minute % MINUTES, tzinfo=zone, fold=fold)
    return datetime.combine(day, clock).timestamp()


def _minute_of(clock: str) -> int:
    hour, minute = clock.split(":")
    return int(hour) * MINUTES + int(minute)
