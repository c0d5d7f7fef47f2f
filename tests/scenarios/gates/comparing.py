"""Two sides of a change as plain texts, and a test runner for them that only this file has.

`app.txt` is the code. Each line of a file under `checks/` is a test: its name, then a word that the
code must have, or `skip`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from lockgate.adapters.test_sources import FileTestSources
from lockgate.core.differential.runs import Run
from lockgate.core.differential.strength import Known
from lockgate.core.model import gates
from lockgate.core.model.gates import CommandGate
from lockgate.core.model.results import Outcome, ReportRead, TestResult, Unreadable
from lockgate.ports import Attempt, Candidate, Cut, GateRun, Project
from lockgate.ports.differential import Blend
from lockgate.services.gates.differential import DifferentialJudge
from tests.scenarios.stage import FakeWorkspaces

BASE, CANDIDATE = "b" * 40, "c" * 40
Files = dict[str, str]


@dataclass
class FakeTrees:
    """A blob's id is its text."""

    base: Files
    candidate: Files
    laid: dict[str, Files] = field(default_factory=dict)

    def blend(self, candidate: Candidate, it: Blend, directory: Path) -> None:
        sides = {BASE: self.base, CANDIDATE: self.candidate}
        start, other = sides[it.commit], sides[it.other]
        kept = {path: text for path, text in start.items() if path not in it.mixed.drop}
        taken = {path: other[path] for path in it.mixed.take}
        self.laid[directory.name] = {**kept, **taken, **it.planted}

    def fork(self, candidate: Candidate) -> str:
        return BASE

    def blobs(self, project: Project, commit: str) -> Mapping[str, str]:
        side = self.base if commit == BASE else self.candidate
        return {path: f"100644 {text}" for path, text in side.items()}

    def texts(self, project: Project, blobs: Sequence[str]) -> Mapping[str, str]:
        return {blob: blob.removeprefix("100644 ") for blob in blobs}


@dataclass
class FakeMeasurements:
    kept: dict[tuple[str, ...], tuple[Run, Run]] = field(default_factory=dict)
    known: dict[tuple[str, ...], Known] = field(default_factory=dict)

    def find(self, key: Sequence[str]) -> tuple[Run, Run] | None:
        return self.kept.get(tuple(key))

    def keep(self, key: Sequence[str], base: Run, again: Run) -> None:
        self.kept[tuple(key)] = (base, again)

    def find_known(self, key: Sequence[str]) -> Known:
        return self.known.get(tuple(key), {})

    def keep_known(self, key: Sequence[str], known: Known) -> None:
        self.known[tuple(key)] = known


@dataclass
class Suite:
    """Runs what was laid. `plays` has, by the run's name, ends that come before the real ones."""

    trees: FakeTrees
    plays: dict[str, list[Attempt | str]] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    reports: dict[str, ReportRead | Unreadable] = field(default_factory=dict)
    inside: int = 0
    most: int = 0
    _lock: Lock = field(default_factory=Lock)

    def attempt(self, gate: CommandGate, run: GateRun, cancelled: Callable[[], bool]) -> Attempt:
        name = run.checkout.name.removeprefix("1-differential-")
        with self._lock:
            self.ran.append(name)
            self.commands.append(gate.command)
            self.inside += 1
            self.most = max(self.most, self.inside)
        found = self._played(name) or _tests(self.trees.laid[run.checkout.name])
        with self._lock:
            self.inside -= 1
            if isinstance(found, Attempt):
                return found
            key = f"{name}{len(self.ran)}"
            self.reports[key] = ReportRead(format=gates.Report.JUNIT, tests=found)
            red = any(it.outcome is Outcome.FAILED for it in found)
            return ended(int(red), out=key)

    def read(self, attempt: Attempt, wanted: gates.Report | None) -> ReportRead | Unreadable:
        return self.reports.get(attempt.out, Unreadable("it left no report"))

    def _played(self, name: str) -> Attempt | tuple[TestResult, ...] | None:
        left = self.plays.get(name, [])
        play = left.pop(0) if left else None
        return _results(play) if isinstance(play, str) else play


def ended(code: int | None, cut: Cut | None = None, out: str = "", err: str = "") -> Attempt:
    return Attempt(
        exit_code=code,
        cut=cut,
        why=f"cut: {cut}" if cut else "",
        out=out,
        err=err,
        report_dir=None,
        seconds=0.5,
        level="bubblewrap",
    )


class Token:
    def suffix(self) -> str:
        return "0000"

    def token(self) -> str:
        return "A-b_C-1"


def a_judge(home: Path, suite: Suite, measurements: FakeMeasurements) -> DifferentialJudge:
    return DifferentialJudge(
        home=home,
        workspaces=FakeWorkspaces(home),
        trees=suite.trees,
        gates=suite,
        sources=FileTestSources(),
        measurements=measurements,
        chance=Token(),
    )


def _tests(files: Files) -> tuple[TestResult, ...]:
    code = files.get("app.txt", "").split()
    lines = "\n".join(text for path, text in sorted(files.items()) if path.startswith("checks/"))
    words = (line.split() for line in lines.splitlines() if line.strip())
    return _results("\n".join(f"{_outcome(word, code)} {name}" for name, word in words))


def _outcome(word: str, code: Sequence[str]) -> Outcome:
    if word == "skip":
        return Outcome.SKIPPED
    return Outcome.PASSED if word in code else Outcome.FAILED


def _results(lines: str) -> tuple[TestResult, ...]:
    """`outcome id` a line."""
    pairs = (line.split() for line in lines.splitlines())
    return tuple(TestResult(id=f"checks::{id}", outcome=Outcome(word)) for word, id in pairs)
