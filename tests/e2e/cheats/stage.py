"""A change to a small repository, judged as Lockgate does it: real git, sandboxes and runners."""

import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.adapters.gate_commands import CommandGates
from lockgate.adapters.measurements import FileMeasurements
from lockgate.adapters.reports import read_reports
from lockgate.adapters.repository import GitRepository
from lockgate.adapters.system import SystemChance
from lockgate.adapters.test_sources import FileTestSources, changed_files, source_tests
from lockgate.adapters.workspaces import GitWorkspaces
from lockgate.adapters.workspaces.mixed_trees import GitTrees
from lockgate.core.config.settings import DifferentialSettings, EnvSettings, Settings
from lockgate.core.differential.plan import (
    Plan,
    Sides,
    TestRules,
    canaries_in,
    plan,
    planted,
)
from lockgate.core.differential.runs import Canaries, Run, Runs
from lockgate.core.differential.table import ChangedFiles
from lockgate.core.differential.test_files import files_of_tests
from lockgate.core.differential.verdict import (
    Asked,
    Kept,
    Lost,
    Unjudged,
    Verdict,
    as_result,
    judge,
)
from lockgate.core.model.gates import CommandGate, DifferentialGate, Placement, Where
from lockgate.core.model.results import (
    Broken,
    Failed,
    Outcome,
    Passed,
    SingleGateResult,
    TestResult,
    Waiting,
)
from lockgate.core.model.task import Pinned, Status, TaskId
from lockgate.ports import Project
from lockgate.services.gates.differential import DifferentialJudge
from lockgate.services.gates.runner import Evaluation, checked_out, evaluation_of
from tests.adapters.workshop import asked
from tests.given import PROOF, a_task
from tests.scenarios.world import git

BIN = Path(sys.executable).parent
PREFIX = (
    f'export PY="{sys.executable}" PATH="{BIN}:$PATH" '
    "PYTHONDONTWRITEBYTECODE=1 PYTEST_DISABLE_PLUGIN_AUTOLOAD=1"
)
RESULTS: dict[type[Verdict], type[SingleGateResult]] = {
    Kept: Passed,
    Lost: Failed,
    Asked: Waiting,
    Unjudged: Broken,
}
PYTEST = 'PYTHONPATH=. "$PY" -m pytest -q -p no:cacheprovider --junitxml="$OUT/report.xml"'
NODE = (
    'node --test --test-reporter=junit --test-reporter-destination="$OUT/report.xml" '
    "--test-reporter=spec --test-reporter-destination=stdout"
)
NONCE = "r4nd0m"
STRENGTH = 5  # seconds

Files = Mapping[str, str]


class Case(Struct, frozen=True, kw_only=True):
    """`change` has None for a file that it removes; `says` stands in a finding or the prompt."""

    name: str
    base: Files
    change: Mapping[str, str | None]
    expect: type[Verdict] = Kept
    says: str = ""
    command: str = PYTEST
    looks_green: bool = True  # of a cheat: the plain command is content with it
    played: "Played | None" = None  # outcomes, where the runner is not at hand
    env: EnvSettings = field(default_factory=EnvSettings)

    @property
    def candidate(self) -> dict[str, str]:
        both = {**self.base, **self.change}
        return {path: text for path, text in both.items() if text is not None}


class Played(Struct, frozen=True, kw_only=True):
    """What a runner would report: ids that pass, fail or are skipped, tree by tree."""

    base: str
    base_on_candidate: str
    candidate: str
    candidate_on_base: str = ""
    canaries_on_candidate: Outcome | None = Outcome.FAILED
    exit_code: int = 1


class Theatre(Struct):
    """One home for many cases: base's own runs are measured once a base, as they are for users."""

    place: Path
    projects: dict[object, Project] = field(default_factory=dict)
    strength: int = STRENGTH

    @property
    def home(self) -> Path:
        return self.place / "home"

    @property
    def workspaces(self) -> GitWorkspaces:
        return GitWorkspaces(self.home)

    def result_of(self, case: Case, **more: object) -> SingleGateResult:
        it, gate = self._asked(case, **more)
        judge = DifferentialJudge(
            home=self.home,
            workspaces=self.workspaces,
            trees=GitTrees(self.home),
            gates=CommandGates(read_reports),
            sources=FileTestSources(),
            measurements=FileMeasurements(self.home / "measurements"),
            chance=SystemChance(),
        )
        return judge.result(it, gate, lambda: False)

    def plain_exit(self, case: Case) -> int | None:
        """How the command ends on the change, which is all that most judges look at."""
        it, gate = self._asked(case)
        place = self.home / "runs" / it.candidate.name / "plain"
        plain = CommandGate(name="plain", place=gate.place, command=gate.command)
        try:
            run = checked_out(self.workspaces, it, place)
            gates = CommandGates(read_reports)
            attempt = gates.attempt(plain, run, lambda: False)
            gates.read(attempt, None)
        finally:
            self.workspaces.discard(place)
        return attempt.exit_code

    def left_over(self) -> list[str]:
        """Files of runs that are over."""
        return [str(it) for it in (self.home / "runs").glob("*/*")]

    def _asked(self, case: Case, **more: object) -> tuple[Evaluation, DifferentialGate]:
        project = self._project(case)
        base = asked(Path(project.root), "rev-parse", "main")
        number = len(asked(Path(project.root), "branch", "--list").splitlines())
        task = a_task(
            Status.AGENT_REVIEW,
            id=TaskId(f"case-{project.id}-{number}"[:40]),
            branch=f"case-{number}",
            pinned=Pinned(base_commit=base, config_hash="rules"),
        )
        self._commit(Path(project.root), task.branch, case)
        change = self.workspaces.adopt(project, task)
        assert change is not None
        fields: dict[str, object] = {"attempts": 1, "timeout": 120, **more}
        gate = DifferentialGate(
            name="differential",
            place=Placement(serial=True, on=(Where.CHANGE,)),
            command=f"{PREFIX}\n{case.command}",
            **fields,  # type: ignore[arg-type]  # a test's own
        )
        settings = Settings(
            formula="none",
            gates=(gate,),
            env=case.env,
            differential=DifferentialSettings(self.strength),
        )
        return evaluation_of(project, replace(task, candidate=change.commit), (), settings), gate

    def _project(self, case: Case) -> Project:
        key = (case.env, tuple(sorted(case.base.items())))
        if key not in self.projects:
            root = self.place / f"repository {len(self.projects)}"
            root.mkdir(parents=True)
            git(root, "init", "--quiet", "--initial-branch=main")
            _fill(root, case.base)
            project = GitRepository().project_at(root)
            assert project is not None
            self.projects[key] = project
        return self.projects[key]

    def _commit(self, root: Path, branch: str, case: Case) -> None:
        git(root, "checkout", "--quiet", "-b", branch, "main")
        git(root, "rm", "-r", "--quiet", "--force", ".")
        _fill(root, case.candidate)
        git(root, "checkout", "--quiet", "main")


def _fill(root: Path, files: Files) -> None:
    for path, text in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode("utf-8", "surrogateescape"))
        target.chmod(0o755)
    git(root, "add", "--all", "--force")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "files")


def played_result(case: Case) -> SingleGateResult:
    """By the same rules, without the runner."""
    assert case.played is not None
    changed = changes_of(case)
    harness = frozenset(it.file for it in changed.harness)
    sides = Sides(base=case.base, candidate=case.candidate, harness=harness)
    planned = plan(sides, TestRules(command=case.command), NONCE, "calc")
    runs = _played(case.played, planned)
    verdict = judge(runs, _tests(case.base), _tests(case.candidate), changed)
    return as_result("differential", verdict, PROOF)


def changes_of(case: Case) -> ChangedFiles:
    return changed_files(case.base, case.candidate, (), case.command)


def words_of(result: SingleGateResult) -> str:
    match result:
        case Passed(_, _, findings) | Failed(_, findings):
            return "\n".join(it.issue for it in findings)
        case Waiting(_, prompt):
            return prompt
        case Broken(_, why):
            return why


def _tests(files: Files):
    return source_tests({path: files[path] for path in files_of_tests(files, ())})


def _played(played: Played, planned: Plan) -> Runs:
    canaries = canaries_in(planted(planned, {}, "played")) or Canaries((), ())
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
