"""Tasks that wait to land, as the planner sees them."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.config.settings import MergeMode, Settings
from lockgate.core.forge.model import Intent, Pull, is_offered, waits_for
from lockgate.core.model.findings import Finding, by_priority
from lockgate.core.model.gates import CommandGate, Where
from lockgate.core.model.results import Broken, Failed, Passed, SingleGateResult, Waiting
from lockgate.core.model.task import GatesPassed, Task, TaskId
from lockgate.core.text.feedback import place
from lockgate.core.text.steering import told_of, unseen
from lockgate.core.train.model import Broken as NotJudged
from lockgate.core.train.model import Change, Commit, Entry, Green, Red, Result

SHOWN = 20  # findings that a dropped change is told of


class Waits(Struct, frozen=True):
    """A task in the queue, the tasks that must land before it, and how many had when it came."""

    task: Task
    unlanded: tuple[TaskId, ...] = ()
    entered: int = 0
    pull: Pull | None = None


def pull_entries(waiting: Iterable[Waits], tip: Commit) -> tuple[Entry, ...]:
    """Where changes land by pull requests: what waits there is held, and blocks nobody."""
    return tuple(_pull_entry(it, tip) for it in waiting)


def entries(waiting: Iterable[Waits], mode: MergeMode) -> tuple[Entry, ...]:
    return tuple(_entry(it, mode) for it in waiting)


def may_land(task: Task, mode: MergeMode) -> bool:
    """Nobody holds it, and where landing is by hand a human has said yes."""
    return not task.held and (task.to_land or lands_alone(task, mode))


def lands_alone(task: Task, mode: MergeMode) -> bool:
    """Without a human's yes to landing. What steers has been asked of before, or waits for one."""
    return mode is MergeMode.AUTO and not unseen(task)


def since(task: Task) -> float:
    """When it came to the queue."""
    return task.phase.completed_at if isinstance(task.phase, GatesPassed) else task.updated


def train_gates(settings: Settings) -> tuple[CommandGate, ...]:
    """Reviews and people judged the change and hold; what runs is run again, on the new tree."""
    mine = (gate for gate in settings.gates if Where.TRAIN in gate.place.on)
    return tuple(gate for gate in mine if isinstance(gate, CommandGate))


def verdict(results: Sequence[SingleGateResult]) -> Result:
    """What the gates said of a tree; one that could not judge says nothing of it."""
    for result in results:
        if isinstance(result, Failed):
            return Red(f"gate {result.gate} fails: {_told(result.findings)}")
    for result in results:
        match result:
            case Broken(gate, why) | Waiting(gate, why):
                return NotJudged(f"gate {gate} could not judge: {why}")
            case Passed() | Failed():
                pass
    return Green()


def _entry(it: Waits, mode: MergeMode) -> Entry:
    task = it.task
    steers = f"{told_of(files)}; " if (files := unseen(task)) else ""
    why = task.held or f"{steers}it waits for: lockgate approve {task.id}"
    return Entry(
        change=Change(task.id, Commit(task.candidate)),
        since=since(task),
        entered=it.entered,
        priority=task.priority,
        depends_on=it.unlanded,
        held="" if may_land(task, mode) else why,
        unjudged=bool(task.reverts and task.reverts.unjudged),
    )


def _pull_entry(it: Waits, tip: Commit) -> Entry:
    task, pull = it.task, it.pull
    entry = _entry(it, MergeMode.AUTO)
    if task.held or pull is None:
        return entry
    if not is_offered(pull, task.candidate):
        return replace(entry, held=entry.held or (waits_for(pull) if pull.intent else ""))
    return replace(
        entry,
        held=waits_for(pull),
        offered=Commit(pull.pushed),
        behind=pull.strict and pull.base != tip,
        queued=pull.queue,
        landing=pull.ready and pull.intent is Intent.MERGE,
    )


def _told(findings: Sequence[Finding]) -> str:
    lines = [_line(it) for it in by_priority(findings)[:SHOWN]]
    more = [f"and {len(findings) - SHOWN} more"] if len(findings) > SHOWN else []
    return "\n".join((*lines, *more)) or "it says nothing"


def _line(finding: Finding) -> str:
    where = f"{place(finding.location)} - " if finding.location else ""
    return f"{where}{finding.issue}"
