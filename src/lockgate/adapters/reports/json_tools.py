"""The JSON of eslint, ruff and pyright, and SARIF 2.1: any analyser's results with their rules."""

import posixpath
import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from lockgate.adapters.reports.text import items, located, mapping, one_line, text, whole
from lockgate.core.model.findings import Finding, Location, Priority
from lockgate.core.model.gates import Report
from lockgate.core.model.results import ReportRead

SEVERITIES = {
    "error": Priority.P1_MAJOR,
    "warning": Priority.P2_MINOR,
    "information": Priority.P3_SUGGESTION,
}
SYNTAX = frozenset({"", "invalid-syntax", "E999"})
ESLINT_ERROR = 2

Json = Mapping[str, object]
LEVELS = {
    "error": Priority.P1_MAJOR,
    "warning": Priority.P2_MINOR,
    "note": Priority.P3_SUGGESTION,
    "none": Priority.P3_SUGGESTION,
}
CRITICAL = 9.0
RUNS = 1000
_ARGUMENT = re.compile(r"\{(\d{1,2})\}")


def read_linter(document: object, root: str) -> ReportRead | None:
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


# SARIF.


class _Run(Struct, frozen=True, kw_only=True):
    rules: Mapping[str, Json]
    numbered: tuple[Json, ...]
    artifacts: tuple[Json, ...]
    bases: Json
    root: str


def is_sarif(document: object) -> bool:
    found = mapping(document)
    return isinstance(found.get("runs"), list) and text(found.get("version")).startswith("2.")


def read_sarif(document: object, root: str) -> ReportRead:
    runs = [mapping(run) for run in items(mapping(document).get("runs"))[:RUNS]]
    invocations = [mapping(it) for run in runs for it in items(run.get("invocations"))]
    return ReportRead(
        format=Report.SARIF,
        findings=tuple(finding for run in runs for finding in _findings(run, root)),
        complete=len(items(mapping(document).get("runs"))) <= RUNS
        and all(it.get("executionSuccessful") is not False for it in invocations),
    )


def _findings(given: Json, root: str) -> Iterator[Finding]:
    run = _run(given, root)
    for result in map(mapping, items(given.get("results"))):
        if _counts(result):
            yield _finding(result, run)


def _run(given: Json, root: str) -> _Run:
    rules = tuple(map(mapping, items(_at(given, "tool", "driver").get("rules"))))
    extensions = map(mapping, items(_at(given, "tool").get("extensions")))
    extra = [mapping(rule) for it in extensions for rule in items(it.get("rules"))]
    return _Run(
        rules={text(rule.get("id")): rule for rule in (*extra, *rules)},
        numbered=rules,
        artifacts=tuple(map(mapping, items(given.get("artifacts")))),
        bases=_at(given, "originalUriBaseIds"),
        root=root,
    )


def _counts(result: Json) -> bool:
    """A result that is suppressed, gone or no failure is no finding."""
    failure = text(result.get("kind")) in {"", "fail", "open", "review"}
    return failure and not result.get("suppressions") and result.get("baselineState") != "absent"


def _finding(result: Json, run: _Run) -> Finding:
    rule = _rule(result, run)
    name = text(result.get("ruleId")) or text(rule.get("id"))
    said = _message(mapping(result.get("message")), rule)
    fixes = items(result.get("fixes"))
    hint = text(_at(mapping(fixes[0]), "description").get("text")) if fixes else ""
    return Finding(
        _priority(result, rule),
        one_line(f"{name}: {said}" if name and said else said or name) or "(no text)",
        _location(result, run),
        one_line(hint) or None,
    )


def _rule(result: Json, run: _Run) -> Json:
    reference = mapping(result.get("rule"))
    id = text(result.get("ruleId")) or text(reference.get("id"))
    if id in run.rules:
        return run.rules[id]
    index = whole(result.get("ruleIndex"))
    return _numbered(run.numbered, whole(reference.get("index")) if index is None else index)


def _numbered(these: tuple[Json, ...], index: int | None) -> Json:
    return these[index] if index is not None and 0 <= index < len(these) else {}


def _priority(result: Json, rule: Json) -> Priority:
    properties = mapping(rule.get("properties"))
    secure = "security" in items(properties.get("tags"))
    if secure and _severity(properties.get("security-severity")) >= CRITICAL:
        return Priority.P0_CRITICAL
    default = text(_at(rule, "defaultConfiguration").get("level"))
    level = text(result.get("level")) or default or "warning"
    return LEVELS.get(level, Priority.P2_MINOR)


def _severity(value: object) -> float:
    try:
        return float(value[:9]) if isinstance(value, str) else float(whole(value) or 0)
    except ValueError:
        return 0.0


def _message(message: Json, rule: Json) -> str:
    said = text(message.get("text"))
    if not said:
        said = text(_at(rule, "messageStrings", text(message.get("id"))).get("text"))
    if not said:
        said = text(_at(rule, "shortDescription").get("text"))
    arguments = items(message.get("arguments"))

    def filled(match: re.Match[str]) -> str:
        index = int(match[1])
        return text(arguments[index]) if index < len(arguments) else match[0]

    return _ARGUMENT.sub(filled, said[:4000]) if arguments else said


def _location(result: Json, run: _Run) -> Location | None:
    places = items(result.get("locations"))
    physical = _at(mapping(places[0] if places else None), "physicalLocation")
    artifact = _at(physical, "artifactLocation")
    if not artifact.get("uri"):
        known = _numbered(run.artifacts, whole(artifact.get("index")))
        artifact = _at(known, "location")
    base = text(_at(run.bases, text(artifact.get("uriBaseId"))).get("uri"))
    region = _at(physical, "region")
    line, column = whole(region.get("startLine")), whole(region.get("startColumn"))
    uri = text(artifact.get("uri"))
    return located(posixpath.join(base, uri) if uri else "", run.root, line, column)


def _at(value: Json, *keys: str) -> Json:
    for key in keys:
        value = mapping(value.get(key))
    return value
