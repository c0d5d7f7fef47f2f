"""The runs that the differential gate compares, and whether they can be believed at all."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from lockgate.core.model.findings import Finding, Priority
from lockgate.core.model.results import FAILING, Outcome, TestResult, merged

NAMED = 5  # how many names a message gives before it counts the rest

Outcomes = dict[str, Outcome]


class Canaries(Struct, frozen=True):
    """Words in the ids of tests of ours: those that must fail, those that must pass."""

    must_fail: tuple[str, ...]
    must_pass: tuple[str, ...]
    hosted: tuple[str, ...] = ()  # those in files of the project, which may be kept from loading


class Run(Struct, frozen=True, kw_only=True):
    """The test command on one tree. Of None, killed, nothing follows but that it was cut off."""

    exit_code: int | None
    tests: tuple[TestResult, ...]
    complete: bool = True
    canaries: Canaries | None = None  # those that were laid into this tree
    overtime: str = ""  # how long it had, where our own time-out ended it
    said: str = ""  # on base: the end of what it wrote, where its report is not whole
    opened: tuple[str, ...] = ()  # files that base's own tests opened, as far as they were watched


class NotRun(Struct, frozen=True):
    why: str


AnyRun = Run | NotRun


class Runs(Struct, frozen=True, kw_only=True):
    """{base tests, candidate tests} x {base code, candidate code}, and base once more."""

    base: AnyRun
    base_again: AnyRun | None = None  # with canaries, where the runner has some
    base_on_candidate: AnyRun
    candidate: AnyRun
    candidate_on_base: AnyRun


class Seen(Struct, frozen=True, kw_only=True):
    """The outcomes by id, canaries taken out, and the results that say more about them."""

    base: Outcomes
    again: Outcomes | None
    base_on_candidate: Outcomes
    candidate: Outcomes
    candidate_on_base: Outcomes
    said: dict[str, TestResult]


def trouble(runs: Runs) -> str | None:
    """Why nothing can be said about the change, by what base alone and our own runs show."""
    named = (
        ("base", runs.base),
        ("base once more", runs.base_again),
        ("base's tests on the change", runs.base_on_candidate),
        ("the change", runs.candidate),
        ("the change's tests on base", runs.candidate_on_base),
    )
    for words, run in named:
        if isinstance(run, NotRun):
            return f"the tests were not run on {words}: {run.why}"
    if isinstance(runs.base, Run) and not runs.base.complete:
        return (
            "no report names the tests of base, or it is cut off, so there is nothing to compare: "
            f"the command must write one (JUnit in $OUT; go test -json){_wrote(runs.base)}"
        )
    if isinstance(runs.base_again, Run) and isinstance(runs.base, Run):
        return _unfit(runs.base, runs.base_again)
    return None


def seen(runs: Runs) -> Seen:
    return Seen(
        base=outcomes_of(runs.base),
        again=outcomes_of(runs.base_again) if runs.base_again else None,
        base_on_candidate=outcomes_of(runs.base_on_candidate),
        candidate=outcomes_of(runs.candidate),
        candidate_on_base=outcomes_of(runs.candidate_on_base),
        said={it.id: it for it in (*_tests(runs.base_on_candidate), *_tests(runs.candidate))},
    )


def forgeries(runs: Runs, touched: Iterable[str]) -> Iterator[Finding]:
    """What shows that a run on the change reports what did not happen."""
    files = listed(touched)
    by = f"; the change touches {files}" if files else "; the change's own code runs in it"
    base = outcomes_of(runs.base)
    named = (
        ("base's tests on the change", _forged(runs.base_on_candidate, base, base)),
        ("the change's tests", _forged(runs.candidate, {}, base)),
    )
    for words, found in named:
        for how in found:
            yield Finding(Priority.P0_CRITICAL, f"the run can be forged: {how} ({words}){by}")


def unfinished(runs: Runs) -> Iterator[Finding]:
    """Runs on the change without the whole report that base's run has."""
    for words, run in (
        ("base's tests on the change", runs.base_on_candidate),
        ("the change's tests", runs.candidate),
    ):
        if isinstance(run, Run) and not run.complete:
            killed = run.overtime or "was killed"
            how = killed if run.exit_code is None else f"exited {run.exit_code}"
            yield Finding(
                Priority.P0_CRITICAL,
                f"the command {how} without a complete report, which it writes on base ({words})",
            )


def overtime(runs: Runs) -> bool:
    """Whether our own time-out ended a run on the change."""
    ours = (runs.base_on_candidate, runs.candidate)
    return any(isinstance(it, Run) and bool(it.overtime) for it in ours)


def misled(runs: Runs) -> str | None:
    """A test that can only pass did not, on the change."""
    named = ((runs.base_on_candidate, outcomes_of(runs.base)), (runs.candidate, Outcomes()))
    for run, expected in named:
        if isinstance(run, Run) and run.canaries:
            silent = frozenset[Outcome]() if _unloaded(run, expected) else None
            known = (it for it in run.canaries.must_pass if it not in run.canaries.hosted)
            wrong = [it for it in known if not _passed(run, it)]
            if any(_said(run, it) != silent for it in wrong):
                return "a test of ours that can only pass did not pass on the change"
    return None


def listed(names: Iterable[str]) -> str:
    """The first few, and how many more."""
    every = tuple(names)
    more = f" and {len(every) - NAMED} more" if len(every) > NAMED else ""
    return ", ".join(every[:NAMED]) + more


def _wrote(run: Run) -> str:
    how = "was killed" if run.exit_code is None else f"exited {run.exit_code}"
    return f". It {how} and wrote: {run.said}" if run.said else ""


def _unfit(base: Run, again: Run) -> str | None:
    """Base is trusted: canaries that do not work there cannot tell anything elsewhere."""
    canaries = again.canaries
    if not again.complete:
        return "the second report of base's own tests is missing or cut off"
    if not canaries:
        return None
    if any(not _said(again, it) for it in (*canaries.must_fail, *canaries.must_pass)):
        return (
            "tests that were added to base for this run were not run by the command: it must look "
            "where base's tests are, and must not stop at the first failure"
        )
    if any(not _said(again, it) <= FAILING for it in canaries.must_fail):
        return "a test that must fail did not fail on base"
    if any(not _passed(again, it) for it in canaries.must_pass):
        return "a test that can only pass did not pass on base"
    if again.exit_code == 0:
        return "the command exits 0 on base though a test failed"
    hidden = [it for it in _green(base) if it not in outcomes_of(again)]
    if hidden:
        return (
            f"beside a failing test {len(hidden)} tests of base were not run ({listed(hidden)}): "
            "the command must not stop at the first failure"
        )
    return None


def _forged(run: AnyRun, expected: Outcomes, base: Outcomes) -> Iterator[str]:
    """Where expected tests cannot be loaded, and canaries beside them, each of those says so."""
    if isinstance(run, NotRun) or not run.complete or not run.canaries:
        return
    said = {it: _said(run, it) for it in run.canaries.must_fail}
    silent = {it for it, how in said.items() if not how}
    apart = silent - {*run.canaries.hosted}
    if (apart and not _unloaded(run, expected)) or (silent - apart and not _unloaded(run, base)):
        yield "a test that must fail was not reported"
    for how in dict.fromkeys(said.values()):
        if not how <= FAILING:
            yield f"a test that must fail was reported as {' and '.join(sorted(how))}"
    if run.exit_code == 0:
        yield "the command exits 0 though a test that must fail was among them"


def _unloaded(run: Run, expected: Outcomes) -> bool:
    """Whether expected tests are not there at all, as where their file could not be loaded."""
    return run.exit_code != 0 and any(it not in outcomes_of(run) for it in expected)


def _said(run: Run, word: str) -> frozenset[Outcome]:
    return frozenset(it.outcome for it in run.tests if word in it.id)


def _passed(run: Run, word: str) -> bool:
    return _said(run, word) == frozenset({Outcome.PASSED})


def _green(run: Run) -> list[str]:
    return [id for id, outcome in outcomes_of(run).items() if outcome is Outcome.PASSED]


def flaky_tests(base: Run, again: Run) -> frozenset[str]:
    """Those that passed in one of two runs of base and failed in the other."""
    one, other = outcomes_of(base), outcomes_of(again)
    wanted = {Outcome.PASSED}
    pairs = ((id, {one[id], other[id]}) for id in one.keys() & other.keys())
    return frozenset(id for id, said in pairs if said & wanted and said & FAILING)


def outcomes_of(run: AnyRun) -> Outcomes:
    """By id, canaries taken out."""
    return {it.id: it.outcome for it in merged(_tests(run))}


def _tests(run: AnyRun) -> Iterator[TestResult]:
    """What is not a canary's."""
    canaries, tests = (run.canaries, run.tests) if isinstance(run, Run) else (None, ())
    words = (*canaries.must_fail, *canaries.must_pass) if canaries else ()
    yield from (it for it in tests if not any(word in it.id for word in words))
