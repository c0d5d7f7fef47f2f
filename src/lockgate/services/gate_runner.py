"""Runs the gates of a change in their waves: neighbours together, a serial one alone."""

from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from lockgate.core import answers
from lockgate.core.evaluation import Broken, Passed, SingleGateResult
from lockgate.core.gates import CommandGate, Gate, HumanGate, Where, kind_of, waves, with_protected
from lockgate.core.model import REVIEWS, Task
from lockgate.core.settings import Settings
from lockgate.errors import Unavailable
from lockgate.ports import Conditions, GateRun, GateRuns, Project, Workspaces
from lockgate.services.command_gate import Patience, judge_command

Cancelled = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What is judged, and by which settings."""

    project: Project
    task: Task
    files: tuple[str, ...]
    settings: Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRunner:
    home: Path
    workspaces: Workspaces
    gates: GateRuns
    conditions: Conditions
    delay: Callable[[float], Coroutine[None, None, None]]
    _words: dict[str, Lock] = field(default_factory=dict[str, Lock])  # of `exclusive`

    def results(self, it: Evaluation, cancelled: Cancelled) -> tuple[SingleGateResult, ...]:
        """Up to the next review, or to the first wave in which a gate did not pass."""
        results: list[SingleGateResult] = []

        def judged(gate: Gate) -> SingleGateResult:
            return self._judged(it, gate, cancelled)

        for wave in waves(_next_gates(it.task, it.settings)):
            with ThreadPoolExecutor(len(wave)) as pool:
                results += pool.map(judged, wave)
            if cancelled() or not all(isinstance(result, Passed) for result in results):
                break
        return tuple(results)

    def _judged(self, it: Evaluation, gate: Gate, cancelled: Cancelled) -> SingleGateResult:
        task = it.task
        if not task.candidate:
            return Broken(gate.name, f"branch {task.branch} is neither in a workspace nor in git")
        if not self._applies(it, gate):
            return Passed(gate.name, answers.proof_of(task, f"not asked for: {gate.place.when}"))
        match gate:
            case HumanGate():
                return answers.heard(task, gate)
            case CommandGate():
                return self._commanded(it, gate, cancelled)
            case _:
                return Broken(gate.name, f"this version runs no {kind_of(gate)} gates")

    def _applies(self, it: Evaluation, gate: Gate) -> bool:
        if not gate.place.when:
            return True
        task = it.task
        facts: dict[str, object] = {
            "id": task.id,
            "summary": task.summary,
            "branch": task.branch,
            "agent": task.agent,
            "priority": task.priority,
            "iteration": task.iteration,
        }
        change: dict[str, object] = {"paths": list(it.files), "files_changed": len(it.files)}
        return self.conditions.hold(gate.place.when, facts, change)

    def _commanded(
        self, it: Evaluation, gate: CommandGate, cancelled: Cancelled
    ) -> SingleGateResult:
        word = gate.place.exclusive
        lock = self._words.setdefault(word, Lock()) if word else Lock()
        place = self.home / "runs" / it.task.id / f"{it.task.iteration}-{gate.name}"
        with lock:
            try:
                run = self._checked_out(it, place)
                patience = Patience(self.delay, cancelled)
                return judge_command(self.gates, gate, run, it.settings.limits, patience)
            except Unavailable as error:
                return Broken(gate.name, str(error))
            finally:
                self.workspaces.discard(place)

    def _checked_out(self, it: Evaluation, place: Path) -> GateRun:
        task = it.task
        self.workspaces.discard(place)
        self.workspaces.checkout(it.project, task, task.candidate, place)
        self.workspaces.set_up(it.project, task, it.settings, place)
        return GateRun(
            checkout=place,
            base=self.workspaces.base(it.project),
            commit=task.candidate,
            tree=self.workspaces.tree(it.project, task.candidate),
            config_hash=task.pinned.config_hash if task.pinned else "",
            sandbox=it.settings.sandbox,
            services=it.settings.services,
        )


def _next_gates(task: Task, settings: Settings) -> Sequence[Gate]:
    """Those of a change that have not passed on it, up to the first review among them."""

    def until_review() -> Iterator[Gate]:
        for gate in with_protected(settings.gates, task.protected):
            if Where.CHANGE not in gate.place.on or gate.name in task.passed:
                continue
            if kind_of(gate) in REVIEWS:
                return
            yield gate

    return tuple(until_review())
