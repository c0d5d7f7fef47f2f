"""The turns: what each call from outside does to a task, as a pure decision."""

from dataclasses import dataclass, replace

from lockgate.core.arrival import Arrival, also, arrive, charge, stay
from lockgate.core.artifacts import Verdict
from lockgate.core.charging import within_budget
from lockgate.core.decision import Decision, Evidence, Refusal
from lockgate.core.effects import SpawnAgent
from lockgate.core.events import MoveForced, Resumed
from lockgate.core.gate_events import ChangeTaken, TaskCompletionSignaled
from lockgate.core.judging import over, review_failed, review_passed, spend
from lockgate.core.lifecycle import ARROWS, validate_transition
from lockgate.core.model import Actor, Checkpoint, Role, Status, Task
from lockgate.core.paths import matching
from lockgate.core.review_turns import seat_of, verdict_given

S = Status


@dataclass(frozen=True, slots=True)
class Move:
    """What somebody asks for; an agent's done signal brings the work that it is about."""

    target: Status
    reason: str = ""
    directive: str = ""
    force: bool = False
    checkpoint: Checkpoint | None = None
    candidate: str = ""
    patch: str = ""


def move(seen: Evidence, asked: Move) -> Decision | Refusal:
    """Take the arrow, or say why not. Force stands for an artifact, and is a human's alone."""
    if asked.force and seen.actor is not Actor.HUMAN:
        why = f"only a human may force a move, and this is a {seen.actor}"
        return Refusal(source=seen.task.status, target=asked.target, why=why)
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


def resumed(seen: Evidence, directive: str) -> Decision | Refusal:
    """A human takes the task out of its pause; there is nothing to resume anywhere else."""
    if seen.task.status is not S.PAUSED_FOR_INTERVENTION:
        why = "only a paused task is resumed"
        fix = f"lockgate task why {seen.task.id}"
        return Refusal(source=seen.task.status, target=S.PENDING, why=why, fix=fix)
    decision = move(seen, Move(S.PENDING, directive=directive))
    if isinstance(decision, Refusal):
        return decision
    return also(decision, Resumed(directive))


def attempt_failed(seen: Evidence, reason: str) -> Decision:
    """The steps escalated (S0): one failed attempt and a fresh worker, unless it was the last."""
    there = Arrival(S.WORKING, reason)
    decision = charge(
        seen, seen.task, there, lambda charged: with_a_worker(seen, charged, fresh=True)
    )
    return within_budget(seen, decision)


def change_taken(
    seen: Evidence, commit: str, files: tuple[str, ...], patch: str = ""
) -> Decision | Refusal:
    """The work as one commit, before anything judges it; no pass outlives another commit."""
    task = seen.task
    if task.status is not S.AGENT_REVIEW:
        return over(seen)
    same = commit == task.candidate
    taken = replace(
        task,
        candidate=commit,
        patch=patch,
        protected=matching(files, seen.rules.protect),
        passed=task.passed if same else (),
        waiting=task.waiting if same else "",
        seats=task.seats if same or not task.candidate else (),
    )
    return also(stay(seen, taken), ChangeTaken(commit, files))


def take(seen: Evidence, asked: Move) -> Decision:
    """An arrow whose needs are met. A verdict ends its gate; every other is taken as asked."""
    match seen.task.status, asked.target:
        case S.AGENT_REVIEW, S.REVIEWING:
            seat = seat_of(seen)
            return verdict_given(seen, seat, Verdict.PASS) if seat else review_passed(seen)
        case S.AGENT_REVIEW, S.WORKING | S.STUCK:
            seat = seat_of(seen)
            return verdict_given(seen, seat, Verdict.FAIL) if seat else review_failed(seen)
        case S.WORKING, S.AGENT_REVIEW:
            return _handed_off(seen, asked)
        case _:
            return arrive(seen, seen.task, Arrival(asked.target, asked.reason))


def with_a_worker(seen: Evidence, task: Task, *, fresh: bool = False) -> Decision:
    generation = seen.task.rev + 1
    return stay(
        seen,
        replace(task, generation=generation),
        SpawnAgent(Role.WORKER, generation, fresh=fresh),
    )


def _handed_off(seen: Evidence, asked: Move) -> Decision:
    decision = arrive(seen, spend(seen), Arrival(asked.target, asked.reason))
    if asked.checkpoint is None:
        return decision
    files = matching(asked.checkpoint.files_modified, seen.rules.protect)
    task = replace(decision.task, candidate=asked.candidate, patch=asked.patch, protected=files)
    decision = replace(decision, task=task)
    return also(decision, TaskCompletionSignaled(seen.task.id, asked.checkpoint))


def _directed(asked: Move, decision: Decision) -> Decision:
    if not asked.directive:
        return decision
    return replace(decision, task=replace(decision.task, directive=asked.directive))
