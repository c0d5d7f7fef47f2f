"""What a change did to its tests, and what planted faults say about it."""

import pytest
from msgspec.structs import replace

from lockgate.core.differential.faults import Fault, Span
from lockgate.core.differential.strength import (
    ENOUGH,
    EXAMPLES,
    MOST,
    SOME,
    BaseSeen,
    Noticed,
    Side,
    Strength,
    Subject,
    base_seen,
    confirmed,
    known_of,
    loading,
    measured_on,
    strength_of,
    subject_of,
    weighed,
    worth,
)
from lockgate.core.differential.table import ChangedFiles, Kind, Row, SourceTest
from lockgate.core.differential.verdict import Asked, Kept, Lost
from lockgate.core.model.gates import Report
from lockgate.core.model.results import Outcome, ReportRead, TestResult, Unreadable

FILE = "tests/test_a.py"
WEAKER = Strength(measured=ENOUGH, missed=())


def a_test(name: str, *asserts: str, body: str = "", file: str = FILE) -> SourceTest:
    text = body or "\n".join(("def ()", *asserts))
    return SourceTest(file=file, line=1, names=(name,), body=text, asserts=asserts)


def a_fault(number: int, *, neutral: bool = False) -> Fault:
    return Fault(
        path="app.py",
        function="add",
        starts=1,
        span=Span(number, 0, number, 1),
        old="a + b",
        new="(a - b)",
        neutral=neutral,
    )


def subject(base: Side, change: Side, *tests: str) -> Subject | None:
    return subject_of(base, change, ChangedFiles(tests=tests))


def read(**outcomes: str) -> ReportRead:
    tests = (
        TestResult(id=f"n::{name.removeprefix('_')}", outcome=Outcome(it), message=f"t | {name}")
        for name, it in outcomes.items()
    )
    return ReportRead(format=Report.JUNIT, tests=tuple(tests))


# What changed.


def test_edited_moved_deleted_and_new_tests_are_the_subject() -> None:
    base = Side(tests=(a_test("same", "a"), a_test("edited", "b"), a_test("gone", "c")))
    change = Side(tests=(a_test("same", "a"), a_test("edited", "d"), a_test("new", "c")))

    assert subject(base, change) == Subject(
        before=(f"{FILE}::edited", f"{FILE}::gone"),
        after=(f"{FILE}::edited", f"{FILE}::new"),
        lost=(f"{FILE}::edited: b",),
        altered=(f"{FILE}::edited: b",),
    )


def test_where_no_test_changed_there_is_nothing_to_measure() -> None:
    side = Side(tests=(a_test("same", "a"),), beside={FILE: {"add": "app add"}})

    assert subject(side, side) is None


@pytest.mark.parametrize(
    ("old", "new", "stirred"),
    [
        ({"add": "app add"}, {"add": "app add", "sub": "app sub"}, False),
        ({"add": "app add"}, {"add": "fake add"}, True),
        ({"add": "app add"}, {}, True),
        ({"add": "app add"}, {"add": "app add", "!fixture": "autouse"}, True),
    ],
)
def test_what_stands_beside_tests_changes_them_where_they_could_notice(old, new, stirred) -> None:
    test = a_test("same", "a")
    found = subject(
        Side(tests=(test,), beside={FILE: old}), Side(tests=(test,), beside={FILE: new})
    )

    assert (found is not None and found.before == (f"{FILE}::same",)) is stirred


def test_files_that_tests_use_are_named_and_what_they_lost_is_an_expectation() -> None:
    test = a_test("same", "a")
    base = Side(
        tests=(test,),
        beside={FILE: {"same": "def same(): assert 1"}},
        others={"tests/gold.txt": "one\ntwo\n", "tests/moved.txt": "x\n", "tests/more.txt": "y\n"},
    )
    change = Side(
        tests=(test,),
        beside={FILE: {"same": "def same(): return 1"}},
        others={"tests/gold.txt": "one\n", "data/moved.txt": "x\n", "tests/more.txt": "y\nz\n"},
    )
    found = subject(base, change, "tests/gold.txt", "tests/moved.txt", "tests/new.txt", FILE)

    assert found is not None
    assert found.support == ("tests/gold.txt", "tests/moved.txt")
    assert found.lost == (f"{FILE}: def same(): assert 1", "tests/gold.txt: two")


def test_where_assertions_cannot_be_told_every_line_may_be_one() -> None:
    base = Side(tests=(a_test("t", body="func ()\nif x != 1 {\nt.Error()\n}"),))
    change = Side(tests=(a_test("t", body="func ()\nif x == 9 {\nt.Error()\n}"),))
    found = subject(base, change)

    assert found is not None
    assert found.lost == (f"{FILE}::t: if x != 1 {{",)


def test_the_name_of_a_sub_test_is_no_expectation() -> None:
    base = Side(tests=(a_test("t", body='func ()\nt.Run("small", func() {\nt.Error()\n}'),))
    change = Side(tests=(a_test("t", body='func ()\nt.Run("tiny", func() {\nt.Error()\n}'),))
    found = subject(base, change)

    assert found is not None
    assert found.lost == ()


def test_a_helper_loses_an_expectation_only_with_a_line_that_asserts() -> None:
    base = Side(tests=(), others={"tests/h.py": "a = 1\nassert b\n", "tests/k.py": "c = 1\n"})
    change = Side(tests=(), others={"tests/h.py": "a = 2\n", "tests/k.py": "c = 2\n"})
    found = subject(base, change, "tests/h.py", "tests/k.py")

    assert found is not None
    assert found.lost == ("tests/h.py: assert b",)


@pytest.mark.parametrize(
    ("old", "new", "altered"),
    [
        ("def ()\nassert a", "def ()\nassert a\nassert b", ()),
        ("def ()\nassert a", "def ()\nb = 1\nassert a", ("b = 1",)),
        ("def ()\nb = 2\nassert a", "def ()\nassert a", ("b = 2",)),
        ("def ()\nassert a", "def ()\nif b:\n    assert a", ("if b:",)),
        ("def ()\nassert a\nb = 1", "def ()\nb = 1\nassert a", ("the order of its lines",)),
    ],
)
def test_a_test_is_altered_by_more_than_new_assertions(old, new, altered) -> None:
    asserts = tuple(it.strip() for it in new.splitlines() if it.strip().startswith("assert"))
    base = Side(tests=(a_test("t", "assert a", body=old),))
    found = subject(base, Side(tests=(a_test("t", *asserts, body=new),)))

    assert found is not None
    assert found.altered == tuple(f"{FILE}::t: {it}" for it in altered)


def test_tests_with_another_name_are_not_altered_and_joined_ones_are() -> None:
    one, two = a_test("one", "a"), a_test("two", "b")
    renamed = subject(Side(tests=(one,)), Side(tests=(a_test("other", "a"),)))
    joined = subject(Side(tests=(one, two)), Side(tests=(a_test("both", "a", "b"),)))

    assert renamed is not None
    assert renamed.altered == ()
    assert joined is not None
    assert joined.lost == ()
    assert joined.altered == (f"{FILE}::one: it is gone", f"{FILE}::two: it is gone")


def test_what_tests_use_alters_them() -> None:
    test = a_test("same", "a")
    base = Side(tests=(test,), beside={FILE: {"add": "app add"}}, others={"tests/h.py": "a = 1\n"})
    change = Side(tests=(test,), beside={FILE: {"add": "fake add"}}, others={"tests/h.py": "a\n"})
    found = subject(base, change, "tests/h.py")

    assert found is not None
    assert found.altered == (f"{FILE}: app add", "tests/h.py")


@pytest.mark.parametrize(
    ("old", "new", "altered"),
    [
        ({"same": "x"}, {"same": "x", "more": "y"}, ()),
        ({"same": "x"}, {"same": "z"}, ("tests/h.py",)),
        ({"same": "x"}, {"same": "x", "!hook": "y"}, ("tests/h.py",)),
    ],
)
def test_what_is_only_added_to_a_helper_alters_no_test(old, new, altered) -> None:
    base = Side(tests=(), others={"tests/h.py": "1"}, used={"tests/h.py": old})
    change = Side(tests=(), others={"tests/h.py": "2"}, used={"tests/h.py": new})
    found = subject(base, change, "tests/h.py")

    assert found is not None
    assert found.altered == altered


def test_what_base_notices_is_known_by_the_tree_the_tests_and_the_fault() -> None:
    faults = tuple(a_fault(it) for it in range(4))
    report = read(**{"_0": "failed", "_0 by t": "passed", "_1": "passed", "_2": "skipped"})

    assert known_of(faults, "n", report) == {
        faults[0].mark: ("failed", "t | _0", "t"),
        faults[1].mark: ("passed", "t | _1"),
    }
    assert len({it.mark for it in faults}) == 4
    one, two = Subject(before=("a",), after=()), Subject(before=("b",), after=())
    words = [measured_on({"x": "1"}, one), measured_on({"x": "1"}, two), measured_on({}, one)]
    assert len({*words}) == 3
    assert measured_on({"x": "1"}, one) == words[0]


def test_tests_that_were_red_or_flaky_on_base_promised_nothing() -> None:
    red, green = a_test("red", "a"), a_test("green", "b")
    rows = (
        Row(id="1", kind=Kind.ALREADY_RED, before=red),
        Row(id="2", kind=Kind.KEPT, before=green),
        Row(id="3", kind=Kind.FLAKY),
    )

    assert worth((red, green), rows) == (green,)


def test_what_newly_acts_on_every_test_counts_as_an_expectation_taken_away() -> None:
    test = a_test("same", "a")
    base = Side(tests=(test,), beside={FILE: {}}, others={"tests/conftest.py": "x"})
    change = Side(
        tests=(test,),
        beside={FILE: {"!3": "def quick()"}},
        others={"tests/conftest.py": "autouse=True"},
    )
    found = subject(base, change, "tests/conftest.py")

    assert found is not None
    assert found.lost == (
        f"{FILE}: it newly acts on every test: def quick()",
        "tests/conftest.py: a fixture newly acts on every test",
    )


# What was seen.


def test_base_notices_faults_and_does_not_notice_edits_that_change_nothing() -> None:
    faults = (
        a_fault(1, neutral=True),
        a_fault(2),
        a_fault(3),
        a_fault(4),
        a_fault(5, neutral=True),
    )
    report = read(
        **{"_0": "passed", "_1": "failed", "_2": "passed", "_4": "failed", "test x": "passed"}
    )

    assert base_seen(faults, "n", report) == BaseSeen(
        noticed=(Noticed(faults[1], "t | _1"),),
        unseen=(faults[0],),
        quiet=(faults[2],),
        tests=("x",),
    )


def test_no_more_faults_are_taken_to_the_change_than_the_time_allows() -> None:
    faults = tuple(a_fault(it) for it in range(MOST + 5))
    seen = base_seen(faults, "n", read(**{f"_{it}": "failed" for it in range(MOST + 5)}))

    assert len(seen.noticed) == MOST


@pytest.mark.parametrize(
    ("report", "said", "why", "cut"),
    [
        (Unreadable("no report"), "it was killed", "it was killed", True),
        (Unreadable("no report"), "", "did not load", False),
        (read(trouble="error"), "", "t | trouble", True),
        (ReportRead(format=Report.JUNIT), "", "did not load", False),
    ],
)
def test_what_was_not_measured_says_why(report, said, why, cut) -> None:
    seen = base_seen((a_fault(1),), "n", report, said)

    assert why in seen.why
    assert strength_of(seen, "n", report) == Strength(why=seen.why, cut=cut)


def test_the_change_misses_what_it_does_not_notice_and_is_alarmed_by_what_changes_nothing() -> None:
    neutral, one, two, three = a_fault(9, neutral=True), a_fault(1), a_fault(2), a_fault(3)
    seen = BaseSeen(
        noticed=tuple(Noticed(it, "t | l") for it in (one, two, three)), unseen=(neutral,)
    )
    found = strength_of(seen, "n", read(_0="failed", _1="passed", _2="failed", _3="skipped"))

    assert found.measured == 2
    assert found.missed == (Noticed(one, "t | l"),)
    assert found.alarmed == (neutral,)
    assert found.words == (
        "strength of changed tests not measured: 1 of 2 planted faults still noticed"
    )


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (read(trouble="error"), "on the change: t | trouble"),
        (Unreadable("x"), "could not be loaded"),
    ],
)
def test_tests_of_the_change_that_cannot_be_tried_are_not_measured(report, why) -> None:
    seen = BaseSeen(noticed=(Noticed(a_fault(1), "t | l"),))

    assert why in strength_of(seen, "n", report).why


def test_a_fault_that_base_notices_only_once_is_not_missed() -> None:
    one, two = Noticed(a_fault(1), "t | l"), Noticed(a_fault(2), "t | l")
    found = confirmed(
        Strength(measured=9, missed=(one, two)), BaseSeen(noticed=(two,), quiet=(one.fault,))
    )

    assert found.missed == (two,)


@pytest.mark.parametrize(
    "results",
    [{}, {"trouble": "error"}, {"_0": "skipped"}, {"test tests/test_a.py::test_a": "passed"}],
)
def test_what_there_was_no_time_to_try_on_base_again_stays_missed(results) -> None:
    missed = (Noticed(a_fault(0), "a"),)
    again = base_seen((a_fault(0),), "n", read(**results))

    assert confirmed(Strength(measured=16, missed=missed), again).missed == missed


def test_nothing_that_base_notices_is_not_measured_and_says_whether_there_was_time() -> None:
    blind = strength_of(BaseSeen(every=True), "n", Unreadable("not run"))
    hasty = strength_of(BaseSeen(), "n", Unreadable("not run"))

    assert (blind.measured, blind.enough, blind.cut) == (0, False, False)
    assert (hasty.measured, hasty.enough, hasty.cut) == (0, False, True)
    assert "notice none" in blind.why
    assert "no time" in hasty.why


def test_faults_that_did_not_end_in_time_are_faults_that_were_left_out() -> None:
    faults = tuple(a_fault(it) for it in range(3))
    red = {f"_{it}": "failed" for it in range(3)}
    whole = base_seen(faults, "n", read(all="passed", **red))
    slow = base_seen(faults, "n", read(all="passed", **{**red, "_2": "skipped"}))

    assert whole.every
    assert not slow.every
    assert not strength_of(whole, "n", read(all="passed", **red)).cut
    assert strength_of(whole, "n", read(all="passed", **{**red, "_2": "skipped"})).cut
    assert strength_of(whole, "n", read(**red)).cut


def test_a_test_that_noticed_faults_and_notices_none_now_is_told_though_others_notice_them() -> (
    None
):
    faults = tuple(a_fault(it) for it in range(3))
    red = {f"_{it}": "failed" for it in range(3)}
    both = {f"_{it} by {test}": "passed" for it in range(3) for test in ("a", "b")}
    one = {f"_{it} by a": "passed" for it in range(3)}
    here = {"test a": "passed", "test b": "passed"}
    seen = base_seen(faults, "n", read(**red, **both, **here))

    blinded = strength_of(seen, "n", read(**red, **one, **here))
    gone = strength_of(seen, "n", read(**red, **one, **{"test a": "passed"}))
    same = strength_of(seen, "n", read(**red, **both, **here))

    assert {it.by for it in blinded.missed} == {
        "b | it noticed 3 faults, and notices none of them now"
    }
    assert gone.missed == (), "a test that is not there any more is asked about elsewhere"
    assert same.missed == ()


def test_a_test_that_now_notices_only_what_raises_is_blind() -> None:
    loud = replace(a_fault(3), new="raise RuntimeError")
    faults = (*(a_fault(it) for it in range(3)), loud)
    red = {f"_{it}": "failed" for it in range(4)}
    every = {f"_{it} by {test}": "passed" for it in range(4) for test in ("a", "b")}
    here = {"test a": "passed", "test b": "passed"}
    seen = base_seen(faults, "n", read(**red, **every, **here))
    quiet = {name: it for name, it in every.items() if "by a" in name or name == "_3 by b"}

    missed = strength_of(seen, "n", read(**red, **quiet, **here)).missed

    assert [it.fault for it in missed] == list(faults[:3])


# What follows.


CHANGED = Subject(before=("t",), after=("t",), lost=tuple(f"t: assert {n}" for n in range(5)))
UNCHANGED = Subject(before=("t",), after=("t",))
MISSED = tuple(Noticed(a_fault(it), "test_add | assert add(1, 2) == 3") for it in range(5))
KEPT = Kept((), ())


def test_missed_faults_are_a_question_with_three_examples_and_the_seed() -> None:
    verdict = weighed(KEPT, UNCHANGED, Strength(measured=20, missed=MISSED), "seed9")

    assert isinstance(verdict, Asked)
    assert "5 of 20 faults" in verdict.prompt
    assert "seed9" in verdict.prompt
    assert verdict.prompt.count("planted in app.py") == EXAMPLES
    assert "base's test_add notices it: assert add(1, 2) == 3" in verdict.prompt


def test_tests_that_look_for_faults_are_a_question() -> None:
    alarmed = Strength(measured=20, alarmed=(a_fault(1, neutral=True),))
    verdict = weighed(KEPT, UNCHANGED, alarmed, "s")

    assert isinstance(verdict, Asked)
    assert "behaviour did not" in verdict.prompt


def test_enough_faults_that_are_noticed_are_a_pass() -> None:
    verdict = weighed(KEPT, CHANGED, Strength(measured=ENOUGH), "s9")

    assert isinstance(verdict, Kept)
    assert [it.issue for it in verdict.findings] == [
        "strength of changed tests measured: 10 of 10 planted faults still noticed (seed s9)"
    ]


def test_too_few_faults_are_a_question_only_where_an_expectation_is_gone() -> None:
    few = Strength(measured=ENOUGH - 1, why="no time")
    verdict = weighed(KEPT, CHANGED, few, "s")

    assert isinstance(verdict, Asked)
    assert "only 9 faults" in verdict.prompt
    assert "t: assert 2" in verdict.prompt
    assert "… and 2 more" in verdict.prompt
    assert isinstance(weighed(KEPT, UNCHANGED, few, "s"), Kept)


EDITED = Subject(before=("t",), after=("t",), altered=("t: add = lambda a, b: 3",))


def test_an_edited_test_that_there_was_no_time_to_measure_is_a_question() -> None:
    """Slow tests, or a busy machine, never lead to a pass."""
    verdict = weighed(KEPT, EDITED, Strength(cut=True, why="no time"), "s")

    assert isinstance(verdict, Asked)
    assert "only 0 faults" in verdict.prompt
    assert "t: add = lambda a, b: 3" in verdict.prompt
    assert isinstance(weighed(KEPT, UNCHANGED, Strength(cut=True), "s"), Kept)
    assert isinstance(weighed(KEPT, EDITED, Strength(measured=SOME, cut=True), "s"), Kept)
    assert isinstance(weighed(KEPT, EDITED, Strength(), "s"), Kept), "there are no faults to plant"


def test_one_lost_expectation_needs_no_count() -> None:
    one = Subject(before=("t",), after=("t",), lost=("t: " + "a" * 300,))
    verdict = weighed(KEPT, one, Strength(), "s")

    assert isinstance(verdict, Asked)
    *_, last, said = verdict.prompt.splitlines()
    assert "more" not in last
    assert last.endswith("…")
    assert "not measured" in said


def test_who_is_asked_anyway_is_asked_once() -> None:
    asked = Asked((), (), "deleted: x. Is that wanted?")
    more = weighed(asked, CHANGED, Strength(measured=20, missed=MISSED), "s")

    same = weighed(asked, CHANGED, Strength(), "s")
    assert isinstance(same, Asked)
    assert same.prompt.splitlines()[:-1] == [asked.prompt]
    assert isinstance(more, Asked)
    assert more.prompt.startswith("deleted: x")
    assert "notice less" in more.prompt


def test_a_test_without_a_visible_assertion_is_believed_where_it_notices_faults() -> None:
    emptied = Asked((), (), "checks nothing any more: x", doubted=True)

    assert isinstance(weighed(emptied, CHANGED, Strength(measured=ENOUGH), "s"), Kept)
    assert isinstance(weighed(emptied, CHANGED, Strength(measured=2), "s"), Asked)
    assert isinstance(weighed(emptied, CHANGED, Strength(measured=20, missed=MISSED), "s"), Asked)


def test_a_loss_stays_one() -> None:
    lost = Lost((), ())

    assert weighed(lost, CHANGED, Strength(), "s") is lost


def test_a_conftest_finds_the_program_at_the_top_however_deep_it_lies() -> None:
    assert "parents[2] / '.n'" in loading(".n", 2, "xn")
    compile(loading(".n", 0, "xn"), "conftest.py", "exec")
