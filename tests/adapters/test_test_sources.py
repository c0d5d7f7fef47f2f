"""Test files are read as text: their tests, and what a change did to the way they are run."""

import re
import sys
import time
from types import FrameType

import pytest

from lockgate.adapters.test_sources import FileTestSources, changed_files, source_tests
from lockgate.core.differential.table import ChangedFiles, Weight
from lockgate.core.differential.test_files import Runner

PYTHON = '''\
"""Tests."""
import unittest
import pytest

def test_plain():
    """Says something."""
    # and comments
    assert f(1) == 2

async def test_waits():
    assert await f()

def helper():
    assert f()

def test_by_helper():
    helper()

if True:
    def test_under_condition():
        assert f()
try:
    import x
except ImportError:
    def test_without_x():
        assert f()
else:
    def test_with_x():
        assert f()

@pytest.mark.parametrize("a", [1, 2])
def test_cases(a):
    assert f(a)

class TestGroup:
    def test_inside(self):
        assert f()

    class TestInner:
        def test_deep(self):
            assert f()

    def not_a_test(self):
        assert f()

class Cases(unittest.TestCase):
    def test_case(self):
        self.assertEqual(f(), 1)

class More(Cases):
    def test_more(self):
        self.assertTrue(f())

class Unrelated(Somewhere[int]):
    def test_no(self):
        assert f()
'''


def names(files: dict[str, str]) -> set[str]:
    return {"::".join(it.names) for it in source_tests(files)}


def checks(body: str, before: str = "") -> int:
    text = f"{before}\ndef test_it():\n" + "".join(f"    {line}\n" for line in body.splitlines())
    (found,) = source_tests({"tests/test_a.py": text})
    return found.checks


def body(text: str, path: str = "tests/test_a.py") -> str:
    (found,) = source_tests({path: text})
    return found.body


# --- Python -------------------------------------------------------------------------------------


def test_python_tests_are_functions_and_methods_also_inherited_and_under_conditions() -> None:
    assert names({"tests/test_a.py": PYTHON}) == {
        "test_plain",
        "test_waits",
        "test_by_helper",
        "test_under_condition",
        "test_without_x",
        "test_with_x",
        "test_cases",
        "TestGroup::test_inside",
        "TestGroup::TestInner::test_deep",
        "Cases::test_case",
        "More::test_case",
        "More::test_more",
    }


def test_a_test_knows_its_place() -> None:
    found = {it.names: it for it in source_tests({"tests/test_a.py": PYTHON})}

    assert found["test_plain",].line == 5
    assert found["test_plain",].id == "tests/test_a.py::test_plain"


@pytest.mark.parametrize(
    "other",
    [
        "def test_b():\n    assert f(1) == 2\n",
        'def test_a():\n    """Words."""\n    assert f(1) == 2\n',
        "def test_a():\n    # words\n    assert (\n        f( 1 )\n        == 2\n    )\n",
    ],
)
def test_names_comments_and_layout_are_no_part_of_a_body(other) -> None:
    assert body(other) == body("def test_a():\n    assert f(1) == 2\n")


@pytest.mark.parametrize(
    "other",
    [
        "def test_a():\n    assert f(1) == 3\n",
        "@skip\ndef test_a():\n    assert f(1) == 2\n",
        "def test_a(x):\n    assert f(1) == 2\n",
        "async def test_a():\n    assert f(1) == 2\n",
    ],
)
def test_expectations_decorators_and_arguments_are_part_of_a_body(other) -> None:
    assert body(other) != body("def test_a():\n    assert f(1) == 2\n")


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        ("assert f() == 1", 1),
        ("assert f()\nassert g()", 2),
        ("with pytest.raises(ValueError):\n    f()", 1),
        ("self.assertEqual(f(), 1)", 1),
        ("self.fail()", 1),
        ("verify(f())", 1),
        ("known(f())", 1),
        ("if f():\n    assert g()", 1),
        ("try:\n    assert f()\nfinally:\n    g()", 1),
        ("try:\n    assert f()\nexcept KeyError:\n    pass", 1),
        ("try:\n    f()\nexcept Exception:\n    raise", 0),
        ("with suppress(KeyError):\n    assert f()", 1),
        ("while True:\n    assert f()", 1),
        ("pass", 0),
        ("f()", 0),
        ("(lambda: 1)()", 0),
        ("assert True", 0),
        ("assert 1 == 1", 0),
        ("assert x == x", 0),
        ("assert not False", 0),
        ("assert (f(), 'words')", 0),
        ("assert f() or True", 0),
        ("assert f() or g()", 1),
        ("assert f() and g()", 1),
        ("self.assertTrue(True)", 0),
        ("return\nassert f()", 0),
        ("if False:\n    assert f()", 0),
        ("if True:\n    g()\nelse:\n    assert f()", 0),
        ("try:\n    assert f()\nexcept AssertionError:\n    pass", 0),
        ("try:\n    assert f()\nexcept (KeyError, Exception):\n    pass", 0),
        ("try:\n    assert f()\nexcept:\n    pass", 0),
        ("with contextlib.suppress(AssertionError):\n    assert f()", 0),
        ("with open(x) as file:\n    pass", 0),
    ],
)
def test_only_what_can_fail_counts_as_a_check(lines, count) -> None:
    assert checks(lines, "def known(x):\n    assert x\n") == count


def test_of_two_tests_with_one_name_the_last_counts() -> None:
    text = "def test_a():\n    assert f()\n\ndef test_a():\n    pass\n"

    assert body(text) == "def ()\npass"


# --- scripts ------------------------------------------------------------------------------------

SCRIPT = """\
import { add } from "./calc";
// it("commented out", () => {});
/* test("this too", () => {}); */
const text = "it('quoted', () => {})";
const template = `test("in a template ${`inner ${1 + 1} it("x")`}", () => {})`;
const pattern = /it\\("x", ['"`]/g;
const half = width / 2; it("after a division", () => { expect(half / 2).toBe(1); });

describe("outer", () => {
  describe.skip(`inner`, function () {
    it("adds (a) { ", async () => {
      expect(add(1, 2)).toBe(3);
      expect(true).toBe(true);
    });
  });
  test.each([[1, 2], [3, 4]])("sums %i and %i", (a, b) => { expect(add(a, b)).toBeTruthy(); });
  test.each`a | b
    ${1} | ${2}
  `("rows $a", ({ a }) => {});
  it.todo("later");
});
xit('single \\'quotes\\'', () => {});
runner.test("not ours", () => {});
it(name, () => {});
"""


def test_script_tests_are_calls_with_a_title_in_the_groups_they_stand_in() -> None:
    found = source_tests({"src/a.test.ts": SCRIPT})

    assert [it.names for it in found] == [
        ("after a division",),
        ("outer", "inner", "adds (a) { "),
        ("outer", "sums "),
        ("outer", "rows "),
        ("outer", "later"),
        ("single 'quotes'",),
    ]
    assert [it.flexible for it in found] == [False, False, True, True, False, False]
    assert [it.checks for it in found] == [1, 1, 1, 0, 0, 0]
    assert found[1].line == 11


def test_a_scripts_body_has_no_title_no_comment_and_no_layout() -> None:
    one = body('it("a", () => { expect(f()).toBe(1); });', "a.test.js")
    same = body('it("b", () => {\n  // words\n  expect( f() ).toBe(1);\n});', "a.test.js")
    skipped = body('it.skip("a", () => { expect(f()).toBe(1); });', "a.test.js")
    table = body('it.each([1])("a", () => { expect(f()).toBe(1); });', "a.test.js")

    assert one == same
    assert len({one, skipped, table}) == 3


# --- Go -----------------------------------------------------------------------------------------

GO = """\
package calc

// func TestCommented(t *testing.T) {}
func TestAdd(t *testing.T) {
	t.Run("small numbers", func(t *testing.T) {
		t.Run("deep", func(t *testing.T) { t.Errorf("}") })
	})
	for _, it := range cases {
		t.Run(it.name, func(t *testing.T) { t.Fatal(`"`) })
	}
	assert.Equal(t, 1, 2)
}

func Testify(t *testing.T) {}
func TestMain(m *testing.M) { os.Exit(m.Run()) }
func ExampleAdd() { fmt.Println(1) }
func (s *Suite) TestMethod(t *testing.T) {}
func TestDeclared(t *testing.T)
"""


def test_go_tests_are_functions_by_name_and_literal_sub_tests() -> None:
    found = source_tests({"calc/a_test.go": GO, "calc/a.go": GO})

    assert [(it.names, it.checks) for it in found] == [
        (("TestAdd",), 3),
        (("TestAdd", "small_numbers"), 1),
        (("TestAdd", "small_numbers", "deep"), 1),
        (("ExampleAdd",), 0),
    ]


def test_a_go_token_is_looked_at_once_however_many_sub_tests_it_is_in() -> None:
    deep = "func TestA() { " + 't.Run("a", func() {' * 200 + "t.Fail()" + "})" * 200 + "}"
    calls = 0

    def counts(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(counts)
    try:
        found = source_tests({"a_test.go": deep})
    finally:
        sys.setprofile(None)

    assert len(found) == 21
    assert [it.checks for it in found] == [1] * 21
    tokens = len(re.findall(r"\w+|\S", deep))
    assert calls < 5 * tokens


# --- hostile files ------------------------------------------------------------------------------

DEEP = 30_000


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("tests/test_a.py", "("),
        ("tests/test_a.py", "\0"),
        ("tests/test_a.py", "(" * DEEP),
        ("tests/test_a.py", "x = " + "-" * DEEP + "1"),
        ("tests/test_a.py", "x" + ".a" * DEEP),
        ("tests/test_a.py", "def test_a():\n    assert x" + "+x" * 20_000),
        ("tests/test_a.py", "class A(A): pass\nclass B(C): pass\nclass C(B): pass"),
        ("tests/test_a.py", "".join(f"{' ' * it}if x:\n" for it in range(90)) + " " * 90 + "x"),
        ("a.test.js", "`" + "${`" * DEEP),
        ("a.test.js", "/*" * DEEP),
        ("a.test.js", "'" * DEEP),
        ("a.test.js", "describe('a', () => {" * 20_000),
        ("a.test.js", "it.each" * DEEP),
        ("a.test.js", "it(" * DEEP),
        ("a.test.js", "= /[" * DEEP),
        ("a.test.js", "it"),
        ("a.test.js", "it.each"),
        ("a.test.js", "it("),
        ("a_test.go", "func TestA(t *testing.T) {" * 5_000),
        ("a_test.go", "`" + "x" * DEEP),
        ("a_test.go", "func TestA(" * 20_000),
        ("a_test.go", "{" * DEEP),
        ("a_test.go", "func TestA(t *testing.T) {" * 5_000 + "}" * 5_000),
        (
            "a_test.go",
            'func TestA() { t.Run("a", func() {' + 't.Run("a", func() {' * 9_000 + "})" * 9_000,
        ),
        (
            "a_test.go",
            'func TestA() { t.Run("a", f)' + 't.Run("a", func() {' * 9_000 + "})" * 9_000 + "}",
        ),
        (
            "a.test.js",
            "describe('a', () => {" * 9_000 + "it('b', () => {});" * 9_000 + "})" * 9_000,
        ),
        ("tests/test_a.py", "def test_a(): pass\n" * 90_000),
    ],
)
@pytest.mark.unmeasured
def test_a_hostile_file_is_read_in_time_and_without_an_exception(path, text) -> None:
    begin = time.monotonic()

    source_tests({path: text})
    changed_files({}, {path: text, "conftest.py": text, "pyproject.toml": text})

    assert time.monotonic() - begin < 20


# --- what a change did --------------------------------------------------------------------------


def whats(base: dict[str, str], candidate: dict[str, str], command: str = "") -> list[str]:
    return [it.what for it in changed_files(base, candidate, (), command).harness]


def test_changed_files_are_code_tests_and_harness() -> None:
    base = {"a.py": "1", "same.py": "1", "tests/test_a.py": "1", "tests/conftest.py": ""}
    candidate = {
        "a.py": "2",
        "same.py": "1",
        "tests/conftest.py": "def helper(): pass",
        "README.md": "words",
        "docs/x.py": "1",
        "sitecustomize.py": "1",
    }

    found = changed_files(base, candidate)

    assert found.code == ("a.py",)
    assert found.tests == ("tests/conftest.py", "tests/test_a.py")
    assert [it.file for it in found.harness] == ["sitecustomize.py"]
    assert changed_files(base, base) == ChangedFiles()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("def pytest_runtest_call(): pass", "adds pytest_runtest_call"),
        ("@pytest.hookimpl\ndef other(): pass", "adds other"),
        ("async def pytest_x(): pass", "adds pytest_x"),
        ("collect_ignore = ['a']", "adds collect_ignore"),
        ("pytest_plugins: list[str] = ['a']", "adds pytest_plugins"),
        ("x = patch()", "adds x"),
        ("os._exit(0)", "adds statements that run when it is loaded"),
        ("import a\na.b = c", "adds statements that run"),
        ("def broken(", "adds what cannot be read"),
    ],
)
def test_a_conftest_that_acts_by_itself_is_said_to(text, what) -> None:
    (found,) = whats({}, {"tests/conftest.py": text})

    assert what in found


def test_a_hook_that_changes_or_goes_is_said_too_and_fixtures_are_not() -> None:
    hook = "def pytest_x():\n    return 1\n"
    quiet = '"""Words."""\nimport a\nclass B: pass\nC = 1\n@pytest.fixture\ndef f(): return 1\n'

    assert whats({"conftest.py": hook}, {"conftest.py": hook.replace("1", "2")}) == [
        "conftest.py changes pytest_x"
    ]
    assert whats({"conftest.py": hook}, {}) == ["conftest.py no longer has pytest_x"]
    assert whats({"conftest.py": hook}, {"conftest.py": "# words\n" + hook}) == []
    assert whats({}, {"conftest.py": quiet}) == []


@pytest.mark.parametrize(
    ("path", "text", "what"),
    [
        ("pyproject.toml", '[tool.pytest.ini_options]\naddopts = "-k x"', 'addopts = "-k x"'),
        ("pyproject.toml", '[tool.pytest]\naddopts = ["-x"]', "addopts"),
        ("pyproject.toml", "not = toml = at all", "what cannot be read"),
        ("pyproject.toml", "a" + ".a" * 60 + " = 1", "what cannot be read"),
        ("pyproject.toml", "# " + "x" * 300_000, "what cannot be read"),
        ("pytest.toml", '[pytest]\ntestpaths = ["x"]', "testpaths"),
        ("pytest.ini", "[pytest]\npython_files = x", "python_files = x"),
        ("tox.ini", "[pytest]\naddopts = -p evil", "addopts = -p evil"),
        ("setup.cfg", "[tool:pytest]\naddopts = --co", "addopts = --co"),
        ("tox.ini", "no section", "what cannot be read"),
        ("package.json", '{"scripts": {"test": "true"}}', 'test = "true"'),
        ("package.json", '{"scripts": {"pretest": "rm x"}}', "pretest"),
        ("package.json", '{"jest": {"bail": 1}}', "jest"),
        ("package.json", "[" * 100_000, "what cannot be read"),
        ("jest.config.js", "x", "adds jest.config.js, the test runner's configuration"),
        ("pytest.py", "x", "in the place of the test runner's own"),
        ("node_modules/jest/index.js", "x", "among the installed tools"),
        ("x.pth", "import x", "whenever it starts"),
        ("Makefile", "x", "adds Makefile, which the test command uses"),
        ("run.sh", "x", "adds run.sh, which the test command uses"),
        ("a_test.go", "func TestMain(m *testing.M) {}", "adds TestMain"),
    ],
)
def test_what_decides_how_tests_run_is_said_in_words(path, text, what) -> None:
    found = whats({}, {path: text}, "sh run.sh")

    assert any(what in it for it in found), found


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("pyproject.toml", "[project]\nversion = '1'", "[project]\nversion = '2'"),
        ("pyproject.toml", "", "[tool.pytest.ini_options]\nmarkers = ['slow: x']"),
        ("pyproject.toml", "", "tool = 1"),
        ("package.json", '{"scripts": {"build": "x"}}', '{"scripts": {"build": "y"}}'),
        ("package.json", "{}", '{"dependencies": {}}'),
        ("tox.ini", "[tox]\nx = 1", "[tox]\nx = 2"),
        ("a_test.go", "package a", "package a\nfunc TestA(t *testing.T) {}"),
    ],
)
def test_the_rest_of_such_files_is_nobodys_business(path, before, after) -> None:
    assert whats({path: before}, {path: after}) == []


def test_what_goes_away_is_said() -> None:
    tagged = {"a_test.go": "//go:build never\n\npackage a"}

    assert whats({"Makefile": "x"}, {}) == ["removes Makefile, which the test command uses"]
    assert whats({"Makefile": "x"}, {"Makefile": "y"}) == [
        "changes Makefile, which the test command uses"
    ]
    assert whats({"pytest.ini": "[pytest]\naddopts = -x"}, {}) == [
        "pytest.ini no longer sets addopts"
    ]
    assert "other build tags" in whats({"a_test.go": "package a"}, tagged)[0]


def test_files_that_are_too_big_or_too_many_have_no_tests() -> None:
    text = "def test_a():\n    pass\n"

    assert source_tests({"tests/test_a.py": text + "#" * 1_000_001}) == ()
    assert source_tests({"tests/data.json": text}) == ()


# --- what a package manager's test command runs -------------------------------------------------

PACKAGE = '{"scripts": {"test": "node --test", "test:unit": "jest"}}'


@pytest.mark.parametrize(
    ("written", "package", "command"),
    [
        ("npm test", PACKAGE, "npm test\nnode --test"),
        ("npm run test -- --x", PACKAGE, "npm run test -- --x\nnode --test"),
        ("CI=1 yarn --silent test", PACKAGE, "CI=1 yarn --silent test\nnode --test"),
        ("pnpm -s test", PACKAGE, "pnpm -s test\nnode --test"),
        ("npm run test:unit", PACKAGE, "npm run test:unit"),
        ("npx jest", PACKAGE, "npx jest"),
        ("npm test", "", "npm test"),
        ("npm test", "{", "npm test"),
        ("npm test", "[" * 100_000, "npm test"),
        ("npm test", "[1]", "npm test"),
        ("npm test", '{"scripts": {"test": 7}}', "npm test"),
        ("npm test", '{"scripts": []}', "npm test"),
        ("npm test", PACKAGE + " " * 1_000_000, "npm test"),
    ],
)
def test_npm_test_is_what_its_script_says(written, package, command) -> None:
    assert FileTestSources().command(written, package) == command


def test_the_port_reads_what_the_functions_read() -> None:
    files = {"test_a.py": "def test_a():\n    assert 1\n"}

    assert FileTestSources().tests(files) == source_tests(files)
    assert FileTestSources().changes({}, files, (), "") == changed_files({}, files)


# --- files that are loaded by themselves --------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "weight"),
    [
        ("app/__pycache__/calc.cpython-311.pyc", Weight.REFUSED),
        ("app/CALC.PYC", Weight.REFUSED),
        (".pytest_cache/v/cache/lastfailed", Weight.REFUSED),
        ("Quiet-1.DIST-INFO/entry_points.txt", Weight.ASKED),
        ("quiet.egg-info", Weight.ASKED),
        ("start.PTH", Weight.ASKED),
        ("src/SiteCustomize.py", Weight.ASKED),
        ("app/calc.abi3.so", Weight.ASKED),
        ("random.py", Weight.ASKED),
        ("tests/json/__init__.py", Weight.ASKED),
        ("_pytest/runner.py", Weight.ASKED),
        ("Makefile", Weight.NOTED),
    ],
)
def test_what_a_change_adds_that_is_loaded_by_itself_has_a_weight(path, weight) -> None:
    [added] = changed_files({}, {path: "x"}).harness
    removed = changed_files({path: "x"}, {}).harness

    assert (added.file, added.weight) == (path, weight)
    assert all(it.weight is Weight.NOTED for it in removed)


@pytest.mark.parametrize("path", ["app/random.py", "tools/json.py", "tests/test_json.py", "a.json"])
def test_other_names_are_no_module_of_pythons_own(path) -> None:
    assert changed_files({}, {path: "x"}).harness == ()


# --- what stands beside tests -------------------------------------------------------------------


def test_what_stands_beside_tests_is_known_by_name_and_what_acts_on_all_is_marked() -> None:
    text = (
        '"""Doc."""\nimport os\nfrom app import add as plus, sub\nfrom app import *\nX = 1\n'
        "Y: int = 2\nlen = 3\n\n\ndef helper():\n    assert X\n\n\ndef setup_module():\n"
        "    pass\n\n\n"
        "@pytest.fixture(autouse=True)\ndef quick():\n    pass\n\n\ndef test_a():\n"
        "    assert 1\n\n\n"
        "class TestB:\n    size = 3\n\n    def test_b(self):\n        assert 2\n\n\nprint(1)\n"
    )
    found = FileTestSources().beside({"tests/test_a.py": text, "a.txt": "x"})["tests/test_a.py"]

    assert {"os", "plus", "sub", "X", "Y", "helper", "TestB"} <= found.keys()
    assert found["plus"] == "app add"
    assert "test_b" not in found["TestB"]
    marked = {it for it in found if it.startswith("!")}
    assert {"!len", "!setup_module"} <= marked
    assert len(marked) == 5
    assert not any("test_a" in it for it in found.values())


def test_what_is_not_python_has_nothing_beside_its_tests() -> None:
    assert FileTestSources().beside({"tests/test_a.py": "def ("}) == {"tests/test_a.py": {}}


def test_an_edited_doctest_is_named_with_old_and_new_where_doctests_run() -> None:
    old = {
        "app.py": 'def f():\n    """Adds.\n\n    >>> f(1)\n    2\n    >>> f(2)\n    3\n    """\n'
    }
    new = {"app.py": 'def f():\n    """Adds.\n\n    >>> f(1)\n    9\n    """\n'}

    marks = changed_files(old, new, (), "pytest --doctest-modules").marks

    assert [it.what for it in marks] == [
        "doctest f(1): 2 → 9",
        "doctest f(2): 3 → (no example)",
    ]
    assert changed_files(old, new, (), "pytest").marks == ()
    assert changed_files({"a.md": ">>> f()\n1\n"}, {}, (), "doctest").marks != ()
    assert changed_files({"a.md": ">>>f()\n1\n"}, {}, (), "doctest").marks == ()
    assert changed_files({"a.js": ">>> 1\n1\n"}, {}, (), "doctest").marks == ()


@pytest.mark.parametrize(
    "body",
    [
        "assert f(1) == 2",
        "assert 2 == f(1)",
        "assert f(1) == 2, 'a message'",
        "found = f(1)\n    assert found == 2",
        "one = 1\n    found = f(one)\n    assert found == 2",
        "self.assertEqual(f(1), 2)",
        "self.assertEqual(2, f(1), 'a message')",
    ],
)
def test_assertions_that_say_the_same_are_the_same_text(body) -> None:
    [test] = source_tests({"tests/test_a.py": f"def test_a(self):\n    {body}\n"})

    assert test.asserts == ("assert 2 == f(1)",)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("self.assertTrue(x)", "assert x"),
        ("self.assertFalse(x)", "assert not x"),
        ("self.assertIsNone(x)", "assert x is None"),
        ("self.assertIn(x, y)", "assert x in y"),
        ("self.assertRaises(E, f)", "raises E"),
        ("with pytest.raises(E): f()", "raises E"),
        ("x = 1\n    x = 2\n    assert g(x)", "assert g(x)"),
        ("f = lambda: 3\n    assert f() == 3", "assert (lambda: 3)() == 3"),
        ("self.assertAlmostEqual(x, y, 3)", "self.assertAlmostEqual(x, y, 3)"),
    ],
)
def test_an_assertion_is_told_plainly(body, said) -> None:
    [test] = source_tests({"tests/test_a.py": f"def test_a(self):\n    {body}\n"})

    assert test.asserts == (said,)


# --- failures planted in tests ------------------------------------------------------------------


def test_a_failure_is_planted_at_the_beginning_of_each_test_that_cannot_catch_it() -> None:
    text = (
        "import pytest\n\n\ndef test_a():\n    with f() as x:\n        assert x\n\n\n"
        "def test_b(): assert f()\n\n\n@retried\ndef test_c():\n    assert f()\n\n\n"
        "class TestD:\n    @pytest.mark.slow\n    async def test_d(self):\n"
        '        """Doc."""\n        assert await f()\n\n\ndef test_other():\n    pass\n'
    )
    tests = source_tests({"tests/test_a.py": text})
    wanted = tuple(it for it in tests if it.names[-1] != "test_other")

    texts, done = FileTestSources().broken({"tests/test_a.py": text}, wanted, "w0rd")

    assert {it.names[-1] for it in done} == {"test_a", "test_b", "test_d"}
    found = texts["tests/test_a.py"]
    assert found.count("assert 4 ==") == 3
    assert len(source_tests(texts)) == len(tests), "it is still the same file"
    assert FileTestSources().broken({}, wanted, "w") == ({}, ())
    assert FileTestSources().broken({"tests/test_a.py": "def ("}, wanted, "w") == ({}, ())


@pytest.mark.parametrize(
    ("path", "line", "marked"),
    [
        ("app/a.py", "if os.environ.get('PYTEST_CURRENT_TEST'):", True),
        ("app/a.py", "frame = sys._getframe(1)", True),
        ("app/a.py", "who = inspect.stack()[1]", True),
        ("app/a.mjs", "if (process.env.NODE_TEST_CONTEXT) {", True),
        ("app/a.py", "if os.environ.get('CI'):", False),
        ("tests/test_a.py", "frame = sys._getframe(1)", False),
        ("tests/test_a.py", "def test_a(record_xml_attribute):", True),
        ("README.md", "PYTEST_CURRENT_TEST is not read", False),
    ],
)
def test_code_that_newly_asks_whether_it_is_tested_is_named_with_its_line(
    path, line, marked
) -> None:
    found = changed_files({path: "x = 1\n"}, {path: f"x = 1\n{line}\n"}).marks
    known = changed_files({path: f"{line}\n"}, {path: f"{line}\nx = 1\n"}).marks

    assert [(it.file, it.line) for it in found] == ([(path, 2)] if marked else [])
    assert known == ()


def test_what_stands_beside_a_scripts_tests_is_known_by_name_or_acts_on_all_of_them() -> None:
    text = (
        'import assert from "node:assert";\nimport { add, sub } from "./calc.mjs"\n'
        "const X = [1,\n  2];\nfunction helper(a) {\n  return a;\n}\n"
        'jest.mock("./x", () => ({ a: 1 }));\n'
        'test("adds", () => {\n  assert.equal(add(1, 2), 3);\n});\n'
        'describe("sub", () => {\n  it("x", () => {});\n});\n'
    )

    found = FileTestSources().beside({"a.test.mjs": text, "b.txt": "x"})

    assert [*found] == ["a.test.mjs"]
    names = {it.partition("(")[0].strip() for it in found["a.test.mjs"]}
    assert names == {
        "import assert",
        "import from",
        "import add",
        "import sub",
        "const X = [ 1 , 2 ] ;",
        "function helper",
        "!jest . mock",
    }


def test_faults_are_tried_by_a_program_for_python_and_one_for_scripts() -> None:
    it = FileTestSources()

    assert "node:child_process" in it.probe(Runner.JEST)
    assert "pytest_collection_finish" in it.probe(Runner.PYTEST)
    assert it.probe(Runner.GO) == ""
