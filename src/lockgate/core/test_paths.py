"""Which files of a tree are tests, and which decide how tests are run."""

import re
import shlex
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache


class Runner(StrEnum):
    PYTEST = "pytest"
    UNITTEST = "unittest"
    JEST = "jest"
    VITEST = "vitest"
    NODE = "node"
    GO = "go"


# What `[tests] paths` means when it is empty.
TEST_FILES = (
    "tests/**",
    "test/**",
    "**/tests/**",
    "**/test_*.py",
    "**/*_test.py",
    "**/__tests__/**",
    "**/__snapshots__/**",
    "**/*.test.[jt]s",
    "**/*.test.[jt]sx",
    "**/*.test.[cm][jt]s",
    "**/*.spec.[jt]s",
    "**/*.spec.[jt]sx",
    "**/*.spec.[cm][jt]s",
    "**/*_test.go",
    "**/testdata/**",
)

# Files that act on a test run by being there.
HARNESS_FILES = (
    "**/conftest.py",
    "**/pytest.ini",
    "**/.pytest.ini",
    "**/pytest.toml",
    "**/.pytest.toml",
    "**/.coveragerc",
    "**/noxfile.py",
    "**/sitecustomize.py",
    "**/usercustomize.py",
    "**/*.pth",
    "**/*.egg-info/**",
    "**/*.dist-info/**",
    "{pytest,_pytest,pluggy,unittest,doctest,xmlrunner}.py",
    "{pytest,_pytest,pluggy,unittest,doctest,xmlrunner}/**",
    "{.venv,venv,node_modules}/**",
    "**/jest.config.*",
    "**/jest.setup.*",
    "**/vitest.config.*",
    "**/vitest.setup.*",
    "**/vite.config.*",
    "**/vitest.workspace.*",
    "**/babel.config.*",
    "**/.babelrc*",
    "**/.mocharc.*",
    "**/.npmrc",
    "{Makefile,makefile,GNUmakefile,justfile,Justfile,Taskfile.yml}",
    "{pytest,go,node,npm,npx,jest,vitest,python,python3}",
    "bin/{pytest,go,node,npm,npx,jest,vitest,python,python3}",
)

# Files where only a part acts on a test run; the rest is the project's own business.
MIXED_FILES = (
    "**/pyproject.toml",
    "**/setup.cfg",
    "**/tox.ini",
    "**/package.json",
)

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


def matches(path: str, patterns: Iterable[str]) -> bool:
    """`**` is any number of directories, `*` and `?` stay inside one, `{a,b}` is either."""
    return any(_compiled(pattern).fullmatch(path) for pattern in patterns)


def test_files(paths: Iterable[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """Those that are tests or belong to tests; no pattern means the runners' own habits."""
    wanted = tuple(patterns) or TEST_FILES
    return tuple(path for path in paths if matches(path, wanted))


def harness_files(paths: Iterable[str], command: str = "") -> tuple[str, ...]:
    """Those that decide how tests are run, and those that the command itself names."""
    named = _words(command)
    return tuple(path for path in paths if path in named or matches(path, HARNESS_FILES))


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


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    pieces = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]/]+\]|\{[^{}]*\})", pattern)
    return re.compile("".join(_piece(piece) for piece in pieces), re.DOTALL)


def _piece(piece: str) -> str:
    fixed = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if piece in fixed:
        return fixed[piece]
    if piece.startswith("["):
        inside = piece[1:-1].replace("\\", "\\\\").replace("[", "\\[")
        return f"[^{inside[1:]}]" if inside[0] == "!" and inside[1:] else f"[{inside}]"
    if piece.startswith("{") and piece.endswith("}"):
        return "(?:" + "|".join(re.escape(it) for it in piece[1:-1].split(",")) + ")"
    return re.escape(piece)
