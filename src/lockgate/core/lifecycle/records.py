"""Turns that change no status: a task begins, is renamed, is put right, is deleted."""

import re
from collections.abc import Collection, Iterable
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.lifecycle.decision import (
    Decision,
    Declined,
    DiscardTask,
    Effect,
    EndSessions,
    Evidence,
    MirrorTask,
    PrepareWorkspace,
    SpawnAgent,
    overtaken,
    rules_for,
)
from lockgate.core.lifecycle.map import gates_of
from lockgate.core.lifecycle.transition import Arrival, also, arrive, stay
from lockgate.core.model.events import (
    ArtifactTampered,
    Event,
    GoalChanged,
    PublishSkipped,
    StatusChanged,
    SummaryChanged,
    TaskCreated,
    TaskDeleted,
    TaskImported,
    TaskRepinned,
)
from lockgate.core.model.facts import as_facts
from lockgate.core.model.limits import PRIORITIES
from lockgate.core.model.task import REVIEWS, Actor, Pinned, Role, Session, Status, Task, TaskId
from lockgate.core.model.troubles import (
    DependencyBack,
    DependencyDropped,
    DependencyLost,
    TaskRecovered,
    TaskTroubled,
)
from lockgate.core.text.markdown import sections
from lockgate.core.text.task_file import RESERVED

MAX_SUMMARY = 200
MAX_CONTEXT = 500_000
ENDED = frozenset({Status.DONE, Status.CANCELLED})
# A human may leave these alone for long.
IDLE = frozenset({Status.STUCK, Status.PAUSED_FOR_INTERVENTION, Status.CLARIFICATION})
DELETABLE = frozenset({Status.PENDING, Status.DONE, Status.CANCELLED})
_SLUG = re.compile(r"[^a-z0-9]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Unacceptable(Struct, frozen=True):
    """Why a value cannot be taken, and what would do."""

    why: str
    fix: str


def new_id(branch: str, suffix: str) -> TaskId:
    """A name that people can read: what is left of the branch, and four characters of chance."""
    slug = _SLUG.sub("-", branch.lower()).strip("-")[:35].strip("-")
    return TaskId(f"{slug or 'task'}-{suffix}")


def check_summary(summary: str) -> Unacceptable | None:
    if not summary.strip():
        return Unacceptable("the summary is empty", "say in one line what the task is")
    if _CONTROL.search(summary):
        return Unacceptable("the summary has line breaks or control characters", "write one line")
    if len(summary) > MAX_SUMMARY:
        return Unacceptable(
            f"the summary has {len(summary)} characters, {MAX_SUMMARY} are allowed",
            "shorten it and put the rest into the context: --context FILE",
        )
    return None


def check_context(context: str) -> Unacceptable | None:
    """A heading that counts as an artifact must be an agent's own, never the task's text."""
    if len(context) > MAX_CONTEXT:
        return Unacceptable(
            f"the context has {len(context)} characters, {MAX_CONTEXT} are allowed",
            "keep what an agent must know, and name files for the rest",
        )
    for section in sections(context):
        if section.title in RESERVED:
            return Unacceptable(
                f"the context has a '## {section.title}' heading, which is an agent's to write",
                f"make it a '### {section.title}'",
            )
    return None


def check_priority(priority: int) -> Unacceptable | None:
    if priority in PRIORITIES:
        return None
    return Unacceptable(
        f"priority {priority} is not one of {PRIORITIES[0]} (first) to {PRIORITIES[-1]} (last)",
        f"use --priority {PRIORITIES[0]}",
    )


def check_branch(
    branch: str, landing: Collection[str], others: Iterable[Task]
) -> Unacceptable | None:
    """A task has a branch of its own: none that changes land on, none that a live task has.

    `others` are the other tasks of the project that have this branch, ended ones among them.
    """
    fix = "choose another branch, for example fix-login"
    if branch in landing:
        return Unacceptable(f"changes land on {branch}, and only after their gates", fix)
    taken = next((it.id for it in others if it.status not in ENDED), None)
    return Unacceptable(f"task {taken} has the branch {branch}", fix) if taken else None


def is_elsewhere(task: Task, host: str) -> bool:
    """Whether another host has the task: a clone here is an old one. A host alone has no name."""
    return bool(host and task.host) and task.host != host


def created(task: Task) -> Decision:
    event = TaskCreated(
        summary=task.summary,
        branch=task.branch,
        agent=task.agent,
        priority=task.priority,
        depends_on=task.depends_on,
    )
    return Decision(task, events=(event,), effects=(MirrorTask(),))


def imported(task: Task) -> Decision:
    event = TaskImported(
        summary=task.summary,
        branch=task.branch,
        status=task.status,
        crash_count=task.crash_count,
    )
    return Decision(task, events=(event,), effects=(MirrorTask(),))


def renamed(task: Task, summary: str, actor: Actor, now: float) -> Decision:
    """A human's word is the goal as well; an agent's changes only what is displayed."""
    changed = replace(task, summary=summary, rev=task.rev + 1, updated=now)
    events: tuple[Event, ...] = (SummaryChanged(summary),)
    if actor is Actor.HUMAN:
        changed = replace(changed, goal=summary)
        events = (*events, GoalChanged(summary))
    return Decision(changed, events=events, effects=(MirrorTask(),))


def put_right(task: Task, found: str, now: float) -> Decision:
    """Somebody edited the frontmatter; the row has the last word."""
    same = replace(task, rev=task.rev + 1, updated=now)
    return Decision(same, events=(ArtifactTampered(found),), effects=(MirrorTask(),))


def publish_skipped(task: Task, why: str, now: float) -> Decision:
    """The user's repository keeps its branch as it is; the task goes on."""
    same = replace(task, rev=task.rev + 1, updated=now)
    event = PublishSkipped(branch=task.branch, commit=task.candidate, why=why)
    return Decision(same, events=(event,), effects=(MirrorTask(),))


def troubled(task: Task, why: str, now: float) -> Decision:
    """The task needs a human; it goes on by itself once what fails succeeds."""
    marked = replace(task, troubled=why, rev=task.rev + 1, updated=now)
    return Decision(marked, events=(TaskTroubled(why),), effects=(MirrorTask(),))


def recovered(task: Task, now: float) -> Decision:
    cleared = replace(task, troubled="", rev=task.rev + 1, updated=now)
    return Decision(cleared, events=(TaskRecovered(),), effects=(MirrorTask(),))


def placed(task: Task, host: str, now: float) -> Decision:
    """Its clone is on this host from now on; on none where the name is empty."""
    return Decision(replace(task, host=host, rev=task.rev + 1, updated=now))


def adopted(
    task: Task, session: Session, all_of_it: Iterable[Session], host: str, now: float
) -> Decision | Declined:
    """What an orchestrator began alone in the home of a host belongs to that host.

    A session without a host is one from before there were hosts.
    """
    known = {task.host, *(it.host for it in all_of_it)}
    if session.host or task.status in ENDED or not known <= {"", host}:
        return Declined("it is a host's, or over", f"lockgate task show {task.id}")
    return replace(placed(task, host, now), session=replace(session, host=host))


def may_take_on(task: Task, host: str, pending: Iterable[Effect]) -> bool:
    """Whether a host may do what a task waits for: no other has it, or began there what it needs.

    A host that comes to a job late finds a clone and a session that the one before it has made.
    """
    begins = (it for it in pending if isinstance(it, PrepareWorkspace | SpawnAgent))
    return task.host in {"", host} or any(not overtaken(it, task) for it in begins)


def lost_its_dependency(task: Task, why: str, now: float) -> Decision:
    """The task needs a human, who drops the dependency, cancels the task too, or waits."""
    marked = replace(task, in_vain=why, rev=task.rev + 1, updated=now)
    return Decision(marked, events=(DependencyLost(why),), effects=(MirrorTask(),))


def has_its_dependencies(task: Task, now: float) -> Decision:
    cleared = replace(task, in_vain="", rev=task.rev + 1, updated=now)
    return Decision(cleared, events=(DependencyBack(),), effects=(MirrorTask(),))


def dependency_dropped(task: Task, needs: TaskId, now: float) -> Decision | Declined:
    """The task does not wait for that one any more."""
    if needs not in task.depends_on:
        return Declined(f"it does not depend on {needs}", f"lockgate task show {task.id}")
    left = tuple(it for it in task.depends_on if it != needs)
    freed = replace(task, depends_on=left, in_vain="", rev=task.rev + 1, updated=now)
    return Decision(freed, events=(DependencyDropped(needs),), effects=(MirrorTask(),))


def deleted(task: Task, now: float) -> Decision | Unacceptable:
    """Only what nobody works on goes, and its last event keeps the whole row."""
    if task.status not in DELETABLE:
        return Unacceptable(
            f"it is {task.status}, and work on it would be lost",
            f"cancel it first: lockgate task cancel {task.id}",
        )
    last = replace(task, rev=task.rev + 1, updated=now)
    return Decision(last, events=(TaskDeleted(repr(as_facts(last))),), effects=(DiscardTask(),))


# A human gives a running task the rules that its base branch has now.


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
    given = replace(task, pinned=rules_for(seen, rules), steps_passed=kept)
    said = TaskRepinned(
        base_commit=rules.base_commit,
        config_hash=rules.config_hash,
        before=old.config_hash,
    )
    if task.status is S.REVIEWING:
        return also(_back_from_the_queue(seen, given), said)
    if task.status is S.AGENT_REVIEW:
        reached = _reached_review(seen)
        return also(_judged_anew(seen, given, task.review_round - reached), said)
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
