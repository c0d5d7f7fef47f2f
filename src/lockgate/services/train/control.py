"""The queue as people see and steer it: who lands next, who may, who is kept back, what landed."""

import json
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import cast

from msgspec import Struct

from lockgate.core.lifecycle import landing
from lockgate.core.lifecycle.decision import Decision, Declined, Evidence
from lockgate.core.model.people import Right
from lockgate.core.model.task import Status, Task, TaskId
from lockgate.core.train.model import Built, Commit, Hold, Place, Tree
from lockgate.core.train.offers import next_steps, standings
from lockgate.errors import Unavailable
from lockgate.ports import Project, Repository, of_project
from lockgate.services.task.callers import Caller, must_be_human
from lockgate.services.task.coordinator import Coordinator
from lockgate.services.train.view import Train, TrainView, span

LIVE = frozenset({Status.WORKING, Status.AGENT_REVIEW, Status.REVIEWING, Status.STUCK})
MOST = 50  # live changes that a forecast looks at
FIRST = 8  # of the queue, each of which is tried with each
ANOTHER_WAY = "it did not come through Lockgate's merge queue: it has no evidence note"
MISSING = "this home's log has its landing, but its note in refs/notes/lockgate is gone"
UNJUDGED = "no gate judged it: a human had it land at once"
BESIDES = "its pull request was merged with what no gate judged"
DAMAGED = "its evidence is another commit's, or damaged"
OF_ANOTHER_TREE = "its evidence is of another tree than the commit's"


class Forecast(Struct, frozen=True):
    """A change that this one would not merge with, and where."""

    task: TaskId
    summary: str
    files: tuple[str, ...]


class Clash(Struct, frozen=True):
    """Two changes of the queue that would not merge with each other, and where."""

    one: TaskId
    other: TaskId
    files: tuple[str, ...]


class Row(Struct, frozen=True):
    task: Task
    place: Place


class Listing(Struct, frozen=True):
    """In the order in which they would land; `holds` is why nothing does, if nothing does."""

    train: Train
    rows: tuple[Row, ...]
    holds: tuple[str, ...]
    clashes: tuple[Clash, ...]


class Verified(Struct, frozen=True):
    """What the note of a commit says; `problem` is why it is not to be believed, if it is not.

    `in_log`: the landing is in this home's own log, which does not need the note to know it.
    """

    commit: Commit
    evidence: dict[str, object]
    in_log: bool
    problem: str = ""


class Queueing(Struct, frozen=True):
    view: TrainView
    coordinator: Coordinator
    repository: Repository

    def listed(self, project: Project, *, acting: bool) -> Listing:
        """`acting` says that an orchestrator is at it."""
        target, _ = self.view.target(project)
        train = self.view.train(target)
        queue = self.view.queue(train)
        built = (it.outcome for it in queue.candidates if isinstance(it.outcome, Built))
        trees = {it.tree for it in built if it.tree not in queue.results}
        running: set[Tree] = trees if acting else set()
        queue = self.view.queue(train, running)
        rows = tuple(Row(self.view.store.load(it.task), it) for it in standings(queue))
        return Listing(
            train=train,
            rows=rows,
            holds=tuple(step.why for step in next_steps(queue) if isinstance(step, Hold)),
            clashes=self._clashes(project, [row.task for row in rows[:FIRST]]),
        )

    def approve(self, id: TaskId, patch: str, caller: Caller, comment: str = "") -> Task:
        """What could not be judged is tried once more."""
        what = f"task {id} was not approved for landing"

        def decide(seen: Evidence) -> Decision | Declined:
            return landing.approved(seen, patch, comment)

        return self._judged_again(self._turn(id, what, decide, caller, Right.LAND))

    def say_yes(
        self, id: TaskId, comment: str, patch: str, caller: Caller, shown: str | None = None
    ) -> Task:
        """To whatever waits for a human: a gate, or the landing; only to `shown`, if that is given.

        `shown` is the gate that was seen to wait, empty for the landing.
        """
        what = f"task {id} was not approved"

        def decide(seen: Evidence) -> Decision | Declined:
            return landing.answered_yes(seen, comment, patch, shown)

        task = self._turn(id, what, decide, caller, Right.LAND)
        return self._judged_again(task) if task.to_land else task

    def _judged_again(self, task: Task) -> Task:
        """What could not be judged in the queue is tried once more; the same task."""
        target, _ = self.view.target(self.view.store.project(task.project))
        self.view.log.forget_unjudged(target.name)
        return task

    def hold(self, id: TaskId, why: str, caller: Caller) -> Task:
        reason = why.strip() or "a human holds it"
        what = f"task {id} was not held"
        return self._turn(id, what, lambda seen: landing.held(seen, reason), caller)

    def drop(self, id: TaskId, why: str, caller: Caller) -> Task:
        what = f"task {id} was not dropped"
        return self._turn(id, what, lambda seen: landing.dropped(seen, why), caller)

    def forecast(self, task: Task) -> tuple[Forecast, ...]:
        """Which other live changes this one would conflict with, if both were to land."""
        if not task.candidate:
            return ()
        project = self.view.store.project(task.project)
        page = self.view.store.page(of_project(task.project, LIVE), None, MOST)
        found: list[Forecast] = []
        for other in page.tasks:
            files = self._overlap(project, task, other) if other.id != task.id else ()
            found += [Forecast(other.id, other.summary, files)] if files else []
        return tuple(found)

    def clashes(self, tasks: Sequence[Task]) -> tuple[Clash, ...]:
        """Among the live changes of these tasks, as far as one looks."""
        live = [it for it in tasks if it.candidate and it.status in LIVE]
        projects = {it.project: self.view.store.project(it.project) for it in live}
        found: list[Clash] = []
        for id, project in projects.items():
            found += self._clashes(project, [it for it in live if it.project == id][:FIRST])
        return tuple(found)

    def verify(self, project: Project, name: str) -> Verified | None:
        """None where git knows no such commit. A note that does not fit its commit is no proof."""
        found = self.view.yard.note_of(project, name)
        if found is None:
            return None
        commit, text = found
        in_log = self.view.log.landing_of(commit) is not None
        if text is None:
            return Verified(commit, {}, in_log, MISSING if in_log else ANOTHER_WAY)
        evidence = _object(text)
        if evidence is None or evidence.get("commit") != commit:
            return Verified(commit, evidence or {}, in_log, DAMAGED)
        if unjudged := _of(evidence.get("pull_request")).get("unjudged"):
            return Verified(commit, evidence, in_log, f"{BESIDES}: {unjudged}")
        if not _judges(evidence, self.repository.tree_of(project, commit)):
            return Verified(commit, evidence, in_log, OF_ANOTHER_TREE)
        if "unjudged" in evidence:
            return Verified(commit, evidence, in_log, _unjudged(evidence))
        return Verified(commit, evidence, in_log)

    def _clashes(self, project: Project, tasks: Sequence[Task]) -> tuple[Clash, ...]:
        pairs = ((a, b, self._overlap(project, a, b)) for a, b in combinations(tasks, 2))
        return tuple(Clash(a.id, b.id, files) for a, b, files in pairs if files)

    def _overlap(self, project: Project, one: Task, other: Task) -> tuple[str, ...]:
        """Nothing where git cannot tell: a forecast is no promise."""
        this, that = span(one), span(other)
        if not (this and that):
            return ()
        try:
            return self.view.yard.overlap(project, this, that)
        except Unavailable:
            return ()

    def _turn(
        self,
        id: TaskId,
        what: str,
        decide: Callable[[Evidence], Decision | Declined],
        caller: Caller,
        may: Right = Right.WORK,
    ) -> Task:
        must_be_human(caller, what, may)
        return self.coordinator.turn(id, decide, caller, what)


def _unjudged(evidence: dict[str, object]) -> str:
    reverts = [_of(it).get("reverts") for it in _list(evidence.get("changes"))]
    told = ", ".join(f"reverts task {it}" for it in reverts if it)
    return f"{UNJUDGED} ({told}): {evidence['unjudged']}"


def _judges(evidence: dict[str, object], tree: str | None) -> bool:
    """Whether the evidence, and each run in it, is of this very tree."""
    runs = evidence.get("train")
    proofs = [_of(_of(run).get("proof")) for run in _list(runs)]
    return evidence.get("tree") == tree and all(it.get("tree") == tree for it in proofs)


def _list(found: object) -> list[object]:
    return cast("list[object]", found) if isinstance(found, list) else [found]


def _of(found: object) -> dict[str, object]:
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}


def _object(text: str) -> dict[str, object] | None:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", found) if isinstance(found, dict) else None
