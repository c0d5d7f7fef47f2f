"""What a reviewer hands in: JSON in, a verdict with findings, joined findings, or a problem out.

The findings of several reviewers become one list, where nothing that blocks is lost.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.model.findings import (
    Finding,
    Identity,
    Location,
    Priority,
    blocks,
    by_priority,
    identity,
)
from lockgate.core.model.results import Failed, Passed, Proof
from lockgate.core.text.feedback import place
from lockgate.core.text.task_file import Verdict

MOST_FINDINGS = 200
MOST_GROUPS = 2_000
LONGEST_TEXT = 2_000
LONGEST_SUMMARY = 20_000  # it may be a whole review in prose
LAST_LINE = 10_000_000
NO_FINDING = "the reviewer's verdict is FAIL, without a finding"
_DIGITS = 18
_SHOWN = 60
Named = tuple[str, Finding]  # the dimension that found it, and what it found

NOBODY = Finding(Priority.P1_MAJOR, "no reviewer has given a verdict")


class Submission(Struct, frozen=True):
    """One reviewer's word. `converged` says that another pass would find nothing."""

    verdict: Verdict
    summary: str = ""
    findings: tuple[Finding, ...] = ()
    converged: bool = False


class Group(Struct, frozen=True):
    """Findings that are one problem, by the numbers they were shown with, in new words."""

    of: tuple[int, ...]
    issue: str
    suggestion: str | None = None


class Joined(Struct, frozen=True):
    groups: tuple[Group, ...]


class Problem(Struct, frozen=True):
    """Why nothing was handed in, in words by which its author can mend it."""

    why: str


class _Object(Struct, frozen=True):
    """A JSON object, each key once."""

    values: Mapping[str, object]


class _Key(Struct, frozen=True):
    """What a key may hold; one that is not required may also be null."""

    holds: Callable[[object], bool]
    allowed: str
    required: bool = False


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_said(value: object) -> bool:
    return isinstance(value, str) and bool(_words(value))


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LAST_LINE


def _is_verdict(value: object) -> bool:
    return isinstance(value, str) and value.strip().lower() in set(Verdict)


def _is_priority(value: object) -> bool:
    return isinstance(value, str) and value.strip().upper() in set(Priority)


def _is_list(most: int) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and len(cast("list[object]", value)) <= most


_TEXT = _Key(_is_text, "a text")
_SAID = _Key(_is_said, "a text that says something", required=True)
_NUMBER = _Key(_is_number, f"a whole number from 1 to {LAST_LINE}")
_SUBMISSION = {
    "verdict": _Key(_is_verdict, "PASS or FAIL", required=True),
    "summary": _TEXT,
    "findings": _Key(_is_list(MOST_FINDINGS), f"a list of at most {MOST_FINDINGS} findings"),
    "converged": _Key(lambda value: isinstance(value, bool), "true or false"),
}
_FINDING = {
    "priority": _Key(_is_priority, "P0, P1, P2 or P3", required=True),
    "issue": _SAID,
    "file": _TEXT,
    "line": _NUMBER,
    "column": _NUMBER,
    "suggestion": _TEXT,
}
_JOINED = {
    "groups": _Key(_is_list(MOST_GROUPS), f"a list of at most {MOST_GROUPS} groups", required=True)
}
_GROUP = {
    "of": _Key(_is_list(MOST_GROUPS), "a list of numbers of findings", required=True),
    "issue": _SAID,
    "suggestion": _TEXT,
}


def submission(
    text: str, *, synthesis: bool = False, shown: int | None = None
) -> Submission | Joined | Problem:
    """Any text gives one of the three. `shown` is how many findings a synthesis was shown."""
    read = _read(text)
    if isinstance(read, Problem):
        return read
    return _joined(read, shown) if synthesis else _submission(read)


def settled(said: Submission) -> Submission:
    """The verdict as the findings have it: what blocks is a FAIL, and a FAIL has what blocks."""
    if any(blocks(finding) for finding in said.findings):
        return replace(said, verdict=Verdict.FAIL)
    if said.verdict is Verdict.PASS:
        return said
    because = Finding(Priority.P1_MAJOR, said.summary or NO_FINDING)
    return replace(said, findings=(because, *said.findings))


def _submission(value: object) -> Submission | Problem:
    it = _checked("the document", value, _SUBMISSION)
    if isinstance(it, Problem):
        return it
    findings: list[Finding] = []
    for number, each in enumerate(_items(it, "findings"), 1):
        finding = _finding(f"finding {number}", each)
        if isinstance(finding, Problem):
            return finding
        findings.append(finding)
    verdict = Verdict(_text(it, "verdict").lower())
    converged = it.values.get("converged") is True
    summary = _text(it, "summary", LONGEST_SUMMARY)
    return settled(Submission(verdict, summary, tuple(findings), converged))


def _finding(where: str, value: object) -> Finding | Problem:
    it = _checked(where, value, _FINDING)
    if isinstance(it, Problem):
        return it
    file = " ".join(_text(it, "file").split())
    line = _number(it, "line")
    if line and not file:
        return Problem(f'{where}: "line" is {line}, but "file" is missing; name the file too')
    return Finding(
        Priority(_text(it, "priority").upper()),
        _text(it, "issue"),
        Location(file, line, _number(it, "column") if line else None) if file else None,
        _text(it, "suggestion") or None,
    )


def _joined(value: object, shown: int | None) -> Joined | Problem:
    it = _checked("the document", value, _JOINED)
    if isinstance(it, Problem):
        return it
    groups: list[Group] = []
    taken: set[int] = set()
    for number, each in enumerate(_items(it, "groups"), 1):
        group = _group(f"group {number}", each, taken, MOST_GROUPS if shown is None else shown)
        if isinstance(group, Problem):
            return group
        groups.append(group)
        taken.update(group.of)
    return Joined(tuple(groups))


def _group(where: str, value: object, taken: set[int], last: int) -> Group | Problem:
    it = _checked(where, value, _GROUP)
    if isinstance(it, Problem):
        return it
    of: list[int] = []
    for number in _items(it, "of"):
        if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= last:
            return Problem(f'{where}: "of" names {_shown(number)}; allowed are 1 to {last}')
        if number in taken or number in of:
            return Problem(f'{where}: "of" names {number}, which is named already; name it once')
        of.append(number)
    if not of:
        return Problem(f'{where}: "of" is empty; name the findings that are one')
    return Group(tuple(of), _text(it, "issue"), _text(it, "suggestion") or None)


def _read(text: str) -> object | Problem:
    try:
        return cast(
            "object",  # whatever JSON holds
            json.loads(
                text, object_pairs_hook=_once, parse_int=_whole, parse_constant=_no_constant
            ),
        )
    except RecursionError:
        return Problem("it is not taken as JSON: it is nested too deeply")
    except ValueError as error:
        return Problem(f"it is not one JSON document: {error}")


def _once(pairs: Sequence[tuple[str, object]]) -> _Object:
    values: dict[str, object] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"an object has the key {_shown(key)} twice")
        values[key] = value
    return _Object(values)


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"the number {digits[:_DIGITS]}... is too large")
    return int(digits)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no number of JSON")


def _checked(where: str, value: object, keys: Mapping[str, _Key]) -> _Object | Problem:
    if not isinstance(value, _Object):
        return Problem(f"{where} is {_shown(value)}; it must be an object with {_listed(keys)}")
    unknown = [_shown(key) for key in value.values if key not in keys]
    if unknown:
        return Problem(
            f"{where} has keys that mean nothing: {', '.join(unknown[:5])};"
            f" allowed are {_listed(keys)}"
        )
    for name, key in keys.items():
        held = value.values.get(name)
        if held is None and not key.required:
            continue
        if not key.holds(held):
            has = f"is {_shown(held)}" if name in value.values else "is missing"
            return Problem(f'{where}: "{name}" {has}; it must be {key.allowed}')
    return value


def _listed(keys: Mapping[str, _Key]) -> str:
    return ", ".join(f'"{name}"' for name in keys)


def _shown(value: object) -> str:
    """Short and on one line, however deep or long the value is."""
    match value:
        case _Object():
            return "an object"
        case list():
            return f"a list of {len(cast('list[object]', value))}"
        case str():
            short = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}..."
            return ascii(short) if not short.isprintable() else f'"{short}"'
        case None | bool():
            return json.dumps(value)
        case _:
            return str(value)[:_SHOWN]


def _items(it: _Object, name: str) -> list[object]:
    return cast("list[object]", it.values.get(name) or [])  # checked


def _text(it: _Object, name: str, longest: int = LONGEST_TEXT) -> str:
    value = it.values.get(name)
    return _words(value, longest) if isinstance(value, str) else ""


def _number(it: _Object, name: str) -> int | None:
    value = it.values.get(name)
    return value if isinstance(value, int) else None


def _words(text: str, longest: int = LONGEST_TEXT) -> str:
    """The text without control characters but for line breaks and tabs, and cut."""
    lines = (
        "".join(it for it in line if it.isprintable() or it == "\t") for line in text.splitlines()
    )
    whole = "\n".join(lines).strip()
    return whole if len(whole) <= longest else whole[: longest - 1].rstrip() + "\u2026"


# Synthesis: the findings of several reviewers as one list.


def judged(
    gate: str,
    by_dimension: Sequence[tuple[str, Submission]],
    advisory: frozenset[str],
    words: Joined | None,
    proof: Proof,
) -> Passed | Failed:
    """The verdict is computed from what was found; no words of a synthesis change it."""
    findings = joined(numbered(by_dimension, advisory), words) if by_dimension else (NOBODY,)
    if any(blocks(finding) for finding in findings):
        return Failed(gate, findings)
    return Passed(gate, proof, findings)


def numbered(
    by_dimension: Sequence[tuple[str, Submission]], advisory: frozenset[str] = frozenset()
) -> tuple[Named, ...]:
    """All findings in the order of their numbers, from 1. What is advisory is P2 at most."""
    return tuple(
        _advice(dimension, finding) if dimension in advisory else (dimension, finding)
        for dimension, said in by_dimension
        for finding in settled(said).findings
    )


def joined(found: Sequence[Named], words: Joined | None) -> tuple[Finding, ...]:
    """A group becomes one finding, and so do exact duplicates; the worst come first."""
    ones: dict[int, Finding] = {}
    taken: set[int] = set()
    for group in words.groups if words else ():
        of = [it for it in dict.fromkeys(group.of) if 1 <= it <= len(found) and it not in taken]
        taken.update(of)
        if of:
            ones[min(of)] = _as_one([found[it - 1] for it in of], group)
    left = [it for it in range(1, len(found) + 1) if it not in taken]
    for same in _duplicates(found, left):
        ones[same[0]] = _as_one([found[it - 1] for it in same], None)
    return by_priority(ones[it] for it in sorted(ones))


def _advice(dimension: str, finding: Finding) -> Named:
    priority = max(finding.priority, Priority.P2_MINOR)
    return f"({dimension}, advisory)", replace(finding, priority=priority)


def _duplicates(found: Sequence[Named], numbers: Iterable[int]) -> Iterable[list[int]]:
    same: dict[Identity, list[int]] = {}
    for number in numbers:
        same.setdefault(identity("", found[number - 1][1]), []).append(number)
    return same.values()


def _as_one(members: Sequence[Named], group: Group | None) -> Finding:
    """The worst priority and its place. What is P0 keeps its own words, whatever a group says."""
    findings = by_priority(finding for _, finding in members)
    worst = findings[0].priority
    critical = worst is Priority.P0_CRITICAL
    own = [it for it in findings if it.priority is Priority.P0_CRITICAL] if critical else findings
    issue, suggestion = _each(it.issue for it in own), _each(it.suggestion or "" for it in own)
    if group and not critical:
        issue, suggestion = group.issue, group.suggestion or suggestion
    places = _places(findings)
    others = ", ".join(place(it) for it in places[1:])
    said_by = ", ".join(dict.fromkeys(dimension for dimension, _ in members))
    named = f"{said_by} (also {others})" if others else said_by
    return Finding(worst, f"{named}: {issue}", places[0] if places else None, suggestion or None)


def _places(findings: Iterable[Finding]) -> list[Location]:
    """Each line once."""
    lines: dict[tuple[str, int | None], Location] = {}
    for finding in findings:
        if finding.location:
            lines.setdefault((finding.location.file, finding.location.line), finding.location)
    return list(lines.values())


def _each(texts: Iterable[str]) -> str:
    """Every wording once; case and spaces make no other one."""
    kept: dict[str, str] = {}
    for text in texts:
        kept.setdefault(" ".join(text.split()).casefold(), text)
    return " / ".join(text for text in kept.values() if text)
