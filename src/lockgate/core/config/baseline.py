"""What a repository's own commands come to on its base, before any change is judged by them."""

from enum import StrEnum

from msgspec import Struct

from lockgate.core.model.findings import Finding, by_priority
from lockgate.core.model.results import Broken, Failed, Passed, SingleGateResult, Waiting

SLOW = 60.0  # seconds
SHOWN = 3  # findings of a red one


class Colour(StrEnum):
    GREEN = "green"
    RED = "red"
    FLAKY = "flaky"
    BROKEN = "broken"  # it could not be run, which says nothing about the tests


class Timed(Struct, frozen=True):
    """One run of a command, and how long it took."""

    result: SingleGateResult
    seconds: float


class Baseline(Struct, frozen=True, kw_only=True):
    """`passed` of `runs`; the longest run's seconds; the first findings, or why it did not run."""

    name: str
    command: str
    colour: Colour
    runs: int
    passed: int
    seconds: float
    slow: bool
    findings: tuple[Finding, ...] = ()
    why: str = ""


def measured(name: str, command: str, runs: tuple[Timed, ...]) -> Baseline:
    """A run that could not judge counts neither way; where none could, the command is broken."""
    results = [it.result for it in runs]
    passed = [it for it in results if isinstance(it, Passed)]
    failed = [it for it in results if isinstance(it, Failed)]
    longest = max((it.seconds for it in runs), default=0.0)
    first = by_priority(failed[0].findings)[:SHOWN] if failed else ()
    return Baseline(
        name=name,
        command=command,
        colour=_colour(bool(passed), bool(failed)),
        runs=len(runs),
        passed=len(passed),
        seconds=longest,
        slow=longest > SLOW,
        findings=first,
        why=next((_why(it) for it in results if _why(it)), ""),
    )


def _colour(passed: bool, failed: bool) -> Colour:  # noqa: FBT001 - the two sides of a table
    if passed:
        return Colour.FLAKY if failed else Colour.GREEN
    return Colour.RED if failed else Colour.BROKEN


def _why(result: SingleGateResult) -> str:
    match result:
        case Broken(_, why) | Waiting(_, why):
            return why
        case Passed() | Failed():
            return ""
