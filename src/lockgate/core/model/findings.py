"""Findings: one problem each, with priority and place; feedback is all an agent gets of them."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

from msgspec import Struct

# What is left of a text once all that differs from run to run is taken out.


_VOLATILE = re.compile(
    r"""
      \b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b  # a UUID
    | \b0x[0-9a-f]+                                    # an address
    | \b(?=[a-f]*\d)[0-9a-f]{7,}\b                     # an id, such as a commit's
    | \d+(?:[.,:]\d+)*                                 # a number, line:column, a time of day
      (?:\ ?(?:ns|us|µs|ms|s|sec|seconds?|min|minutes?|h|am|pm)\b)?
    """,
    re.VERBOSE | re.IGNORECASE,
)


def normalise(text: str, workspaces: Sequence[str] = ()) -> str:
    """Two runs that failed in the same way give the same text. `workspaces` are directories."""
    roots = {workspace.rstrip("/") for workspace in workspaces} - {""}
    for root in sorted(roots, key=len, reverse=True):
        text = re.sub(re.escape(root) + r"(?![\w.-])/?", "", text)
    return " ".join(_VOLATILE.sub("<n>", text).split())


class Priority(StrEnum):
    """How much a finding matters; P0 and P1 block."""

    P0_CRITICAL = "P0"  # must fix
    P1_MAJOR = "P1"  # should fix
    P2_MINOR = "P2"  # nice to fix
    P3_SUGGESTION = "P3"  # optional


class Location(Struct, frozen=True):
    file: str
    line: int | None = None
    column: int | None = None


class Finding(Struct, frozen=True):
    priority: Priority
    issue: str
    location: Location | None = None
    suggestion: str | None = None
    quote: str = ""  # the line that it is about: lines move


class GateFeedback(Struct, frozen=True, kw_only=True):
    """What one failed gate has to say to the agent."""

    gate_name: str
    findings: tuple[Finding, ...]
    summary: str
    suggested_action: str


HEADLINE = 300  # characters of a finding that one line has
BLOCKING = frozenset({Priority.P0_CRITICAL, Priority.P1_MAJOR})


class Identity(Struct, frozen=True):
    """What stays the same about a finding from one iteration to the next."""

    gate: str
    file: str
    text: str


class Compared(Struct, frozen=True):
    """The findings of two evaluations: only now, in both (as they are now), only before."""

    new: tuple[Finding, ...]
    still_there: tuple[Finding, ...]
    fixed: tuple[Finding, ...]


def blocks(finding: Finding) -> bool:
    return finding.priority in BLOCKING


def by_priority(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The worst first; equals keep their order."""
    return tuple(sorted(findings, key=lambda it: it.priority))


def headline(findings: Iterable[Finding]) -> str:
    """The worst finding in one line, its test and message or its error, and how many more."""
    worst = by_priority(findings)
    if not worst:
        return "it said nothing"
    lines = [" ".join(it.split()) for it in worst[0].issue.splitlines() if it.strip()]
    telling = [it for it in lines if "Error" in it or "error:" in it] or lines or ["it failed"]
    said = telling[-1]
    said = said if len(said) <= HEADLINE else f"{said[: HEADLINE - 1]}…"
    return f"{said} (and {len(worst) - 1} more)" if len(worst) > 1 else said


def identity(gate: str, finding: Finding) -> Identity:
    """Lines move and reviewers reword numbers: neither makes it another finding."""
    file = finding.location.file if finding.location else ""
    return Identity(gate, file, normalise(finding.issue).casefold())


def compared(before: GateFeedback, now: GateFeedback) -> Compared:
    """Each finding counts once: of three equal ones that are two now, one is fixed."""
    new, still_there = _apart(now, before)
    fixed, _ = _apart(before, now)
    return Compared(new, still_there, fixed)


def _apart(
    these: GateFeedback, others: GateFeedback
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Those of these that the others do not have, and those that they have too."""
    left = Counter(identity(others.gate_name, finding) for finding in others.findings)
    alone: list[Finding] = []
    shared: list[Finding] = []
    for finding in these.findings:
        known = identity(these.gate_name, finding)
        (shared if left[known] else alone).append(finding)
        left[known] -= 1 if left[known] else 0
    return tuple(alone), tuple(shared)
