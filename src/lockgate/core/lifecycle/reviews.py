"""The turns of reviewers: one hands in, one leaves without a verdict, and all have spoken.

No reviewer moves a task. What each of them found is kept in its seat, and once every seat of the
reviews is filled the verdict is computed from the findings.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from lockgate.core.lifecycle.decision import Decision, Declined, Evidence
from lockgate.core.lifecycle.evaluation import asked_for_again, concluded, wanted
from lockgate.core.lifecycle.map import gates_of, unheard
from lockgate.core.lifecycle.transition import (
    PASS_NAMES,
    SYNTHESIS,
    Arrival,
    also,
    arrive,
    crashed,
    filled_in,
    next_reviews,
    open_seats,
    seat_of,
    stay,
)
from lockgate.core.model.events import ReviewSubmitted
from lockgate.core.model.results import SingleGateResult, proof_of
from lockgate.core.model.task import Cause, GateKind, GateRef, Seat, Status, Task
from lockgate.core.review.submission import (
    Joined,
    Problem,
    Submission,
    judged,
    numbered,
    submission,
)

# What the reviewers of a gate have said, who is still missing, and what it comes to.


def problem(seat: Seat, text: str, seats: Sequence[Seat], gates: Iterable[GateRef]) -> str:
    """Why this cannot be what the seat hands in; nothing where it can."""
    said = _read(seat, text, seats, _advisory(gates, seat.gate))
    return said.why if isinstance(said, Problem) else ""


def missing(seats: Iterable[Seat], gates: Sequence[GateRef]) -> list[str]:
    """Those whose word the gates need and who have left without one.

    An advisory reviewer's word never blocks, so its silence does not; nor a synthesis's.
    """
    return [
        it.name
        for it in seats
        if it.lost and it.dimension != SYNTHESIS and it.dimension not in _advisory(gates, it.gate)
    ]


def following(gate: GateRef, task: Task) -> tuple[Seat, ...]:
    """The next pass of a review that has not converged; who joins what several have found."""
    said, generation = said_by(task.seats, gate.name), task.rev + 1
    if gate.kind is GateKind.MULTIPASS_REVIEW:
        over_now = len(said) == len(PASS_NAMES) or said[-1][1].converged
        names = () if over_now else (PASS_NAMES[len(said)],)
    else:
        joins = len(gate.reviewers) > 1 and bool(numbered(said))
        there = any(it.dimension == SYNTHESIS for it in task.seats if it.gate == gate.name)
        names = (SYNTHESIS,) if joins and not there else ()
    return tuple(
        Seat(gate=gate.name, dimension=name, generation=generation, agent=gate.agent)
        for name in names
    )


def result(gate: GateRef, task: Task) -> SingleGateResult:
    """Computed from what was found; nobody's word decides it."""
    said = said_by(task.seats, gate.name)
    who = ", ".join(dimension for dimension, _ in said)
    proof = proof_of(task.candidate, task.pinned, f"reviewed by {gate.agent or task.agent}: {who}")
    return judged(gate.name, said, frozenset(gate.advisory), _words(gate, task.seats), proof)


def said_by(seats: Iterable[Seat], gate: str) -> tuple[tuple[str, Submission], ...]:
    """What the reviewers of a gate have handed in, by their dimensions."""
    mine = (it for it in seats if it.gate == gate and it.said and it.dimension != SYNTHESIS)
    said = ((it.dimension, submission(it.said)) for it in mine)
    return tuple((dimension, it) for dimension, it in said if isinstance(it, Submission))


def _words(gate: GateRef, seats: Sequence[Seat]) -> Joined | None:
    """What the synthesis said; None where it was not asked for, or left without a word."""
    for seat in seats:
        if seat.gate == gate.name and seat.dimension == SYNTHESIS and seat.said:
            said = _read(seat, seat.said, seats, frozenset(gate.advisory))
            return said if isinstance(said, Joined) else None
    return None


def _read(
    seat: Seat, text: str, seats: Sequence[Seat], advisory: frozenset[str]
) -> Submission | Joined | Problem:
    if seat.dimension != SYNTHESIS:
        return submission(text)
    shown = numbered(said_by(seats, seat.gate), advisory)
    return submission(text, synthesis=True, shown=len(shown))


def _advisory(gates: Iterable[GateRef], name: str) -> frozenset[str]:
    return frozenset(it for gate in gates if gate.name == name for it in gate.advisory)


LONGEST = 400_000  # characters that one reviewer hands in
AGAIN = "fix the document, then run again: lockgate review submit --file FILE"


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
