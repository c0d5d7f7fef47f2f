"""The turns of a task that reverts another one: its work is there as soon as the task is."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.lifecycle.decision import (
    Decision,
    Declined,
    Evidence,
    MirrorTask,
    PublishChange,
)
from lockgate.core.lifecycle.evaluation import spend
from lockgate.core.lifecycle.map import configured
from lockgate.core.lifecycle.transition import Arrival, arrive
from lockgate.core.model.events import GateEvaluationStarted
from lockgate.core.model.landings import RevertMade
from lockgate.core.model.task import Cause, Pinned, Size, Status, Task
from lockgate.core.text.steering import shown_first

S = Status
LONGEST_GOAL = 150  # characters of a goal in the subject of the commit that reverts it
ENDED = frozenset({S.DONE, S.CANCELLED})
READY = "the revert is made"


class Taken(Struct, frozen=True, kw_only=True):
    """The plain revert as a change: its commit, its patch, and what it touches."""

    commit: str
    patch: str
    files: tuple[str, ...]
    size: Size = Size()


def not_undoable(task: Task) -> Declined | None:
    """Why this task's change cannot be undone; None where it can."""
    id = task.id
    if task.status is S.DONE and task.landed and task.candidate and task.pinned:
        return None
    if task.status is S.DONE:
        why = "Lockgate did not land it: it was merged by hand"
        return Declined(why, "revert it by hand: git revert COMMIT")
    if task.status is S.REVIEWING:
        why = "it has not landed yet"
        return Declined(why, f"take it out of the queue: lockgate reject {id} -m TEXT")
    why = f"it is {task.status}; only a change that has landed can be undone"
    ended = task.status is S.CANCELLED
    return Declined(why, "lockgate task list" if ended else f"stop it: lockgate task cancel {id}")


def undone_by(task: Task, others: Iterable[Task]) -> tuple[Task, ...]:
    """Those of the other tasks that revert this one and were not cancelled."""
    found = (it for it in others if it.reverts and it.reverts.task == task.id)
    return tuple(it for it in found if it.status is not S.CANCELLED)


def under_way(reverts: Sequence[Task]) -> Task | None:
    """The revert that has yet to land."""
    return next((it for it in reverts if it.status not in ENDED), None)


def is_begun(task: Task) -> bool:
    """Whether its plain revert is made and was not handed in: a crash came in between."""
    return task.status is S.PENDING and bool(task.reverts and task.reverts.commit)


def subject(task: Task) -> str:
    """Of the commit that reverts a task's change, as git writes it."""
    goal = " ".join(task.goal.split())
    short = goal if len(goal) <= LONGEST_GOAL else f"{goal[: LONGEST_GOAL - 1].rstrip()}…"
    return f'Revert "{short}"'


def message(task: Task) -> str:
    return f"{subject(task)}\n\nThis reverts task {task.id}, which landed as {task.landed}."


def landed_as(task: Task, trailer: str) -> str:
    """What the commit says by which a task's change lands; of a revert, what it reverts."""
    reverts = task.reverts
    about = (
        f"This reverts task {reverts.task}, which landed as {reverts.landed}." if reverts else ""
    )
    return "\n\n".join(filter(None, (task.goal, about, f"{trailer}: {task.id}\n")))


def worker_of(task: Task, commit: str) -> str:
    """The agent whose work a change is; empty where it is a plain revert, which no agent made."""
    return "" if task.reverts and task.reverts.commit == commit else task.agent


def handed_in(seen: Evidence, rules: Pinned) -> Decision | Declined:
    """The plain revert goes to its gates; no agent has worked on it, and none is needed.

    `rules` are those of the commit that the revert is made on.
    """
    reverts = seen.task.reverts
    if not (is_begun(seen.task) and reverts):
        why = f"it is {seen.task.status}, and no plain revert waits to be handed in"
        return Declined(why, f"lockgate task why {seen.task.id}")
    lacking = configured(replace(seen, agent_missing=None, login_missing=None))
    if lacking:
        return Declined(lacking.why, lacking.fix)
    there = replace(seen, rules=rules)
    begun = arrive(there, seen.task, Arrival(S.WORKING, READY))
    spent = replace(spend(replace(seen, task=begun.task)), steps_passed=rules.steps)
    judged = arrive(there, spent, Arrival(S.AGENT_REVIEW, READY))
    made = RevertMade(reverts.task, reverts.landed, reverts.commit)
    return replace(judged, events=(made, *begun.events, *judged.events))


def lands_unjudged(seen: Evidence, rules: Pinned, change: Taken, why: str) -> Decision | Declined:
    """Straight to the queue, by a human's word. The train lands it only on a red target."""
    judged = handed_in(seen, rules)
    if isinstance(judged, Declined) or judged.task.reverts is None:
        return judged
    ready = replace(
        judged.task,
        candidate=change.commit,
        patch=change.patch,
        size=replace(change.size, files=len(change.files)),
        protected=shown_first(change.files, rules),
        seats=(),
        to_land=True,
        reverts=replace(judged.task.reverts, unjudged=why),
    )
    said = tuple(it for it in judged.events if not isinstance(it, GateEvaluationStarted))
    queued = arrive(replace(seen, rules=rules), ready, Arrival(S.REVIEWING, why, Cause.UNJUDGED))
    return replace(
        queued,
        task=replace(queued.task, phase=None),  # no gate has passed
        events=(*said, *queued.events),
        effects=(MirrorTask(), PublishChange()),
    )
