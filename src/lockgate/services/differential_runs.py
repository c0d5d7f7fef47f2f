"""The runs of the differential gate: each on a tree made for it, in a sandbox of its own."""

import shlex
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from lockgate.core.config.settings import SandboxLevel
from lockgate.core.differential.canaries import Ended, canaries_in, run_of
from lockgate.core.differential.plan import BASE_ALONE, Plan, Which, files_of, planted_in, tree_of
from lockgate.core.differential.runs import AnyRun
from lockgate.core.model.gates import CommandGate, DifferentialGate
from lockgate.ports import Attempt, Cut, GateRun, GateRuns, Workspaces
from lockgate.ports.comparing import Blend, Trees
from lockgate.services.differential_sides import Compared
from lockgate.services.gate_runner import Evaluation

AT_ONCE = 2
TAIL = 1000


@dataclass(frozen=True, slots=True)
class Measured:
    run: AnyRun
    seconds: float = 0.0
    level: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where one gate's runs on one change are made."""

    place: Path  # beside which each run has its tree
    workspaces: Workspaces
    trees: Trees
    gates: GateRuns
    it: Evaluation
    gate: DifferentialGate
    compared: Compared
    plan: Plan
    cancelled: Callable[[], bool]

    def measure(self, wanted: Iterable[Which]) -> dict[Which, Measured]:
        """Two at a time, unless they could get in each other's way."""
        every = tuple(wanted)
        bare = self.it.settings.sandbox.level is SandboxLevel.NONE
        alone = bare or bool(self.gate.place.exclusive)
        with ThreadPoolExecutor(1 if alone else AT_ONCE) as pool:
            return dict(zip(every, pool.map(self._measured, every), strict=True))

    def _measured(self, which: Which) -> Measured:
        place = self.place.with_name(f"{self.place.name}-{which.name.lower()}")
        files = files_of(tree_of(which, self.plan), self.compared.sides)
        planted = planted_in(which, self.plan, self.compared.known(files))
        try:
            self._lay(which, {it.path: it.text for it in planted}, place)
            attempt = self.gates.attempt(self._command(), self._run(place), self.cancelled)
            read = self.gates.read(attempt, self.gate.report)
        finally:
            self.workspaces.discard(place)
        canaries, alone = canaries_in(planted), which in BASE_ALONE
        run = run_of(_ended(attempt), read, canaries, on_base=alone)
        return Measured(run, attempt.seconds, attempt.level)

    def _lay(self, which: Which, planted: Mapping[str, str], place: Path) -> None:
        tree = tree_of(which, self.plan)
        ours, theirs = self.compared.base, self.it.task.candidate
        blend = Blend(
            commit=theirs if tree.of_change else ours,
            other=ours if tree.of_change else theirs,
            mixed=tree.mixed,
            planted=planted,
        )
        self.workspaces.discard(place)
        self.trees.blend(self.it.project, self.it.task, blend, place)
        self.workspaces.set_up(self.it.project, self.it.task, self.it.settings, place)

    def _command(self) -> CommandGate:
        told = (f"{name}={shlex.quote(it)}" for name, it in self.plan.environment)
        exported = "".join(f"export {it}\n" for it in told)
        return CommandGate(
            name=self.gate.name,
            place=self.gate.place,
            command=exported + self.gate.command,
            attempts=1,
            timeout=self.gate.timeout,
            report=self.gate.report,
        )

    def _run(self, place: Path) -> GateRun:
        task = self.it.task
        return GateRun(
            checkout=place,
            base=self.workspaces.base(self.it.project),
            commit=task.candidate,
            tree="",  # nobody's
            config_hash=task.pinned.config_hash if task.pinned else "",
            sandbox=self.it.settings.sandbox,
            services=self.it.settings.services,
        )


def _ended(attempt: Attempt) -> Ended:
    said = f"{attempt.out}\n{attempt.err}".strip()[-TAIL:]
    if attempt.cut is Cut.DEADLINE:
        return Ended(exit_code=None, overtime=attempt.why, said=said)
    not_run = attempt.why if attempt.cut else ""
    return Ended(exit_code=attempt.exit_code, not_run=not_run, said=said)
