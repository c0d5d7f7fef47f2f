"""Makes unittest report its tests by name: each run leaves a JUnit file in $OUT.

It is a program of its own. It is copied into a judged tree as `sitecustomize.py`, which Python
loads whenever it starts, and acts once unittest's own runner is loaded, by whatever command.
"""

import importlib.abc
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.sax.saxutils import quoteattr

OUT = os.environ.get("OUT", "")
PROBE = os.environ.get("UNITTEST_PROBE", "")  # the module that plants faults, where it is wanted
RUNNER = "unittest.runner"
MAKES = "_makeResult"  # the runner's method
TEXT = 2000
OUTCOMES = {
    "addSuccess": "",
    "addFailure": "failure",
    "addError": "error",
    "addSkip": "skipped",
    "addExpectedFailure": "expected",
    "addUnexpectedSuccess": "failure",
}

Theirs = Any  # an object of unittest's, which the judged tree's Python brings


class Finder(importlib.abc.MetaPathFinder):
    """Stands before the others until unittest's runner is asked for, and then lets them find it."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        if fullname != RUNNER:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def loaded(module: ModuleType) -> None:
                load(module)
                report_from(module)

            spec.loader.exec_module = loaded  # type: ignore[method-assign]  # this one loader
        return spec


class Lines:
    """What the tests of one run came to; a test with sub-tests may say several things."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.failed: set[str] = set()

    def watch(self, result: Theirs) -> None:
        for method, outcome in OUTCOMES.items():
            setattr(result, method, self._said(getattr(result, method), outcome))
        result.addSubTest = self._of_part(result.addSubTest)

    def _said(self, heard: Callable[..., object], outcome: str) -> Callable[..., object]:
        def hear(test: Theirs, *more: Theirs) -> object:
            if outcome or str(test.id()) not in self.failed:
                self.note(test, outcome, more)
            return heard(test, *more)

        return hear

    def _of_part(self, heard: Callable[..., object]) -> Callable[..., object]:
        def hear(test: Theirs, part: Theirs, error: Theirs) -> object:
            if error is not None:
                self.note(test, "failure", (error,))
                self.failed.add(str(test.id()))
            return heard(test, part, error)

        return hear

    def note(self, test: Theirs, outcome: str, more: tuple[Theirs, ...]) -> None:
        group, _, name = str(test.id()).rpartition(".")
        message = _message(more[0]) if more else ""
        kind = ' type="pytest.xfail"' if outcome == "expected" else ""
        tag = "skipped" if outcome == "expected" else outcome
        inner = f"<{tag} message={quoteattr(message)}{kind}/>" if outcome else ""
        case = f"classname={quoteattr(group)} name={quoteattr(name)}"
        self.lines.append(f"<testcase {case}>{inner}</testcase>")

    def leave(self, place: Path) -> None:
        text = f'<testsuite name="unittest">{"".join(self.lines)}</testsuite>'
        place.write_text(text, "utf-8", "backslashreplace")


def report_from(runner: ModuleType) -> None:
    """Every run of a text runner leaves a file, when it ends by itself."""
    theirs: Theirs = runner
    kind = theirs.TextTestRunner
    make, run = getattr(kind, MAKES), kind.run
    number = 0

    def making(self: Theirs) -> Theirs:
        result = make(self)
        self.lockgate_lines = Lines()
        self.lockgate_lines.watch(result)
        return result

    def running(self: Theirs, test: Theirs) -> Theirs:
        nonlocal number
        if PROBE:
            importlib.import_module(PROBE).measure_cases(test)
        result = run(self, test)
        number += 1
        lines: Lines | None = getattr(self, "lockgate_lines", None)
        if lines and OUT:
            lines.leave(Path(OUT) / f"unittest-{os.getpid()}-{number}.xml")
        return result

    setattr(kind, MAKES, making)
    kind.run = running


def _message(said: Theirs) -> str:
    """An error with its traceback's last lines, or the reason of a skip."""
    if isinstance(said, str):
        return said[:TEXT]
    return "".join(traceback.format_exception_only(said[0], said[1]))[:TEXT].strip()


WATCH = os.environ.get("UNITTEST_WATCH", "")  # the module that notes opened files, where wanted
if WATCH:
    importlib.import_module(WATCH)
sys.meta_path.insert(0, Finder())
