"""What the differential gate runs: which files come from which side, and what need not run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lockgate.core.canaries import CanaryFile, canary_file, with_canaries
from lockgate.core.paths import matching
from lockgate.core.test_paths import (
    SCRIPT_TESTS,
    SCRIPTS,
    Runner,
    files_of_tests,
    harness_files,
    runner_of,
)

# A test file that cannot be loaded must not keep the others from being run.
ENVIRONMENT = {Runner.PYTEST: (("PYTEST_ADDOPTS", "--continue-on-collection-errors"),)}
_ENDINGS = {
    Runner.PYTEST: (".py",),
    Runner.UNITTEST: (".py",),
    Runner.GO: ("_test.go",),
}
_SCRIPTED = frozenset({Runner.JEST, Runner.VITEST, Runner.NODE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Both trees as path → blob, a blob with its mode before its id."""

    base: Mapping[str, str]
    candidate: Mapping[str, str]
    harness: frozenset[str] = frozenset()  # mixed files whose part about tests was changed


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRules:
    __test__ = False

    command: str
    patterns: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mixed:
    """A tree that starts as one side: files taken from the other, files taken out."""

    take: tuple[str, ...]
    drop: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Nothing is mixed in: the side's own run says it already."""
        return not (self.take or self.drop)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The canary goes into every run but the first."""

    base_on_candidate: Mixed
    candidate_on_base: Mixed
    runner: Runner | None
    nonce: str
    canary: CanaryFile | None
    appended: tuple[str, ...]  # files that get canaries of their own
    environment: tuple[tuple[str, str], ...]


def plan(sides: Sides, rules: TestRules, nonce: str, package: str = "main") -> Plan:
    """`package` is Go's, of the directory that `canary_directory` names."""
    tests = tests_of(sides, rules)
    runner = runner_of(rules.command, tests)
    directory = canary_directory(tests, runner) if runner else None
    canary = (
        canary_file(runner, directory, nonce, package) if runner and directory is not None else None
    )
    deciding, protected = _deciding(sides, rules), _protected(sides, rules)
    return Plan(
        base_on_candidate=_laid(sides.base, sides.candidate, deciding | protected),
        candidate_on_base=_laid(sides.candidate, sides.base, deciding - protected),
        runner=runner,
        nonce=nonce,
        canary=canary,
        appended=_appended(tests, runner),
        environment=ENVIRONMENT.get(runner, ()) if runner else (),
    )


def tests_of(sides: Sides, rules: TestRules) -> tuple[str, ...]:
    """Base's; the change's where base has none."""
    found = files_of_tests(sides.base, rules.patterns)
    return found or files_of_tests(sides.candidate, rules.patterns)


def planted(plan: Plan, texts: Mapping[str, str]) -> tuple[CanaryFile, ...]:
    """The canaries of one tree; `texts` are those of `plan.appended` that it has."""
    if plan.runner is None or plan.canary is None:
        return ()
    own = (
        with_canaries(plan.runner, path, texts[path], f"{plan.nonce}{number}y")
        for number, path in enumerate(plan.appended)
        if path in texts
    )
    return (plan.canary, *own)


def canary_directory(tests: Sequence[str], runner: Runner) -> str | None:
    """Where most of base's test files are, so that the command looks there."""
    endings = _ENDINGS.get(runner, SCRIPTS)
    found = Counter(file.rpartition("/")[0] for file in tests if file.endswith(endings))
    return min(found, key=lambda it: (-found[it], len(it), it)) if found else None


def _appended(tests: Sequence[str], runner: Runner | None) -> tuple[str, ...]:
    return matching(tests, SCRIPT_TESTS) if runner in _SCRIPTED else ()


def _deciding(sides: Sides, rules: TestRules) -> frozenset[str]:
    """Tests, what belongs to them, and what decides how they are run."""
    paths = (*sides.base, *sides.candidate)
    tests = frozenset(files_of_tests(paths, rules.patterns))
    return tests | frozenset(harness_files(paths, rules.command)) | sides.harness


def _protected(sides: Sides, rules: TestRules) -> frozenset[str]:
    """These are base's in every mixed tree."""
    return frozenset(matching((*sides.base, *sides.candidate), rules.protected))


def _laid(over: Mapping[str, str], under: Mapping[str, str], which: frozenset[str]) -> Mixed:
    """One side's files of a kind in place of the other's."""
    take = (path for path in which if path in over and over[path] != under.get(path))
    drop = (path for path in which if path in under and path not in over)
    return Mixed(tuple(sorted(take)), tuple(sorted(drop)))
