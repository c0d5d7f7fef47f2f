"""What `go test` and `go vet` print."""

import re
from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.adapters.reports.text import failures, located, number, one_line, test_id
from lockgate.core.model.findings import Finding, Priority
from lockgate.core.model.gates import Report
from lockgate.core.model.reports import FAILING, Outcome, ReportRead, TestResult, merged

ENDS = {"PASS": Outcome.PASSED, "FAIL": Outcome.FAILED, "SKIP": Outcome.SKIPPED}
_PROBLEM = re.compile(r"(?:vet: )?([^\s:]{1,300}\.go):(\d{1,9})(?::(\d{1,9}))?: (.+)\Z")
_LOGGED = re.compile(r" +([^\s:]{1,300}\.go:\d{1,9}: .*)\Z")
_TEST = re.compile(r" *--- (PASS|FAIL|SKIP): (\S+) \([\d.]+s\)\Z")
_NOW = re.compile(r"=== (RUN|CONT|NAME) +(\S+)\Z")
_PACKAGE = re.compile(r"(ok|FAIL|\?) *\t(\S+)\s+(\S.*)\Z")
_VETTED = re.compile(r"# \S+\Z")


class _State(Struct):
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


def read(lines: Sequence[str], root: str) -> ReportRead | None:
    """The tests are known only from `-v`: without it, no pass has a name."""
    state = _State(root)
    for line in lines:
        _take(state, line)
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


def _take(state: _State, line: str) -> None:
    test, now, logged = _TEST.match(line), _NOW.match(line), _LOGGED.match(line)
    if test:
        state.now = test[2]
        state.ended.append((test[2], ENDS[test[1]]))
        state.running.discard(test[2])
    elif now:
        state.now = now[2]
        state.verbose = True
        state.running.update({now[2]} if now[1] == "RUN" else ())
    elif logged:
        state.logged.setdefault(state.now, logged[1])
    else:
        _take_package(state, line)


def _take_package(state: _State, line: str) -> None:
    package = _PACKAGE.match(line)
    problem = problem_in(line, state.root, Priority.P2_MINOR)
    if problem:
        state.problems.append(problem)
    elif package:
        _end_package(state, package[1], package[2], package[3])
    elif _VETTED.match(line):
        state.vetted = True


def _end_package(state: _State, word: str, package: str, more: str) -> None:
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
