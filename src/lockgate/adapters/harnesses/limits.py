"""When a usage limit ends, from the words in which programs say so."""

import re
from datetime import datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

UNKNOWN = 0.0  # limited, and nobody says until when

_EPOCH = re.compile(r"limit reached\|(\d{10})\b")
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_SPAN = re.compile(
    r"(\d+(?:\.\d+)?) ?(d|h|m|s)(?:ays?|ours?|rs?|in(?:ute)?s?|ec(?:ond)?s?)?(?![a-z])"
)
_IN = re.compile(
    r"(?:again|retry|reset|resets) (?:in|after) ((?:\d[\d.]* ?[a-z]+[ ,]*)+)", re.IGNORECASE
)
_AT = re.compile(
    r"(?:again at|resets?(?: at)?) "
    r"(?:(?P<month>[A-Z][a-z]{2})[a-z]* (?P<day>\d{1,2})(?:st|nd|rd|th)?"
    r",? (?:(?P<year>\d{4}),? )?(?:at )?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))? ?(?P<half>[ap]m)(?: \((?P<zone>[\w/+-]+)\))?",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def limited_until(words: str, now: float) -> float:
    """The time that these words name as the end of a limit; UNKNOWN where they name none."""
    if epoch := _EPOCH.search(words):
        return float(epoch[1])
    if span := _IN.search(words):
        seconds = sum(float(n) * _UNITS[unit] for n, unit in _SPAN.findall(span[1].lower()))
        return now + seconds if seconds else UNKNOWN
    if at := _AT.search(words):
        return _moment(at, now)
    return UNKNOWN


def _moment(at: re.Match[str], now: float) -> float:
    """The next time that a clock shows this, where no date is named."""
    zone = _zone(at["zone"])
    today = datetime.fromtimestamp(now, zone) if zone else datetime.fromtimestamp(now).astimezone()
    hour = int(at["hour"]) % 12 + (12 if at["half"].lower() == "pm" else 0)
    try:
        moment = today.replace(hour=hour, minute=int(at["minute"] or 0), second=0, microsecond=0)
        if at["month"]:
            month = _MONTHS.index(at["month"].lower()) + 1
            year = int(at["year"] or today.year)
            return moment.replace(year=year, month=month, day=int(at["day"])).timestamp()
    except ValueError:
        return UNKNOWN
    return (moment if moment > today else moment + timedelta(days=1)).timestamp()


def _zone(name: str | None) -> tzinfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (KeyError, ValueError, OSError):
        return None
