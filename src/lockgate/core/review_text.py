"""The text of `## Review` where Lockgate writes it: the verdict alone, then what each gate said."""

from collections.abc import Sequence

from lockgate.core.artifacts import Verdict
from lockgate.core.evaluation import Broken, Failed, Passed, SingleGateResult, Waiting
from lockgate.core.feedback import findings_by_priority, one_line


def rendered(verdict: Verdict, gates: Sequence[SingleGateResult]) -> str:
    """The verdict, then what the gates said as a quote, so that none of it is read as a verdict."""
    told = (_quoted(block) for result in gates for block in _blocks(result))
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


def _quoted(block: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in block.split("\n"))


def _counted(findings: Sequence[object]) -> str:
    if not findings:
        return ""
    return " with 1 finding" if len(findings) == 1 else f" with {len(findings)} findings"
