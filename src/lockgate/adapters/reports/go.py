"""What `go test` and `go vet` print, and `go test -json`, one event a line."""

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.adapters.reports.text import (
    Refused,
    failures,
    located,
    mapping,
    number,
    one_line,
    parsed,
    test_id,
    text,
)
from lockgate.core.model.findings import Finding, Priority
from lockgate.core.model.gates import Report
from lockgate.core.model.results import FAILING, Outcome, ReportRead, TestResult, merged

PRINTED = {"PASS": Outcome.PASSED, "FAIL": Outcome.FAILED, "SKIP": Outcome.SKIPPED}
_PROBLEM = re.compile(r"(?:vet: )?([^\s:]{1,300}\.go):(\d{1,9})(?::(\d{1,9}))?: (.+)\Z")
_LOGGED = re.compile(r" +([^\s:]{1,300}\.go:\d{1,9}: .*)\Z")
_TEST = re.compile(r" *--- (PASS|FAIL|SKIP): (\S+) \([\d.]+s\)\Z")
_NOW = re.compile(r"=== (RUN|CONT|NAME) +(\S+)\Z")
_PACKAGE = re.compile(r"(ok|FAIL|\?) *\t(\S+)\s+(\S.*)\Z")
_VETTED = re.compile(r"# \S+\Z")
LINES = 1_000_000
LINE = 100_000
KEPT = 600  # characters of output that explain a failure
ACTIONS = {"pass": Outcome.PASSED, "fail": Outcome.FAILED, "skip": Outcome.SKIPPED}

Key = tuple[str, str]


class _Text(Struct):
    root: str
    tests: list[TestResult] = field(default_factory=list[TestResult])
    findings: list[Finding] = field(default_factory=list[Finding])
    problems: list[Finding] = field(default_factory=list[Finding])
    ended: list[tuple[str, Outcome]] = field(
        default_factory=list[tuple[str, Outcome]]
    )  # of the package being read
    running: set[str] = field(default_factory=set[str])
    logged: dict[str, str] = field(default_factory=dict[str, str])
    now: str = ""
    verbose: bool = False
    packages: int = 0
    idle: int = 0  # packages without a test
    vetted: bool = False
    unbuilt: bool = False


def read_text(lines: Sequence[str], root: str) -> ReportRead | None:
    """The tests are known only from `-v`: without it, no pass has a name."""
    state = _Text(root)
    for line in lines:
        _take_text(state, line)
    if not state.packages and not (state.vetted and state.problems):
        return None
    tests = merged(state.tests)
    priority = Priority.P1_MAJOR if state.unbuilt else Priority.P2_MINOR
    problems = [replace(it, priority=priority) for it in state.problems]
    named = state.verbose or (state.packages and state.idle == state.packages)
    return ReportRead(
        format=Report.GO,
        findings=(*failures(tests), *state.findings, *problems),
        tests=tests if named else None,
        complete=not state.ended and not state.running,
    )


def problem_in(line: str, root: str, priority: Priority) -> Finding | None:
    """A complaint of the compiler or of vet."""
    match = _PROBLEM.match(line)
    if match is None:
        return None
    place = located(match[1], root, number(match[2]), number(match[3]))
    return Finding(priority, one_line(match[4]), place)


def _take_text(state: _Text, line: str) -> None:
    test, now, logged = _TEST.match(line), _NOW.match(line), _LOGGED.match(line)
    if test:
        state.now = test[2]
        state.ended.append((test[2], PRINTED[test[1]]))
        state.running.discard(test[2])
    elif now:
        state.now = now[2]
        state.verbose = True
        state.running.update({now[2]} if now[1] == "RUN" else ())
    elif logged:
        state.logged.setdefault(state.now, logged[1])
    else:
        _take_package(state, line)


def _take_package(state: _Text, line: str) -> None:
    package = _PACKAGE.match(line)
    problem = problem_in(line, state.root, Priority.P2_MINOR)
    if problem:
        state.problems.append(problem)
    elif package:
        _end_package(state, package[1], package[2], package[3])
    elif _VETTED.match(line):
        state.vetted = True


def _end_package(state: _Text, word: str, package: str, more: str) -> None:
    state.packages += 1
    state.idle += "no test files" in more or "no tests to run" in more
    state.unbuilt = state.unbuilt or "build failed" in more
    state.ended += [(name, Outcome.ERROR) for name in sorted(state.running)]
    explained = any(outcome in FAILING for _, outcome in state.ended)
    state.tests += [
        TestResult(
            id=test_id(f"{package}/{name}"),
            outcome=outcome,
            message=one_line(state.logged.get(name, "")),
        )
        for name, outcome in state.ended
    ]
    if word == "FAIL" and not explained:
        state.findings.append(Finding(Priority.P1_MAJOR, one_line(f"{package} failed: {more}")))
    state.ended.clear()
    state.running.clear()
    state.logged.clear()


class _Events(Struct):
    root: str
    said: dict[Key, str] = field(default_factory=dict[Key, str])
    ended: dict[Key, Outcome] = field(default_factory=dict[Key, Outcome])
    running: set[Key] = field(default_factory=set[Key])
    findings: list[Finding] = field(default_factory=list[Finding])
    events: int = 0
    whole: bool = True


def read_events(output: str, root: str) -> ReportRead | None:
    """Complete only if every package and every test that began has ended."""
    state = _Events(root)
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


def _take_line(state: _Events, line: str) -> None:
    if '"Action"' not in line[:300]:
        state.whole = state.whole and not line.startswith('{"Time"')
        return
    try:
        event = mapping(parsed(line[:LINE]))
    except Refused:
        state.events += 1
        state.whole = False
        return
    _take_event(state, event)


def _take_event(state: _Events, event: Mapping[str, object]) -> None:
    state.events += 1
    action, output = text(event.get("Action")), text(event.get("Output"))
    key = (text(event.get("Package")), text(event.get("Test")))
    if action == "build-output":
        problem = problem_in(output.rstrip("\n"), state.root, Priority.P1_MAJOR)
        state.findings.extend([problem] if problem else [])
    elif action in ACTIONS:
        state.ended[key] = ACTIONS[action]
        state.running.discard(key)
    elif action == "output":
        _listen(state, key, output)
    elif action in {"run", "start"}:
        state.running.add(key)


def _listen(state: _Events, key: Key, output: str) -> None:
    """Any word of a package means that it runs; its own end has to come."""
    package = (key[0], "")
    if package not in state.ended:
        state.running.add(package)
    words = output.strip()
    known = state.said.get(key, "")
    if words and not words.startswith(("===", "---")) and len(known) < KEPT:
        state.said[key] = f"{known} {words[:KEPT]}".strip()


def _tests(state: _Events) -> list[TestResult]:
    return [
        TestResult(
            id=test_id(f"{package}/{test}"),
            outcome=outcome,
            message=one_line(state.said.get((package, test), "")),
        )
        for (package, test), outcome in state.ended.items()
        if test
    ]


def _packages(state: _Events) -> list[Finding]:
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
