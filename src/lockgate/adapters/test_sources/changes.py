"""What a change touched, and in words what it did to the way tests are run."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lockgate.adapters.test_sources import go
from lockgate.adapters.test_sources.settings import changed_settings
from lockgate.adapters.test_sources.support import changed_hooks
from lockgate.core.differential.table import ChangedFiles, HarnessChange
from lockgate.core.differential.test_files import (
    INSTALLED,
    MIXED_FILES,
    PROGRAMS,
    SHADOWS,
    files_of_tests,
    harness_files,
)
from lockgate.core.text.paths import matching

_PROSE = (".md", ".rst", ".txt", ".adoc")
_TAGS = re.compile(r"^//\s?(?:go:build|\+build)\b.*$", re.MULTILINE)
_INI = ("**/pytest.ini", "**/.pytest.ini", "**/pytest.toml", "**/.pytest.toml")
_WORDS = (
    (("**/sitecustomize.py", "**/usercustomize.py"), "a file that Python runs whenever it starts"),
    (("**/*.pth",), "a file that Python reads, and may run, whenever it starts"),
    (("**/*.egg-info/**", "**/*.dist-info/**"), "what test runners take for a plug-in's entry"),
    (SHADOWS, "a module in the place of the test runner's own"),
    (INSTALLED, "a file among the installed tools"),
    (PROGRAMS, "a program by the name of the test command's own"),
    (
        ("**/jest.*", "**/vitest.*", "**/vite.config.*", "**/babel.config.*", "**/.babelrc*"),
        "the test runner's configuration",
    ),
)


def changed_files(
    base: Mapping[str, str],
    candidate: Mapping[str, str],
    patterns: Sequence[str] = (),
    command: str = "",
) -> ChangedFiles:
    """Both are path → text; files that are the same on both sides may be left out of both."""
    paths = sorted(path for path in {*base, *candidate} if base.get(path) != candidate.get(path))
    tests = frozenset(files_of_tests(paths, patterns))
    named = frozenset(harness_files(paths, command))
    harness = tuple(
        change
        for path in paths
        for change in _harness(path, base.get(path), candidate.get(path), named)
    )
    acting = frozenset(it.file for it in harness)
    return ChangedFiles(
        code=tuple(_code(paths, tests | named | acting)),
        tests=tuple(path for path in paths if path in tests or path in named - acting),
        harness=harness,
    )


def _code(paths: Iterable[str], others: frozenset[str]) -> Iterator[str]:
    for path in paths:
        if path not in others and not path.endswith(_PROSE) and not path.startswith("docs/"):
            yield path


def _harness(
    path: str, before: str | None, after: str | None, named: frozenset[str]
) -> Iterator[HarnessChange]:
    if matching((path,), ("**/conftest.py",)):
        yield from changed_hooks(path, before or "", after or "")
    elif matching((path,), (*MIXED_FILES, *_INI)):
        yield from changed_settings(path, before or "", after or "")
    elif path.endswith("_test.go"):
        yield from _go(path, before or "", after or "")
    elif path in named:
        yield HarnessChange(path, f"{_verb(before, after)} {path}, {_meaning(path)}")


def _go(path: str, before: str, after: str) -> Iterator[HarnessChange]:
    if go.has_setup(after) and not go.has_setup(before):
        yield HarnessChange(path, f"{path} adds TestMain, which decides how the tests are run")
    tags = (_TAGS.findall(before), _TAGS.findall(after))
    if before and after and tags[0] != tags[1]:
        yield HarnessChange(path, f"{path} has other build tags: {' '.join(tags[1])[:100]}")


def _meaning(path: str) -> str:
    for patterns, words in _WORDS:
        if matching((path,), patterns):
            return words
    return "which the test command uses"


def _verb(before: str | None, after: str | None) -> str:
    if before is None:
        return "adds"
    return "changes" if after is not None else "removes"
