"""How an evaluation ends: ready to land, back to work, or with a human; and what says so."""

from collections.abc import Sequence
from dataclasses import replace

from lockgate.core.arrival import Arrival, also, arrive, charge
from lockgate.core.artifacts import Verdict, digest
from lockgate.core.charging import limit_reached, recorded, within_budget
from lockgate.core.decision import Decision, Declined, Evidence
from lockgate.core.evaluation import Passed, SingleGateResult, proof_of
from lockgate.core.findings import GateFeedback
from lockgate.core.gate_events import (
    AllGatesPassed,
    GateFailedMaxIterations,
    GateFailedRetrying,
    TaskGatesPassed,
)
from lockgate.core.model import Cause, Status, Task
from lockgate.core.review_text import rendered

S = Status
Outcome = GateFailedMaxIterations | GateFailedRetrying


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


def gate_broken(seen: Evidence, why: str) -> Decision:
    """A gate could not judge: a human is asked, and nobody is charged."""
    return arrive(seen, seen.task, Arrival(S.STUCK, why, Cause.GATE_BROKEN))


def dropped_from_train(seen: Evidence, feedback: GateFeedback) -> Decision:
    """The queue sends the change back: one failed attempt, iterations and rounds start anew."""
    there = Arrival(S.WORKING, feedback.summary, Cause.DROPPED_FROM_TRAIN, feedback)
    return charge(seen, seen.task, there, lambda charged: arrive(seen, charged, there))


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


def over(seen: Evidence, why: str = "the evaluation is over") -> Declined:
    return Declined(why, f"lockgate task show {seen.task.id}")


def spend(seen: Evidence) -> Task:
    """An artifact that moves a task does not count again."""
    working = seen.task.status is S.WORKING
    digest = seen.found.handoff_digest if working else seen.found.review_digest
    return replace(seen.task, spent=seen.task.spent | ({digest} if digest else set()))
