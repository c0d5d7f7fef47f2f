"""What people and programs read of gates: what each does, and what it said."""

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from lockgate.core.config.checks import Coverage
from lockgate.core.config.settings import SandboxLevel, Settings
from lockgate.core.model.facts import as_facts
from lockgate.core.model.findings import Finding
from lockgate.core.model.gates import (
    CommandGate,
    DifferentialGate,
    Gate,
    HumanGate,
    MultipassReviewGate,
    ParallelReviewGate,
    Where,
    condition,
    kind_of,
    waves,
)
from lockgate.core.model.task import GateKind
from lockgate.faces.words.task import one_line
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
        yield f"note: a task would ask you to approve: {one_line(', '.join(protected))}"
    if case.edited:
        yield f"note: edits that are not committed were not checked; files: {len(case.edited)}"
    good = sum(it.result in GOOD for it in found)
    told = f"{good} of {len(case.settings.gates)} gates passed"
    told = told if case.settings.gates else "no gate could be run, so this does not count as a pass"
    yield f"{_short(case)}: {told}, by the rules of {one_line(case.rules)}"


def run_facts(case: Case, found: Sequence[Judged], protected: Sequence[str]) -> dict[str, object]:
    return {
        "commit": case.candidate.commit,
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
    facts = {key: value for key, value in as_facts(gate).items() if key not in {"name", "place"}}
    return {**facts, **as_facts(gate.place)}


def _facts(it: Judged) -> dict[str, object]:
    told = {key: value for key, value in as_facts(it).items() if key not in {"gate", "attempts"}}
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
    return f"HEAD ({case.candidate.commit[:SHORT]})"


# What a gate does, in words.


DOES = {
    GateKind.COMMAND: "runs its command on a clean checkout of the change; the exit decides",
    GateKind.DIFFERENTIAL: "runs base's tests and the change's tests on both codes, and compares",
    GateKind.PARALLEL_REVIEW: "has one reviewer for each dimension read the change",
    GateKind.MULTIPASS_REVIEW: "has one reviewer read the change, pass after pass",
    GateKind.HUMAN: "asks you to approve this change",
}
PASSES = {
    GateKind.COMMAND: "the command exits 0, and its report, where there is one, has no failed test",
    GateKind.DIFFERENTIAL: "what was green on base is green, and new tests test something",
    GateKind.PARALLEL_REVIEW: "every reviewer has spoken, and nothing found is P0 or P1",
    GateKind.MULTIPASS_REVIEW: "the reviewer has converged, and nothing found is P0 or P1",
    GateKind.HUMAN: "lockgate approve ID; another change needs another yes",
}
FAILS = {
    GateKind.COMMAND: "another exit in every attempt, a failed test in the report, the time-out;"
    " or a change edits what it runs, and base's version of that disagrees",
    GateKind.DIFFERENTIAL: "a test that was green on base is red, results are forged, or a"
    " compiled file is in the change; a command that shows it is printed with it",
    GateKind.PARALLEL_REVIEW: "a finding that is P0 or P1",
    GateKind.MULTIPASS_REVIEW: "a finding that is P0 or P1",
    GateKind.HUMAN: "lockgate reject ID -m TEXT; the agent gets the text",
}
WAITS = {
    GateKind.DIFFERENTIAL: "tests were removed, expect something else or notice less than base's,"
    " or the change brings files that are loaded by themselves: a human is asked",
    GateKind.HUMAN: "until a human answers, however long that takes",
}
BREAKS = {
    GateKind.COMMAND: "it cannot be started, or the sandbox, its memory or its disk fails",
    GateKind.DIFFERENTIAL: "tests do not report by name, base was not measured, the sandbox fails",
    GateKind.PARALLEL_REVIEW: "a reviewer ends without a verdict, twice",
    GateKind.MULTIPASS_REVIEW: "the reviewer ends without a verdict, twice",
}


FAST = "; the task is then stuck at once (fail_fast)"
PLACES = {Where.CHANGE: "on a task's change", Where.TRAIN: "on what the train would land"}


def runs(gate: Gate) -> str:
    match gate:
        case CommandGate() | DifferentialGate():
            return one_line(gate.command)
        case ParallelReviewGate():
            return f"reviewers: {', '.join(gate.reviewers)}"
        case MultipassReviewGate():
            return "a reviewer"
        case HumanGate():
            return one_line(gate.prompt)


def applies(gate: Gate) -> str:
    return one_line(condition(gate)) or "always"


def explained(gate: Gate, settings: Settings) -> dict[str, str]:
    return dict(_explained(gate, settings))


def _explained(gate: Gate, settings: Settings) -> Iterator[tuple[str, str]]:
    kind = kind_of(gate)
    yield "gate", f"{gate.name} ({kind})"
    yield "does", DOES[kind]
    yield "runs", runs(gate)
    if isinstance(gate, CommandGate | DifferentialGate):
        yield from _running(gate, settings)
    if isinstance(gate, DifferentialGate):
        yield "strength", _strength(settings)
    yield "applies", applies(gate)
    yield "where", " and ".join(PLACES[it] for it in gate.place.on)
    yield "beside", _beside(gate)
    yield "passes", PASSES[kind]
    yield "fails", FAILS[kind] + (FAST if gate.place.fail_fast else "")
    yield "waits", WAITS.get(kind, "never")
    yield "breaks", f"{BREAKS.get(kind, 'never')}; that costs the agent nothing"


def _strength(settings: Settings) -> str:
    seconds = settings.differential.strength_seconds
    if not seconds:
        return "not measured: [differential] strength_seconds is 0"
    return (
        "where the change edits a test, small faults are planted in Python or JavaScript code, such"
        " as + in place of -; base's tests and the change's tests run on each of them. A fault"
        f" that only base's tests notice is a question to a human. It takes at most {seconds} s"
        " ([differential] strength_seconds), and nothing where no test changed"
    )


def _running(gate: CommandGate | DifferentialGate, settings: Settings) -> Iterator[tuple[str, str]]:
    limits, box = settings.limits, settings.sandbox
    wait = f"{limits.call_base_delay_ms} ms, then {limits.call_backoff:g} times as long"
    tries = f"at most {gate.attempts}, after {wait}; a pass after a failure is FLAKY"
    most = max(gate.attempts, limits.call_attempts)
    once = f"one; at most {most} after a signal, exit 124 to 128 or trouble with the sandbox"
    yield "attempts", tries if gate.attempts > 1 else once
    yield "time-out", f"{gate.timeout} s, then it is killed, and has failed"
    yield "report", str(gate.report or "by looking: files in $OUT, else what it prints")
    if gate.needs:
        told = one_line(", ".join(gate.needs))
        yield "needs", f"of several hosts one with {told}; one host alone runs it in any case"
    if box.level is SandboxLevel.NONE:
        yield "sandbox", "none: it runs as you do"
    else:
        net = "the network" if box.network else ", ".join(box.allow) or "no network"
        room = f"{box.memory_mb} MB of memory, {box.scratch_mb} MB of scratch"
        yield "sandbox", f"bubblewrap, {net}, {room}, {box.pids} processes"


def _beside(gate: Gate) -> str:
    word = gate.place.exclusive
    alone = f"; never beside another gate with the word {one_line(word)!r}" if word else ""
    if gate.place.serial:
        return f"alone: what is before it must have passed, what is behind it waits{alone}"
    return f"together with its neighbours that are not serial{alone}"


def check_lines(found: Coverage) -> Iterator[str]:
    """Which gates judge every change and which only some."""
    yield f"every change: {', '.join(it.name for it in found.always) or 'no gate'}"
    for gate in found.sometimes:
        yield f"some changes: {gate.name}, when {one_line(condition(gate))}"
    for gate in found.never:
        yield f"no change: {gate.name}, which runs in the merge train only"
    for it in found.masked:
        yield f"warning: gate {it.gate} cannot fail: {one_line(it.why)}"
    if found.hole:
        yield f"a change could land without passing any command gate: {one_line(found.hole)}"
        yield "  fix: give .lockgate/config.toml a gate with a command that can fail, and no `when`"
    else:
        yield "ok: every change must pass a gate that runs a command"
