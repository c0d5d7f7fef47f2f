"""The JSON of eslint, ruff and pyright."""

from collections.abc import Iterator, Mapping

from lockgate.adapters.reports.text import items, located, mapping, one_line, text, whole
from lockgate.core.model.findings import Finding, Priority
from lockgate.core.model.gates import Report
from lockgate.core.model.reports import ReportRead

SEVERITIES = {
    "error": Priority.P1_MAJOR,
    "warning": Priority.P2_MINOR,
    "information": Priority.P3_SUGGESTION,
}
SYNTAX = frozenset({"", "invalid-syntax", "E999"})
ESLINT_ERROR = 2

Json = Mapping[str, object]


def read(document: object, root: str) -> ReportRead | None:
    """None where it is the JSON of something else. An empty list is nobody's."""
    if isinstance(mapping(document).get("generalDiagnostics"), list):
        return ReportRead(format=Report.MYPY, findings=tuple(_pyright(mapping(document), root)))
    entries = [mapping(it) for it in items(document)]
    if not entries:
        return None
    if all("filePath" in it and "messages" in it for it in entries):
        return ReportRead(format=Report.ESLINT, findings=tuple(_eslint(entries, root)))
    if all("filename" in it and "location" in it for it in entries):
        found = tuple(_ruff(it, root) for it in entries)
        return ReportRead(format=Report.RUFF, findings=found)
    return None


def _pyright(document: Json, root: str) -> Iterator[Finding]:
    for given in map(mapping, items(document.get("generalDiagnostics"))):
        start = mapping(mapping(given.get("range")).get("start"))
        yield Finding(
            SEVERITIES.get(text(given.get("severity")), Priority.P3_SUGGESTION),
            _named(text(given.get("message")), text(given.get("rule"))),
            located(
                text(given.get("file")),
                root,
                _next(start.get("line")),
                _next(start.get("character")),
            ),
        )


def _next(value: object) -> int | None:
    """Pyright counts from 0."""
    counted = whole(value)
    return None if counted is None else counted + 1


def _eslint(files: list[Json], root: str) -> Iterator[Finding]:
    for file in files:
        for given in map(mapping, items(file.get("messages"))):
            hints = [text(mapping(it).get("desc")) for it in items(given.get("suggestions"))]
            place = located(
                text(file.get("filePath")),
                root,
                whole(given.get("line")),
                whole(given.get("column")),
            )
            yield Finding(
                _eslint_priority(given),
                _named(text(given.get("message")), text(given.get("ruleId"))),
                place,
                one_line(hints[0]) or None if hints else None,
            )


def _eslint_priority(given: Json) -> Priority:
    if given.get("fatal") is True:
        return Priority.P1_MAJOR
    error = whole(given.get("severity")) == ESLINT_ERROR
    return Priority.P2_MINOR if error else Priority.P3_SUGGESTION


def _ruff(given: Json, root: str) -> Finding:
    code = text(given.get("code"))
    place = mapping(given.get("location"))
    hint = text(mapping(given.get("fix")).get("message"))
    return Finding(
        Priority.P1_MAJOR if code in SYNTAX else Priority.P2_MINOR,
        _named(text(given.get("message")), code),
        located(
            text(given.get("filename")), root, whole(place.get("row")), whole(place.get("column"))
        ),
        one_line(hint) or None,
    )


def _named(message: str, rule: str) -> str:
    said = one_line(message) or "(no text)"
    return f"{said} ({one_line(rule, 100)})" if rule else said
