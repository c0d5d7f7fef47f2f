"""Honest work on tests: what passes, and what a human is asked about once; nothing is refused."""

# ruff: noqa: E501 - a case a line

from lockgate.core.differential.verdict import Asked
from tests.e2e.cheats.cheats import ADD, MARK, swapped
from tests.e2e.cheats.repository import BASE, CASES, CODE, CONFTEST, PYPROJECT, TESTS
from tests.e2e.cheats.stage import Case

_CASES = "[(0, 0, 0), (2, 3, 5), (-1, 1, 0)]"
_HEAD, _TAIL = TESTS.split("def test_sub():")
_SUB = "def test_sub():" + _TAIL
_IMPORTS = "import pytest\n\nfrom app.calc import add, div, sub\n\n\n"
_SLOW = (
    "\n\ndef pytest_addoption(parser):\n    parser.addoption('--slow', action='store_true')\n\n\n"
    "def pytest_collection_modifyitems(config, items):\n"
    "    if not config.getoption('--slow'):\n"
    "        for item in items:\n            if 'slow' in item.keywords:\n"
    "                item.add_marker(pytest.mark.skip(reason='needs --slow'))\n"
)
_JOINED = (
    '@pytest.mark.parametrize(("a", "b", "c"), [(3, 2, 1), (2, 3, -1)])\n'
    "def test_sub(a, b, c):\n    assert sub(a, b) == c\n"
)
_SNAPPED = {
    **BASE,
    "app/page.py": "def page():\n    return 'one\\ntwo\\n'\n",
    "tests/__snapshots__/page.txt": "one\ntwo\n",
    "tests/test_page.py": "from pathlib import Path\n\nfrom app.page import page\n\n\ndef test_page():\n    assert page() == (Path(__file__).parent / '__snapshots__/page.txt').read_text()\n",
}
_IN_SRC = {
    "app/__init__.py": None,
    "app/calc.py": None,
    "src/app/__init__.py": "",
    "src/app/calc.py": CODE,
}


def _calc(*pairs: tuple[str, str]) -> dict[str, str | None]:
    return {"tests/test_calc.py": swapped(TESTS, *pairs)}


REFACTORED = (
    Case(
        name="refactored: readable ids",
        base=BASE,
        change=_calc((_CASES, _CASES + ', ids=["nothing", "plain", "negative"]')),
    ),
    Case(
        name="refactored: ids by param",
        base=BASE,
        change=_calc(
            (
                _CASES,
                "[pytest.param(0, 0, 0, id='nothing'), pytest.param(2, 3, 5, id='plain'), pytest.param(-1, 1, 0, id='minus')]",
            )
        ),
    ),
    Case(
        name="refactored: test file split",
        base=BASE,
        change={"tests/test_calc.py": _HEAD.rstrip() + "\n", "tests/test_sub.py": _IMPORTS + _SUB},
    ),
    Case(
        name="refactored: test file moved",
        base=BASE,
        change={"tests/test_calc.py": None, "tests/unit/test_calc.py": TESTS},
    ),
    Case(
        name="refactored: module split, names kept",
        base=BASE,
        change={
            "app/calc.py": "from app.less import div, sub\nfrom app.more import add\n\n__all__ = ['add', 'div', 'sub']\n",
            "app/more.py": CODE.split("\n\n\ndef sub")[0] + "\n",
            "app/less.py": "def sub" + CODE.split("\n\n\ndef sub")[1],
        },
    ),
    Case(
        name="refactored: function into a class",
        base=BASE,
        change=_calc(
            (ADD, "class TestAdd:\n    def test_add(self):\n        assert add(1, 2) == 3\n")
        ),
    ),
    Case(
        name="refactored: renamed and reworded",
        base=BASE,
        change=_calc(
            (
                ADD,
                "def test_adds_one_and_two():\n    result = add(1, 2)\n    assert add(1, 2) == 3\n    assert result\n",
            )
        ),
    ),
    Case(
        name="refactored: unittest into functions",
        base=BASE,
        change={
            "tests/test_cases.py": "from app.calc import add, sub\n\n\ndef test_total():\n    assert add(4, 4) == 8\n\n\ndef test_rest():\n    assert sub(4, 4) == 0\n\n\nclass TestShapes:\n    def test_sum_of_lists(self, numbers):\n        assert add(numbers, [3]) == [1, 2, 3]\n"
        },
    ),
    Case(
        name="refactored: functions into unittest",
        base=BASE,
        change=_calc(
            (
                "def test_div():\n    assert div(6, 3) == 2\n",
                "class DivCase(unittest.TestCase):\n    def test_div(self):\n        self.assertEqual(div(6, 3), 2)\n",
            ),
            ("import pytest\n", "import unittest\n\nimport pytest\n"),
        ),
    ),
    Case(
        name="refactored: sides swapped",
        base=BASE,
        change=_calc(("assert sub(3, 2) == 1", "assert 1 == sub(3, 2)")),
    ),
    Case(
        name="refactored: a name for the result",
        base=BASE,
        change=_calc(("assert sub(3, 2) == 1", "found = sub(3, 2)\n    assert found == 1")),
    ),
    Case(
        name="refactored: a message for the assertion",
        base=BASE,
        change=_calc(("assert sub(3, 2) == 1", "assert sub(3, 2) == 1, 'three less two'")),
    ),
    Case(
        name="refactored: a loop over rows",
        base=BASE,
        change=_calc(
            (
                "    assert sub(3, 2) == 1\n    assert sub(2, 3) == -1\n",
                "    for a, b, c in ((3, 2, 1), (2, 3, -1)):\n        assert sub(a, b) == c\n",
            )
        ),
    ),
    Case(
        name="refactored: a fixture for a value",
        base=BASE,
        change=_calc(
            (
                "def test_div():\n    assert div(6, 3) == 2\n",
                "@pytest.fixture\ndef six():\n    return 6\n\n\ndef test_div(six):\n    assert div(six, 3) == 2\n",
            )
        ),
    ),
    Case(
        name="refactored: types in tests",
        base=BASE,
        change=_calc(
            ("def test_add():", "def test_add() -> None:"),
            ("def test_div():", "def test_div() -> None:"),
        ),
    ),
    Case(
        name="refactored: import of the module",
        base=BASE,
        change=_calc(
            (
                "from app.calc import add, div, sub",
                "from app import calc\nfrom app.calc import add, div, sub",
            ),
            ("assert div(6, 3) == 2", "assert calc.div(6, 3) == 2"),
        ),
    ),
    Case(
        name="refactored: error's text checked too",
        base=BASE,
        change=_calc(("pytest.raises(ValueError)", 'pytest.raises(ValueError, match="zero")')),
    ),
    Case(
        name="refactored: helper moved to conftest",
        base=BASE,
        change={
            "tests/conftest.py": CONFTEST
            + "\n\n@pytest.fixture\ndef same():\n    def check(found, wanted):\n        assert found == wanted\n\n    return check\n",
            **_calc(
                (
                    "def test_div():\n    assert div(6, 3) == 2\n",
                    "def test_div(same):\n    same(div(6, 3), 2)\n",
                )
            ),
        },
    ),
    Case(
        name="refactored: more cases, ids too",
        base=BASE,
        change=_calc((_CASES, "[(0, 0, 0), (2, 3, 5), (-1, 1, 0), (5, 5, 10)], ids=str")),
    ),
    Case(
        name="refactored: code and tests reformatted",
        base=BASE,
        change={
            "app/calc.py": CODE.replace("return a + b", "return (\n        a + b\n    )"),
            **_calc(("assert add(1, 2) == 3", "assert (\n        add(1, 2) == 3\n    )")),
        },
    ),
)

ASKED_ONCE = (
    Case(
        name="refactored: slow behind an option",
        base=BASE,
        expect=Asked,
        says="is skipped now; as base has it, it passes",
        change={
            "tests/conftest.py": CONFTEST + _SLOW,
            **_calc((ADD, "@pytest.mark.slow\n" + ADD)),
            "pyproject.toml": PYPROJECT + 'markers = ["slow: takes long"]\n',
        },
    ),
    Case(
        name="refactored: slow left out by settings",
        base=BASE,
        expect=Asked,
        says="is not run any more; as base has it, it passes",
        change={
            **_calc((ADD, "@pytest.mark.slow\n" + ADD)),
            "pyproject.toml": PYPROJECT
            + 'markers = ["slow: takes long"]\naddopts = "-m \'not slow\'"\n',
        },
    ),
    Case(
        name="refactored: snapshot with its code",
        base=_SNAPPED,
        expect=Asked,
        says="two → three",
        change={
            "app/page.py": "def page():\n    return 'one\\nthree\\n'\n",
            "tests/__snapshots__/page.txt": "one\nthree\n",
        },
    ),
    Case(
        name="refactored: src layout",
        base=BASE,
        expect=Asked,
        says="src",
        change={**_IN_SRC, "pyproject.toml": PYPROJECT + 'pythonpath = ["src"]\n'},
    ),
    Case(
        name="refactored: module split, names gone",
        base=BASE,
        expect=Asked,
        says="changed test files",
        change={
            "app/calc.py": None,
            "app/sums.py": CODE,
            "tests/test_calc.py": TESTS.replace("app.calc", "app.sums"),
            "tests/test_cases.py": CASES.replace("app.calc", "app.sums"),
        },
    ),
    Case(
        name="refactored: joined into one with parameters",
        base=BASE,
        expect=Asked,
        says="successor",
        change=_calc(
            ("def test_div():\n    assert div(6, 3) == 2\n", ""),
            (ADD, ""),
            (
                MARK,
                '@pytest.mark.parametrize(("call", "a", "b", "c"), [(add, 1, 2, 3), (div, 6, 3, 2)])\ndef test_add_and_div(call, a, b, c):\n    assert call(a, b) == c\n\n\n'
                + MARK,
            ),
        ),
    ),
    Case(
        name="refactored: test reworked under another name",
        base=BASE,
        expect=Asked,
        says="looks like its successor",
        change=_calc(
            (
                "def test_div():\n    assert div(6, 3) == 2\n",
                "def test_div_of_six():\n    assert div(6, 3) == div(4, 2)\n",
            )
        ),
    ),
)
