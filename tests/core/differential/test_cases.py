"""Cases of one test that pytest numbers: the same case, whatever number a run gives it."""

import pytest

from lockgate.core.differential.cases import named_as_in, with_steady_cases
from lockgate.core.differential.runs import NotRun, Run, Runs
from lockgate.core.differential.table import ChangedFiles, SourceTest
from lockgate.core.differential.verdict import Kept, Lost, judge
from lockgate.core.model.results import Outcome, TestResult

P, F = Outcome.PASSED, Outcome.FAILED
TEST = SourceTest(
    file="tests/test_a.py", line=3, names=("test_a",), body="def (name, pair)\nassert pair"
)


def run(**cases: Outcome) -> Run:
    return Run(exit_code=1, tests=tuple(result(case, it) for case, it in cases.items()))


def result(case: str, outcome: Outcome) -> TestResult:
    return TestResult(id=f"tests.test_a::test_a[{case.replace('_', '-')}]", outcome=outcome)


def named(mine: Run, base: Run, test: SourceTest = TEST) -> set[tuple[str, Outcome]]:
    found = named_as_in(base, mine, (test,), (test,))
    assert isinstance(found, Run)
    return {(it.id.partition("[")[2].rstrip("]"), it.outcome) for it in found.tests}


def test_a_number_that_differs_does_not_make_another_case() -> None:
    base, mine = run(one_pair0=P, two_pair1=P), run(one_pair1=P, two_pair0=F)

    assert named(mine, base) == {("one-pair0", P), ("two-pair1", F)}


@pytest.mark.parametrize("other", [{"sha2": P}, {"one_name": P}, {"sha1_pair0": P}])
def test_only_the_name_of_an_argument_has_a_number_of_pytests(other) -> None:
    mine = run(**other)

    assert named(mine, run(sha1=P)) == {(mine.tests[0].id.partition("[")[2].rstrip("]"), P)}


def test_a_case_that_is_gone_or_new_stays_so() -> None:
    base = run(one_pair0=P, two_pair1=P)

    assert named(run(one_pair1=P), base) == {("one-pair0", P)}
    assert named(run(one_pair2=P, two_pair0=P, six_pair1=P), base) == {
        ("one-pair0", P),
        ("two-pair1", P),
        ("six-pair1", P),
    }


def test_of_cases_with_the_same_words_the_green_are_the_green() -> None:
    base = run(one_pair0=F, one_pair1=P, one_pair2=P)

    assert named(run(one_pair3=P, one_pair4=F, one_pair5=F), base) == {
        ("one-pair1", P),
        ("one-pair2", F),
        ("one-pair0", F),
    }


def test_what_no_file_has_and_what_was_not_run_stays_as_it_is() -> None:
    base, mine = run(one_pair0=P), run(one_pair1=P)

    assert named_as_in(base, mine, (), ()) == mine
    assert named_as_in(base, NotRun("no"), (TEST,), (TEST,)) == NotRun("no")
    assert named_as_in(NotRun("no"), mine, (TEST,), (TEST,)) == mine


@pytest.mark.parametrize(("outcome", "expect"), [(P, Kept), (F, Lost)])
def test_a_change_is_judged_case_by_case(outcome, expect) -> None:
    change = run(one_pair1=P, two_pair0=outcome)
    runs = Runs(
        base=run(one_pair0=P, two_pair1=P),
        base_again=run(one_pair1=P, two_pair0=P),
        base_on_candidate=change,
        candidate=change,
        candidate_on_base=run(one_pair1=P, two_pair0=P),
    )

    assert isinstance(judge(runs, (TEST,), (TEST,), ChangedFiles(code=("a.py",))), expect)


def test_a_new_case_that_passes_on_bases_code_proves_nothing_whatever_its_number() -> None:
    old = run(one_pair0=P)
    runs = Runs(
        base=old,
        base_on_candidate=old,
        candidate=run(one_pair1=P, two_pair0=P),
        candidate_on_base=run(one_pair0=P, two_pair1=P),
    )

    found = with_steady_cases(runs, (TEST,), (TEST,))

    assert {it.id for it in found.candidate.tests} == {  # type: ignore[union-attr]  # both ran
        it.id
        for it in found.candidate_on_base.tests  # type: ignore[union-attr]  # both ran
    }
