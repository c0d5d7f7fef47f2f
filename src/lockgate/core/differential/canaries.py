"""Canaries: tests of our own that are laid into a run; some must fail and some must pass."""

from msgspec import Struct

from lockgate.core.differential.runs import Canaries
from lockgate.core.differential.test_files import Runner


class CanaryFile(Struct, frozen=True):
    path: str
    text: str
    canaries: Canaries


class Habit(Struct, frozen=True):
    """How a runner's test files look, and their tests that must fail and that must pass."""

    file: str
    head: str
    test: str
    must_fail: tuple[str, ...]
    must_pass: str


_FUNCTION = "\n\ndef test_NAME():\n    BODY\n"
_METHOD = "\n    def test_NAME(self):\n        BODY\n"
_SCRIPT = '\nTEST("NAME", () => {\n  BODY\n});\n'
_GO = "\nfunc TestNAME(t *testing.T) {\n\tBODY\n}\n"
_CASES = (
    "self.assertEqual(sum([1, 2]), 4)",
    "self.assertTrue(sum([]))",
    "self.assertIn(3, [1, 2])",
    "self.assertIsNone(3)",
    "self.fail('3')",
    "raise ValueError('3')",
)
_EXPECTS = (
    ("expect([1, 2].length).toBe(3);", "expect([1]).toEqual([2]);", 'JSON.parse("{");'),
    "expect([1, 2].length).toBe(2);",
)
_REQUIRED = 'const aWORD = require("node:assert");\nconst tWORD = require("node:test");\n'
_METHODS = "\n\nclass TestWORD(unittest.TestCase):"

_HABITS = {
    Runner.PYTEST: Habit(
        "test_WORD.py",
        "import pytest\n",
        _FUNCTION,
        (
            "assert sum([1, 2]) == 4",
            "raise ValueError('3')",
            "pytest.fail('3')",
            "assert 1.5 == pytest.approx(sum([1, 2]))",
            "pytest.raises(ValueError, int, '3')",
        ),
        "assert sum([1, 2]) == 3",
    ),
    Runner.UNITTEST: Habit(
        "test_WORD.py",
        f"import unittest\n{_METHODS}",
        _METHOD,
        _CASES,
        "self.assertEqual(sum([1, 2]), 3)",
    ),
    Runner.JEST: Habit("WORD.test.js", "", _SCRIPT.replace("TEST", "test"), *_EXPECTS),
    Runner.VITEST: Habit(
        "WORD.test.js",
        'import { expect as eWORD, test as tWORD } from "vitest";\n',
        _SCRIPT.replace("TEST", "tWORD"),
        (tuple(it.replace("expect", "eWORD") for it in _EXPECTS[0])),
        _EXPECTS[1].replace("expect", "eWORD"),
    ),
    Runner.NODE: Habit(
        "WORD.test.mjs",
        'import aWORD from "node:assert";\nimport { test as tWORD } from "node:test";\n',
        _SCRIPT.replace("TEST", "tWORD"),
        ("aWORD.equal(2, 3);", "aWORD.deepStrictEqual([1], [2]);", 'JSON.parse("{");'),
        "aWORD.equal([1, 2].length, 2);",
    ),
    Runner.GO: Habit(
        "WORD_test.go",
        'package PACKAGE\n\nimport "testing"\n',
        _GO,
        ('t.Errorf("%d", len("ab"))', 't.Fatal("2")'),
        't.Log("2")',
    ),
}


def canary_file(runner: Runner, directory: str, nonce: str, package: str = "main") -> CanaryFile:
    """`nonce` is random letters and digits, so that no change can know the names."""
    habit = _HABITS[runner]
    fails, good = _names(habit, "q", nonce), f"Xk{nonce}x"
    text = habit.head + _tests(habit, (*fails, good))
    canaries = Canaries(fails, (good,))
    if runner is Runner.PYTEST:
        cases = _HABITS[Runner.UNITTEST]
        more, well = _names(cases, "z", nonce), f"Xm{nonce}x"
        text = f"import unittest\n\n{text}{_METHODS}{_tests(cases, (*more, well))}"
        canaries = Canaries((*fails, *more), (good, well))
    name = _filled(habit.file, nonce, package)
    path = f"{directory}/{name}" if directory else name
    return CanaryFile(path, _filled(text, nonce, package), canaries)


def with_canaries(runner: Runner, path: str, text: str, nonce: str) -> CanaryFile:
    """A script's own test file with canaries behind it, for each file is a world of its own."""
    habit = _HABITS[runner]
    required = runner is Runner.NODE and "require(" in text and "import " not in text
    head = _REQUIRED if required else habit.head
    fails, good = _names(habit, "q", nonce), f"Xk{nonce}x"
    added = _filled(head + _tests(habit, (*fails, good)), nonce, "")
    return CanaryFile(path, f"{text}\n{added}", Canaries(fails, (good,)))


def _names(habit: Habit, letter: str, nonce: str) -> tuple[str, ...]:
    return tuple(f"X{number}{letter}{nonce}x" for number in range(len(habit.must_fail)))


def _filled(text: str, nonce: str, package: str) -> str:
    return text.replace("WORD", f"x{nonce}").replace("PACKAGE", package)


def _tests(habit: Habit, names: tuple[str, ...]) -> str:
    bodies = (*habit.must_fail, habit.must_pass)
    pairs = zip(names, bodies, strict=True)
    return "".join(habit.test.replace("NAME", name).replace("BODY", it) for name, it in pairs)
