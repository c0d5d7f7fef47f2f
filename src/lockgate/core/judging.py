"""The turns of an evaluation: gates give results, the task goes on, back, or to a human."""

from collections.abc import Sequence
from dataclasses import replace

from lockgate.core.arrival import Arrival, also, arrive, charge, session_id, stay
from lockgate.core.decision import Decision, Evidence, Refusal
from lockgate.core.effects import EvaluateGates, NotifyHuman, SpawnAgent, wants_fresh
from lockgate.core.evaluation import (
    AllPassed,
    Broken,
    EvaluationFailed,
    Failed,
    GateError,
    Passed,
    SingleGateResult,
    Waiting,
)
from lockgate.core.events import (
    AllGatesPassed,
    ChangeTaken,
    Event,
    GateCompleted,
    GateFailedMaxIterations,
    GateFailedRetrying,
    StatusChanged,
    TaskGatesPassed,
)
from lockgate.core.findings import Finding, GateFeedback, Priority
from lockgate.core.gate_executor import conclude
from lockgate.core.iterations import RetryController
from lockgate.core.model import (
    REVIEWS,
    Budget,
    Cause,
    IterationOutcome,
    IterationRecord,
    NeedsFixes,
    Role,
    Status,
    Task,
    TaskId,
)
from lockgate.core.needs import last_round

S = Status


def change_taken(seen: Evidence, commit: str, files: tuple[str, ...]) -> Decision | Refusal:
    """The work as one commit, before anything judges it; no pass outlives another commit."""
    task = seen.task
    if task.status is not S.AGENT_REVIEW:
        return _over(seen)
    passed = task.passed if commit == task.candidate else ()
    taken = replace(task, candidate=commit, passed=passed)
    return also(stay(seen, taken), ChangeTaken(commit, files))


def judged(seen: Evidence, results: Sequence[SingleGateResult], since: int) -> Decision | Refusal:
    """Gates gave their results: on to the next one, back to work, or a human is asked.

    `since` is the evaluation they were run for, by the rev at which it began.
    """
    if seen.task.status is not S.AGENT_REVIEW or seen.task.since != since:
        return _over(seen)
    passed = [result for result in results if isinstance(result, Passed)]
    if any(result.proof.commit != seen.task.candidate for result in passed):
        return _over(seen, "the gates passed on another commit than the one that is judged now")
    completed = tuple(_completed(seen.task.id, result) for result in results)
    decision = _concluded(_passing(seen, [result.gate for result in passed]), results)
    return replace(decision, events=(*completed, *decision.events))


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
    cause = _limit_reached(seen, review=review, fail_fast=fail_fast)
    task = _recorded(spend(seen), feedback, cause)
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
    iteration = task.iteration if cause else task.iteration + 1

    def goes_on(charged: Task) -> Decision:
        return also(arrive(seen, replace(charged, iteration=iteration), there), said)

    return within_budget(seen, charge(seen, task, there, goes_on))


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
    )
    untrue = (StatusChanged, GateFailedRetrying)
    said = tuple(it for it in decision.events if not isinstance(it, untrue))
    feedback = after.phase.feedback if isinstance(after.phase, NeedsFixes) else None
    stopped = arrive(seen, task, Arrival(S.STUCK, used_up, Cause.BUDGET, feedback))
    return replace(stopped, events=(*said, *stopped.events))


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


def _concluded(seen: Evidence, results: Sequence[SingleGateResult]) -> Decision:
    match conclude([result.gate for result in results], results):
        case EvaluationFailed(gate, feedback, _):
            fast = gate in {it.name for it in seen.rules.gates if it.fail_fast}
            return evaluation_failed(seen, feedback, review=False, fail_fast=fast)
        case GateError(gate, why):
            return gate_broken(seen, f"gate {gate} could not judge: {why}")
        case Waiting(_, prompt):
            return stay(seen, seen.task, NotifyHuman(S.AGENT_REVIEW, prompt))
        case AllPassed():
            return _next_gate(seen)


def review_passed(seen: Evidence) -> Decision:
    """The reviewers' own gates passed; those behind them are judged now."""
    reviews = _reviews(seen)
    completed = tuple(GateCompleted(seen.task.id, gate, "passed") for gate in reviews)
    decision = _next_gate(_passing(seen, reviews))
    return replace(decision, events=(*completed, *decision.events))


def review_failed(seen: Evidence) -> Decision:
    """A reviewer's FAIL, in its own words, is the feedback."""
    decision = evaluation_failed(seen, _as_feedback(seen.found.review or ""), review=True)
    failed = tuple(
        GateCompleted(seen.task.id, gate, "failed", "the review's verdict is FAIL")
        for gate in _reviews(seen)
    )
    return replace(decision, events=(*failed, *decision.events))


def _reviews(seen: Evidence) -> list[str]:
    return [gate.name for gate in seen.rules.gates if gate.kind in REVIEWS]


def _next_gate(seen: Evidence) -> Decision:
    left = [gate for gate in seen.rules.gates if gate.name not in seen.task.passed]
    if not left:
        return evaluation_passed(seen)
    if left[0].kind in REVIEWS:
        return review_reached(seen)
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


def _over(seen: Evidence, why: str = "the evaluation is over") -> Refusal:
    return Refusal(source=seen.task.status, target=seen.task.status, why=why)


def _used_up(task: Task, budget: Budget) -> str:
    """What of the budget is used up, in words; nothing where something is left of all of it."""
    if budget.usd and task.usd >= budget.usd:
        return f"its agents have cost {task.usd:.2f} USD of {budget.usd:.2f}"
    if budget.tokens and task.tokens >= budget.tokens:
        return f"its agents have used {task.tokens} tokens of {budget.tokens}"
    if budget.minutes and task.seconds >= budget.minutes * 60:
        return f"its agents have worked {task.seconds / 60:.0f} minutes of {budget.minutes}"
    return ""


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


def spend(seen: Evidence) -> Task:
    """An artifact that moves a task does not count again."""
    working = seen.task.status is S.WORKING
    digest = seen.found.handoff_digest if working else seen.found.review_digest
    return replace(seen.task, spent=seen.task.spent | ({digest} if digest else set()))
