"""What each reviewer is told, by the seat that it has."""

from collections.abc import Mapping

from lockgate.core.effects import SpawnAgent
from lockgate.core.gates import Dimension
from lockgate.core.limits import Limits
from lockgate.core.model import GateKind, GateRef, Task
from lockgate.core.prompts import DIFF, left_behind, opening, review_prompt
from lockgate.core.review_prompts import dimension_prompt, pass_prompt, synthesis_prompt
from lockgate.core.review_results import said_by
from lockgate.core.seating import GENERAL, PASSES, SYNTHESIS
from lockgate.core.seats import Seat
from lockgate.core.synthesis import numbered


def first_words(
    task: Task,
    spawn: SpawnAgent,
    limits: Limits,
    checkpoint: Mapping[str, object],
    *,
    resumed: bool,
) -> str:
    """What a session is told as it begins; `checkpoint` is the last one that a worker left."""
    if spawn.seat:
        return seat_prompt(task, spawn.seat, limits)
    return opening(task, spawn.role, limits, left_behind(checkpoint), resumed=resumed)


def seat_prompt(task: Task, name: str, limits: Limits) -> str:
    seat = _seat(task, name)
    if seat is None or seat.dimension == GENERAL:
        return review_prompt(task, limits)
    gate, goal = _gate(task, seat), task.goal
    said = said_by(task.seats, seat.gate)
    if seat.dimension == SYNTHESIS:
        return synthesis_prompt(goal, numbered(said, frozenset(gate.advisory if gate else ())))
    if gate and gate.kind is GateKind.MULTIPASS_REVIEW:
        earlier = [finding for _, finding in numbered(said)]
        number = PASSES.index(seat.dimension) + 1
        return pass_prompt(goal, task.branch, number, earlier, DIFF)
    return dimension_prompt(goal, task.branch, Dimension(seat.dimension), DIFF)


def sees_no_story(task: Task, name: str) -> bool:
    """Only S2's single reviewer reads what the author says of its work."""
    seat = _seat(task, name)
    return seat is not None and seat.dimension != GENERAL


def _seat(task: Task, name: str) -> Seat | None:
    return next((seat for seat in task.seats if seat.name == name), None)


def _gate(task: Task, seat: Seat) -> GateRef | None:
    gates = task.pinned.gates if task.pinned else ()
    return next((gate for gate in gates if gate.name == seat.gate), None)
