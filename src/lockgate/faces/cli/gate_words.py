"""What people and programs read of gates that were run on a commit."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from xml.sax.saxutils import escape, quoteattr

from lockgate.core.model.findings import Finding
from lockgate.core.model.gates import Gate, kind_of, waves
from lockgate.faces.words import one_line
from lockgate.services.gates.commit_check import Case, Judged

MARKS = {"passed": "✓", "failed": "✗", "broken": "!", "skipped": "–", "waiting": "?"}
TOLD = {"broken": "could not judge"}
SHORT = 12
LONGEST = 2000  # characters of one finding
GOOD = frozenset({"passed", "skipped"})


def judged_lines(it: Judged, width: int) -> Iterator[str]:
    took = f"{it.seconds:.2f} s" if it.level else ""
    tests = f"{it.tests} tests" if it.tests is not None else ""
    tries = f"{it.attempts} attempts" if it.attempts > 1 else ""
    parts = [it.gate.name.ljust(width), TOLD.get(it.result, it.result), took, it.level]
    told = "  ".join(part for part in (*parts, tests, tries) if part)
    yield f"{MARKS[it.result]} {told}" + (f": {_cut(it.why)}" if it.why else "")
    for finding in it.findings:
        yield f"    {finding_text(finding)}"


def run_end(case: Case, found: Sequence[Judged], protected: Sequence[str]) -> Iterator[str]:
    """What was not judged, and what it all comes to."""
    for skipped in case.unjudged:
        yield f"– {skipped.gate.name}  not judged: {skipped.why}"
    for gate in _unreached(case, found):
        yield f"– {gate.name}  not reached"
    if protected:
        yield f"note: a task would ask a human of these: {one_line(', '.join(protected))}"
    if case.edited:
        yield f"note: edits that are not committed were not judged; files: {len(case.edited)}"
    good = sum(it.result in GOOD for it in found)
    told = f"{good} of {len(case.settings.gates)} gates let it pass"
    told = told if case.settings.gates else "no gate was judged, which is no pass"
    yield f"{_short(case)}: {told}, by the rules of {one_line(case.rules)}"


def run_facts(case: Case, found: Sequence[Judged], protected: Sequence[str]) -> dict[str, object]:
    return {
        "commit": case.task.candidate,
        "rules": case.rules,
        "base_commit": case.pinned.base_commit,
        "config_hash": case.pinned.config_hash,
        "passed": passed(case, found),
        "edited": list(case.edited),
        "protected": list(protected),
        "gates": [
            *(_facts(it) for it in found),
            *(
                {**gate_facts(it.gate), "result": "not judged", "why": it.why}
                for it in case.unjudged
            ),
            *({**gate_facts(it), "result": "not reached"} for it in _unreached(case, found)),
        ],
    }


def passed(case: Case, found: Sequence[Judged]) -> bool:
    """Something must have been judged, and all of it have passed."""
    judged = [it.result in GOOD for it in found]
    return bool(judged) and all(judged) and len(judged) == len(case.settings.gates)


def run_junit(found: Sequence[Judged]) -> str:
    """One test case a gate, as build servers show them."""
    bad = sum(it.result == "failed" for it in found)
    broken = sum(it.result not in {*GOOD, "failed"} for it in found)
    head = f'name="lockgate" tests="{len(found)}" failures="{bad}" errors="{broken}"'
    cases = "".join(_junit_case(it) for it in found)
    suite = f"<testsuite {head}>{cases}</testsuite>"
    return f'<?xml version="1.0" encoding="utf-8"?>\n<testsuites>{suite}</testsuites>\n'


def gate_facts(gate: Gate) -> dict[str, object]:
    return {"name": gate.name, "kind": kind_of(gate), **_rest(gate)}


def waves_of(gates: Sequence[Gate]) -> dict[str, int]:
    """Each gate's wave, from one."""
    return {gate.name: n for n, wave in enumerate(waves(gates), 1) for gate in wave}


def _rest(gate: Gate) -> dict[str, object]:
    facts = {key: value for key, value in asdict(gate).items() if key not in {"name", "place"}}
    return {**facts, **asdict(gate.place)}


def _facts(it: Judged) -> dict[str, object]:
    told = {key: value for key, value in asdict(it).items() if key not in {"gate", "attempts"}}
    return {**gate_facts(it.gate), **told, "attempts_made": it.attempts}


def _unreached(case: Case, found: Sequence[Judged]) -> list[Gate]:
    reached = {it.gate.name for it in found}
    return [it for it in case.settings.gates if it.name not in reached]


def _junit_case(it: Judged) -> str:
    said = escape(_clean("\n".join((it.why, *(finding_text(f) for f in it.findings))).strip()))
    inner = {
        "passed": "",
        "skipped": "<skipped/>",
        "failed": f'<failure message="failed">{said}</failure>',
    }.get(it.result, f'<error message="{it.result}">{said}</error>')
    name = quoteattr(_clean(it.gate.name))
    return f'<testcase classname="lockgate" name={name} time="{it.seconds:.3f}">{inner}</testcase>'


def _clean(text: str) -> str:
    return "".join(it if it.isprintable() or it == "\n" else "�" for it in text)


def finding_text(it: Finding) -> str:
    where = ""
    if it.location:
        numbers = (it.location.line, it.location.column)
        where = ":".join((it.location.file, *(str(n) for n in numbers if n is not None))) + " - "
    return f"{it.priority} {where}{_cut(it.issue)}"


def _cut(text: str) -> str:
    text = text.strip()
    lines = (text if len(text) <= LONGEST else f"…{text[-LONGEST:]}").splitlines()
    return "\n      ".join(lines)


def _short(case: Case) -> str:
    return f"HEAD ({case.task.candidate[:SHORT]})"
