"""Synthesis: the findings of several reviewers as one list, where nothing that blocks is lost."""

from collections.abc import Iterable, Sequence

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
from lockgate.core.review.submission import Group, Joined, Submission, settled
from lockgate.core.text.feedback import place

Named = tuple[str, Finding]  # the dimension that found it, and what it found

NOBODY = Finding(Priority.P1_MAJOR, "no reviewer has given a verdict")


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
