"""The turns of an evaluation: gates give results, the task goes on, back, or to a human."""

from collections.abc import Sequence
from dataclasses import replace

from lockgate.core.arrival import also, stay
from lockgate.core.decision import Decision, Declined, Evidence
from lockgate.core.effects import EvaluateGates, NotifyHuman
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
from lockgate.core.evaluation_ends import (
    evaluation_failed,
    evaluation_passed,
    gate_broken,
    over,
    spend,
    written,
)
from lockgate.core.findings import Finding
from lockgate.core.gate_events import GateCompleted, HumanReviewRequested
from lockgate.core.gate_executor import conclude
from lockgate.core.gates import CHANGE_CHECK
from lockgate.core.model import REVIEWS, Status, TaskId
from lockgate.core.needs import gates_of
from lockgate.core.reaching import reviews_reached

S = Status


def judged(seen: Evidence, results: Sequence[SingleGateResult], since: int) -> Decision | Declined:
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


def change_refused(seen: Evidence, findings: Sequence[Finding], since: int) -> Decision | Declined:
    """The work is not taken as a change: its author mends that, as what a gate finds.

    Nobody has reviewed it, so a round that began with the evaluation does not count.
    """
    task = seen.task
    if task.status is not S.AGENT_REVIEW or task.since != since:
        return over(seen)
    rounds = task.review_round - (1 if task.seats else 0)
    unread = replace(task, review_round=rounds, seats=(), passed=())
    return concluded(replace(seen, task=unread), (Failed(CHANGE_CHECK, tuple(findings)),))


def concluded(
    seen: Evidence, results: Sequence[SingleGateResult], *, review: bool = False
) -> Decision:
    """What these gates say together, kept with what follows from it."""
    passed = [result.gate for result in results if isinstance(result, Passed)]
    seen = _asking(seen, results)
    completed = tuple(_completed(seen.task.id, result) for result in results)
    decision = _following(passing(seen, passed), results, review=review)
    decision = replace(decision, events=(*completed, *decision.events), results=tuple(results))
    return written(decision, results)


def _asking(seen: Evidence, results: Sequence[SingleGateResult]) -> Evidence:
    """What a gate wants a human to see is protected from now on, as long as the change is this."""
    asks = (file for it in results if isinstance(it, Passed) for file in it.asks)
    files = tuple(dict.fromkeys((*seen.task.protected, *asks)))
    return replace(seen, task=replace(seen.task, protected=files))


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
            return goes_on(seen, looked=not review)


def _asks(seen: Evidence, gate: str, prompt: str) -> Decision:
    """Whoever was asked already is not asked again: an evaluation may be repeated."""
    if seen.task.waiting == gate:
        return stay(seen, seen.task)
    asked = replace(seen.task, waiting=gate)
    decision = stay(seen, asked, NotifyHuman(S.AGENT_REVIEW, prompt))
    return also(decision, HumanReviewRequested(seen.task.id, prompt))


def goes_on(seen: Evidence, *, looked: bool = False) -> Decision:
    """On to the first gate that has not passed; where none is left, the evaluation has passed.

    Whoever ran the gates before has `looked` whether a review that has a `when` applies.
    """
    left = [gate for gate in gates_of(seen) if gate.name not in seen.task.passed]
    if not left:
        return evaluation_passed(seen)
    if left[0].kind in REVIEWS and (looked or not left[0].conditional):
        return reviews_reached(seen)
    return stay(seen, spend(seen), EvaluateGates(seen.task.iteration))


def passing(seen: Evidence, gates: Sequence[str]) -> Evidence:
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
