"""The words of a notification: a message for people, a body for programs, the digest of a day."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from lockgate.core.notices.plan import Call, Entry

MOST = 10  # things that one message names
HOUR = 3600.0
DAY_HOURS = 24


class Message(Struct, frozen=True):
    title: str
    body: str


class Day(Struct, frozen=True, kw_only=True):
    """What a digest tells of one project."""

    name: str
    landed: int = 0
    dropped: int = 0
    usd: float = 0.0
    needs: tuple[tuple[str, float], ...] = ()  # each with how long it waits, the oldest first


def message_of(calls: Sequence[Call]) -> Message:
    """One message for all that came together."""
    if len(calls) == 1:
        return Message(calls[0].title, _lines(calls[0].text, calls[0].link))
    parts = [_lines(it.title, it.text, it.link) for it in calls[:MOST]]
    more = [f"and {len(calls) - MOST} more"] if len(calls) > MOST else []
    return Message(f"{len(calls)} things need you", "\n\n".join((*parts, *more)))


def facts_of(call: Call, entry: Entry) -> dict[str, object]:
    """What a webhook's body says."""
    about = call.kind if not call.lasts else "reminder" if entry.nth else "need"
    return {
        "type": f"need.{call.kind}" if call.lasts else call.kind,
        "time": datetime.fromtimestamp(call.time, UTC).isoformat(),
        "event": about,
        "need": dict(call.facts) if call.lasts else None,
        "title": call.title,
        "text": call.text,
        "url": call.link,
    }


def message_id(entry: Entry) -> str:
    """The same for every try to deliver it, so that a receiver can tell a repetition."""
    return f"{entry.key}#{entry.nth}" if entry.nth else entry.key


def digest(days: Sequence[Day]) -> Message:
    waiting = sum(len(it.needs) for it in days)
    landed = sum(it.landed for it in days)
    title = f"Lockgate: {_counted(waiting, 'need')} open, {landed} landed"
    return Message(title, "\n\n".join(_day(it) for it in days))


def threshold(name: str, share: float, spent: float, limit: float) -> Message:
    title = f"{name}: {share:.0%} of today's budget is used"
    return Message(title, f"The agents have cost {spent:.2f} USD of {limit:.2f} USD today.")


def long(seconds: float) -> str:
    """How long something took or waits, for people."""
    if seconds < HOUR:
        return f"{int(seconds // 60)} min"
    hours = int(seconds // HOUR)
    return f"{hours} h" if hours < 2 * DAY_HOURS else f"{hours // DAY_HOURS} days"


def size_text(facts: Mapping[str, int]) -> str:
    """`2 files +41 -7`; empty where there is no change."""
    if not facts.get("files"):
        return ""
    return f"{_counted(facts['files'], 'file')} +{facts['added']} -{facts['removed']}"


def _day(it: Day) -> str:
    told = f"{it.landed} landed, {it.dropped} dropped, {it.usd:.2f} USD since yesterday"
    needs = [f"- {ask} (waits {long(waits)})" for ask, waits in it.needs[:MOST]]
    more = [f"- and {len(it.needs) - MOST} more"] if len(it.needs) > MOST else []
    return "\n".join((f"{it.name}: {told}", *(needs or ["nothing needs you"]), *more))


def _lines(*parts: str) -> str:
    return "\n".join(it for it in parts if it)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
