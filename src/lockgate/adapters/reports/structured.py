"""Reports by their first bytes: XML, JSON, events of go, TAP."""

from enum import Enum, auto

from lockgate.adapters.reports import go_events, junit, linters, sarif, tap
from lockgate.adapters.reports.files import File
from lockgate.adapters.reports.plain import lines_of
from lockgate.adapters.reports.untyped import Refused, parsed
from lockgate.core.model.gates import Report
from lockgate.core.model.reports import ReportRead


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
        return go_events.read(text, root)
    return tap.read(lines_of(text), root) or ReportRead(format=Report.TAP, complete=False)


def read_json(text: str, root: str) -> ReportRead | None:
    try:
        document = parsed(text.lstrip())
    except Refused:
        return ReportRead(format=_format(Kind.JSON, text[:4096]), complete=False)
    return sarif.read(document, root) if sarif.is_sarif(document) else linters.read(document, root)


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
