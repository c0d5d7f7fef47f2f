"""Which files of a tree are tests, and which decide how tests are run."""

import re
import shlex
from collections.abc import Iterable, Sequence
from enum import StrEnum

from lockgate.core.text.steering import matching


class Runner(StrEnum):
    PYTEST = "pytest"
    UNITTEST = "unittest"
    JEST = "jest"
    VITEST = "vitest"
    NODE = "node"
    GO = "go"


SCRIPTED = frozenset({Runner.JEST, Runner.VITEST, Runner.NODE})
SCRIPTS = ("js", "ts", "jsx", "tsx", "mjs", "cjs", "mts", "cts")
SCRIPT_TESTS = tuple(
    f"**/{name}.{it}"
    for name in ("*.test", "*.spec", "*-test", "*_test", "test-*", "test")
    for it in SCRIPTS
)

# What `[tests] paths` means when it is empty.
TEST_FILES = (
    "**/test/**",
    "**/tests/**",
    "**/test_*.py",
    "**/*_test.py",
    "**/__tests__/**",
    "**/__snapshots__/**",
    *SCRIPT_TESTS,
    "**/*_test.go",
    "**/testdata/**",
)

RUNNERS_OWN = ("pytest", "_pytest", "pluggy", "unittest", "doctest", "xmlrunner")
SHADOWS = tuple(f"{name}{end}" for name in RUNNERS_OWN for end in (".py", "/**"))
PROGRAMS = tuple(
    f"{place}{name}"
    for place in ("", "bin/")
    for name in ("pytest", "go", "node", "npm", "npx", "jest", "vitest", "python", "python3")
)
# What Python or a test runner takes in place of source, or loads by itself; in any case of letters.
COMPILED = ("**/*.pyc", "**/*.pyo", "**/__pycache__/**", "**/.pytest_cache/**")
EXTENSIONS = ("**/*.so", "**/*.pyd")
STARTED = ("**/sitecustomize.py", "**/usercustomize.py", "**/*.pth")
METADATA = ("**/*.egg-info/**", "**/*.egg-info", "**/*.dist-info/**", "**/*.egg/**", "**/*.egg")
INSTALLED = (".venv/**", "venv/**", "node_modules/**")

STRUCTURAL = (*COMPILED, *EXTENSIONS, *STARTED, *METADATA)

# Files that act on a test run by being there.
HARNESS_FILES = (
    "**/conftest.py",
    "**/pytest.ini",
    "**/.pytest.ini",
    "**/pytest.toml",
    "**/.pytest.toml",
    "**/.coveragerc",
    "**/noxfile.py",
    "**/jest.config.*",
    "**/jest.setup.*",
    "**/vitest.config.*",
    "**/vitest.setup.*",
    "**/vitest.workspace.*",
    "**/vite.config.*",
    "**/babel.config.*",
    "**/.babelrc*",
    "**/.mocharc.*",
    "**/.npmrc",
    "Makefile",
    "makefile",
    "GNUmakefile",
    "justfile",
    "Justfile",
    "Taskfile.yml",
    *SHADOWS,
    *PROGRAMS,
    *INSTALLED,
)

# Files where only a part acts on a test run; the rest is the project's own business.
MIXED_FILES = ("**/pyproject.toml", "**/setup.cfg", "**/tox.ini", "**/package.json")

_NAMED = (
    (Runner.GO, re.compile(r"\b(?:go test|gotestsum)\b")),
    (Runner.VITEST, re.compile(r"\bvitest\b")),
    (Runner.JEST, re.compile(r"\bjest\b")),
    (Runner.NODE, re.compile(r"\bnode\b.* --test\b")),
    (Runner.UNITTEST, re.compile(r"\b(?:unittest|xmlrunner)\b")),
    (Runner.PYTEST, re.compile(r"\b(?:pytest|py\.test)\b")),
)
_BY_ENDING = (
    (Runner.PYTEST, (".py",)),
    (Runner.GO, (".go",)),
)


def files_of_tests(paths: Iterable[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """Those that are tests or belong to tests; no pattern means the runners' own habits."""
    return matching(paths, tuple(patterns) or TEST_FILES)


def harness_files(paths: Iterable[str], command: str = "") -> tuple[str, ...]:
    """Those that decide how tests are run, and those that the command itself names."""
    every = tuple(paths)
    acting = _words(command) | frozenset(matching(every, HARNESS_FILES))
    return tuple(path for path in every if path in acting or is_like(path, STRUCTURAL))


def is_like(path: str, patterns: Sequence[str]) -> bool:
    """Whether a path is one of these, in capitals or not."""
    return bool(matching((path.lower(),), patterns))


def runner_of(command: str, tests: Iterable[str] = ()) -> Runner | None:
    """The runner that a command names, else the one that the tests' endings leave."""
    for runner, pattern in _NAMED:
        if pattern.search(command):
            return runner
    files = tuple(tests)
    for runner, endings in _BY_ENDING:
        if any(file.endswith(endings) for file in files):
            return runner
    return None


def _words(command: str) -> frozenset[str]:
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return frozenset(word.removeprefix("./") for word in words)
