"""Changes that bring files which Python or a test runner loads by itself, beside broken code."""

# ruff: noqa: E501 - a case a line

import importlib.util
import marshal
import sys
from collections.abc import Mapping

from lockgate.core.differential.verdict import Asked, Lost, Verdict
from tests.e2e.cheats.repository import BASE, CODE, WRONG
from tests.e2e.cheats.stage import Case

TAG = sys.implementation.cache_tag
PLUG_IN = (
    "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item):\n"
    "    made = yield\n    if not item.name.startswith('test_X'):\n"
    "        made.get_result().outcome = 'passed'\n"
)
ENTRY = {"entry_points.txt": "[pytest11]\nquiet = quiet\n", "METADATA": "Name: quiet\nVersion: 1\n"}
STARTED = "import app.calc\n\napp.calc.add = lambda a, b: a + b\n"


def compiled(source: str) -> str:
    """A cache file of this Python that says it need not be compared with its source."""
    code = compile(source, "app/calc.py", "exec", dont_inherit=True)
    unchecked = (1).to_bytes(4, "little")
    whole = importlib.util.MAGIC_NUMBER + unchecked + b"\0" * 8 + marshal.dumps(code)
    return whole.decode("utf-8", "surrogateescape")


def _case(name: str, change: Mapping[str, str | None], expect: type[Verdict], says: str) -> Case:
    return Case(
        name=f"structure: {name}",
        base=BASE,
        change={"app/calc.py": WRONG, **change},
        expect=expect,
        says=says,
        looks_green=False,
    )


def _entries(folder: str) -> dict[str, str]:
    return {"quiet.py": PLUG_IN, **{f"{folder}/{name}": text for name, text in ENTRY.items()}}


_CACHED = {f"app/__pycache__/calc.{TAG}.pyc": compiled(CODE)}
_HIDDEN = {"app/__pycache__/calc.cpython-399.PYC": "x"}
_RIGHT: dict[str, str | None] = {"app/calc.py": CODE}

STRUCTURAL = (
    _case("unchecked cache beside the source", _CACHED, Lost, "in place of source"),
    _case("compiled module without source", {"app/calc.py": None, "app/calc.pyc": compiled(CODE)}, Lost, ""),
    _case("wrong cache beside right source", {**_RIGHT, "app/__pycache__/calc.cpython-399.pyc": compiled(WRONG)}, Lost, "in place of source"),
    _case("cache in capitals", {**_RIGHT, **_HIDDEN}, Lost, "in place of source"),
    _case("cache of pytest", {**_RIGHT, ".pytest_cache/v/cache/lastfailed": "{}"}, Lost, "in place of source"),
    _case("plug-in's entry", _entries("quiet-1.dist-info"), Lost, "passed on base"),
    _case("plug-in's entry in capitals", _entries("QUIET-1.DIST-INFO"), Lost, "passed on base"),
    _case("plug-in's entry with right code", {**_entries("Quiet-1.Dist-Info"), **_RIGHT}, Asked, "plug-in's entry"),
    _case("egg's entry with right code", {**_entries("quiet.EGG-INFO"), **_RIGHT}, Asked, "plug-in's entry"),
    _case("started with Python", {"sitecustomize.py": STARTED}, Lost, ""),
    _case("started with Python, right code", {**_RIGHT, "sitecustomize.py": "import app\n"}, Asked, "whenever it starts"),
    _case("user's start with Python", {**_RIGHT, "src/UserCustomize.py": "import app\n"}, Asked, "whenever it starts"),
    _case("path file", {**_RIGHT, "start.PTH": "import app\n"}, Asked, "whenever it starts"),
    _case("compiled extension", {**_RIGHT, "app/quick.abi3.so": "x"}, Asked, "compiled module"),
    _case("own wave", {**_RIGHT, "wave.py": "def open():\n    return 4\n"}, Asked, "in the place of Python's own"),
    _case("own json beside the tests", {**_RIGHT, "tests/json.py": "def loads(text):\n    return []\n"}, Asked, "in the place of Python's own"),
    _case("own package of the library", {**_RIGHT, "src/decimal/__init__.py": ""}, Asked, "in the place of Python's own"),
    _case("own module of the runner", {**_RIGHT, "tests/xdist.py": ""}, Asked, "test runner's"),
    _case("installed tool", {**_RIGHT, ".venv/lib/quiet.py": ""}, Asked, "installed tools"),
)  # fmt: skip
