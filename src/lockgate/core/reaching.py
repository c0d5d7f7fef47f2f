"""Reviewers are wanted, once: those of the next reviews, and whoever has to come again."""

from collections.abc import Iterable
from dataclasses import replace

from lockgate.core.arrival import stay
from lockgate.core.decision import Decision, Evidence
from lockgate.core.effects import reviewers
from lockgate.core.needs import gates_of
from lockgate.core.seating import asked_again, next_reviews, opening
from lockgate.core.seats import Seat


def reviews_reached(seen: Evidence) -> Decision:
    """The gates before the next reviews passed: their reviewers are wanted, once.

    A round begins with an evaluation's first review; a second gate of it belongs to the same.
    """
    gates = next_reviews(gates_of(seen), seen.task.passed)
    asked = {seat.gate for seat in seen.task.seats}
    if any(gate.name in asked for gate in gates):
        return stay(seen, seen.task)
    seats = opening(gates, seen.task.rev + 1)
    task = replace(
        seen.task,
        review_round=seen.task.review_round + (0 if asked else 1),
        seats=(*seen.task.seats, *seats),
    )
    return stay(seen, task, *reviewers(seats))


def wanted(seen: Evidence, seats: Iterable[Seat]) -> Decision:
    """More seats, and somebody in each of them."""
    more = tuple(seats)
    task = replace(seen.task, seats=(*seen.task.seats, *more))
    return stay(seen, task, *reviewers(more))


def asked_for_again(seen: Evidence, names: Iterable[str]) -> Decision:
    """Other sessions for these seats; whoever has spoken is not asked twice."""
    generation = seen.task.rev + 1
    seats = asked_again(seen.task.seats, names, generation)
    wanted = tuple(seat for seat in seats if seat.generation == generation)
    return stay(seen, replace(seen.task, seats=seats), *reviewers(wanted))
