"""Changes as honest people make them: they pass, or ask a human about a promise taken back."""

# ruff: noqa: E501 - whole files stand in the cases, each in one string

from lockgate.core.differential.verdict import Asked
from tests.e2e.cheats.cheats import (
    ADD,
    GO,
    GO_ADD,
    GO_GREEN,
    GO_SUB,
    JEST,
    JEST_GREEN,
    JS,
    JS_SUB,
    swapped,
)
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
    SCRIPT,
    SCRIPT_TESTS,
    TESTS,
)
from tests.e2e.cheats.stage import NODE, PYTEST, Case, Played

MUL = "\n\ndef mul(a, b):\n    return a * b\n"
MUL_TEST = "from app.calc import mul\n\n\ndef test_mul():\n    assert mul(2, 3) == 6\n"
FIXED = swapped(CODE, ("return a / b", "return a // b if a % b == 0 else a / b"))
BROKEN = {**BASE, "tests/test_broken.py": "def test_broken():\n    assert 1 == 2\n"}
FLAKY = {
    **BASE,
    "tests/test_flaky.py": (
        "import os\n\n\ndef test_flaky():\n"
        "    assert not [it for it in os.listdir('tests') if it.startswith('test_x')]\n"
    ),
}
COUNTED = swapped(CODE, ("def add(a, b):", "COLOURS = ('red', 'green')\n\n\ndef add(a, b):"))
MANY = TESTS[TESTS.index("@pytest.mark.parametrize") : TESTS.index("def test_sub")]


def tests(*pairs: tuple[str, str]) -> dict[str, str]:
    return {"tests/test_calc.py": swapped(TESTS, *pairs)}


HONEST = (
    Case(name="nothing but prose", base=BASE, change={"README.md": "# calc\n"}),
    Case(
        name="refactored code",
        base=BASE,
        change={
            "app/calc.py": swapped(
                CODE, ("return a + b", "total = a\n    total = total + b\n    return total")
            )
        },
    ),
    Case(
        name="code moved to another module",
        base=BASE,
        change={
            "app/calc.py": "from app.core import add, div, sub\n\n__all__ = ['add', 'div', 'sub']\n",
            "app/core.py": CODE,
        },
    ),
    Case(
        name="feature with tests",
        base=BASE,
        change={"app/calc.py": CODE + MUL, "tests/test_mul.py": MUL_TEST},
    ),
    Case(
        name="feature with a test in the same file",
        base=BASE,
        change={
            "app/calc.py": CODE + MUL,
            **tests(
                ("import add, div, sub", "import add, div, mul, sub"),
                (ADD, ADD + "\n\ndef test_mul():\n    assert mul(2, 3) == 6\n"),
            ),
        },
    ),
    Case(name="feature without tests", base=BASE, change={"app/calc.py": CODE + MUL}),
    Case(
        name="fix with a test",
        base=BASE,
        change={
            "app/calc.py": FIXED,
            "tests/test_exact.py": "from app.calc import div\n\n\ndef test_exact():\n    assert isinstance(div(6, 3), int)\n",
        },
    ),
    Case(
        name="more tests for what is there",
        base=BASE,
        says="proves nothing",
        change={
            "tests/test_more.py": "from app.calc import sub\n\n\ndef test_sub_zero():\n    assert sub(1, 0) == 1\n"
        },
    ),
    Case(
        name="test renamed",
        base=BASE,
        change=tests(("def test_add():", "def test_two_numbers_are_added():")),
    ),
    Case(
        name="tests renamed with parameters",
        base=BASE,
        change=tests(("def test_add_many(", "def test_sums(")),
    ),
    Case(
        name="test moved to another file",
        base=BASE,
        change={**tests((ADD, "")), "tests/test_add.py": "from app.calc import add\n\n\n" + ADD},
    ),
    Case(
        name="test file renamed",
        base=BASE,
        change={"tests/test_calc.py": None, "tests/test_arithmetic.py": TESTS},
    ),
    Case(
        name="test file moved down",
        base=BASE,
        change={"tests/test_calc.py": None, "tests/unit/test_calc.py": TESTS},
    ),
    Case(
        name="test class renamed",
        base=BASE,
        change={"tests/test_cases.py": swapped(CASES, ("class CalcCase", "class ArithmeticCase"))},
    ),
    Case(
        name="functions put into a class",
        base=BASE,
        change={"tests/test_cases.py": swapped(CASES, ("class TestShapes:", "class TestLists:"))},
    ),
    Case(
        name="comments and docstrings",
        base=BASE,
        change=tests(
            (
                ADD,
                'def test_add():\n    """Adds."""\n    # one and two\n    assert add(1, 2) == 3\n',
            )
        ),
    ),
    Case(
        name="reformatted tests",
        base=BASE,
        change=tests(("assert add(1, 2) == 3", "assert (\n        add(1, 2)\n        == 3\n    )")),
    ),
    Case(
        name="stronger test",
        base=BASE,
        change=tests(("assert add(1, 2) == 3", "assert add(1, 2) == 3\n    assert add(0, 0) == 0")),
    ),
    Case(
        name="checks moved to a helper",
        base=BASE,
        change=tests(
            (
                ADD,
                "def adds(a, b, c):\n    assert add(a, b) == c\n\n\ndef test_add():\n    adds(1, 2, 3)\n",
            )
        ),
    ),
    Case(
        name="now with parameters",
        base=BASE,
        change=tests(
            (
                ADD,
                '@pytest.mark.parametrize("c", [3])\ndef test_add(c):\n    assert add(1, 2) == c\n',
            )
        ),
    ),
    Case(
        name="now without parameters",
        base=BASE,
        change=tests(
            (
                MANY,
                "def test_add_many():\n    for a, b, c in [(0, 0, 0), (2, 3, 5)]:\n        assert add(a, b) == c\n\n\n",
            )
        ),
    ),
    Case(name="one case more", base=BASE, change=tests(("(2, 3, 5)", "(2, 3, 5), (9, 9, 18)"))),
    Case(
        name="fixture added",
        base=BASE,
        change={
            "tests/conftest.py": CONFTEST + "\n\n@pytest.fixture\ndef pair():\n    return 1, 2\n",
            "tests/test_pair.py": "from app.calc import add\n\n\ndef test_pair(pair):\n    assert add(*pair) == 3\n",
        },
    ),
    Case(
        name="fixture refactored",
        base=BASE,
        change={"tests/conftest.py": CONFTEST.replace("return [1, 2]", "return list(range(1, 3))")},
    ),
    Case(
        name="marker registered",
        base=BASE,
        change={
            "pyproject.toml": PYPROJECT + 'markers = ["fast: quick"]\n',
            **tests((ADD, "@pytest.mark.fast\n" + ADD)),
        },
    ),
    Case(
        name="version bumped",
        base=BASE,
        change={"pyproject.toml": PYPROJECT.replace('version = "1"', 'version = "2"')},
    ),
    Case(
        name="pytest configured for the first time",
        base=PLAIN,
        says="testpaths",
        change={"pyproject.toml": PYPROJECT},
    ),
    Case(
        name="hook that only prints",
        base=BASE,
        says="pytest_report_header",
        change={
            "tests/conftest.py": CONFTEST + "\n\ndef pytest_report_header():\n    return 'calc'\n"
        },
    ),
    Case(name="red on base stays red", base=BROKEN, change={"app/calc.py": CODE + MUL}),
    Case(name="red on base is deleted", base=BROKEN, change={"tests/test_broken.py": None}),
    Case(
        name="red on base is mended",
        base=BROKEN,
        change={"tests/test_broken.py": "def test_broken():\n    assert 2 == 2\n"},
    ),
    Case(
        name="flaky on base", base=FLAKY, says="flaky on base", change={"app/calc.py": CODE + MUL}
    ),
    Case(
        name="first tests of a repository",
        base={"app/__init__.py": "", "app/calc.py": CODE},
        change={
            "tests/test_sub.py": "from app.calc import sub\n\n\ndef test_sub():\n    assert sub(3, 2) == 1\n"
        },
    ),
    Case(name="test data added", base=DATA, change={"tests/data/more.json": "[]\n"}),
    Case(
        name="unittest turned into functions",
        base=BASE,
        change={
            "tests/test_cases.py": swapped(
                CASES, ("self.assertEqual(sub(4, 4), 0)", "assert sub(4, 4) == 0")
            )
        },
    ),
    Case(
        name="new test that is skipped here",
        base=BASE,
        says="new test does not run",
        change={
            "tests/test_other.py": "import pytest\n\n\n@pytest.mark.skip('no such machine')\ndef test_other():\n    assert 1\n"
        },
    ),
    Case(
        name="script of the command tidied",
        base={**BASE, "check.sh": PYTEST + "\n"},
        command="sh check.sh",
        change={"check.sh": "# all tests\nset -e\n" + PYTEST + "\n"},
    ),
    Case(
        name="node feature",
        base=NODE_BASE,
        command=NODE,
        change={
            "calc.mjs": SCRIPT + "\nexport const mul = (a, b) => a * b;\n",
            "mul.test.mjs": 'import assert from "node:assert";\nimport { test } from "node:test";\nimport { mul } from "./calc.mjs";\n\ntest("multiplies", () => assert.equal(mul(2, 3), 6));\n',
        },
    ),
    Case(
        name="node test renamed",
        base=NODE_BASE,
        command=NODE,
        change={"calc.test.mjs": swapped(SCRIPT_TESTS, ('"adds"', '"adds two numbers"'))},
    ),
    Case(
        name="node refactored",
        base=NODE_BASE,
        command=NODE,
        change={
            "calc.mjs": SCRIPT.replace("return a + b;", "const total = a + b;\n  return total;")
        },
    ),
    Case(
        name="jest test renamed",
        base=JEST_BASE,
        command=JEST,
        change={"src/calc.test.js": swapped(JEST_TESTS, ('"adds"', '"adds two numbers"'))},
        played=Played(
            base=JEST_GREEN,
            base_on_candidate=JEST_GREEN,
            candidate=f"passed calc adds two numbers::calc adds two numbers\npassed {JS_SUB}",
        ),
    ),
    Case(
        name="go test renamed",
        base=GO_BASE,
        command=GO,
        change={"calc/calc_test.go": swapped(GO_TESTS, ("TestAdd", "TestSum"))},
        played=Played(
            base=GO_GREEN,
            base_on_candidate=GO_GREEN,
            candidate=f"passed example.com/calc/calc/TestSum\npassed {GO_SUB}",
        ),
    ),
    Case(
        name="go sub-test renamed",
        base=GO_BASE,
        command=GO,
        change={"calc/calc_test.go": swapped(GO_TESTS, ("small numbers", "little numbers"))},
        played=Played(
            base=GO_GREEN,
            base_on_candidate=GO_GREEN,
            candidate=f"passed {GO_ADD}\npassed example.com/calc/calc/TestSub/little_numbers",
        ),
    ),
)

QUESTIONS = (
    Case(
        name="one check fewer",
        base=BASE,
        expect=Asked,
        says="notice less than base's",
        change=tests(("    assert sub(2, 3) == -1\n", "")),
    ),
    Case(
        name="feature removed with its tests",
        base=BASE,
        expect=Asked,
        says="deleted: tests.test_calc::test_div",
        change={
            "app/calc.py": CODE[: CODE.index("\n\ndef div")],
            "tests/test_calc.py": swapped(
                TESTS[: TESTS.index("\n\ndef test_div()")], ("add, div, sub", "add, sub")
            ),
        },
    ),
    Case(
        name="behaviour changed with its test",
        base=BASE,
        expect=Asked,
        says="expectation changed",
        change={
            "app/calc.py": swapped(CODE, ("ValueError", "ZeroDivisionError")),
            **tests(("raises(ValueError)", "raises(ZeroDivisionError)")),
        },
    ),
    Case(
        name="fixture changed with the code",
        base=BASE,
        expect=Asked,
        says="tests/conftest.py",
        change={
            "app/calc.py": swapped(
                CODE, ("return a + b", "return [*a, *b] if isinstance(a, tuple) else int(a) + b")
            ),
            "tests/conftest.py": CONFTEST.replace("[1, 2]", "(1, 2)"),
        },
    ),
    Case(
        name="case gone with the code",
        base={
            **BASE,
            "app/calc.py": COUNTED,
            "tests/test_colours.py": "import pytest\n\nfrom app.calc import COLOURS\n\n\n@pytest.mark.parametrize('it', COLOURS)\ndef test_colour(it):\n    assert it.islower()\n",
        },
        expect=Asked,
        says="deleted: tests.test_colours::test_colour[red]",
        change={"app/calc.py": COUNTED.replace("('red', 'green')", "('green',)")},
    ),
    Case(
        name="jest test deleted",
        base=JEST_BASE,
        command=JEST,
        expect=Asked,
        says="deleted",
        change={
            "src/calc.test.js": swapped(
                JEST_TESTS, ('it("adds", () => {\n    expect(add(1, 2)).toBe(3);\n  });\n', "")
            )
        },
        played=Played(
            base=JEST_GREEN,
            base_on_candidate=f"passed {JS}\npassed {JS_SUB}",
            candidate=f"passed {JS_SUB}",
        ),
    ),
)
