"""The turns of an evaluation: gates give results, the task goes on, back, or to a human."""

from collections.abc import Sequence
from dataclasses import replace

from lockgate.core.arrival import Arrival, also, arrive, charge, stay
from lockgate.core.artifacts import Verdict, digest
from lockgate.core.charging import limit_reached, recorded, within_budget
from lockgate.core.decision import Decision, Evidence, Refusal
from lockgate.core.effects import EndSessions, EvaluateGates, NotifyHuman, reviewers
from lockgate.core.evaluation import (
    AllPassed,
    Broken,
    EvaluationFailed,
    Failed,
    GateError,
    Passed,
    SingleGateResult,
    Waiting,
    proof_of,
)
from lockgate.core.findings import Finding, GateFeedback, Priority
from lockgate.core.gate_events import (
    AllGatesPassed,
    GateCompleted,
    GateFailedMaxIterations,
    GateFailedRetrying,
    HumanReviewRequested,
    TaskGatesPassed,
)
from lockgate.core.gate_executor import conclude
from lockgate.core.model import (
    REVIEWS,
    Cause,
    Role,
    Status,
    Task,
    TaskId,
)
from lockgate.core.needs import gates_of
from lockgate.core.review_text import rendered
from lockgate.core.seating import next_reviews, opening

S = Status
Outcome = GateFailedMaxIterations | GateFailedRetrying


def judged(seen: Evidence, results: Sequence[SingleGateResult], since: int) -> Decision | Refusal:
    """Gates gave their results: on to the next one, back to work, or a human is asked.

    `since` is the evaluation they were run for, by the rev at which it began.
    """
    if seen.task.status is not S.AGENT_REVIEW or seen.task.since != since:
        return over(seen)
    passed = [result for result in results if isinstance(result, Passed)]
    if any(result.proof.commit != seen.task.candidate for result in passed):
        return over(seen, "the gates passed on another commit than the one that is judged now")
    waiting = {result.gate for result in results if isinstance(result, Waiting)}
    if not waiting.isdisjoint(seen.task.passed):
        return over(seen, "a human has answered meanwhile")
    return concluded(seen, results)


def concluded(
    seen: Evidence, results: Sequence[SingleGateResult], *, review: bool = False
) -> Decision:
    """What these gates say together, kept with what follows from it."""
    passed = [result.gate for result in results if isinstance(result, Passed)]
    completed = tuple(_completed(seen.task.id, result) for result in results)
    decision = _following(_passing(seen, passed), results, review=review)
    decision = replace(decision, events=(*completed, *decision.events), results=tuple(results))
    return written(decision, results)


def evaluation_passed(seen: Evidence) -> Decision:
    """Every gate passed; that result is the evidence."""
    return also(
        arrive(seen, spend(seen), Arrival(S.REVIEWING)),
        AllGatesPassed(seen.task.id, seen.task.iteration),
        TaskGatesPassed(seen.task.id, seen.task.candidate or seen.task.branch),
    )


def evaluation_failed(
    seen: Evidence, feedback: GateFeedback, *, review: bool, fail_fast: bool = False
) -> Decision:
    """Back to work, or stuck where a limit is reached; one failed attempt either way."""
    cause = limit_reached(seen, review=review, fail_fast=fail_fast)
    task = recorded(spend(seen), feedback, cause)
    if cause:
        there = Arrival(S.STUCK, feedback.summary, cause, feedback)
        said: Outcome = GateFailedMaxIterations(task.id, feedback, task.iteration)
    else:
        there = Arrival(S.WORKING, feedback.summary, None, feedback)
        said = GateFailedRetrying(
            task_id=task.id,
            gate_name=feedback.gate_name,
            feedback=feedback,
            iteration=task.iteration,
        )
    iteration = task.iteration if cause else task.iteration + 1

    def goes_back(charged: Task) -> Decision:
        return also(arrive(seen, replace(charged, iteration=iteration), there), said)

    return within_budget(seen, charge(seen, task, there, goes_back))


def reviews_reached(seen: Evidence) -> Decision:
    """The gates before the next reviews passed: their reviewers are wanted, once.

    A round begins with an evaluation's first review; a second gate of it belongs to the same.
    """
    gates = next_reviews(gates_of(seen), seen.task.passed)
    asked = {seat.gate for seat in seen.task.seats}
    if any(gate.name in asked for gate in gates):
        return stay(seen, seen.task)
    seats = opening(gates, seen.task.rev + 1)
    task = replace(
        seen.task,
        review_round=seen.task.review_round + (0 if asked else 1),
        seats=(*seen.task.seats, *seats),
    )
    return stay(seen, task, *reviewers(seats))


def gate_broken(seen: Evidence, why: str) -> Decision:
    """A gate could not judge: a human is asked, and nobody is charged."""
    return arrive(seen, seen.task, Arrival(S.STUCK, why, Cause.GATE_BROKEN))


def dropped_from_train(seen: Evidence, feedback: GateFeedback) -> Decision:
    """The queue sends the change back: one failed attempt, iterations and rounds start anew."""
    there = Arrival(S.WORKING, feedback.summary, Cause.DROPPED_FROM_TRAIN, feedback)
    return charge(seen, seen.task, there, lambda charged: arrive(seen, charged, there))


def _following(seen: Evidence, results: Sequence[SingleGateResult], *, review: bool) -> Decision:
    match conclude([result.gate for result in results], results):
        case EvaluationFailed(gate, feedback, _):
            fast = gate in {it.name for it in seen.rules.gates if it.fail_fast}
            return evaluation_failed(seen, feedback, review=review, fail_fast=fast)
        case GateError(gate, why):
            return gate_broken(seen, f"gate {gate} could not judge: {why}")
        case Waiting(gate, prompt):
            return _asks(seen, gate, prompt)
        case AllPassed():
            return goes_on(seen)


def _asks(seen: Evidence, gate: str, prompt: str) -> Decision:
    """Whoever was asked already is not asked again: an evaluation may be repeated."""
    if seen.task.waiting == gate:
        return stay(seen, seen.task)
    asked = replace(seen.task, waiting=gate)
    decision = stay(seen, asked, NotifyHuman(S.AGENT_REVIEW, prompt))
    return also(decision, HumanReviewRequested(seen.task.id, prompt))


def review_passed(seen: Evidence) -> Decision:
    """The reviewers' own gates passed; those behind them are judged now."""
    reviews = _reviews(seen)
    completed = tuple(GateCompleted(seen.task.id, gate, "passed") for gate in reviews)
    decision = goes_on(_passing(seen, reviews))
    return _alone(seen, replace(decision, events=(*completed, *decision.events)))


def review_failed(seen: Evidence) -> Decision:
    """A reviewer's FAIL, in its own words, is the feedback."""
    decision = evaluation_failed(seen, _as_feedback(seen.found.review or ""), review=True)
    failed = tuple(
        GateCompleted(seen.task.id, gate, "failed", "the review's verdict is FAIL")
        for gate in _reviews(seen)
    )
    return _alone(seen, replace(decision, events=(*failed, *decision.events)))


def _alone(seen: Evidence, decision: Decision) -> Decision:
    """A human has spoken for the reviewers: whoever still sits is sent home."""
    if all(seat.said for seat in seen.task.seats):
        return decision
    end = EndSessions(seen.task.rev, Role.REVIEWER)
    return replace(decision, effects=(*decision.effects, end))


def _reviews(seen: Evidence) -> list[str]:
    return [gate.name for gate in seen.rules.gates if gate.kind in REVIEWS]


def goes_on(seen: Evidence) -> Decision:
    """On to the first gate that has not passed; where none is left, the evaluation has passed."""
    left = [gate for gate in gates_of(seen) if gate.name not in seen.task.passed]
    if not left:
        return evaluation_passed(seen)
    if left[0].kind in REVIEWS:
        return reviews_reached(seen)
    return stay(seen, spend(seen), EvaluateGates(seen.task.iteration))


def _passing(seen: Evidence, gates: Sequence[str]) -> Evidence:
    passed = tuple(dict.fromkeys((*seen.task.passed, *gates)))
    return replace(seen, task=replace(seen.task, passed=passed))


def _completed(task: TaskId, result: SingleGateResult) -> GateCompleted:
    match result:
        case Passed(gate):
            return GateCompleted(task, gate, "passed")
        case Failed(gate, findings):
            return GateCompleted(task, gate, "failed", f"{len(findings)} findings")
        case Waiting(gate, prompt):
            return GateCompleted(task, gate, "waiting", prompt)
        case Broken(gate, why):
            return GateCompleted(task, gate, "broken", why)


def over(seen: Evidence, why: str = "the evaluation is over") -> Refusal:
    return Refusal(source=seen.task.status, target=seen.task.status, why=why)


def _as_feedback(review: str) -> GateFeedback:
    """A reviewer's prose, as the next worker gets it."""
    return GateFeedback(
        gate_name="review",
        findings=(Finding(Priority.P1_MAJOR, review.strip()),),
        summary="the review's verdict is FAIL",
        suggested_action="read '## Review' in TASK.md and fix each issue it raises",
    )


def written(decision: Decision, results: Sequence[SingleGateResult]) -> Decision:
    """Lockgate's own `## Review` says how an evaluation ended, and moves nothing by itself."""
    task = decision.task
    if task.status is S.AGENT_REVIEW:
        return decision
    verdict = Verdict.PASS if task.status is S.REVIEWING else Verdict.FAIL
    named = {result.gate for result in results}
    before = (it for it in task.passed if it not in named)
    text = rendered(verdict, (*(Passed(it, proof_of(task, "")) for it in before), *results))
    kept = replace(task, spent=task.spent | {digest(text)})
    return replace(decision, task=kept, review=text)


def spend(seen: Evidence) -> Task:
    """An artifact that moves a task does not count again."""
    working = seen.task.status is S.WORKING
    digest = seen.found.handoff_digest if working else seen.found.review_digest
    return replace(seen.task, spent=seen.task.spent | ({digest} if digest else set()))
