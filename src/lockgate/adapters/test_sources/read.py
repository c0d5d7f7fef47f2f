"""The TestSources port over the functions beside this file."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from lockgate.adapters.test_sources import go, javascript, python
from lockgate.adapters.test_sources.changes import changed_files
from lockgate.core.differential.matching import SourceTest, Tests
from lockgate.core.differential.table import ChangedFiles
from lockgate.core.differential.test_files import SCRIPTS

# The tests of many files. Nothing is executed, and what is too big or broken has no tests.


FILE = 1_000_000  # characters of one file that are looked at
TOTAL = 30_000_000
TESTS = 200_000

Reader = Callable[[str, str], list[SourceTest]]

READERS: dict[str, Reader] = {
    ".py": python.tests_in,
    "_test.go": go.tests_in,
    **dict.fromkeys((f".{ending}" for ending in SCRIPTS), javascript.tests_in),
}


def source_tests(files: Mapping[str, str]) -> Tests:
    """`files` is path → text of the test files of one side."""
    found: list[SourceTest] = []
    left = TOTAL
    for path in sorted(files):
        text = files[path]
        reader = _reader(path)
        if reader is None or len(text) > min(FILE, left):
            continue
        left -= len(text)
        found.extend(reader(path, text))
        if len(found) > TESTS:
            break
    return tuple(_last_of_each(found)[:TESTS])


def _reader(path: str) -> Reader | None:
    return next((it for ending, it in READERS.items() if path.endswith(ending)), None)


def _last_of_each(tests: list[SourceTest]) -> list[SourceTest]:
    """Of two tests with one name the later one is what runs."""
    return list({test.id: test for test in tests}.values())


_TEST_SCRIPT = re.compile(
    r"\b(?:npm|pnpm|yarn|bun)\s+(?:run\s+|-s\s+|--silent\s+)*(?:test|t)(?![\w:-])"
)


class FileTestSources:
    """Of texts alone; no file is opened."""

    def tests(self, files: Mapping[str, str]) -> Tests:
        return source_tests(files)

    def changes(
        self,
        base: Mapping[str, str],
        candidate: Mapping[str, str],
        patterns: Sequence[str],
        command: str,
    ) -> ChangedFiles:
        return changed_files(base, candidate, patterns, command)

    def command(self, written: str, package: str) -> str:
        if not _TEST_SCRIPT.search(written):
            return written
        script = _test_script(package)
        return f"{written}\n{script}" if script else written


def _test_script(package: str) -> str:
    """`scripts.test` of a package.json."""
    try:
        found: object = json.loads(package) if len(package) <= FILE else None
    except (ValueError, RecursionError):
        return ""
    for key in ("scripts", "test"):
        found = cast("dict[str, object]", found).get(key) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""
