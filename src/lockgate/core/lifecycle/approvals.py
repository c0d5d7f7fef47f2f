"""A human's answer to a gate that waits: yes, no with what is wrong, or a word in between."""

from collections.abc import Sequence

from msgspec.structs import replace

from lockgate.core.lifecycle.decision import Decision, Declined, Evidence
from lockgate.core.lifecycle.evaluation import (
    dropped_from_train,
    evaluation_failed,
    goes_on,
    written,
)
from lockgate.core.lifecycle.transition import also, stay
from lockgate.core.model.events import GateCompleted, HumanCommented, HumanReviewCompleted
from lockgate.core.model.findings import Finding, GateFeedback, Priority
from lockgate.core.model.gates import HumanGate
from lockgate.core.model.results import Failed, Passed, Proof, SingleGateResult, Waiting, proof_of
from lockgate.core.model.task import Approval, Status, Task
from lockgate.core.text.steering import asked_of, steering, told_of

LONGEST = 20_000  # characters of what a human says


def approved(seen: Evidence, comment: str, patch: str) -> Decision | Declined:
    """Bound to the change that was shown: another one needs its own yes."""
    declined = (
        _not_asked(seen.task)
        or _another(seen.task, patch)
        or _not_theirs(seen)
        or too_long(comment)
    )
    if declined:
        return declined
    yes = Approval(seen.task.waiting, seen.task.patch, comment, seen.by, seen.how)
    kept = tuple(it for it in seen.task.approvals if it.gate != yes.gate)
    passed = tuple(dict.fromkeys((*seen.task.passed, yes.gate)))
    task = replace(seen.task, approvals=(*kept, yes), passed=passed, waiting="")
    decision = goes_on(replace(seen, task=task))
    said = (
        HumanReviewCompleted(task.id, approved=True, comment=comment, seconds=_waited(seen)),
        GateCompleted(task.id, yes.gate, "passed", comment, iteration=task.iteration),
    )
    results = (Passed(yes.gate, said_yes(seen.task, yes)),)
    decision = replace(decision, events=(*said, *decision.events), results=results)
    return written(decision, results)


def rejected(
    seen: Evidence, comment: str, findings: Sequence[Finding], patch: str
) -> Decision | Declined:
    """A gate's failure whose feedback is the comment; a change that waits to land goes back too."""
    lands = seen.task.status is Status.REVIEWING
    declined = (
        (_landing(seen.task) if lands else _not_asked(seen.task))
        or _another(seen.task, patch)
        or _silent(comment)
        or too_long(comment, *(it.issue for it in findings))
    )
    if declined:
        return declined
    said = HumanReviewCompleted(
        seen.task.id, approved=False, comment=comment, seconds=_waited(seen)
    )
    heard = replace(seen, task=_without_yes(seen.task))
    if lands:
        decision = dropped_from_train(heard, _feedback("human", comment, findings))
        return replace(decision, events=(said, *decision.events))
    gate = seen.task.waiting
    feedback = _feedback(gate, comment, findings)
    decision = evaluation_failed(heard, feedback, review=False)
    failed = GateCompleted(seen.task.id, gate, "failed", comment, iteration=seen.task.iteration)
    results = (Failed(gate, feedback.findings),)
    decision = replace(decision, events=(said, failed, *decision.events), results=results)
    return written(decision, results)


def _waited(seen: Evidence) -> float:
    """Seconds since the row came to rest, to wait for a human."""
    return max(0.0, seen.now - seen.task.updated)


def commented(seen: Evidence, comment: str) -> Decision | Declined:
    """Kept with the task, for people; what waits goes on waiting."""
    lands = seen.task.status is Status.REVIEWING
    declined = (None if lands else _not_asked(seen.task)) or _silent(comment) or too_long(comment)
    return declined or also(stay(seen, seen.task), HumanCommented(comment))


def heard(task: Task | None, gate: HumanGate, edited: str = "") -> Passed | Waiting:
    """`edited` says what gates run that the change edits; without a task nobody has answered."""
    if task is None:
        return Waiting(gate.name, gate.prompt)
    asked = asked_of(task.protected, task.pinned)
    rest = [path for path in steering(task.protected) if path not in asked]
    touched = f" (protected: {', '.join(asked)})" if asked else ""
    steers = f" ({told_of(rest)})" if rest else ""
    more = f"; {edited}" if edited else ""
    return _yes_to(task, gate.name) or Waiting(gate.name, f"{gate.prompt}{touched}{steers}{more}")


def consented(task: Task | None, result: SingleGateResult) -> SingleGateResult:
    """What a gate asks has its answer where a human has said yes to this very change."""
    if task is None or not isinstance(result, Waiting):
        return result
    return _yes_to(task, result.gate) or _taken_back(task, result.gate) or result


def _taken_back(task: Task, gate: str) -> Passed | None:
    """Who undid a task has said yes to losing the tests that came with it, by the plain revert."""
    reverts = task.reverts
    if reverts is None or task.candidate != reverts.commit:
        return None
    said = f"the tests that task {reverts.task} brought or changed go back with it"
    return Passed(gate, proof_of(task.candidate, task.pinned, said))


def _yes_to(task: Task, gate: str) -> Passed | None:
    """A yes holds for the patch it was given to, and for that one wherever it comes back."""
    for yes in task.approvals:
        if yes.gate == gate and yes.patch == task.patch:
            return Passed(gate, said_yes(task, yes))
    return None


def said_yes(task: Task, yes: Approval) -> Proof:
    """What stands for a human's yes where other gates say what ran."""
    words = f"{yes.by or 'a human'} said yes"
    return proof_of(
        task.candidate, task.pinned, f"{words}: {yes.comment}" if yes.comment else words
    )


def _without_yes(task: Task) -> Task:
    """A no is newer than every yes that the same change was given."""
    kept = tuple(it for it in task.approvals if it.patch != task.patch)
    return replace(task, approvals=kept, waiting="")


def _feedback(gate: str, comment: str, findings: Sequence[Finding]) -> GateFeedback:
    return GateFeedback(
        gate_name=gate,
        findings=(Finding(Priority.P1_MAJOR, comment), *findings),
        summary=f"a human rejected it: {comment}",
        suggested_action="Do as the human says, then hand off again.",
    )


def _not_asked(task: Task) -> Declined | None:
    if task.status is Status.AGENT_REVIEW and task.waiting:
        return None
    if task.status is Status.CLARIFICATION:
        return Declined("its agent asks a question", f"lockgate answer {task.id} -m TEXT")
    return Declined("nothing of it waits for your yes or no", f"lockgate task why {task.id}")


def _landing(task: Task) -> Declined | None:
    if not task.landed:
        return None
    why = f"it is landing at this moment, as {task.landed[:12]}"
    return Declined(why, f"lockgate task show {task.id}")


def _not_theirs(seen: Evidence) -> Declined | None:
    """A gate that names its people takes a yes of those alone, and only where they are known."""
    gates = seen.task.pinned.gates if seen.task.pinned else ()
    named = next((it.approvers for it in gates if it.name == seen.task.waiting), ())
    if not named or (seen.how and seen.by in named):
        return None
    who = f"you are {seen.by}" if seen.how else "nobody knows who you are"
    why = f"gate {seen.task.waiting} takes a yes of {', '.join(named)} alone, and {who}"
    return Declined(why, f"ask {named[0]} to approve it: lockgate approve {seen.task.id}")


def _another(task: Task, patch: str) -> Declined | None:
    if task.patch.startswith(patch):
        return None
    why = "the change was updated after it was shown"
    return Declined(why, f"look again: lockgate task show {task.id}")


def _silent(comment: str) -> Declined | None:
    if comment.strip():
        return None
    return Declined("nothing was said", "say it: -m TEXT")


def too_long(*said: str) -> Declined | None:
    if sum(map(len, said)) <= LONGEST:
        return None
    why = f"that is longer than {LONGEST} characters"
    return Declined(why, "say what matters, and name the place of the rest")
