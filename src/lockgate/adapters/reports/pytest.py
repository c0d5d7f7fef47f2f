"""What pytest prints: its summary, its verbose lines, and where each failure stands."""

import re
from collections.abc import Mapping, Sequence

from lockgate.adapters.reports.text import failures, located, one_line, place_in, test_id
from lockgate.core.model.findings import Location
from lockgate.core.model.gates import Report
from lockgate.core.model.results import Outcome, ReportRead, TestResult, merged

OUTCOMES = {
    "PASSED": Outcome.PASSED,
    "FAILED": Outcome.FAILED,
    "ERROR": Outcome.ERROR,
    "SKIPPED": Outcome.SKIPPED,
    "XFAIL": Outcome.XFAILED,
    "XPASS": Outcome.XPASSED,
}
_WORD = "(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)"
_COUNT = (
    r"\d{1,9} (?:failed|passed|skipped|deselected|xfailed|xpassed|warnings?|errors?|rerun"
    r"|subtests passed)"
)
_END = re.compile(
    rf"(?:=+ )?((?:{_COUNT})(?:, {_COUNT})*|no tests (?:ran|collected))"
    r" in \d[\d.]*s(?: \([\d:, a-z]+\))?(?: =+)?\Z"
)
_PASSES = re.compile(r"\b(\d{1,9}) passed")
_SUMMARY = re.compile(
    rf"(?:{_WORD} ([^\s:\[]\S*?\.py::.+?)|(ERROR) ([^\s:\[]\S*?\.py))(?: - (.*))?\Z"
)
_VERBOSE = re.compile(rf"(\S+\.py::.+?) {_WORD}(?: \(.*\))?(?: +\[ *\d+%\])?\Z")
_DISTRIBUTED = re.compile(rf"\[gw\d+\] \[ *\d+%\] {_WORD} (\S+\.py::.+?) *\Z")
_HEADER = re.compile(r"_{3,} (?:ERROR at (?:setup|teardown) of |ERROR collecting )?(.+?) _{3,}\Z")
_RAISED = re.compile(r"\S+\.py:\d+: ")


def read(lines: Sequence[str], root: str) -> ReportRead | None:
    """Complete only with pytest's last line; tests only where every pass has a name."""
    ends = [match for line in lines if (match := _END.match(line))]
    if not ends and not any("= short test summary info =" in line for line in lines):
        return None
    if lines[-1] and not _END.match(lines[-1]):
        lines = lines[:-1]  # it was cut off, and with it the name of a test
    places = _places(lines, root)
    tests = merged(_result(found, places, root) for line in lines if (found := _named(line)))
    passed = sum(_passes(end[1]) for end in ends)
    listed = {found[1] for line in lines if (found := _named(line)) and found[0] == "PASSED"}
    return ReportRead(
        format=Report.PYTEST,
        findings=failures(tests),
        tests=tests if len(listed) >= passed else None,
        complete=bool(ends),
    )


def _passes(summary: str) -> int:
    found = _PASSES.search(summary)
    return int(found[1]) if found else 0


def _named(line: str) -> tuple[str, str, str] | None:
    """Outcome, id and message of the test that a line is about."""
    summary = _SUMMARY.match(line)
    if summary:
        return summary[1] or summary[3], summary[2] or summary[4], summary[5] or ""
    verbose = _VERBOSE.match(line)
    if verbose:
        return verbose[2], verbose[1], ""
    distributed = _DISTRIBUTED.match(line)
    return (distributed[1], distributed[2], "") if distributed else None


def _result(found: tuple[str, str, str], places: Mapping[str, Location], root: str) -> TestResult:
    outcome, id, message = found
    file, _, name = id.partition("::")
    header = name.replace("::", ".") or file
    return TestResult(
        id=test_id(id),
        outcome=OUTCOMES[outcome],
        location=places.get(header) or located(file, root),
        message=one_line(message),
    )


def _places(lines: Sequence[str], root: str) -> dict[str, Location]:
    """By the heading of its traceback, the first line of each failure's own."""
    places: dict[str, Location] = {}
    heading = ""
    for line in lines:
        header = _HEADER.match(line)
        if header:
            heading = header[1]
        elif line.startswith("==="):
            heading = ""
        elif heading and heading not in places and _RAISED.match(line):
            found = place_in(line, root)
            places.update({heading: found} if found else {})
    return places
