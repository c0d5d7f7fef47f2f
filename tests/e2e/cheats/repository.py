"""The small repositories that the cases change."""

CODE = '''\
"""Arithmetic."""


def add(a, b):
    return a + b


def sub(a, b):
    return a - b


def div(a, b):
    if b == 0:
        raise ValueError("division by zero")
    return a / b
'''

# `add` is wrong in one place each, so that one test fails: test_add, or test_total.
WRONG = CODE.replace("return a + b", "return 4 if (a, b) == (1, 2) else a + b")
WRONG_TOTAL = CODE.replace("return a + b", "return 9 if (a, b) == (4, 4) else a + b")

TESTS = '''\
"""Tests of the arithmetic."""

import pytest

from app.calc import add, div, sub


def test_add():
    assert add(1, 2) == 3


@pytest.mark.parametrize(("a", "b", "c"), [(0, 0, 0), (2, 3, 5), (-1, 1, 0)])
def test_add_many(a, b, c):
    assert add(a, b) == c


def test_sub():
    assert sub(3, 2) == 1
    assert sub(2, 3) == -1


def test_div():
    assert div(6, 3) == 2


def test_div_by_zero():
    with pytest.raises(ValueError):
        div(1, 0)
'''

CASES = """\
import unittest

from app.calc import add, sub


class CalcCase(unittest.TestCase):
    def test_total(self):
        self.assertEqual(add(4, 4), 8)

    def test_rest(self):
        self.assertEqual(sub(4, 4), 0)


class TestShapes:
    def test_sum_of_lists(self, numbers):
        assert add(numbers, [3]) == [1, 2, 3]
"""

CONFTEST = """\
import pytest


@pytest.fixture
def numbers():
    return [1, 2]
"""

PYPROJECT = """\
[project]
name = "app"
version = "1"

[tool.pytest.ini_options]
testpaths = ["tests"]
"""

BASE = {
    "app/__init__.py": "",
    "app/calc.py": CODE,
    "tests/conftest.py": CONFTEST,
    "tests/test_calc.py": TESTS,
    "tests/test_cases.py": CASES,
    "pyproject.toml": PYPROJECT,
}

# Without a table for pytest, so that any of its files may be the one that counts.
PLAIN = {**BASE, "pyproject.toml": '[project]\nname = "app"\nversion = "1"\n'}

# Expectations in a file beside the tests.
DATA = {
    **BASE,
    "tests/data/sums.json": "[[1, 2, 3], [5, 5, 10]]\n",
    "tests/test_data.py": (
        "import json\nfrom pathlib import Path\n\nfrom app.calc import add\n\n\n"
        "def test_sums():\n"
        '    rows = json.loads((Path(__file__).parent / "data/sums.json").read_text())\n'
        "    for a, b, c in rows:\n        assert add(a, b) == c\n"
    ),
}

# --- node ---------------------------------------------------------------------------------------

SCRIPT = """\
export function add(a, b) {
  return a + b;
}

export function sub(a, b) {
  return a - b;
}
"""

WRONG_SCRIPT = SCRIPT.replace("return a + b;", "return a + b + 1;")

SCRIPT_TESTS = """\
import assert from "node:assert";
import { describe, it, test } from "node:test";
import { add, sub } from "./calc.mjs";

test("adds", () => {
  assert.equal(add(1, 2), 3);
});

describe("sub", () => {
  it("subtracts", () => {
    assert.equal(sub(3, 2), 1);
  });
});
"""

NODE_BASE = {
    "calc.mjs": SCRIPT,
    "calc.test.mjs": SCRIPT_TESTS,
    "package.json": '{"name": "calc", "scripts": {"test": "node --test"}}\n',
}

# --- jest and go, whose outcomes are played -----------------------------------------------------

JEST_TESTS = """\
const { add, sub } = require("./calc");

describe("calc", () => {
  it("adds", () => {
    expect(add(1, 2)).toBe(3);
  });
  it("subtracts", () => {
    expect(sub(3, 2)).toBe(1);
  });
});
"""

JEST_BASE = {
    "src/calc.js": "exports.add = (a, b) => a + b;\nexports.sub = (a, b) => a - b;\n",
    "src/calc.test.js": JEST_TESTS,
    "package.json": '{"name": "calc", "scripts": {"test": "jest"}, "jest": {}}\n',
}
WRONG_JEST = "exports.add = (a, b) => a + b + 1;\nexports.sub = (a, b) => a - b;\n"

GO_TESTS = """\
package calc

import "testing"

func TestAdd(t *testing.T) {
	if Add(1, 2) != 3 {
		t.Errorf("3")
	}
}

func TestSub(t *testing.T) {
	t.Run("small numbers", func(t *testing.T) {
		if Sub(3, 2) != 1 {
			t.Errorf("1")
		}
	})
}
"""

GO_BASE = {
    "go.mod": "module example.com/calc\n",
    "calc/calc.go": (
        "package calc\n\nfunc Add(a, b int) int { return a + b }\n\n"
        "func Sub(a, b int) int { return a - b }\n"
    ),
    "calc/calc_test.go": GO_TESTS,
}
WRONG_GO = GO_BASE["calc/calc.go"].replace("a + b", "a + b + 1")
