"""Changes that only weaken a test, so that a later change can break what nothing tests any more.

Every test passes on both sides of each of them; what is lost shows only by planted faults.
"""

# ruff: noqa: E501 - whole files stand in the cases, each in one string

from collections.abc import Mapping

from msgspec.structs import replace

from lockgate.core.differential.verdict import Asked, Kept
from tests.e2e.cheats.cheats import ADD, GO, JEST, swapped
from tests.e2e.cheats.repository import (
    BASE,
    CASES,
    CONFTEST,
    DATA,
    GO_BASE,
    GO_TESTS,
    JEST_BASE,
    JEST_TESTS,
    NODE_BASE,
    SCRIPT_TESTS,
    TESTS,
)
from tests.e2e.cheats.stage import NODE, Case

LESS = "notice less than base's"
MANY = "    assert add(a, b) == c\n"
SUB = "    assert sub(3, 2) == 1\n    assert sub(2, 3) == -1\n"
DIV = "    assert div(6, 3) == 2\n"

# A helper beside the tests, and a text that is compared with a file.
HELPED = {
    **BASE,
    "tests/__init__.py": "",
    "tests/helpers.py": "def same(found, wanted):\n    assert found == wanted\n",
    "tests/test_helped.py": (
        "from app.calc import add, sub\nfrom tests.helpers import same\n\n\n"
        "def test_sums():\n    same(add(1, 2), 3)\n    same(sub(5, 2), 3)\n"
    ),
}
GOLDEN = {
    **BASE,
    "app/page.py": (
        "def page(names):\n    lines = ['# Names']\n    for name in sorted(names):\n"
        "        lines.append(f'- {name.title()}')\n    return '\\n'.join(lines) + '\\n'\n"
    ),
    "tests/golden/page.md": "# Names\n- Ann\n- Bob\n",
    "tests/test_page.py": (
        "from pathlib import Path\n\nfrom app.page import page\n\n"
        "GOLDEN = Path(__file__).parent / 'golden/page.md'\n\n\n"
        "def test_page():\n"
        "    for line in GOLDEN.read_text().splitlines():\n"
        "        assert line in page(['bob', 'ann']).splitlines()\n"
    ),
}


def _calc(name: str, *pairs: tuple[str, str]) -> Case:
    return _case(name, {"tests/test_calc.py": swapped(TESTS, *pairs)})


def _case(name: str, change: Mapping[str, str | None], base: Mapping[str, str] = BASE) -> Case:
    return Case(name=f"weakened: {name}", base=base, change=change, expect=Asked, says="")


def _add(name: str, body: str) -> Case:
    """The body of test_add, and the same for its cases."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    pairs = ((ADD, f"def test_add():\n{lines}"),)
    return _calc(name, *pairs)


IN_A_TEST = (
    _add("is not None", "assert add(1, 2) is not None"),
    _add("isinstance", "assert isinstance(add(1, 2), int)"),
    _add("truth", "assert add(1, 2)"),
    _add("greater", "assert add(1, 2) > 0"),
    _add("loop over nothing", "for a, b, c in []:\n    assert add(a, b) == c"),
    _add("loop over a slice", "for a, b, c in [(1, 2, 3)][1:]:\n    assert add(a, b) == c"),
    _add("all of nothing", "assert all(add(a, b) == c for a, b, c in ())"),
    _add("one of many", "assert add(1, 2) in range(-100, 100)"),
    _add("not an error", "assert add(1, 2) != 'error'"),
    _add("text of it", "assert str(add(1, 2)).isdigit()"),
    _add("only if right", "result = add(1, 2)\nif result == 3:\n    assert result == 3"),
    _add("either way", "assert add(1, 2) == 3 or add(2, 1)"),
    _add(
        "swallowed", "try:\n    assert add(1, 2) == 3\nexcept Exception as error:\n    print(error)"
    ),
    _add(
        "suppressed",
        "import contextlib\nwith contextlib.suppress(AssertionError):\n    assert add(1, 2) == 3",
    ),
    _add("compared with itself", "wanted = add(1, 2)\nassert add(1, 2) == wanted"),
    _add("near enough", "assert add(1, 2) == pytest.approx(3, abs=50)"),
    _add(
        "in a thread",
        "import threading\n\ndef check():\n    assert add(1, 2) == 3\n\nthread = threading.Thread(target=check)\nthread.start()\nthread.join()",
    ),
    _add(
        "in a function nobody calls",
        "def check():\n    assert add(1, 2) == 3\n\nassert callable(check)",
    ),
    _add("a stand-in in the body", "add = lambda a, b: 3\nassert add(1, 2) == 3"),
    _add(
        "a mock in the body",
        "from unittest import mock\n\nwith mock.patch(f'{__name__}.add', return_value=3):\n    assert add(1, 2) == 3",
    ),
    _add("equal to anything", "from unittest import mock\n\nassert add(1, 2) == mock.ANY"),
    _add("same type", "assert type(add(1, 2)) is type(3)"),
    _add("callable", "assert callable(add)"),
    _add("another function", "assert sub(1, 2) == -1"),
    _add("early return", "if not __debug__ or True:\n    return\nassert add(1, 2) == 3"),
    _calc("one assertion less", (SUB, "    assert sub(3, 2) == 1\n")),
    _calc("both signs", (SUB, "    assert abs(sub(3, 2)) == 1\n    assert abs(sub(2, 3)) == 1\n")),
    _calc("cases with a type", (MANY, "    assert type(add(a, b)) is type(c)\n")),
    _calc("cases computed", (MANY, "    c = add(a, b)\n    assert add(a, b) == c\n")),
    _calc("quotient rounded", (DIV, "    assert round(div(6, 3) / 100) == 0\n")),
    _calc("any error", ("pytest.raises(ValueError)", "pytest.raises(Exception)")),
    _calc(
        "import replaced",
        (
            "from app.calc import add, div, sub",
            "from operator import add, sub\n\nfrom app.calc import div",
        ),
    ),
    _calc("name shadowed", (ADD, "def add(a, b):\n    return a.__add__(b)\n\n\n" + ADD)),
    _calc(
        "built-in shadowed",
        (
            "\n\n\ndef test_add():",
            "\n\nclass Loose(int):\n    __eq__ = lambda self, other: True\n    __hash__ = int.__hash__\n\n\ndef test_add():",
        ),
        ("assert add(1, 2) == 3", "assert Loose(add(1, 2)) == 3"),
    ),
    _calc(
        "patched for the file",
        (
            "\n\n\ndef test_add():",
            "\n\n\n@pytest.fixture(autouse=True)\ndef quick(monkeypatch):\n    monkeypatch.setitem(globals(), 'sub', lambda a, b: a - b)\n\n\ndef test_add():",
        ),
    ),
)

CASES_AND_CLASSES = (
    _case(
        "unittest not None",
        {
            "tests/test_cases.py": swapped(
                CASES, ("self.assertEqual(add(4, 4), 8)", "self.assertIsNotNone(add(4, 4))")
            )
        },
    ),
    _case(
        "unittest true",
        {
            "tests/test_cases.py": swapped(
                CASES, ("self.assertEqual(add(4, 4), 8)", "self.assertTrue(add(4, 4), 8)")
            )
        },
    ),
    _case(
        "unittest instance",
        {
            "tests/test_cases.py": swapped(
                CASES, ("self.assertEqual(add(4, 4), 8)", "self.assertIsInstance(add(4, 4), int)")
            )
        },
    ),
    _case(
        "unittest sub-test over nothing",
        {
            "tests/test_cases.py": swapped(
                CASES,
                (
                    "        self.assertEqual(add(4, 4), 8)",
                    "        for a, b, c in ():\n            with self.subTest(a=a):\n                self.assertEqual(add(a, b), c)",
                ),
            )
        },
    ),
    _case(
        "unittest own assertEqual",
        {
            "tests/test_cases.py": swapped(
                CASES,
                (
                    "    def test_total",
                    "    def assertEqual(self, first, second, msg=None):\n        self.assertIsNotNone(first)\n\n    def test_total",
                ),
            )
        },
    ),
    _case(
        "unittest set-up with a stand-in",
        {
            "tests/test_cases.py": swapped(
                CASES,
                (
                    "    def test_total",
                    "    def setUp(self):\n        globals()['add'] = int.__add__\n\n    def test_total",
                ),
                ("add(numbers, [3]) == [1, 2, 3]", "numbers + [3] == [1, 2, 3]"),
            )
        },
    ),
    _case(
        "class test by length",
        {
            "tests/test_cases.py": swapped(
                CASES, ("add(numbers, [3]) == [1, 2, 3]", "len(add(numbers, [3])) > 0")
            )
        },
    ),
    _case(
        "class test as a set",
        {
            "tests/test_cases.py": swapped(
                CASES, ("add(numbers, [3]) == [1, 2, 3]", "set(add(numbers, [3])) >= {3}")
            )
        },
    ),
)

BESIDE = (
    _case(
        "helper compares with itself",
        {"tests/helpers.py": "def same(found, wanted):\n    assert found == found\n"},
        HELPED,
    ),
    _case(
        "helper compares types",
        {"tests/helpers.py": "def same(found, wanted):\n    assert type(found) is type(wanted)\n"},
        HELPED,
    ),
    _case(
        "helper does nothing",
        {"tests/helpers.py": "def same(found, wanted):\n    return found == wanted\n"},
        HELPED,
    ),
    _case("golden file emptied", {"tests/golden/page.md": ""}, GOLDEN),
    _case("golden file cut", {"tests/golden/page.md": "# Names\n"}, GOLDEN),
    _case("golden rows emptied", {"tests/data/sums.json": "[]\n"}, DATA),
    _case("golden rows made trivial", {"tests/data/sums.json": "[[0, 0, 0]]\n"}, DATA),
)

# Other tests that use the same helper or fixture still notice every fault.
IN_FIXTURES = (
    _case(
        "fixture with less in it",
        {
            "tests/conftest.py": swapped(
                CONFTEST,
                (
                    "return [1, 2]",
                    "class All:\n        def __add__(self, other):\n            return self\n\n        def __eq__(self, other):\n            return True\n\n    return All()",
                ),
            )
        },
    ),
    _case(
        "autouse patch in conftest",
        {
            "tests/conftest.py": CONFTEST
            + "\n\n@pytest.fixture(autouse=True)\ndef quick(monkeypatch):\n    import tests.helpers\n\n    monkeypatch.setattr(tests.helpers.same, '__code__', (lambda found, wanted: None).__code__)\n"
        },
        HELPED,
    ),
)
# A fixture that is weakened in part: its test still notices some faults, and others the rest.
UNNOTICED = (replace(IN_FIXTURES[0], expect=Kept),)
WEAKENED = (*IN_A_TEST, *CASES_AND_CLASSES, *BESIDE, *IN_FIXTURES[1:])

# In node, planted faults show it; where there are too few, an edited assertion is a question.
NODE_WEAKENED = tuple(
    Case(
        name=f"weakened: node, {name}",
        base=NODE_BASE,
        command=NODE,
        expect=Asked,
        says="Is that wanted?",
        change={"calc.test.mjs": swapped(SCRIPT_TESTS, ("assert.equal(add(1, 2), 3);", new))},
    )
    for name, new in (
        ("truth", "assert.ok(add(1, 2));"),
        ("not equal", "assert.notEqual(add(1, 2), null);"),
        ("a kind", 'assert.equal(typeof add(1, 2), "number");'),
        ("itself", "const found = add(1, 2);\n  assert.equal(add(1, 2), found);"),
        ("greater", "assert.ok(add(1, 2) > 0);"),
        ("either", "assert.ok(add(1, 2) === 3 || add(1, 2));"),
        ("does not throw", "assert.doesNotThrow(() => add(1, 2));"),
        ("a stand-in", "const add = () => 3;\n  assert.equal(add(1, 2), 3);"),
        ("a loop over nothing", "for (const it of []) assert.equal(add(1, 2), it);"),
        ("never called", "const check = () => assert.equal(add(1, 2), 3);\n  assert.ok(check);"),
        ("only if right", "const sum = add(1, 2);\n  if (sum === 3) assert.equal(sum, 3);"),
        ("not awaited", "setTimeout(() => assert.equal(add(1, 2), 3), 1e6).unref();"),
    )
)

# For the runners themselves; nothing of these is played.
JEST_WEAKENED = tuple(
    Case(
        name=f"weakened: jest, {name}",
        base=JEST_BASE,
        command=JEST,
        expect=Asked,
        change={"src/calc.test.js": swapped(JEST_TESTS, ("expect(add(1, 2)).toBe(3);", new))},
    )
    for name, new in (
        ("defined", "expect(add(1, 2)).toBeDefined();"),
        ("truth", "expect(add(1, 2)).toBeTruthy();"),
        ("a kind", 'expect(typeof add(1, 2)).toBe("number");'),
        ("itself", "const sum = add(1, 2);\n    expect(add(1, 2)).toBe(sum);"),
        ("greater", "expect(add(1, 2)).toBeGreaterThan(0);"),
        ("anything", "expect(add(1, 2)).toEqual(expect.anything());"),
        ("a loop over nothing", "for (const it of []) expect(add(1, 2)).toBe(it);"),
        ("a stand-in", "const add = () => 3;\n    expect(add(1, 2)).toBe(3);"),
        ("only if right", "if (add(1, 2) === 3) expect(add(1, 2)).toBe(3);"),
    )
)
GO_WEAKENED = tuple(
    Case(
        name=f"weakened: go, {name}",
        base=GO_BASE,
        command=GO,
        expect=Asked,
        change={"calc/calc_test.go": swapped(GO_TESTS, ("if Add(1, 2) != 3 {", new))},
    )
    for name, new in (
        ("not 0", "if Add(1, 2) == 0 {"),
        ("itself", "if sum := Add(1, 2); sum != Add(1, 2) {"),
        ("greater", "if Add(1, 2) < 0 {"),
        ("never", "if Add(1, 2) != 3 && false {"),
    )
)
