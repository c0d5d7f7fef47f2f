"""What is told to whom, and when: once each, after it has settled, not in quiet hours.

The ledger remembers who was told what. A plan is made of it and of what needs a human now. Each
step is written down as it is carried out, so that after a crash the next plan goes on from there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.core.notices.hours import Hours, loud_from

SETTLE = 20.0  # seconds; what is over by then is not told
TOGETHER = 60.0  # seconds that the first one waits for others at most
RETRIES = (5.0, 300.0, 1800.0, 7200.0, 28800.0)  # seconds after each failure
REMINDERS = 2
FORGET = 600.0  # seconds after which what has gone is new when it comes back


class Call(Struct, frozen=True, kw_only=True):
    """One thing to tell; `lasts` says that it is so until a human acts, and is reminded of."""

    key: str
    kind: str
    project: str
    title: str
    text: str = ""
    task: str = ""
    link: str = ""
    time: float = 0.0
    lasts: bool = True
    facts: Mapping[str, object] = field(default_factory=dict[str, object])


class Rules(Struct, frozen=True, kw_only=True):
    """Of one project."""

    kinds: frozenset[str] = frozenset()
    urgent: frozenset[str] = frozenset()
    quiet: Hours | None = None
    remind: float = 0.0


class Target(Struct, frozen=True, kw_only=True):
    """Somebody who is told; `kinds` and `projects` are all where they are empty."""

    name: str
    kinds: frozenset[str] = frozenset()
    projects: frozenset[str] = frozenset()
    each: bool = False  # one message for each call, as a program wants them
    without: frozenset[str] = frozenset()  # keys of what its person has seen already


class Entry(Struct, frozen=True, kw_only=True):
    """That a target is to be told, or was; `nth` counts the reminders."""

    key: str
    target: str
    nth: int = 0
    noticed: float = 0.0
    due: float = 0.0
    tries: int = 0
    sent: float = 0.0  # 0 until it is
    gone: float = 0.0  # since when nobody needs to know it any more; 0 while somebody does
    failed: bool = False  # given up

    @property
    def place(self) -> tuple[str, str, int]:
        return self.key, self.target, self.nth

    @property
    def waits(self) -> bool:
        return not self.sent and not self.failed


class Seen(Struct, frozen=True, kw_only=True):
    """All that a plan is made of; `rules` by project."""

    calls: tuple[Call, ...]
    ledger: tuple[Entry, ...]
    targets: tuple[Target, ...]
    rules: Mapping[str, Rules]
    now: float
    zone: tzinfo


class Send(Struct, frozen=True):
    target: str
    entries: tuple[Entry, ...]
    calls: tuple[Call, ...]


class Plan(Struct, frozen=True):
    """What to write into the ledger and to take out of it first, and then to send.

    `again` is when to look again though nothing happens; infinite where nothing is due.
    """

    put: tuple[Entry, ...]
    drop: tuple[Entry, ...]
    send: tuple[Send, ...]
    again: float


def plan(seen: Seen) -> Plan:
    wanted = {(it.key, at.name): it for at in seen.targets for it in _wanted(seen, at)}
    kept, put, drop = _reviewed(seen, wanted)
    new = (*_first(seen, wanted, kept), *_reminders(seen, wanted, kept))
    ledger = (*kept, *new)
    send, later = list[Send](), [_reminded(seen, wanted, it) for it in _newest(ledger)]
    for target in seen.targets:
        waiting = [it for it in ledger if it.target == target.name and it.waits and not it.gone]
        ready, again = _ready(seen, target, waiting, wanted)
        send += _messages(target, ready, wanted)
        later.append(again)
    return Plan((*put, *new), drop, tuple(send), min(later, default=NEVER))


def delivered(entry: Entry, now: float) -> Entry:
    return replace(entry, sent=now, tries=entry.tries + 1)


def not_delivered(entry: Entry, now: float) -> Entry:
    """Tried again later, each time after longer; given up in the end."""
    tries = entry.tries + 1
    if tries > len(RETRIES):
        return replace(entry, tries=tries, failed=True)
    return replace(entry, tries=tries, due=now + RETRIES[tries - 1])


NEVER = float("inf")
Wanted = Mapping[tuple[str, str], Call]  # by the call's key and the target's name
Opens = Callable[[Entry], float]


def _wanted(seen: Seen, target: Target) -> Iterator[Call]:
    for call in seen.calls:
        kinds = target.kinds or seen.rules.get(call.project, Rules()).kinds
        here = not target.projects or call.project in target.projects
        if here and call.kind in kinds and call.key not in target.without:
            yield call


def _reviewed(
    seen: Seen, wanted: Wanted
) -> tuple[list[Entry], tuple[Entry, ...], tuple[Entry, ...]]:
    """What stays, what of it is changed, and what goes."""
    stays, put, drop = list[Entry](), list[Entry](), list[Entry]()
    for it in seen.ledger:
        there = (it.key, it.target) in wanted
        if not there and (it.waits or (it.gone and seen.now - it.gone > FORGET)):
            drop.append(it)
            continue
        marked = replace(it, gone=0.0 if there else it.gone or seen.now)
        stays.append(marked)
        if marked != it:
            put.append(marked)
    return stays, tuple(put), tuple(drop)


def _first(seen: Seen, wanted: Wanted, kept: Sequence[Entry]) -> Iterator[Entry]:
    known = {(it.key, it.target) for it in kept}
    for (key, target), call in wanted.items():
        if (key, target) not in known:
            due = seen.now + (SETTLE if call.lasts else 0.0)
            yield Entry(key=key, target=target, noticed=seen.now, due=due)


def _reminders(seen: Seen, wanted: Wanted, kept: Sequence[Entry]) -> Iterator[Entry]:
    for it in _newest(kept):
        if _reminded(seen, wanted, it) <= seen.now:
            yield Entry(
                key=it.key, target=it.target, nth=it.nth + 1, noticed=seen.now, due=seen.now
            )


def _newest(kept: Iterable[Entry]) -> Iterable[Entry]:
    """The last word to each target about each thing."""
    return {(it.key, it.target): it for it in sorted(kept, key=lambda it: it.nth)}.values()


def _reminded(seen: Seen, wanted: Wanted, it: Entry) -> float:
    """When it is time for a reminder."""
    call = wanted.get((it.key, it.target))
    if call is None or not call.lasts or not it.sent or it.nth >= REMINDERS:
        return NEVER
    remind = seen.rules.get(call.project, Rules()).remind
    return it.sent + remind if remind else NEVER


def _ready(
    seen: Seen, target: Target, waiting: Sequence[Entry], wanted: Wanted
) -> tuple[list[Entry], float]:
    """What can be told now, and when there will be more."""
    opens = _window(target, waiting)
    due = ((it, wanted[it.key, it.target], max(it.due, opens(it))) for it in waiting)
    times = [(it, _told_at(seen, call, at)) for it, call, at in due]
    later = min((at for _, at in times if at > seen.now), default=NEVER)
    return [it for it, at in times if at <= seen.now], later


def _window(target: Target, waiting: Sequence[Entry]) -> Opens:
    """Those that come together are one message: the first waits for the last, but not for long."""
    fresh = [it for it in waiting if not it.tries]
    if target.each or not fresh:
        return lambda _: 0.0
    last = max(it.due for it in fresh)
    until = min(last, min(it.noticed for it in fresh) + TOGETHER)
    return lambda it: 0.0 if it.tries else until


def _told_at(seen: Seen, call: Call, at: float) -> float:
    rules = seen.rules.get(call.project, Rules())
    if call.kind in rules.urgent:
        return at
    return loud_from(max(at, seen.now), rules.quiet, seen.zone) if at <= seen.now else at


def _messages(target: Target, ready: Sequence[Entry], wanted: Wanted) -> Iterator[Send]:
    groups = [[it] for it in ready] if target.each else [list(ready)] if ready else []
    for group in groups:
        yield Send(target.name, tuple(group), tuple(wanted[it.key, it.target] for it in group))
