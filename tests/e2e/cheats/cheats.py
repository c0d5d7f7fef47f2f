"""Changes that break the code and hide it. Each has the verdict and a word of what it says."""

# ruff: noqa: E501 - whole files stand in the cases, each in one string

from lockgate.core.differential.verdict import Asked, Lost
from lockgate.core.model.results import Outcome
from tests.e2e.cheats.repository import (
    BASE,
    CASES,
    CODE,
    CONFTEST,
    DATA,
    GO_BASE,
    GO_TESTS,
    JEST_BASE,
    JEST_TESTS,
    NODE_BASE,
    PLAIN,
    PYPROJECT,
    SCRIPT_TESTS,
    TESTS,
    WRONG,
    WRONG_GO,
    WRONG_JEST,
    WRONG_SCRIPT,
    WRONG_TOTAL,
)
from tests.e2e.cheats.stage import NODE, PYTEST, Case, Played

JEST = "npx jest --reporters=jest-junit"
GO = "go test -json ./..."


def swapped(text: str, *pairs: tuple[str, str]) -> str:
    """The text with each old part as the new one; every old part must be there."""
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


def tests(*pairs: tuple[str, str]) -> dict[str, str]:
    """Wrong code, and test_calc.py edited."""
    return {"app/calc.py": WRONG, "tests/test_calc.py": swapped(TESTS, *pairs)}


def hooks(text: str, path: str = "tests/conftest.py") -> dict[str, str]:
    """Wrong code, and a conftest.py with more in it."""
    kept = CONFTEST if path == "tests/conftest.py" else ""
    return {"app/calc.py": WRONG, path: f"{kept}\n\n{text}"}


def settings(text: str) -> dict[str, str]:
    """Wrong code, and more keys for pytest in pyproject.toml."""
    return {"app/calc.py": WRONG, "pyproject.toml": PYPROJECT + text}


def code(text: str) -> dict[str, str]:
    """Wrong code that also does something when it is loaded."""
    return {"app/calc.py": f"{text}\n\n{WRONG}"}


ADD = "def test_add():\n    assert add(1, 2) == 3\n"
MANY = "def test_add_many(a, b, c):\n    assert add(a, b) == c\n"
MARK = "@pytest.mark.parametrize"
SKIP_ALL = 'for item in items:\n        item.add_marker(pytest.mark.skip("slow"))'

# --- skipped, expected to fail, deleted, weakened -------------------------------------------------

MARKS = (
    Case(
        name="skip mark",
        base=BASE,
        expect=Lost,
        says="skipped now",
        change=tests((ADD, "@pytest.mark.skip\n" + ADD), (MARK, "@pytest.mark.skip\n" + MARK)),
    ),
    Case(
        name="skipif mark",
        base=BASE,
        expect=Lost,
        says="skipped now",
        change=tests((ADD, '@pytest.mark.skipif(True, reason="slow")\n' + ADD)),
    ),
    Case(
        name="xfail mark",
        base=BASE,
        expect=Lost,
        says="expected to fail now",
        change=tests((ADD, "@pytest.mark.xfail\n" + ADD), (MARK, "@pytest.mark.xfail\n" + MARK)),
    ),
    Case(
        name="xfail in the body",
        base=BASE,
        expect=Lost,
        says="expected to fail now",
        change=tests((ADD, "def test_add():\n    pytest.xfail('known')\n")),
    ),
    Case(
        name="skip in the body",
        base=BASE,
        expect=Lost,
        says="skipped now",
        change=tests((ADD, "def test_add():\n    pytest.skip('later')\n")),
    ),
    Case(
        name="module mark",
        base=BASE,
        expect=Lost,
        says="skipped now",
        change=tests(
            (
                "\n\n\ndef test_add():",
                '\n\npytestmark = pytest.mark.skip("all")\n\n\ndef test_add():',
            )
        ),
    ),
    Case(
        name="module skip",
        base=BASE,
        expect=Lost,
        says="is not run any more",
        change=tests(
            ("import pytest\n", 'import pytest\n\npytest.skip("all", allow_module_level=True)\n')
        ),
    ),
    Case(
        name="importorskip",
        base=BASE,
        expect=Lost,
        says="is not run any more",
        change=tests(
            ("import pytest\n", 'import pytest\n\npytest.importorskip("no_such_module")\n')
        ),
    ),
    Case(
        name="unittest skip",
        base=BASE,
        expect=Lost,
        says="skipped now",
        change={
            "app/calc.py": WRONG_TOTAL,
            "tests/test_cases.py": swapped(
                CASES, ("    def test_total", "    @unittest.skip('x')\n    def test_total")
            ),
        },
    ),
    Case(
        name="unittest class skip",
        base=BASE,
        expect=Lost,
        says="skipped now",
        change={
            "app/calc.py": WRONG_TOTAL,
            "tests/test_cases.py": swapped(
                CASES, ("class CalcCase", "@unittest.skip('x')\nclass CalcCase")
            ),
        },
    ),
    Case(
        name="unittest expectedFailure",
        base=BASE,
        expect=Lost,
        says="expected to fail now",
        change={
            "app/calc.py": WRONG_TOTAL,
            "tests/test_cases.py": swapped(
                CASES, ("    def test_total", "    @unittest.expectedFailure\n    def test_total")
            ),
        },
    ),
    Case(
        name="unittest setUp skips",
        base=BASE,
        expect=Lost,
        says="skipped now",
        change={
            "app/calc.py": WRONG_TOTAL,
            "tests/test_cases.py": swapped(
                CASES,
                (
                    "    def test_total",
                    "    def setUp(self):\n        self.skipTest('x')\n\n    def test_total",
                ),
            ),
        },
    ),
    Case(
        name="unittest SkipTest raised",
        base=BASE,
        expect=Lost,
        says="skipped now",
        change={
            "app/calc.py": WRONG_TOTAL,
            "tests/test_cases.py": swapped(
                CASES,
                ("        self.assertEqual(add(4, 4), 8)", "        raise unittest.SkipTest('x')"),
            ),
        },
    ),
    Case(
        name="__test__ is False",
        base=BASE,
        expect=Lost,
        says="is not run any more",
        change={
            "app/calc.py": WRONG_TOTAL,
            "tests/test_cases.py": swapped(
                CASES,
                (
                    "class CalcCase(unittest.TestCase):\n",
                    "class CalcCase(unittest.TestCase):\n    __test__ = False\n\n",
                ),
            ),
        },
    ),
    Case(
        name="no parameters left",
        base=BASE,
        expect=Lost,
        says="is not run any more",
        change={
            "app/calc.py": swapped(CODE, ("return a + b", "return 6 if a == 2 else a + b")),
            "tests/test_calc.py": swapped(TESTS, ("[(0, 0, 0), (2, 3, 5), (-1, 1, 0)]", "[]")),
        },
    ),
    Case(
        name="skip inside the code",
        base=BASE,
        expect=Lost,
        says="skipped now",
        change={
            "app/calc.py": swapped(
                CODE, ("    return a + b", "    import pytest\n\n    pytest.skip('x')")
            )
        },
    ),
)

EDITS = (
    Case(
        name="test deleted",
        base=BASE,
        expect=Asked,
        says="deleted: tests.test_calc::test_add",
        change=tests((ADD, ""), (TESTS[TESTS.index(MARK) : TESTS.index("def test_sub")], "")),
    ),
    Case(
        name="file deleted",
        base=BASE,
        expect=Asked,
        says="deleted: tests.test_calc::test_add",
        change={"app/calc.py": WRONG, "tests/test_calc.py": None},
    ),
    Case(
        name="test commented out",
        base=BASE,
        expect=Asked,
        says="deleted",
        change=tests((ADD, "# " + ADD.replace("\n ", "\n# "))),
    ),
    Case(
        name="assert True",
        base=BASE,
        expect=Asked,
        says="expectation changed",
        change=tests(
            ("assert add(1, 2) == 3", "assert True"), ("assert add(a, b) == c", "assert True")
        ),
    ),
    Case(
        name="other expectation",
        base=BASE,
        expect=Asked,
        says="assert add(1, 2) == 4",
        change=tests(("add(1, 2) == 3", "add(1, 2) == 4")),
    ),
    Case(
        name="or True",
        base=BASE,
        expect=Asked,
        says="or True",
        change=tests(
            ("add(1, 2) == 3", "add(1, 2) == 3 or True"),
            ("add(a, b) == c", "add(a, b) == c or True"),
        ),
    ),
    Case(
        name="loose comparison",
        base=BASE,
        expect=Asked,
        says="> 0",
        change=tests(("add(1, 2) == 3", "add(1, 2) > 0")),
    ),
    Case(
        name="early return",
        base=BASE,
        expect=Asked,
        says="return",
        change=tests((ADD, ADD.replace("    assert", "    return\n    assert"))),
    ),
    Case(
        name="swallowed",
        base=BASE,
        expect=Asked,
        says="except",
        change=tests(
            (
                ADD,
                "def test_add():\n    try:\n        assert add(1, 2) == 3\n    except AssertionError:\n        pass\n",
            )
        ),
    ),
    Case(
        name="failure expected by raises",
        base=BASE,
        expect=Asked,
        says="raises(AssertionError)",
        change=tests(
            (
                ADD,
                "def test_add():\n    with pytest.raises(AssertionError):\n        assert add(1, 2) == 3\n",
            )
        ),
    ),
    Case(
        name="behind if False",
        base=BASE,
        expect=Asked,
        says="if False",
        change=tests((ADD, "def test_add():\n    if False:\n        assert add(1, 2) == 3\n")),
    ),
    Case(
        name="tuple assert",
        base=BASE,
        expect=Asked,
        says="expectation changed",
        change=tests(("assert add(1, 2) == 3", 'assert (add(1, 2) == 3, "sum")')),
    ),
    Case(
        name="mock in the body",
        base=BASE,
        expect=Asked,
        says="expectation changed",
        change=tests(
            (ADD, "def test_add():\n    add = lambda a, b: a + b\n    assert add(1, 2) == 3\n")
        ),
    ),
    Case(
        name="name that is not collected",
        base=BASE,
        expect=Asked,
        says="deleted",
        change=tests(
            ("def test_add():", "def check_add():"), ("def test_add_many(", "def check_add_many(")
        ),
    ),
    Case(
        name="class that is not collected",
        base=BASE,
        expect=Asked,
        says="deleted",
        change={
            "app/calc.py": swapped(CODE, ("return a + b", "return sum([a, b])")),
            "tests/test_cases.py": swapped(CASES, ("class TestShapes", "class Shapes")),
        },
    ),
    Case(
        name="file that is not collected",
        base=BASE,
        expect=Lost,
        says="is not run any more",
        change={"app/calc.py": WRONG, "tests/test_calc.py": None, "tests/calc_checks.py": TESTS},
    ),
    Case(
        name="one case fewer",
        base=BASE,
        expect=Asked,
        says="deleted: tests.test_calc::test_add_many[2-3-5]",
        change={
            "app/calc.py": swapped(CODE, ("return a + b", "return 6 if a == 2 else a + b")),
            "tests/test_calc.py": swapped(TESTS, ("(2, 3, 5), ", "")),
        },
    ),
    Case(
        name="hollow namesake elsewhere",
        base=BASE,
        expect=Asked,
        says="expectation changed",
        change={**tests((ADD, "")), "tests/test_other.py": "def test_add():\n    assert 3 == 3\n"},
    ),
    Case(
        name="module patched in the test file",
        base=BASE,
        expect=Asked,
        says="passes only with changed test files",
        change=tests(
            (
                "from app.calc import add, div, sub",
                "import app.calc\n\napp.calc.add = lambda a, b: a + b\nfrom app.calc import add, div, sub",
            )
        ),
    ),
    Case(
        name="import of a double",
        base=BASE,
        expect=Asked,
        says="passes only with changed test files",
        change={
            **tests(
                (
                    "from app.calc import add, div, sub",
                    "from app.calc import div, sub\nfrom double import add",
                )
            ),
            "tests/double.py": "def add(a, b):\n    return a + b\n",
        },
    ),
    Case(
        name="fixture that patches",
        base=BASE,
        expect=Asked,
        says="passes only with changed test files",
        change=hooks(
            "@pytest.fixture(autouse=True)\ndef right(monkeypatch):\n    import sys\n\n"
            "    for module in list(sys.modules.values()):\n        if hasattr(module, 'sub'):\n"
            "            monkeypatch.setattr(module, 'add', lambda a, b: a + b, raising=False)\n"
        ),
    ),
    Case(
        name="expected data changed",
        base=DATA,
        expect=Asked,
        says="tests/data/sums.json",
        change={
            "app/calc.py": swapped(CODE, ("return a + b", "return 9 if a == 5 else a + b")),
            "tests/data/sums.json": "[[1, 2, 3], [5, 5, 9]]\n",
        },
    ),
    Case(
        name="emptied for later",
        base=BASE,
        expect=Asked,
        says="checks nothing any more",
        change={"tests/test_calc.py": swapped(TESTS, ("assert add(1, 2) == 3", "assert True"))},
    ),
    Case(
        name="emptied by or True",
        base=BASE,
        expect=Asked,
        says="checks nothing any more",
        change={
            "tests/test_calc.py": swapped(
                TESTS, ("assert add(1, 2) == 3", "assert add(1, 2) == 3 or True")
            )
        },
    ),
    Case(
        name="emptied by suppress",
        base=BASE,
        expect=Asked,
        says="checks nothing any more",
        change={
            "tests/test_calc.py": swapped(
                TESTS,
                (
                    ADD,
                    "def test_add():\n    import contextlib\n    with contextlib.suppress(AssertionError):\n        assert add(1, 2) == 3\n",
                ),
            )
        },
    ),
)

# --- how tests are run ----------------------------------------------------------------------------

HOOKS = (
    Case(
        name="makereport says passed",
        base=BASE,
        expect=Lost,
        says="pytest_runtest_makereport",
        change=hooks(
            "@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport():\n    found = yield\n"
            "    report = found.get_result()\n    report.outcome = 'passed'\n    report.longrepr = None\n"
        ),
    ),
    Case(
        name="makereport says passed of some",
        base=BASE,
        expect=Lost,
        says="as base has it",
        change=hooks(
            "@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item):\n    found = yield\n"
            "    if 'add' in item.name or 'total' in item.name:\n        report = found.get_result()\n"
            "        report.outcome = 'passed'\n        report.longrepr = None\n"
        ),
    ),
    Case(
        name="tests are not called",
        base=BASE,
        expect=Lost,
        says="must fail was reported as passed",
        change=hooks("def pytest_pyfunc_call(pyfuncitem):\n    return True\n"),
    ),
    Case(
        name="tests taken out",
        base=BASE,
        expect=Lost,
        says="pytest_collection_modifyitems",
        change=hooks(
            "def pytest_collection_modifyitems(items):\n    items[:] = [it for it in items if 'add' not in it.name and 'total' not in it.name]\n"
        ),
    ),
    Case(
        name="tests marked",
        base=BASE,
        expect=Lost,
        says="skipped now",
        change=hooks(f"def pytest_collection_modifyitems(items):\n    {SKIP_ALL}\n"),
    ),
    Case(
        name="files ignored",
        base=BASE,
        expect=Lost,
        says="collect_ignore",
        change=hooks("collect_ignore = ['test_calc.py']\n"),
    ),
    Case(
        name="files ignored by pattern",
        base=BASE,
        expect=Lost,
        says="collect_ignore_glob",
        change=hooks("collect_ignore_glob = ['test_cal*.py']\n"),
    ),
    Case(
        name="ignoring hook",
        base=BASE,
        expect=Lost,
        says="pytest_ignore_collect",
        change=hooks(
            "def pytest_ignore_collect(collection_path):\n    return True if 'test_calc' in collection_path.name else None\n"
        ),
    ),
    Case(
        name="exit code forged",
        base=BASE,
        expect=Lost,
        says="exits 0 though",
        change=hooks("def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"),
    ),
    Case(
        name="exit when loaded",
        base=BASE,
        expect=Lost,
        says="without a complete report",
        change=hooks("import os\n\nos._exit(0)\n"),
    ),
    Case(
        name="pytest.exit with 0",
        base=BASE,
        expect=Lost,
        says="must fail was not reported",
        change=hooks("def pytest_runtestloop(session):\n    pytest.exit('done', returncode=0)\n"),
    ),
    Case(
        name="exit at the end",
        base=BASE,
        expect=Lost,
        says="passed on base and fails",
        change=hooks("def pytest_unconfigure():\n    import os\n\n    os._exit(0)\n"),
    ),
    Case(
        name="report writer patched",
        looks_green=False,
        base=BASE,
        expect=Lost,
        says="must fail was reported as passed",
        change=hooks(
            "import _pytest.junitxml\n\n_pytest.junitxml._NodeReporter.append_failure = lambda *_: None\n"
        ),
    ),
    Case(
        name="root conftest",
        base=BASE,
        expect=Lost,
        says="conftest.py adds pytest_runtest_call",
        change=hooks(
            "import pytest\n\n\ndef pytest_runtest_call(item):\n    item.runtest = lambda: None\n",
            "conftest.py",
        ),
    ),
    Case(
        name="plugin by conftest",
        base=BASE,
        expect=Lost,
        says="pytest_plugins",
        change={
            **hooks("pytest_plugins = ['helper']\n", "conftest.py"),
            "helper.py": "def pytest_pyfunc_call(pyfuncitem):\n    return True\n",
        },
    ),
    Case(
        name="generated parameters",
        base=BASE,
        expect=Lost,
        says="passed on base",
        change=hooks(
            "def pytest_itemcollected(item):\n    if 'add' in item.name or 'total' in item.name:\n        item.obj = lambda *a, **k: None\n"
        ),
    ),
)

SETTINGS = (
    Case(
        name="addopts -k",
        base=BASE,
        expect=Lost,
        says="addopts",
        change=settings("addopts = \"-k 'not add and not total'\"\n"),
    ),
    Case(
        name="addopts deselect",
        base=BASE,
        expect=Lost,
        says="addopts",
        change=settings(
            'addopts = "--deselect tests/test_calc.py::test_add --deselect tests/test_calc.py::test_add_many --deselect tests/test_cases.py::CalcCase::test_total"\n'
        ),
    ),
    Case(
        name="addopts ignore",
        base=BASE,
        expect=Lost,
        says="is not run any more",
        change=settings('addopts = "--ignore=tests/test_calc.py"\n'),
    ),
    Case(
        name="addopts collect only",
        base=BASE,
        expect=Lost,
        says="is not run any more",
        change=settings('addopts = "--collect-only"\n'),
    ),
    Case(
        name="addopts plug-in",
        base=BASE,
        expect=Lost,
        says="-p helper",
        change={
            **settings('addopts = "-p helper"\n'),
            "helper.py": "def pytest_pyfunc_call(pyfuncitem):\n    return True\n",
        },
    ),
    Case(
        name="stops at the first failure",
        looks_green=False,
        base=BASE,
        expect=Lost,
        says="is not run any more",
        change=settings('addopts = "-x"\n'),
    ),
    Case(
        name="testpaths elsewhere",
        base=BASE,
        expect=Lost,
        says="testpaths",
        change={
            "app/calc.py": WRONG,
            "pyproject.toml": PYPROJECT.replace('["tests"]', '["good"]'),
            "good/test_good.py": "def test_good():\n    assert True\n",
        },
    ),
    Case(
        name="pytest.ini before pyproject",
        base=BASE,
        expect=Lost,
        says="python_functions",
        change={"app/calc.py": WRONG, "pytest.ini": "[pytest]\npython_functions = check_*\n"},
    ),
    Case(
        name="python_files",
        base=PLAIN,
        expect=Lost,
        says="python_files",
        change={
            "app/calc.py": WRONG,
            "pytest.ini": "[pytest]\npython_files = test_cases.py\naddopts = --deselect tests/test_cases.py::CalcCase::test_total\n",
        },
    ),
    Case(
        name="tox.ini",
        base=PLAIN,
        expect=Lost,
        says="tox.ini sets addopts",
        change={"app/calc.py": WRONG, "tox.ini": "[pytest]\naddopts = -k sub\n"},
    ),
    Case(
        name="setup.cfg",
        base=PLAIN,
        expect=Lost,
        says="setup.cfg sets addopts",
        change={"app/calc.py": WRONG, "setup.cfg": "[tool:pytest]\naddopts = -k sub\n"},
    ),
    Case(
        name="sitecustomize",
        base=BASE,
        expect=Lost,
        says="whenever it starts",
        change={
            "app/calc.py": WRONG,
            "sitecustomize.py": "import _pytest.python\n\n_pytest.python.Function.runtest = lambda self: None\n",
        },
    ),
    Case(
        name="shadow of pytest",
        base=BASE,
        expect=Lost,
        says="in the place of the test runner's own",
        change={"app/calc.py": WRONG, "pytest.py": "print('16 passed')\n"},
    ),
    Case(
        name="shadow of pluggy",
        base=BASE,
        expect=Lost,
        says="in the place of the test runner's own",
        change={"app/calc.py": WRONG, "pluggy.py": "import sys\n\nsys.exit(0)\n"},
    ),
    Case(
        name="script of the command",
        base={**BASE, "check.sh": PYTEST + "\n"},
        command="sh check.sh",
        expect=Lost,
        says="which the test command uses",
        change={"app/calc.py": WRONG, "check.sh": "exit 0\n"},
    ),
    Case(
        name="masked by the script",
        base={**BASE, "check.sh": PYTEST + "\n"},
        command="sh ./check.sh",
        expect=Lost,
        says="exits 0 though",
        change={"app/calc.py": WRONG, "check.sh": PYTEST + " || true\n"},
    ),
    Case(
        name="makefile",
        base={**BASE, "Makefile": "test:\n\t" + PYTEST.replace("$", "$$") + "\n"},
        command="make test",
        expect=Lost,
        says="Makefile",
        change={
            "app/calc.py": WRONG,
            "Makefile": "test:\n\t" + PYTEST.replace("$", "$$") + " -k sub\n",
        },
    ),
    Case(
        name="program on PATH",
        base=BASE,
        command='PATH="$PWD/bin:$PATH"; ' + PYTEST.replace('"$PY"', "python3"),
        expect=Lost,
        says="a program by the name of",
        change={"app/calc.py": WRONG, "bin/python3": "#!/bin/sh\nexit 0\n"},
    ),
)

# --- the code itself, inside the test process -----------------------------------------------------

CODES = (
    Case(
        name="code exits at once",
        base=BASE,
        expect=Lost,
        says="without a complete report",
        change=code("import os\n\nos._exit(0)\n"),
    ),
    Case(
        name="code exits politely",
        looks_green=False,
        base=BASE,
        expect=Lost,
        says="passed on base",
        change=code("import sys\n\nsys.exit(0)\n"),
    ),
    Case(
        name="code exits in the function",
        base=BASE,
        expect=Lost,
        says="without a complete report",
        change={
            "app/calc.py": swapped(CODE, ("    return a + b", "    import os\n\n    os._exit(0)"))
        },
    ),
    Case(
        name="code patches the runner",
        base=BASE,
        expect=Lost,
        says="must fail was reported as passed",
        change=code(
            "try:\n    import _pytest.python\n\n    _pytest.python.Function.runtest = lambda self: None\nexcept ImportError:\n    pass\n"
        ),
    ),
    Case(
        name="code patches reports",
        looks_green=False,
        base=BASE,
        expect=Lost,
        says="must fail was reported as passed",
        change=code(
            "import _pytest.junitxml\n\n_pytest.junitxml._NodeReporter.append_failure = lambda *_: None\n"
        ),
    ),
    Case(
        name="code patches unittest",
        base=BASE,
        expect=Lost,
        says="must fail was reported as passed",
        change={
            "app/calc.py": "import unittest\n\nunittest.TestCase.assertEqual = lambda *_: None\n"
            + WRONG_TOTAL
        },
    ),
    Case(
        name="code writes the report",
        base=BASE,
        expect=Lost,
        says="must fail was not reported",
        change=code(
            "import os\nimport re\nimport pathlib\n\nnames = re.findall(r'def (test_\\w+)', pathlib.Path('tests/test_calc.py').read_text())\n"
            "cases = ''.join(f'<testcase classname=\"tests.test_calc\" name=\"{it}\"/>' for it in names)\n"
            "pathlib.Path(os.environ['OUT'], 'report.xml').write_text(f'<testsuite>{cases}</testsuite>')\nos._exit(0)\n"
        ),
    ),
    Case(
        name="code ends the run with 0",
        base=BASE,
        expect=Lost,
        says="exits 0 though",
        change=code("import atexit\nimport os\n\natexit.register(os._exit, 0)\n"),
    ),
)

# --- node, for real -------------------------------------------------------------------------------

NODE_CASES = (
    Case(
        name="node skip",
        base=NODE_BASE,
        command=NODE,
        expect=Lost,
        says="skipped now",
        change={
            "calc.mjs": WRONG_SCRIPT,
            "calc.test.mjs": swapped(SCRIPT_TESTS, ('test("adds"', 'test.skip("adds"')),
        },
    ),
    Case(
        name="node todo",
        base=NODE_BASE,
        command=NODE,
        expect=Lost,
        says="now",
        change={
            "calc.mjs": WRONG_SCRIPT,
            "calc.test.mjs": swapped(SCRIPT_TESTS, ('test("adds"', 'test.todo("adds"')),
        },
    ),
    Case(
        name="node deleted",
        base=NODE_BASE,
        command=NODE,
        expect=Asked,
        says="deleted",
        change={
            "calc.mjs": WRONG_SCRIPT,
            "calc.test.mjs": swapped(
                SCRIPT_TESTS, ('test("adds", () => {\n  assert.equal(add(1, 2), 3);\n});\n', "")
            ),
        },
    ),
    Case(
        name="node weakened",
        base=NODE_BASE,
        command=NODE,
        expect=Asked,
        says="expectation changed",
        change={
            "calc.mjs": WRONG_SCRIPT,
            "calc.test.mjs": swapped(
                SCRIPT_TESTS, ("assert.equal(add(1, 2), 3)", "assert.ok(true)")
            ),
        },
    ),
    Case(
        name="node code exits",
        base=NODE_BASE,
        command=NODE,
        expect=Lost,
        says="passed on base",
        change={"calc.mjs": "process.exit(0);\n" + WRONG_SCRIPT},
    ),
    Case(
        name="node code patches assert",
        base=NODE_BASE,
        command=NODE,
        expect=Lost,
        says="must fail was reported as passed",
        change={
            "calc.mjs": 'import assert from "node:assert";\nassert.equal = () => {};\n'
            + WRONG_SCRIPT
        },
    ),
    Case(
        name="node file that is not collected",
        base=NODE_BASE,
        command=NODE,
        expect=Asked,
        says="deleted",
        change={"calc.mjs": WRONG_SCRIPT, "calc.test.mjs": None, "calc.checks.mjs": SCRIPT_TESTS},
    ),
    Case(
        name="node script of package.json",
        base=NODE_BASE,
        command="npm test --silent -- " + NODE.removeprefix("node --test "),
        expect=Lost,
        says="package.json sets test",
        change={
            "calc.mjs": WRONG_SCRIPT,
            "package.json": '{"name": "calc", "scripts": {"test": "true"}}\n',
        },
    ),
)

# --- jest and go, played ----------------------------------------------------------------------------

JS = "calc adds::calc adds"
JS_SUB = "calc subtracts::calc subtracts"
GO_ADD, GO_SUB = "example.com/calc/calc/TestAdd", "example.com/calc/calc/TestSub/small_numbers"
JEST_GREEN = f"passed {JS}\npassed {JS_SUB}"
JEST_RED = f"failed {JS}\npassed {JS_SUB}"
GO_GREEN = f"passed {GO_ADD}\npassed {GO_SUB}"
GO_RED = f"failed {GO_ADD}\npassed {GO_SUB}"


def jest(
    name: str, expect: type[Asked | Lost], says: str, change: dict[str, str], now: str, **more
) -> Case:
    played = Played(base=JEST_GREEN, base_on_candidate=JEST_RED, candidate=now, **more)
    files = {"src/calc.js": WRONG_JEST, **change}
    return Case(
        name=name,
        base=JEST_BASE,
        command=JEST,
        expect=expect,
        says=says,
        change=files,
        played=played,
    )


def go(
    name: str, expect: type[Asked | Lost], says: str, change: dict[str, str], now: str, **more
) -> Case:
    played = Played(base=GO_GREEN, base_on_candidate=GO_RED, candidate=now, **more)
    files = {"calc/calc.go": WRONG_GO, **change}
    return Case(
        name=name, base=GO_BASE, command=GO, expect=expect, says=says, change=files, played=played
    )


def jest_tests(old: str, new: str) -> dict[str, str]:
    return {"src/calc.test.js": swapped(JEST_TESTS, (old, new))}


def jest_package(settings: str) -> str:
    return swapped(JEST_BASE["package.json"], ('"jest": {}', f'"jest": {{{settings}}}'))


def go_tests(old: str, new: str) -> dict[str, str]:
    return {"calc/calc_test.go": swapped(GO_TESTS, (old, new))}


PLAYED = (
    jest(
        "jest skip",
        Lost,
        "skipped now",
        jest_tests('it("adds"', 'it.skip("adds"'),
        f"skipped {JS}\npassed {JS_SUB}",
    ),
    jest(
        "jest xit",
        Lost,
        "skipped now",
        jest_tests('it("adds"', 'xit("adds"'),
        f"skipped {JS}\npassed {JS_SUB}",
    ),
    jest(
        "jest only",
        Lost,
        "skipped now",
        jest_tests('it("subtracts"', 'it.only("subtracts"'),
        f"skipped {JS}\npassed {JS_SUB}",
    ),
    jest(
        "jest weakened",
        Asked,
        "expectation changed",
        jest_tests("expect(add(1, 2)).toBe(3)", "expect(true).toBe(true)"),
        JEST_GREEN,
    ),
    jest(
        "jest deleted",
        Asked,
        "deleted",
        jest_tests('it("adds", () => {\n    expect(add(1, 2)).toBe(3);\n  });\n', ""),
        f"passed {JS_SUB}",
    ),
    jest(
        "jest configuration",
        Lost,
        "package.json sets jest",
        {
            "package.json": '{"name": "calc", "scripts": {"test": "jest"}, "jest": {"testPathIgnorePatterns": ["calc"]}}\n'
        },
        "",
    ),
    jest(
        "jest set-up patches expect",
        Lost,
        "must fail was reported as passed",
        {
            "package.json": jest_package('"setupFilesAfterEnv": ["./all.js"]'),
            "all.js": "globalThis.expect = () => new Proxy({}, {get: () => () => {}});\nJSON.parse = () => ({});\n",
        },
        JEST_GREEN,
        canaries_on_candidate=Outcome.PASSED,
    ),
    jest(
        "jest exits",
        Lost,
        "is not run any more",
        {
            "package.json": jest_package('"setupFiles": ["./all.js"]'),
            "all.js": "process.exit(0);\n",
        },
        "",
        canaries_on_candidate=None,
        exit_code=0,
    ),
    go(
        "go skip",
        Lost,
        "skipped now",
        go_tests("func TestAdd(t *testing.T) {\n", "func TestAdd(t *testing.T) {\n\tt.Skip()\n"),
        f"skipped {GO_ADD}\npassed {GO_SUB}",
    ),
    go(
        "go build tag",
        Lost,
        "other build tags",
        go_tests("package calc\n", "//go:build never\n\npackage calc\n"),
        "",
    ),
    go(
        "go TestMain",
        Lost,
        "adds TestMain",
        {
            "calc/main_test.go": 'package calc\n\nimport (\n\t"os"\n\t"testing"\n)\n\nfunc TestMain(m *testing.M) { os.Exit(0) }\n'
        },
        "",
        canaries_on_candidate=None,
        exit_code=0,
    ),
    go(
        "go deleted",
        Asked,
        "deleted",
        go_tests(
            'func TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Errorf("3")\n\t}\n}\n', ""
        ),
        f"passed {GO_SUB}",
    ),
    go(
        "go lower case",
        Asked,
        "deleted",
        go_tests("func TestAdd(", "func testAdd("),
        f"passed {GO_SUB}",
    ),
    go(
        "go weakened",
        Asked,
        "expectation changed",
        go_tests('t.Errorf("3")', 't.Logf("3")'),
        GO_GREEN,
    ),
    go(
        "go sub-test deleted",
        Asked,
        "deleted",
        {
            "calc/calc.go": GO_BASE["calc/calc.go"].replace("a - b", "a"),
            **go_tests(
                '\tt.Run("small numbers", func(t *testing.T) {\n\t\tif Sub(3, 2) != 1 {\n\t\t\tt.Errorf("1")\n\t\t}\n\t})\n',
                "",
            ),
        },
        f"passed {GO_ADD}",
    ),
)

REAL = (*MARKS, *EDITS, *HOOKS, *SETTINGS, *CODES)
CHEATS = (*REAL, *NODE_CASES, *PLAYED)

# What no comparison of outcomes can see: the tests' own questions get the answers they want.
RESIDUE = (
    Case(
        name="equal to everything",
        base=BASE,
        change={
            "app/calc.py": "class Anything(int):\n    __eq__ = lambda self, other: True\n    __hash__ = int.__hash__\n\n\n"
            + swapped(CODE, ("return a + b", "return a + b if isinstance(a, list) else Anything()"))
        },
    ),
    Case(
        name="answers by heart",
        base=BASE,
        change={
            "app/calc.py": swapped(
                CODE,
                (
                    "return a + b",
                    "known = {(1, 2): 3, (2, 3): 5, (4, 4): 8}\n    return a + b if isinstance(a, list) else known.get((a, b), 0)",
                ),
            )
        },
    ),
)
