"""What gates say: one gate's result, and the result of all of them together.

Also what a report says about tests and code, and how far it is believed beside the exit code.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import ClassVar

from msgspec import Struct

from lockgate.core.model.findings import Finding, GateFeedback, Location, blocks, by_priority
from lockgate.core.model.gates import Report
from lockgate.core.model.task import Pinned

NOT_STARTED = frozenset({126, 127})  # the shell's words for a command that it cannot start


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
    """The gate could not judge, which says nothing about the work and costs it nothing.

    `passing`: its surroundings failed (git, the sandbox, the disk, memory), so that another try
    may end differently. `if_repeated` is what counts as found where that happens once more.
    """

    gate: str
    why: str
    passing: bool = False
    if_repeated: tuple[Finding, ...] = ()


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


# What a report says, and how far it is believed.


class Outcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    XPASSED = "xpassed"


# Of two results for one id the later one here counts: a pass must be a pass every time.
_WORSE = (
    Outcome.PASSED,
    Outcome.XPASSED,
    Outcome.XFAILED,
    Outcome.SKIPPED,
    Outcome.FAILED,
    Outcome.ERROR,
)
_RANK = {outcome: rank for rank, outcome in enumerate(_WORSE)}
FAILING = frozenset({Outcome.FAILED, Outcome.ERROR})


class TestResult(Struct, frozen=True, kw_only=True):
    """One test, by an id that is the same in every run."""

    __test__: ClassVar[bool] = False  # a result is nothing that pytest should collect

    id: str
    outcome: Outcome
    location: Location | None = None
    message: str = ""


class ReportRead(Struct, frozen=True, kw_only=True):
    """What reports say. `tests` is None where they name no tests."""

    format: Report
    findings: tuple[Finding, ...] = ()
    tests: tuple[TestResult, ...] | None = None
    complete: bool = True  # False: cut off or refused, so that nothing good follows from it
    flaw: str = ""  # the file that is not complete, where it is known


class Unreadable(Struct, frozen=True):
    """The report that was asked for is not there."""

    why: str


class Good(Struct, frozen=True):
    """Exit 0, and no report contradicts. `tests_passed` is None where no report names tests."""

    tests_passed: tuple[str, ...] | None
    findings: tuple[Finding, ...]


class Bad(Struct, frozen=True):
    """The work is not good enough."""

    why: str
    findings: tuple[Finding, ...]


class NoJudgement(Struct, frozen=True):
    """What was seen proves neither."""

    why: str


Belief = Good | Bad | NoJudgement


def believed(
    exit_code: int | None, read: ReportRead | Unreadable, *, expected_some: bool
) -> Belief:
    """A report can make a pass a failure, never a failure a pass.

    `expected_some` says that tests were named for the commit this one is compared with; an exit
    code of None is a command that was killed.
    """
    if exit_code == 0:
        return _believed_success(read, expected_some=expected_some)
    how = "the command was killed" if exit_code is None else f"the command exited {exit_code}"
    if isinstance(read, Unreadable):
        return Bad(how, ())
    if expected_some and read.complete and read.tests == () and not read.findings:
        return NoJudgement(f"{how}, and no test ran where there were some")
    return Bad(how, read.findings)


def merged(results: Iterable[TestResult]) -> tuple[TestResult, ...]:
    """One result an id, the worst (of equals one that says why), in the order of first sight."""
    found: dict[str, TestResult] = {}
    for result in results:
        known = found.get(result.id)
        if known is None or _weight(result) > _weight(known):
            found[result.id] = result
    return tuple(found.values())


def _weight(result: TestResult) -> tuple[int, bool]:
    return _RANK[result.outcome], bool(result.message)


def _believed_success(read: ReportRead | Unreadable, *, expected_some: bool) -> Belief:
    if isinstance(read, Unreadable):
        return NoJudgement(f"the command exited 0, but {read.why}")
    failed = [it for it in read.tests or () if it.outcome in FAILING]
    if failed:
        return Bad(f"the command exited 0, but {len(failed)} tests failed", read.findings)
    if read.format is not Report.GENERIC and any(blocks(it) for it in read.findings):
        return Bad("the command exited 0, but its report has errors", read.findings)
    if not read.complete:
        which = f"its report {read.flaw}" if read.flaw else "its report"
        return NoJudgement(f"the command exited 0, but {which} is cut off or was refused")
    if expected_some and not read.tests:
        return NoJudgement("the command exited 0, but no report names a test where there were some")
    harmless = by_priority(it for it in read.findings if not blocks(it))
    return Good(_passed(read), harmless)


def _passed(read: ReportRead) -> tuple[str, ...] | None:
    if read.tests is None:
        return None
    return tuple(it.id for it in read.tests if it.outcome is Outcome.PASSED)
