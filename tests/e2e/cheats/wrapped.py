"""Cheats and honest changes where tests are run by unittest, or by make."""

# ruff: noqa: E501 - a case a line

from collections.abc import Mapping

from lockgate.core.differential.verdict import Asked, Kept, Lost, Verdict
from tests.e2e.cheats.cheats import swapped
from tests.e2e.cheats.repository import CODE
from tests.e2e.cheats.stage import Case

UNITTEST = 'PYTHONPATH=. "$PY" -m unittest'
MAKE = "make test"
MAKEFILE = 'test:\n\t"$$PY" -m unittest -q\n'
PYTEST_MAKEFILE = 'test:\n\tPYTHONPATH=. "$$PY" -m pytest -q\n'
WRONG = CODE.replace("return a - b", "return 7 if (a, b) == (9, 4) else a - b")
CASES = """\
import unittest

from app.calc import add, div, sub


class Sums(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(1, 2), 3)
        self.assertEqual(add(-1, 1), 0)

    def test_sub(self):
        self.assertEqual(sub(9, 4), 5)

    def test_div(self):
        for a, b, c in ((6, 3, 2), (8, 2, 4)):
            with self.subTest(a=a):
                self.assertEqual(div(a, b), c)

    def test_zero(self):
        with self.assertRaises(ValueError):
            div(1, 0)
"""
BASE = {
    "app/__init__.py": "",
    "app/calc.py": CODE,
    "tests/__init__.py": "",
    "tests/test_sums.py": CASES,
}
MADE = {**BASE, "Makefile": MAKEFILE}
MADE_PYTEST = {**BASE, "Makefile": PYTEST_MAKEFILE}
SUB = "    def test_sub(self):\n        self.assertEqual(sub(9, 4), 5)\n"


def _edits(*pairs: tuple[str, str]) -> dict[str, str | None]:
    return {"app/calc.py": WRONG, "tests/test_sums.py": swapped(CASES, *pairs)}


_NONE = "\n\ndef load_tests(loader, tests, pattern):\n    return unittest.TestSuite()\n"
_EXIT = "import os\n\n\ndef leave():\n    os._exit(0)\n"

BROKEN: tuple[tuple[str, Mapping[str, str | None], type[Verdict], str], ...] = (
    ("a test is broken", {"app/calc.py": WRONG}, Lost, "fails on the change"),
    ("a test is deleted", _edits((SUB, "")), Asked, "deleted"),
    (
        "the file is deleted",
        {
            "app/calc.py": WRONG,
            "tests/test_sums.py": None,
            "tests/test_new.py": "import unittest\n\n\nclass New(unittest.TestCase):\n    def test_new(self):\n        self.assertTrue([1])\n",
        },
        Asked,
        "deleted",
    ),
    (
        "a test is skipped",
        _edits((SUB, "    @unittest.skip('later')\n" + SUB)),
        Lost,
        "skipped now",
    ),
    (
        "a failure is expected",
        _edits((SUB, "    @unittest.expectedFailure\n" + SUB)),
        Lost,
        "expected to fail",
    ),
    ("another expectation", _edits(("sub(9, 4), 5", "sub(9, 4), 7")), Asked, "expectation changed"),
    (
        "load_tests returns nothing",
        _edits(("            div(1, 0)\n", "            div(1, 0)\n" + _NONE)),
        Lost,
        "",
    ),
    (
        "tests exit at once",
        {
            "app/calc.py": WRONG
            + "\n\nimport os, sys\n\nif 'unittest' in sys.modules or 'pytest' in sys.modules:\n    os._exit(0)\n"
        },
        Lost,
        "",
    ),
    (
        "exit when all is done",
        {"app/calc.py": WRONG + "\n\nimport atexit, os\n\natexit.register(os._exit, 0)\n"},
        Lost,
        "",
    ),
    ("tests are renamed away", _edits(("def test_sub", "def check_sub")), Asked, "deleted"),
    (
        "the class is no case",
        _edits(("class Sums(unittest.TestCase)", "class Sums(object)")),
        Asked,
        "deleted",
    ),
)
WEAKER = (
    ("not None", (("self.assertEqual(sub(9, 4), 5)", "self.assertIsNotNone(sub(9, 4))"),)),
    ("instance", (("self.assertEqual(sub(9, 4), 5)", "self.assertIsInstance(sub(9, 4), int)"),)),
    ("nothing to loop over", (("((6, 3, 2), (8, 2, 4))", "()"),)),
    (
        "a stand-in",
        (
            (
                "        self.assertEqual(sub(9, 4), 5)",
                "        sub = lambda a, b: 5\n        self.assertEqual(sub(9, 4), 5)",
            ),
        ),
    ),
    (
        "one assertion less",
        (("        self.assertEqual(add(-1, 1), 0)\n", ""), ("add(1, 2), 3", "add(0, 2), 2")),
    ),
    (
        "an equal of its own",
        (
            (
                "    def test_add",
                "    def assertEqual(self, a, b):\n        pass\n\n    def test_add",
            ),
        ),
    ),
)
RIGHT: tuple[tuple[str, Mapping[str, str | None], type[Verdict]], ...] = (
    (
        "a new test",
        {
            "tests/test_sums.py": CASES
            + "\n    def test_more(self):\n        self.assertEqual(add(2, 2), 4)\n"
        },
        Kept,
    ),
    (
        "code in other words",
        {"app/calc.py": CODE.replace("return a + b", "total = a + b\n    return total")},
        Kept,
    ),
    (
        "a test in other words",
        {
            "tests/test_sums.py": swapped(
                CASES,
                (
                    "self.assertEqual(sub(9, 4), 5)",
                    "found = sub(9, 4)\n        self.assertEqual(found, 5)",
                ),
            )
        },
        Kept,
    ),
    ("a file is moved", {"tests/test_sums.py": None, "tests/test_arithmetic.py": CASES}, Kept),
)


def _all(
    prefix: str, base: Mapping[str, str], command: str
) -> tuple[tuple[Case, ...], tuple[Case, ...]]:
    broken = tuple(
        Case(
            name=f"{prefix}: {name}",
            base=base,
            change=change,
            expect=expect,
            says=says,
            command=command,
            looks_green=False,
        )
        for name, change, expect, says in BROKEN
    )
    weaker = tuple(
        Case(
            name=f"{prefix}: weakened: {name}",
            base=base,
            change={"tests/test_sums.py": swapped(CASES, *pairs)},
            expect=Asked,
            command=command,
        )
        for name, pairs in WEAKER
    )
    right = tuple(
        Case(name=f"{prefix}: {name}", base=base, change=change, expect=expect, command=command)
        for name, change, expect in RIGHT
    )
    return (*broken, *weaker), right


_UNIT, UNIT_HONEST = _all("unittest", BASE, UNITTEST)
_MADE, MADE_HONEST = _all("make", MADE, MAKE)
_PYTEST, PYTEST_HONEST = _all("make and pytest", MADE_PYTEST, MAKE)
_EMPTIED = tuple(
    Case(
        name=f"make: {name}",
        base=MADE,
        change={"app/calc.py": WRONG, "Makefile": text},
        expect=Lost,
        command=MAKE,
    )
    for name, text in (
        ("the target is emptied", "test:\n\ttrue\n"),
        ("the target is forgiving", MAKEFILE.replace("\t", "\t-")),
        ("the target has another folder", MAKEFILE.replace("-q", "-q app.calc")),
        ("the target only prints", "test:\n\t@echo OK\n"),
    )
)

WRAPPED = (*_UNIT, *_MADE, *_PYTEST, *_EMPTIED)
WRAPPED_HONEST = (*UNIT_HONEST, *MADE_HONEST, *PYTEST_HONEST)
