"""Read models of one task: all that is kept of it, and a move that is not possible yet."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from lockgate.core.lifecycle.advice import Advice, Surroundings, advice
from lockgate.core.lifecycle.decision import EvaluateGates, Evidence, PublishChange, SpawnAgent
from lockgate.core.lifecycle.map import RULES, Rule, unmet
from lockgate.core.lifecycle.needs import Need, NeedKind, Trouble, need_of
from lockgate.core.lifecycle.records import ENDED
from lockgate.core.model.facts import StoredEvent, as_facts
from lockgate.core.model.task import (
    Actor,
    ProjectId,
    Session,
    Status,
    Task,
    TaskId,
)
from lockgate.core.text.task_file import (
    BrokenFrontmatter,
    Missing,
    Readable,
    Unreadable,
    frontmatter,
)
from lockgate.errors import LockgateError
from lockgate.ports import (
    GateRecord,
    PendingEffect,
    Project,
    Store,
    TaskFiles,
    of_project,
)
from lockgate.services.task.callers import HUMAN
from lockgate.services.task.evidence import Witness, behind
from lockgate.services.task.logins import login_in, usage_limits

PAGE = 50
BATCH = 1000
NO_TROUBLES: Mapping[str, Trouble] = {}


class GateView(Struct, frozen=True):
    """A gate of the last evaluation; what it said is in `record` where it was run by Lockgate."""

    gate: str
    result: str
    why: str
    record: GateRecord | None


class TaskView(Struct, frozen=True, kw_only=True):
    task: Task
    trouble: str | None
    body: str | None
    sessions: tuple[Session, ...]
    pending: tuple[PendingEffect, ...]
    gates: tuple[GateView, ...]


class WhyRow(Struct, frozen=True, kw_only=True):
    """One arrow from where the task stands, and what it still wants."""

    rule: Rule
    asks: tuple[str, ...]
    missing: str | None
    fix: str


class Why(Struct, frozen=True):
    """Why a task is where it is: the one thing that moves it on, and all moves from there."""

    task: Task
    advice: Advice
    moves: tuple[WhyRow, ...]
    need: Need | None = None


class Limited(Struct, frozen=True, kw_only=True):
    """A login whose usage limit is reached: the agents that use it, and what its tasks do."""

    agents: tuple[str, ...]
    until: float
    waiting: int  # tasks that wait for it
    gone_on: tuple[tuple[str, int], ...] = ()  # agents that stand in, and for how many tasks


RUNNING = frozenset({Status.PENDING, Status.WORKING, Status.AGENT_REVIEW})
BEGINNINGS = frozenset({"task.created", "task.imported", "GateEvaluationStarted"})
ON_ITS_WAY = (SpawnAgent, EvaluateGates, PublishChange)


class Views(Struct, frozen=True):
    store: Store
    files: TaskFiles
    witness: Witness

    def load(self, id: TaskId) -> Task:
        return self.store.load(id)

    def project_of(self, task: Task) -> Project:
        return self.store.project(task.project)

    def place(self, id: TaskId) -> str:
        """Where its TASK.md is."""
        return self.files.place(id)

    def pending(self, id: TaskId, limit: int) -> tuple[PendingEffect, ...]:
        return self.store.pending_effects(id, limit)

    def first_broken_event(self) -> int | None:
        """The first event of the log that is not what was written; None where all are."""
        return self.store.first_broken_event()

    def newest(self, project: ProjectId, limit: int) -> tuple[Task, ...]:
        return self.store.page(of_project(project), None, limit).tasks

    def task(self, id: TaskId) -> TaskView:
        task = self.store.load(id)
        text = self.files.read(id)
        return TaskView(
            task=task,
            trouble=self._trouble(task),
            body=text.body if isinstance(text, Readable) else self._kept(task),
            sessions=self.store.sessions(id),
            pending=self.store.pending_effects(id, PAGE),
            gates=self._gates(id),
        )

    def limited(self) -> tuple[Limited, ...]:
        """The logins whose usage limit is reached."""
        return tuple(self._limited())

    def alive(self) -> tuple[Session, ...]:
        """The sessions of agents that are at work."""
        return self.store.sessions_alive()

    def _limited(self) -> Iterator[Limited]:
        """A task waits where no session of it runs."""
        now = self.witness.clock.now()
        limits = usage_limits(self.store, now)
        if not limits:
            return
        hit = [(login_in(it), it.agent) for it in self.store.sessions_limited(now)]
        working = {it.task for it in self.store.sessions_alive()}
        tasks = [(it, *self._logins(it)) for it in self._all(RUNNING)]
        for login, until in limits.items():
            waits = [it for it, its, _ in tasks if its == login and it.id not in working]
            others = Counter(it.agent for it, _, chosen in tasks if chosen == login)
            names = [agent for known, agent in hit if known == login]
            names += [it.agent for it in waits]
            yield Limited(
                agents=tuple(dict.fromkeys(names)),
                until=until,
                waiting=len(waits),
                gone_on=tuple(sorted(others.items())),
            )

    def _waits_for_a_limit(self, seen: Evidence) -> bool:
        """Whether its agent's login is limited, and no session of it runs."""
        limits, task = usage_limits(self.store, seen.now), seen.task
        if not limits or any(it.ended is None for it in self.store.sessions(task.id)):
            return False
        return self._logins(task)[0] in limits

    def _logins(self, task: Task) -> tuple[str, str]:
        """Of the agent that works on it, and of the one that this one stands in for."""
        logins, configuration = self.witness.logins, self.witness.configuration
        try:
            settings = configuration.settings_for(task, self.store.project(task.project))
            chosen = logins.login(task.instead_of, settings) if task.instead_of else ""
            return logins.login(task.agent, settings), chosen
        except LockgateError:
            return "", ""

    def why(self, id: TaskId, troubles: Mapping[str, Trouble] = NO_TROUBLES) -> Why:
        """What moves the task on, and every move that somebody may ask for here.

        `troubles` are those of the loop's lanes, where the loop is this process's.
        """
        seen = self.witness.look(id, HUMAN).evidence
        lane = troubles.get(f"queue of {self.store.project(seen.task.project).name}")
        blocked = lane.why if lane else ""
        rules = [rule for rule in RULES if rule.source is seen.task.status and rule.by]
        around = Surroundings(
            unfinished=self._unfinished(seen.task),
            blocked=blocked,
            limited=self._waits_for_a_limit(seen),
        )
        moves = tuple(_why(seen, rule) for rule in rules)
        return Why(seen.task, advice(seen, around), moves, need_of(seen.task))

    def _unfinished(self, task: Task) -> tuple[TaskId, ...]:
        """One that was deleted counts: nobody knows whether it was done."""
        named = ((id, self.store.find(id)) for id in task.depends_on)
        return tuple(id for id, it in named if it is None or it.status is not Status.DONE)

    def lands_by_itself(self, task: Task) -> bool:
        """As its target's configuration has it now, which is what the train goes by."""
        from lockgate.core.config.settings import MergeMode, MergeTarget  # noqa: PLC0415 - as below
        from lockgate.core.train.entries import lands_alone  # noqa: PLC0415 - who only looks needs none

        try:
            settings = self.witness.configuration.settings_of(self.store.project(task.project))
        except LockgateError:
            return False
        by_forge = settings.merge.target is MergeTarget.PULL_REQUEST
        return lands_alone(task, MergeMode.AUTO if by_forge else settings.merge.mode)

    def project_id(self, id: TaskId) -> ProjectId | None:
        """None where the task is gone."""
        task = self.store.find(id)
        return task.project if task else None

    def events(self, id: TaskId | None, since: int, limit: int) -> tuple[StoredEvent, ...]:
        return self.store.events(id, since, limit)

    def all_events(self, id: TaskId) -> tuple[StoredEvent, ...]:
        """Every event of one task; its life is finite."""
        found: list[StoredEvent] = []
        while more := self.store.events(id, found[-1].seq if found else 0, BATCH):
            found += more
        return tuple(found)

    def _all(self, statuses: frozenset[Status]) -> Iterator[Task]:
        page = self.store.page(of_project(None, statuses), None, BATCH)
        yield from page.tasks
        while page.after is not None:
            page = self.store.page(of_project(None, statuses), page.after, BATCH)
            yield from page.tasks

    def _gates(self, id: TaskId) -> tuple[GateView, ...]:
        """In the order in which they first spoke, each with its last word."""
        last: dict[str, StoredEvent] = {}
        for event in self.all_events(id):
            if event.type in BEGINNINGS:
                last = {}
            elif event.type == "GateCompleted":
                last[str(event.data["gate_name"])] = event
        kept = {(it.gate, it.time): it for it in self.store.gate_results(id, 0, BATCH)}
        return tuple(
            GateView(gate, str(it.data["result"]), str(it.data["why"]), kept.get((gate, it.time)))
            for gate, it in last.items()
        )

    def _kept(self, task: Task) -> str | None:
        """The files of a task that ended long ago are removed; the database has its text."""
        return self.store.body(task.id) if task.status in ENDED else None

    def _trouble(self, task: Task) -> str | None:
        match self.files.read(task.id):
            case Missing():
                return None if task.status in ENDED else "TASK.md is missing"
            case Unreadable() as bad:
                return bad.why
            case Readable() as text:
                if self.files.shows(text, frontmatter(task)):
                    return None
                if behind(self.store, task.id):
                    return "TASK.md could not be written; the next move tries again"
                fields = self.files.fields(text)
                if isinstance(fields, BrokenFrontmatter):
                    return f"TASK.md's frontmatter is broken: {fields.why}"
                return "TASK.md's frontmatter was edited; the next move puts it back"


def _why(seen: Evidence, rule: Rule) -> WhyRow:
    missing = unmet(seen, rule)
    return WhyRow(
        rule=rule,
        asks=tuple((need.__doc__ or "").strip() for need in (rule.need, rule.proof) if need),
        missing=missing.why if missing else None,
        fix=missing.fix if missing else "",
    )


def at_rest(task: Task, pending: Iterable[PendingEffect], *, lands_by_itself: bool) -> bool:
    """Whether nothing more happens to it before a human acts."""
    if task.troubled:
        return True
    if any(isinstance(it.effect, ON_ITS_WAY) for it in pending):
        return False
    if task.status is Status.REVIEWING and not task.held:
        return not (lands_by_itself or task.to_land or task.landed)
    if task.status is Status.WORKING and not task.dead:
        return False  # its agent works, whatever a human should look at
    need = need_of(task)
    ended = task.status in {Status.DONE, Status.CANCELLED}
    return ended or (need is not None and need.kind is not NeedKind.YOURS)


def task_facts(task: Task) -> dict[str, object]:
    """A task as JSON shows it: statuses as people write them."""
    facts: dict[str, object] = as_facts(task)
    facts["phase"] = phase_facts(task)
    facts["spent"] = sorted(task.spent)
    facts["depends_on"] = list(task.depends_on)
    return facts


def phase_facts(task: Task) -> Mapping[str, object] | None:
    if task.phase is None:
        return None
    return {"name": type(task.phase).__name__, **as_facts(task.phase)}


def may_ask(rule: Rule) -> tuple[Actor, ...]:
    return tuple(actor for actor in Actor if actor in rule.by)


def session_facts(session: Session) -> dict[str, object]:
    """Without the token's hash, which is nobody's business."""
    return {key: value for key, value in as_facts(session).items() if key != "token_hash"}


def pending_facts(pending: PendingEffect) -> dict[str, object]:
    return {"key": pending.key, "effect": type(pending.effect).__name__, **as_facts(pending.effect)}


def gate_facts(seen: GateView) -> dict[str, object]:
    record = seen.record
    said = {"time": record.time, "data": dict(record.data)} if record else {}
    return {"gate": seen.gate, "result": seen.result, "why": seen.why, **said}


def files_in_order(task: Task, files: Iterable[str]) -> tuple[str, ...]:
    """What a human must see comes first."""
    return (*task.protected, *(file for file in files if file not in task.protected))


def why_facts(row: WhyRow) -> dict[str, object]:
    return {
        "to": row.rule.target,
        "by": list(may_ask(row.rule)),
        "asks": list(row.asks),
        "possible": row.missing is None,
        "missing": row.missing,
        "fix": row.fix,
    }
