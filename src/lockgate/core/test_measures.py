"""What one try of the test command comes to, as one of the runs that are compared."""

from collections.abc import Iterable
from dataclasses import dataclass

from lockgate.core.canaries import CanaryFile
from lockgate.core.test_results import NOT_STARTED, ReportRead, Unreadable
from lockgate.core.test_runs import AnyRun, Canaries, NotRun, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How it ended. `not_run`: why its exit says nothing; `overtime`: that it took too long."""

    exit_code: int | None
    not_run: str = ""
    overtime: str = ""
    said: str = ""  # the end of what it wrote about its troubles


def run_of(
    ended: Ended,
    read: ReportRead | Unreadable,
    canaries: Canaries | None,
    *,
    on_base: bool,
) -> AnyRun:
    """Base on its own must work, else there is nothing to compare; a change answers for its own."""
    if ended.not_run:
        return NotRun(ended.not_run)
    if on_base and ended.overtime:
        return NotRun(ended.overtime)
    if on_base and ended.exit_code in NOT_STARTED:
        return NotRun(f"its command cannot be started: {ended.said}")
    tests = read.tests if isinstance(read, ReportRead) else None
    whole = isinstance(read, ReportRead) and read.complete and not ended.overtime
    return Run(
        exit_code=ended.exit_code,
        tests=tests or (),
        complete=whole and tests is not None,
        canaries=canaries,
        overtime=ended.overtime,
    )


def canaries_in(files: Iterable[CanaryFile]) -> Canaries | None:
    """All that were planted in one tree."""
    every = tuple(files)
    if not every:
        return None
    return Canaries(
        tuple(word for it in every for word in it.canaries.must_fail),
        tuple(word for it in every for word in it.canaries.must_pass),
    )
