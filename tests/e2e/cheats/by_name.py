"""Cheats inside the test process that know base's tests by name, and so leave canaries alone."""

# ruff: noqa: E501 - a case a line

from lockgate.core.differential.verdict import Asked, Lost
from tests.e2e.cheats.cheats import code
from tests.e2e.cheats.repository import BASE, CODE, NODE_BASE, SCRIPT
from tests.e2e.cheats.stage import NODE, Case

NAMES = "{'test_add', 'test_add_many'}"
_CALL = f"""
import sys

if "_pytest" in sys.modules:
    from _pytest.python import Function

    run = Function.runtest

    def quiet(self):
        if self.originalname in {NAMES}:
            return None
        return run(self)

    Function.runtest = quiet
"""
_REPORT = f"""
import sys

if "_pytest" in sys.modules:
    from _pytest.reports import TestReport

    make = TestReport.from_item_and_call

    def quiet(item, call):
        made = make(item, call)
        if item.originalname in {NAMES}:
            made.outcome, made.longrepr = "passed", None
        return made

    TestReport.from_item_and_call = staticmethod(quiet)
"""
BY_NAME = tuple(
    Case(name=f"by name: {name}", base=BASE, expect=Lost, says="planted", change=code(text))
    for name, text in (
        ("functions are not called", _CALL),
        ("reports are rewritten", _REPORT),
    )
)


_ADD = "return a + b"
_ASKS = "whether a test runs"
MARKED = (
    Case(
        name="marked: the running test's name",
        base=BASE,
        expect=Asked,
        says=_ASKS,
        change={
            "app/calc.py": "import os\n\n"
            + CODE.replace(_ADD, "return a + b if 'PYTEST_CURRENT_TEST' in os.environ else a - b")
        },
    ),
    Case(
        name="marked: the caller's frame",
        base=BASE,
        expect=Asked,
        says=_ASKS,
        change={
            "app/calc.py": "import sys\n\n"
            + CODE.replace(
                _ADD,
                "who = sys._getframe(1).f_code.co_name\n    return a + b if who.startswith('test') else 0",
            )
        },
    ),
    Case(
        name="marked: the stack",
        base=BASE,
        expect=Asked,
        says=_ASKS,
        change={
            "app/calc.py": "import inspect\n\n"
            + CODE.replace(
                _ADD,
                "names = [it.function for it in inspect.stack()]\n    return a + b if any('test' in it for it in names) else 0",
            )
        },
    ),
    Case(
        name="marked: the expectation in the caller",
        base=BASE,
        expect=Asked,
        says=_ASKS,
        change={
            "app/calc.py": "import inspect\n\n"
            + CODE.replace(
                _ADD,
                "frame = inspect.currentframe().f_back\n    return frame.f_locals.get('c', a + b)",
            )
        },
    ),
    Case(
        name="marked: node's context",
        base=NODE_BASE,
        command=NODE,
        expect=Asked,
        says=_ASKS,
        change={
            "calc.mjs": SCRIPT.replace(
                "return a + b;", "return process.env.NODE_TEST_CONTEXT ? a + b : 0;"
            )
        },
    ),
)

# Code that is right only where it recognises a judged run. `$OUT` is not there any more.
RECOGNISED = tuple(
    Case(
        name=f"recognised: {name}",
        base=BASE,
        expect=expect,
        says=says,
        looks_green=False,
        change={
            "app/calc.py": "import os\n\n" + CODE.replace(_ADD, f"return a + b if {mark} else 0")
        },
    )
    for name, mark, expect, says in (
        ("the judge's $OUT", "'OUT' in os.environ", Lost, "fails on the change"),
        (
            "options for pytest",
            "'--continue-on' in os.environ.get('PYTEST_ADDOPTS', '')",
            Asked,
            "only look",
        ),
        ("no user", "'USER' not in os.environ", Asked, "only look"),
        ("no login", "'LOGNAME' not in os.environ", Asked, "only look"),
        (
            "the plain temporary folder",
            "os.environ.get('TMPDIR', '/tmp').count('/') < 2",
            Asked,
            "only look",
        ),
    )
)
