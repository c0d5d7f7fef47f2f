"""The differential gate decides by four runs; whatever was green must stay so or be asked about."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lockgate.core.differential.runs import Canaries, NotRun, Run, Runs, flaky_tests, listed
from lockgate.core.differential.table import (
    ChangedFiles,
    HarnessChange,
    Kind,
    SourceTest,
    Weight,
    paired,
    placed,
)
from lockgate.core.differential.verdict import (
    Asked,
    Kept,
    Lost,
    Unjudged,
    Verdict,
    as_result,
    judge,
    reproduced,
)
from lockgate.core.model.findings import Location, Priority
from lockgate.core.model.results import Broken, Failed, Outcome, Passed, Proof, TestResult, Waiting

P, F, E, S, X = Outcome.PASSED, Outcome.FAILED, Outcome.ERROR, Outcome.SKIPPED, Outcome.XFAILED
WORDS = Canaries(("mustfail",), ("mustpass",))
HOOK = HarnessChange("conftest.py", "conftest.py adds pytest_runtest_call", 4)
Outcomes = dict[str, Outcome]


def run(outcomes: Outcomes, exit_code: int | None = 1, **more) -> Run:
    tests = tuple(TestResult(id=id, outcome=it) for id, it in outcomes.items())
    return Run(exit_code=exit_code, tests=tests, **more)


def watched(outcomes: Outcomes, fail: Outcome | None = F, good: Outcome | None = P, **more) -> Run:
    own = {"t::mustfail": fail, "t::mustpass": good}
    seen = {id: it for id, it in own.items() if it}
    return run({**outcomes, **seen}, canaries=WORDS, **more)


def runs(bb, bc, cc, cb=None, **more) -> Runs:
    plain = {
        "base": run(bb),
        "base_on_candidate": run(bc),
        "candidate": run(cc),
        "candidate_on_base": run(cb or {}),
    }
    return Runs(**{**plain, **more})


def source(name: str, body: str = "", checks: int = 1, file: str = "tests/test_a.py", **more):
    return SourceTest(
        file=file,
        line=3,
        names=tuple(name.split(".")),
        body=body or f"body of {name}",
        checks=checks,
        **more,
    )


def decided(all_runs: Runs, base=(), candidate=(), **changed) -> Verdict:
    return judge(all_runs, tuple(base), tuple(candidate), ChangedFiles(**changed))


def kinds(verdict: Verdict) -> dict[str, Kind]:
    assert not isinstance(verdict, Unjudged), verdict.why
    return {row.id: row.kind for row in verdict.rows}


ID, OTHER = "tests.test_a::test_a", "tests.test_a::test_b"
A, B = source("test_a"), source("test_b")


# --- one test, all ways -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bc", "cc", "kind", "verdict"),
    [
        (P, P, Kind.KEPT, Kept),
        (F, F, Kind.REGRESSION, Lost),
        (E, E, Kind.REGRESSION, Lost),
        (P, F, Kind.REGRESSION, Lost),
        (F, P, Kind.REGRESSION, Lost),
        (None, P, Kind.REGRESSION, Lost),
        (P, S, Kind.HIDDEN, Lost),
        (P, X, Kind.HIDDEN, Lost),
        (P, Outcome.XPASSED, Kind.HIDDEN, Lost),
        (P, None, Kind.HIDDEN, Lost),
        (F, None, Kind.HIDDEN, Lost),
    ],
)
def test_a_test_that_passes_on_base_and_was_not_touched_must_pass_both_ways(
    bc, cc, kind, verdict
) -> None:
    base_on_candidate = {ID: bc} if bc else {}
    candidate = {ID: cc} if cc else {}

    found = decided(runs({ID: P}, base_on_candidate, candidate), [A], [A])

    assert kinds(found) == {ID: kind}
    assert isinstance(found, verdict)
    if isinstance(found, Lost):
        assert found.findings[0].priority is Priority.P0_CRITICAL
        assert ID in found.findings[0].issue
        assert found.findings[0].location == Location("tests/test_a.py", 3)


@pytest.mark.parametrize("was", [F, E, S, X])
@pytest.mark.parametrize("now", [P, F, S, None])
def test_a_test_that_does_not_pass_on_base_never_blocks(was, now) -> None:
    found = decided(runs({ID: was}, {}, {ID: now} if now else {}), [A], [A])

    assert isinstance(found, Kept)
    assert kinds(found) == {ID: Kind.FIXED if now is P else Kind.ALREADY_RED}


def test_a_test_that_base_itself_cannot_repeat_is_left_out_and_named() -> None:
    found = decided(runs({ID: P}, {ID: F}, {ID: F}, base_again=run({ID: F})), [A], [A])

    assert isinstance(found, Kept)
    assert kinds(found) == {ID: Kind.FLAKY}
    assert "flaky on base" in found.findings[0].issue


def test_a_changed_expectation_is_a_question_that_shows_old_and_new() -> None:
    old, new = source("test_a", "x = 1\nassert f(x) == 1"), source("test_a", "x = 1\nassert f(x)")

    found = decided(runs({ID: P}, {ID: F}, {ID: P}), [old], [new], tests=("tests/test_a.py",))

    assert isinstance(found, Asked)
    assert kinds(found) == {ID: Kind.CONTRADICTED}
    assert "assert f(x) == 1 → assert f(x)" in found.prompt
    assert "tests/test_a.py:3" in found.prompt


def test_a_long_expectation_is_cut_and_a_question_about_nothing_says_so() -> None:
    old, new = source("test_a", "x = 1"), source("test_a", "x = 1\n" + "y" * 900)

    found = decided(runs({ID: P}, {ID: F}, {ID: P}), [old], [new])

    assert isinstance(found, Asked)
    assert "(nothing) → yyy" in found.prompt
    assert len(found.prompt) < 500


def test_a_deleted_test_is_a_question_and_says_whether_the_code_still_keeps_it() -> None:
    kept = decided(runs({ID: P}, {ID: P}, {}), [A], [], tests=("tests/test_a.py",))
    broken = decided(runs({ID: P}, {ID: F}, {}), [A], [], tests=("tests/test_a.py",))

    assert isinstance(kept, Asked)
    assert isinstance(broken, Asked)
    assert f"deleted: {ID} (tests/test_a.py:3)" in kept.prompt
    assert "fails on the change" not in kept.prompt
    assert "as base has it, it fails on the change" in broken.prompt


def test_a_test_that_no_file_shows_is_deleted_if_tests_changed_and_hidden_if_not() -> None:
    deleted = decided(runs({ID: P}, {ID: P}, {}), tests=("tests/test_a.py",))
    hidden = decided(runs({ID: P}, {ID: P}, {}))
    by_hook = decided(runs({ID: P}, {ID: P}, {}), tests=("tests/test_a.py",), harness=(HOOK,))

    assert kinds(deleted) == {ID: Kind.DELETED}
    assert kinds(hidden) == {ID: Kind.HIDDEN}
    assert kinds(by_hook) == {ID: Kind.SET_ASIDE}, "it would pass: a human may want that"
    assert isinstance(deleted, Asked)
    assert f"deleted: {ID}" in deleted.prompt
    assert isinstance(hidden, Lost)


def test_a_test_that_checks_nothing_any_more_is_a_question_though_it_passes() -> None:
    hollow = source("test_a", "pass", checks=0)

    found = decided(runs({ID: P}, {ID: P}, {ID: P}), [A], [hollow])

    assert isinstance(found, Asked)
    assert kinds(found) == {ID: Kind.EMPTIED}
    assert "checks nothing any more" in found.prompt


def test_a_test_that_checks_less_passes_with_a_finding() -> None:
    base, candidate = source("test_a", "long", checks=3), source("test_a", "short", checks=2)

    found = decided(runs({ID: P}, {ID: P}, {ID: P}), [base], [candidate])

    assert isinstance(found, Kept)
    assert [(it.priority, it.issue) for it in found.findings] == [
        (Priority.P2_MINOR, f"{ID} checks less than on base")
    ]


def test_a_test_that_only_changed_fixtures_let_pass_is_a_question_naming_the_files() -> None:
    found = decided(
        runs({ID: P}, {ID: F}, {ID: P}), [A], [A], tests=("tests/conftest.py",), code=("a.py",)
    )

    assert isinstance(found, Asked)
    assert kinds(found) == {ID: Kind.SUPPORTED}
    assert "tests/conftest.py" in found.prompt


def test_a_test_that_only_a_changed_hook_lets_pass_is_lost_and_the_hook_is_named() -> None:
    found = decided(
        runs({ID: P}, {ID: F}, {ID: P}), [A], [A], tests=("conftest.py",), harness=(HOOK,)
    )

    assert isinstance(found, Lost)
    assert [it.priority for it in found.findings] == [Priority.P0_CRITICAL, Priority.P1_MAJOR]
    assert "as base has it" in found.findings[0].issue
    assert "adds pytest_runtest_call" in found.findings[1].issue
    assert found.findings[1].location == Location("conftest.py", 4)


def test_a_hook_that_made_no_difference_is_only_mentioned() -> None:
    found = decided(runs({ID: P}, {ID: P}, {ID: P}), [A], [A], harness=(HOOK,))

    assert isinstance(found, Kept)
    assert [it.priority for it in found.findings] == [Priority.P3_SUGGESTION]


def test_a_question_shows_changed_hooks_too_and_counts_what_it_does_not_name() -> None:
    names = [f"test_{number:03}" for number in range(60)]
    ids = {f"tests.test_a::{name}": P for name in names}

    found = decided(
        runs(ids, ids, {}), [source(it) for it in names], [], tests=("t",), harness=(HOOK,)
    )

    assert isinstance(found, Asked)
    assert "60 tests" in found.prompt
    assert "… and 20 more" in found.prompt
    assert "how tests are run: conftest.py" in found.prompt


# --- names and cases ----------------------------------------------------------------------------


def test_a_renamed_test_is_paired_by_its_body() -> None:
    new = source("test_new", A.body)

    found = decided(runs({ID: P}, {ID: P}, {"tests.test_a::test_new": P}), [A], [new])

    assert isinstance(found, Kept)
    assert kinds(found) == {ID: Kind.RENAMED}
    assert found.rows[0].now == ("tests.test_a::test_new",)


def test_a_renamed_test_that_fails_is_a_regression() -> None:
    new = source("test_new", A.body)

    found = decided(runs({ID: P}, {ID: F}, {"tests.test_a::test_new": F}), [A], [new])

    assert isinstance(found, Lost)
    assert kinds(found) == {ID: Kind.REGRESSION}


def test_a_test_with_one_case_fewer_is_a_question_where_its_text_or_the_code_explains_it() -> None:
    one, two = f"{ID}[1]", f"{ID}[2]"
    other = source("test_a", "fewer cases")

    by_text = decided(runs({one: P, two: P}, {one: P, two: P}, {one: P}), [A], [other])
    by_code = decided(runs({one: P, two: P}, {one: P}, {one: P}), [A], [A])
    by_hook = decided(runs({one: P, two: P}, {one: P, two: P}, {one: P}), [A], [A])

    assert kinds(by_text) == kinds(by_code) == {one: Kind.KEPT, two: Kind.DELETED}
    assert isinstance(by_text, Asked)
    assert isinstance(by_code, Asked)
    assert kinds(by_hook) == {one: Kind.KEPT, two: Kind.HIDDEN}
    assert isinstance(by_hook, Lost)


def test_a_test_that_gets_or_loses_all_parameters_is_the_same_test() -> None:
    other = source("test_a", "other text")
    cases = {f"{ID}[1]": P, f"{ID}[2]": P}

    gets = decided(runs({ID: P}, {ID: P}, cases), [A], [other])
    loses = decided(runs(cases, cases, {ID: P}), [A], [other])
    fails = decided(runs({ID: P}, {ID: P}, {**cases, f"{ID}[2]": F}), [A], [other])

    assert set(kinds(gets).values()) == set(kinds(loses).values()) == {Kind.RENAMED}
    assert kinds(fails) == {ID: Kind.REGRESSION}


# --- new tests ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cb", "cc", "kind"),
    [
        (F, P, Kind.PROVES),
        (None, P, Kind.PROVES),
        (P, P, Kind.IDLE),
        (F, F, Kind.NEW_RED),
        (P, S, Kind.NEW_UNRUN),
    ],
)
def test_a_new_test_proves_something_only_if_it_does_not_pass_on_base(cb, cc, kind) -> None:
    found = decided(runs({}, {}, {ID: cc}, {ID: cb} if cb else {}), [], [A])

    assert kinds(found) == {ID: kind}
    assert isinstance(found, Lost) == (kind is Kind.NEW_RED)


def test_new_tests_that_prove_nothing_block_only_where_a_proof_was_asked_for() -> None:
    idle = runs({}, {}, {ID: P, OTHER: P}, {ID: P, OTHER: P})
    half = runs({}, {}, {ID: P, OTHER: P}, {ID: P})

    assert isinstance(decided(idle, [], [A, B], code=("a.py",)), Kept)
    assert isinstance(decided(idle, [], [A, B], must_prove=True), Kept)
    assert isinstance(decided(idle, [], [A, B], must_prove=True, code=("a.py",)), Lost)
    assert isinstance(decided(half, [], [A, B], must_prove=True, code=("a.py",)), Kept)


def test_a_finding_has_the_runs_own_place_and_words() -> None:
    said = TestResult(id=ID, outcome=F, location=Location("a.py", 9), message="3 != 4")
    all_runs = runs({ID: P}, {}, {}, candidate=Run(exit_code=1, tests=(said,)))

    found = decided(all_runs, [A], [A])

    assert isinstance(found, Lost)
    assert found.findings[0].location == Location("a.py", 9)
    assert found.findings[0].issue.endswith("fails on the change: 3 != 4")


# --- what can be believed -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "which", ["base", "base_again", "base_on_candidate", "candidate", "candidate_on_base"]
)
def test_a_run_that_did_not_happen_leaves_no_judgement(which) -> None:
    found = decided(runs({ID: P}, {ID: F}, {ID: F}, **{which: NotRun("no space left")}), [A], [A])

    assert isinstance(found, Unjudged)
    assert "no space left" in found.why


@pytest.mark.parametrize(
    ("again", "why"),
    [
        (watched({ID: P}, complete=False), "second report"),
        (watched({ID: P}, fail=None), "were not run by the command"),
        (watched({ID: P}, good=None), "were not run by the command"),
        (watched({ID: P}, fail=P), "must fail did not fail"),
        (watched({ID: P}, good=F), "can only pass did not pass on base"),
        (watched({ID: P}, exit_code=0), "exits 0 on base"),
        (watched({}), "stop at the first failure"),
    ],
)
def test_canaries_that_do_not_work_on_base_leave_no_judgement(again, why) -> None:
    found = decided(runs({ID: P}, {ID: P}, {ID: P}, base_again=again), [A], [A])

    assert isinstance(found, Unjudged)
    assert why in found.why


def test_base_without_a_report_leaves_no_judgement() -> None:
    cut = runs({}, {ID: P}, {ID: P}, base=run({ID: P}, complete=False))
    empty = runs({}, {}, {})

    assert isinstance(decided(cut, [A], [A]), Unjudged)
    assert isinstance(decided(empty, [A], [A]), Unjudged)
    assert isinstance(decided(empty, [], []), Unjudged)


@pytest.mark.parametrize(("exit_code", "how"), [(4, "exited 4"), (None, "was killed")])
def test_what_base_wrote_instead_of_a_report_is_told(exit_code, how) -> None:
    cut = run({}, exit_code, complete=False, said="unrecognized arguments: --cov")

    found = decided(runs({}, {}, {}, base=cut), [A], [A])

    assert isinstance(found, Unjudged)
    assert f"It {how} and wrote: unrecognized arguments: --cov" in found.why


@pytest.mark.parametrize("which", ["base_on_candidate", "candidate"])
@pytest.mark.parametrize(("exit_code", "how"), [(0, "exited 0"), (None, "was killed")])
def test_a_run_on_the_change_without_its_whole_report_is_lost(which, exit_code, how) -> None:
    cut = run({ID: P}, exit_code, complete=False)

    found = decided(runs({ID: P}, {ID: P}, {ID: P}, **{which: cut}), [A], [A])

    assert isinstance(found, Lost)
    assert how in found.findings[0].issue


@pytest.mark.parametrize(
    ("on_change", "how"),
    [
        (watched({ID: P}, fail=P), "must fail was reported as passed"),
        (watched({ID: P}, fail=S), "must fail was reported as skipped"),
        (watched({ID: P}, fail=None), "must fail was not reported"),
        (watched({ID: P}, exit_code=0), "exits 0 though"),
    ],
)
@pytest.mark.parametrize("which", ["base_on_candidate", "candidate"])
def test_a_run_that_can_be_forged_is_lost_and_says_what_was_touched(on_change, how, which) -> None:
    forged = runs({ID: P}, {ID: P}, {ID: P}, **{which: on_change})

    by_code = decided(forged, [A], [A])
    by_hook = decided(forged, [A], [A], harness=(HOOK,))

    assert isinstance(by_code, Lost)
    assert isinstance(by_hook, Lost)
    assert "the run can be forged" in by_code.findings[0].issue
    assert how in by_code.findings[0].issue
    assert "the change's own code runs in it" in by_code.findings[0].issue
    assert "the change touches conftest.py" in by_hook.findings[0].issue


@pytest.mark.parametrize("good", [P, None])
def test_canaries_that_could_not_be_loaded_beside_base_tests_are_no_forgery(good) -> None:
    """A script's test file has its own: where what it loads has moved, neither says anything."""
    on_change = watched({}, fail=None, good=good)
    unloaded = runs({ID: P}, {}, {}, base_on_candidate=on_change, candidate=watched({}))

    found = decided(unloaded, [A], [], tests=("tests/test_a.py",))

    assert isinstance(found, Asked)


def test_canaries_in_a_file_of_the_project_say_nothing_only_if_its_own_tests_do_not_either() -> (
    None
):
    inside = Canaries(("bad",), ("good",), ("bad", "good"))
    silent = run({ID: P}, 1, canaries=inside)
    gone = run({}, 1, canaries=inside)

    forged = decided(runs({ID: P}, {ID: P}, {ID: P}, candidate=silent), [A], [A])
    unloaded = decided(runs({ID: P}, {ID: P}, {}, candidate=gone), [A], [A])

    assert isinstance(forged, Lost)
    assert "must fail was not reported" in forged.findings[0].issue
    assert isinstance(unloaded, Lost)
    assert not any("forged" in it.issue for it in unloaded.findings)


def test_a_canary_that_can_only_pass_and_does_not_leaves_no_judgement_unless_more_is_wrong() -> (
    None
):
    odd = watched({ID: P}, good=F)
    wrong = watched({ID: F}, good=F)

    gone = watched({ID: P}, good=None)

    assert isinstance(decided(runs({ID: P}, {ID: P}, {}, candidate=odd), [A], [A]), Unjudged)
    for which in ("base_on_candidate", "candidate"):
        one = runs({ID: P}, {ID: P}, {ID: P}, **{which: gone})
        assert isinstance(decided(one, [A], [A]), Unjudged), "its tests were loaded"
    assert isinstance(decided(runs({ID: P}, {ID: P}, {}, candidate=wrong), [A], [A]), Lost)
    well = dict.fromkeys(("base_again", "base_on_candidate", "candidate"), watched({ID: P}))
    good = runs({ID: P}, {}, {}, **well)
    assert isinstance(decided(good, [A], [A]), Kept)


def test_names_are_listed_up_to_five() -> None:
    assert listed("abc") == "a, b, c"
    assert listed("abcdefg") == "a, b, c, d, e and 2 more"


def test_each_verdict_is_one_result_of_the_gate() -> None:
    proof = Proof(
        ran=("x",), commit="c", tree="t", config_hash="h", sandbox="bubblewrap", seconds=1
    )

    assert as_result("diff", Kept((), ()), proof) == Passed("diff", proof)
    assert as_result("diff", Lost((), ()), proof) == Failed("diff", ())
    assert as_result("diff", Asked((), (), "why?"), proof) == Waiting("diff", "why?")
    assert as_result("diff", Unjudged("no"), proof) == Broken("diff", "no")


# --- properties ---------------------------------------------------------------------------------

NAMES = st.sampled_from([f"test_{letter}" for letter in "abcdef"])
TABLES = st.dictionaries(NAMES, st.sampled_from(list(Outcome)))
FOUR = st.tuples(TABLES, TABLES, TABLES, TABLES)
TEXTS = st.dictionaries(NAMES, st.sampled_from(["one", "two", "three"]))
CHANGES = st.builds(
    ChangedFiles,
    code=st.sampled_from([(), ("a.py",)]),
    tests=st.sampled_from([(), ("tests/test_a.py",)]),
    harness=st.sampled_from([(), (HOOK,)]),
    must_prove=st.booleans(),
)


def full(table: Outcomes) -> Outcomes:
    return {f"tests.test_a::{name}": it for name, it in table.items()}


def written(texts: dict[str, str]) -> tuple[SourceTest, ...]:
    return tuple(source(name, body) for name, body in texts.items())


def regressed(bb: Outcomes, bc: Outcomes, cc: Outcomes) -> bool:
    return any(it is P and (bc.get(id) is not P or cc.get(id) is not P) for id, it in bb.items())


@given(TABLES, TABLES, TABLES, TABLES, CHANGES)
def test_without_a_rename_nothing_passes_that_lost_a_green_test(bb, bc, cc, cb, changed) -> None:
    same = written({f"test_{it}": it for it in "abcdef"})

    found = judge(runs(full(bb), full(bc), full(cc), full(cb)), same, same, changed)

    if regressed(bb, bc, cc):
        assert not isinstance(found, Kept)


@given(FOUR, TEXTS, TEXTS, CHANGES)
def test_what_passes_has_for_every_green_test_of_base_one_that_passes_both_ways(
    tables, old, new, changed
) -> None:
    bb, bc, cc, cb = tables
    found = judge(runs(full(bb), full(bc), full(cc), full(cb)), written(old), written(new), changed)

    if isinstance(found, Kept):
        for row in found.rows:
            if full(bb).get(row.id) is P:
                assert full(bc)[row.id] is P
                assert row.now
                assert all(full(cc)[id] is P for id in row.now)


@given(TABLES, TABLES, TABLES, CHANGES)
def test_tests_that_are_red_on_base_never_block(bb, bc, cc, changed) -> None:
    red = {name: it for name, it in bb.items() if it is not P}
    now = {name: it for name, it in cc.items() if name in red}
    tests = written({name: name for name in red})

    found = judge(runs(full(red), full(bc), full(now), full(now)), tests, tests, changed)

    if red and not (changed.must_prove and changed.code):
        assert isinstance(found, Kept)


@given(FOUR, TEXTS, TEXTS, CHANGES, st.randoms(use_true_random=False))
def test_the_order_of_ids_and_files_changes_nothing(tables, old, new, changed, chance) -> None:
    bb, bc, cc, cb = tables

    def shuffled(table):
        items = list(table.items())
        chance.shuffle(items)
        return dict(items)

    first = judge(runs(full(bb), full(bc), full(cc), full(cb)), written(old), written(new), changed)
    second = judge(
        runs(*(full(shuffled(it)) for it in (bb, bc, cc, cb))),
        written(shuffled(old)),
        written(shuffled(new)),
        changed,
    )

    assert first == second


SOURCES = st.lists(
    st.builds(
        source,
        st.sampled_from(["test_a", "test_b", "Case.test_a"]),
        st.sampled_from(["one", "two", "three"]),
        file=st.sampled_from(["tests/test_a.py", "tests/test_b.py"]),
    ),
    unique=True,
)


@given(SOURCES, SOURCES)
def test_renames_are_the_same_both_ways_and_one_to_one(gone, new) -> None:
    forth, back = paired(gone, new), paired(new, gone)

    assert {(a, b) for a, b in forth} == {(b, a) for a, b in back}
    assert len({a for a, _ in forth}) == len({b for _, b in forth}) == len(forth)
    assert all(a.body == b.body or a.names == b.names for a, b in forth)


# --- which test an id means ---------------------------------------------------------------------

GO = "example.com/calc"


@pytest.mark.parametrize(
    ("id", "test", "case"),
    [
        ("tests.test_a::test_a", source("test_a"), ""),
        ("tests/test_a.py::test_a", source("test_a"), ""),
        ("tests/test_a.py::tests.test_a.Case::test_a", source("Case.test_a"), ""),
        ("test_a.Case::test_a", source("Case.test_a"), ""),
        ("tests.test_a::test_a[x::y/z]", source("test_a"), "[x::y/z]"),
        ("tests.test_a::test_a[a[0]]", source("test_a"), "[a[0]]"),
        (f"{GO}/calc/TestAdd/neg", source("TestAdd.neg", file="calc/a_test.go"), ""),
        (f"{GO}/calc/TestAdd/x/y", source("TestAdd", file="calc/a_test.go"), "/x/y"),
        (f"{GO}/calc::TestAdd/x", source("TestAdd", file="calc/a_test.go"), "/x"),
        ("src/a.test.ts::outer > adds", source("outer.adds", file="src/a.test.ts"), ""),
        ("outer adds::outer adds", source("outer.adds", file="src/a.test.ts"), ""),
        ("test::adds", source("outer.adds", file="src/a.test.ts"), ""),
        ("test::outer::adds", source("outer.adds", file="src/a.test.ts"), ""),
    ],
)
def test_an_id_of_any_runner_finds_its_test(id, test, case) -> None:
    stranger = source("test_zzz", file="tests/test_z.py")

    found = placed([id], [stranger, test])

    assert (found[id].test, found[id].case) == (test, case)


def test_an_id_finds_the_nearest_of_namesakes_and_none_where_two_are_as_near() -> None:
    here, there = source("test_a"), source("test_a", file="tests/test_b.py")
    scripts = [source("adds", file="a.test.js"), source("adds", file="b.test.js")]

    assert placed(["tests.test_b::test_a"], [here, there])["tests.test_b::test_a"].test is there
    assert placed(["tests.test_c::test_a"], [here]) == {}
    assert placed(["test::adds", "unknown"], scripts) == {}


def test_a_title_that_goes_on_is_found_by_its_beginning() -> None:
    sums = source("outer.sums ", file="a.test.js", flexible=True)
    longer = source("outer.sums of ", file="a.test.js", flexible=True)
    nameless = source("", file="a.test.js", flexible=True)

    found = placed(["outer sums 1 + 2", "outer sums of 3", "inner sums"], [sums, longer, nameless])

    assert found["outer sums 1 + 2"].test is sums
    assert found["outer sums of 3"].test is longer
    assert "inner sums" not in found


def test_a_test_is_flaky_where_it_passed_and_failed_on_base() -> None:
    def run(**said: Outcome) -> Run:
        tests = tuple(TestResult(id=id, outcome=it) for id, it in said.items())
        return Run(exit_code=1, tests=tests)

    one = run(
        a=Outcome.PASSED, b=Outcome.FAILED, c=Outcome.ERROR, d=Outcome.PASSED, e=Outcome.PASSED
    )
    two = run(a=Outcome.FAILED, b=Outcome.FAILED, c=Outcome.PASSED, d=Outcome.SKIPPED)

    assert flaky_tests(one, two) == {"a", "c"}


# --- refactored tests are asked about, not failed ------------------------------------------------


@pytest.mark.parametrize("outcome", [S, X, None])
def test_a_test_that_is_taken_out_and_would_pass_is_a_question(outcome) -> None:
    candidate = {ID: outcome} if outcome else {}
    found = decided(runs({ID: P}, {ID: P}, candidate), [A], [A], harness=(HOOK,))
    broken = decided(runs({ID: P}, {ID: F}, candidate), [A], [A], harness=(HOOK,))

    assert isinstance(found, Asked)
    assert kinds(found) == {ID: Kind.SET_ASIDE}
    assert "as base has it, it passes on the change" in found.prompt
    assert any("passed on base and is" in it.issue for it in found.findings)
    assert isinstance(broken, Lost)


def test_tests_that_cannot_be_loaded_as_base_has_them_are_a_question_where_settings_moved() -> None:
    found = decided(runs({ID: P}, {}, {ID: P}), [A], [A], harness=(HOOK,))
    failing = decided(runs({ID: P}, {ID: F}, {ID: P}), [A], [A], harness=(HOOK,))

    assert kinds(found) == {ID: Kind.SUPPORTED}
    assert isinstance(found, Asked)
    assert isinstance(failing, Lost)


def test_cases_that_get_other_ids_are_the_same_cases_as_long_as_none_is_gone() -> None:
    old = source("test_a", body="cases: 1 2")
    new = source("test_a", body="cases: 1 2, ids one two")
    base = {f"{ID}[1]": P, f"{ID}[2]": P}
    renamed = decided(
        runs(base, base, {f"{ID}[one]": P, f"{ID}[two]": P}), [old], [new], tests=("t",)
    )
    fewer = decided(runs(base, base, {f"{ID}[one]": P}), [old], [new], tests=("t",))

    assert set(kinds(renamed).values()) == {Kind.RENAMED}
    assert Kind.DELETED in kinds(fewer).values()


def test_a_test_with_the_same_assertions_is_the_same_test() -> None:
    old = source("test_a", body="def ()\nx", asserts=("assert x",))
    new = source("Group.test_z", body="def (self)\nx", asserts=("assert x",))
    found = decided(runs({ID: P}, {ID: P}, {"tests.test_a.Group::test_z": P}), [old], [new])

    assert kinds(found) == {ID: Kind.RENAMED}


def test_a_test_that_says_all_that_another_said_has_its_place() -> None:
    old = source("test_a", body="def ()\nx", asserts=("assert x",))
    new = source("test_z", body="def ()\ny\nx", asserts=("assert y", "assert x"))
    other = source("test_y", body="def ()\nz", asserts=("assert z",))

    assert paired([old], [other, new]) == ((old, new),)
    assert paired([old, replace(old, names=("test_b",))], [new]) == ((old, new),)
    assert paired([replace(old, asserts=())], [new]) == ()


def test_a_deleted_test_names_its_likely_successor_with_old_and_new() -> None:
    old = source("test_adds_two", body="def ()\nx = add(1, 2)\nassert x == 3", asserts=("a", "b"))
    new = source("test_adds_numbers", body="def ()\nx = add(1, 2)\nassert x == 4", asserts=("a",))
    gone, became = "tests.test_a::test_adds_two", "tests.test_a::test_adds_numbers"
    found = decided(runs({gone: P}, {gone: P}, {became: P}), [old], [new], tests=("t",))

    assert isinstance(found, Asked)
    assert "test_adds_numbers looks like its successor, 1 of 2 assertions" in found.prompt
    assert "assert x == 3 → assert x == 4" in found.prompt


@pytest.mark.parametrize("body", ["def ()\nnothing alike here at all", ""])
def test_a_test_that_is_like_no_other_has_no_successor(body) -> None:
    old = source("test_adds_two", body="def ()\nx = add(1, 2)\nassert x == 3")
    new = source("test_quite_different", body=body or "y")
    gone, became = "tests.test_a::test_adds_two", "tests.test_a::test_quite_different"
    found = decided(runs({gone: P}, {gone: P}, {became: P}), [old], [new], tests=("t",))

    assert isinstance(found, Asked)
    assert "successor" not in found.prompt


def test_a_successor_without_assertions_of_its_own_is_not_counted() -> None:
    old = source("test_adds_two", body="def ()\nadd(1, 2)")
    new = source("test_adds_three", body="def ()\nadd(1, 3)")
    gone, became = "tests.test_a::test_adds_two", "tests.test_a::test_adds_three"
    found = decided(runs({gone: P}, {gone: P}, {became: P}), [old], [new], tests=("t",))

    assert isinstance(found, Asked)
    assert "looks like its successor: " in found.prompt


def test_an_expectation_in_another_file_is_shown_old_and_new() -> None:
    found = decided(
        runs({ID: P}, {ID: F}, {ID: P}),
        [A],
        [A],
        tests=("tests/gold.txt",),
        edits=(("tests/gold.txt", "one", "two"),),
    )

    assert isinstance(found, Asked)
    assert "tests/gold.txt: one → two" in found.prompt


# --- files that are loaded by themselves --------------------------------------------------------


def test_a_file_that_is_loaded_by_itself_is_a_question_though_every_test_passes() -> None:
    entry = HarnessChange("x.dist-info/METADATA", "adds x, an entry", weight=Weight.ASKED)
    found = decided(runs({ID: P}, {ID: P}, {ID: P}), [A], [A], harness=(entry,))

    assert isinstance(found, Asked)
    assert found.prompt.startswith("The change brings files that Python or the test runner loads")
    assert "adds x, an entry" in found.prompt


def test_a_compiled_file_is_refused_though_every_test_passes() -> None:
    cache = HarnessChange("__pycache__/a.pyc", "adds a.pyc, compiled", weight=Weight.REFUSED)
    found = decided(runs({ID: P}, {ID: P}, {ID: P}), [A], [A], harness=(cache,))

    assert isinstance(found, Lost)
    assert found.findings[0].priority is Priority.P1_MAJOR
    assert "take it out" in (found.findings[0].suggestion or "")


def test_code_that_newly_asks_whether_a_test_runs_is_a_question_with_the_line() -> None:
    mark = HarnessChange("app.py", "if 'PYTEST_CURRENT_TEST' in os.environ:", 7)
    found = decided(runs({ID: P}, {ID: P}, {ID: P}), [A], [A], code=("app.py",), marks=(mark,))

    assert isinstance(found, Asked)
    assert "newly asks whether a test runs" in found.prompt
    assert "app.py:7: if 'PYTEST_CURRENT_TEST' in os.environ:" in found.prompt


def test_what_blocks_comes_with_a_command_that_shows_it() -> None:
    lost = reproduced(Lost((), ()), "git worktree add x")
    asked = reproduced(Asked((), (), "Is that wanted?"), "git worktree add x")

    assert isinstance(lost, Lost)
    assert lost.findings[-1].issue == "to see it: git worktree add x"
    assert isinstance(asked, Asked)
    assert asked.prompt == "Is that wanted?\nTo see it: git worktree add x"
    assert reproduced(Kept((), ()), "x") == Kept((), ())
    assert reproduced(Unjudged("y"), "x") == Unjudged("y")
