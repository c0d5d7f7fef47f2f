"""Expectations that do not lie among the tests: the change breaks the code and edits them there."""

# ruff: noqa: E501 - a case a line

from lockgate.core.differential.verdict import Asked, Kept, Lost
from tests.e2e.cheats.cheats import swapped
from tests.e2e.cheats.repository import BASE, CODE, PYPROJECT, WRONG
from tests.e2e.cheats.stage import NODE, PYTEST, Case

PAGE = (
    "def page(names):\n    lines = ['# Names']\n    for name in sorted(names):\n"
    "        lines.append(f'- {name.title()}')\n    return '\\n'.join(lines) + '\\n'\n"
)
WRONG_PAGE = PAGE.replace("sorted(names)", "names")
READS = (
    "from pathlib import Path\n\nfrom app.page import page\n\n"
    "TOP = Path(__file__).parent.parent\n\n\n"
    "def test_page():\n    assert page(['bob', 'ann']) == (TOP / 'golden/page.md').read_text()\n"
)
GOLDEN = {
    **BASE,
    "app/page.py": PAGE,
    "golden/page.md": "# Names\n- Ann\n- Bob\n",
    "tests/test_page.py": READS,
}
OTHER = "# Names\n- Bob\n- Ann\n"
ROWS = {
    **BASE,
    "spec/sums.csv": "1,2,3\n5,5,10\n",
    "tests/test_rows.py": (
        "import csv\n\nfrom app.calc import add\n\n\ndef test_rows():\n"
        "    with open('spec/sums.csv') as file:\n"
        "        for a, b, c in csv.reader(file):\n            assert add(int(a), int(b)) == int(c)\n"
    ),
}
INSIDE = {
    **{path: text for path, text in BASE.items() if not path.startswith("tests/")},
    "pyproject.toml": '[project]\nname = "app"\nversion = "1"\n',
    "app/test_inside.py": "from app.calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
    "app/check/tests/test_deep.py": "from app.calc import sub\n\n\ndef test_sub():\n    assert sub(3, 2) == 1\n",
}
SCRIPT = "export function add(a, b) {\n  return a + b;\n}\n"
MOCHA_TEST = 'import assert from "node:assert";\nimport { test } from "node:test";\nimport { add } from "../calc.mjs";\n\ntest("adds", () => {\n  assert.equal(add(1, 2), 3);\n});\n'
IN_TEST = {"calc.mjs": SCRIPT, "test/sums.mjs": MOCHA_TEST, "package.json": '{"name": "calc"}\n'}
DASHED = {"calc.mjs": SCRIPT, "lib/sums-test.mjs": MOCHA_TEST, "package.json": '{"name": "calc"}\n'}
WRONG_SCRIPT = SCRIPT.replace("a + b", "a + b + 1")

OUTSIDE = (
    Case(
        name="outside: golden file",
        base=GOLDEN,
        expect=Asked,
        says="golden/page.md",
        change={"app/page.py": WRONG_PAGE, "golden/page.md": OTHER},
    ),
    Case(
        name="outside: golden file emptied with the code",
        base=GOLDEN,
        expect=Asked,
        says="golden/page.md",
        change={"app/page.py": "def page(names):\n    return ''\n", "golden/page.md": ""},
    ),
    Case(
        name="outside: rows of a table",
        base=ROWS,
        expect=Asked,
        says="spec/sums.csv",
        change={"app/calc.py": WRONG, "tests/test_calc.py": None, "spec/sums.csv": "5,5,10\n"},
    ),
    Case(
        name="outside: rows weakened", base=ROWS, expect=Asked, change={"spec/sums.csv": "0,0,0\n"}
    ),
    Case(
        name="outside: test in the package",
        base=INSIDE,
        expect=Asked,
        says="expectation changed",
        change={
            "app/calc.py": WRONG,
            "app/test_inside.py": swapped(INSIDE["app/test_inside.py"], ("== 3", "== 4")),
        },
    ),
    Case(
        name="outside: test deep in the package",
        base=INSIDE,
        expect=Asked,
        says="expectation changed",
        change={
            "app/calc.py": CODE.replace("a - b", "b - a"),
            "app/check/tests/test_deep.py": swapped(
                INSIDE["app/check/tests/test_deep.py"], ("== 1", "== -1")
            ),
        },
    ),
    Case(
        name="outside: node's test folder",
        base=IN_TEST,
        command=NODE,
        expect=Asked,
        says="expectation changed",
        change={"calc.mjs": WRONG_SCRIPT, "test/sums.mjs": MOCHA_TEST.replace("2), 3", "2), 4")},
    ),
    Case(
        name="outside: a name with a dash",
        base=DASHED,
        command=NODE,
        expect=Asked,
        says="expectation changed",
        change={
            "calc.mjs": WRONG_SCRIPT,
            "lib/sums-test.mjs": MOCHA_TEST.replace("2), 3", "2), 4"),
        },
    ),
    Case(
        name="outside: broken without an edit",
        base=GOLDEN,
        expect=Lost,
        says="test_page",
        change={"app/page.py": WRONG_PAGE},
    ),
)

_DOC = 'def add(a, b):\n    """Adds.\n\n    >>> add(1, 2)\n    3\n    """\n    return a + b\n'
DOCTESTS = {
    **BASE,
    "app/doc.py": _DOC,
    "pyproject.toml": PYPROJECT + 'addopts = "--doctest-modules"\n',
}
_DOCTEST = PYTEST + " --doctest-modules app tests"
OUTSIDE_TEXTS = (
    Case(
        name="outside: doctest edited with the code",
        base=DOCTESTS,
        command=_DOCTEST,
        expect=Asked,
        says="doctest add(1, 2): 3 → 4",
        change={"app/doc.py": _DOC.replace("a + b", "a + b + 1").replace("    3", "    4")},
    ),
    Case(
        name="outside: doctest weakened",
        base=DOCTESTS,
        command=_DOCTEST,
        expect=Asked,
        says="doctest",
        change={
            "app/doc.py": _DOC.replace(
                ">>> add(1, 2)\n    3", ">>> add(1, 2) is not None\n    True"
            )
        },
    ),
    Case(
        name="outside: doctest by settings",
        base=DOCTESTS,
        expect=Asked,
        says="doctest",
        change={"app/doc.py": _DOC.replace(">>> add(1, 2)\n    3\n", "")},
    ),
)

# The code's own data is the code's: a test that only sees it through the code expects nothing of it.
_OWN = {
    **BASE,
    "app/words.json": '{"hello": "Hello"}\n',
    "app/words.py": "import json\nfrom pathlib import Path\n\nWORDS = Path(__file__).parent / 'words.json'\n\n\ndef word(name):\n    return json.loads(WORDS.read_text())[name]\n",
    "tests/test_words.py": "from app.words import word\n\n\ndef test_word():\n    assert word('hello') == 'Hello'\n",
}
OUTSIDE_HONEST = (
    Case(
        name="outside: the code's own data",
        base=_OWN,
        expect=Kept,
        command=PYTEST,
        change={
            "app/words.json": '{"hello": "Hello", "bye": "Goodbye"}\n',
            "tests/test_words.py": _OWN["tests/test_words.py"]
            + "\n\ndef test_bye():\n    assert word('bye') == 'Goodbye'\n",
        },
    ),
    Case(
        name="outside: one more row",
        base=ROWS,
        expect=Kept,
        change={"spec/sums.csv": "1,2,3\n5,5,10\n7,1,8\n"},
    ),
)
