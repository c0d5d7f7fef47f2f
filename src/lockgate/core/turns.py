"""The turns: what each call from outside does to a task, as a pure decision."""

from dataclasses import dataclass, replace

from lockgate.core.arrival import Arrival, also, arrive, charge, stay
from lockgate.core.artifacts import Verdict
from lockgate.core.charging import within_budget
from lockgate.core.decision import Decision, Declined, Evidence, Refusal
from lockgate.core.effects import SpawnAgent
from lockgate.core.events import MoveForced, Resumed
from lockgate.core.hand_verdicts import verdict_given
from lockgate.core.handing_on import Work, handed_on
from lockgate.core.lifecycle import ARROWS, validate_transition
from lockgate.core.model import Actor, Role, Status, Task

S = Status


@dataclass(frozen=True, slots=True)
class Move:
    """What somebody asks for; an agent's done signal brings the work that it is about."""

    target: Status
    reason: str = ""
    directive: str = ""
    force: bool = False
    work: Work | None = None


def move(seen: Evidence, asked: Move) -> Decision | Refusal | Declined:
    """Take the arrow, or say why not. Force stands for an artifact, and is a human's alone."""
    if asked.force and seen.actor is not Actor.HUMAN:
        why = f"only a human may force a move, and this is a {seen.actor}"
        return Declined(why, "ask for it without --force")
    refusal = validate_transition(seen, asked.target, force=asked.force)
    if refusal:
        return refusal
    need = ARROWS[seen.task.status, asked.target].need
    missing = need(seen) if need else None
    if missing:
        there = Arrival(asked.target, asked.reason)
        forced = MoveForced(asked.target, missing.why, asked.reason)
        return _directed(asked, also(arrive(seen, seen.task, there), forced))
    return _directed(asked, take(seen, asked))


def resumed(seen: Evidence, directive: str) -> Decision | Refusal | Declined:
    """A human takes the task out of its pause; there is nothing to resume anywhere else."""
    if seen.task.status is not S.PAUSED_FOR_INTERVENTION:
        why = f"it is {seen.task.status}, and only a paused task is resumed"
        return Declined(why, f"lockgate task why {seen.task.id}")
    decision = move(seen, Move(S.PENDING, directive=directive))
    if not isinstance(decision, Decision):
        return decision
    return also(decision, Resumed(directive))


def attempt_failed(seen: Evidence, reason: str) -> Decision:
    """The steps escalated (S0): one failed attempt and a fresh worker, unless it was the last."""
    there = Arrival(S.WORKING, reason)
    decision = charge(
        seen, seen.task, there, lambda charged: with_a_worker(seen, charged, fresh=True)
    )
    return within_budget(seen, decision)


def take(seen: Evidence, asked: Move) -> Decision:
    """An arrow whose needs are met. A verdict ends its gate; every other is taken as asked."""
    match seen.task.status, asked.target:
        case S.AGENT_REVIEW, S.REVIEWING:
            return verdict_given(seen, Verdict.PASS)
        case S.AGENT_REVIEW, S.WORKING | S.STUCK:
            return verdict_given(seen, Verdict.FAIL)
        case S.WORKING, S.AGENT_REVIEW:
            return handed_on(seen, asked.reason, asked.work)
        case _:
            return arrive(seen, seen.task, Arrival(asked.target, asked.reason))


def with_a_worker(seen: Evidence, task: Task, *, fresh: bool = False) -> Decision:
    generation = seen.task.rev + 1
    return stay(
        seen,
        replace(task, generation=generation),
        SpawnAgent(Role.WORKER, generation, fresh=fresh),
    )


def _directed(asked: Move, decision: Decision) -> Decision:
    if not asked.directive:
        return decision
    return replace(decision, task=replace(decision.task, directive=asked.directive))
