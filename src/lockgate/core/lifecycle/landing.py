"""The turns of a change in the queue: a human lets it land or keeps it, it lands, it goes back."""

from collections.abc import Sequence

from msgspec.structs import replace

from lockgate.core.lifecycle.approvals import approved as gate_approved
from lockgate.core.lifecycle.approvals import rejected, too_long
from lockgate.core.lifecycle.decision import (
    Decision,
    Declined,
    Evidence,
    NotifyHuman,
    rules_for,
)
from lockgate.core.lifecycle.evaluation import dropped_from_train
from lockgate.core.lifecycle.transition import Arrival, also, arrive, stay, waited
from lockgate.core.model.events import HumanCommented
from lockgate.core.model.findings import Finding, GateFeedback, Location, Priority
from lockgate.core.model.landings import ChangeLanded, LandedUnjudged, LandingApproved, LandingHeld
from lockgate.core.model.task import Approval, Pinned, Status, Task
from lockgate.core.train.model import Conflict, Red

S = Status
TRAIN = "merge train"
QUEUE = "merge queue"  # what a yes to landing is given to; no gate can have this name


def approved(seen: Evidence, patch: str = "", comment: str = "") -> Decision | Declined:
    """For the change that was shown; another one has to be looked at again."""
    if not seen.task.patch.startswith(patch):
        why = "the change was updated after it was shown"
        return Declined(why, f"look again: lockgate diff {seen.task.id}")
    declined = _not_queued(seen) or too_long(comment)
    if declined:
        return declined
    yes = Approval(QUEUE, seen.task.patch, comment, seen.by, seen.how)
    kept = replace(seen.task, to_land=True, held="", approvals=(*_gates_yes(seen.task), yes))
    decision = also(stay(seen, kept), LandingApproved(waited(seen.task, seen.now)))
    return also(decision, HumanCommented(comment)) if comment.strip() else decision


def answered_yes(
    seen: Evidence, comment: str, patch: str, shown: str | None = None
) -> Decision | Declined:
    """A human's yes to whatever waits for one: the gate that asks, or else the landing.

    `shown` is the gate that asked when they looked, empty for the landing: it is to no other.
    """
    if shown is not None and shown != seen.task.waiting:
        return _answered(seen.task, shown)
    if seen.task.status is not S.REVIEWING:
        return gate_approved(seen, comment, patch)
    return approved(seen, patch, comment)


def _answered(task: Task, gate: str) -> Declined:
    """Somebody else was faster; they are named where that is known."""
    said = [it for it in task.approvals if it.gate == gate]
    who = (said[-1].by if said else "") or "somebody else"
    asked = f"gate {gate}" if gate else "its landing"
    told = f"{who} has answered {asked} already; it is {task.status} now"
    return Declined(told, f"look again: lockgate task show {task.id}")


def held(seen: Evidence, why: str) -> Decision | Declined:
    declined = _not_queued(seen) or _departing(seen)
    if declined:
        return declined
    kept = replace(seen.task, held=why, to_land=False, approvals=_gates_yes(seen.task))
    return also(stay(seen, kept, NotifyHuman(S.REVIEWING, why)), LandingHeld(why))


def dropped(seen: Evidence, why: str) -> Decision | Declined:
    """A human takes it off the queue, as by a no to a gate."""
    return _not_queued(seen) or rejected(seen, why, (), "")


def departs(seen: Evidence, commit: str, change: str) -> Decision | Declined:
    """The target is about to be moved: from here on nobody takes it off the train."""
    declined = _another(seen, change)
    if declined or seen.task.held:
        return declined or Declined(f"it is held: {seen.task.held}", "lockgate queue list")
    return stay(seen, replace(seen.task, landed=commit))


def stays_here(seen: Evidence, commit: str) -> Decision | Declined:
    """The target was not moved after all."""
    if seen.task.status is not S.REVIEWING or seen.task.landed != commit:
        return Declined("it is not about to land", "lockgate queue list")
    return stay(seen, replace(seen.task, landed=""))


def landed(seen: Evidence, commit: str, change: str) -> Decision | Declined:
    """The target has it. Only the change that was put on the train is done by that."""
    declined = _another(seen, change)
    if declined:
        return declined
    task = replace(seen.task, landed=commit, to_land=False, held="")
    decision = arrive(seen, task, Arrival(S.DONE, f"landed as {commit[:12]}"))
    reverts = seen.task.reverts
    if reverts and reverts.unjudged:
        return also(decision, LandedUnjudged(commit, reverts.task, reverts.unjudged))
    told = ChangeLanded(
        commit,
        change,
        let_land_by(seen.task),
        max(0.0, seen.now - seen.task.created),
        seen.task.usd,
        seen.task.tokens,
        seen.task.iteration,
    )
    return also(decision, told)


def sent_back(
    seen: Evidence, feedback: GateFeedback, change: str, rules: Pinned
) -> Decision | Declined:
    """One failed attempt; what it met in the queue is what its agent hears.

    `rules` are those of the target as it is now, which the work has to go on from.
    """
    declined = _another(seen, change) or _departing(seen)
    if declined:
        return declined
    rebased = replace(seen.task, pinned=rules_for(seen, rules))
    return dropped_from_train(replace(seen, task=rebased), feedback)


def met(reason: Conflict | Red, others: Sequence[Task], base: str = "main") -> GateFeedback:
    """What a change met on the target, for the agent that wrote it."""
    merge = f"Run: git fetch origin && git merge origin/{base}. Then"
    match reason:
        case Red(evidence):
            return GateFeedback(
                gate_name=TRAIN,
                findings=(Finding(Priority.P1_MAJOR, evidence),),
                summary="it passed alone and fails on the target as it is now",
                suggested_action=f"{merge} mend what fails, and hand off again.",
            )
        case Conflict(_, _, files):
            whom = "; ".join(f"{it.id} ({it.goal})" for it in others) or "the target"
            issue = f"conflicts with {whom}"
            places: list[Location | None] = [Location(it) for it in files]
            return GateFeedback(
                gate_name=TRAIN,
                findings=tuple(
                    Finding(Priority.P1_MAJOR, issue, place) for place in places or [None]
                ),
                summary=f"it {issue}",
                suggested_action=f"{merge} keep what both want, and hand off again.",
            )


def let_land_by(task: Task) -> str:
    """Who said yes to landing it; empty where nobody had to, or before names were kept."""
    return next((it.by for it in task.approvals if (it.gate, it.patch) == (QUEUE, task.patch)), "")


def _gates_yes(task: Task) -> tuple[Approval, ...]:
    return tuple(it for it in task.approvals if it.gate != QUEUE)


def _another(seen: Evidence, change: str) -> Declined | None:
    if seen.task.status is S.REVIEWING and seen.task.candidate == change:
        return None
    return Declined(
        "this version of its change does not wait to land any more", "lockgate queue list"
    )


def _departing(seen: Evidence) -> Declined | None:
    if not seen.task.landed:
        return None
    why = f"it is landing at this moment, as {seen.task.landed[:12]}"
    return Declined(why, f"lockgate task show {seen.task.id}")


def _not_queued(seen: Evidence) -> Declined | None:
    if seen.task.status is S.REVIEWING:
        return None
    why = f"it is {seen.task.status}; only a task that is reviewing can land"
    return Declined(why, f"lockgate task why {seen.task.id}")
