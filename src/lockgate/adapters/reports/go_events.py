"""`go test -json`: one event a line."""

from collections.abc import Mapping

from msgspec import Struct, field

from lockgate.adapters.reports.go_text import problem_in
from lockgate.adapters.reports.text import (
    Refused,
    failures,
    mapping,
    one_line,
    parsed,
    test_id,
    text,
)
from lockgate.core.model.findings import Finding, Priority
from lockgate.core.model.gates import Report
from lockgate.core.model.reports import Outcome, ReportRead, TestResult, merged

LINES = 1_000_000
LINE = 100_000
KEPT = 600  # characters of output that explain a failure
ENDS = {"pass": Outcome.PASSED, "fail": Outcome.FAILED, "skip": Outcome.SKIPPED}

Key = tuple[str, str]


class _State(Struct):
    root: str
    said: dict[Key, str] = field(default_factory=dict[Key, str])
    ended: dict[Key, Outcome] = field(default_factory=dict[Key, Outcome])
    running: set[Key] = field(default_factory=set[Key])
    findings: list[Finding] = field(default_factory=list[Finding])
    events: int = 0
    whole: bool = True


def read(output: str, root: str) -> ReportRead | None:
    """Complete only if every package and every test that began has ended."""
    state = _State(root)
    lines = output.split("\n", LINES)
    if len(lines) > LINES:
        lines.pop()
        state.whole = False
    state.whole = state.whole and not lines[-1].startswith("{")
    for line in lines:
        if line.startswith("{"):
            _take_line(state, line)
    if not state.events:
        return None
    tests = merged(_tests(state))
    return ReportRead(
        format=Report.GO,
        findings=(*failures(tests), *state.findings, *_packages(state)),
        tests=tests,
        complete=state.whole and not state.running,
    )


def _take_line(state: _State, line: str) -> None:
    if '"Action"' not in line[:300]:
        state.whole = state.whole and not line.startswith('{"Time"')
        return
    try:
        event = mapping(parsed(line[:LINE]))
    except Refused:
        state.events += 1
        state.whole = False
        return
    _take(state, event)


def _take(state: _State, event: Mapping[str, object]) -> None:
    state.events += 1
    action, output = text(event.get("Action")), text(event.get("Output"))
    key = (text(event.get("Package")), text(event.get("Test")))
    if action == "build-output":
        problem = problem_in(output.rstrip("\n"), state.root, Priority.P1_MAJOR)
        state.findings.extend([problem] if problem else [])
    elif action in ENDS:
        state.ended[key] = ENDS[action]
        state.running.discard(key)
    elif action == "output":
        _listen(state, key, output)
    elif action in {"run", "start"}:
        state.running.add(key)


def _listen(state: _State, key: Key, output: str) -> None:
    """Any word of a package means that it runs; its own end has to come."""
    package = (key[0], "")
    if package not in state.ended:
        state.running.add(package)
    words = output.strip()
    known = state.said.get(key, "")
    if words and not words.startswith(("===", "---")) and len(known) < KEPT:
        state.said[key] = f"{known} {words[:KEPT]}".strip()


def _tests(state: _State) -> list[TestResult]:
    return [
        TestResult(
            id=test_id(f"{package}/{test}"),
            outcome=outcome,
            message=one_line(state.said.get((package, test), "")),
        )
        for (package, test), outcome in state.ended.items()
        if test
    ]


def _packages(state: _State) -> list[Finding]:
    """A package that failed without a test that did: it did not build, or it panicked."""
    failed = [key for key, outcome in state.ended.items() if outcome is Outcome.FAILED]
    explained = {package for package, test in failed if test}
    return [
        Finding(
            Priority.P1_MAJOR,
            one_line(f"{package} failed: {state.said.get((package, test), 'see its output')}"),
        )
        for package, test in failed
        if not test and package not in explained
    ]
