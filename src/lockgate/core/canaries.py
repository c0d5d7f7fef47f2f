"""Tests of our own that are laid into a run: some must fail and some must pass."""

from dataclasses import dataclass

from lockgate.core.test_paths import Runner
from lockgate.core.test_runs import Canaries


@dataclass(frozen=True, slots=True)
class CanaryFile:
    path: str
    text: str
    canaries: Canaries


@dataclass(frozen=True, slots=True)
class Habit:
    """How a runner's test files look; `package` and the words are filled in."""

    name: str
    text: str


_PYTEST = """\
def test_{fail}():
    assert sum([1, 2]) == 4


def test_{error}():
    raise ValueError("3")


def test_{good}():
    assert sum([1, 2]) == 3
"""

_UNITTEST = """\
import unittest


class Test{good}(unittest.TestCase):
    def test_{fail}(self):
        self.assertEqual(sum([1, 2]), 4)

    def test_{error}(self):
        raise ValueError("3")

    def test_{good}(self):
        self.assertEqual(sum([1, 2]), 3)
"""

_JAVASCRIPT = """\
{head}
test("{fail}", () => {{
  if ([1, 2].length !== 3) throw new Error("2");
}});
test("{error}", () => {{
  JSON.parse("{{");
}});
test("{good}", () => {{
  if ([1, 2].length !== 2) throw new Error("2");
}});
"""

_GO = """\
package {package}

import "testing"

func Test{fail}(t *testing.T) {{
	if len("ab") != 3 {{
		t.Errorf("2")
	}}
}}

func Test{error}(t *testing.T) {{
	t.Fatal("2")
}}

func Test{good}(t *testing.T) {{
	if len("ab") != 2 {{
		t.Errorf("2")
	}}
}}
"""

_HABITS = {
    Runner.PYTEST: Habit("test_{word}.py", _PYTEST),
    Runner.UNITTEST: Habit("test_{word}.py", _UNITTEST),
    Runner.JEST: Habit("{word}.test.js", _JAVASCRIPT.replace("{head}\n", "")),
    Runner.VITEST: Habit(
        "{word}.test.js", _JAVASCRIPT.replace("{head}", 'import {{ test }} from "vitest";')
    ),
    Runner.NODE: Habit(
        "{word}.test.mjs", _JAVASCRIPT.replace("{head}", 'import {{ test }} from "node:test";')
    ),
    Runner.GO: Habit("{word}_test.go", _GO),
}


def canary_file(runner: Runner, directory: str, nonce: str, package: str = "main") -> CanaryFile:
    """`nonce` is random letters and digits, so that no change can know the names."""
    habit = _HABITS[runner]
    fail, error, good = (f"X{letter}{nonce}x" for letter in "qzk")
    name = habit.name.format(word=f"x{nonce}")
    return CanaryFile(
        path=f"{directory}/{name}" if directory else name,
        text=habit.text.format(fail=fail, error=error, good=good, package=package),
        canaries=Canaries((fail, error), (good,)),
    )
