"""Failing tests as findings."""

from bisect import bisect_left
from collections.abc import Iterable

from lockgate.adapters.reports.plain import one_line
from lockgate.core.model.findings import Finding, Priority
from lockgate.core.model.reports import FAILING, TestResult


def failures(tests: Iterable[TestResult]) -> tuple[Finding, ...]:
    """One finding a failing test; a parent that only repeats what its subtest says has none."""
    failing = [test for test in tests if test.outcome in FAILING]
    ids = sorted(test.id for test in failing)
    return tuple(
        Finding(
            Priority.P1_MAJOR,
            one_line(f"{test.id}: {test.message}" if test.message else test.id),
            test.location,
        )
        for test in failing
        if not _has_child(ids, test.id)
    )


def _has_child(ids: list[str], parent: str) -> bool:
    at = bisect_left(ids, f"{parent}/")
    return at < len(ids) and ids[at].startswith(f"{parent}/")
