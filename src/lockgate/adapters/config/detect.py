"""What a repository's own files say about its tests, types and set-up; nothing is run."""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

MAX_BYTES = 1_000_000


class Seen(Struct, frozen=True):
    """A command, and the file or entry that it was seen by."""

    command: str
    by: str


class Detected(Struct, frozen=True, kw_only=True):
    """What was found; what was not is None or empty."""

    test: Seen | None = None
    typecheck: Seen | None = None
    setup: Seen | None = None
    inputs: tuple[str, ...] = ()
    test_paths: tuple[str, ...] = ()


# A command that reports its tests one by one, which is what the differential gate compares.
_NAMES_TESTS = re.compile(
    r"--junit-?xml\b|\bgo test\b.* -json\b|--junitfile\b|--test-reporter[= ]junit\b"
    r"|\bjest-junit\b|--reporter[= ]junit\b"
)


def names_tests(command: str) -> bool:
    return bool(_NAMES_TESTS.search(command))


def detect(root: Path) -> Detected:
    """Of several languages the first with a test command; a Makefile fills what is missing."""
    found = [language(root) for language in (_python, _node, _go, _rust)]
    tested = [it for it in found if it.test]
    known = [it for it in found if it != Detected()]
    best = (*tested, *known, Detected())[0]
    make = _make(root)
    return replace(best, test=best.test or make.test, typecheck=best.typecheck or make.typecheck)


# --- Python -------------------------------------------------------------------------------------


def _python(root: Path) -> Detected:
    files = (
        "uv.lock",
        "poetry.lock",
        "pyproject.toml",
        "requirements.txt",
        "setup.py",
        "setup.cfg",
    )
    inputs = _present(root, *files, "requirements-dev.txt", "tox.ini")
    if not inputs:
        return Detected()
    project = _toml(root / "pyproject.toml")
    prefix, setup = _python_setup(root, project)
    test = _python_test(root, inputs)
    return Detected(
        test=test and Seen(f"{prefix}{test.command}", test.by),
        typecheck=_python_types(root, project, prefix),
        setup=setup,
        inputs=tuple(it for it in inputs if it != "tox.ini"),
        test_paths=("tests/**",) if (root / "tests").is_dir() else ("**/test_*.py", "**/*_test.py"),
    )


def _python_setup(root: Path, project: Mapping[str, Any]) -> tuple[str, Seen | None]:
    """What goes before a Python tool's name, and the command that installs the tools."""
    if (root / "uv.lock").is_file() or "uv" in _table(project, "tool"):
        return "uv run --no-sync ", Seen("uv sync", "uv")
    if (root / "poetry.lock").is_file() or "poetry" in _table(project, "tool"):
        return "poetry run ", Seen("poetry install", "poetry")
    wanted = [f"-r {it}" for it in _present(root, "requirements.txt", "requirements-dev.txt")]
    if _present(root, "pyproject.toml", "setup.py"):
        extras = _table(project, "project", "optional-dependencies")
        chosen = ",".join(it for it in ("dev", "test", "tests") if it in extras)
        wanted.append(f"-e '.[{chosen}]'" if chosen else "-e .")
    if not wanted:
        return "", None
    install = f"python3 -m venv .venv && .venv/bin/pip install {' '.join(wanted)}"
    return ".venv/bin/python -m ", Seen(install, wanted[0].split()[-1])


def _python_test(root: Path, inputs: tuple[str, ...]) -> Seen | None:
    marks = _present(root, "pytest.ini", "conftest.py", "tests/conftest.py")
    named = [it for it in inputs if "pytest" in _text(root / it)]
    for by in (*marks, *named):
        return Seen("pytest -q --junitxml=$OUT/junit.xml", by)
    if (root / "tests").is_dir():
        return Seen("unittest discover -s tests", "tests/")
    return None


def _python_types(root: Path, project: Mapping[str, Any], prefix: str) -> Seen | None:
    tools = _table(project, "tool")
    if (root / "mypy.ini").is_file() or "mypy" in tools or "[mypy]" in _text(root / "setup.cfg"):
        files = (
            "" if "files" in _table(tools, "mypy") else " src" if (root / "src").is_dir() else " ."
        )
        return Seen(f"{prefix}mypy{files}", "the mypy configuration")
    if (root / "pyrightconfig.json").is_file() or "pyright" in tools:
        return Seen(f"{prefix}pyright", "the pyright configuration")
    return None


# --- Node ---------------------------------------------------------------------------------------

_LOCKS = {
    "pnpm-lock.yaml": ("pnpm", "pnpm install --frozen-lockfile", "pnpm exec"),
    "yarn.lock": ("yarn", "yarn install --frozen-lockfile", "yarn run"),
    "package-lock.json": ("npm", "npm ci", "npx --no-install"),
}
_NO_LOCK = ("npm", "npm install", "npx --no-install")


def _node(root: Path) -> Detected:
    package = _json(root / "package.json")
    if not package:
        return Detected()
    locks = _present(root, *_LOCKS)
    tool, install, run = _LOCKS[locks[0]] if locks else _NO_LOCK
    return Detected(
        test=_node_test(package, tool, run),
        typecheck=_node_types(root, package, tool, run),
        setup=Seen(install, locks[0] if locks else "package.json"),
        inputs=(*locks, "package.json"),
        test_paths=("**/*.test.*", "**/*.spec.*", "**/__tests__/**"),
    )


def _node_test(package: Mapping[str, Any], tool: str, run: str) -> Seen | None:
    script = _table(package, "scripts").get("test")
    installed = {**_table(package, "dependencies"), **_table(package, "devDependencies")}
    if isinstance(script, str) and script.strip() and "no test specified" not in script:
        passed_on = "npm test --" if tool == "npm" else f"{tool} test"
        named = _reporting(script.strip(), passed_on, installed)
        return Seen(named or f"{tool} test", "scripts.test in package.json")
    for name, arguments in (("vitest", "vitest run"), ("jest", "jest")):
        if name in installed:
            command = f"{run} {arguments}"
            named = _reporting(arguments, command, installed)
            return Seen(named or command, f"{name} in package.json")
    return None


def _reporting(script: str, command: str, installed: Mapping[str, Any]) -> str | None:
    """The command with a report in $OUT, where the script takes what is added behind it."""
    if re.fullmatch(r"node(?: --[\w=-]+)* --test(?: --[\w=-]+)*", script):
        return f"{command} {_NODE_REPORT}"
    if re.fullmatch(r"vitest(?: run| --[\w=-]+)*", script):
        once = "" if " run" in script or "--run" in script else " --run"
        return f"{command}{once} {_VITEST_REPORT}"
    if "jest-junit" in installed and re.fullmatch(r"jest(?: --[\w=-]+)*", script):
        return f"JEST_JUNIT_OUTPUT_DIR=$OUT {command} {_JEST_REPORT}"
    return None


_NODE_REPORT = (
    "--test-reporter=junit --test-reporter-destination=$OUT/junit.xml"
    " --test-reporter=spec --test-reporter-destination=stdout"
)
_VITEST_REPORT = "--reporter=default --reporter=junit --outputFile.junit=$OUT/junit.xml"
_JEST_REPORT = "--reporters=default --reporters=jest-junit"


def _node_types(root: Path, package: Mapping[str, Any], tool: str, run: str) -> Seen | None:
    for name in ("typecheck", "type-check", "check-types", "tsc"):
        if name in _table(package, "scripts"):
            return Seen(f"{tool} run {name}", f"scripts.{name} in package.json")
    if (root / "tsconfig.json").is_file():
        return Seen(f"{run} tsc --noEmit", "tsconfig.json")
    return None


# --- Go, Rust, make -----------------------------------------------------------------------------


def _go(root: Path) -> Detected:
    if not (root / "go.mod").is_file():
        return Detected()
    return Detected(
        test=Seen("go test -json ./...", "go.mod"),
        typecheck=Seen("go vet ./...", "go.mod"),
        setup=Seen("go mod download", "go.mod"),
        inputs=_present(root, "go.mod", "go.sum"),
        test_paths=("**/*_test.go", "**/testdata/**"),
    )


def _rust(root: Path) -> Detected:
    if not (root / "Cargo.toml").is_file():
        return Detected()
    return Detected(
        test=Seen("cargo test", "Cargo.toml"),
        typecheck=Seen("cargo check --all-targets", "Cargo.toml"),
        setup=Seen("cargo fetch", "Cargo.toml"),
        inputs=_present(root, "Cargo.toml", "Cargo.lock"),
        test_paths=("tests/**", "**/tests/**"),
    )


def _make(root: Path) -> Detected:
    rules = set(re.findall(r"^([A-Za-z_-]+):(?!=)", _text(root / "Makefile"), re.MULTILINE))
    return Detected(
        test=Seen("make test", "Makefile") if "test" in rules else None,
        typecheck=Seen("make typecheck", "Makefile") if "typecheck" in rules else None,
    )


# --- reading ------------------------------------------------------------------------------------


def _present(root: Path, *names: str) -> tuple[str, ...]:
    return tuple(name for name in names if (root / name).is_file())


def _text(path: Path) -> str:
    """The file's text, its first million bytes; empty where it cannot be read."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(MAX_BYTES).decode(errors="replace")
    except OSError:
        return ""


def _toml(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(_text(path))
    except (ValueError, RecursionError):
        return {}


def _json(path: Path) -> Mapping[str, Any]:
    try:
        return _table({"": json.loads(_text(path))}, "")
    except (ValueError, RecursionError):
        return {}


def _table(value: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """The table at the end of the keys; empty where there is none."""
    here: object = value
    for key in keys:
        here = cast("Mapping[str, object]", here).get(key) if isinstance(here, Mapping) else None
    return cast("Mapping[str, Any]", here) if isinstance(here, Mapping) else {}


def told(seen: Detected) -> dict[str, str]:
    """What was found, for people."""
    parts = {"test": seen.test, "typecheck": seen.typecheck, "setup": seen.setup}
    return {
        key: f"{part.command} (seen by {part.by})" if part else "not found"
        for key, part in parts.items()
    }
