"""What a move changes besides the status: counters, phase, the events that say so, the effects."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.lifecycle.decision import (
    Decision,
    Effect,
    Evidence,
    MirrorTask,
    SpawnAgent,
    rules_for,
    wants_fresh,
    worker,
)
from lockgate.core.lifecycle.map import ARROWS, gates_of, last_round
from lockgate.core.model.escalation import EscalationGuard
from lockgate.core.model.events import (
    AgentCrashed,
    AttemptFailed,
    Escalation,
    Event,
    GateEvaluationStarted,
    GateFailedRetrying,
    QuestionAsked,
    StatusChanged,
)
from lockgate.core.model.findings import GateFeedback
from lockgate.core.model.retry import RetryController
from lockgate.core.model.task import (
    REVIEWS,
    Actor,
    Budget,
    Cause,
    Evaluating,
    Failed,
    GateKind,
    GateRef,
    GatesPassed,
    IterationOutcome,
    IterationRecord,
    NeedsFixes,
    Role,
    Seat,
    SessionId,
    Size,
    Status,
    Stuck,
    Task,
    TaskId,
    TaskPhase,
    Working,
)

# Which reviewers the next reviews of a change ask for.


GENERAL = "general"
SYNTHESIS = "synthesis"
PASS_NAMES = ("draft", "correctness", "clarity", "edge-cases", "excellence")


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
        return PASS_NAMES[:1]
    return gate.reviewers or (GENERAL,)


S = Status


class Arrival(Struct, frozen=True):
    """Where a task goes, and why."""

    target: Status
    reason: str = ""
    cause: Cause | None = None
    feedback: GateFeedback | None = None


def session_id(task: TaskId, generation: int, seat: str = "") -> SessionId:
    return SessionId(f"{task}.{generation}.{seat}" if seat else f"{task}.{generation}")


def arrive(seen: Evidence, task: Task, arrival: Arrival) -> Decision:
    """The task at its new status. `task` is seen.task with what the turn has counted so far."""
    moved = replace(
        _counted(seen, task, arrival.target),
        status=arrival.target,
        rev=seen.task.rev + 1,
        since=seen.task.rev + 1,
        entered=seen.now,
        updated=seen.now,
        crash_count=0,
        dead=False,
        escalated="",
        troubled="",
        cause=arrival.cause,
    )
    # An agent that moves its own task goes on; nobody else is started for it.
    makers = [
        make
        for make in ARROWS[task.status, arrival.target].sets_off
        if make is not worker or seen.actor is not Actor.WORKER
    ]
    if worker in makers:
        moved = replace(moved, generation=moved.rev)
    moved = replace(_asking(seen, moved, arrival), phase=_phase(seen, moved, arrival))
    changed = StatusChanged(
        source=task.status,
        target=arrival.target,
        actor=seen.actor,
        cause=arrival.cause,
        reason=arrival.reason,
        seconds=waited(task, seen.now),
    )
    return Decision(
        moved,
        events=(changed, *_opening(moved), *_question(moved)),
        effects=(MirrorTask(), *(it for make in makers for it in make(moved))),
    )


def waited(task: Task, now: float) -> float:
    """Seconds since it came to its status; 0 where that was before the time was kept."""
    return max(0.0, now - task.entered) if task.entered else 0.0


def stay(seen: Evidence, task: Task, *effects: Effect) -> Decision:
    phase = _at_its_gate(replace(seen, task=task))
    stayed = replace(task, rev=seen.task.rev + 1, updated=seen.now, phase=phase)
    return Decision(stayed, effects=(MirrorTask(), *effects))


def also(decision: Decision, *events: Event) -> Decision:
    return replace(decision, events=(*decision.events, *events))


def crashed(seen: Evidence, task: Task, reason: str) -> AgentCrashed:
    return AgentCrashed(
        timestamp=datetime.fromtimestamp(seen.now, UTC).isoformat(),
        status=task.status,
        crash_count=task.crash_count,
        reason=reason,
    )


def charge(
    seen: Evidence, task: Task, there: Arrival, otherwise: Callable[[Task], Decision]
) -> Decision:
    """One failed attempt more. Reaching the threshold wins over every other outcome (S4)."""
    guard = EscalationGuard()
    guard.load(task.id, task.failed_attempts, seen.rules.limits.escalation_threshold)
    guard.record_failed_attempt(task.id)
    count = guard.get_attempt_count(task.id)
    charged = replace(task, failed_attempts=count)
    failed = AttemptFailed(count, there.reason)
    if guard.should_escalate(task.id):
        return also(_pause(seen, charged, there), failed, Escalation(task.id, count))
    return also(otherwise(charged), failed)


def _pause(seen: Evidence, task: Task, there: Arrival) -> Decision:
    """Straight to the pause; from the queue by way of working, as the map has it."""
    through: tuple[Event, ...] = ()
    if task.status is S.REVIEWING:
        first = arrive(seen, task, there)
        task, through = first.task, first.events
    paused = replace(there, target=S.PAUSED_FOR_INTERVENTION, cause=Cause.ESCALATION_THRESHOLD)
    decision = arrive(seen, task, paused)
    return replace(decision, events=(*through, *decision.events))


def _counted(seen: Evidence, task: Task, target: Status) -> Task:
    """Which counters a move resets."""
    match task.status, target:
        case S.PENDING, S.WORKING | S.CLARIFICATION:
            return replace(task, pinned=rules_for(seen, seen.rules), iteration=1, history=())
        case S.STUCK, S.WORKING:
            reset = replace(task, iteration=1, review_round=0, history=(), steps_passed=())
            return _refunded(reset) if seen.actor is Actor.HUMAN else reset
        case S.REVIEWING, S.WORKING:
            reset = replace(task, iteration=1, review_round=0, history=())
            judged = replace(task.reverts, unjudged="") if task.reverts else None
            return replace(reset, to_land=False, held="", reverts=judged)
        case S.STUCK, S.AGENT_REVIEW:
            return _reviewed(seen, replace(task, iteration=1, review_round=0, history=()))
        case S.WORKING, S.AGENT_REVIEW:
            return _reviewed(seen, task)
        case S.PAUSED_FOR_INTERVENTION, S.PENDING:
            reset = replace(task, failed_attempts=0, iteration=0, review_round=0, auto_start=True)
            return _refunded(replace(reset, steps_passed=()))
        case _, S.DONE:
            return replace(task, failed_attempts=0)
        case _:
            return task


def _reviewed(seen: Evidence, task: Task) -> Task:
    """A round begins when an evaluation reaches a review: at once, where that comes first."""
    seats = opening(reviews_at_once(seen.rules.gates), seen.task.rev + 1)
    judged = replace(task, candidate="", patch="", size=Size(), protected=())
    judged = replace(judged, passed=(), waiting="")
    rounds = task.review_round + (1 if seats else 0)
    judged = replace(judged, taken_over=False, taken_at=0.0, last_words="")
    return replace(judged, review_round=rounds, seats=seats)


def _refunded(task: Task) -> Task:
    """A human who sends a stuck task on gives it its whole budget again."""
    return replace(task, usd=0.0, tokens=0, seconds=0.0, taken_over=False, taken_at=0.0)


def _phase(seen: Evidence, task: Task, arrival: Arrival) -> TaskPhase | None:
    agent = session_id(task.id, task.generation)
    match task.status:
        case S.WORKING | S.CLARIFICATION:
            author = session_id(task.id, seen.task.generation)
            if arrival.feedback:
                return NeedsFixes(author, seen.task.iteration, arrival.feedback)
            return Working(agent, task.iteration)
        case S.AGENT_REVIEW:
            return Evaluating(agent, task.iteration, 0)
        case S.REVIEWING:
            return GatesPassed(agent, seen.now)
        case S.STUCK | S.PAUSED_FOR_INTERVENTION:
            return _held_up(agent, seen.task.iteration, arrival)
        case S.PENDING:
            return None
        case S.DONE | S.CANCELLED:
            return task.phase


def _at_its_gate(seen: Evidence) -> TaskPhase | None:
    """An evaluation's phase has the index of the first gate that has not passed, where one is."""
    task = seen.task
    if not isinstance(task.phase, Evaluating):
        return task.phase
    left = (n for n, gate in enumerate(gates_of(seen)) if gate.name not in task.passed)
    return replace(task.phase, gate_index=next(left, task.phase.gate_index))


def _held_up(agent: SessionId, iterations: int, arrival: Arrival) -> TaskPhase:
    if arrival.cause is Cause.FAIL_FAST:
        return Failed(arrival.reason)
    nothing_judged = GateFeedback(
        gate_name="", findings=(), summary=arrival.reason, suggested_action=""
    )
    return Stuck(agent, iterations, arrival.feedback or nothing_judged)


def _asking(seen: Evidence, task: Task, arrival: Arrival) -> Task:
    """The task with what its agent asks, which stays until the agent has the answer."""
    match seen.task.status, arrival.target:
        case _, S.CLARIFICATION:
            return replace(task, question=new_question(seen) or arrival.reason)
        case S.CLARIFICATION, S.WORKING if seen.actor is not Actor.WORKER:
            return replace(task, spent=task.spent | {seen.found.questions_digest} - {""})
        case _:
            return replace(task, question="")


def new_question(seen: Evidence) -> str:
    """What `## Questions` says, unless it was answered before."""
    return "" if seen.found.questions_digest in seen.task.spent else seen.found.questions


def _question(task: Task) -> tuple[Event, ...]:
    asks = task.status is S.CLARIFICATION and task.question
    return (QuestionAsked(task.question),) if asks else ()


def _opening(task: Task) -> tuple[Event, ...]:
    if task.status is S.AGENT_REVIEW:
        return (GateEvaluationStarted(task.id, task.iteration),)
    return ()


# What an evaluation costs a task: an iteration, a round, its budget.


def limit_reached(seen: Evidence, *, review: bool, fail_fast: bool) -> Cause | None:
    if fail_fast:
        return Cause.FAIL_FAST
    if review and last_round(seen.task, seen.rules.limits):
        return Cause.REVIEW_ROUNDS
    failed = recorded(seen.task, None, None)
    if RetryController(failed.id, seen.rules.retry, failed.history).should_retry():
        return None
    return Cause.MAX_ITERATIONS


def recorded(task: Task, feedback: GateFeedback | None, cause: Cause | None) -> Task:
    """The iteration as it ended. An agent that was resumed is the one it was before."""
    outcome = (
        IterationOutcome.FAILED_MAX_ITERATIONS if cause else IterationOutcome.FAILED_WITH_RETRY
    )
    resumed_agent = task.history and not wants_fresh(task)
    agent = task.history[-1].agent_id if resumed_agent else session_id(task.id, task.generation)
    record = IterationRecord(
        iteration=task.iteration, agent_id=agent, outcome=outcome, feedback=feedback
    )
    return replace(task, history=(*task.history, record))


def within_budget(seen: Evidence, decision: Decision) -> Decision:
    """No worker is asked for once the task has used up what it may: a human decides."""
    used_up = _used_up(decision.task, seen.rules.budget)
    asks = any(isinstance(it, SpawnAgent) and it.role is Role.WORKER for it in decision.effects)
    if not used_up or not asks:
        return decision
    after = decision.task
    task = replace(
        after,
        status=seen.task.status,
        iteration=seen.task.iteration,
        generation=seen.task.generation,
        since=seen.task.since,
        entered=seen.task.entered,
    )
    untrue = (StatusChanged, GateFailedRetrying)
    said = tuple(it for it in decision.events if not isinstance(it, untrue))
    feedback = after.phase.feedback if isinstance(after.phase, NeedsFixes) else None
    stopped = arrive(seen, task, Arrival(S.STUCK, used_up, Cause.BUDGET, feedback))
    return replace(stopped, events=(*said, *stopped.events))


def _used_up(task: Task, budget: Budget) -> str:
    """What of the budget is used up, in words; nothing where something is left of all of it."""
    if budget.usd and task.usd >= budget.usd:
        return f"its agents have cost {task.usd:.2f} USD of {budget.usd:.2f}"
    if budget.tokens and task.tokens >= budget.tokens:
        return f"its agents have used {task.tokens} tokens of {budget.tokens}"
    if budget.minutes and task.seconds >= budget.minutes * 60:
        return f"its agents have worked {task.seconds / 60:.0f} minutes of {budget.minutes}"
    return ""
