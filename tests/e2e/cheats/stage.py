"""A change to a small repository, its tests run for real on the four trees, and the verdict."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lockgate.adapters.reports import junit
from lockgate.adapters.test_sources import changed_files, source_tests
from lockgate.core.differential import Asked, Kept, Lost, Unjudged, Verdict, judge
from lockgate.core.differential_plan import Mixed, Plan, Sides, TestRules, plan, planted
from lockgate.core.test_paths import files_of_tests
from lockgate.core.test_results import Outcome, TestResult
from lockgate.core.test_rows import ChangedFiles
from lockgate.core.test_runs import Canaries, Run, Runs

PYTEST = 'PYTHONPATH=. "$PY" -m pytest -q -p no:cacheprovider --junitxml="$OUT/report.xml"'
NODE = (
    'node --test --test-reporter=junit --test-reporter-destination="$OUT/report.xml" '
    "--test-reporter=spec --test-reporter-destination=stdout"
)
NONCE = "r4nd0m"

Files = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`change` has None for a file that it removes; `says` stands in a finding or the prompt."""

    name: str
    base: Files
    change: Mapping[str, str | None]
    expect: type[Verdict] = Kept
    says: str = ""
    command: str = PYTEST
    looks_green: bool = True  # of a cheat: the plain command is content with it
    played: "Played | None" = None  # outcomes, where the runner is not at hand

    @property
    def candidate(self) -> dict[str, str]:
        both = {**self.base, **self.change}
        return {path: text for path, text in both.items() if text is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What a runner would report: ids that pass, fail or are skipped, tree by tree."""

    base: str
    base_on_candidate: str
    candidate: str
    candidate_on_base: str = ""
    canaries_on_candidate: Outcome | None = Outcome.FAILED
    exit_code: int = 1


# Base is measured once, as Lockgate does it too; a tree that is the same need not run again.
_KNOWN: dict[object, Run] = {}


@dataclass(slots=True)
class Stage:
    folder: Path
    case: Case
    runs: int = 0


def verdict_of(case: Case, folder: Path) -> Verdict:
    changed = changes_of(case)
    mixed = frozenset(it.file for it in changed.harness)
    sides = Sides(
        base=case.base,
        candidate=case.candidate,
        base_tree="base",
        config_hash="rules",
        harness=mixed,
    )
    planned = plan(sides, TestRules(command=case.command), NONCE, "calc")
    runs = _played(case.played, planned) if case.played else _run(Stage(folder, case), planned)
    return judge(runs, _tests(case.base), _tests(case.candidate), changed)


def plain_exit(case: Case, folder: Path) -> int | None:
    """How the command ends on the change, which is all that most judges look at."""
    return _measured(Stage(folder, case, 90), case.candidate, None).exit_code


def changes_of(case: Case) -> ChangedFiles:
    return changed_files(case.base, case.candidate, (), case.command)


def words_of(verdict: Verdict) -> str:
    match verdict:
        case Kept(_, findings) | Lost(_, findings):
            return "\n".join(it.issue for it in findings)
        case Asked(_, _, prompt):
            return prompt
        case Unjudged(why):
            return why


def _tests(files: Files):
    return source_tests({path: files[path] for path in files_of_tests(files, ())})


def _run(stage: Stage, planned: Plan) -> Runs:
    base, candidate = dict(stage.case.base), stage.case.candidate
    return Runs(
        base=_measured(stage, base, None),
        base_again=_measured(stage, base, planned),
        base_on_candidate=_measured(
            stage, _mixed(candidate, base, planned.base_on_candidate), planned
        ),
        candidate=_measured(stage, candidate, planned),
        candidate_on_base=_measured(
            stage, _mixed(base, candidate, planned.candidate_on_base), planned
        ),
    )


def _mixed(start: Files, other: Files, mixed: Mixed) -> dict[str, str]:
    taken = {**start, **{path: other[path] for path in mixed.take}}
    return {path: text for path, text in taken.items() if path not in mixed.drop}


def _measured(stage: Stage, files: dict[str, str], planned: Plan | None) -> Run:
    """The command on these files; a tree that was measured is not measured again."""
    added = planted(planned, files) if planned else ()
    whole = {**files, **{it.path: it.text for it in added}}
    key = (stage.case.command, bool(planned), tuple(sorted(whole.items())))
    if key not in _KNOWN:
        canaries = Canaries(
            tuple(word for it in added for word in it.canaries.must_fail),
            tuple(word for it in added for word in it.canaries.must_pass),
        )
        environment = dict(planned.environment) if planned else {}
        _KNOWN[key] = _executed(stage, whole, environment, canaries if added else None)
    return _KNOWN[key]


def _executed(
    stage: Stage, files: Files, environment: Mapping[str, str], canaries: Canaries | None
) -> Run:
    stage.runs += 1
    tree, out = stage.folder / f"tree{stage.runs}", stage.folder / f"out{stage.runs}"
    out.mkdir()
    for path, text in files.items():
        target = tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        target.chmod(0o755)
    ended = subprocess.run(
        ["sh", "-c", stage.case.command],
        cwd=tree,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(stage.folder),
            "PY": sys.executable,
            "OUT": str(out),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            **environment,
        },
        capture_output=True,
        check=False,
        timeout=120,
    )
    report = out / "report.xml"
    read = junit.read(report.read_bytes(), str(tree)) if report.is_file() else None
    return Run(
        exit_code=ended.returncode,
        tests=(read.tests or ()) if read else (),
        complete=bool(read and read.complete),
        canaries=canaries,
    )


def _played(played: Played, planned: Plan) -> Runs:
    canaries = planned.canary.canaries if planned.canary else Canaries((), ())
    good = (canaries, Outcome.FAILED)
    seen = (canaries, played.canaries_on_candidate)
    return Runs(
        base=Run(exit_code=0, tests=_results(played.base)),
        base_again=_with(_results(played.base), *good),
        base_on_candidate=_with(_results(played.base_on_candidate), *seen),
        candidate=_with(_results(played.candidate), *seen, played.exit_code),
        candidate_on_base=_with(_results(played.candidate_on_base), *good),
    )


def _with(
    tests: tuple[TestResult, ...],
    canaries: Canaries,
    outcome: Outcome | None,
    exit_code: int = 1,
) -> Run:
    fails = tuple(TestResult(id=it, outcome=outcome) for it in canaries.must_fail if outcome)
    passes = tuple(TestResult(id=it, outcome=Outcome.PASSED) for it in canaries.must_pass)
    return Run(exit_code=exit_code, tests=(*tests, *fails, *passes), canaries=canaries)


def _results(lines: str) -> tuple[TestResult, ...]:
    """`outcome id` a line."""
    pairs = (line.strip().partition(" ") for line in lines.strip().splitlines())
    return tuple(TestResult(id=id, outcome=Outcome(word)) for word, _, id in pairs)
