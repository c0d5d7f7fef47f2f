"""S3's executor: has the gates run, and says what their results mean together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lockgate.core.evaluation import (
    AllPassed,
    Broken,
    Evaluation,
    EvaluationFailed,
    Failed,
    GateError,
    Passed,
    SingleGateResult,
    Waiting,
)
from lockgate.core.findings import Finding, GateFeedback, blocks, by_priority
from lockgate.core.model import GateRef, TaskId
from lockgate.core.progress import APART, prefixed


@dataclass(frozen=True, slots=True)
class GateExecutor:
    """One evaluation to be made; `config` holds the gates that apply, in order."""

    config: tuple[GateRef, ...]
    task_id: TaskId
    workspace_path: str

    def execute(self, runner: "Callable[[GateExecutor], Sequence[SingleGateResult]]") -> Evaluation:
        """Have the gates run and conclude; the runner may stop at the first that fails."""
        return conclude([gate.name for gate in self.config], runner(self))


def conclude(gates: Sequence[str], results: Sequence[SingleGateResult]) -> Evaluation:
    """A failure is certain whatever else is open; a pass needs every gate's own pass."""
    passed = tuple(result for result in results if isinstance(result, Passed))
    failed = tuple(result for result in results if isinstance(result, Failed))
    if failed:
        return EvaluationFailed(failed[0].gate, feedback_from(failed), passed)
    for result in results:
        if isinstance(result, Broken):
            return GateError(result.gate, result.why)
    for result in results:
        if isinstance(result, Waiting):
            return result
    judged = {result.gate for result in passed}
    for gate in gates:
        if gate not in judged:
            return GateError(gate, "it gave no result")
    return AllPassed(passed)


def feedback_from(failed: Sequence[Failed]) -> GateFeedback:
    """All that the failed gates of one evaluation found, the worst first, as one feedback.

    Where several failed, each finding names its gate.
    """
    names = APART.join(result.gate for result in failed)
    findings = by_priority(
        prefixed(result.gate, finding) if len(failed) > 1 else finding
        for result in failed
        for finding in result.findings
    )
    return GateFeedback(
        gate_name=names,
        findings=findings,
        summary=f"{names} failed with {_counted(findings)}",
        suggested_action=_suggested_action(findings),
    )


def _counted(findings: Sequence[Finding]) -> str:
    counts = {finding.priority: 0 for finding in findings}
    for finding in findings:
        counts[finding.priority] += 1
    return ", ".join(f"{count} {priority}" for priority, count in counts.items()) or "no findings"


def _suggested_action(findings: Sequence[Finding]) -> str:
    if not findings:
        return "Run the gate's command, mend what it reports, then hand off again."
    if any(blocks(finding) for finding in findings):
        return "Fix every P0 and P1 finding, then hand off again."
    return "Address the findings, then hand off again."
