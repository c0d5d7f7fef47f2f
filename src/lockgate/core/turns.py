"""The turns: what each call from outside does to a task, as a pure decision."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from lockgate.core.arrival import Arrival, also, arrive, charge, session_id, stay
from lockgate.core.decision import Decision, Evidence, Refusal
from lockgate.core.effects import SpawnAgent, wants_fresh
from lockgate.core.events import (
    AgentCrashed,
    AllGatesPassed,
    AutoAdvanced,
    Event,
    GateFailedMaxIterations,
    GateFailedRetrying,
    MoveForced,
    Resumed,
    SessionEnded,
    SessionStarted,
    TaskGatesPassed,
)
from lockgate.core.findings import Finding, GateFeedback, Priority
from lockgate.core.iterations import RetryController
from lockgate.core.lifecycle import ARROWS, OWNERS, RULES, Rule, unheard, validate_transition
from lockgate.core.model import (
    Actor,
    Cause,
    IterationOutcome,
    IterationRecord,
    Role,
    Session,
    Status,
    Task,
    Working,
)
from lockgate.core.needs import last_round

S = Status


@dataclass(frozen=True, slots=True)
class Move:
    """What somebody asks for."""

    target: Status
    reason: str = ""
    directive: str = ""
    force: bool = False


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
    return _directed(asked, _taken(seen, asked))


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


def session_started(
    seen: Evidence, spawn: SpawnAgent, token_hash: str, directory: str | None
) -> Decision | Refusal:
    """The session that was asked for begins; a worker's takes feedback and directive with it."""
    task, worker = seen.task, spawn.role is Role.WORKER
    if worker and spawn.generation != task.generation:
        why = "a newer worker has been asked for since"
        return Refusal(source=task.status, target=task.status, why=why)
    session = Session(
        id=session_id(task.id, spawn.generation),
        task=task.id,
        role=spawn.role,
        round=task.review_round,
        generation=spawn.generation,
        token_hash=token_hash,
        started=seen.now,
        directory=directory,
    )
    if worker and task.status is S.WORKING:
        task = replace(task, phase=Working(session.id, task.iteration))
    if worker:
        task = replace(task, directive="", dead=False)
    started = SessionStarted(
        session=session.id,
        role=session.role,
        round=session.round,
        generation=session.generation,
    )
    return replace(also(stay(seen, task), started), session=session)


def session_ended(seen: Evidence) -> Decision:
    """Take the arrow whose evidence is there; where a status has such arrows and none is met,
    the agent crashed.
    """
    decision = _after_its_end(seen)
    if seen.session is None:
        return decision
    ended = SessionEnded(seen.session.id, seen.session.role)
    closed = replace(seen.session, ended=seen.now)
    return replace(also(decision, ended), session=closed)


def evaluation_passed(seen: Evidence) -> Decision:
    """Every gate passed; that result is the evidence."""
    return also(
        arrive(seen, _spend(seen), Arrival(S.REVIEWING)),
        AllGatesPassed(seen.task.id, seen.task.iteration),
        TaskGatesPassed(seen.task.id, seen.task.branch),
    )


def evaluation_failed(
    seen: Evidence, feedback: GateFeedback, *, review: bool, fail_fast: bool = False
) -> Decision:
    """Back to work, or stuck where a limit is reached; one failed attempt either way."""
    cause = _limit_reached(seen, review=review, fail_fast=fail_fast)
    task = _recorded(_spend(seen), feedback, cause)
    if cause:
        there = Arrival(S.STUCK, feedback.summary, cause, feedback)
        said: Event = GateFailedMaxIterations(task.id, feedback, task.iteration)
    else:
        there = Arrival(S.WORKING, feedback.summary, None, feedback)
        said = GateFailedRetrying(
            task_id=task.id,
            gate_name=feedback.gate_name,
            feedback=feedback,
            iteration=task.iteration,
        )
        task = replace(task, iteration=task.iteration + 1)
    return charge(seen, task, there, lambda charged: also(arrive(seen, charged, there), said))


def review_reached(seen: Evidence) -> Decision:
    """The gates before the first review passed: a round begins, and its reviewer is wanted."""
    task = replace(seen.task, review_round=seen.task.review_round + 1)
    return stay(seen, task, SpawnAgent(Role.REVIEWER, seen.task.rev + 1))


def gate_broken(seen: Evidence, why: str) -> Decision:
    """A gate could not judge: a human is asked, and nobody is charged."""
    return arrive(seen, seen.task, Arrival(S.STUCK, why, Cause.GATE_BROKEN))


def budget_reached(seen: Evidence, why: str) -> Decision:
    return arrive(seen, seen.task, Arrival(S.STUCK, why, Cause.BUDGET))


def dropped_from_train(seen: Evidence, feedback: GateFeedback) -> Decision:
    """The queue sends the change back: one failed attempt, iterations and rounds start anew."""
    there = Arrival(S.WORKING, feedback.summary, Cause.DROPPED_FROM_TRAIN, feedback)
    return charge(seen, seen.task, there, lambda charged: arrive(seen, charged, there))


def attempt_failed(seen: Evidence, reason: str) -> Decision:
    """The steps escalated (S0): one failed attempt and a fresh worker, unless it was the last."""
    there = Arrival(S.WORKING, reason)
    return charge(seen, seen.task, there, lambda charged: _with_a_worker(seen, charged, fresh=True))


def _taken(seen: Evidence, asked: Move) -> Decision:
    """A verdict ends the evaluation; every other arrow is taken as asked."""
    match seen.task.status, asked.target:
        case S.AGENT_REVIEW, S.REVIEWING:
            return evaluation_passed(seen)
        case S.AGENT_REVIEW, S.WORKING | S.STUCK:
            return evaluation_failed(seen, _as_feedback(seen.found.review or ""), review=True)
        case S.WORKING, S.AGENT_REVIEW:
            return arrive(seen, _spend(seen), Arrival(asked.target, asked.reason))
        case _:
            return arrive(seen, seen.task, Arrival(asked.target, asked.reason))


def _after_its_end(seen: Evidence) -> Decision:
    status, owner = seen.task.status, OWNERS.get(seen.task.status)
    expected = owner or Role.WORKER
    if unheard(seen) or (seen.session and seen.session.role is not expected):
        return stay(seen, seen.task)
    if owner is None:
        waiting = status in {S.CLARIFICATION, S.REVIEWING, S.STUCK}
        return stay(seen, replace(seen.task, dead=waiting))
    missing: list[str] = []
    for rule in RULES:
        if rule.source is status and rule.need:
            lacks = rule.need(seen)
            if lacks is None:
                return _advanced(seen, rule)
            missing.append(lacks.why)
    return _crash(seen, f"process exited without its artifact: {missing[0]}")


def _advanced(seen: Evidence, rule: Rule) -> Decision:
    if rule.proof and rule.proof(seen):
        return stay(seen, seen.task)  # the verdict is given, the other gates still judge
    reason = "the agent exited and its artifact is there"
    decision = _taken(seen, Move(rule.target, reason))
    return also(decision, AutoAdvanced(rule.source, decision.task.status, reason))


def _crash(seen: Evidence, reason: str) -> Decision:
    """The second crash in one status is a human's; a worker's crash is a failed attempt too."""
    task = replace(seen.task, crash_count=seen.task.crash_count + 1)
    crashed = AgentCrashed(
        timestamp=datetime.fromtimestamp(seen.now, UTC).isoformat(),
        status=task.status,
        crash_count=task.crash_count,
        reason=reason,
    )
    stuck = Arrival(S.STUCK, reason, Cause.CRASH_THRESHOLD)

    def stays_or_sticks(counted: Task) -> Decision:
        if counted.crash_count >= seen.rules.limits.crashes:
            return arrive(seen, counted, stuck)
        return _left_dead(seen, replace(counted, dead=True))

    if task.status is S.WORKING:
        return also(charge(seen, task, stuck, stays_or_sticks), crashed)
    return also(stays_or_sticks(task), crashed)


def _left_dead(seen: Evidence, task: Task) -> Decision:
    """A reviewer is always asked for again, a worker where nobody sat at its session."""
    if task.status is S.AGENT_REVIEW:
        return stay(seen, task, SpawnAgent(Role.REVIEWER, seen.task.rev + 1))
    return _with_a_worker(seen, task) if seen.rules.respawn else stay(seen, task)


def _with_a_worker(seen: Evidence, task: Task, *, fresh: bool = False) -> Decision:
    generation = seen.task.rev + 1
    return stay(
        seen,
        replace(task, generation=generation),
        SpawnAgent(Role.WORKER, generation, fresh=fresh),
    )


def _limit_reached(seen: Evidence, *, review: bool, fail_fast: bool) -> Cause | None:
    if fail_fast:
        return Cause.FAIL_FAST
    if review and last_round(seen.task, seen.rules.limits):
        return Cause.REVIEW_ROUNDS
    failed = _recorded(seen.task, None, None)
    if RetryController(failed.id, seen.rules.retry, failed.history).should_retry():
        return None
    return Cause.MAX_ITERATIONS


def _recorded(task: Task, feedback: GateFeedback | None, cause: Cause | None) -> Task:
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


def _as_feedback(review: str) -> GateFeedback:
    """A reviewer's prose, as the next worker gets it."""
    return GateFeedback(
        gate_name="review",
        findings=(Finding(Priority.P1_MAJOR, review.strip()),),
        summary="the review's verdict is FAIL",
        suggested_action="read '## Review' in TASK.md and fix each issue it raises",
    )


def _spend(seen: Evidence) -> Task:
    """An artifact that moves a task does not count again."""
    working = seen.task.status is S.WORKING
    digest = seen.found.handoff_digest if working else seen.found.review_digest
    return replace(seen.task, spent=seen.task.spent | ({digest} if digest else set()))


def _directed(asked: Move, decision: Decision) -> Decision:
    if not asked.directive:
        return decision
    return replace(decision, task=replace(decision.task, directive=asked.directive))
