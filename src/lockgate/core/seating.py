"""Which reviewers the next reviews of a change ask for."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile

from lockgate.core.decision import Evidence
from lockgate.core.model import REVIEWS, GateKind, GateRef, Status
from lockgate.core.seats import Seat

GENERAL = "general"
SYNTHESIS = "synthesis"
PASSES = ("draft", "correctness", "clarity", "edge-cases", "excellence")


def next_reviews(gates: Iterable[GateRef], passed: Sequence[str]) -> tuple[GateRef, ...]:
    """Neighbours are asked for together, but a serial one, and one that may not apply."""
    left = (gate for gate in gates if gate.name not in passed)
    reviews = tuple(takewhile(lambda gate: gate.kind in REVIEWS, left))
    if not reviews or reviews[0].serial:
        return reviews[:1]
    free = takewhile(lambda gate: not gate.serial and not gate.conditional, reviews[1:])
    return (reviews[0], *free)


def reviews_at_once(gates: Sequence[GateRef]) -> tuple[GateRef, ...]:
    """Those that an evaluation begins with; none where something has to be run or looked at."""
    first = next_reviews(gates, ())
    return () if any(gate.conditional for gate in first) else first


def opening(gates: Iterable[GateRef], generation: int) -> tuple[Seat, ...]:
    """The seats of these reviews as they begin."""
    return tuple(
        Seat(gate=gate.name, dimension=dimension, generation=generation, agent=gate.agent)
        for gate in gates
        for dimension in _first(gate)
    )


def asked_again(seats: Sequence[Seat], names: Iterable[str], generation: int) -> tuple[Seat, ...]:
    """The seats with another session for those that are named."""
    wanted = frozenset(names)
    return tuple(
        replace(seat, generation=generation, lost=False) if seat.name in wanted else seat
        for seat in seats
    )


def filled_in(seats: Sequence[Seat], name: str, said: str) -> tuple[Seat, ...]:
    return tuple(
        replace(seat, said=said, lost=False) if seat.name == name else seat for seat in seats
    )


def seat_of(seen: Evidence) -> Seat | None:
    """Where the session sits that is heard; None for one that was replaced."""
    session = seen.session
    if session is None or seen.task.status is not Status.AGENT_REVIEW:
        return None
    for seat in seen.task.seats:
        if seat.name == session.seat and seat.generation == session.generation:
            return None if seat.gate in seen.task.passed else seat
    return None


def open_seats(seats: Iterable[Seat]) -> tuple[Seat, ...]:
    return tuple(seat for seat in seats if not seat.said)


def _first(gate: GateRef) -> tuple[str, ...]:
    if gate.kind is GateKind.MULTIPASS_REVIEW:
        return PASSES[:1]
    return gate.reviewers or (GENERAL,)
