"""The one thing that moves a task on: a command for a human, or what the task waits for.

Also what the loop failed to do, and when a human must be told of it.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from lockgate.core.lifecycle.decision import Evidence
from lockgate.core.lifecycle.map import ARROWS, unmet
from lockgate.core.model.findings import normalise
from lockgate.core.model.limits import SAME_FAILURES
from lockgate.core.model.task import Cause, Status, Task, TaskId

RUN = "; run: "  # between why nothing lands and the command that changes it
S = Status
# Why a task is stuck: what to say of that, and the status that a human gives it.
UNSTUCK: Mapping[Cause | None, tuple[str, str]] = {
    Cause.GATE_BROKEN: ("a gate could not run; once it can", "agent-review"),
    Cause.SERVICE: ("a service was not ready; once it is, see [[services]]", "working"),
    Cause.BUDGET: ("its budget is used up; to give it another", "working"),
}
SENT_BACK = ("it is stuck; to send it back to an agent with a hint", "working --directive TEXT")


class Advice(Struct, frozen=True):
    """`command` is empty where a human need not do anything."""

    why: str
    command: str = ""


class Surroundings(Struct, frozen=True, kw_only=True):
    """What the task's own row does not say: what it depends on, and what keeps the queue."""

    unfinished: Sequence[TaskId] = ()
    blocked: str = ""  # why nothing lands now


def advice(seen: Evidence, around: Surroundings) -> Advice:
    if seen.task.troubled:
        why = f"Lockgate cannot go on with it, and tries again: {seen.task.troubled}"
        return Advice(why)
    return BY_STATUS[seen.task.status](seen, around)


def _pending(seen: Evidence, around: Surroundings) -> Advice:
    task = seen.task
    missing = unmet(seen, ARROWS[S.PENDING, S.WORKING])
    if missing:
        return Advice(missing.why, missing.fix)
    if not task.auto_start:
        return Advice("it was created to be started by you", f"lockgate task start {task.id}")
    if around.unfinished:
        return Advice(f"it starts when these are done: {', '.join(around.unfinished)}")
    return Advice("it starts when an agent's slot is free")


def _clarification(seen: Evidence, _around: Surroundings) -> Advice:
    return Advice("it waits for your answer", f"lockgate answer {seen.task.id} -m TEXT")


def _working(seen: Evidence, _around: Surroundings) -> Advice:
    task = seen.task
    if task.taken_over:
        return Advice("you have taken it over", f"lockgate handback {task.id}")
    if task.dead:
        return Advice("its agent is not running", f"lockgate task respawn {task.id}")
    if seen.now < task.not_before:
        return Advice("its agent hit a usage limit; it goes on by itself when that is over")
    return Advice(f"its agent is working; to watch it: lockgate task peek {task.id}")


def _agent_review(seen: Evidence, _around: Surroundings) -> Advice:
    task = seen.task
    if not task.waiting:
        return Advice("its gates are running")
    why = f"gate {task.waiting} waits for you; to say no: lockgate reject {task.id} -m TEXT"
    return Advice(why, f"lockgate approve {task.id}")


def _reviewing(seen: Evidence, around: Surroundings) -> Advice:
    """What has passed its gates lands by the queue, and in no other way."""
    task = seen.task
    approve = f"lockgate queue approve {task.id}"
    if task.landed:
        return Advice("it is landing now")
    if seen.landed:
        why = "its change is in the target branch already"
        return Advice(why, f"lockgate task update {task.id} --status done")
    if task.held:
        return Advice(f"it is held: {task.held}", approve)
    if not task.to_land and not seen.rules.lands_alone:
        return Advice("all gates passed; it waits for you to approve it for landing", approve)
    why, _, command = around.blocked.partition(RUN)
    return Advice(why or "it is in the queue and lands by itself", command)


def _stuck(seen: Evidence, _around: Surroundings) -> Advice:
    why, status = UNSTUCK.get(seen.task.cause, SENT_BACK)
    return Advice(why, f"lockgate task update {seen.task.id} --status {status}")


def _paused(seen: Evidence, _around: Surroundings) -> Advice:
    why = f"{seen.task.failed_attempts} attempts at it failed"
    return Advice(why, f"lockgate resume {seen.task.id} --directive TEXT")


def _ended(seen: Evidence, _around: Surroundings) -> Advice:
    undo = f"; to revert it: lockgate undo {seen.task.id}" if seen.task.landed else ""
    return Advice(f"it is {seen.task.status}{undo}")


BY_STATUS: Mapping[Status, Callable[[Evidence, Surroundings], Advice]] = {
    S.PENDING: _pending,
    S.CLARIFICATION: _clarification,
    S.WORKING: _working,
    S.AGENT_REVIEW: _agent_review,
    S.REVIEWING: _reviewing,
    S.STUCK: _stuck,
    S.PAUSED_FOR_INTERVENTION: _paused,
    S.DONE: _ended,
    S.CANCELLED: _ended,
}


# What the loop failed to do.


class Trouble(Struct, frozen=True, kw_only=True):
    """Why a lane of the loop failed, and how often in a row it has failed in this way."""

    why: str
    times: int = 1
    task: TaskId | None = None  # the lane's task, where it has one

    @property
    def needs_human(self) -> bool:
        return self.times >= SAME_FAILURES


def failed(before: Trouble | None, why: str, task: TaskId | None = None) -> Trouble:
    """The lane's trouble after one more failure; a failure of another kind is counted from one."""
    same = before is not None and _same(before.why, why)
    return Trouble(why=why, times=before.times + 1 if before and same else 1, task=task)


def is_news(task: Task, trouble: Trouble) -> bool:
    """Whether a human must be told, and the task does not say it yet."""
    return trouble.needs_human and not _same(task.troubled, trouble.why)


def _same(one: str, other: str) -> bool:
    return normalise(one) == normalise(other)
