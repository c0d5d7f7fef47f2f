"""Runs the gates that a change has yet to pass, on a clean checkout, and reports to the wheel."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lockgate.core import judging
from lockgate.core.decision import Decision, Evidence, Refusal
from lockgate.core.evaluation import Broken, Passed, SingleGateResult
from lockgate.core.gates import CommandGate, Gate, Where, kind_of
from lockgate.core.model import REVIEWS, Task, TaskId
from lockgate.core.settings import Settings
from lockgate.errors import Unavailable
from lockgate.ports import Change, GateRun, GateRuns, Project, Store, Workspaces
from lockgate.services.coordinator import Coordinator
from lockgate.services.spawner import Spawner


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    home: Path
    store: Store
    coordinator: Coordinator
    workspaces: Workspaces
    gates: GateRuns
    spawner: Spawner

    def evaluate(self, id: TaskId, cancelled: Callable[[], bool]) -> None:
        """All gates up to the next review; nothing is said of an evaluation that was called off."""
        task = self.with_change(self.store.load(id))
        settings = self.spawner.settings_of(task, self.store.project(task.project))
        results = self._results(task, settings, cancelled)
        if not cancelled():
            self.coordinator.turn(id, lambda seen: judging.judged(seen, results, task.since))

    def with_change(self, task: Task) -> Task:
        """The task with the commit that is judged, taken now where its agent did not bring it."""
        if task.candidate:
            return task
        change = self._work(self.store.project(task.project), task)
        if change is None:
            return task

        def decide(seen: Evidence) -> Decision | Refusal:
            return judging.change_taken(seen, change.commit, change.files)

        return self.coordinator.turn(task.id, decide)

    def _work(self, project: Project, task: Task) -> Change | None:
        if self.workspaces.place(task.id).is_dir():
            return self.workspaces.take(project, task)
        return self.workspaces.adopt(project, task)

    def _results(
        self, task: Task, settings: Settings, cancelled: Callable[[], bool]
    ) -> tuple[SingleGateResult, ...]:
        results: list[SingleGateResult] = []
        for gate in _next_gates(task, settings):
            results.append(self._judged(task, gate, settings, cancelled))
            if cancelled() or not isinstance(results[-1], Passed):
                break
        return tuple(results)

    def _judged(
        self, task: Task, gate: Gate, settings: Settings, cancelled: Callable[[], bool]
    ) -> SingleGateResult:
        if not task.candidate:
            return Broken(gate.name, f"branch {task.branch} is neither in a workspace nor in git")
        if not isinstance(gate, CommandGate):
            return Broken(gate.name, f"this version runs no {kind_of(gate)} gates")
        if gate.place.when:
            return Broken(gate.name, "this version does not decide `when`")
        try:
            return self._run(task, gate, settings, cancelled)
        except Unavailable as error:
            return Broken(gate.name, str(error))

    def _run(
        self, task: Task, gate: CommandGate, settings: Settings, cancelled: Callable[[], bool]
    ) -> SingleGateResult:
        project = self.store.project(task.project)
        place = self.home / "runs" / task.id / f"{task.iteration}-{gate.name}"
        self.workspaces.discard(place)
        try:
            self.workspaces.checkout(project, task, task.candidate, place)
            self.workspaces.set_up(project, task, settings, place)
            run = GateRun(
                checkout=place,
                base=self.workspaces.base(project),
                commit=task.candidate,
                tree=self.workspaces.tree(project, task.candidate),
                config_hash=task.pinned.config_hash if task.pinned else "",
                sandbox=settings.sandbox,
            )
            return self.gates.run(gate, run, cancelled)
        finally:
            self.workspaces.discard(place)


def _next_gates(task: Task, settings: Settings) -> Iterator[Gate]:
    """Those of a change that have not passed on it, up to the first review among them."""
    for gate in settings.gates:
        if Where.CHANGE not in gate.place.on or gate.name in task.passed:
            continue
        if kind_of(gate) in REVIEWS:
            return
        yield gate
