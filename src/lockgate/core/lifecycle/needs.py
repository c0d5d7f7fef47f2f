"""What needs a human: why, how long, how many tasks wait behind it, and the commands that answer.

A need is computed from the task's row and what stands around it; nothing of it is stored.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.model.facts import json_facts
from lockgate.core.model.findings import headline, normalise
from lockgate.core.model.landings import PullShown
from lockgate.core.model.limits import ANY_FAILURES, FIRST_WAIT, LONGEST_WAIT, SAME_FAILURES
from lockgate.core.model.task import Cause, ProjectId, Status, Stuck, Task, TaskId
from lockgate.core.text.steering import told_of, unseen

GIST = 140  # characters of an ask
WHOLE = 2000  # characters of it where there is room
RUN = "; run: "  # between why nothing lands and the command that changes it
# Why a task is stuck: what to say of that, and the status that a human gives it.
UNSTUCK: Mapping[Cause | None, tuple[str, str]] = {
    Cause.GATE_BROKEN: ("a gate could not run; once it can", "agent-review"),
    Cause.SERVICE: ("a service was not ready; once it is, see [[services]]", "working"),
    Cause.BUDGET: ("its budget is used up; to give it another", "working"),
}
SENT_BACK = ("it is stuck; to send it back to an agent with a hint", "working --directive TEXT")
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
ENDED = frozenset({Status.DONE, Status.CANCELLED})


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
    RED_TIP = "red-tip"
    CHECKOUT = "checkout"
    TRUST = "trust"
    LOGIN = "login"
    LIMIT = "limit"
    DEPENDENCY = "dependency"
    BUDGET = "budget"
    YOURS = "yours"
    SURROUNDINGS = "surroundings"  # of the loop: what no task can be blamed for
    TROUBLE = "trouble"  # of the loop, with a task


KINDS = {kind: place for place, kind in enumerate(NeedKind)}
# Kinds in which the row moves on while the need stays: it is known by when the status began.
_MOVING = frozenset({NeedKind.ESCALATION, NeedKind.TROUBLE, NeedKind.YOURS})


class Action(Struct, frozen=True):
    """One way to answer: a verb for people, and the command to paste."""

    verb: str
    command: str


class Need(Struct, frozen=True, kw_only=True):
    """`key` is the same for as long as the cause is; `dimmed` where somebody has seen it.

    `ask` fits into a list; `whole` is the same at length, for a page or a message of its own.
    """

    key: str
    kind: NeedKind
    project: ProjectId
    ask: str
    since: float
    whole: str = ""
    task: TaskId | None = None
    priority: int = 3
    blocks: int = 0
    patch: str = ""
    actions: tuple[Action, ...] = ()
    dimmed: bool = False
    pull: PullShown | None = None  # of its task

    def facts(self) -> dict[str, object]:
        return json_facts(self)


class Around(Struct, frozen=True, kw_only=True):
    """What the task's own row does not say and a need depends on."""

    blocks: int = 0  # tasks that wait for it
    lands_alone: bool = False  # the train lands its change with no human


NOTHING = Around()


# Dependencies that will not be done by themselves.


_LOST = frozenset({Status.CANCELLED, Status.STUCK, Status.PAUSED_FOR_INTERVENTION})


def lost_dependencies(statuses: Mapping[TaskId, Status | None]) -> str:
    """Which tasks of these are not going to be done by themselves; empty where all may be.

    None stands for a task that was deleted: nobody knows whether it was done.
    """
    return ", ".join(
        f"{id} {'is ' + status if status else 'was deleted'}"
        for id, status in statuses.items()
        if status is None or status in _LOST
    )


# What the loop failed to do.


class Trouble(Struct, frozen=True, kw_only=True):
    """Why a lane of the loop failed, and how often in a row it has failed in this way.

    `kind` is that of a need, where a human is needed at once: a queue that cannot move.
    """

    why: str
    times: int = 1
    task: TaskId | None = None  # the lane's task, where it has one
    kind: str = ""
    project: ProjectId | None = None
    since: float = 0.0
    tries: int = 1  # in a row, whatever the reason was each time

    @property
    def needs_human(self) -> bool:
        return self.times >= SAME_FAILURES or self.tries >= ANY_FAILURES

    @property
    def again_after(self) -> float:
        """Seconds until the next try: each wait is twice as long as the one before."""
        doublings = min(self.tries - 1, 10)
        return min(FIRST_WAIT * 2.0**doublings, LONGEST_WAIT)


def failed(
    before: Trouble | None, why: str, task: TaskId | None = None, now: float = 0.0
) -> Trouble:
    """The lane's trouble after one more failure; a failure of another kind is counted from one."""
    if before is None:
        return Trouble(why=why, task=task, since=now)
    same, tries = _same(before.why, why), before.tries + 1
    times, since = (before.times + 1, before.since) if same else (1, now)
    return Trouble(why=why, times=times, task=task, since=since, tries=tries)


def is_news(task: Task, trouble: Trouble) -> bool:
    """Whether a human must be told, and the task does not say it yet."""
    return trouble.needs_human and not _same(task.troubled, trouble.why)


def _same(one: str, other: str) -> bool:
    return normalise(one) == normalise(other)


# Needs of a task.


class _Said(Struct, frozen=True):
    kind: NeedKind
    ask: str
    actions: tuple[Action, ...]


def need_of(task: Task, around: Around = NOTHING) -> Need | None:
    """What a human is to do for the task; None where it goes on by itself, or has ended."""
    said = _said_of(task, around)
    if said is None:
        return None
    moving = said.kind in _MOVING
    return Need(
        key=f"{task.id}:{task.since if moving else task.rev}:{said.kind}",
        kind=said.kind,
        project=task.project,
        task=task.id,
        ask=gist(said.ask),
        whole=gist(said.ask, WHOLE),
        since=_since(task, said.kind),
        priority=task.priority,
        blocks=around.blocks,
        patch=task.patch if said.kind in _SIZED else "",
        actions=said.actions,
    )


def order(need: Need) -> tuple[bool, bool, int, int, float, str]:
    """By this needs are sorted: seen ones last; who waits behind it, priority, kind, age."""
    return (
        need.dimmed,
        need.blocks == 0,
        need.priority,
        KINDS[need.kind],
        need.since,
        need.key,
    )


def in_one_line(need: Need) -> str:
    """The whole ask with its commands."""
    if need.kind is NeedKind.TROUBLE:
        return need.whole
    return "; ".join((need.whole, *(f"{it.verb}: {it.command}" for it in need.actions)))


def gist(text: str, most: int = GIST) -> str:
    """The text in one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


# Needs of a whole project, or of the loop.


class Whole(Struct, frozen=True, kw_only=True):
    """A project, and where its repository is, as its needs name it."""

    id: ProjectId = ProjectId("")
    name: str = ""
    root: str = ""


def untrusted(project: Whole, why: str, fix: str, since: float) -> Need:
    """Nothing of it runs before a human agrees to what it asks for."""
    ask = f"nothing in {project.name} runs: {why}"
    return _of_project(project, NeedKind.TRUST, ask, since, Action("agree", fix))


def lane_need(lane: str, trouble: Trouble, project: Whole | None) -> Need | None:
    """What keeps a queue, or what the loop fails to do again and again; None where it is no need.

    A task's own lanes are told by the task.
    """
    if trouble.task is not None or not (trouble.kind or trouble.needs_human):
        return None
    kind = NeedKind(trouble.kind) if trouble.kind else NeedKind.SURROUNDINGS
    why, _, command = trouble.why.partition(RUN)
    known = project or Whole()
    look = Action("see the queue", f"cd {known.root} && lockgate queue list")
    if kind is NeedKind.BUDGET:
        look = Action("raise it", f"edit [budget] day_usd in {known.root}/.lockgate/config.toml")
    elif command:
        look = Action("put them away", command)
    elif not project:
        look = Action("see what is wrong", "lockgate doctor")
    need = _of_project(known, kind, f"{lane}: {why}", trouble.since, look)
    return replace(need, key=f"{known.id}:{kind}:{lane}") if kind in _LANES else need


def _of_project(project: Whole, kind: NeedKind, ask: str, since: float, *actions: Action) -> Need:
    return Need(
        key=f"{project.id}:{kind}",
        kind=kind,
        project=project.id,
        ask=gist(ask),
        whole=gist(ask, WHOLE),
        since=since,
        actions=actions,
    )


# What a task needs, by where it stands.


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


_SIZED = frozenset({NeedKind.APPROVE, NeedKind.LAND, NeedKind.HELD})
_LANES = frozenset({NeedKind.SURROUNDINGS})
# A cause that has a kind of its own.
_BY_CAUSE = {Cause.BUDGET: NeedKind.BUDGET, Cause.LOGIN: NeedKind.LOGIN}
_FROM_THE_ROW = frozenset(
    {NeedKind.APPROVE, NeedKind.DEAD, NeedKind.LIMIT, NeedKind.ESCALATION, NeedKind.TROUBLE}
)


def _since(task: Task, kind: NeedKind) -> float:
    """When it began: with the status, or with the last change of a row that rests since."""
    if kind is NeedKind.YOURS:
        return task.taken_at
    return task.updated if kind in _FROM_THE_ROW else task.entered or task.updated


def _said_of(task: Task, around: Around) -> _Said | None:
    if task.troubled:
        why = f"Lockgate cannot go on: {task.troubled}"
        return _Said(NeedKind.TROUBLE, why, (_why(task),))
    if task.taken_over and task.status not in ENDED:
        back = Action("give it back", f"lockgate handback {task.id}")
        return _Said(NeedKind.YOURS, "you took it over", (back,))
    if task.in_vain and task.status in _WAITING:
        return _lost(task)
    said = _NEEDS[task.status](task, around)
    if said and said.kind in _SIZED and large_change(task):
        return replace(said, ask=f"{large_change(task)}; {said.ask}")
    return said


def _unstick(task: Task, _around: Around) -> _Said:
    why = task.phase.last_feedback.summary if isinstance(task.phase, Stuck) else ""
    if not why or task.cause is not Cause.CRASH_THRESHOLD:
        cause = CAUSES[task.cause] if task.cause else "stuck"
        why = f"{cause}: {why}" if why else cause
    _, status = UNSTUCK.get(task.cause, SENT_BACK)
    back = Action("send it back", f"lockgate task update {task.id} --status {status}")
    kind = _BY_CAUSE.get(task.cause, NeedKind.STUCK) if task.cause else NeedKind.STUCK
    first = Action("log in", f"lockgate auth {task.agent}") if kind is NeedKind.LOGIN else None
    return _Said(kind, why, (first or _why(task), back))


def _unpause(task: Task, _around: Around) -> _Said:
    resume = Action("go on", f"lockgate resume {task.id} --directive TEXT")
    return _Said(NeedKind.PAUSED, f"{task.failed_attempts} attempts failed", (resume,))


def _question(task: Task, _around: Around) -> _Said:
    answer = Action("answer", f"lockgate answer {task.id} -m TEXT")
    asked = f"asks: {asks(task)}" if asks(task) else "asks a question"
    return _Said(NeedKind.ANSWER, asked, (answer,))


def _landing(task: Task, around: Around) -> _Said | None:
    approve = Action("land it", f"lockgate approve {task.id}")
    if task.held:
        return _Said(NeedKind.HELD, f"held: {task.held}", (_read(task), approve))
    if task.to_land or task.landed or around.lands_alone:
        return None
    steers = f"; {told_of(files)}" if (files := unseen(task)) else ""
    return _Said(NeedKind.LAND, f"all gates passed{steers}", (_read(task), approve))


def _gate(task: Task, _around: Around) -> _Said | None:
    if not task.waiting:
        return _limit(task)
    yes = Action("approve", f"lockgate approve {task.id}")
    no = Action("reject", f"lockgate reject {task.id} -m TEXT")
    asked = f": {task.asked}" if task.asked else ""
    told = f"gate {task.waiting} waits for you{asked}"
    return _Said(NeedKind.APPROVE, told, (_read(task), yes, no))


def _worker(task: Task, _around: Around) -> _Said | None:
    if task.dead:
        return _limit(task) or _Said(NeedKind.DEAD, "its agent is not running", (_again(task),))
    if task.escalated:
        look = Action("look", f"lockgate task peek {task.id}")
        help = Action("help", f"lockgate takeover {task.id}")
        told = f"{task.escalated}; a fresh agent works on it"
        return _Said(NeedKind.ESCALATION, told, (look, help))
    return None


def _limit(task: Task) -> _Said | None:
    """Where it does not go on by itself: only then does it have both marks."""
    if not (task.dead and task.not_before):
        return None
    return _Said(NeedKind.LIMIT, "its agent hit a usage limit", (_again(task),))


_WAITING = frozenset({Status.PENDING, Status.REVIEWING})  # where a task waits for others


def _lost(task: Task) -> _Said:
    """What it waits for will not be done by itself: drop that, give it up too, or wait."""
    names = [it.partition(" ")[0] for it in task.in_vain.split(", ")]
    drop = [
        Action(f"do not wait for {it}", f"lockgate task drop-dependency {task.id} {it}")
        for it in names
    ]
    cancel = Action("cancel it too", f"lockgate task cancel {task.id}")
    wait = Action("or wait, and see to that one", f"lockgate task why {names[0]}")
    return _Said(NeedKind.DEPENDENCY, f"it waits in vain: {task.in_vain}", (*drop, cancel, wait))


def _nothing(_task: Task, _around: Around) -> None:
    return None


_NEEDS: Mapping[Status, Callable[[Task, Around], _Said | None]] = {
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
