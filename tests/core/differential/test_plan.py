"""Which files come from which side, what need not run, and where the canaries go."""

import ast
import re

import pytest

from lockgate.core.differential import plan as planning
from lockgate.core.differential.canaries import (
    CanaryFile,
    Lots,
    canary_file,
    hosted,
    lots,
    may_host,
    with_canaries,
)
from lockgate.core.differential.plan import (
    Plan,
    Sides,
    TestRules,
    expecting,
    how_to_see,
    opened,
    opened_in,
    plan,
    planted,
    watched,
    with_hosts,
)
from lockgate.core.differential.runs import NotRun, Run
from lockgate.core.differential.table import ChangedFiles, SourceTest
from lockgate.core.differential.test_files import Runner, files_of_tests, harness_files, runner_of
from lockgate.core.model.gates import Report
from lockgate.core.model.results import Outcome, ReportRead, TestResult, Unreadable

BASE = {
    "app.py": "1",
    "tests/conftest.py": "1",
    "tests/test_a.py": "1",
    "tests/test_old.py": "1",
    "pyproject.toml": "1",
    ".github/ci.yml": "1",
}
CANDIDATE = {
    "app.py": "2",
    "tests/conftest.py": "2",
    "tests/test_a.py": "1",
    "tests/test_new.py": "1",
    "pyproject.toml": "2",
    ".github/ci.yml": "2",
    "sitecustomize.py": "1",
}


def planned(base=None, candidate=None, command="pytest -q", protected=(), harness=()) -> Plan:
    sides = Sides(
        base=BASE if base is None else base,
        candidate=CANDIDATE if candidate is None else candidate,
        harness=frozenset(harness),
    )
    return plan(sides, TestRules(command=command, protected=protected), "n0nce")


def test_base_tests_harness_and_protected_files_go_over_the_changes_code() -> None:
    found = planned(protected=(".github/**",)).base_on_candidate

    assert found.take == (".github/ci.yml", "tests/conftest.py", "tests/test_old.py")
    assert found.drop == ("sitecustomize.py", "tests/test_new.py")
    assert not found.same


def test_the_changes_tests_and_harness_go_over_bases_code_and_protected_files_stay() -> None:
    found = planned(protected=(".github/**",)).candidate_on_base

    assert found.take == ("sitecustomize.py", "tests/conftest.py", "tests/test_new.py")
    assert found.drop == ("tests/test_old.py",)


def test_a_mixed_file_is_taken_only_if_its_part_about_tests_changed() -> None:
    assert "pyproject.toml" not in planned().base_on_candidate.take
    assert "pyproject.toml" in planned(harness=["pyproject.toml"]).base_on_candidate.take


def test_where_only_code_changed_the_mixed_trees_are_the_sides_themselves() -> None:
    found = planned(candidate={**BASE, "app.py": "2"})

    assert found.base_on_candidate.same
    assert found.candidate_on_base.same


def test_the_canary_goes_where_most_tests_are() -> None:
    found = planned({"x/test_a.py": "1", "y/test_b.py": "1", "y/test_c.py": "1"})

    assert [it.path.rpartition("/")[0] for it in planted(found, {}, "run")] == ["y"]
    assert dict(found.environment) == {
        "PYTEST_ADDOPTS": "--continue-on-collection-errors --junitxml=$OUT/pytest.xml",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def test_a_repository_without_tests_gets_its_canary_beside_the_changes() -> None:
    first = planned({}, {"tests/test_new.py": "1"})
    none = planned({}, {"app.py": "1"}, command="make")
    odd = planned({}, {"app.py": "1"}, command="pytest")

    assert planted(first, {}, "run")[0].path.startswith("tests/")
    assert none.environment == ()
    assert planted(odd, {}, "run") == ()
    assert planted(none, {}, "run") == ()


def test_a_script_gets_canaries_in_each_of_its_test_files_that_a_tree_has() -> None:
    found = planned({"a.test.js": "1", "b.test.js": "1"}, command="npx jest")

    files = planted(found, {"b.test.js": "it('x', () => {});"}, "run")

    assert found.appended == ("a.test.js", "b.test.js")
    assert [it.path for it in files[1:]] == ["b.test.js"]
    assert files[1].text.startswith("it('x', () => {});\n")
    words = [set(it.canaries.must_fail) for it in files]
    assert not words[0] & words[1]


TEXTS = {
    "tests/test_a.py": "import pytest\n\n\ndef test_sum_of_rows():\n    assert 1\n",
    "tests/test_b.py": (
        "import unittest\n\n\nclass Sums(unittest.TestCase):\n    def test_zero(self):\n"
        "        pass\n\n\nif __name__ == '__main__':\n    unittest.main()\n"
    ),
    "tests/test_odd.py": "import pytest\n\npytestmark = pytest.mark.xfail\n",
    "calc_test.go": 'package calc\n\nimport "testing"\n\nfunc TestSum(t *testing.T) {}\n',
    "odd_test.go": '//go:build linux\n\npackage calc\n\nimport "testing"\n',
}


def words_of(file: CanaryFile) -> tuple[str, ...]:
    return (*file.canaries.must_fail, *file.canaries.must_pass)


@pytest.mark.parametrize("runner", Runner)
@pytest.mark.parametrize("seed", "abc")
def test_every_canary_is_named_by_words_that_stand_in_no_other(runner, seed) -> None:
    file = canary_file(runner, "here", lots(seed, TEXTS.values()), "calc")

    words = words_of(file)
    assert all(file.text.count(word) == 1 for word in words)
    assert not [(a, b) for a in words for b in words if a != b and a in b]
    assert not re.search("NAME|BODY|ONE|TWO|BOTH|WRONG|TEST|EXPECT|CLASS|PACKAGE", file.text)
    assert file.path.startswith("here/")
    if file.path.endswith(".py"):
        ast.parse(file.text)
    if runner is Runner.GO:
        assert file.text.startswith("package calc\n")


@pytest.mark.parametrize("runner", Runner)
def test_names_values_and_order_of_canaries_are_other_ones_in_each_run(runner) -> None:
    one, other = (canary_file(runner, "", lots(seed, ())) for seed in "ab")
    same = canary_file(runner, "", lots("a", ()))

    assert one == same
    assert not {*words_of(one)} & {*words_of(other)}
    assert one.path != other.path
    assert one.text != other.text


def test_no_name_is_drawn_twice_or_stands_in_a_text() -> None:
    drawn = Lots("a", ("x", "y"), "x_x_x_x")

    names = {drawn.name("_") for _ in range(12)}

    assert len(names) == 12
    assert "x_x_x_x" not in names


def test_canaries_are_made_of_the_words_of_the_projects_own_tests() -> None:
    texts = ("def test_apples_pears(): ...", "func TestPlums(t) {}", 'it("bakes cakes", f)')

    assert {"apples", "pears", "plums", "bakes", "cakes"} <= {*lots("a", texts).words}


@pytest.mark.parametrize("runner", [Runner.PYTEST, Runner.UNITTEST, Runner.GO])
def test_canaries_stand_in_the_projects_own_files_behind_what_is_there(runner) -> None:
    hosts = {it: text for it, text in TEXTS.items() if may_host(it, text)}
    mine = {it: text for it, text in hosts.items() if it.endswith(".go") is (runner is Runner.GO)}

    for seed in "abcdef":
        for file in hosted(runner, mine, lots(seed, TEXTS.values())):
            begin = TEXTS[file.path].partition("\n\n\nif __name__")[0].rstrip("\n")
            assert file.text.startswith(begin), "no line of theirs moves"
            assert {*file.canaries.hosted} == {*words_of(file)}
            assert file.text.count("import unittest\n") <= 1
            assert file.text.count("import pytest\n") <= 1
            assert file.text.count("import") == 1 or not file.path.endswith(".go")
            if file.path.endswith(".py"):
                ast.parse(file.text)
            if file.path == "tests/test_b.py":
                assert file.text.endswith("if __name__ == '__main__':\n    unittest.main()\n")
    assert hosted(runner, {}, lots("a", ())) == ()
    assert not may_host("tests/test_odd.py", TEXTS["tests/test_odd.py"])
    assert not may_host("odd_test.go", TEXTS["odd_test.go"])
    assert not may_host("x.test.js", "")


def test_a_file_hosts_canaries_if_its_own_tests_passed_on_base() -> None:
    found = planned(dict.fromkeys(TEXTS, "1"))
    tests = tuple(
        SourceTest(file=f"tests/{file}.py", line=1, names=(name,), body="")
        for file, name in (("test_a", "test_sum_of_rows"), ("test_b", "test_zero"))
    )

    hosts = with_hosts(found, ("tests.test_a::test_sum_of_rows",), tests, TEXTS)
    files = planted(hosts, {"tests/test_a.py": TEXTS["tests/test_a.py"]}, "run")

    assert hosts.hosts == ("tests/test_a.py",)
    assert [it.path for it in files[1:]] == ["tests/test_a.py"]
    assert len(files[1].canaries.must_fail) == 11
    scripts = planned({"a.test.js": "1"}, command="npx jest")
    assert with_hosts(scripts, (), (), {}) is scripts, "each of theirs has canaries anyway"


def test_a_file_that_requires_its_modules_gets_canaries_that_do_so_too() -> None:
    drawn = lots("n", ())
    required = with_canaries(Runner.NODE, "a.test.js", 'const t = require("node:test");', drawn)
    imported = with_canaries(Runner.NODE, "a.test.mjs", 'import t from "node:test";', drawn)

    assert "import " not in required.text
    assert "require(" not in imported.text


def test_what_canaries_import_has_a_name_that_the_file_does_not_have() -> None:
    own = "import check from 'x'; // claim expected proof proved scenario sure verify\n"
    free = own.replace("verify", "")

    assert " as verify" in with_canaries(Runner.VITEST, "a.test.js", free, lots("n", ())).text
    assert with_canaries(Runner.VITEST, "a.test.js", own, lots("n", ())).canaries.must_fail


@pytest.mark.parametrize(
    ("command", "files", "runner"),
    [
        ("pytest -q", [], Runner.PYTEST),
        ("python -m unittest", [], Runner.UNITTEST),
        ("go test ./...", [], Runner.GO),
        ("npx vitest run", [], Runner.VITEST),
        ("npx jest", [], Runner.JEST),
        ("node --import x --test", [], Runner.NODE),
        ("make check", ["tests/test_a.py"], Runner.PYTEST),
        ("make check", ["a/a_test.go"], Runner.GO),
        ("npm test", ["a.test.js"], None),
    ],
)
def test_a_runner_is_known_by_the_command_or_by_the_tests(command, files, runner) -> None:
    assert runner_of(command, files) is runner


@pytest.mark.parametrize(
    ("path", "is_test"),
    [
        ("tests/data/x.json", True),
        ("pkg/tests/test_a.py", True),
        ("pkg/test_a.py", True),
        ("a_test.py", True),
        ("src/__tests__/a.ts", True),
        ("src/a.test.tsx", True),
        ("a.spec.mjs", True),
        ("calc/a_test.go", True),
        ("calc/testdata/a", True),
        ("app/testing.py", False),
        ("src/latest.js", False),
        ("contest.py", False),
    ],
)
def test_tests_are_known_by_their_paths(path, is_test) -> None:
    assert (files_of_tests([path], ()) == (path,)) == is_test
    assert files_of_tests([path], ("other/**",)) == ()


def test_files_that_the_command_names_are_harness_too() -> None:
    paths = ["scripts/test.sh", "scripts/build.sh", "conftest.py", "pytest.py", "bin/python3"]

    assert harness_files(paths, "sh ./scripts/test.sh") == (
        "scripts/test.sh",
        "conftest.py",
        "pytest.py",
        "bin/python3",
    )
    assert harness_files(["a b"], "sh 'a b") == ()


def test_a_plan_of_two_sides_has_a_canary_that_is_named_by_the_token() -> None:
    sides = Sides(base=BASE, candidate=CANDIDATE)
    rules = TestRules(command="pytest -q")

    made = planning.planned(sides, rules, {}, "A-Random/Token")

    assert made == plan(sides, rules, "arandomtoken")


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("pytest --junitxml=$OUT/x.xml", {"PYTEST_ADDOPTS", "PYTHONDONTWRITEBYTECODE"}),
        ("python -m unittest", {"PYTHONDONTWRITEBYTECODE"}),
        ("go test -json ./...", set()),
    ],
)
def test_a_runner_is_told_what_it_needs_to_be_compared(command, told) -> None:
    found = dict(planned({"tests/test_a.py": "1"}, command=command).environment)

    assert set(found) == told
    assert "junitxml" not in found.get("PYTEST_ADDOPTS", "")


# --- files that base's tests open ---------------------------------------------------------------


def test_what_was_noted_about_files_is_no_test() -> None:
    tests = (
        TestResult(id="tests.a::test_a", outcome=Outcome.PASSED),
        TestResult(id="wn0nce::golden/a.txt", outcome=Outcome.PASSED),
    )
    read = ReportRead(format=Report.JUNIT, tests=tests)
    nothing = ReportRead(format=Report.JUNIT)

    assert watched(read, "wn0nce") == ReportRead(format=Report.JUNIT, tests=tests[:1])
    assert opened(read, "wn0nce") == ("golden/a.txt",)
    assert watched(nothing, "wn0nce") is nothing
    assert opened(nothing, "wn0nce") == ()
    assert opened(Unreadable("x"), "wn0nce") == ()
    assert isinstance(watched(Unreadable("x"), "wn0nce"), Unreadable)


def test_a_run_that_did_not_happen_opened_nothing() -> None:
    assert opened_in(NotRun("no room")) == ()
    assert opened_in(Run(exit_code=0, tests=(), opened=("a",))) == ("a",)


def test_a_file_that_bases_tests_open_belongs_to_the_tests_if_the_change_edits_it() -> None:
    base = {"gold.txt": "1", "page.md": "1", "pyproject.toml": "1", "same.txt": "1", "t.py": "1"}
    sides = Sides(base=base, candidate={"same.txt": "1", "page.md": "2"})
    changed = ChangedFiles(
        code=("app.py", "gold.txt", "pyproject.toml", "new.txt"), tests=("t.py",)
    )

    seen = ("gold.txt", "page.md", "pyproject.toml", "new.txt", "same.txt", "t.py")

    assert expecting(sides, changed, seen) == ChangedFiles(
        code=("app.py", "pyproject.toml", "new.txt"), tests=("t.py", "gold.txt", "page.md")
    )
    assert expecting(sides, changed, ("pyproject.toml",)) is None


def test_such_a_file_is_bases_where_bases_tests_run() -> None:
    sides = Sides(
        base={"gold.txt": "1", "tests/test_a.py": "1"},
        candidate={"gold.txt": "2", "tests/test_a.py": "1"},
        expected=frozenset({"gold.txt"}),
    )

    assert plan(sides, TestRules(command="pytest"), "n").base_on_candidate.take == ("gold.txt",)


def test_a_shells_line_shows_bases_tests_on_the_change() -> None:
    line = how_to_see(planned(), "b" * 40, "c" * 40, "pytest -q 'a b'\n")
    plain = how_to_see(planned(BASE, BASE), "b" * 40, "c" * 40, "pytest")

    assert f"git checkout -q {'b' * 12} -- tests/conftest.py tests/test_old.py" in line
    assert "git rm -q -- sitecustomize.py tests/test_new.py" in line
    assert line.endswith("""sh -c 'pytest -q '"'"'a b'"'"''""")
    assert "checkout" not in plain
    assert "git rm" not in plain
