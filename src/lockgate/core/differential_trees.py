"""The trees that the differential gate runs the test command on, and which of them are the same."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from lockgate.core.canaries import CanaryFile
from lockgate.core.differential_plan import (
    Mixed,
    Plan,
    Sides,
    TestRules,
    canary_directory,
    plan,
    planted,
    tests_of,
)
from lockgate.core.test_paths import Runner, runner_of
from lockgate.core.test_results import Outcome
from lockgate.core.test_runs import AnyRun, NotRun, Run, Runs, outcomes_of, trouble

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


@dataclass(frozen=True, slots=True)
class Tree:
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
