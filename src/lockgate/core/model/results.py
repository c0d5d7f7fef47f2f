"""What gates say: one gate's result, and the result of all of them together (S3)."""

from dataclasses import dataclass

from lockgate.core.model.findings import Finding, GateFeedback
from lockgate.core.model.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """That something ran: what, on which candidate, under which rules, and how it ended."""

    ran: tuple[str, ...]
    commit: str
    tree: str
    config_hash: str
    sandbox: str
    seconds: float
    exit_code: int | None = None
    tests_passed: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Passed:
    """Good enough. What was found all the same does not block; `asks` are files for a human."""

    gate: str
    proof: Proof
    findings: tuple[Finding, ...] = ()
    asks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """Not good enough; the agent gets the findings."""

    gate: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A human has not answered yet."""

    gate: str
    prompt: str


@dataclass(frozen=True, slots=True)
class Broken:
    """The gate could not judge, which says nothing about the work and costs it nothing."""

    gate: str
    why: str


SingleGateResult = Passed | Failed | Waiting | Broken


@dataclass(frozen=True, slots=True)
class AllPassed:
    gate_results: tuple[Passed, ...]


@dataclass(frozen=True, slots=True)
class EvaluationFailed:
    """S3's `Failed`; here that word is one gate's."""

    failed_gate: str
    feedback: GateFeedback
    passed_gates: tuple[Passed, ...]


@dataclass(frozen=True, slots=True)
class GateError:
    """The evaluation has no result, because this gate has none."""

    gate: str
    why: str


GateResult = AllPassed | EvaluationFailed
Evaluation = GateResult | Waiting | GateError


def proof_of(task: Task, said: str) -> Proof:
    """Of a gate that runs nothing."""
    return Proof(
        ran=(said,),
        commit=task.candidate,
        tree="",
        config_hash=task.pinned.config_hash if task.pinned else "",
        sandbox="",
        seconds=0.0,
    )
