"""What moves a task on: what needs a human, the command that answers, what it waits for.

Also what the loop failed to do, and when a human must be told of it.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.lifecycle.decision import Evidence
from lockgate.core.lifecycle.map import ARROWS, unmet
from lockgate.core.model.findings import headline, normalise
from lockgate.core.model.limits import SAME_FAILURES
from lockgate.core.model.task import Cause, Status, Stuck, Task, TaskId
from lockgate.core.text.steering import told_of, unseen

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
    limited: bool = False  # its agent's login is limited, and no session of it runs


def advice(seen: Evidence, around: Surroundings) -> Advice:
    if seen.task.troubled:
        why = f"Lockgate cannot go on with it, and tries again: {seen.task.troubled}"
        return Advice(why)
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


# What needs a human, as a list shows it.


GIST = 300  # characters of a question that a list shows


class NeedKind(StrEnum):
    """Why a human is needed, in the order in which a list shows the needs."""

    APPROVE = "approve"
    LAND = "land"
    ANSWER = "answer"
    STUCK = "stuck"
    PAUSED = "paused"
    ESCALATION = "escalation"
    DEAD = "dead"
    HELD = "held"
    TROUBLE = "trouble"
    YOURS = "yours"


class Action(Struct, frozen=True):
    """One way to answer: a verb for people, and the command to paste."""

    verb: str
    command: str


class Need(Struct, frozen=True):
    kind: NeedKind
    ask: str
    actions: tuple[Action, ...]


def need_of(task: Task) -> Need | None:
    """What a human is to do for the task; None where it goes on by itself, or has ended."""
    if task.troubled:
        why = f"Lockgate cannot go on with it: {task.troubled}"
        return Need(NeedKind.TROUBLE, why, (_why(task),))
    if task.taken_over:
        back = Action("give it back", f"lockgate handback {task.id}")
        return Need(NeedKind.YOURS, "you took it over", (back,))
    return _NEEDS[task.status](task)


def needs_human(task: Task) -> str:
    """The need in one line, with its commands; empty where there is none, or the task is yours."""
    need = need_of(task)
    if need is None or need.kind is NeedKind.YOURS:
        return ""
    said = need.ask if need.kind is NeedKind.TROUBLE else _with_commands(need)
    return f"{large_change(task)}; {said}" if need.kind in _SIZED and large_change(task) else said


def goes_on(task: Task, lands_by_itself: Callable[[Task], bool]) -> bool:
    """Whether a change that waits to land is landed by the train, with no human."""
    return task.status is Status.REVIEWING and not task.held and lands_by_itself(task)


def large_change(task: Task) -> str:
    """How much it is, where that is more than one expects of a change; empty elsewhere."""
    if not task.size.large:
        return ""
    return f"large change: {task.size.files:,} files, {task.size.added / 1e6:.1f} MB added"


def asks(task: Task) -> str:
    """What its agent wants to know, as the agent wrote it; empty where it waits for no answer."""
    return task.question if task.status is Status.CLARIFICATION else ""


def last_failure(task: Task) -> str:
    """The gate that sent the work back last and what it found first; empty where none has."""
    told = [it.feedback for it in task.history if it.feedback]
    if not told:
        return ""
    return f"{told[-1].gate_name}: {headline(told[-1].findings)}"


# Why a task is stuck, for people; where its agents stopped too often the feedback says all.
CAUSES = {
    Cause.CRASH_THRESHOLD: "its agents stopped without handing in",
    Cause.REVIEW_ROUNDS: "its reviews failed too often",
    Cause.MAX_ITERATIONS: "its gates failed too often",
    Cause.FAIL_FAST: "a gate failed that allows no second try",
    Cause.GATE_BROKEN: "a gate could not run",
    Cause.BUDGET: "its budget is used up",
    Cause.LOGIN: "its agent could not log in",
    Cause.ESCALATION_THRESHOLD: "too many attempts failed",
    Cause.DROPPED_FROM_TRAIN: "its change was taken out of the merge queue",
    Cause.UNJUDGED: "no gate judges it",
    Cause.SERVICE: "a service that it needs did not start",
}
_SIZED = frozenset({NeedKind.APPROVE, NeedKind.LAND, NeedKind.HELD})


def _with_commands(need: Need) -> str:
    return "; ".join((need.ask, *(f"{it.verb}: {it.command}" for it in need.actions)))


def _unstick(task: Task) -> Need:
    why = task.phase.last_feedback.summary if isinstance(task.phase, Stuck) else ""
    if not why or task.cause is not Cause.CRASH_THRESHOLD:
        cause = CAUSES[task.cause] if task.cause else "stuck"
        why = f"{cause}: {why}" if why else cause
    _, status = UNSTUCK.get(task.cause, SENT_BACK)
    back = Action("send it back", f"lockgate task update {task.id} --status {status}")
    return Need(NeedKind.STUCK, why, (_why(task), back))


def _unpause(task: Task) -> Need:
    resume = Action("go on", f"lockgate resume {task.id} --directive TEXT")
    return Need(NeedKind.PAUSED, f"{task.failed_attempts} attempts failed", (resume,))


def _question(task: Task) -> Need:
    answer = Action("answer", f"lockgate answer {task.id} -m TEXT")
    asked = f"asks: {_gist(asks(task))}" if asks(task) else "asks a question"
    return Need(NeedKind.ANSWER, asked, (answer,))


def _landing(task: Task) -> Need | None:
    approve = Action("land it", f"lockgate approve {task.id}")
    if task.held:
        return Need(NeedKind.HELD, f"held: {task.held}", (approve,))
    if task.to_land or task.landed:
        return None
    steers = f"; {told_of(files)}" if (files := unseen(task)) else ""
    return Need(NeedKind.LAND, f"all gates passed{steers}", (_read(task), approve))


def _gate(task: Task) -> Need | None:
    if not task.waiting:
        return _limit(task)
    yes = Action("approve", f"lockgate approve {task.id}")
    no = Action("reject", f"lockgate reject {task.id} -m TEXT")
    return Need(NeedKind.APPROVE, f"gate {task.waiting} waits for you", (_read(task), yes, no))


def _worker(task: Task) -> Need | None:
    if task.dead:
        return _limit(task) or Need(NeedKind.DEAD, "its agent is not running", (_again(task),))
    if task.escalated:
        look = Action("look", f"lockgate task peek {task.id}")
        help = Action("help", f"lockgate takeover {task.id}")
        told = f"{task.escalated}; a fresh agent works on it"
        return Need(NeedKind.ESCALATION, told, (look, help))
    return None


def _limit(task: Task) -> Need | None:
    """Where it does not go on by itself: only then does it have both marks."""
    if not (task.dead and task.not_before):
        return None
    return Need(NeedKind.DEAD, "its agent hit a usage limit", (_again(task),))


def _nothing(_task: Task) -> None:
    return None


_NEEDS: Mapping[Status, Callable[[Task], Need | None]] = {
    Status.PENDING: _nothing,
    Status.CLARIFICATION: _question,
    Status.WORKING: _worker,
    Status.AGENT_REVIEW: _gate,
    Status.REVIEWING: _landing,
    Status.STUCK: _unstick,
    Status.PAUSED_FOR_INTERVENTION: _unpause,
    Status.DONE: _nothing,
    Status.CANCELLED: _nothing,
}


def _again(task: Task) -> Action:
    return Action("start it again", f"lockgate task respawn {task.id}")


def _why(task: Task) -> Action:
    return Action("see why", f"lockgate task why {task.id}")


def _read(task: Task) -> Action:
    return Action("read it", f"lockgate diff {task.id}")


def _gist(text: str) -> str:
    """The text in one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= GIST else f"{line[: GIST - 1]}…"
