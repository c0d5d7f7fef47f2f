"""The turns of reviewers: one hands in, one leaves without a verdict, and all have spoken.

No reviewer moves a task. What each of them found is kept in its seat, and once every seat of the
reviews is filled the verdict is computed from the findings.
"""

from collections.abc import Sequence
from dataclasses import replace

from lockgate.core.arrival import Arrival, also, arrive, crashed, stay
from lockgate.core.decision import Decision, Declined, Evidence
from lockgate.core.gate_events import ReviewSubmitted
from lockgate.core.judging import concluded
from lockgate.core.lifecycle import unheard
from lockgate.core.model import Cause, Status
from lockgate.core.needs import gates_of
from lockgate.core.reaching import asked_for_again, wanted
from lockgate.core.review_results import following, missing, problem, result
from lockgate.core.seating import filled_in, next_reviews, open_seats, seat_of

LONGEST = 400_000  # characters that one reviewer hands in
AGAIN = "mend the document, then run again: lockgate review submit --file FILE"


def handed_in(seen: Evidence, text: str) -> Decision | Declined:
    """A reviewer's structured word, whole or not at all."""
    seat = seat_of(seen)
    missing = unheard(seen)
    if seat is None or missing:
        why = missing.why if missing else "no review of this task asked for it"
        return Declined(why, f"lockgate task show {seen.task.id}")
    if seat.said:
        return Declined("this reviewer has handed in already", "nothing more is to be done")
    if len(text) > LONGEST:
        return Declined(f"it is longer than {LONGEST} characters", AGAIN)
    why = problem(seat, text, seen.task.seats, gates_of(seen))
    return Declined(why, AGAIN) if why else filled(seen, seat.name, text)


def filled(seen: Evidence, name: str, text: str) -> Decision:
    """The seat of that name has spoken."""
    seats = filled_in(seen.task.seats, name, text)
    decision = _settled(replace(seen, task=replace(seen.task, seats=seats)))
    said = (ReviewSubmitted(it.gate, it.dimension) for it in seats if it.name == name)
    return replace(decision, events=(*said, *decision.events))


def left_without_verdict(seen: Evidence, reason: str) -> Decision:
    """Its seat is empty; when nobody sits any more, that is one crash, however many left so."""
    seats, seat = seen.task.seats, seat_of(seen)
    gone = {seat.name} if seat else {it.name for it in open_seats(seats)}
    left = tuple(replace(it, lost=True) if it.name in gone else it for it in seats)
    return _settled(replace(seen, task=replace(seen.task, seats=left)), reason)


def has_spoken(seen: Evidence) -> bool:
    """Whether the session that sits, or sat, there has nothing more to say."""
    seat = seat_of(seen)
    return seat is None or bool(seat.said)


def wanted_again(seen: Evidence) -> Decision | None:
    """Another session for the seat of the one that is gone, else for all who have not spoken."""
    seat = seat_of(seen)
    names = [seat.name] if seat else [it.name for it in open_seats(seen.task.seats)]
    return asked_for_again(seen, names) if names else None


def _settled(seen: Evidence, reason: str = "") -> Decision:
    """Wait for those who still sit; then those who are missing, those who come next, the end."""
    gates = next_reviews(gates_of(seen), seen.task.passed)
    mine = [it for it in seen.task.seats if it.gate in {gate.name for gate in gates}]
    if any(not seat.said and not seat.lost for seat in mine):
        return stay(seen, seen.task)
    absent = missing(mine, gates)
    if absent:
        return _crashed(seen, absent, reason)
    more = tuple(seat for gate in gates for seat in following(gate, seen.task))
    if more:
        return wanted(seen, more)
    return concluded(seen, [result(gate, seen.task) for gate in gates], review=True)


def _crashed(seen: Evidence, absent: Sequence[str], reason: str) -> Decision:
    task = replace(seen.task, crash_count=seen.task.crash_count + 1)
    event = crashed(seen, task, reason)
    if task.crash_count >= seen.rules.limits.crashes:
        stuck = Arrival(Status.STUCK, reason, Cause.CRASH_THRESHOLD)
        return also(arrive(seen, task, stuck), event)
    counted = replace(seen, task=replace(task, dead=True))
    return also(asked_for_again(counted, absent), event)
