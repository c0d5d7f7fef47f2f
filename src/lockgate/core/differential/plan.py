"""What the differential gate runs: which files come from which side, and what need not run."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from shlex import quote

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.differential.canaries import (
    CanaryFile,
    canary_file,
    hosted,
    lots,
    may_host,
    with_canaries,
)
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
from lockgate.core.differential.table import ChangedFiles, Tests, placed
from lockgate.core.differential.test_files import (
    MIXED_FILES,
    SCRIPT_TESTS,
    SCRIPTED,
    SCRIPTS,
    Runner,
    files_of_tests,
    harness_files,
    runner_of,
)
from lockgate.core.model.results import NOT_STARTED, Outcome, ReportRead, Unreadable
from lockgate.core.text.steering import matching

# A test file that cannot be loaded must not keep the others from being run.
LOADED = "--continue-on-collection-errors"
REPORTED = "--junitxml=$OUT/pytest.xml"
_FROM_SOURCE = ("PYTHONDONTWRITEBYTECODE", "1")
_ENDINGS = {
    Runner.PYTEST: (".py",),
    Runner.UNITTEST: (".py",),
    Runner.GO: ("_test.go",),
}


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
    complete = whole and tests is not None
    return Run(
        exit_code=ended.exit_code,
        tests=tests or (),
        complete=complete,
        canaries=canaries,
        overtime=ended.overtime,
        said=ended.said if on_base and not complete else "",
    )


def watched(read: ReportRead | Unreadable, word: str) -> ReportRead | Unreadable:
    """The report without what was noted about files, under a word of ours."""
    if isinstance(read, Unreadable) or read.tests is None:
        return read
    kept = tuple(it for it in read.tests if not it.id.startswith(f"{word}::"))
    return replace(read, tests=kept)


def opened(read: ReportRead | Unreadable, word: str) -> tuple[str, ...]:
    """The files that were noted."""
    tests = read.tests or () if isinstance(read, ReportRead) else ()
    start = f"{word}::"
    return tuple(it.id.removeprefix(start) for it in tests if it.id.startswith(start))


def opened_in(run: AnyRun) -> tuple[str, ...]:
    return run.opened if isinstance(run, Run) else ()


def canaries_in(files: Iterable[CanaryFile]) -> Canaries | None:
    """All that were planted in one tree."""
    every = tuple(files)
    if not every:
        return None
    return Canaries(
        tuple(word for it in every for word in it.canaries.must_fail),
        tuple(word for it in every for word in it.canaries.must_pass),
        tuple(word for it in every for word in it.canaries.hosted),
    )


# What is run, and which files come from which side.


class Sides(Struct, frozen=True, kw_only=True):
    """Both trees as path → blob, a blob with its mode before its id."""

    base: Mapping[str, str]
    candidate: Mapping[str, str]
    harness: frozenset[str] = frozenset()  # mixed files whose part about tests was changed
    expected: frozenset[str] = frozenset()  # files beside the tests that base's tests open


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
    """Canaries go into every run but the first."""

    base_on_candidate: Mixed
    candidate_on_base: Mixed
    runner: Runner | None
    nonce: str
    directory: str | None  # where the canaries' own file goes
    package: str = "main"
    appended: tuple[str, ...]  # files that get canaries of their own
    hosts: tuple[str, ...] = ()  # files of base's tests in which canaries can stand
    environment: tuple[tuple[str, str], ...]


def plan(sides: Sides, rules: TestRules, nonce: str, package: str = "main") -> Plan:
    """`package` is Go's, of the directory that `canary_directory` names."""
    tests = tests_of(sides, rules)
    runner = runner_of(rules.command, tests)
    directory = canary_directory(tests, runner) if runner else None
    deciding, protected = _deciding(sides, rules), _protected(sides, rules)
    return Plan(
        base_on_candidate=_laid(sides.base, sides.candidate, deciding | protected),
        candidate_on_base=_laid(sides.candidate, sides.base, deciding - protected),
        runner=runner,
        nonce=nonce,
        directory=directory,
        package=package,
        appended=_appended(tests, runner),
        environment=environment_of(runner, rules.command),
    )


def environment_of(runner: Runner | None, command: str) -> tuple[tuple[str, str], ...]:
    """Variables of every run; `$OUT` in them is the shell's. A report that is asked for stays."""
    if runner is Runner.UNITTEST:
        return (_FROM_SOURCE,)
    if runner is not Runner.PYTEST:
        return ()
    report = "" if "--junit" in command else f" {REPORTED}"
    return (("PYTEST_ADDOPTS", f"{LOADED}{report}"), _FROM_SOURCE)


def how_to_see(plan: Plan, base: str, commit: str, command: str) -> str:
    """A shell's line that runs base's tests on the change, as the gate does; canaries left out."""
    mixed = plan.base_on_candidate
    take, drop = (" ".join(map(quote, it)) for it in (mixed.take, mixed.drop))
    steps = (
        f"git worktree add --detach ../see-{commit[:8]} {commit[:12]}",
        f"cd ../see-{commit[:8]}",
        f"git checkout -q {base[:12]} -- {take}" if take else "",
        f"git rm -q -- {drop}" if drop else "",
        f"OUT=$(mktemp -d) sh -c {quote(command.strip())}",
    )
    return " && ".join(filter(None, steps))


def tests_of(sides: Sides, rules: TestRules) -> tuple[str, ...]:
    """Base's; the change's where base has none."""
    found = files_of_tests(sides.base, rules.patterns)
    return found or files_of_tests(sides.candidate, rules.patterns)


def with_hosts(plan: Plan, passed: Iterable[str], tests: Tests, texts: Mapping[str, str]) -> Plan:
    """Canaries may stand in files whose own tests passed on base; `texts` are base's."""
    if plan.runner in SCRIPTED:
        return plan
    files = {it.test.file for it in placed(passed, tests).values()}
    return replace(plan, hosts=tuple(sorted(it for it in files if may_host(it, texts[it]))))


def planted(plan: Plan, texts: Mapping[str, str], seed: str) -> tuple[CanaryFile, ...]:
    """The canaries of one tree; `texts` are those of its tests that are as base has them."""
    if plan.runner is None or plan.directory is None:
        return ()
    drawn = lots(f"{plan.nonce} {seed}", texts.values())
    alone = canary_file(plan.runner, plan.directory, drawn, plan.package)
    hosts = {it: texts[it] for it in plan.hosts if it in texts}
    own = (
        with_canaries(plan.runner, path, texts[path], drawn)
        for path in plan.appended
        if path in texts
    )
    return (alone, *hosted(plan.runner, hosts, drawn), *own)


def canary_directory(tests: Sequence[str], runner: Runner) -> str | None:
    """Where most of base's test files are, so that the command looks there."""
    endings = _ENDINGS.get(runner, SCRIPTS)
    found = Counter(file.rpartition("/")[0] for file in tests if file.endswith(endings))
    return min(found, key=lambda it: (-found[it], len(it), it)) if found else None


def _appended(tests: Sequence[str], runner: Runner | None) -> tuple[str, ...]:
    return matching(tests, SCRIPT_TESTS) if runner in SCRIPTED else ()


def _deciding(sides: Sides, rules: TestRules) -> frozenset[str]:
    """Tests, what belongs to them, and what decides how they are run."""
    paths = (*sides.base, *sides.candidate)
    tests = frozenset(files_of_tests(paths, rules.patterns))
    return tests | frozenset(harness_files(paths, rules.command)) | sides.harness | sides.expected


def expecting(sides: Sides, changed: ChangedFiles, opened: Iterable[str]) -> ChangedFiles | None:
    """The change, where it edits files that base's tests open; None where it edits none."""
    differing = (it for it, blob in sides.base.items() if sides.candidate.get(it) != blob)
    known = {*changed.tests, *(it.file for it in changed.harness)}
    found = (frozenset(opened) & frozenset(differing)) - known
    edited = found - frozenset(matching(found, MIXED_FILES))
    if not edited:
        return None
    return replace(
        changed,
        code=tuple(it for it in changed.code if it not in edited),
        tests=(*changed.tests, *sorted(edited)),
    )


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


def planted_in(
    which: Which, plan: Plan, sides: Sides, texts: Mapping[str, str], seed: str = ""
) -> tuple[CanaryFile, ...]:
    """`texts` are those of the tree's plain files."""
    if which is Which.BASE:
        return ()
    files = files_of(tree_of(which, plan), sides)
    edited = {it for it in plan.hosts if files.get(it) != sides.base.get(it)}
    return planted(
        plan, {it: text for it, text in texts.items() if it not in edited}, seed or which
    )


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
