"""All reports of one run of a gate's command, joined: files in $OUT first, then what it printed."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lockgate.adapters.reports.files import files_in
from lockgate.adapters.reports.spoken import read_output, read_prose
from lockgate.adapters.reports.structured import Kind, decoded, kind_of, read_file
from lockgate.core.model.agents import WORKSPACE
from lockgate.core.model.findings import Finding, Priority, by_priority
from lockgate.core.model.gates import Report
from lockgate.core.model.reports import ReportRead, Unreadable, merged

FINDINGS = 1000

# These say nothing where they find nothing.
QUIET = frozenset({Report.TSC, Report.ESLINT, Report.RUFF, Report.GENERIC})


def read_reports(
    out: Path | None, output: str, wanted: Report | None, root: str = WORKSPACE
) -> ReportRead | Unreadable:
    """What the reports say; of `wanted` only, where it is given.

    `output` is the command's text as it was captured, `root` where its work tree was mounted.
    """
    filed, texts = _filed(out, root, wanted or Report.JUNIT) if out else ([], [])
    filed = [it for it in filed if wanted in {None, it.format}]
    spoken: list[ReportRead] = []
    if not filed or not (wanted or any(it.findings for it in filed)):
        said = (part for text in (output, *texts) for part in read_output(text, root))
        spoken = [it for it in said if wanted in {None, it.format}]
    if filed:
        spoken = [replace(it, tests=None, complete=True) for it in spoken]
    parts = [*filed, *spoken]
    if not filed and (wanted is Report.GENERIC or not (wanted or any(it.findings for it in parts))):
        parts.append(read_prose(output, root, alone=not parts))
    return _joined(parts) if parts else _absent(wanted)


def _absent(wanted: Report | None) -> ReportRead | Unreadable:
    if wanted in QUIET:
        return ReportRead(format=wanted or Report.GENERIC)
    return Unreadable(f"it left and printed no report that reads as {wanted}")


def _filed(out: Path, root: str, lost: Report) -> tuple[list[ReportRead], list[str]]:
    """The reports among the files, and the texts that may hold more.

    Files that were not even looked at may have been of the format `lost`.
    """
    reports: list[ReportRead] = []
    texts: list[str] = []
    for file in files_in(out, lambda name, head: kind_of(name, head) is not None):
        if kind_of(file.name, file.head) is Kind.TEXT:
            texts += [decoded(file.data)] if file.data else []
            continue
        found = read_file(file, root) if file.name else ReportRead(format=lost, complete=False)
        reports += [found if found.complete else replace(found, flaw=file.name)] if found else []
    return reports, texts


def _joined(parts: Sequence[ReportRead]) -> ReportRead:
    order = list(Report)
    first = min(parts, key=lambda it: order.index(it.format))
    tests = [it.tests for it in parts if it.tests is not None]
    return ReportRead(
        format=first.format,
        findings=_capped(by_priority(finding for it in parts for finding in it.findings)),
        tests=merged(test for group in tests for test in group) if tests else None,
        complete=all(it.complete for it in parts),
        flaw=next((it.flaw for it in parts if it.flaw), ""),
    )


def _capped(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    left = len(findings) - FINDINGS
    if left <= 0:
        return findings
    more = Finding(Priority.P3_SUGGESTION, f"{left} more findings are not listed")
    return (*findings[:FINDINGS], more)
