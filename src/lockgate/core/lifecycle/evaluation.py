"""An evaluation: which gates are next, what their results mean, and how it ends."""

from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.lifecycle.decision import (
    Decision,
    Declined,
    EvaluateGates,
    Evidence,
    NotifyHuman,
    reviewers,
)
from lockgate.core.lifecycle.map import gates_of
from lockgate.core.lifecycle.records import placed
from lockgate.core.lifecycle.transition import (
    Arrival,
    also,
    arrive,
    asked_again,
    charge,
    limit_reached,
    next_reviews,
    opening,
    recorded,
    stay,
    within_budget,
)
from lockgate.core.model.events import (
    AllGatesPassed,
    GateCompleted,
    GateFailedMaxIterations,
    GateFailedRetrying,
    HumanReviewRequested,
    TaskGatesPassed,
)
from lockgate.core.model.findings import Finding, GateFeedback, blocks, by_priority, headline
from lockgate.core.model.gates import CHANGE_CHECK
from lockgate.core.model.results import (
    AllPassed,
    Broken,
    Evaluation,
    EvaluationFailed,
    Failed,
    GateError,
    Passed,
    SingleGateResult,
    Waiting,
    proof_of,
)
from lockgate.core.model.statistics import MEASURED, UNMEASURED
from lockgate.core.model.task import REVIEWS, Cause, GateRef, Seat, Status, Task, TaskId
from lockgate.core.text.feedback import APART, prefixed, rendered
from lockgate.core.text.task_file import Verdict, digest

S = Status
Outcome = GateFailedMaxIterations | GateFailedRetrying
FLAKY = "FLAKY"  # how a finding of a pass begins that came only in a later attempt
NOTED = (FLAKY, MEASURED, UNMEASURED)  # how findings begin that a pass is recorded with


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
    """The queue sends the change back: one failed attempt, iterations and rounds start again."""
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
    text = rendered(
        verdict,
        (*(Passed(it, proof_of(task.candidate, task.pinned, "")) for it in before), *results),
    )
    kept = replace(task, spent=task.spent | {digest(text)})
    return replace(decision, task=kept, review=text)


def over(seen: Evidence, why: str = "the evaluation is over") -> Declined:
    return Declined(why, f"lockgate task show {seen.task.id}")


def spend(seen: Evidence) -> Task:
    """An artifact that moves a task does not count again."""
    working = seen.task.status is S.WORKING
    digest = seen.found.handoff_digest if working else seen.found.review_digest
    return replace(seen.task, spent=seen.task.spent | ({digest} if digest else set()))


# S3's executor: has the gates run, and says what their results mean together.


class GateExecutor(Struct, frozen=True):
    """One evaluation to be made; `config` holds the gates that apply, in order."""

    config: tuple[GateRef, ...]
    task_id: TaskId
    workspace_path: str

    def execute(self, runner: "Callable[[GateExecutor], Sequence[SingleGateResult]]") -> Evaluation:
        """Have the gates run and conclude; the runner may stop at the first that fails."""
        return conclude([gate.name for gate in self.config], runner(self))


def conclude(gates: Sequence[str], results: Sequence[SingleGateResult]) -> Evaluation:
    """A failure is certain whatever else is open; a pass needs every gate's own pass."""
    passed = tuple(result for result in results if isinstance(result, Passed))
    failed = tuple(result for result in results if isinstance(result, Failed))
    if failed:
        return EvaluationFailed(failed[0].gate, feedback_from(failed), passed)
    for result in results:
        if isinstance(result, Broken):
            return GateError(result.gate, result.why)
    for result in results:
        if isinstance(result, Waiting):
            return result
    judged = {result.gate for result in passed}
    for gate in gates:
        if gate not in judged:
            return GateError(gate, "it gave no result")
    return AllPassed(passed)


def passing_trouble(results: Sequence[SingleGateResult]) -> Broken | None:
    """The first gate that may judge when it is tried again; None where the results decide."""
    if any(isinstance(it, Failed) for it in results):
        return None
    broken = [it for it in results if isinstance(it, Broken)]
    return broken[0] if broken and all(it.passing for it in broken) else None


def with_repeated(
    results: Sequence[SingleGateResult], before: Collection[str]
) -> tuple[SingleGateResult, ...]:
    """The results, where a gate that was broken `before` has failed if that counts by now."""
    return tuple(
        Failed(it.gate, it.if_repeated)
        if isinstance(it, Broken) and it.if_repeated and it.gate in before
        else it
        for it in results
    )


def feedback_from(failed: Sequence[Failed]) -> GateFeedback:
    """All that the failed gates of one evaluation found, the worst first, as one feedback.

    Where several failed, each finding names its gate.
    """
    names = APART.join(result.gate for result in failed)
    findings = by_priority(
        prefixed(result.gate, finding) if len(failed) > 1 else finding
        for result in failed
        for finding in result.findings
    )
    return GateFeedback(
        gate_name=names,
        findings=findings,
        summary=f"{names} failed with {_counted(findings)}",
        suggested_action=_suggested_action(findings),
    )


def _counted(findings: Sequence[Finding]) -> str:
    counts = {finding.priority: 0 for finding in findings}
    for finding in findings:
        counts[finding.priority] += 1
    return ", ".join(f"{count} {priority}" for priority, count in counts.items()) or "no findings"


def _suggested_action(findings: Sequence[Finding]) -> str:
    if not findings:
        return "Run the gate's command, mend what it reports, then hand off again."
    if any(blocks(finding) for finding in findings):
        return "Fix every P0 and P1 finding, then hand off again."
    return "Address the findings, then hand off again."


# Request reviewer sessions once: for the next reviews, and again for those that gave no verdict.


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


def wanted(seen: Evidence, seats: Iterable[Seat]) -> Decision:
    """More seats, and somebody in each of them."""
    more = tuple(seats)
    task = replace(seen.task, seats=(*seen.task.seats, *more))
    return stay(seen, task, *reviewers(more))


def asked_for_again(seen: Evidence, names: Iterable[str]) -> Decision:
    """New sessions for these reviewer slots; one that gave its verdict is not asked twice."""
    generation = seen.task.rev + 1
    seats = asked_again(seen.task.seats, names, generation)
    wanted = tuple(seat for seat in seats if seat.generation == generation)
    return stay(seen, replace(seen.task, seats=seats), *reviewers(wanted))


# The turns of an evaluation: gates give results, the task goes on, back, or to a human.


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
    if waiting == {seen.task.waiting} and len(results) == 1:  # repeated after a crash
        return over(seen, f"a human was asked before, by gate {seen.task.waiting}")
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


def host_gone(seen: Evidence, host: str) -> Decision | Declined:
    """The task has no host any more, and what was not handed over there is done again: one turn.

    Said before its sessions there are ended and again after: an end may hand in what is lost.
    """
    if seen.task.host not in {host, ""}:
        return over(seen, f"host {host} does not have the task any more")
    lost = work_lost(seen, host)
    if not isinstance(lost, Declined):
        return replace(lost, task=replace(lost.task, host=""))
    return placed(seen.task, "", seen.now) if seen.task.host else lost


def work_lost(seen: Evidence, host: str) -> Decision | Declined:
    """Its clone is gone before the work was taken as a change: it is done again.

    Nobody is charged. The Handoff of what is lost goes; the same one may be written again.
    """
    task = seen.task
    if task.status is not S.AGENT_REVIEW or task.candidate:
        return over(seen)
    rounds = task.review_round - (1 if task.seats else 0)
    spent = task.spent - {seen.found.handoff_digest}
    unread = replace(task, review_round=rounds, seats=(), passed=(), spent=spent)
    why = f"host {host} is lost, and the work with it: it was not handed over yet"
    return replace(arrive(seen, unread, Arrival(S.WORKING, why)), drops="Handoff")


def concluded(
    seen: Evidence, results: Sequence[SingleGateResult], *, review: bool = False
) -> Decision:
    """What these gates say together, kept with what follows from it."""
    passed = [result.gate for result in results if isinstance(result, Passed)]
    seen = _asking(seen, results)
    completed = tuple(_completed(seen.task, result) for result in results)
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
    """A reviewer that was asked already is not asked again: an evaluation may be repeated."""
    if seen.task.waiting == gate:
        return stay(seen, seen.task)
    asked = replace(seen.task, waiting=gate, asked=prompt)
    decision = stay(seen, asked, NotifyHuman(S.AGENT_REVIEW, prompt))
    return also(decision, HumanReviewRequested(seen.task.id, prompt))


def goes_on(seen: Evidence, *, looked: bool = False) -> Decision:
    """On to the first gate that has not passed; where none is left, the evaluation has passed.

    `looked`: the earlier run of the gates found whether a review that has a `when` applies.
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


def _completed(task: Task, result: SingleGateResult) -> GateCompleted:
    id, time = task.id, task.iteration
    match result:
        case Passed(gate, proof, findings):
            noted = (it.issue for it in findings if it.issue.startswith(NOTED))
            return GateCompleted(id, gate, "passed", "; ".join(noted), proof.seconds, time)
        case Failed(gate, findings):
            return GateCompleted(id, gate, "failed", headline(findings), iteration=time)
        case Waiting(gate, prompt):
            return GateCompleted(id, gate, "waiting", prompt, iteration=time)
        case Broken(gate, why):
            return GateCompleted(id, gate, "broken", why, iteration=time)
