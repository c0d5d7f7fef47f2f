"""What gates say: one gate's result, and the result of all of them together (S3)."""

from msgspec import Struct

from lockgate.core.model.findings import Finding, GateFeedback
from lockgate.core.model.task import Pinned


class Proof(Struct, frozen=True, kw_only=True):
    """That something ran: what, on which candidate, under which rules, and how it ended."""

    ran: tuple[str, ...]
    commit: str
    tree: str
    config_hash: str
    sandbox: str
    seconds: float
    exit_code: int | None = None
    tests_passed: tuple[str, ...] | None = None


class Passed(Struct, frozen=True):
    """Good enough. What was found all the same does not block; `asks` are files for a human."""

    gate: str
    proof: Proof
    findings: tuple[Finding, ...] = ()
    asks: tuple[str, ...] = ()


class Failed(Struct, frozen=True):
    """Not good enough; the agent gets the findings."""

    gate: str
    findings: tuple[Finding, ...]


class Waiting(Struct, frozen=True):
    """A human has not answered yet."""

    gate: str
    prompt: str


class Broken(Struct, frozen=True):
    """The gate could not judge, which says nothing about the work and costs it nothing."""

    gate: str
    why: str


SingleGateResult = Passed | Failed | Waiting | Broken


class AllPassed(Struct, frozen=True):
    gate_results: tuple[Passed, ...]


class EvaluationFailed(Struct, frozen=True):
    """S3's `Failed`; here that word is one gate's."""

    failed_gate: str
    feedback: GateFeedback
    passed_gates: tuple[Passed, ...]


class GateError(Struct, frozen=True):
    """The evaluation has no result, because this gate has none."""

    gate: str
    why: str


GateResult = AllPassed | EvaluationFailed
Evaluation = GateResult | Waiting | GateError


def proof_of(commit: str, rules: Pinned | None, said: str) -> Proof:
    """Of a gate that runs nothing."""
    return Proof(
        ran=(said,),
        commit=commit,
        tree="",
        config_hash=rules.config_hash if rules else "",
        sandbox="",
        seconds=0.0,
    )
