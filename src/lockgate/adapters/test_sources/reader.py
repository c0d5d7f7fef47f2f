"""The TestSources port over the functions beside this file."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import cast

from lockgate.adapters.test_sources.changes import changed_files
from lockgate.adapters.test_sources.reading import source_tests
from lockgate.core.differential.matching import Tests
from lockgate.core.differential.table import ChangedFiles

FILE = 1_000_000
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
