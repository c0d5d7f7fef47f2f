"""What GitHub Actions reads of a run of the gates: notes at lines and a summary."""

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from lockgate.core.model.findings import Finding
from lockgate.faces.words import gate
from lockgate.services.gates.commit_check import Case, Judged

SHOWN = 10  # of each step GitHub shows so many errors
LONGEST = 4000  # characters of one note


def annotations(found: Sequence[Judged]) -> Iterator[str]:
    """One command a finding of a gate that did not pass, those at a line first."""
    notes = [(it, one) for it in found if it.result == "failed" for one in it.findings]
    notes.sort(key=lambda note: not _in_repository(note[1]))
    told = [_note(it.gate.name, one) for it, one in notes]
    told += [
        f"::error title={_property(it.gate.name)}::{_data(it.why or it.result)}"
        for it in found
        if it.result not in {*gate.GOOD, "failed"}
    ]
    yield from told[:SHOWN]
    if len(told) > SHOWN:
        yield f"::notice title=lockgate::{len(told) - SHOWN} more are in the summary"


def summary(case: Case, found: Sequence[Judged], protected: Sequence[str]) -> str:
    """Markdown for the page of the job."""
    head = "passed" if gate.passed(case, found) else "did not pass"
    rows = [
        f"| {gate.MARKS[it.result]} | {_cell(it.gate.name)} | {it.result} | {it.seconds:.1f} s |"
        for it in found
    ]
    table = ["| | gate | result | time |", "|---|---|---|---|", *rows] if rows else []
    said = [gate.finding_text(one) for it in found for one in it.findings]
    said += [f"{it.gate.name}: {it.why}" for it in found if it.why]
    fence = _fence("\n".join(said))
    texts = [fence, *said, fence] if said else []
    end = [f"- {_cell(line)}" for line in gate.run_end(case, found, protected)]
    parts = ([f"## Lockgate: {head}"], table, texts, end)
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _note(name: str, it: Finding) -> str:
    place = ""
    if it.location and _in_repository(it):
        numbers = {"line": it.location.line, "col": it.location.column}
        place = f"file={_property(it.location.file)}," + "".join(
            f"{key}={value}," for key, value in numbers.items() if value
        )
    text = it.issue.strip()[:LONGEST]
    return f"::error {place}title={_property(name)}::{_data(f'{it.priority} {text}')}"


def _in_repository(it: Finding) -> bool:
    if it.location is None:
        return False
    path = PurePosixPath(it.location.file)
    return not path.is_absolute() and ".." not in path.parts


def _data(text: str) -> str:
    """As the runner takes it apart again: after a line end a new command could begin."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _cell(text: str) -> str:
    """On one line, without Markdown or HTML of its own."""
    plain = " ".join(text.split())
    marks = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "\\|", "`": "\\`", "[": "\\[", "*": "\\*"}
    return "".join(marks.get(it, it) for it in plain)


def _fence(text: str) -> str:
    """Longer than any run of its marks in the text, so that the text cannot end it."""
    longest = 2
    run = 0
    for it in text:
        run = run + 1 if it == "`" else 0
        longest = max(longest, run)
    return "`" * (longest + 1)
