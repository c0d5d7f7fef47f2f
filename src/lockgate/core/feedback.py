"""What an agent reads after a failed evaluation: the findings in order, and what to do now."""

import re
from collections.abc import Iterable, Sequence

from lockgate.core.artifacts import Verdict
from lockgate.core.findings import Finding, GateFeedback, Location, Priority, blocks

HEADINGS = {
    Priority.P0_CRITICAL: "P0 Critical",
    Priority.P1_MAJOR: "P1 Major",
    Priority.P2_MINOR: "P2 Minor",
    Priority.P3_SUGGESTION: "P3 Suggestion",
}

# What begins a list, a heading, a fence, a quote or HTML; `__init__.py` and `#12` begin nothing.
_OPENING = re.compile(
    r"\A(\d+(?=[.)](?: |\Z))|(?=[*+-](?: |\Z)|#{1,6}(?: |\Z)|```|~~~|>|<[A-Za-z/!?]))"
)


def verdict_of(findings: Iterable[Finding], *, all_passed: bool) -> Verdict:
    """PASS only if every gate passed and nothing found is P0 or P1."""
    blocked = any(blocks(finding) for finding in findings)
    return Verdict.PASS if all_passed and not blocked else Verdict.FAIL


def same_agent_message(feedback: GateFeedback) -> str:
    """For the agent that did the work and still knows it."""
    return "\n\n".join(
        (
            "Gate evaluation found issues that need fixing:",
            *_feedback_blocks(feedback),
            "Please fix these issues. The workspace is unchanged: continue where you left off.",
        )
    )


def fresh_agent_prompt(
    title: str,
    work_summary: str,
    feedback: GateFeedback,
    files_modified: Sequence[str],
    diff_command: str,
) -> str:
    """For an agent that knows nothing yet, in the workspace of the one before it."""
    return "\n\n".join(
        (
            f"Continue task: {one_line(title)}",
            f"Previous work summary:\n{_quoted(work_summary)}",
            "Gate evaluation found issues:",
            *_feedback_blocks(feedback),
            "Files modified so far:\n" + _listed(files_modified),
            "Please fix the issues identified above.",
            f"Review the current state with: {diff_command}",
        )
    )


def findings_by_priority(findings: Sequence[Finding]) -> tuple[str, ...]:
    """One block a priority that occurs: its heading, then one list item a finding."""
    grouped = {
        heading: [finding for finding in findings if finding.priority is priority]
        for priority, heading in HEADINGS.items()
    }
    return tuple(
        f"### {heading}\n" + "\n".join(_item(finding) for finding in group)
        for heading, group in grouped.items()
        if group
    )


def one_line(text: str) -> str:
    """The text with no line break, no control character and no way to open a comment."""
    kept = (it for it in text if it.isprintable() or it.isspace())
    return " ".join("".join(kept).split()).replace("<!--", "&lt;!--") or "(no text)"


def _feedback_blocks(feedback: GateFeedback) -> tuple[str, ...]:
    return (
        f"## Failed Gate: {one_line(feedback.gate_name)}",
        _inert(feedback.summary),
        *findings_by_priority(feedback.findings),
        f"Suggested action: {one_line(feedback.suggested_action)}",
    )


def _item(finding: Finding) -> str:
    where = f"{_place(finding.location)} - " if finding.location else ""
    hint = f" → {one_line(finding.suggestion)}" if finding.suggestion else ""
    return f"- {_inert(where + one_line(finding.issue))}{hint}"


def _place(location: Location) -> str:
    numbers = [location.line] if location.column is None else [location.line, location.column]
    known = [str(number) for number in numbers if number is not None]
    return ":".join((one_line(location.file), *known))


def _inert(text: str) -> str:
    """One line that markdown reads as plain text from its first character on."""
    return _OPENING.sub(r"\1\\", one_line(text))


def _listed(names: Sequence[str]) -> str:
    return "\n".join(f"- {_inert(name)}" for name in names) or "- (none)"


def _quoted(text: str) -> str:
    """Behind the quote mark a heading is the earlier agent's, never ours."""
    return (
        "\n".join(f"> {one_line(line)}" if line.strip() else ">" for line in text.splitlines())
        or "> (none)"
    )
