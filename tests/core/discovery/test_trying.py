"""What follows from a run on base: repairs, tests left out, the file that is broken for a trial."""

import json
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.core.config.baseline import Baseline, Colour
from lockgate.core.config.settings import ServiceKind
from lockgate.core.discovery.faults import (
    WORD,
    choice,
    hurried,
    patience,
    planted,
    sources,
    to_break,
)
from lockgate.core.discovery.found import Needed, Package, Plan, Seen, Tree
from lockgate.core.discovery.repairs import (
    Ran,
    Tried,
    asked_for,
    doubtful,
    held,
    left_out,
    needs_network,
    next_try,
    repaired,
    told,
    why_left_out,
    without_idle,
    without_red,
)
from lockgate.core.model.findings import Finding, Priority
from lockgate.core.model.results import Outcome, TestResult

PYTEST = ".venv/bin/python -m pytest -q --junitxml=$OUT/junit.xml"
VENV = "python3 -m venv .venv && .venv/bin/pip install"
PYTHON = Package(
    language="python",
    setup=Seen(f"{VENV} -e .", "x"),
    adds_with=".venv/bin/pip install",
    test=Seen(f"{PYTEST} tests", "x"),
)
NODE = Package(language="node", setup=Seen("npm ci", "x"), test=Seen("npm run test", "x"))


def tree(files: dict[str, str], tools: tuple[str, ...] = ()) -> Tree:
    return Tree(paths=frozenset(files), texts=files, tools=frozenset(tools))


def red(said: str = "", *tests: str, passed: int = 10) -> Ran:
    """With these tests failing, and so many passing."""
    failing = [TestResult(id=it, outcome=Outcome.FAILED) for it in tests]
    fine = [TestResult(id=f"t::{n}", outcome=Outcome.PASSED) for n in range(passed)]
    return Ran(colour=Colour.RED, said=said, tests=(*failing, *fine) if tests else None)


def no_set_up(why: str) -> Ran:
    return Ran(colour=Colour.BROKEN, why=why, set_up_failed=True)


# --- repairs ------------------------------------------------------------------------------------

FILES = {
    "x/__init__.py": "",
    "src/own/__init__.py": "",
    "tox.ini": "[testenv]\ndeps = some-thing\n",
    "requirements-x.txt": "other\n",
}
# What it said → the packages that are added
MISSING = {
    "ModuleNotFoundError: No module named 'yaml'": ("PyYAML",),
    "No module named some_thing.inner": ("some-thing",),
    "No module named 'other'": ("other",),
    "No module named 'x.y'": None,
    "No module named 'who_knows'": None,
    "fixture 'mocker' not found": ("pytest-mock",),
    "fixture 'mine' not found": None,
    "fixture 'testdir' not found": None,
    "error: unrecognized arguments: --cov=x --timeout=3": ("pytest-cov", "pytest-timeout"),
    "async def functions are not natively supported": ("pytest-asyncio",),
    "Argument(s) {'path'} are declared in the hookimpl but can not be found in the hookspec": (
        "pytest<9",
    ),
    "assert 1 == 2": None,
}


@pytest.mark.parametrize("said", MISSING)
def test_what_is_missing_is_installed_where_its_name_is_known_or_the_project_s_own(said) -> None:
    found = repaired(PYTHON, red(said), tree(FILES))

    assert (found and found.adds) == MISSING[said]


def test_a_package_that_was_added_is_not_added_again() -> None:
    once = repaired(replace(PYTHON, setup=None), red("No module named 'yaml'"), tree(FILES))

    assert once is not None
    assert once.set_up == "python3 -m venv .venv && .venv/bin/pip install PyYAML"
    assert repaired(once, red("No module named 'yaml'"), tree(FILES)) is None


def test_a_module_of_the_project_below_src_is_shown_to_the_tests() -> None:
    found = repaired(PYTHON, red("No module named 'own'"), tree(FILES))

    assert found is not None
    assert found.test == Seen(f"PYTHONPATH=src {PYTEST} tests", "x")
    assert repaired(found, red("No module named 'own'"), tree(FILES)) is None


def test_a_report_that_unittest_cannot_give_is_done_without_and_then_pytest_is_tried() -> None:
    command = ".venv/bin/python -m xmlrunner discover -s tests -o $OUT"
    first = replace(PYTHON, test=Seen(command, "x"), adds=("unittest-xml-reporting",))

    second = repaired(first, red(), tree({}))
    third = second and repaired(second, red(), tree({}))

    assert second is not None
    assert (second.test, second.adds) == (
        Seen(".venv/bin/python -m unittest discover -s tests", "x"),
        (),
    )
    assert third is not None
    assert (third.test, third.adds) == (Seen(PYTEST, "x"), ("pytest",))


def test_what_has_no_known_repair_stays() -> None:
    assert repaired(Package(language="go"), red(), tree({})) is None
    assert repaired(replace(NODE, test=None), red(), tree({})) is None
    assert repaired(replace(PYTHON, test=None), red(), tree({})) is None


PROJECT = "[project]\ndependencies = ['a>1', 'b']\n"
# A set-up, what it said, programs → the next one
SET_UPS = [
    ("python", f"{VENV} -e '.[dev]' -r r.txt", "boom", (), f"{VENV} -e ."),
    ("python", f"{VENV} -e .", "boom", (), None),
    ("python", "uv sync", "boom", (), None),
    ("python", f"{VENV} -e .", "Multiple top-level packages discovered", (), f"{VENV} 'a>1' b"),
    (
        "python",
        f"{VENV} -e .",
        "requires a different Python: 3.11.7 not in '>=3.12'",
        ("python3.11", "python3.12", "python3.13"),
        "python3.13 -m venv .venv && .venv/bin/pip install -e .",
    ),
    ("python", f"{VENV} -e .", "requires Python >=3.14", ("python3.11",), None),
    ("node", "npm ci", "npm error code ERESOLVE", (), "npm ci --legacy-peer-deps"),
    ("node", "npm ci", "are not in sync", (), "npm install --no-package-lock"),
    ("node", "pnpm install --frozen-lockfile", "ERR_PNPM_OUTDATED_LOCKFILE", (), "pnpm install"),
    (
        "node",
        "pnpm install --frozen-lockfile",
        "✓ Lockfile passes supply-chain policies\nERR_PNPM_IGNORED_BUILDS  Ignored build scripts",
        (),
        "pnpm install --frozen-lockfile --ignore-scripts",
    ),
    (
        "node",
        "npx --yes pnpm@11.14.0 install",
        "Error: ERR_UNKNOWN_BUILTIN_MODULE",
        (),
        "npm_config_manage_package_manager_versions=false npx --yes pnpm@10 install",
    ),
    ("node", "npm install", "postinstall failed", (), "npm install --ignore-scripts"),
    (
        "node",
        "YARN_NODE_LINKER=x yarn install",
        "failed",
        (),
        "YARN_NODE_LINKER=x yarn install --mode=skip-build",
    ),
    ("node", "npm install --ignore-scripts", "failed", (), None),
    ("go", "go mod download", "failed", (), None),
]


@pytest.mark.parametrize(("language", "setup", "why", "tools", "then"), SET_UPS)
def test_a_set_up_that_fails_is_tried_in_another_way(language, setup, why, tools, then) -> None:
    package = Package(language=language, setup=Seen(setup, "x"))

    found = repaired(package, no_set_up(why), tree({"pyproject.toml": PROJECT}, tools))

    assert (found and found.setup and found.setup.command) == then


def test_where_poetry_fails_pip_installs_what_its_groups_name() -> None:
    project = (
        "[tool.poetry.dev-dependencies]\npytest = '^7.2'\nblack = '*'\nmypy = '~1.3.1'\n"
        "[tool.poetry.group.dev.dependencies]\nzero = '^0.0.3'\nx = {version = '>=2,<3'}\n"
        "pytest = '^7.2'\none = '~1'\ngit = {git = 'y'}\nor = '>1 || <2'\nzeros = '^0.0'\n"
    )
    package = Package(language="python", setup=Seen(f"{VENV} -q poetry && poetry install", "x"))

    found = repaired(package, no_set_up("boom"), tree({"pyproject.toml": project}))

    assert found is not None
    assert found.setup == Seen(
        f"{VENV} -e . 'pytest>=7.2,<8' black 'mypy>=1.3.1,<1.4' 'zero>=0.0.3,<0.0.4' 'x>=2,<3'"
        " 'one>=1,<2' git or 'zeros>=0.0,<0.1'",
        "x",
    )


def test_without_a_set_up_there_is_nothing_to_repair() -> None:
    assert repaired(Package(), no_set_up("boom"), tree({})) is None


def scripts(**keys: str) -> Tree:
    return tree({"package.json": json.dumps({"scripts": keys})})


def test_a_build_that_tests_count_on_is_made_before_them_and_not_in_the_set_up() -> None:
    here = scripts(test="x", build="tsc")

    found = repaired(NODE, red("Error: Cannot find module '../dist'"), here)

    assert found is not None
    assert found.test == Seen("npm run build && npm run test", "x")
    assert repaired(found, red("Cannot find module"), here) is None
    odd = replace(NODE, test=Seen("npx jest", "x"))
    again = repaired(odd, red("Cannot find module"), here)
    assert again is not None
    assert again.test == Seen("npm run build && npx jest", "x")


# The scripts → the runner alone
ALONE = [
    ({"test": "xo && ava && tsd"}, "npx --no-install ava"),
    ({"test": "npm run lint && npm run unit", "lint": "x", "unit": "tape 'a b'"}, "npm run unit"),
    ({"test": "npm-run-all lint test:*", "lint": "x", "test:a": "uvu"}, "npm run test:a"),
    ({"test": "pnpm run /^test:/", "test:a": "A=b node --test"}, "npm run test:a"),
    ({"test": "x && node --test a 'b c'"}, "node --test a 'b c'"),
    ({"test": "npm run test"}, None),
    ({"test": "gulp"}, None),
    ({"other": "ava"}, None),
]


@pytest.mark.parametrize(("keys", "then"), ALONE, ids=range(len(ALONE)))
def test_of_a_script_that_also_lints_the_tests_alone_are_tried(keys, then) -> None:
    found = repaired(NODE, red("lint failed"), scripts(**keys))

    command = found.test.command if found and found.test else None
    assert (command and command.split(" -- ")[0].split(" --test-reporter")[0]) == then


def test_several_runners_are_all_tried_each_with_its_own_report() -> None:
    keys = {"test": "pnpm run test:a && pnpm run test:b", "test:a": "jest", "test:b": "jest -e b"}

    found = repaired(NODE, red("pnpm: not found"), scripts(**keys))

    assert found is not None
    assert found.test is not None
    assert found.test.command == " && ".join(
        f"JEST_JUNIT_OUTPUT_DIR=$OUT JEST_JUNIT_OUTPUT_NAME=junit-{n}.xml npm run test:{name} --"
        " --reporters=default --reporters=jest-junit"
        for n, name in ((1, "a"), (2, "b"))
    )
    assert found.adds == ("jest-junit",)


def test_jest_gets_what_its_report_needs_and_loses_a_report_that_it_does_not_know() -> None:
    found = repaired(NODE, red("x"), scripts(test="eslint . && jest"))

    assert found is not None
    assert found.test is not None
    assert found.test.command == (
        "JEST_JUNIT_OUTPUT_DIR=$OUT npx --no-install jest"
        " --reporters=default --reporters=jest-junit"
    )
    assert found.adds == ("jest-junit",)
    plain = repaired(found, red("Could not resolve jest-junit"), scripts(test="gulp"))
    assert plain is not None
    assert plain.test is not None
    assert plain.test.command == "npx --no-install jest"
    assert repaired(found, red("assert 1"), tree({})) is None
    assert repaired(found, red("x"), scripts(test="eslint . && jest")) is None


# --- tests that are red on base -----------------------------------------------------------------

TESTS = tree({"tests/test_a.py": "", "sub/b.py": ""})
LEFT_OUT = [
    (("tests.test_a::test_x",), "--deselect=tests/test_a.py::test_x"),
    (("tests.test_a.TestA::test_x[1-2]",), "--deselect='tests/test_a.py::TestA::test_x[1-2]'"),
    (("tests.test_a::test_x[a b]",), "--deselect=tests/test_a.py::test_x"),
    (("tests.test_a",), "--ignore=tests/test_a.py"),
    (("tests.test_a::a", "nowhere::b"), None),
    (("tests.test_a::a",) * 30, None),
]


@pytest.mark.parametrize(("ids", "more"), LEFT_OUT, ids=range(len(LEFT_OUT)))
def test_tests_that_fail_on_base_are_left_out_by_name(ids, more) -> None:
    found = without_red(PYTHON, red("", *ids), TESTS)

    assert (found and found.test and found.test.command) == (more and f"{PYTEST} {more} tests")
    assert found is None or found.red == ids


def test_what_is_left_out_already_or_cannot_be_is_not_tried_again() -> None:
    once = without_red(PYTHON, red("", "tests.test_a::a"), TESTS)

    assert once is not None
    assert without_red(once, red("", "tests.test_a::a"), TESTS) is None
    assert without_red(PYTHON, red(""), TESTS) is None
    assert without_red(replace(PYTHON, test=None), red("", "tests.test_a::a"), TESTS) is None
    assert without_red(NODE, red("", "a::b"), TESTS) is None


def test_go_skips_tests_by_their_names() -> None:
    go = Package(language="go", test=Seen("go test -json ./...", "go.mod"))

    found = without_red(go, red("", "x/y::TestA/sub", "x/y::TestB"), tree({}))

    assert found is not None
    assert found.test is not None
    assert found.test.command == "go test -json ./... -skip '^(TestA|TestB)$'"
    assert without_red(go, red("", "x::Test é"), tree({})) is None


# --- the fault ----------------------------------------------------------------------------------


def test_what_a_test_is_named_after_is_broken_first_and_never_a_test_itself() -> None:
    paths = frozenset(
        {
            "pkg/__init__.py",
            "pkg/deep/thing.py",
            "pkg/core.py",
            "tests/test_thing.py",
            "tests/helpers.py",
            "setup.py",
            "conftest.py",
            "docs/conf.py",
            "pkg/a.js",
            "other/main.py",
        }
    )

    found = sources(Package(language="python"), paths)

    assert found[:2] == ("pkg/deep/thing.py", "other/main.py")
    assert {*found} == {"pkg/deep/thing.py", "other/main.py", "pkg/core.py", "pkg/__init__.py"}
    assert sources(Package(language="python", path="other"), paths) == ("other/main.py",)
    assert "pkg/a.js" in sources(Package(language="make"), paths)
    assert choice(Package(language="node"), Tree(paths=paths)) == ("pkg/a.js",)


SOURCES = {
    "a.py": (
        (
            '"""Doc."""\nfrom __future__ import annotations\n\n\nclass A:\n    @property\n'
            '    def a(self):\n        """Doc."""\n        return 1\n\n'
            "    def b(self): return 2\n\n"
            "    def c(self):\n        ...\n\n\nasync def d():\n"
            "    @e\n    def f():\n        pass\n"
            "    return f\n"
        ),
        2,
    ),
    "bad.py": ("def (", 0),
    "a.ts": (
        (
            "export function a(b: string): void {\n  if (b) {\n  }\n}\nclass B {\n"
            "  async run(x) {\n  }\n}\nconst c = (d) => {\n}\n"
        ),
        3,
    ),
    "a.go": ("package a\nfunc A() int {\n\treturn 1\n}\n", 1),
    "a.rs": ("pub fn a() -> u8 {\n    1\n}\n#[cfg(test)]\nmod t {\n    fn b() {\n    }\n}\n", 1),
    "a.c": ("int a() {\n}\n", 0),
}


@pytest.mark.parametrize("name", SOURCES)
def test_every_function_of_the_file_fails_once_it_is_broken(tmp_path: Path, name) -> None:
    text, functions = SOURCES[name]
    (tmp_path / name).write_text(text, encoding="utf-8")

    subprocess.run(["sh", "-c", planted(name, text)], cwd=tmp_path, check=True)

    after = (tmp_path / name).read_text(encoding="utf-8")
    assert after.count(WORD) == max(functions, 1)
    if name == "a.py":
        compile(after, name, "exec")


def test_files_with_functions_are_broken_before_others_and_empty_ones_never() -> None:
    function, constant = SOURCES["a.go"][0], "A = 1\n"

    assert to_break({"a.py": "", "b.py": constant, "c.go": function}) == (("c.go", function),)
    assert to_break({"a.py": " ", "b.py": constant}) == (("b.py", constant),)


def test_a_run_with_a_fault_ends_at_the_first_failure() -> None:
    assert hurried(f"{PYTEST} tests") == f"{PYTEST} -x tests"
    assert hurried("make test") == "make test"


# --- what is told -------------------------------------------------------------------------------


def test_a_run_that_took_too_long_is_not_tried_again() -> None:
    late = replace(red("No module named 'yaml'", "tests.test_a::a"), late=True)

    assert next_try(PYTHON, late, TESTS) is None
    assert next_try(PYTHON, replace(late, late=False), TESTS) is not None
    assert next_try(PYTHON, red("", "tests.test_a::a"), TESTS) is not None
    endless = no_set_up("the set-up did not finish: `npm ci` did not end within 1800 s")
    assert next_try(NODE, endless, TESTS) is None
    assert next_try(NODE, no_set_up("the set-up did not finish: boom"), TESTS) is not None


def test_what_is_left_out_is_noted_and_so_are_tests_that_fail_on_base() -> None:
    both = replace(PYTHON, typecheck=Seen("mypy", "x"), red=("a", "b"))

    tests, types = left_out(both, "tests", "boom"), left_out(both, "typecheck", "boom")

    assert (tests.test, types.typecheck) == (None, None)
    assert types.notes == ("Left out: typecheck, `mypy`: boom",)
    [note] = held(both, red("", "c", passed=9), "trunk").notes
    assert note == "2 of 12 tests fail on trunk already; changes are held to the other 10."
    assert held(PYTHON, red(), "trunk") == PYTHON
    assert left_out(Package(), "tests", "boom").notes == ("Left out: tests, ``: boom",)


@pytest.mark.parametrize(
    ("why", "said", "told"),
    [
        ("the set-up\ndid not finish", "boom", "the set-up did not finish"),
        ("", "exited 1:\nurn call()\n  ^^^^\nPluginError: no hook\n", "PluginError: no hook"),
        ("", "", "it fails on base"),
    ],
)
def test_what_is_left_out_is_noted_with_the_error_it_ended_with(why, said, told) -> None:
    findings = (Finding(Priority.P1_MAJOR, said),) if said else ()
    base = Baseline(
        name="tests",
        command="x",
        colour=Colour.RED,
        runs=1,
        passed=0,
        seconds=1.0,
        slow=False,
        why=why,
        findings=findings,
    )

    assert why_left_out(Tried(baseline=base)) == told


def test_a_red_package_of_several_is_not_set_up() -> None:
    idle = replace(PYTHON, test=None, inputs=("a",))

    assert without_idle((idle,)) == (idle,)
    assert [it.set_up for it in without_idle((PYTHON, idle))] == [PYTHON.set_up, ""]


def test_a_need_of_the_network_is_seen_in_the_output_and_in_a_test_s_message() -> None:
    said = "socket.gaierror: Temporary failure in name resolution"
    failing = TestResult(id="a", outcome=Outcome.FAILED, message=said)

    assert needs_network(red(said))
    assert needs_network(Ran(colour=Colour.RED, tests=(failing,)))
    assert not needs_network(red("assert 1"))


def test_commands_that_a_human_named_are_for_the_top() -> None:
    plan = Plan((replace(PYTHON, path="a"), NODE))

    assert asked_for(plan, "", "") is plan
    assert asked_for(plan, "make t", "").packages == (
        Package(test=Seen("make t", "--test-command")),
    )
    [setup] = asked_for(Plan((PYTHON,)), "", "make s").packages
    assert (setup.set_up, setup.test) == ("make s", PYTHON.test)
    [both] = asked_for(Plan((replace(PYTHON, adds=("x",)),)), "make t", "make s").packages
    assert (both.set_up, both.test) == ("make s", Seen("make t", "--test-command"))


def test_where_no_test_is_known_what_ci_says_is_to_choose_from() -> None:
    other = Seen("mvn test", "ci.yml")

    assert doubtful(Plan((PYTHON,))) is None
    assert doubtful(Plan((Package(others=(other,)),))) == (other,)


def test_what_was_found_is_told_with_its_file() -> None:
    found = told(Plan((replace(PYTHON, path="a"), Package(adds=("x",), adds_with="add"))))

    assert found["a: setup"] == f"{VENV} -e . (found in x)"
    assert found["a: typecheck"] == "not found"
    assert found["setup"] == "add x (found in what is missing)"


def test_a_service_that_is_proposed_is_told_with_its_file() -> None:
    here = Needed(ServiceKind.POSTGRES, "ci.yml")
    absent = Needed(ServiceKind.REDIS, "compose.yml", installed=False)

    found = told(Plan((Package(),), (here, absent)))

    assert found["service postgres"] == "one for each session and gate (found in ci.yml)"
    assert found["service redis"].endswith("(found in compose.yml, not installed here)")


def test_only_what_was_seen_to_pass_and_to_fail_is_ready() -> None:
    green = Baseline(
        name="tests",
        command="x",
        colour=Colour.GREEN,
        runs=1,
        passed=1,
        seconds=1.0,
        slow=False,
    )

    assert Tried(baseline=green, noticed=True).ready
    assert not Tried(baseline=green).ready
    assert not Tried(baseline=replace(green, colour=Colour.RED), noticed=True).ready


def test_a_command_gets_five_times_as_long_with_a_file_broken_and_a_minute_at_least() -> None:
    assert (patience(1.0), patience(100.0)) == (60, 500)
