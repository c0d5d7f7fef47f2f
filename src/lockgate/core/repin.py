"""A human gives a running task the rules that its base branch has now."""

from dataclasses import replace
from itertools import takewhile

from lockgate.core.arrival import Arrival, also, arrive, stay
from lockgate.core.decision import Decision, Declined, Evidence
from lockgate.core.effects import EndSessions
from lockgate.core.events import Event, StatusChanged, TaskRepinned
from lockgate.core.model import REVIEWS, Actor, Pinned, Role, Status, Task
from lockgate.core.needs import gates_of

S = Status
WHY = "its rules are new, and what has passed has passed by the old ones"


def repinned(seen: Evidence, rules: Pinned) -> Decision | Declined:
    """The same rules once more change nothing. What is judged, or was, is judged again.

    The change stays what it is: it is compared with where it left its base, wherever that is now.
    """
    task, old = seen.task, seen.task.pinned
    why = _why_not(seen)
    if why or old is None:
        return Declined(why, f"lockgate task show {task.id}")
    if rules == old:
        return stay(seen, task)
    kept = tuple(it for it in task.steps_passed if it in rules.steps)
    given = replace(task, pinned=rules, steps_passed=kept)
    said = TaskRepinned(
        base_commit=rules.base_commit,
        config_hash=rules.config_hash,
        before=old.config_hash,
    )
    match task.status:
        case S.REVIEWING:
            return also(_back_from_the_queue(seen, given), said)
        case S.AGENT_REVIEW:
            reached = _reached_review(seen)
            return also(_judged_anew(seen, given, task.review_round - reached), said)
        case _:
            return also(stay(seen, given), said)


def _why_not(seen: Evidence) -> str:
    if seen.actor is not Actor.HUMAN:
        return f"only a human may change its rules, and this is a {seen.actor}"
    if seen.task.status in {S.DONE, S.CANCELLED}:
        return f"it is {seen.task.status}, and no rule applies to it any more"
    if seen.task.pinned is None:
        return "it has not been started, and takes the rules that its base has when it is"
    return ""


def _judged_anew(seen: Evidence, task: Task, rounds: int, *said: Event) -> Decision:
    """From the first gate, in the same iteration; a round that was begun is not counted twice."""
    handed_on = replace(task, status=S.WORKING, review_round=rounds)
    decision = arrive(seen, handed_on, Arrival(S.AGENT_REVIEW, WHY))
    events = tuple(it for it in decision.events if said or not isinstance(it, StatusChanged))
    ends = EndSessions(seen.task.rev, Role.REVIEWER)
    return replace(decision, events=(*said, *events), effects=(ends, *decision.effects))


def _back_from_the_queue(seen: Evidence, task: Task) -> Decision:
    """By way of working, as the map has it; nobody works, and nobody is charged."""
    ours = replace(seen, actor=Actor.ORCHESTRATOR)
    first = arrive(ours, task, Arrival(S.WORKING, WHY))
    back = replace(first.task, generation=seen.task.generation)
    return _judged_anew(ours, back, 0, *first.events)


def _reached_review(seen: Evidence) -> bool:
    """Whether this evaluation has begun a round: all gates before its first review have passed."""
    gates = gates_of(seen)
    before = list(takewhile(lambda it: it.kind not in REVIEWS, gates))
    passed = all(it.name in seen.task.passed for it in before)
    return passed and len(before) < len(gates)
