"""The turns of reviewers: one hands in, one leaves without a verdict, and all have spoken.

No reviewer moves a task. What each of them found is kept in its seat, and once every seat of the
reviews is filled the verdict is computed from the findings.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from lockgate.core.arrival import Arrival, also, arrive, crashed, stay
from lockgate.core.artifacts import Verdict
from lockgate.core.decision import Decision, Evidence, Refusal
from lockgate.core.effects import reviewers
from lockgate.core.evaluation import SingleGateResult, proof_of
from lockgate.core.gate_events import ReviewSubmitted
from lockgate.core.judging import concluded, over
from lockgate.core.lifecycle import unheard
from lockgate.core.model import Cause, GateKind, GateRef, Status
from lockgate.core.needs import gates_of
from lockgate.core.review_submissions import Joined, Problem, Submission, submission
from lockgate.core.seating import PASSES, SYNTHESIS, asked_again, next_reviews
from lockgate.core.seats import Seat
from lockgate.core.synthesis import judged, numbered

LONGEST = 400_000  # characters that one reviewer hands in
AGAIN = "mend the document, then run again: lockgate review submit --file FILE"


def handed_in(seen: Evidence, text: str) -> Decision | Refusal:
    """A reviewer's structured word, whole or not at all."""
    seat = seat_of(seen)
    missing = unheard(seen)
    if seat is None or missing:
        why = missing.why if missing else "no review of this task asked for it"
        return _refused(seen, why, f"lockgate task show {seen.task.id}")
    if seat.said:
        return _refused(seen, "this reviewer has handed in already", "nothing more is to be done")
    if len(text) > LONGEST:
        return _refused(seen, f"it is longer than {LONGEST} characters", AGAIN)
    said = read(seat, text, seen.task.seats, _gate(seen, seat))
    if isinstance(said, Problem):
        return _refused(seen, said.why, AGAIN)
    return filled(seen, seat, text)


def verdict_given(seen: Evidence, seat: Seat, verdict: Verdict) -> Decision:
    """S2's way: a verdict and prose in `## Review`, which are this seat's own."""
    summary = (seen.found.review or "").strip()
    decision = filled(seen, seat, json.dumps({"verdict": verdict.name, "summary": summary}))
    alone = len(seen.task.seats) == 1
    return replace(decision, review=None) if alone else decision


def filled(seen: Evidence, seat: Seat, text: str) -> Decision:
    seats = _with(seen.task.seats, replace(seat, said=text, lost=False))
    decision = _settled(replace(seen, task=replace(seen.task, seats=seats)))
    return replace(decision, events=(ReviewSubmitted(seat.gate, seat.dimension), *decision.events))


def left_without_verdict(seen: Evidence, reason: str) -> Decision:
    """Its seat is empty; when nobody sits any more, that is one crash, however many left so."""
    seats, seat = seen.task.seats, seat_of(seen)
    gone = {seat.name} if seat else {it.name for it in open_seats(seats)}
    left = tuple(replace(it, lost=True) if it.name in gone else it for it in seats)
    return _settled(replace(seen, task=replace(seen.task, seats=left)), reason)


def asked_for_again(seen: Evidence, names: Iterable[str]) -> Decision:
    """Other sessions for these seats; whoever has spoken is not asked twice."""
    generation = seen.task.rev + 1
    seats = asked_again(seen.task.seats, names, generation)
    wanted = tuple(seat for seat in seats if seat.generation == generation)
    return stay(seen, replace(seen.task, seats=seats), *reviewers(wanted))


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


def read(
    seat: Seat, text: str, seats: Sequence[Seat], gate: GateRef | None
) -> Submission | Joined | Problem:
    if seat.dimension != SYNTHESIS:
        return submission(text)
    shown = numbered(said_by(seats, seat.gate), frozenset(gate.advisory if gate else ()))
    return submission(text, synthesis=True, shown=len(shown))


def said_by(seats: Iterable[Seat], gate: str) -> tuple[tuple[str, Submission], ...]:
    """What the reviewers of a gate have handed in, by their dimensions."""
    mine = (it for it in seats if it.gate == gate and it.said and it.dimension != SYNTHESIS)
    said = ((it.dimension, submission(it.said)) for it in mine)
    return tuple((dimension, it) for dimension, it in said if isinstance(it, Submission))


def _settled(seen: Evidence, reason: str = "") -> Decision:
    """Wait for those who still sit; then those who are missing, those who come next, the end."""
    gates = next_reviews(gates_of(seen), seen.task.passed)
    mine = [it for it in seen.task.seats if it.gate in {gate.name for gate in gates}]
    if any(not seat.said and not seat.lost for seat in mine):
        return stay(seen, seen.task)
    missing = [it.name for it in mine if it.lost and not _dispensable(it, gates)]
    if missing:
        return _crashed(seen, missing, reason)
    more = tuple(seat for gate in gates for seat in _following(gate, seen))
    if more:
        task = replace(seen.task, seats=(*seen.task.seats, *more))
        return stay(seen, task, *reviewers(more))
    results = tuple(_result(gate, seen) for gate in gates)
    return concluded(seen, results, review=True)


def _dispensable(seat: Seat, gates: Sequence[GateRef]) -> bool:
    """An advisory reviewer's word never blocks, so its silence does not; nor a synthesis's."""
    advisory = any(seat.dimension in it.advisory for it in gates if it.name == seat.gate)
    return advisory or seat.dimension == SYNTHESIS


def _crashed(seen: Evidence, missing: Sequence[str], reason: str) -> Decision:
    task = replace(seen.task, crash_count=seen.task.crash_count + 1)
    event = crashed(seen, task, reason)
    if task.crash_count >= seen.rules.limits.crashes:
        stuck = Arrival(Status.STUCK, reason, Cause.CRASH_THRESHOLD)
        return also(arrive(seen, task, stuck), event)
    counted = replace(seen, task=replace(task, dead=True))
    return also(asked_for_again(counted, missing), event)


def _following(gate: GateRef, seen: Evidence) -> tuple[Seat, ...]:
    """The next pass of a review that has not converged; who joins what several have found."""
    said, generation = said_by(seen.task.seats, gate.name), seen.task.rev + 1
    if gate.kind is GateKind.MULTIPASS_REVIEW:
        over_now = len(said) == len(PASSES) or said[-1][1].converged
        names = () if over_now else (PASSES[len(said)],)
    else:
        joins = len(gate.reviewers) > 1 and bool(numbered(said))
        there = any(it.dimension == SYNTHESIS for it in seen.task.seats if it.gate == gate.name)
        names = (SYNTHESIS,) if joins and not there else ()
    return tuple(
        Seat(gate=gate.name, dimension=name, generation=generation, agent=gate.agent)
        for name in names
    )


def _result(gate: GateRef, seen: Evidence) -> SingleGateResult:
    said = said_by(seen.task.seats, gate.name)
    who = ", ".join(dimension for dimension, _ in said)
    proof = proof_of(seen.task, f"reviewed by {gate.agent or seen.task.agent}: {who}")
    words = _words(gate, seen.task.seats)
    return judged(gate.name, said, frozenset(gate.advisory), words, proof)


def _words(gate: GateRef, seats: Sequence[Seat]) -> Joined | None:
    """What the synthesis said; None where it was not asked for, or left without a word."""
    for seat in seats:
        if seat.gate == gate.name and seat.dimension == SYNTHESIS and seat.said:
            said = read(seat, seat.said, seats, gate)
            return said if isinstance(said, Joined) else None
    return None


def _gate(seen: Evidence, seat: Seat) -> GateRef | None:
    return next((it for it in gates_of(seen) if it.name == seat.gate), None)


def _with(seats: Sequence[Seat], changed: Seat) -> tuple[Seat, ...]:
    return tuple(changed if it.name == changed.name else it for it in seats)


def _refused(seen: Evidence, why: str, fix: str) -> Refusal:
    return replace(over(seen, why), fix=fix)
