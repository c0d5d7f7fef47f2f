"""The turns of a change that is offered as a pull request: it waits, goes back, is taken over."""

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.forge.model import PREFIX
from lockgate.core.lifecycle.decision import Decision, Declined, Evidence, NotifyHuman, rules_for
from lockgate.core.lifecycle.evaluation import dropped_from_train
from lockgate.core.lifecycle.transition import Arrival, also, arrive, stay
from lockgate.core.model.findings import GateFeedback
from lockgate.core.model.landings import LandingHeld, PullRequestChanged
from lockgate.core.model.task import Cause, Pinned, Size, Status
from lockgate.core.text.steering import shown_first

S = Status
TAKEN = "somebody pushed commits to its pull request"


class Theirs(Struct, frozen=True, kw_only=True):
    """A person's commits on our head, as a change."""

    commit: str
    patch: str
    files: tuple[str, ...]
    size: Size = Size()


def needs_people(seen: Evidence, number: int, why: str) -> Decision | Declined:
    """Held until people have done their part; a yes that was given stays."""
    told = f"{PREFIX}#{number}: {why}"
    declined = _not_waiting(seen)
    if declined:
        return declined
    if seen.task.held and (seen.task.held == told or not is_ours(seen.task.held)):
        return Declined("it is held already", f"lockgate task why {seen.task.id}")
    kept = replace(seen.task, held=told)
    return also(stay(seen, kept, NotifyHuman(S.REVIEWING, told)), LandingHeld(told))


def refused(seen: Evidence, number: int, why: str) -> Decision | Declined:
    """Held, and a yes that was given is used up: asking again as it is cannot help."""
    return needs_people(replace(seen, task=replace(seen.task, to_land=False)), number, why)


def lifted(seen: Evidence) -> Decision | Declined:
    """What people had to do is done; a hold of a person's own stays."""
    declined = _not_waiting(seen)
    if declined or not is_ours(seen.task.held):
        return declined or Declined("no pull request holds it", "lockgate queue list")
    return stay(seen, replace(seen.task, held=""))


def is_ours(held: str) -> bool:
    return held.startswith(PREFIX)


def ci_failed(
    seen: Evidence, feedback: GateFeedback, change: str, rules: Pinned
) -> Decision | Declined:
    """One failed attempt, as of the train."""
    declined = _another(seen, change)
    if declined:
        return declined
    rebased = replace(seen.task, pinned=rules_for(seen, rules))
    return dropped_from_train(replace(seen, task=rebased), feedback)


def reviewed(
    seen: Evidence, feedback: GateFeedback, change: str, rules: Pinned
) -> Decision | Declined:
    """A person's review is no failed attempt, and the count begins again."""
    declined = _another(seen, change)
    if declined:
        return declined
    task = replace(seen.task, pinned=rules_for(seen, rules), failed_attempts=0)
    there = Arrival(S.WORKING, feedback.summary, Cause.DROPPED_FROM_TRAIN, feedback)
    return arrive(seen, task, there)


def taken_over(seen: Evidence, theirs: Theirs, number: int, rules: Pinned) -> Decision | Declined:
    """A person's commits go to the gates at once: no agent, no charge."""
    declined = _not_waiting(seen)
    if declined:
        return declined
    there = replace(seen, rules=rules)
    back = arrive(there, replace(seen.task, pinned=rules), Arrival(S.WORKING, TAKEN))
    begun = replace(back.task, steps_passed=rules.steps)
    judged = arrive(there, begun, Arrival(S.AGENT_REVIEW, TAKEN))
    task = replace(
        judged.task,
        candidate=theirs.commit,
        patch=theirs.patch,
        size=replace(theirs.size, files=len(theirs.files)),
        protected=shown_first(theirs.files, rules),
    )
    said = PullRequestChanged(number, f"{TAKEN}: {theirs.commit[:12]}")
    return replace(judged, task=task, events=(said, *back.events, *judged.events))


def not_started(seen: Evidence, why: str) -> Decision | Declined:
    """Its issue is not wanted any more: it waits until a human starts it."""
    if seen.task.status is not S.PENDING or not seen.task.auto_start:
        return Declined("it has begun, or waits already", f"lockgate task why {seen.task.id}")
    return also(stay(seen, replace(seen.task, auto_start=False)), LandingHeld(why))


def told(seen: Evidence, number: int, what: str) -> Decision | Declined:
    """Something worth knowing happened to its pull request; the task stays where it is."""
    declined = _not_waiting(seen)
    return declined or also(stay(seen, seen.task), PullRequestChanged(number, what))


def _not_waiting(seen: Evidence) -> Declined | None:
    if seen.task.status is S.REVIEWING:
        return None
    why = f"it is {seen.task.status}; only a task that is reviewing has a pull request that waits"
    return Declined(why, f"lockgate task why {seen.task.id}")


def _another(seen: Evidence, change: str) -> Declined | None:
    if seen.task.status is S.REVIEWING and seen.task.candidate == change:
        return None
    return Declined(
        "another version of its change waits by now", f"lockgate pr show {seen.task.id}"
    )
