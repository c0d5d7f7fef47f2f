"""What the reviewers of a gate have said, who is still missing, and what it comes to."""

from collections.abc import Iterable, Sequence

from lockgate.core.evaluation import SingleGateResult, proof_of
from lockgate.core.model import GateKind, GateRef, Task
from lockgate.core.review_submissions import Joined, Problem, Submission, submission
from lockgate.core.seating import PASSES, SYNTHESIS
from lockgate.core.seats import Seat
from lockgate.core.synthesis import judged, numbered


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
        over_now = len(said) == len(PASSES) or said[-1][1].converged
        names = () if over_now else (PASSES[len(said)],)
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
    proof = proof_of(task, f"reviewed by {gate.agent or task.agent}: {who}")
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
