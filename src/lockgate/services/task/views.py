"""Read models: what every face shows of a task, a board, a move that is not possible yet."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from lockgate.core.lifecycle.advice import (
    Advice,
    Surroundings,
    Trouble,
    advice,
    goes_on,
    need_of,
    needs_human,
)
from lockgate.core.lifecycle.decision import EvaluateGates, Evidence, PublishChange, SpawnAgent
from lockgate.core.lifecycle.map import RULES, Rule, unmet
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
from lockgate.ports import GateRecord, PendingEffect, Project, Store, TaskFiles, TaskFilter
from lockgate.services.task.callers import HUMAN
from lockgate.services.task.evidence import Witness, behind
from lockgate.services.task.logins import login_in, usage_limits
from lockgate.services.task.projects import wanted

PAGE = 50
BATCH = 1000
NO_TROUBLES: Mapping[str, Trouble] = {}


class BoardRow(Struct, frozen=True):
    """A task as a list shows it; `trouble` says what is wrong with its TASK.md, if anything is.

    `asked` is what the gate asks that waits for a human; empty where none waits.
    """

    task: Task
    trouble: str | None
    asked: str = ""


class Board(Struct, frozen=True):
    rows: tuple[BoardRow, ...]
    after: TaskId | None


class Glance(Struct, frozen=True, kw_only=True):
    """The board as people see it: every task that needs a human, then a page of the others.

    `ended` counts the tasks that have landed or were cancelled and are not among the rows.
    """

    needs: tuple[BoardRow, ...]
    rows: tuple[BoardRow, ...]
    after: TaskId | None = None
    ended: Mapping[Status, int] = {}


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


class Limited(Struct, frozen=True, kw_only=True):
    """A login whose usage limit is reached: the agents that use it, and what its tasks do."""

    agents: tuple[str, ...]
    until: float
    waiting: int  # tasks that wait for it
    gone_on: tuple[tuple[str, int], ...] = ()  # agents that stand in, and for how many tasks


class Overview(Struct, frozen=True, kw_only=True):
    """The whole home at a glance; `humans` are the tasks that wait for one, and why.

    `untrusted` are the projects that ask for what no human has agreed to, and what to do.
    `lanes` are those of the loop that keep failing, where no such task says so.
    """

    counts: Mapping[Status, int]
    alive: tuple[Session, ...]
    humans: tuple[tuple[Task, str], ...]
    needs: tuple[BoardRow, ...] = ()  # the same tasks, as the board shows them
    untrusted: tuple[tuple[Project, str], ...] = ()
    lanes: tuple[tuple[str, str], ...] = ()
    limited: tuple[Limited, ...] = ()


NEEDS_HUMAN = frozenset(
    {Status.STUCK, Status.PAUSED_FOR_INTERVENTION, Status.CLARIFICATION, Status.REVIEWING}
)


# Where a human is needed now and then: by a gate that waits, by an agent that died.
BUSY = frozenset({Status.WORKING, Status.AGENT_REVIEW})
LIVE = NEEDS_HUMAN | BUSY | {Status.PENDING}
ENDED = frozenset({Status.DONE, Status.CANCELLED})
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

    def board(
        self,
        project: ProjectId | None = None,
        statuses: Iterable[Status] = (),
        after: TaskId | None = None,
        limit: int = PAGE,
    ) -> Board:
        """Of every project where none is named, and of every status."""
        page = self.store.page(TaskFilter(project, frozenset(statuses)), after, limit)
        rows = tuple(BoardRow(task, self._trouble(task)) for task in page.tasks)
        return Board(rows, page.after)

    def glance(
        self,
        project: ProjectId | None,
        statuses: frozenset[Status],
        after: TaskId | None,
        limit: int,
        lands_by_itself: Callable[[Task], bool],
    ) -> Glance:
        """Needs are never cut off; they are on the first page, so that each task is shown once."""

        def wanted(task: Task) -> bool:
            return need_of(task) is not None and not goes_on(task, lands_by_itself)

        which = TaskFilter(project, statuses)
        page = self.store.page(which, after, limit)
        needs = [] if after else [it for it in self._busy(which) if wanted(it)]
        others = [it for it in page.tasks if not wanted(it)]
        counts = self.store.counts(project)
        return Glance(
            needs=self._rows(needs, limit),
            rows=self._rows(others, limit),
            after=page.after,
            ended={it: counts[it] for it in Status if it in ENDED - statuses},
        )

    def _rows(self, tasks: Sequence[Task], read: int) -> tuple[BoardRow, ...]:
        """Only of the first ones the files are read: a list of needs may be long."""
        first = (BoardRow(it, self._trouble(it), self._asked(it)) for it in tasks[:read])
        return (*first, *(BoardRow(it, None) for it in tasks[read:]))

    def _asked(self, task: Task) -> str:
        if not (task.status is Status.AGENT_REVIEW and task.waiting):
            return ""
        asked = [it for it in self.all_events(task.id) if it.type == "HumanReviewRequested"]
        return str(asked[-1].data["prompt"]) if asked else ""

    def _busy(self, which: TaskFilter) -> Iterable[Task]:
        """The tasks of the filter that may need a human."""
        project, statuses = which.project, which.statuses
        troubled = (it for it in self.store.troubled() if project in {None, it.project})
        found = (*troubled, *self._all((NEEDS_HUMAN | BUSY) & statuses, project))
        return {it.id: it for it in found if it.status in statuses}.values()

    def board_of(self, id: TaskId) -> Board:
        """One task, as its own session may see it."""
        task = self.store.load(id)
        return Board((BoardRow(task, self._trouble(task)),), None)

    def task(self, id: TaskId) -> TaskView:
        task = self.store.load(id)
        text = self.files.read(id)
        return TaskView(
            task=task,
            trouble=self._trouble(task),
            body=text.body if isinstance(text, Readable) else None,
            sessions=self.store.sessions(id),
            pending=self.store.pending_effects(id, PAGE),
            gates=self._gates(id),
        )

    def overview(
        self,
        lands_by_itself: Callable[[Task], bool] = lambda _: False,
        troubles: Mapping[str, Trouble] = NO_TROUBLES,
    ) -> Overview:
        """`troubles` are those of the loop's lanes, where the loop is this process's."""
        found = (it for it in self._all(NEEDS_HUMAN) if needs_human(it))
        waiting = [it for it in found if not goes_on(it, lands_by_itself)]
        held = [it for it in self._all(BUSY) if needs_human(it) and not it.taken_over]
        tasks = {it.id: it for it in (*self.store.troubled(), *waiting, *held)}
        return Overview(
            counts=self.store.counts(),
            alive=self.store.sessions_alive(),
            humans=tuple((task, needs_human(task)) for task in tasks.values()),
            needs=tuple(BoardRow(it, None, self._asked(it)) for it in tasks.values()),
            untrusted=self.untrusted(filter(self._lives, self.witness.configuration.noted())),
            lanes=tuple(
                (lane, it.why)
                for lane, it in troubles.items()
                if it.needs_human and it.task not in tasks
            ),
            limited=tuple(self._limited()),
        )

    def _limited(self) -> Iterator[Limited]:
        """The logins whose usage limit is reached; a task waits where no session of it runs."""
        now = self.witness.clock.now()
        limits = usage_limits(self.store, now)
        if not limits:
            return
        hit = [(login_in(it), it.agent) for it in self.store.sessions_limited(now)]
        working = {it.task for it in self.store.sessions_alive()}
        tasks = [(it, *self._logins(it)) for it in self._all(BUSY | {Status.PENDING})]
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

    def untrusted(self, ids: Iterable[ProjectId]) -> tuple[tuple[Project, str], ...]:
        """Those in which something was refused because no human agrees to what they ask for."""
        projects = [self.store.project(id) for id in dict.fromkeys(ids)]
        told = ((it, self._unagreed(it)) for it in projects)
        return tuple((it, f"{why}; cd {it.root} && {fix}") for it, (why, fix) in told if why)

    def _unagreed(self, project: Project) -> tuple[str, str]:
        """Why nothing of it runs, and the command; also where that cannot be read."""
        try:
            new = self.witness.configuration.refused(project)
        except LockgateError as error:
            return str(error), error.fix
        return (f"it wants {wanted(new)}" if new else "", "lockgate trust")

    def _lives(self, id: ProjectId) -> bool:
        """Whether a project has a task that is neither done nor cancelled."""
        return bool(self.store.page(TaskFilter(id, LIVE), None, 1).tasks)

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
        return Why(seen.task, advice(seen, around), moves)

    def _unfinished(self, task: Task) -> tuple[TaskId, ...]:
        named = (self.store.find(id) for id in task.depends_on)
        return tuple(it.id for it in named if it and it.status is not Status.DONE)

    def events(self, id: TaskId | None, since: int, limit: int) -> tuple[StoredEvent, ...]:
        return self.store.events(id, since, limit)

    def all_events(self, id: TaskId) -> tuple[StoredEvent, ...]:
        """Every event of one task; its life is finite."""
        found: list[StoredEvent] = []
        while more := self.store.events(id, found[-1].seq if found else 0, BATCH):
            found += more
        return tuple(found)

    def _all(self, statuses: frozenset[Status], project: ProjectId | None = None) -> Iterator[Task]:
        """Every task in these statuses: of what needs a human, nothing is cut off."""
        if not statuses:
            return
        page = self.store.page(TaskFilter(project, statuses), None, BATCH)
        yield from page.tasks
        while page.after is not None:
            page = self.store.page(TaskFilter(project, statuses), page.after, BATCH)
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

    def _trouble(self, task: Task) -> str | None:
        match self.files.read(task.id):
            case Missing():
                return "TASK.md is missing"
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
    ended = task.status in {Status.DONE, Status.CANCELLED}
    return ended or (bool(needs_human(task)) and not task.taken_over)


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
