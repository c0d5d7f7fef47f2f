"""Tests a tree of the train: its command gates, on a clean checkout of exactly that commit."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from lockgate.core.config.settings import Settings
from lockgate.core.model.event_log import canonical
from lockgate.core.model.gates import Where
from lockgate.core.model.results import Passed
from lockgate.core.model.task import Pinned, Task, TaskId
from lockgate.core.train.entries import train_gates, verdict
from lockgate.core.train.model import Built, Result
from lockgate.ports import Project, Workspaces
from lockgate.services.gate_runner import Evaluation, GateRunner

IDS = 12  # characters of a project and a tree that name its checkouts


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """A commit to test, by the rules of the tip that it would go on."""

    project: Project
    settings: Settings
    rules: Pinned
    built: Built


@dataclass(frozen=True, slots=True)
class TrainTests:
    workspaces: Workspaces
    runner: GateRunner

    def run(self, it: Tested, cancelled: Callable[[], bool]) -> tuple[Result, str]:
        """The tree's result, and what ran, as JSON."""
        gates = tuple(
            replace(gate, place=replace(gate.place, on=(Where.CHANGE,)))
            for gate in train_gates(it.settings)
        )
        task = _nobodys(it)
        files = self.workspaces.change(it.project, task, it.built.commit).files
        settings = replace(it.settings, gates=gates)
        try:
            evaluation = Evaluation(it.project, task, files, settings, _settled(it.settings))
            results = self.runner.results(evaluation, cancelled)
        finally:
            self.workspaces.discard(self.runner.home / "runs" / task.id)
        proofs = [asdict(result) for result in results if isinstance(result, Passed)]
        return verdict(results), canonical(proofs)


def _settled(settings: Settings) -> frozenset[str]:
    """The gates that each change was judged by, with base's version of what they run."""
    return frozenset(gate.name for gate in settings.gates if Where.CHANGE in gate.place.on)


def _nobodys(it: Tested) -> Task:
    """A candidate is nobody's task, and is in no database."""
    return Task(
        id=TaskId(f"train-{it.project.id[:IDS]}-{it.built.tree[:IDS]}"),
        project=it.project.id,
        summary="a candidate of the merge train",
        goal="a candidate of the merge train",
        branch=it.rules.base,
        agent=it.settings.project.agent,
        created=0.0,
        updated=0.0,
        iteration=1,
        candidate=it.built.commit,
        pinned=it.rules,
    )
