"""What the differential gate runs: which files come from which side, and what need not run.

Tests of our own, the canaries, are laid into a run: some must fail and some must pass.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from lockgate.core.differential.runs import (
    AnyRun,
    Canaries,
    NotRun,
    Run,
    Runs,
    flaky_tests,
    outcomes_of,
    trouble,
)
from lockgate.core.differential.test_files import (
    SCRIPT_TESTS,
    SCRIPTS,
    Runner,
    files_of_tests,
    harness_files,
    runner_of,
)
from lockgate.core.model.results import NOT_STARTED, Outcome, ReportRead, Unreadable
from lockgate.core.text.steering import matching

# A test file that cannot be loaded must not keep the others from being run.
ENVIRONMENT = {
    Runner.PYTEST: (
        ("PYTEST_ADDOPTS", "--continue-on-collection-errors"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
    ),
    Runner.UNITTEST: (("PYTHONDONTWRITEBYTECODE", "1"),),
}
_ENDINGS = {
    Runner.PYTEST: (".py",),
    Runner.UNITTEST: (".py",),
    Runner.GO: ("_test.go",),
}
_SCRIPTED = frozenset({Runner.JEST, Runner.VITEST, Runner.NODE})


# Tests of our own that are laid into a run.


class CanaryFile(Struct, frozen=True):
    path: str
    text: str
    canaries: Canaries


class Habit(Struct, frozen=True):
    """How a runner's test files look, and their tests that must fail and that must pass."""

    file: str
    head: str
    test: str
    must_fail: tuple[str, ...]
    must_pass: str


_FUNCTION = "\n\ndef test_NAME():\n    BODY\n"
_METHOD = "\n    def test_NAME(self):\n        BODY\n"
_SCRIPT = '\nTEST("NAME", () => {\n  BODY\n});\n'
_GO = "\nfunc TestNAME(t *testing.T) {\n\tBODY\n}\n"
_CASES = (
    "self.assertEqual(sum([1, 2]), 4)",
    "self.assertTrue(sum([]))",
    "self.assertIn(3, [1, 2])",
    "self.assertIsNone(3)",
    "self.fail('3')",
    "raise ValueError('3')",
)
_EXPECTS = (
    ("expect([1, 2].length).toBe(3);", "expect([1]).toEqual([2]);", 'JSON.parse("{");'),
    "expect([1, 2].length).toBe(2);",
)
_REQUIRED = 'const aWORD = require("node:assert");\nconst tWORD = require("node:test");\n'
_METHODS = "\n\nclass TestWORD(unittest.TestCase):"

_HABITS = {
    Runner.PYTEST: Habit(
        "test_WORD.py",
        "import pytest\n",
        _FUNCTION,
        (
            "assert sum([1, 2]) == 4",
            "raise ValueError('3')",
            "pytest.fail('3')",
            "assert 1.5 == pytest.approx(sum([1, 2]))",
            "pytest.raises(ValueError, int, '3')",
        ),
        "assert sum([1, 2]) == 3",
    ),
    Runner.UNITTEST: Habit(
        "test_WORD.py",
        f"import unittest\n{_METHODS}",
        _METHOD,
        _CASES,
        "self.assertEqual(sum([1, 2]), 3)",
    ),
    Runner.JEST: Habit("WORD.test.js", "", _SCRIPT.replace("TEST", "test"), *_EXPECTS),
    Runner.VITEST: Habit(
        "WORD.test.js",
        'import { expect as eWORD, test as tWORD } from "vitest";\n',
        _SCRIPT.replace("TEST", "tWORD"),
        (tuple(it.replace("expect", "eWORD") for it in _EXPECTS[0])),
        _EXPECTS[1].replace("expect", "eWORD"),
    ),
    Runner.NODE: Habit(
        "WORD.test.mjs",
        'import aWORD from "node:assert";\nimport { test as tWORD } from "node:test";\n',
        _SCRIPT.replace("TEST", "tWORD"),
        ("aWORD.equal(2, 3);", "aWORD.deepStrictEqual([1], [2]);", 'JSON.parse("{");'),
        "aWORD.equal([1, 2].length, 2);",
    ),
    Runner.GO: Habit(
        "WORD_test.go",
        'package PACKAGE\n\nimport "testing"\n',
        _GO,
        ('t.Errorf("%d", len("ab"))', 't.Fatal("2")'),
        't.Log("2")',
    ),
}


def canary_file(runner: Runner, directory: str, nonce: str, package: str = "main") -> CanaryFile:
    """`nonce` is random letters and digits, so that no change can know the names."""
    habit = _HABITS[runner]
    fails, good = _names(habit, "q", nonce), f"Xk{nonce}x"
    text = habit.head + _tests(habit, (*fails, good))
    canaries = Canaries(fails, (good,))
    if runner is Runner.PYTEST:
        cases = _HABITS[Runner.UNITTEST]
        more, well = _names(cases, "z", nonce), f"Xm{nonce}x"
        text = f"import unittest\n\n{text}{_METHODS}{_tests(cases, (*more, well))}"
        canaries = Canaries((*fails, *more), (good, well))
    name = _filled(habit.file, nonce, package)
    path = f"{directory}/{name}" if directory else name
    return CanaryFile(path, _filled(text, nonce, package), canaries)


def with_canaries(runner: Runner, path: str, text: str, nonce: str) -> CanaryFile:
    """A script's own test file with canaries behind it, for each file is a world of its own."""
    habit = _HABITS[runner]
    required = runner is Runner.NODE and "require(" in text and "import " not in text
    head = _REQUIRED if required else habit.head
    fails, good = _names(habit, "q", nonce), f"Xk{nonce}x"
    added = _filled(head + _tests(habit, (*fails, good)), nonce, "")
    return CanaryFile(path, f"{text}\n{added}", Canaries(fails, (good,)))


def _names(habit: Habit, letter: str, nonce: str) -> tuple[str, ...]:
    return tuple(f"X{number}{letter}{nonce}x" for number in range(len(habit.must_fail)))


def _filled(text: str, nonce: str, package: str) -> str:
    return text.replace("WORD", f"x{nonce}").replace("PACKAGE", package)


def _tests(habit: Habit, names: tuple[str, ...]) -> str:
    bodies = (*habit.must_fail, habit.must_pass)
    pairs = zip(names, bodies, strict=True)
    return "".join(habit.test.replace("NAME", name).replace("BODY", it) for name, it in pairs)


# What one try of the test command comes to, as one of the runs that are compared.


class Ended(Struct, frozen=True, kw_only=True):
    """How it ended. `not_run`: why its exit says nothing; `overtime`: that it took too long."""

    exit_code: int | None
    not_run: str = ""
    overtime: str = ""
    said: str = ""  # the end of what it wrote about its troubles


def run_of(
    ended: Ended,
    read: ReportRead | Unreadable,
    canaries: Canaries | None,
    *,
    on_base: bool,
) -> AnyRun:
    """Base on its own must work, else there is nothing to compare; a change answers for its own."""
    if ended.not_run:
        return NotRun(ended.not_run)
    if on_base and ended.overtime:
        return NotRun(ended.overtime)
    if on_base and ended.exit_code in NOT_STARTED:
        return NotRun(f"its command cannot be started: {ended.said}")
    tests = read.tests if isinstance(read, ReportRead) else None
    whole = isinstance(read, ReportRead) and read.complete and not ended.overtime
    return Run(
        exit_code=ended.exit_code,
        tests=tests or (),
        complete=whole and tests is not None,
        canaries=canaries,
        overtime=ended.overtime,
    )


def canaries_in(files: Iterable[CanaryFile]) -> Canaries | None:
    """All that were planted in one tree."""
    every = tuple(files)
    if not every:
        return None
    return Canaries(
        tuple(word for it in every for word in it.canaries.must_fail),
        tuple(word for it in every for word in it.canaries.must_pass),
    )


# What is run, and which files come from which side.


class Sides(Struct, frozen=True, kw_only=True):
    """Both trees as path → blob, a blob with its mode before its id."""

    base: Mapping[str, str]
    candidate: Mapping[str, str]
    harness: frozenset[str] = frozenset()  # mixed files whose part about tests was changed


class TestRules(Struct, frozen=True, kw_only=True):
    __test__ = False

    command: str
    patterns: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()


class Mixed(Struct, frozen=True):
    """A tree that starts as one side: files taken from the other, files taken out."""

    take: tuple[str, ...]
    drop: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Nothing is mixed in: the side's own run says it already."""
        return not (self.take or self.drop)


class Plan(Struct, frozen=True, kw_only=True):
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


# The trees that the differential gate runs the test command on, and which of them are the same.


NONCE = 16  # letters and digits
_PACKAGE = re.compile(r"^package[ \t]+(\w+)", re.MULTILINE)


class Which(StrEnum):
    """The runs, in the words that people read."""

    BASE = "base"
    AGAIN = "base once more"
    OF_BASE = "base's tests on the change"
    CHANGE = "the change"
    ON_BASE = "the change's tests on base"


BASE_ALONE = (Which.BASE, Which.AGAIN)
ON_CHANGE = (Which.CHANGE, Which.OF_BASE)
_UNMIXED = Mixed((), ())


class Tree(Struct, frozen=True):
    """It starts as one side's, and takes the mixed files from the other."""

    of_change: bool
    mixed: Mixed = _UNMIXED


def planned(sides: Sides, rules: TestRules, texts: Mapping[str, str], token: str) -> Plan:
    """`texts` are by path; `token` is random."""
    return plan(sides, rules, nonce_of(token), package_of(sides, rules, texts))


def tree_of(which: Which, plan: Plan) -> Tree:
    match which:
        case Which.BASE | Which.AGAIN:
            return Tree(of_change=False)
        case Which.CHANGE:
            return Tree(of_change=True)
        case Which.OF_BASE:
            return Tree(of_change=True, mixed=plan.base_on_candidate)
        case Which.ON_BASE:
            return Tree(of_change=False, mixed=plan.candidate_on_base)


def files_of(tree: Tree, sides: Sides) -> dict[str, str]:
    """Path → blob."""
    start, other = (sides.base, sides.candidate)[:: -1 if tree.of_change else 1]
    dropped = frozenset(tree.mixed.drop)
    kept = {path: blob for path, blob in start.items() if path not in dropped}
    return {**kept, **{path: other[path] for path in tree.mixed.take}}


def stand_ins(plan: Plan, sides: Sides) -> dict[Which, Which]:
    """Runs that need not be made, because their tree is that of another one."""
    return dict(_stand_ins(plan, sides))


def to_run(plan: Plan, sides: Sides) -> tuple[Which, ...]:
    """Beside base alone."""
    known = stand_ins(plan, sides)
    return tuple(it for it in (*ON_CHANGE, Which.ON_BASE) if it not in known)


def planted_in(which: Which, plan: Plan, texts: Mapping[str, str]) -> tuple[CanaryFile, ...]:
    """`texts` are those of the tree's plain files."""
    return () if which is Which.BASE else planted(plan, texts)


def runs_of(made: Mapping[Which, AnyRun], same: Mapping[Which, Which]) -> Runs:
    def run(which: Which) -> AnyRun:
        return made[same.get(which, which)]

    return Runs(
        base=run(Which.BASE),
        base_again=run(Which.AGAIN),
        base_on_candidate=run(Which.OF_BASE),
        candidate=run(Which.CHANGE),
        candidate_on_base=run(Which.ON_BASE),
    )


def unfit(base: AnyRun, again: AnyRun) -> str | None:
    """Why base alone already shows that nothing can be compared."""
    others = (Which.OF_BASE, Which.CHANGE, Which.ON_BASE)
    return trouble(
        runs_of({Which.BASE: base, Which.AGAIN: again}, dict.fromkeys(others, Which.AGAIN))
    )


def to_keep(base: AnyRun, again: AnyRun) -> tuple[Run, Run] | None:
    """Both, where they are good to compare with and say the same; chance is not kept."""
    if isinstance(base, NotRun) or isinstance(again, NotRun) or unfit(base, again):
        return None
    return (base, again) if outcomes_of(base) == outcomes_of(again) else None


def disagreeing(base: AnyRun, again: AnyRun) -> tuple[Run, Run] | None:
    """Both, where they are good to compare with but differ: they show which tests are flaky."""
    if isinstance(base, NotRun) or isinstance(again, NotRun) or unfit(base, again):
        return None
    return (base, again) if flaky_tests(base, again) else None


def passed_in(run: AnyRun) -> tuple[str, ...]:
    return tuple(id for id, it in outcomes_of(run).items() if it is Outcome.PASSED)


def nonce_of(token: str) -> str:
    """Lower case, so that no word of ours can stand in it."""
    return "".join(it for it in token.lower() if it.isascii() and it.isalnum())[:NONCE]


def package_of(sides: Sides, rules: TestRules, texts: Mapping[str, str]) -> str:
    """Go's, of the directory where the canary goes; `texts` are by path."""
    tests = tests_of(sides, rules)
    if runner_of(rules.command, tests) is not Runner.GO:
        return "main"
    directory = canary_directory(tests, Runner.GO)
    beside = (it for it in tests if it.endswith("_test.go") and _folder(it) == directory)
    found = (_PACKAGE.search(texts.get(it, "")) for it in beside)
    return next((it[1] for it in found if it), "main")


def _stand_ins(plan: Plan, sides: Sides) -> Iterator[tuple[Which, Which]]:
    for which, others in (
        (Which.OF_BASE, (Which.CHANGE, Which.AGAIN)),
        (Which.ON_BASE, (Which.AGAIN, Which.CHANGE)),
    ):
        mine = files_of(tree_of(which, plan), sides)
        for other in others:
            if mine == files_of(tree_of(other, plan), sides):
                yield which, other
                break


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
