"""What an evaluation costs a task: an iteration, a round, its budget."""

from dataclasses import replace

from lockgate.core.arrival import Arrival, arrive, session_id
from lockgate.core.decision import Decision, Evidence
from lockgate.core.effects import SpawnAgent, wants_fresh
from lockgate.core.events import StatusChanged
from lockgate.core.findings import GateFeedback
from lockgate.core.gate_events import GateFailedRetrying
from lockgate.core.iterations import RetryController
from lockgate.core.model import (
    Budget,
    Cause,
    IterationOutcome,
    IterationRecord,
    NeedsFixes,
    Role,
    Status,
    Task,
)
from lockgate.core.needs import last_round

S = Status


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
