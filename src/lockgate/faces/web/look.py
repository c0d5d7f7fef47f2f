"""How pages are made: the templates, and the words and numbers that they ask for.

Every text that goes into a page is escaped, and has nothing in it that changes the direction or
hides a character.
"""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from lockgate import __version__
from lockgate.core.lifecycle.needs import Need, NeedKind
from lockgate.faces.words import task as words

MINUTE, HOUR, DAY = 60, 3600, 86400
MARKS = {"passed": "✓", "failed": "✗", "waiting": "?", "running": "▸", "todo": "·"}
STATES = {
    "passed": "passed",
    "failed": "failed",
    "waiting": "waits for you",
    "running": "runs now",
    "todo": "has not run yet",
}
NEEDS = {
    NeedKind.APPROVE: "Approve",
    NeedKind.LAND: "Let it land",
    NeedKind.ANSWER: "Answer",
    NeedKind.STUCK: "Stuck",
    NeedKind.PAUSED: "Paused",
    NeedKind.ESCALATION: "Look",
    NeedKind.DEAD: "Not running",
    NeedKind.HELD: "Held",
    NeedKind.RED_TIP: "Target is red",
    NeedKind.CHECKOUT: "Files in the way",
    NeedKind.TRUST: "Trust",
    NeedKind.LOGIN: "Log in",
    NeedKind.LIMIT: "Usage limit",
    NeedKind.DEPENDENCY: "Waits in vain",
    NeedKind.BUDGET: "Budget",
    NeedKind.YOURS: "Yours",
    NeedKind.SURROUNDINGS: "Surroundings",
    NeedKind.TROUBLE: "Trouble",
}
REVIEWED = frozenset({NeedKind.APPROVE, NeedKind.LAND, NeedKind.HELD})


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("lockgate.faces.web"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_plain,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    more: dict[str, object] = {
        "version": __version__,
        "ago": ago,
        "iso": iso,
        "clock": clock,
        "money": money,
        "span": span,
        "state_mark": MARKS.__getitem__,
        "state_word": STATES.__getitem__,
        "need_word": NEEDS.__getitem__,
        "need_link": need_link,
        "word_of": words.word_of,
        "mark_of": words.mark_of,
        "agent_text": words.agent_text,
    }
    names: Any = made.globals  # as jinja uses it: any name, any value
    names.update(more)
    made.filters["capitalize_first"] = capitalize_first
    return made


def capitalize_first(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def rendered(template: str, values: Mapping[str, object]) -> str:
    return environment().get_template(template).render(values)


def ago(then: float) -> str:
    seconds = max(0.0, time.time() - then)
    if seconds < MINUTE:
        return f"{int(seconds)}s"
    if seconds < HOUR:
        return f"{int(seconds // MINUTE)}m"
    return f"{int(seconds // HOUR)}h" if seconds < 2 * DAY else f"{int(seconds // DAY)}d"


def span(seconds: float) -> str:
    """How long something took: 0:48, 12:05, 3:00:00."""
    whole = int(seconds)
    hours, minutes = whole // HOUR, whole % HOUR // MINUTE
    if hours:
        return f"{hours}:{minutes:02}:{whole % MINUTE:02}"
    return f"{minutes}:{whole % MINUTE:02}"


def iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")


def clock(moment: float) -> str:
    return datetime.fromtimestamp(moment).astimezone().strftime("%d %b %H:%M")


def money(usd: float) -> str:
    return f"${usd:.2f}" if usd else ""


def need_link(need: Need) -> str:
    if need.task is None:
        return "/"
    page = "/review" if need.kind in REVIEWED else "#why"
    return f"/t/{quote(need.task)}{page}"


def _plain(value: object) -> object:
    return words.safe(value) if isinstance(value, str) and not isinstance(value, Markup) else value
