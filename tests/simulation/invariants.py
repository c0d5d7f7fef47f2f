"""What must hold whatever happens, judged by what is in the database and in the world."""

from collections.abc import Callable, Mapping
from typing import Any

from lockgate.adapters.store import rows
from lockgate.adapters.store.json_forms import Row
from lockgate.adapters.store.sql_store import SqlStore
from lockgate.core.lifecycle.decision import Decision
from lockgate.core.lifecycle.needs import Need
from lockgate.core.model.events import SessionStarted, StatusChanged
from lockgate.core.model.facts import StoredEvent
from lockgate.core.model.task import GateKind, Session, SessionId, Status, Task, TaskId
from lockgate.ports import TaskFilter
from tests.simulation.machine import SPINS

S = Status
ENDED = frozenset({S.DONE, S.CANCELLED})
STARTS = frozenset({S.PENDING, S.WORKING, S.AGENT_REVIEW})
AT_WORK = frozenset({S.WORKING, S.AGENT_REVIEW})
MANY = 100_000
REMEMBERED = 500
SPIN = 0.03  # seconds for a turn of a loop, on average, below which it spins
PROMPT = 3.0  # seconds in which a loop looks at what has happened


def remembering(read: Callable[[Row], Task]) -> Callable[[Row], Task]:
    """The same row is the same task: in a simulation it is read thousands of times."""
    known: dict[tuple[object, ...], Task] = {}

    def task_from_row(row: Row) -> Task:
        key = tuple(row.values())
        if key not in known:
            if len(known) > REMEMBERED:
                known.clear()
            known[key] = read(row)
        return known[key]

    return task_from_row


rows.task_from_row = remembering(rows.task_from_row)  # type: ignore[assignment]  # the same, kept


class Truth:
    """The database itself, asked by nobody's door."""

    def __init__(self, database: Any) -> None:
        self.store = SqlStore(database)

    def tasks(self) -> list[Task]:
        return sorted(self.store.page(TaskFilter(), None, MANY).tasks, key=lambda it: it.id)

    def task(self, id: TaskId) -> Task | None:
        return self.store.find(id)

    def session(self, id: SessionId) -> Session | None:
        return self.store.session(id)

    def events(self) -> tuple[StoredEvent, ...]:
        return self.store.events(None, 0, MANY)


class Ledger:
    """Between a program and its store: what was acknowledged, each by its revision."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.acknowledged: dict[tuple[TaskId, int], Decision] = {}

    def over(self, port: Any) -> "Ledgered":
        return Ledgered(self, port)

    def note(self, decision: Decision) -> None:
        key = (decision.task.id, decision.task.rev)
        if key in self.acknowledged:
            self.world.wrong(f"revision {key[1]} of task {key[0]} was acknowledged twice")
        self.acknowledged[key] = decision
        self.world.seen_arriving(decision)


class Ledgered:
    def __init__(self, ledger: Ledger, port: Any) -> None:
        self._ledger, self._port = ledger, port

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def create(self, decision: Decision) -> None:
        self._noted(self._port.create, decision)

    def commit(self, decision: Decision) -> None:
        self._noted(self._port.commit, decision)

    def delete(self, decision: Decision) -> None:
        self._noted(self._port.delete, decision)

    def _noted(self, write: Callable[[Decision], None], decision: Decision) -> None:
        write(decision)
        self._ledger.note(decision)


def was_judged(world: Any, task: Task) -> str:
    """Why this candidate may not have passed its gates; empty where it may."""
    content = world.yard.content.get(task.candidate)
    if content is None:
        return f"task {task.id} passed its gates without a commit"
    kinds = {it.kind for it in (task.pinned.gates if task.pinned else ())}
    if GateKind.COMMAND in kinds and content not in world.gates.passed:
        return f"task {task.id} passed its gates, and none had run on {sorted(content)}"
    if not world.yard.is_good(content):
        return f"task {task.id} passed its gates with {sorted(content)}, which is bad"
    review = GateKind.PARALLEL_REVIEW in kinds
    if review and (task.id, task.candidate) not in world.agents.reviewed:
        return f"task {task.id} passed its review, and no reviewer had passed {sorted(content)}"
    return ""


def has_a_slot(world: Any, decision: Decision) -> str:
    """Why the session that begins with it has none; empty where it has, or needs none."""
    begun = decision.session
    if begun is None or begun.interactive or not _begins(decision):
        return ""
    others = [it.id for it in world.truth.store.sessions_alive() if it.task != begun.task]
    slots = world.rules.settings.project.slots
    if len(others) < slots:
        return ""
    return f"session {begun.id} began beside {others}, and there are {slots} slots"


def _begins(decision: Decision) -> bool:
    return any(isinstance(it, SessionStarted) for it in decision.events)


def nothing_lost(world: Any) -> list[str]:
    """Every acknowledged revision has its events in the log, once and in order."""
    truth: Truth = world.truth
    found: list[str] = []
    broken = truth.store.first_broken_event()
    if broken is not None:
        found.append(f"the chain of events is broken at {broken}")
    kept: dict[TaskId, list[str]] = {}
    for event in truth.events():
        kept.setdefault(event.task, []).append(event.type)
    told: dict[TaskId, int] = {}
    last: dict[TaskId, int] = {}
    for (id, rev), decision in sorted(world.ledger.acknowledged.items()):
        told[id] = told.get(id, 0) + len(decision.events)
        last[id] = max(last.get(id, 0), rev)
    for id, number in told.items():
        if len(kept.get(id, ())) < number:
            found.append(f"task {id} has {len(kept.get(id, ()))} events of {number} acknowledged")
    behind = [it for it in truth.tasks() if it.rev < last.get(it.id, 0)]
    return [
        *found,
        *(f"task {it.id} is at {it.rev}, and {last[it.id]} was acknowledged" for it in behind),
    ]


def replays(world: Any) -> list[str]:
    """The log alone gives the statuses that the rows have, by arrows that fit each other."""
    found: list[str] = []
    at: dict[TaskId, str] = {}
    name = StatusChanged.__name__
    for event in world.truth.events():
        if event.type != "status.changed":
            continue
        source, target = str(event.data["from"]), str(event.data["to"])
        before = at.get(event.task, S.PENDING.name)
        if before != source:
            found.append(
                f"event {event.seq} ({name}) leaves {source}, and {event.task} is {before}"
            )
        at[event.task] = target
    tasks = world.truth.tasks()
    other = [it for it in tasks if at.get(it.id, S.PENDING.name) != it.status.name]
    said = (f"task {it.id} is {it.status}, and its events say {at.get(it.id)}" for it in other)
    return [*found, *said]


def landed_once(world: Any) -> list[str]:
    """Each landing brings changes that were not there, all judged, each of a task that is done."""
    found: list[str] = []
    yard = world.yard
    before = yard.content[yard.history[0]]
    for commit in yard.history[1:]:
        content = yard.content[commit]
        new = content - before
        if commit in yard.landings:
            found += _landing(world, content, new, before)
        before = content
    names = [it.partition(".")[0] for it in before if not it.startswith("stranger")]
    twice = sorted({it for it in names if names.count(it) > 1})
    found += [f"{it} landed more than once" for it in twice]
    counts: dict[TaskId, int] = {}
    for event in world.truth.events():
        if event.type == "change.landed":
            counts[event.task] = counts.get(event.task, 0) + 1
    found += [f"task {it} was recorded as landed {n} times" for it, n in counts.items() if n > 1]
    for task in world.truth.tasks():
        there = any(it.partition(".")[0] == task.id for it in before)
        if there is not (task.status is S.DONE):
            found.append(f"task {task.id} is {task.status}, and the target has it: {there}")
    return found


def _landing(world: Any, content: Any, new: Any, before: Any) -> list[str]:
    if not new:
        return ["a landing brought nothing"]
    if not before <= content:
        return [f"a landing took {sorted(before - content)} away"]
    if content not in world.gates.passed:
        return [f"{sorted(content)} landed, and no gate had passed on it"]
    if not world.yard.is_good(content):
        return [f"{sorted(content)} landed, which is bad"]
    return []


def nobody_is_forgotten(world: Any) -> list[str]:
    """Every task has ended or needs a human, who has a command; and nothing runs for nobody."""
    found: list[str] = []
    needs = {it.task: it for it in world.needs()}
    for task in world.truth.tasks():
        if task.status in ENDED:
            continue
        need = needs.get(task.id)
        if need is None and not waits(world, task, needs):
            found.append(f"task {task.id} is {task.status} for ever, and nobody is told")
        elif need and not any(it.command for it in need.actions):
            found.append(f"task {task.id} needs a human, who has no command: {need.ask}")
    rows = {it.id for it in world.truth.store.sessions_alive()}
    runs = {it.session.id for it in world.machine.alive()}
    found += [f"agent {it} runs, and its session is over" for it in sorted(runs - rows)]
    found += [f"session {it} is open, and nothing runs" for it in sorted(rows - runs)]
    return found


def waits(world: Any, task: Task, needs: Mapping[TaskId | None, Need]) -> bool:
    """Whether it goes on once another task does, a limit is over, or its queue has been mended."""
    now, tasks = world.clock.now(), world.truth.tasks()
    if task.not_before > now or (task.status in STARTS and world.truth.store.sessions_limited(now)):
        return True
    named = [it for it in tasks if it.id in task.depends_on]
    if any(it.status not in ENDED for it in named):
        return True
    if task.status is S.REVIEWING:
        return None in needs  # of the whole queue
    at_work = [it for it in tasks if it.status in AT_WORK and not it.dead and it.not_before <= now]
    full = len(at_work) >= world.rules.settings.project.slots
    asking = any(it.id in needs for it in at_work)
    return task.status is S.PENDING and full and asking


def spins(world: Any) -> str:
    """A loop that looks again and again though nothing happens."""
    for it in world.up():
        turns = it.kernel.turns
        if len(turns) > SPINS and turns[-1] - turns[0] < SPINS * SPIN:
            return f"{it.process.name} does not rest: {SPINS} turns in {turns[-1] - turns[0]:.1f} s"
    return ""


def asleep(world: Any) -> str:
    """What a loop that waits has not looked at; empty where it has."""
    for it in world.up():
        if (
            it.loop is not None
            and it.kernel.news > it.turned
            and world.scheduler.now - it.kernel.news > PROMPT
        ):
            return f"{it.process.name} sleeps, and has not looked at what happened"
    return ""
