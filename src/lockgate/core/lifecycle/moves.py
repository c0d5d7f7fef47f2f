"""The turns: what each call from outside does to a task, as a pure decision."""

import json

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.lifecycle.decision import (
    Decision,
    Declined,
    EndSessions,
    Evidence,
    Refusal,
    SpawnAgent,
)
from lockgate.core.lifecycle.evaluation import evaluation_failed, goes_on, over, passing, spend
from lockgate.core.lifecycle.map import ARROWS, validate_transition
from lockgate.core.lifecycle.reviews import filled
from lockgate.core.lifecycle.transition import (
    Arrival,
    also,
    arrive,
    charge,
    seat_of,
    stay,
    within_budget,
)
from lockgate.core.model.events import (
    ChangeMended,
    ChangeTaken,
    Event,
    GateCompleted,
    MoveForced,
    QuestionAnswered,
    Resumed,
    TaskCompletionSignaled,
)
from lockgate.core.model.findings import Finding, GateFeedback, Priority
from lockgate.core.model.task import REVIEWS, Actor, Cause, Checkpoint, Role, Size, Status, Task
from lockgate.core.text.steering import shown_first
from lockgate.core.text.task_file import Verdict

# Work is handed on: as one commit, with the checkpoint that says what it is.


S = Status
NO_SIZE = Size()


class Work(Struct, frozen=True):
    """What an agent's done signal is about."""

    checkpoint: Checkpoint
    candidate: str = ""
    patch: str = ""
    size: Size = NO_SIZE
    mended: str = ""


def handed_on(seen: Evidence, reason: str, work: Work | None) -> Decision:
    decision = arrive(seen, spend(seen), Arrival(S.AGENT_REVIEW, reason))
    if work is None:
        return decision
    files = shown_first(work.checkpoint.files_modified, seen.rules)
    task = replace(decision.task, candidate=work.candidate, patch=work.patch, size=work.size)
    noted = (
        *_mended(work.candidate, work.mended),
        TaskCompletionSignaled(seen.task.id, work.checkpoint),
    )
    return replace(decision, task=replace(task, protected=files), events=(*noted, *decision.events))


class Facts(Struct, frozen=True):
    """What is known of a change besides its files."""

    patch: str = ""
    size: Size = NO_SIZE
    mended: str = ""


NO_FACTS = Facts()


def change_taken(
    seen: Evidence, commit: str, files: tuple[str, ...], since: int, facts: Facts = NO_FACTS
) -> Decision | Declined:
    """The work as one commit, before anything judges it: of two that take it the first counts.

    `since` is the evaluation it was taken for, by the rev at which it began.
    """
    task = seen.task
    if task.status is not S.AGENT_REVIEW or task.since != since:
        return over(seen)
    same = commit == task.candidate
    if task.candidate and not same:
        return stay(seen, task)  # what has judged that one since holds
    known = task.protected if same else ()  # also what gates that passed want a human to see
    taken = replace(
        task,
        candidate=commit,
        patch=facts.patch,
        size=replace(facts.size, files=len(files)),
        protected=tuple(dict.fromkeys((*shown_first(files, seen.rules), *known))),
        passed=task.passed if same else (),
        waiting=task.waiting if same else "",
    )
    return also(stay(seen, taken), *_mended(commit, facts.mended), ChangeTaken(commit, files))


def _mended(commit: str, why: str) -> tuple[Event, ...]:
    return (ChangeMended(commit, why),) if why else ()


# A verdict by hand, S2's way: PASS or FAIL in `## Review`, from a reviewer or a human.


def verdict_given(seen: Evidence, verdict: Verdict) -> Decision:
    """A reviewer's is its seat's own; a human's, who has none, stands for all reviews."""
    seat = seat_of(seen)
    if seat is None:
        return _passed(seen) if verdict is Verdict.PASS else _failed(seen)
    summary = (seen.found.review or "").strip()
    text = json.dumps({"verdict": verdict.name, "summary": summary})
    decision = filled(seen, seat.name, text)
    alone = len(seen.task.seats) == 1
    return replace(decision, review=None) if alone else decision


def _passed(seen: Evidence) -> Decision:
    """The reviewers' own gates passed; those behind them are judged now."""
    reviews = _reviews(seen)
    completed = tuple(GateCompleted(seen.task.id, gate, "passed") for gate in reviews)
    decision = goes_on(passing(seen, reviews))
    return _alone(seen, replace(decision, events=(*completed, *decision.events)))


def _failed(seen: Evidence) -> Decision:
    """A reviewer's FAIL, in its own words, is the feedback."""
    decision = evaluation_failed(seen, _as_feedback(seen.found.review or ""), review=True)
    failed = tuple(
        GateCompleted(seen.task.id, gate, "failed", "the review's verdict is FAIL")
        for gate in _reviews(seen)
    )
    return _alone(seen, replace(decision, events=(*failed, *decision.events)))


def _alone(seen: Evidence, decision: Decision) -> Decision:
    """A human's verdict replaces the reviewers': end the sessions that are still running."""
    if all(seat.said for seat in seen.task.seats):
        return decision
    end = EndSessions(seen.task.rev, Role.REVIEWER)
    return replace(decision, effects=(*decision.effects, end))


def _reviews(seen: Evidence) -> list[str]:
    return [gate.name for gate in seen.rules.gates if gate.kind in REVIEWS]


def _as_feedback(review: str) -> GateFeedback:
    """A reviewer's prose, as the next worker gets it."""
    return GateFeedback(
        gate_name="review",
        findings=(Finding(Priority.P1_MAJOR, review.strip()),),
        summary="the review's verdict is FAIL",
        suggested_action="read '## Review' in TASK.md and fix each issue it raises",
    )


class Move(Struct, frozen=True):
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


def started(seen: Evidence) -> Decision | Refusal | Declined:
    """As the orchestrator starts what is ready; it may have looked at it long ago."""
    if seen.task.status is not S.PENDING:
        why = f"it is {seen.task.status}; only a task that is pending is started"
        return Declined(why, f"lockgate task show {seen.task.id}")
    return move(seen, Move(S.WORKING))


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
        case S.STUCK, S.WORKING if seen.task.cause is Cause.GATE_BROKEN:
            return arrive(seen, _unjudged(seen), Arrival(asked.target, asked.reason))
        case _:
            return arrive(seen, seen.task, Arrival(asked.target, asked.reason))


def _unjudged(seen: Evidence) -> Task:
    """No gate has judged its Handoff, which therefore counts when it is handed in again."""
    return replace(seen.task, spent=seen.task.spent - {seen.found.handoff_digest or ""})


def with_a_worker(
    seen: Evidence, task: Task, *, fresh: bool = False, asks: bool = False, insists: bool = False
) -> Decision:
    generation = seen.task.rev + 1
    return stay(
        seen,
        replace(task, generation=generation),
        SpawnAgent(Role.WORKER, generation, fresh=fresh, asks=asks, insists=insists),
    )


def _directed(asked: Move, decision: Decision) -> Decision:
    """With the human's words for the next agent, which answer what the last one asked."""
    if not asked.directive:
        return decision
    directed = replace(decision, task=replace(decision.task, directive=asked.directive))
    if decision.task.question and asked.target is S.WORKING:
        return also(directed, QuestionAnswered(asked.directive))
    return directed
