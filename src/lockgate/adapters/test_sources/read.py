"""The TestSources port: tests in files, what a change touched, and what it did to how they run."""

import ast
import configparser
import doctest
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import cast

from lockgate.adapters.test_sources import go, javascript, python
from lockgate.adapters.test_sources.python import parsed, unparsed
from lockgate.core.differential.strength import Beside
from lockgate.core.differential.table import ChangedFiles, HarnessChange, SourceTest, Tests, Weight
from lockgate.core.differential.test_files import (
    COMPILED,
    EXTENSIONS,
    INSTALLED,
    METADATA,
    MIXED_FILES,
    PROGRAMS,
    RUNNERS_OWN,
    SCRIPTED,
    SCRIPTS,
    SHADOWS,
    STARTED,
    STRUCTURAL,
    Runner,
    files_of_tests,
    harness_files,
    is_like,
)
from lockgate.core.text.steering import matching

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

    def beside(self, texts: Mapping[str, str]) -> Beside:
        return {
            path: own(text)
            for path, text in texts.items()
            for ending, own in _BESIDE.items()
            if path.endswith(ending) and len(text) <= FILE
        }

    def probe(self, runner: Runner | None) -> str:
        if runner in SCRIPTED:
            return _program("script_probe.mjs")
        return _program("pytest_probe.py") if runner in _PYTHON else ""

    def broken(
        self, texts: Mapping[str, str], tests: Tests, word: str
    ) -> tuple[dict[str, str], Tests]:
        names: dict[str, list[tuple[str, ...]]] = {}
        for it in tests:
            names.setdefault(it.file, []).append(it.names)
        made = {it: python.broken(texts[it], names[it], word) for it in names if it in texts}
        done = tuple(it for it in tests if it.file in made and it.names in made[it.file][1])
        return {path: text for path, (text, own) in made.items() if own}, done

    def watch(self, runner: Runner | None) -> str:
        return _program("open_watch.py") if runner in _PYTHON else ""

    def reporter(self, runner: Runner | None, command: str) -> str:
        if runner is not Runner.UNITTEST or "xmlrunner" in command:
            return ""
        return _program("unittest_report.py")

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


_BESIDE: dict[str, Callable[[str], dict[str, str]]] = {
    ".py": python.beside_tests,
    **dict.fromkeys((f".{ending}" for ending in SCRIPTS), javascript.beside_tests),
}
_PYTHON = frozenset({Runner.PYTEST, Runner.UNITTEST})


def _program(name: str) -> str:
    return (files("lockgate.adapters.test_sources") / name).read_text("utf-8")


def _test_script(package: str) -> str:
    """`scripts.test` of a package.json."""
    try:
        found: object = json.loads(package) if len(package) <= FILE else None
    except (ValueError, RecursionError):
        return ""
    for key in ("scripts", "test"):
        found = cast("dict[str, object]", found).get(key) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""


# The part of settings files that decides how tests are run.


LARGEST_SETTINGS = 200_000
DOTS = 50  # in one line; more take tomllib too long
VALUE = 120
EDITS = 3  # lines of one file that a question shows

# Keys that say nothing about which tests run or how they end.
_HARMLESS = re.compile(r"markers|minversion|required_plugins|log_|junit_|console_|cache_dir")
_SCRIPTS = re.compile(r"\A(?:pre|post)?test\b")
_RUNNERS = ("jest", "vitest", "mocha", "ava", "c8", "nyc", "babel")
_SECTIONS = {
    "tox.ini": ("pytest", "testenv"),
    "setup.cfg": ("tool:pytest",),
    "pytest.ini": ("pytest",),
    ".pytest.ini": ("pytest",),
}

Values = Mapping[str, str]


def changed_settings(path: str, before: str, after: str) -> Iterator[HarnessChange]:
    old, new = _acting_settings(path, before), _acting_settings(path, after)
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key) and not _HARMLESS.match(key):
            value = new.get(key)
            how = "no longer sets" if value is None else "sets"
            said = "" if value is None else f" = {' '.join(value.split())[:VALUE]}"
            yield HarnessChange(path, f"{path} {how} {key}{said}", _line(after, key))


def _acting_settings(path: str, text: str) -> Values:
    name = path.rpartition("/")[2]
    if not text:
        return {}
    try:
        if len(text) > LARGEST_SETTINGS:
            return {"what cannot be read": text}
        if name.endswith(".toml"):
            return _toml(name, text)
        return _package(text) if name == "package.json" else _ini(name, text)
    except (ValueError, RecursionError, configparser.Error):
        return {"what cannot be read": text}


def _toml(name: str, text: str) -> Values:
    if any(line.count(".") > DOTS and "=" in line for line in text.splitlines()):
        return {"what cannot be read": text}
    found = cast("object", tomllib.loads(text))
    table = (
        _within(found, "tool", "pytest") if name == "pyproject.toml" else _within(found, "pytest")
    )
    table = {**table, **_within(table, "ini_options")}
    return {key: json.dumps(it, default=str) for key, it in table.items() if key != "ini_options"}


def _package(text: str) -> Values:
    found = cast("object", json.loads(text))
    scripts = _within(found, "scripts")
    acting = {key: it for key, it in scripts.items() if _SCRIPTS.match(key)}
    runners = {key: it for key, it in _within(found).items() if key in _RUNNERS}
    return {key: json.dumps(it) for key, it in {**acting, **runners}.items()}


def _ini(name: str, text: str) -> Values:
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    parser.read_string(text)
    return {
        key: value or ""
        for section in parser.sections()
        if section.startswith(_SECTIONS.get(name, ()))
        for key, value in parser.items(section)
    }


def _within(value: object, *keys: str) -> dict[str, object]:
    for key in keys:
        value = cast("dict[str, object]", value).get(key) if isinstance(value, dict) else None
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _line(text: str, key: str) -> int | None:
    lines = text.splitlines()
    return next((at for at, it in enumerate(lines, 1) if key in it), None)


# The part of a conftest.py that acts on a run by itself; fixtures only help the tests.


LARGEST_SUPPORT = 1_000_000
_ACTING_NAMES = ("collect_ignore", "collect_ignore_glob", "pytest_plugins", "pytestmark")

Part = Mapping[str, tuple[str, int]]  # what acts → its text and line


def changed_hooks(path: str, before: str, after: str) -> Iterator[HarnessChange]:
    old, new = _acting_code(before), _acting_code(after)
    for name, (text, line) in new.items():
        if name not in old:
            yield HarnessChange(path, f"{path} adds {name}", line)
        elif old[name][0] != text:
            yield HarnessChange(path, f"{path} changes {name}", line)
    for name in old:
        if name not in new:
            yield HarnessChange(path, f"{path} no longer has {name}")


def _acting_code(text: str) -> Part:
    module = parsed(text) if len(text) <= LARGEST_SUPPORT else None
    if module is None:
        return {"what cannot be read": (text, 1)}
    found: dict[str, tuple[str, int]] = {}
    for number, it in enumerate(module.body):
        name = _name(it, number)
        if name:
            known, line = found.get(name, ("", it.lineno))
            found[name] = (f"{known}\n{unparsed(it)}", line)
    return found


def _name(node: ast.stmt, number: int) -> str | None:
    """None for what does nothing until a test asks for it."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name if name.startswith("pytest_") or _is_hook(node) else None
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name if name in _ACTING_NAMES or _calls(node) else None
        case ast.Import() | ast.ImportFrom() | ast.ClassDef() | ast.Pass():
            return None
        case ast.Expr(value=ast.Constant()):
            return None
        case _:
            return "statements that run when it is loaded"


def _is_hook(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("hookimpl" in unparsed(it) for it in node.decorator_list)


def _calls(node: ast.stmt) -> bool:
    """A value that is computed may do anything on the way."""
    return any(isinstance(it, ast.Call) for it in ast.walk(node))


_PROGRAMS = (".py", *(f".{it}" for it in SCRIPTS))
_PROSE = (".md", ".rst", ".txt", ".adoc")
_TAGS = re.compile(r"^//\s?(?:go:build|\+build)\b.*$", re.MULTILINE)
_INI = ("**/pytest.ini", "**/.pytest.ini", "**/pytest.toml", "**/.pytest.toml")
_WORDS = (
    (COMPILED, "which Python or a test runner takes in place of source"),
    (EXTENSIONS, "a compiled module, which Python takes in place of source"),
    (STARTED, "a file that Python reads or runs whenever it starts"),
    (METADATA, "what test runners take for a plug-in's entry"),
    (SHADOWS, "a module in the place of the test runner's own"),
    (INSTALLED, "a file among the installed tools"),
    (PROGRAMS, "a program by the name of the test command's own"),
    (
        ("**/jest.*", "**/vitest.*", "**/vite.config.*", "**/babel.config.*", "**/.babelrc*"),
        "the test runner's configuration",
    ),
)


_FIRST = frozenset({"", "src", "lib", "test", "tests"})
_TAKEN = (sys.stdlib_module_names | {*RUNNERS_OWN, "_pytest", "xdist", "coverage"}) - {"test"}


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
    documented = paths if "doctest" in command else ()
    return ChangedFiles(
        code=tuple(_code(paths, tests | named | acting)),
        tests=tuple(path for path in paths if path in tests or path in named - acting),
        harness=harness,
        edits=tuple(_edits(base, candidate, tests)),
        marks=(
            *_marks(base, candidate, _code(sorted(candidate), tests | named | acting), _MARKS),
            *_marks(base, candidate, sorted(tests & candidate.keys()), _NAMING),
            *(it for path in documented for it in _doctests(path, base, candidate)),
        ),
    )


# By these, and by nothing else, code can ask whether it is tested; no other words are looked for.
_MARKS = re.compile(
    r"PYTEST_CURRENT_TEST|NODE_TEST_CONTEXT|\b_getframe\b|\bcurrentframe\(|\binspect\.stack\("
)


def _doctests(
    path: str, base: Mapping[str, str], candidate: Mapping[str, str]
) -> Iterator[HarnessChange]:
    """Examples of base's documentation that the change has not, where they are run as tests."""
    now = _examples(path, candidate.get(path, ""))
    for source, wanted in _examples(path, base.get(path, "")).items():
        if now.get(source) != wanted:
            new = now.get(source, "(no example)") or "(nothing)"
            what = f"doctest {source[:VALUE]}: {wanted[:VALUE]} → {new[:VALUE]}"
            yield HarnessChange(path, " ".join(what.split()), _line(base[path], source[:20]))


def _examples(path: str, text: str) -> dict[str, str]:
    documents = [text] if path.endswith(_PROSE) else []
    module = parsed(text) if path.endswith(".py") and len(text) <= FILE else None
    for it in ast.walk(module) if module else ():
        if isinstance(it, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            documents += [ast.get_docstring(it) or ""]
    found: dict[str, str] = {}
    for document in documents:
        with suppress(ValueError):
            examples = doctest.DocTestParser().get_examples(document[:FILE])
            found |= {it.source.strip(): it.want.strip() for it in examples}
    return found


# By this a test can take another test's name in a report.
_NAMING = re.compile(r"\brecord_xml_attribute\b|\b_pytest\.junitxml\b")


def _marks(
    base: Mapping[str, str],
    candidate: Mapping[str, str],
    paths: Iterable[str],
    words: re.Pattern[str],
) -> Iterator[HarnessChange]:
    for path in paths:
        known = frozenset(base.get(path, "").splitlines())
        if base.get(path) == candidate[path] or not path.endswith(_PROGRAMS):
            continue
        for number, line in enumerate(candidate[path].splitlines(), 1):
            if line not in known and words.search(line):
                yield HarnessChange(path, line.strip()[:VALUE], number)


def _edits(
    base: Mapping[str, str], candidate: Mapping[str, str], tests: frozenset[str]
) -> Iterator[tuple[str, str, str]]:
    """What files beside tests said and say now, as far as a human needs to see it."""
    for path in sorted(tests & base.keys() & candidate.keys()):
        if not path.endswith((".py", ".go", *(f".{it}" for it in SCRIPTS))):
            old, new = base[path].splitlines(), candidate[path].splitlines()
            yield path, _first(old, new), _first(new, old)


def _first(lines: Sequence[str], others: Sequence[str]) -> str:
    known = frozenset(others)
    only = [it.strip() for it in lines if it not in known][:EDITS]
    return "; ".join(only)[:VALUE] or "(nothing)"


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
        what = f"{_verb(before, after)} {path}, {_meaning(path)}"
        yield HarnessChange(path, what, weight=_weight(path, after))
    elif before is None and _shadows(path):
        what = f"adds {path}, a module in the place of Python's own or a test runner's"
        yield HarnessChange(path, what, weight=Weight.ASKED)


def _weight(path: str, after: str | None) -> Weight:
    """What is taken away takes nobody in."""
    if after is None:
        return Weight.NOTED
    if is_like(path, COMPILED):
        return Weight.REFUSED
    return Weight.ASKED if is_like(path, (*STRUCTURAL, *SHADOWS, *INSTALLED)) else Weight.NOTED


def _shadows(path: str) -> bool:
    """A module's name that Python finds before its own, where tests put their folder first."""
    folder, _, name = path.removesuffix("/__init__.py").rpartition("/")
    module = name.removesuffix(".py")
    stands = path.endswith("/__init__.py") or name.endswith(".py")
    return stands and folder in _FIRST and module in _TAKEN


def _go(path: str, before: str, after: str) -> Iterator[HarnessChange]:
    if go.has_setup(after) and not go.has_setup(before):
        yield HarnessChange(path, f"{path} adds TestMain, which decides how the tests are run")
    tags = (_TAGS.findall(before), _TAGS.findall(after))
    if before and after and tags[0] != tags[1]:
        yield HarnessChange(path, f"{path} has other build tags: {' '.join(tags[1])[:100]}")


def _meaning(path: str) -> str:
    for patterns, words in _WORDS:
        if matching((path,), patterns) or is_like(path, patterns):
            return words
    return "which the test command uses"


def _verb(before: str | None, after: str | None) -> str:
    if before is None:
        return "adds"
    return "changes" if after is not None else "removes"
