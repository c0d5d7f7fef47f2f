"""Reports in what a command printed, whatever else it printed."""

import re
from collections.abc import Callable, Iterator, Sequence

from lockgate.adapters.reports import compilers, go_events, go_text, junit, pytest_text, tap
from lockgate.adapters.reports.plain import HALF_TEXT, lines_of
from lockgate.adapters.reports.structured import marked, read_json
from lockgate.core.model.gates import Report
from lockgate.core.model.reports import ReportRead

LOOKED_AT = 4096

# A format, what its text cannot lack, and who reads it; the first that was found gives its name.
SPOKEN: tuple[
    tuple[Report, tuple[str, ...], Callable[[Sequence[str], str], ReportRead | None]], ...
] = (
    (Report.TAP, ("ok ",), tap.read),
    (Report.PYTEST, (" in ", "short test summary info"), pytest_text.read),
    (Report.GO, ("ok  \t", "FAIL\t", "?   \t", ".go:"), go_text.read),
    (Report.MYPY, ("Found ", "Success: no issues", " warnings, "), compilers.read_mypy),
    (Report.TSC, (" TS",), compilers.read_tsc),
    (Report.ESLINT, (" problem",), compilers.read_eslint),
    (Report.RUFF, ("Found ", "All checks passed!"), compilers.read_ruff),
)

_JSON = re.compile(r"^[ \t]{0,20}[\[{]", re.MULTILINE)
_CANDIDATES = 20


def read_output(output: str, root: str) -> Iterator[ReportRead]:
    if not output or output.isspace():
        return
    document = _xml(output, root) or _json(output, root)
    if document:
        yield document
    events = go_events.read(output, root) if '"Action"' in output else None
    if events:
        yield events
    lines = lines_of(output)
    text = "\n".join(lines)
    for report, hints, read in SPOKEN:
        if report is Report.GO and events:
            continue
        found = read(lines, root) if any(hint in text for hint in hints) else None
        if found:
            yield found


def read_prose(output: str, root: str, *, alone: bool) -> ReportRead:
    """Beside the report of a known tool, what only looks like a complaint does not block."""
    return compilers.read_any(lines_of(output), root, may_block=alone)


def _xml(output: str, root: str) -> ReportRead | None:
    start = output.find("<testsuite")
    if start < 0:
        return None
    end = max(output.rfind(f"</{name}>") + len(name) + 3 for name in junit.ROOTS)
    return junit.read(output[start : max(end, start)].encode("utf-8", "replace"), root)


def _json(output: str, root: str) -> ReportRead | None:
    """The first line that begins a value which looks like a known tool's."""
    for _, found in zip(range(_CANDIDATES), _JSON.finditer(output, 0, HALF_TEXT), strict=False):
        start = output[found.start() : found.start() + LOOKED_AT]
        if marked(start) and '"Action"' not in start:
            return read_json(output[found.start() :], root)
    return None
