"""Progress: what became of the findings of one evaluation in the next."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lockgate.core.findings import Finding, GateFeedback, compared

APART = ", "  # between the names of gates that failed together


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
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
