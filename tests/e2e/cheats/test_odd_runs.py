"""Runs that go wrong: the change's fault is a failure, base's own leaves no judgement."""

import pytest

from lockgate.core.config.settings import EnvSettings
from lockgate.core.differential.verdict import Kept, Lost, Unjudged
from lockgate.core.model.results import Broken, Failed, Passed, Waiting
from tests.e2e.cheats.repository import BASE, CODE, CONFTEST, TESTS, WRONG, WRONG_TOTAL
from tests.e2e.cheats.stage import PYTEST, RESULTS, Case, Theatre, words_of

HUGE = 'truncate -s 500M "$OUT/report.xml"'
CUT = 'head -c 300 "$OUT/report.xml" >"$OUT/cut" && mv "$OUT/cut" "$OUT/report.xml"'
MUL = "from app.calc import mul\n\n\ndef test_mul():\n    assert mul(2, 3) == 6\n"
SLOW = pytest.mark.slow
SCRIPT = f"{PYTEST}; code=$?\n"
ASKS = {**BASE, "check.sh": f"{SCRIPT}sh ./after.sh\nexit $code\n", "after.sh": ":\n"}


@pytest.mark.parametrize(
    ("base", "change", "expect", "says"),
    [
        ({"after.sh": f"{HUGE}\n"}, {}, Unjudged, "no report names the tests of base"),
        ({}, {"after.sh": f"{HUGE}\n"}, Lost, "without a complete report"),
        pytest.param({"after.sh": f"{CUT}\n"}, {}, Unjudged, "or it is cut off", marks=SLOW),
        pytest.param({}, {"after.sh": f"{CUT}\n"}, Lost, "without a complete report", marks=SLOW),
        pytest.param(
            {"after.sh": 'rm "$OUT"/*\n'}, {}, Unjudged, "no report names the", marks=SLOW
        ),
        ({}, {"after.sh": 'rm "$OUT"/*\n'}, Lost, "without a complete report"),
        ({"check.sh": "no-such-runner\n"}, {}, Unjudged, "no-such-runner: not found"),
        ({}, {"app/calc.py": WRONG, "check.sh": "no-such-runner\n"}, Lost, "passed on base"),
        ({"check.sh": f"{SCRIPT}exit 0\n"}, {}, Unjudged, "exits 0 on base though a test failed"),
        ({"check.sh": f"{PYTEST} -x\n"}, {}, Unjudged, "must not stop at the first failure"),
    ],
    ids=range(10),
)
@pytest.mark.unmeasured
def test_a_report_that_is_huge_cut_off_or_missing_and_a_command_that_does_not_work(
    theatre: Theatre, base, change, expect, says
) -> None:
    case = Case(
        name="odd",
        base={**ASKS, **base},
        change={"app/calc.py": CODE + "\n\nNEW = 1\n", **change},
        command="sh check.sh",
    )

    result = theatre.result_of(case)

    assert isinstance(result, RESULTS[expect]), words_of(result)
    assert says in words_of(result)
    assert theatre.left_over() == []


def test_what_a_command_without_a_report_wrote_on_base_is_told(theatre: Theatre) -> None:
    base = {**BASE, "pytest.ini": "[pytest]\naddopts = --no-such-option\n"}
    change: dict[str, str | None] = {"app/calc.py": CODE + "\n\nNEW = 3\n"}

    result = theatre.result_of(Case(name="option", base=base, change=change))

    assert isinstance(result, Broken)
    assert "exited 4" in result.why
    assert "unrecognized arguments: --no-such-option" in result.why


@pytest.mark.parametrize(
    ("change", "expect"),
    [({"app/calc.py": CODE + "\n\nNEW = 4\n"}, Kept), ({"app/calc.py": WRONG_TOTAL}, Lost)],
)
def test_cases_whose_numbers_differ_from_run_to_run_are_the_same_cases(
    theatre: Theatre, change, expect
) -> None:
    """A set has no order, and pytest numbers the values that have no text of their own."""
    rows = ", ".join(f"('n{it}', [{it}, {it}], {2 * it})" for it in range(9))
    tests = (
        "import pytest\n\nfrom app.calc import add\n\n"
        f"ROWS = {{(name, tuple(pair), total) for name, pair, total in [{rows}]}}\n\n\n"
        '@pytest.mark.parametrize(("name", "pair", "total"), ROWS)\n'
        "def test_rows(name, pair, total):\n    assert add(*pair) == total\n"
    )
    base = {**BASE, "tests/test_rows.py": tests}

    result = theatre.result_of(Case(name="rows", base=base, change=change))

    assert isinstance(result, RESULTS[expect]), words_of(result)
    assert expect is Kept or "tests.test_rows::test_rows[n4-" in words_of(result)


def test_a_run_of_base_that_takes_too_long_says_nothing_about_the_change(theatre) -> None:
    base = {**ASKS, "check.sh": "sleep 60\n"}
    case = Case(name="slow", base=base, change={"app/calc.py": WRONG}, command="sh check.sh")

    result = theatre.result_of(case, timeout=1)

    assert isinstance(result, Broken)
    assert "ended after 1 seconds" in result.why


def test_a_change_that_takes_too_long_has_lost(theatre) -> None:
    change: dict[str, str | None] = {"app/calc.py": "import time\n\ntime.sleep(60)\n" + CODE}
    case = Case(name="slow", base=ASKS, change=change, command="sh check.sh")
    right = {"app/calc.py": CODE + "\n\nNEW = 2\n"}
    theatre.result_of(Case(name="known", base=ASKS, change=right, command="sh check.sh"))

    result = theatre.result_of(case, timeout=2, attempts=3)

    assert isinstance(result, Failed)
    assert "ended after 2 seconds" in words_of(result)


def test_a_suite_without_tests_on_either_side_is_no_pass(theatre) -> None:
    files = {"app.py": "X = 1\n"}

    result = theatre.result_of(Case(name="empty", base=files, change={"app.py": "X = 2\n"}))

    assert isinstance(result, Broken)
    assert "no test ran" in result.why


@pytest.mark.slow
def test_the_first_test_of_a_repository_passes_by_itself(theatre) -> None:
    test = "from app import X\n\n\ndef test_x():\n    assert X == 2\n"
    change: dict[str, str | None] = {"app.py": "X = 2\n", "test_app.py": test}

    result = theatre.result_of(Case(name="first", base={"app.py": "X = 1\n"}, change=change))

    assert isinstance(result, Passed), words_of(result)
    assert result.proof.tests_passed == ("test_app::test_x",)


def test_rules_that_a_change_brings_along_judge_nothing(theatre) -> None:
    """The settings are base's before the gate is asked; its files change nothing either."""
    config = '[gates]\nformula = "none"\n[tests]\npaths = ["nothing/**"]\n'
    change: dict[str, str | None] = {
        "app/calc.py": WRONG,
        ".lockgate/config.toml": config,
        "tests/test_calc.py": TESTS.replace("def test_add()", "def no_test_add()"),
    }

    result = theatre.result_of(Case(name="rules", base=BASE, change=change))

    assert isinstance(result, Waiting)
    assert "deleted: tests.test_calc::test_add" in result.prompt


@pytest.mark.parametrize("attempts", [pytest.param(1, marks=SLOW), 2])
def test_a_conftest_that_forges_results_is_not_given_a_second_chance(theatre, attempts) -> None:
    forging = (
        f"{CONFTEST}\n\n@pytest.hookimpl(wrapper=True)\n"
        "def pytest_runtest_makereport(item, call):\n"
        "    report = yield\n    report.outcome = 'passed'\n    return report\n"
    )
    change: dict[str, str | None] = {"app/calc.py": WRONG, "tests/conftest.py": forging}

    result = theatre.result_of(Case(name="forged", base=BASE, change=change), attempts=attempts)

    assert isinstance(result, Failed)
    assert "the run can be forged" in words_of(result)


@pytest.mark.slow
def test_a_loss_that_does_not_repeat_itself_passes_as_flaky(theatre) -> None:
    """Nothing is kept between two runs, so chance has to decide: about one in two tries."""
    unsteady = CODE.replace(
        "return a + b",
        "import os\n\n    return 9 if (a, b) == (4, 4) and os.urandom(1)[0] % 2 else a + b",
    )
    case = Case(name="unsteady", base=BASE, change={"app/calc.py": unsteady})

    result = theatre.result_of(case, attempts=20)

    assert isinstance(result, RESULTS[Kept]), words_of(result)


@pytest.mark.slow
def test_what_the_set_up_leaves_is_in_every_tree(theatre) -> None:
    env = EnvSettings(setup="mkdir -p built && echo 'THREE = 3' >built/made.py")
    tests = (
        TESTS.replace("== 3", "== THREE")
        .replace("import pytest\n", "import sys\n\nimport pytest\n\nsys.path.append('built')\n")
        .replace("from app.calc", "from made import THREE\n\nfrom app.calc")
    )
    change: dict[str, str | None] = {
        "app/calc.py": CODE + "\n\ndef mul(a, b):\n    return a * b\n",
        "tests/test_mul.py": MUL,
    }
    case = Case(name="set-up", base={**BASE, "tests/test_calc.py": tests}, change=change, env=env)

    result = theatre.result_of(case)

    assert isinstance(result, Passed), words_of(result)
    assert result.findings == ()
