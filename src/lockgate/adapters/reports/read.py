"""All reports of one run of a gate's command, joined: files in $OUT first, then what it printed."""

import os
import re
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lockgate.adapters.reports import (
    compilers,
    go,
    json_tools,
    junit,
    pytest,
    tap,
)
from lockgate.adapters.reports.text import HALF_TEXT, Refused, lines_of, parsed
from lockgate.core.model.agents import WORKSPACE
from lockgate.core.model.findings import Finding, Priority, by_priority
from lockgate.core.model.gates import Report
from lockgate.core.model.results import ReportRead, Unreadable, merged

HEAD = 4096
FILE = 50_000_000
TOTAL = 200_000_000
FILES = 200
ENTRIES = 20_000
DEPTH = 5

_PLAINLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


# The files in $OUT, as the gate's command filled it: opened without trust, one by one.


class File(Struct, frozen=True):
    """`data` is None where the file cannot be opened, or it or all together are too big."""

    name: str
    head: bytes
    data: bytes | None


class _Budget(Struct):
    entries: int = ENTRIES
    files: int = FILES
    total: int = TOTAL


def files_in(out: Path, worth: Callable[[str, bytes], bool]) -> Iterator[File]:
    """The regular files whose name and first bytes are worth reading; no link is followed."""
    budget = _Budget()
    with _opened(str(out), os.O_DIRECTORY) as top:
        if top is not None:
            yield from _walk(top, budget, worth, DEPTH)
    if budget.entries < 0:
        yield File("", b"", None)


def _walk(
    directory: int, budget: _Budget, worth: Callable[[str, bytes], bool], depth: int
) -> Iterator[File]:
    for name, kind in _entries(directory, budget):
        if stat.S_ISDIR(kind) and depth:
            with _opened(name, os.O_DIRECTORY, directory) as below:
                if below is not None:
                    yield from _walk(below, budget, worth, depth - 1)
        elif stat.S_ISREG(kind):
            found = _file(name, directory, budget, worth)
            if found:
                yield found


def _entries(directory: int, budget: _Budget) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            budget.entries -= 1
            if budget.entries < 0:
                break
            try:
                found.append((entry.name, entry.stat(follow_symlinks=False).st_mode))
            except OSError:
                continue
    return sorted(found)


def _file(
    name: str, directory: int, budget: _Budget, worth: Callable[[str, bytes], bool]
) -> File | None:
    with _opened(name, 0, directory) as descriptor:
        if descriptor is None:
            return File(name, b"", None) if worth(name, b"") else None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        head = os.pread(descriptor, HEAD, 0)
        if not worth(name, head):
            return None
        size = os.fstat(descriptor).st_size
        budget.files -= 1
        if size > min(FILE, budget.total) or budget.files < 0:
            return File(name, head, None)
        budget.total -= size
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return File(name, head, file.read(size))


@contextmanager
def _opened(name: str, flags: int, directory: int | None = None) -> Generator[int | None]:
    """None where it cannot be opened: it is gone, a link, or not ours to read."""
    try:
        descriptor = os.open(name, _PLAINLY | flags, dir_fd=directory)
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


# Reports by their first bytes: XML, JSON, events of go, TAP.


class Kind(Enum):
    XML = auto()
    JSON = auto()
    GO = auto()
    TAP = auto()
    TEXT = auto()


# What the JSON of a tool shows near its beginning.
MARKS = {
    '"generalDiagnostics"': Report.MYPY,
    '"filePath"': Report.ESLINT,
    '"filename"': Report.RUFF,
    '"runs"': Report.SARIF,
    "sarif": Report.SARIF,
}
_BY_NAME = {".sarif": Kind.JSON, ".tap": Kind.TAP, ".xml": Kind.XML}
_TEXTS = (".txt", ".log", ".out")
_EVENT = 300


def kind_of(name: str, head: bytes) -> Kind | None:
    """None where it is no report. A name decides only where nothing else can."""
    start = decoded(head).lstrip()
    ending = next((it for it in _BY_NAME if name.endswith(it)), "")
    if start.startswith("<"):
        return Kind.XML if ending == ".xml" or "<testsuite" in start else None
    if start.startswith(("{", "[")):
        return _json_kind(start, ending)
    if start.startswith("TAP version"):
        return Kind.TAP
    return _BY_NAME.get(ending) or (Kind.TEXT if name.endswith(_TEXTS) else None)


def read_file(file: File, root: str) -> ReportRead | None:
    """None where it is of another kind than it looked; too big is read as cut off."""
    kind = kind_of(file.name, file.head)
    if file.data is None:
        return ReportRead(format=_format(kind, decoded(file.head)), complete=False)
    if kind is Kind.XML:
        return junit.read(file.data, root)
    text = decoded(file.data)
    if kind is Kind.JSON:
        return read_json(text, root) or _misnamed(file.name)
    if kind is Kind.GO:
        return go.read_events(text, root)
    return tap.read(lines_of(text), root) or ReportRead(format=Report.TAP, complete=False)


def read_json(text: str, root: str) -> ReportRead | None:
    try:
        document = parsed(text.lstrip())
    except Refused:
        return ReportRead(format=_format(Kind.JSON, text[:4096]), complete=False)
    return (
        json_tools.read_sarif(document, root)
        if json_tools.is_sarif(document)
        else json_tools.read_linter(document, root)
    )


def _misnamed(name: str) -> ReportRead | None:
    """JSON of another kind is no report, unless its name says that it is one."""
    return ReportRead(format=Report.SARIF, complete=False) if name.endswith(".sarif") else None


def decoded(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")


def marked(start: str) -> Report | None:
    return next((report for mark, report in MARKS.items() if mark in start), None)


def _json_kind(start: str, ending: str) -> Kind | None:
    if '"Action"' in start[:_EVENT]:
        return Kind.GO
    return Kind.JSON if marked(start) or ending == ".sarif" else None


def _format(kind: Kind | None, start: str) -> Report:
    """What it would have been."""
    if kind is Kind.JSON:
        return marked(start) or Report.SARIF
    return {Kind.GO: Report.GO, Kind.TAP: Report.TAP}.get(kind or Kind.XML, Report.JUNIT)


# Reports in what a command printed, whatever else it printed.


LOOKED_AT = 4096

# A format, what its text cannot lack, and who reads it; the first that was found gives its name.
SPOKEN: tuple[
    tuple[Report, tuple[str, ...], Callable[[Sequence[str], str], ReportRead | None]], ...
] = (
    (Report.TAP, ("ok ",), tap.read),
    (Report.PYTEST, (" in ", "short test summary info"), pytest.read),
    (Report.GO, ("ok  \t", "FAIL\t", "?   \t", ".go:"), go.read_text),
    (
        Report.MYPY,
        ("Found ", "Success: no issues", " warnings, ", '"severity": '),
        compilers.read_mypy,
    ),
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
    events = go.read_events(output, root) if '"Action"' in output else None
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
