"""What an event counts for in the statistics of its day, and what many days come to.

A duration is counted in a bucket of like ones, each a fifth longer than the one before, so that a
day takes as much room for a thousand tasks as for ten.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from math import ceil, log2

from msgspec import Struct

from lockgate.core.model.facts import StoredEvent
from lockgate.core.model.task import Cause, Status

DAY = 86_400
STEPS = 4  # buckets in which a duration doubles
WAITS = frozenset({Status.CLARIFICATION, Status.STUCK, Status.PAUSED_FOR_INTERVENTION})


class Count(Struct, frozen=True):
    """How often something happened on a day in a project, and what it came to."""

    day: int  # since 1970, in UTC
    project: str
    metric: str
    label: str = ""
    bucket: int = 0
    n: int = 1
    amount: float = 0.0


class Spread(Struct, frozen=True):
    """Of many durations: half of them took no longer than p50, nine in ten no longer than p90."""

    n: int = 0
    p50: float | None = None
    p90: float | None = None


def day_of(time: float) -> int:
    return int(time // DAY)


def bucket_of(seconds: float) -> int:
    return ceil(STEPS * log2(max(seconds, 1.0)))


def seconds_of(bucket: int) -> float:
    """The longest duration that is counted there."""
    return float(2.0 ** (bucket / STEPS))


def counts_of(event: StoredEvent, project: str) -> Iterator[Count]:
    """All that this event counts for."""
    for metric, label, seconds, amount in _counted(event):
        bucket = 0 if seconds is None else bucket_of(seconds)
        yield Count(day_of(event.time), project, metric, label, bucket, 1, amount)


def added(counts: Iterable[Count]) -> tuple[Count, ...]:
    """The same, with like ones as one."""
    found: dict[tuple[int, str, str, str, int], tuple[int, float]] = {}
    for it in counts:
        key = (it.day, it.project, it.metric, it.label, it.bucket)
        n, amount = found.get(key, (0, 0.0))
        found[key] = (n + it.n, amount + it.amount)
    return tuple(Count(*key, n, amount) for key, (n, amount) in found.items())


def spread_of(buckets: Mapping[int, int]) -> Spread:
    """From how many durations each bucket has."""
    total = sum(buckets.values())
    if not total:
        return Spread()
    return Spread(total, _at(buckets, 0.5 * total), _at(buckets, 0.9 * total))


def _at(buckets: Mapping[int, int], place: float) -> float:
    """How long the duration at that place took, the shortest being the first."""
    order = sorted(buckets)
    counted = accumulate(buckets[it] for it in order)
    return next(seconds_of(it) for it, seen in zip(order, counted, strict=True) if seen >= place)


_Counted = tuple[str, str, float | None, float]  # metric, label, duration, amount


def _counted(event: StoredEvent) -> Iterator[_Counted]:
    data = event.data
    took = _number(data.get("seconds"))
    if event.type in {"change.landed", "landing.unjudged"}:
        yield from _landed(data, took)
    elif event.type == "status.changed":
        yield from _moved(data, took)
    elif event.type == "GateCompleted":
        yield from _gate(data, took)
    elif event.type in {"HumanReviewCompleted", "landing.approved"} and took:
        yield "human-wait", "", took, 0.0
    elif event.type == "session.ended":
        who = f"{data.get('agent', '')}/{data.get('role', '')}"
        yield "usd", who, None, _number(data.get("usd"))
        yield "tokens", who, None, _number(data.get("tokens"))
        if data.get("crashed"):
            yield "crash", str(data.get("agent", "")), None, 0.0


# Words in what a gate says about tests that a change edits, which are counted.
MEASURED = "strength of changed tests measured"
UNMEASURED = "strength of changed tests not measured"


def _gate(data: Mapping[str, object], took: float) -> Iterator[_Counted]:
    name, result = str(data.get("gate_name")), data.get("result")
    yield f"gate.{result}", name, None, took
    if took:
        yield "gate-seconds", name, took, took
    if result == "passed" and str(data.get("why", "")).startswith("FLAKY"):
        yield "gate.flaky", name, None, 0.0
    for metric, words in (("gate.measured", MEASURED), ("gate.unmeasured", UNMEASURED)):
        if words in str(data.get("why", "")):
            yield metric, name, None, 0.0


def _landed(data: Mapping[str, object], took: float) -> Iterator[_Counted]:
    yield "landed", "", None, 0.0
    if took:
        yield "lead", "", took, 0.0
        yield "landed-usd", "", None, _number(data.get("usd"))
        yield "landed-tokens", "", None, _number(data.get("tokens"))
    if _number(data.get("iteration")) == 1:
        yield "first-pass", "", None, 0.0


def _moved(data: Mapping[str, object], took: float) -> Iterator[_Counted]:
    source, target = Status[str(data["from"])], Status[str(data["to"])]
    if took:
        yield "status", source.value, took, 0.0
    if took and source in WAITS and target is not Status.CANCELLED:
        yield "human-wait", "", took, 0.0
    if target is Status.CANCELLED:
        yield "dropped", "cancelled", None, 0.0
    if data.get("cause") == Cause.DROPPED_FROM_TRAIN.value:
        yield "dropped", "merge queue", None, 0.0


def _number(found: object) -> float:
    return float(found) if isinstance(found, (int, float)) else 0.0
