"""Canaries: tests of our own that are laid into a run; some must fail and some must pass.

They are called like the project's own tests and stand among them. Their names, their values and
their order are drawn for each run.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from lockgate.core.differential.runs import Canaries
from lockgate.core.differential.test_files import Runner

WORDS = 4  # of one name
VOCABULARY = 300  # words of the project's own tests that names are made of
_COMMON = (
    "after", "before", "both", "case", "changed", "empty", "every", "first", "given", "keeps",
    "large", "last", "length", "list", "missing", "name", "number", "order", "other", "plain",
    "result", "returns", "same", "second", "short", "simple", "small", "text", "total", "twice",
    "unknown", "value", "when", "with", "without", "zero",
)  # fmt: skip
_BINDINGS = ("check", "claim", "expected", "proof", "proved", "scenario", "sure", "verify")
_NAMES = re.compile(r"(?:def test_?|func Test|\b(?:it|test|describe)\s*\(\s*[\"'`])([^\"'`(\n]*)")
_WORD = re.compile(r"[A-Z]?[a-z]{2,11}")
_MAIN = re.compile(r"^if __name__\b", re.MULTILINE)
# Files in which a test of ours may not end as it must.
_ODD = re.compile(
    r"pytestmark|autouse|load_tests|__test__|set_?up_?module|import \*|^#.*coding[:=]|^//.*build",
    re.MULTILINE | re.IGNORECASE,
)


class CanaryFile(Struct, frozen=True):
    path: str
    text: str
    canaries: Canaries


class Habit(Struct, frozen=True, kw_only=True):
    """How a runner's test files look, and their tests that must fail and that must pass."""

    file: str = ""
    head: str = ""
    test: str
    fails: tuple[str, ...]
    good: str


class Lots(Struct):
    """Draws one thing after another; the same seed draws the same."""

    seed: str
    words: tuple[str, ...] = _COMMON
    taken: str = ""  # texts in which no name may stand
    count: int = 0
    names: list[str] = field(default_factory=list[str])

    def number(self, below: int) -> int:
        self.count += 1
        drawn = hashlib.sha256(f"{self.seed} {self.count}".encode()).digest()
        return int.from_bytes(drawn[:6], "big") % below

    def one(self, of: Sequence[str]) -> str:
        return of[self.number(len(of))]

    def name(self, glue: str, start: str = "") -> str:
        """A new one, which stands in no other."""
        while True:
            words = [self.one(self.words) for _ in range(WORDS)]
            capital = glue == "A"
            parts = [it.capitalize() for it in words] if capital else words
            name = start + ("" if capital else glue).join(parts)
            if name not in self.taken and not any(name in it or it in name for it in self.names):
                self.names.append(name)
                return name

    def shuffled(self, of: Iterable[str]) -> list[str]:
        return sorted(of, key=lambda _: self.number(1 << 32))


_CASES = Habit(
    file="test_FILE.py",
    head="import unittest\n\n\nclass CLASS(unittest.TestCase):",
    test="\n    def NAME(self):\n        BODY\n",
    fails=(
        "self.assertEqual(sum([ONE, TWO]), WRONG)",
        "self.assertTrue(sum([ONE, -ONE]))",
        "self.assertIn(WRONG, [ONE, TWO])",
        "self.assertIsNone(ONE)",
        "self.fail('ONE')",
        "raise ValueError('TWO')",
    ),
    good="self.assertEqual(sum([ONE, TWO]), BOTH)",
)
_FUNCTIONS = Habit(
    file="test_FILE.py",
    head="import pytest\n",
    test="\n\ndef NAME():\n    BODY\n",
    fails=(
        "assert sum([ONE, TWO]) == WRONG",
        "raise ValueError('TWO')",
        "pytest.fail('ONE')",
        "assert WRONG == pytest.approx(sum([ONE, TWO]))",
        "pytest.raises(ValueError, int, 'ONE')",
    ),
    good="assert sum([ONE, TWO]) == BOTH",
)
_EXPECTS = Habit(
    file="FILE.test.js",
    test='\nTEST("NAME", () => {\n  BODY\n});\n',
    fails=(
        "EXPECT([ONE, TWO].length).toBe(WRONG);",
        "EXPECT([ONE]).toEqual([WRONG]);",
        'JSON.parse("{ONE");',
    ),
    good="EXPECT(ONE + TWO).toBe(BOTH);",
)
_ASSERTS = Habit(
    file="FILE.test.mjs",
    head='import EXPECT from "node:assert";\nimport { test as TEST } from "node:test";\n',
    test=_EXPECTS.test,
    fails=(
        "EXPECT.equal(ONE + TWO, WRONG);",
        "EXPECT.deepStrictEqual([ONE], [WRONG]);",
        'JSON.parse("{ONE");',
    ),
    good="EXPECT.equal(ONE + TWO, BOTH);",
)
_GO = Habit(
    file="FILE_test.go",
    head='package PACKAGE\n\nimport "testing"\n',
    test="\nfunc NAME(t *testing.T) {\n\tBODY\n}\n",
    fails=('t.Errorf("%d", ONE+TWO)', 't.Fatal("ONE")'),
    good='t.Log("TWO")',
)
_IMPORTED = 'import { expect as EXPECT, test as TEST } from "vitest";\n'
_REQUIRED = 'const EXPECT = require("node:assert");\nconst TEST = require("node:test");\n'
_HABITS = {
    Runner.PYTEST: (_FUNCTIONS, _CASES),
    Runner.UNITTEST: (_CASES,),
    Runner.JEST: (_EXPECTS,),
    Runner.VITEST: (_EXPECTS,),
    Runner.NODE: (_ASSERTS,),
    Runner.GO: (_GO,),
}
_GLUES = {Runner.PYTEST: "_", Runner.UNITTEST: "_", Runner.GO: "A"}
_STARTS = {Runner.PYTEST: "test_", Runner.UNITTEST: "test_", Runner.GO: "Test"}


def lots(seed: str, texts: Iterable[str]) -> Lots:
    """`texts` are those of the tests of one tree."""
    every = tuple(texts)
    found = (_WORD.findall(it) for text in every for it in _NAMES.findall(text))
    words = dict.fromkeys(word.lower() for own in found for word in own)
    known = tuple(words)[:VOCABULARY]
    return Lots(seed, tuple(dict.fromkeys((*_COMMON, *known))), "\n".join(every))


def canary_file(runner: Runner, directory: str, drawn: Lots, package: str = "main") -> CanaryFile:
    """A file of its own, where the project's test files are."""
    habits = _HABITS[runner]
    made = [_written(runner, it, drawn, package) for it in habits]
    text = "\n".join(text for text, _ in made)
    name = habits[0].file.replace("FILE", "_".join(drawn.one(_COMMON) for _ in range(WORDS)))
    return CanaryFile(f"{directory}/{name}" if directory else name, text, _joined(made))


def with_canaries(runner: Runner, path: str, text: str, drawn: Lots) -> CanaryFile:
    """A script's own test file with canaries behind it, for each file is a world of its own."""
    added, canaries = _written(runner, _HABITS[runner][0], drawn, "", text)
    return CanaryFile(path, f"{text}\n{added}", canaries)


def may_host(path: str, text: str) -> bool:
    """Whether tests of ours can stand in this file and end as they must."""
    if path.endswith("_test.go"):
        return '"testing"' in text and not _ODD.search(text)
    return path.endswith(".py") and not _ODD.search(text)


def hosted(runner: Runner, hosts: Mapping[str, str], drawn: Lots) -> tuple[CanaryFile, ...]:
    """Canaries in some of the project's own files, which are path → text; drawn which."""
    texts = dict(hosts)
    found: dict[str, list[tuple[str, Canaries]]] = {}
    for habit in _HABITS[runner] if texts else ():
        path = drawn.one(sorted(texts))
        added, canaries = _written(runner, habit, drawn, "", texts[path])
        begin = _MAIN.search(texts[path]) if path.endswith(".py") else None
        cut = begin.start() if begin else len(texts[path])
        head, tail = texts[path][:cut].rstrip("\n"), texts[path][cut:]
        texts[path] = f"{head}\n\n\n{added}" + (f"\n\n{tail}" if tail else "")
        found.setdefault(path, []).append((added, canaries))
    return tuple(CanaryFile(path, texts[path], _in_host(made)) for path, made in found.items())


def _in_host(made: Sequence[tuple[str, Canaries]]) -> Canaries:
    every = _joined(made)
    return Canaries(every.must_fail, every.must_pass, (*every.must_fail, *every.must_pass))


def _joined(made: Sequence[tuple[str, Canaries]]) -> Canaries:
    fails = tuple(word for _, it in made for word in it.must_fail)
    return Canaries(fails, tuple(word for _, it in made for word in it.must_pass))


def _written(
    runner: Runner, habit: Habit, drawn: Lots, package: str, within: str = ""
) -> tuple[str, Canaries]:
    """The tests of one habit as text, in an order that is drawn."""
    glue, start = _GLUES.get(runner, " "), _STARTS.get(runner, "")
    names = {body: drawn.name(glue, start) for body in (*habit.fails, habit.good)}
    tests = (habit.test.replace("NAME", names[it]).replace("BODY", it) for it in habit.fails)
    good = habit.test.replace("NAME", names[habit.good]).replace("BODY", habit.good)
    bodies = "".join(_with_values(it, drawn) for it in drawn.shuffled((*tests, good)))
    head = _head(runner, habit, within).replace("PACKAGE", package)
    text = (head + bodies).replace("CLASS", drawn.name("A"))
    fails = tuple(names[it] for it in habit.fails)
    return _bound(runner, text, drawn, within), Canaries(fails, (names[habit.good],))


def _head(runner: Runner, habit: Habit, within: str) -> str:
    """What the file does not say already."""
    if runner is Runner.VITEST:
        return _IMPORTED
    if runner is Runner.NODE and "require(" in within and "import " not in within:
        return _REQUIRED
    if runner is Runner.GO and within:
        return ""
    module, _, rest = habit.head.partition("\n")
    known = re.search(rf"^{re.escape(module)}$", within, re.MULTILINE) if module else None
    return rest.lstrip("\n") if known and runner is not Runner.NODE else habit.head


def _with_values(test: str, drawn: Lots) -> str:
    one, two = 3 + drawn.number(90), 3 + drawn.number(90)
    wrong = one + two + 1 + drawn.number(9)
    values = {"ONE": one, "TWO": two, "BOTH": one + two, "WRONG": wrong}
    return re.sub("ONE|TWO|BOTH|WRONG", lambda it: str(values[it[0]]), test)


def _bound(runner: Runner, text: str, drawn: Lots, within: str) -> str:
    """Names for what is imported, which the file does not have."""
    if runner is Runner.JEST:
        return text.replace("EXPECT", "expect").replace("TEST(", "test(")
    free = [it for it in _BINDINGS if not re.search(rf"\b{it}\b", within)] or [*_BINDINGS]
    first = drawn.one(free)
    second = drawn.one([it for it in (*free, "tried") if it != first])
    return text.replace("EXPECT", first).replace("TEST", second)
