"""A human's answer to a gate that waits: yes, no with what is wrong, or a word in between."""

from collections.abc import Sequence
from dataclasses import replace

from lockgate.core.arrival import also, stay
from lockgate.core.decision import Decision, Evidence, Refusal
from lockgate.core.findings import Finding, GateFeedback, Priority
from lockgate.core.gate_events import GateCompleted, HumanCommented, HumanReviewCompleted
from lockgate.core.judging import dropped_from_train, evaluation_failed, goes_on
from lockgate.core.model import Approval, Status, Task


def approved(seen: Evidence, comment: str, patch: str) -> Decision | Refusal:
    """Bound to the change that was shown: another one needs its own yes."""
    task = seen.task
    refusal = _not_asked(task) or _another(task, patch)
    if refusal:
        return refusal
    yes = Approval(task.waiting, task.patch, comment)
    kept = tuple(it for it in task.approvals if it.gate != yes.gate)
    passed = tuple(dict.fromkeys((*task.passed, yes.gate)))
    task = replace(task, approvals=(*kept, yes), passed=passed, waiting="")
    decision = goes_on(replace(seen, task=task))
    said = (
        HumanReviewCompleted(task.id, approved=True, comment=comment),
        GateCompleted(task.id, yes.gate, "passed", comment),
    )
    return replace(decision, events=(*said, *decision.events))


def rejected(
    seen: Evidence, comment: str, findings: Sequence[Finding], patch: str
) -> Decision | Refusal:
    """A gate's failure whose feedback is the comment; a change that waits to land goes back too."""
    task = seen.task
    if task.status is Status.REVIEWING:
        feedback = _feedback("human", comment, findings)
        decision = dropped_from_train(seen, feedback)
    else:
        refusal = _not_asked(task) or _another(task, patch)
        if refusal:
            return refusal
        feedback = _feedback(task.waiting, comment, findings)
        answered = replace(seen, task=replace(task, waiting=""))
        decision = evaluation_failed(answered, feedback, review=False)
        failed = GateCompleted(task.id, task.waiting, "failed", comment)
        decision = replace(decision, events=(failed, *decision.events))
    said = HumanReviewCompleted(task.id, approved=False, comment=comment)
    return replace(decision, events=(said, *decision.events))


def commented(seen: Evidence, comment: str) -> Decision:
    return also(stay(seen, seen.task), HumanCommented(comment))


def _feedback(gate: str, comment: str, findings: Sequence[Finding]) -> GateFeedback:
    general = Finding(Priority.P1_MAJOR, comment)
    return GateFeedback(
        gate_name=gate,
        findings=(general, *findings),
        summary=f"a human rejected it: {comment}",
        suggested_action="Do as the human says, then hand off again.",
    )


def _not_asked(task: Task) -> Refusal | None:
    if task.status is Status.AGENT_REVIEW and task.waiting:
        return None
    return Refusal(
        source=task.status,
        target=task.status,
        why="no gate of it waits for a human",
        fix=f"lockgate task why {task.id}",
    )


def _another(task: Task, patch: str) -> Refusal | None:
    if not patch or patch == task.patch:
        return None
    return Refusal(
        source=task.status,
        target=task.status,
        why="the change is another one since it was shown",
        fix=f"look again: lockgate diff {task.id}",
    )
