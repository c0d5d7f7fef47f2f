"""All reports of one run of a gate's command, joined: files in $OUT first, then what it printed."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from lockgate.adapters.reports import compilers, go_events, go_text, junit, pytest_text, tap
from lockgate.adapters.reports.files import files_in
from lockgate.adapters.reports.plain import lines_of
from lockgate.adapters.reports.structured import (
    Kind,
    decoded,
    kind_of,
    marked,
    read_file,
    read_json,
)
from lockgate.core.agents import WORKSPACE
from lockgate.core.findings import Finding, Priority, by_priority
from lockgate.core.gates import Report
from lockgate.core.test_results import ReportRead, Unreadable, merged

FINDINGS = 1000
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

# These say nothing where they find nothing.
QUIET = frozenset({Report.TSC, Report.ESLINT, Report.RUFF, Report.GENERIC})
_JSON = re.compile(r"^\s*[\[{]", re.MULTILINE)
_CANDIDATES = 20


def read_reports(
    out: Path, output: str, wanted: Report | None, root: str = WORKSPACE
) -> ReportRead | Unreadable:
    """What the reports say; of `wanted` only, where it is given.

    `output` is the command's text as it was captured, `root` where its work tree was mounted.
    """
    filed, texts = _filed(out, root)
    filed = [it for it in filed if wanted in {None, it.format}]
    spoken: list[ReportRead] = []
    if not filed or not (wanted or any(it.findings for it in filed)):
        said = (part for text in (output, *texts) for part in _spoken(text, root))
        spoken = [it for it in said if wanted in {None, it.format}]
    if filed:
        spoken = [replace(it, tests=None, complete=True) for it in spoken]
    parts = [*filed, *spoken]
    if not filed and (wanted is Report.GENERIC or not (wanted or any(it.findings for it in parts))):
        parts.append(_prose(output, root, alone=not parts))
    return _joined(parts) if parts else _absent(wanted)


def _prose(output: str, root: str, *, alone: bool) -> ReportRead:
    """Beside the report of a known tool, what only looks like a complaint does not block."""
    read = compilers.read_any(lines_of(output), root)
    harmless = [replace(it, priority=max(it.priority, Priority.P2_MINOR)) for it in read.findings]
    return read if alone else replace(read, findings=tuple(harmless))


def _absent(wanted: Report | None) -> ReportRead | Unreadable:
    if wanted in QUIET:
        return ReportRead(format=wanted or Report.GENERIC)
    return Unreadable(f"it left and printed no report that reads as {wanted}")


def _filed(out: Path, root: str) -> tuple[list[ReportRead], list[str]]:
    """The reports among the files, and the texts that may hold more."""
    reports: list[ReportRead] = []
    texts: list[str] = []
    for file in files_in(out, lambda name, head: kind_of(name, head) is not None):
        if kind_of(file.name, file.head) is Kind.TEXT:
            texts += [decoded(file.data)] if file.data else []
            continue
        found = read_file(file, root)
        reports += [found] if found else []
    return reports, texts


def _spoken(output: str, root: str) -> Iterator[ReportRead]:
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


def _xml(output: str, root: str) -> ReportRead | None:
    start = output.find("<testsuite")
    if start < 0:
        return None
    end = max(output.rfind(f"</{name}>") + len(name) + 3 for name in junit.ROOTS)
    return junit.read(output[start : max(end, start)].encode("utf-8", "replace"), root)


def _json(output: str, root: str) -> ReportRead | None:
    """The first line that begins a value which looks like a known tool's."""
    for _, found in zip(range(_CANDIDATES), _JSON.finditer(output), strict=False):
        start = output[found.start() : found.start() + LOOKED_AT]
        if marked(start) and '"Action"' not in start:
            return read_json(output[found.start() :], root)
    return None


def _joined(parts: Sequence[ReportRead]) -> ReportRead:
    order = list(Report)
    first = min(parts, key=lambda it: order.index(it.format))
    tests = [it.tests for it in parts if it.tests is not None]
    return ReportRead(
        format=first.format,
        findings=_capped(by_priority(finding for it in parts for finding in it.findings)),
        tests=merged(test for group in tests for test in group) if tests else None,
        complete=all(it.complete for it in parts),
    )


def _capped(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    left = len(findings) - FINDINGS
    if left <= 0:
        return findings
    more = Finding(Priority.P3_SUGGESTION, f"{left} more findings are not listed")
    return (*findings[:FINDINGS], more)
