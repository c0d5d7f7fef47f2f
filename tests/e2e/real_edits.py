"""Honest edits of real projects, judged by the differential gate: how many are asked about.

    python -m tests.e2e.real_edits DIRECTORY [DIRECTORY …] [--commits N] [--seconds N]

Each directory is an unpacked source distribution with tests for pytest. The edits are those that
changelogs are full of and that change no expectation. With `--commits` each directory is a
repository, and its last N commits that touch Python are judged, each on its own parent. Nothing of
the projects is kept.
"""

import argparse
import ast
import io
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from lockgate.core.differential.test_files import files_of_tests
from lockgate.core.model.limits import STRENGTH_SECONDS
from tests.e2e.cheats.stage import PYTEST, Case, Theatre, words_of

LARGEST = 400_000  # characters of a file
PLUG_INS = "unset PYTEST_DISABLE_PLUGIN_AUTOLOAD\n"  # as it is for people
LEFT_OUT = ("egg-info", ".git/", "__pycache__", "PKG-INFO")
RESULT = re.compile(r"^( +)return ([^\n]+)$", re.MULTILINE)

Files = dict[str, str]
Changed = Mapping[str, str | None]  # None for a file that is gone
Edit = Callable[[Files], Changed | None]  # None where a project has no place
Made = tuple[str, Files, Changed | None]  # what it is called, and base's files


def main() -> int:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("directories", nargs="+", type=Path)
    reader.add_argument("--commits", type=int, default=0)
    reader.add_argument("--seconds", type=float, default=3600.0)
    given = reader.parse_args()
    until = time.monotonic() + given.seconds
    with tempfile.TemporaryDirectory() as place:
        theatre = Theatre(Path(place), strength=STRENGTH_SECONDS)
        for directory in given.directories:
            made = _history(directory, given.commits) if given.commits else _edits(directory)
            for line in _judged(theatre, directory, made, until):
                sys.stdout.write(f"{line}\n")
                sys.stdout.flush()
    return 0


def _edits(directory: Path) -> Iterator[Made]:
    base = _files(directory)
    for name, edit in EDITS.items():
        yield name, base, edit(base)


def _history(repository: Path, count: int) -> Iterator[Made]:
    """Each commit with the files of its parent, and those that it changes."""
    wanted = ("log", "--no-merges", "--min-parents=1", f"-n{count}", "--format=%h %s", "--", "*.py")
    for line in _git(repository, *wanted).decode().splitlines():
        commit = line.partition(" ")[0]
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            for side, place in ((f"{commit}~", one), (commit, other)):
                files = io.BytesIO(_git(repository, "archive", "--format=tar", side))
                with tarfile.open(fileobj=files) as packed:
                    packed.extractall(place, filter="data")
            base, after = _files(Path(one)), _files(Path(other))
        new = {path: text for path, text in after.items() if base.get(path) != text}
        yield line, base, {**new, **dict.fromkeys(it for it in base if it not in after)}


def _git(repository: Path, *words: str) -> bytes:
    return subprocess.run(["git", "-C", repository, *words], check=True, capture_output=True).stdout


def _judged(
    theatre: Theatre, directory: Path, edits: Iterator[Made], until: float
) -> Iterator[str]:
    command = PLUG_INS + PYTEST.replace("PYTHONPATH=.", "PYTHONPATH=src:.")
    for name, base, change in edits:
        if change is None or time.monotonic() > until:
            yield f"{directory.name}\t{name}\t{'no place' if change is None else 'no time'}"
            continue
        case = Case(name=name, base=base, change=change, command=command)
        began = time.monotonic()
        result = theatre.result_of(case)
        said = " ".join(words_of(result).split())[:300]
        took = time.monotonic() - began
        yield f"{directory.name}\t{name}\t{type(result).__name__}\t{took:.0f} s\t{said}"


def _files(directory: Path) -> Files:
    found: Files = {}
    for path in sorted(it for it in directory.rglob("*") if it.is_file()):
        name = str(path.relative_to(directory))
        if path.stat().st_size < LARGEST and not any(it in name for it in LEFT_OUT):
            try:
                found[name] = path.read_text("utf-8")
            except UnicodeDecodeError:
                continue
    return found


def _code(files: Files) -> list[str]:
    """Modules that are no tests, the longest first."""
    tests = {*files_of_tests(files, ())}
    every = (it for it in files if it.endswith(".py") and it not in tests and "setup.py" not in it)
    return sorted(every, key=lambda it: -len(files[it]))


def _tests(files: Files) -> list[str]:
    own = (it for it in files_of_tests(files, ()) if it.endswith(".py") and "def test" in files[it])
    return sorted(own, key=lambda it: -len(files[it]))


def _first_test(files: Files) -> tuple[str, ast.FunctionDef]:
    path = _tests(files)[0]
    every = ast.walk(ast.parse(files[path]))
    return path, next(
        it for it in every if isinstance(it, ast.FunctionDef) and it.name.startswith("test")
    )


def _readme(files: Files) -> Files | None:
    path = next((it for it in files if it.startswith("README")), None)
    return {path: f"{files[path]}\nQuestions are welcome in the issue tracker.\n"} if path else None


def _comment(files: Files) -> Files | None:
    path = _code(files)[0]
    return {path: f"{files[path]}\n\n# Names of this module may be imported from anywhere.\n"}


def _function(files: Files) -> Files | None:
    path = _code(files)[0]
    added = "\n\ndef version_parts(text):\n    return tuple(text.split('.'))\n"
    return {path: files[path] + added}


def _new_test(files: Files) -> Files | None:
    path = _tests(files)[0]
    test = "\n\ndef test_numbers_are_sorted():\n    assert sorted([2, 1]) == [1, 2]\n"
    return {path: files[path].rstrip("\n") + "\n" + test}


def _documented(files: Files) -> Files | None:
    """A test gets a line that says what it is about."""
    path, node = _first_test(files)
    lines = files[path].split("\n")
    first = node.body[0]
    indent = " " * first.col_offset
    lines.insert(first.lineno - 1, f'{indent}"""See the changelog."""')
    return {path: "\n".join(lines)}


def _renamed(files: Files) -> Files | None:
    path, node = _first_test(files)
    return {path: re.sub(rf"\b{node.name}\b", f"{node.name}_as_documented", files[path])}


def _moved(files: Files) -> Changed | None:
    """A test file under another name."""
    path = _tests(files)[0]
    folder, _, name = path.rpartition("/")
    if any(name.removesuffix(".py") in text for it, text in files.items() if it != path):
        return None
    other = f"{folder}/{name.removesuffix('.py')}_more.py".lstrip("/")
    return {path: None, other: files[path]}


def _refactored(files: Files) -> Files | None:
    """A value gets a name before it is returned."""
    for path in _code(files):
        for it in RESULT.finditer(files[path]):
            named = f"{it[1]}found = {it[2]}\n{it[1]}return found"
            changed = files[path][: it.start()] + named + files[path][it.end() :]
            try:
                ast.parse(f"({it[2]})")
                ast.parse(changed)
            except SyntaxError:
                continue
            return {path: changed}
    return None


EDITS: dict[str, Edit] = {
    "readme": _readme,
    "comment": _comment,
    "new function": _function,
    "new test": _new_test,
    "test documented": _documented,
    "test renamed": _renamed,
    "test file moved": _moved,
    "value named": _refactored,
}

if __name__ == "__main__":
    sys.exit(main())
