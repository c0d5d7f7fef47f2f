"""What moves a task on: the one command that does, or what it waits for."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.lifecycle.decision import Evidence
from lockgate.core.lifecycle.map import ARROWS, unmet
from lockgate.core.lifecycle.needs import RUN, SENT_BACK, UNSTUCK
from lockgate.core.model.task import Status, TaskId

S = Status


class Advice(Struct, frozen=True):
    """`command` is empty where a human need not do anything."""

    why: str
    command: str = ""


class Surroundings(Struct, frozen=True, kw_only=True):
    """What the task's own row does not say: what it depends on, and what keeps the queue."""

    unfinished: Sequence[TaskId] = ()
    blocked: str = ""  # why nothing lands now
    limited: bool = False  # its agent's login is limited, and no session of it runs


def advice(seen: Evidence, around: Surroundings) -> Advice:
    if seen.task.troubled:
        why = "remove the cause: a running orchestrator then continues it; to start one"
        return Advice(why, "lockgate up --detach")
    if seen.task.taken_over:
        return Advice("you have taken it over", f"lockgate handback {seen.task.id}")
    return BY_STATUS[seen.task.status](seen, around)


def _pending(seen: Evidence, around: Surroundings) -> Advice:
    task = seen.task
    missing = unmet(seen, ARROWS[S.PENDING, S.WORKING])
    if missing:
        return Advice(missing.why, missing.fix)
    if not task.auto_start:
        return Advice("it was created to be started by you", f"lockgate task start {task.id}")
    if task.in_vain:
        drop = f"lockgate task drop-dependency {task.id} {task.in_vain.partition(' ')[0]}"
        why = f"it waits in vain: {task.in_vain}; to give it up too: lockgate task cancel {task.id}"
        return Advice(f"{why}; to start it without that one", drop)
    if around.unfinished:
        return Advice(f"it starts when these are done: {', '.join(around.unfinished)}")
    if around.limited:
        return Advice(f"it starts when the usage limit of {task.agent} is over")
    return Advice("it starts when an agent's slot is free")


def _clarification(seen: Evidence, _around: Surroundings) -> Advice:
    return Advice("it waits for your answer", f"lockgate answer {seen.task.id} -m TEXT")


def _working(seen: Evidence, around: Surroundings) -> Advice:
    task = seen.task
    limited = _limited(seen, around)
    if limited:
        return limited
    if task.dead:
        return Advice("its agent is not running", f"lockgate task respawn {task.id}")
    who = "its agent is working"
    if task.instead_of:
        who = f"{task.agent} works on it in place of {task.instead_of}, which hit a usage limit"
    return Advice(f"{who}; to watch it: lockgate task peek {task.id}")


def _limited(seen: Evidence, around: Surroundings) -> Advice | None:
    task = seen.task
    if task.dead and task.not_before:
        why = 'its agent hit a usage limit, and with [project] resume = "manual" you say when'
        return Advice(f"{why} it goes on", f"lockgate task respawn {task.id}")
    if seen.now < task.not_before or around.limited:
        return Advice("its agent hit a usage limit; it goes on by itself when that is over")
    return None


def _agent_review(seen: Evidence, around: Surroundings) -> Advice:
    task = seen.task
    if not task.waiting:
        return _limited(seen, replace(around, limited=False)) or Advice("its gates are running")
    why = f"gate {task.waiting} waits for you; to say no: lockgate reject {task.id} -m TEXT"
    return Advice(why, f"lockgate approve {task.id}")


def _reviewing(seen: Evidence, around: Surroundings) -> Advice:
    """What has passed its gates lands by the queue, and in no other way."""
    task = seen.task
    approve = f"lockgate approve {task.id}"
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
