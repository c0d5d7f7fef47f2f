"""Findings in words: the feedback to an agent, what was fixed since, our own `## Review`."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.model.findings import Finding, GateFeedback, Location, Priority, blocks, compared
from lockgate.core.model.results import Broken, Failed, Passed, SingleGateResult, Waiting
from lockgate.core.text.task_file import Verdict

# Progress: what became of the findings of one evaluation in the next.


APART = ", "  # between the names of gates that failed together


class Progress(Struct, frozen=True, kw_only=True):
    """`still_there` has a word for each finding of now, in order.

    `elsewhere` is what gates found before that did not fail now: they passed, or did not get to it.
    """

    still_there: tuple[bool, ...]
    fixed: tuple[Finding, ...]
    elsewhere: tuple[tuple[str, tuple[Finding, ...]], ...]


def progress(before: GateFeedback, now: GateFeedback) -> Progress:
    """Of a finding with several lines the first one counts: what a command printed differs."""
    then, today = _by_gate(before), _by_gate(now)
    both = {gate: compared(then[gate], today[gate]) for gate in today if gate in then}
    stayed = Counter((gate, it) for gate, each in both.items() for it in each.still_there)
    still_there: list[bool] = []
    for finding in now.findings:
        known = _named(now.gate_name, finding)
        still_there.append(stayed[known] > 0)
        stayed[known] -= 1
    return Progress(
        still_there=tuple(still_there),
        fixed=tuple(finding for each in both.values() for finding in each.fixed),
        elsewhere=tuple(
            (gate, feedback.findings)
            for gate, feedback in then.items()
            if gate not in today and feedback.findings
        ),
    )


def text_lines(text: str) -> list[str]:
    """From the first line that says something to the last."""
    return text.strip().splitlines() or [""]


def prefixed(gate: str, finding: Finding) -> Finding:
    """The finding with its gate's name, for where several gates speak."""
    return replace(finding, issue=f"{gate}: {finding.issue}")


def _by_gate(feedback: GateFeedback) -> Mapping[str, GateFeedback]:
    """Each gate's own findings, where several failed together."""
    found: dict[str, list[Finding]] = {gate: [] for gate in feedback.gate_name.split(APART)}
    for finding in feedback.findings:
        gate, known = _named(feedback.gate_name, finding)
        found.setdefault(gate, []).append(known)
    return {
        gate: replace(feedback, gate_name=gate, findings=tuple(its)) for gate, its in found.items()
    }


def _named(gate_name: str, finding: Finding) -> tuple[str, Finding]:
    """The gate that found it, and the first line of what it found."""
    head = text_lines(finding.issue)[0]
    gates = gate_name.split(APART)
    for gate in gates if len(gates) > 1 else ():
        if head.startswith(f"{gate}: "):
            return gate, replace(finding, issue=head.removeprefix(f"{gate}: "))
    return gate_name, replace(finding, issue=head)


HEADINGS = {
    Priority.P0_CRITICAL: "P0 Critical",
    Priority.P1_MAJOR: "P1 Major",
    Priority.P2_MINOR: "P2 Minor",
    Priority.P3_SUGGESTION: "P3 Suggestion",
}

MOST_LISTED = 20  # of what is no longer there

# What begins a list, a heading, a fence, a quote or HTML; `__init__.py` and `#12` begin nothing.
_OPENING = re.compile(
    r"\A(\d+(?=[.)](?: |\Z))|(?=[*+-](?: |\Z)|#{1,6}(?: |\Z)|```|~~~|>|<[A-Za-z/!?]))"
)
_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_TICKS = re.compile(r"`+")


def verdict_of(findings: Iterable[Finding], *, all_passed: bool) -> Verdict:
    """PASS only if every gate passed and nothing found is P0 or P1."""
    blocked = any(blocks(finding) for finding in findings)
    return Verdict.PASS if all_passed and not blocked else Verdict.FAIL


def same_agent_message(feedback: GateFeedback, before: GateFeedback | None = None) -> str:
    """For the agent that did the work and still knows it. `before` is the feedback before this."""
    return "\n\n".join(
        (
            "Gate evaluation found issues that need fixing:",
            *_feedback_blocks(feedback, before),
            "Please fix these issues. The workspace is unchanged: continue where you left off.",
        )
    )


def fresh_agent_prompt(
    title: str,
    work_summary: str,
    feedback: GateFeedback,
    files_modified: Sequence[str],
    diff_command: str,
    before: GateFeedback | None = None,
) -> str:
    """For an agent that knows nothing yet, in the workspace of the one before it."""
    return "\n\n".join(
        (
            f"Continue task: {one_line(title)}",
            f"Previous work summary:\n{quoted(work_summary)}",
            "Gate evaluation found issues:",
            *_feedback_blocks(feedback, before),
            "Files modified so far:\n" + _listed(files_modified),
            "Please fix the issues identified above.",
            f"Review the current state with: {diff_command}",
        )
    )


def findings_by_priority(findings: Sequence[Finding], marks: Sequence[str] = ()) -> tuple[str, ...]:
    """One block a priority that occurs: its heading, then one list item a finding."""
    marked = list(zip(findings, marks or [""] * len(findings), strict=True))
    grouped = {
        heading: [_item(finding, mark) for finding, mark in marked if finding.priority is priority]
        for priority, heading in HEADINGS.items()
    }
    return tuple(
        f"### {heading}\n" + "\n".join(items) for heading, items in grouped.items() if items
    )


def one_line(text: str) -> str:
    """The text with no line break, no control character and no way to open a comment."""
    kept = (it for it in _COLOURS.sub("", text) if it.isprintable() or it.isspace())
    return " ".join("".join(kept).split()).replace("<!--", "&lt;!--") or "(no text)"


def place(location: Location) -> str:
    numbers = [location.line] if location.column is None else [location.line, location.column]
    known = [str(number) for number in numbers if number is not None]
    return ":".join((one_line(location.file), *known))


def _feedback_blocks(feedback: GateFeedback, before: GateFeedback | None) -> tuple[str, ...]:
    since = progress(before, feedback) if before else None
    return (
        f"## Failed Gate: {one_line(feedback.gate_name)}",
        _inert(feedback.summary),
        *findings_by_priority(feedback.findings, _marks(since) if since else ()),
        *(_since(since) if since else ()),
        f"Suggested action: {one_line(feedback.suggested_action)}",
    )


def _marks(since: Progress) -> list[str]:
    return ["still there" if stayed else "new" for stayed in since.still_there]


def _since(since: Progress) -> Iterable[str]:
    """What became of the findings before these."""
    still = sum(since.still_there)
    yield (
        f"Since the evaluation before: {len(since.fixed)} fixed, {still} still there,"
        f" {len(since.still_there) - still} new."
    )
    if since.fixed:
        yield "Fixed:\n" + _short(since.fixed)
    for gate, findings in since.elsewhere:
        yield (
            f"Found then by {one_line(gate)}, which has passed now or has yet to judge again:\n"
            + _short(findings)
        )


def _short(findings: Sequence[Finding]) -> str:
    """One line a finding, and how many more there are."""
    lines = [f"- {_head(finding)}" for finding in findings[:MOST_LISTED]]
    more = len(findings) - len(lines)
    return "\n".join([*lines, f"- and {more} more"] if more else lines)


def _item(finding: Finding, mark: str) -> str:
    hint = f" → {one_line(finding.suggestion)}" if finding.suggestion else ""
    noted = f" ({mark})" if mark else ""
    _, *rest = text_lines(finding.issue)
    quote = _fenced(finding.quote.splitlines()[:1])
    return "\n".join((f"- {_head(finding)}{hint}{noted}", *quote, *_fenced(rest)))


def _head(finding: Finding) -> str:
    where = f"{place(finding.location)} - " if finding.location else ""
    return _inert(where + one_line(text_lines(finding.issue)[0]))


def _fenced(lines: Sequence[str]) -> tuple[str, ...]:
    """The lines as they are, inside the list item, behind a fence longer than any in them."""
    shown = [_visible(line) for line in lines]
    if not any(shown):
        return ()
    longest = max((len(it) for line in shown for it in _TICKS.findall(line)), default=0)
    fence = "  " + "`" * max(3, longest + 1)
    return fence, *(f"  {line}".rstrip() for line in shown), fence


def _visible(line: str) -> str:
    kept = (" " if it.isspace() else it for it in _COLOURS.sub("", line).expandtabs(4))
    shown = "".join(it for it in kept if it.isprintable()).rstrip()
    return shown.replace("<!--", "&lt;!--")


def _inert(text: str) -> str:
    """One line that markdown reads as plain text from its first character on."""
    return _OPENING.sub(r"\1\\", one_line(text))


def _listed(names: Sequence[str]) -> str:
    return "\n".join(f"- {_inert(name)}" for name in names) or "- (none)"


def quoted(text: str) -> str:
    """Behind the quote mark a heading is the earlier agent's, never ours."""
    return (
        "\n".join(f"> {one_line(line)}" if line.strip() else ">" for line in text.splitlines())
        or "> (none)"
    )


# The text of `## Review` where Lockgate writes it: the verdict alone, then what each gate said.


def rendered(verdict: Verdict, gates: Sequence[SingleGateResult]) -> str:
    """The verdict, then what the gates said as a quote, so that none of it is read as a verdict."""
    told = (_as_quote(block) for result in gates for block in _blocks(result))
    return "\n\n".join((verdict.upper(), *told)) + "\n"


def _blocks(result: SingleGateResult) -> tuple[str, ...]:
    gate = f"Gate {one_line(result.gate)}"
    match result:
        case Passed(findings=findings):
            return f"{gate} passed{_counted(findings)}.", *findings_by_priority(findings)
        case Failed(findings=findings):
            return f"{gate} failed{_counted(findings)}.", *findings_by_priority(findings)
        case Waiting(prompt=prompt):
            return (f"{gate} waits for a human: {one_line(prompt)}",)
        case Broken(why=why):
            return (f"{gate} could not judge: {one_line(why)}",)


def _as_quote(block: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in block.split("\n"))


def _counted(findings: Sequence[object]) -> str:
    if not findings:
        return ""
    return " with 1 finding" if len(findings) == 1 else f" with {len(findings)} findings"
