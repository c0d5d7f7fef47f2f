"""The gates on HEAD of any repository, with no task and no agent: nothing of it is kept."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from lockgate.core.model.findings import Finding, by_priority
from lockgate.core.model.gates import CommandGate, Gate, Report
from lockgate.core.model.reports import ReportRead, Unreadable
from lockgate.core.model.results import Broken, Failed, Passed, SingleGateResult, Waiting
from lockgate.core.text.steering import asked_of, shown_first
from lockgate.ports import Attempt, GateRun, GateRuns, Workspaces
from lockgate.services.gate_runner import Cancelled, Evaluation, GateRunner, Tell
from lockgate.services.rulebook import Case


@dataclass(frozen=True, slots=True)
class Noted:
    """The gates' commands, and what each attempt came to: a failure alone does not say."""

    gates: GateRuns
    made: dict[str, list[Attempt]] = field(default_factory=dict[str, list[Attempt]])

    def attempt(self, gate: CommandGate, run: GateRun, cancelled: Callable[[], bool]) -> Attempt:
        attempt = self.gates.attempt(gate, run, cancelled)
        self.made.setdefault(gate.name, []).append(attempt)
        return attempt

    def read(self, attempt: Attempt, wanted: Report | None) -> ReportRead | Unreadable:
        return self.gates.read(attempt, wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What people are told of one gate: its result, what it took, what it found."""

    gate: Gate
    result: str
    why: str = ""
    seconds: float = 0.0
    level: str = ""
    attempts: int = 0
    tests: int | None = None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class SpotCheck:
    """Over a home that is thrown away."""

    workspaces: Workspaces
    runner: GateRunner

    def judge(
        self, case: Case, cancelled: Cancelled, tell: Tell, afterwards: ExitStack
    ) -> tuple[tuple[SingleGateResult, ...], tuple[str, ...]]:
        """The results in order, as far as it came, and the files that a human would be asked of."""
        files = self.workspaces.changed_files(case.project, case.task, case.task.candidate)
        evaluation = Evaluation(case.project, case.task, files, case.settings)
        results = self.runner.results(evaluation, cancelled, tell, afterwards)
        asked = (file for it in results if isinstance(it, Passed) for file in it.asks)
        rules = case.task.pinned
        protected = asked_of(shown_first(files, rules), rules) if rules else ()
        return results, tuple(dict.fromkeys((*protected, *asked)))


def judged(gate: Gate, result: SingleGateResult, made: Sequence[Attempt]) -> Judged:
    told = Judged(
        gate=gate,
        result="broken",
        seconds=sum(it.seconds for it in made),
        level=made[-1].level if made else "",
        attempts=len(made),
    )
    match result:
        case Passed(_, proof, findings) if proof.sandbox:
            tests = None if proof.tests_passed is None else len(proof.tests_passed)
            found = by_priority(findings)
            return replace(told, result="passed", tests=tests, findings=found)
        case Passed(_, proof, _):
            return replace(told, result="skipped", why=" ".join(proof.ran))
        case Failed(_, findings):
            return replace(told, result="failed", findings=by_priority(findings))
        case Waiting(_, why):
            return replace(told, result="waiting", why=why)
        case Broken(_, why):
            return replace(told, why=why)
