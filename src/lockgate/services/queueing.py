"""The queue as people see and steer it: who lands next, who may, who is kept back, what landed."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from lockgate.core import train_turns
from lockgate.core.answers import rejected
from lockgate.core.decision import Decision, Evidence, Refusal
from lockgate.core.merging import places
from lockgate.core.model import Status, Task, TaskId
from lockgate.core.train_model import Built, Commit, Place, Tree
from lockgate.errors import Refused
from lockgate.ports import Project, TaskFilter
from lockgate.services.callers import Caller, must_be_human
from lockgate.services.coordinator import Coordinator
from lockgate.services.train_view import Train, TrainView

LIVE = frozenset({Status.WORKING, Status.AGENT_REVIEW, Status.REVIEWING, Status.STUCK})
MOST = 50  # live changes that a forecast looks at


@dataclass(frozen=True, slots=True)
class Forecast:
    """A change that this one would not merge with, and where."""

    task: TaskId
    summary: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verified:
    """What the note of a commit says; `problem` is why it is not to be believed, if it is not."""

    commit: Commit
    evidence: dict[str, object]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Queueing:
    view: TrainView
    coordinator: Coordinator

    def listed(self, project: Project, *, acting: bool) -> tuple[Train, tuple[Place, ...]]:
        """In the order in which they would land. `acting` says that an orchestrator is at it."""
        target, _ = self.view.target(project)
        train = self.view.train(target)
        queue = self.view.queue(train)
        built = (it.outcome for it in queue.candidates if isinstance(it.outcome, Built))
        trees = {it.tree for it in built if it.tree not in queue.results}
        running: set[Tree] = trees if acting else set()
        return train, places(self.view.queue(train, running))

    def approve(self, id: TaskId, patch: str, caller: Caller) -> Task:
        """What could not be judged is tried once more."""
        what = f"task {id} was not let land"
        task = self._turn(id, what, lambda seen: train_turns.approved(seen, patch), caller)
        target, _ = self.view.target(self.view.store.project(task.project))
        self.view.log.forget_unjudged(target.name)
        return task

    def hold(self, id: TaskId, why: str, caller: Caller) -> Task:
        reason = why.strip() or "a human holds it"
        what = f"task {id} was not held"
        return self._turn(id, what, lambda seen: train_turns.held(seen, reason), caller)

    def drop(self, id: TaskId, why: str, caller: Caller) -> Task:
        def decide(seen: Evidence) -> Decision | Refusal:
            if seen.task.status is Status.REVIEWING:
                return rejected(seen, why, (), "")
            return train_turns.held(seen, why)  # which refuses, and says why

        return self._turn(id, f"task {id} was not dropped", decide, caller)

    def forecast(self, task: Task) -> tuple[Forecast, ...]:
        """Which other live changes this one would conflict with, if both were to land."""
        if not task.candidate:
            return ()
        project = self.view.store.project(task.project)
        page = self.view.store.page(TaskFilter(task.project, LIVE), None, MOST)
        found: list[Forecast] = []
        for other in page.tasks:
            if other.id != task.id and other.candidate:
                one, two = Commit(task.candidate), Commit(other.candidate)
                files = self.view.yard.overlap(project, one, two)
                found += [Forecast(other.id, other.summary, files)] if files else []
        return tuple(found)

    def verify(self, project: Project, name: str) -> Verified | None:
        """None where git knows no such commit. A note that does not fit its commit is no proof."""
        found = self.view.yard.note_of(project, name)
        if found is None:
            return None
        commit, text = found
        if text is None:
            return Verified(commit, {}, "it did not come through the queue: it has no evidence")
        evidence = _object(text)
        if evidence is None or evidence.get("commit") != commit:
            return Verified(commit, evidence or {}, "its evidence is another commit's, or damaged")
        return Verified(commit, evidence)

    def _turn(
        self,
        id: TaskId,
        what: str,
        decide: Callable[[Evidence], Decision | Refusal],
        caller: Caller,
    ) -> Task:
        must_be_human(caller, what)

        def taken(seen: Evidence) -> Decision:
            answer = decide(seen)
            if isinstance(answer, Refusal):
                raise Refused(what, why=answer.why, fix=answer.fix)
            return answer

        return self.coordinator.turn(id, taken, caller)


def _object(text: str) -> dict[str, object] | None:
    try:
        found: object = json.loads(text)
    except ValueError:
        return None
    return cast("dict[str, object]", found) if isinstance(found, dict) else None
