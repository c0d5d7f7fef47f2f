"""A Python project: how it is installed, which runner tests it, whether types are checked."""

import re
from collections.abc import Iterator

from lockgate.core.discovery.found import Package, Seen, Tree, quote, strings, table, toml
from lockgate.core.discovery.python_installs import (
    Need,
    ini,
    mentions,
    needs,
    pip_words,
    sessions,
)
from lockgate.core.discovery.shell import Call, calls_in

VENV = ".venv/bin/python"
PYTEST = "-m pytest -q --junitxml=$OUT/junit.xml"
MARKS = ("pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "requirements.txt", "uv.lock")
TESTS = ("**/test_*.py", "**/*_test.py", "**/tests.py", "tests/**/*.py", "test/**/*.py")
CONFTEST = ("conftest.py", "**/conftest.py")

# An option or a setting of pytest, or what a test uses, and the package that brings it.
PLUGINS = {
    r"--cov\b|--cov[-=]|--no-cov": "pytest-cov",
    r"(?<![\w-])-n[ =]?(?:auto|logical|\d)|--numprocesses|--dist[= ]": "pytest-xdist",
    r"--timeout[= ]|^timeout(?:_method)? =": "pytest-timeout",
    r"^asyncio_\w+ =|--asyncio-mode": "pytest-asyncio",
    r"--benchmark-": "pytest-benchmark",
    r"--mypy\b": "pytest-mypy",
    r"--reruns\b": "pytest-rerunfailures",
    r"--randomly-|-p no:randomly": "pytest-randomly",
    r"--snapshot-": "syrupy",
    r"--black\b": "pytest-black",
    r"--flake8\b": "pytest-flake8",
    r"--ruff\b": "pytest-ruff",
    r"--checkdocs\b": "pytest-checkdocs",
    r"--disable-socket|--allow-hosts": "pytest-socket",
    r"^DJANGO_SETTINGS_MODULE =": "pytest-django",
    r"^(?:env|env_files) =": "pytest-env",
    r"^trio_mode =": "pytest-trio",
}
USES = {
    r"pytest\.mark\.asyncio|pytest_asyncio": "pytest-asyncio",
    r"pytest\.mark\.trio": "pytest-trio",
    r"def test\w*\([^)]*\bmocker\b": "pytest-mock",
    r"def test\w*\([^)]*\brequests_mock\b": "requests-mock",
    r"def test\w*\([^)]*\bhttpx_mock\b": "pytest-httpx",
    r"^(?:from|import) hypothesis\b": "hypothesis",
}
# Options of a command line that choose tests; all others are the project's own business.
_CHOOSES = {
    "-k",
    "-m",
    "--ignore",
    "--ignore-glob",
    "--deselect",
    "--pyargs",
    "--import-mode",
    "-p",
}
_TAKES_NO_VALUE = {"--pyargs"}


def python(tree: Tree) -> Package | None:
    """None where nothing says that it is one."""
    tests = test_files(tree)
    marks = tree.has(*MARKS)
    if not marks and not any(re.match(r"tests?/|[^/]*$", it) for it in tests):
        return None
    runner = _runner(tree, tests) if tests else None
    needed = needs(tree, runner[0]) if runner else needs(tree, "")
    types = _types(tree)
    setup = _set_up(tree, needed)
    text = "\n".join(it.text for it in needed)
    adds = tuple(_adds(tree, runner, types, text))
    return Package(
        name=str(table(tree.toml("pyproject.toml"), "project").get("name", "")),
        language="python",
        setup=setup if setup or not adds else Seen("python3 -m venv .venv", tests[0]),
        adds_with=_adds_with(setup),
        adds=adds,
        inputs=tuple(_inputs(tree, needed)),
        test=runner and Seen(f"{VENV} {runner[1]}", runner[2]),
        typecheck=types and Seen(f"{VENV} {types[1]}", types[2]),
    )


def test_files(tree: Tree) -> tuple[str, ...]:
    found = tree.like(*TESTS)
    return tuple(it for it in found if re.search(r"(?:^|/)(?:test|tests)[^/]*\.py$|_test\.py$", it))


# --- the runner ---------------------------------------------------------------------------------

Chosen = tuple[str, str, str]  # the runner's package, its command behind `python`, seen by


def _runner(tree: Tree, tests: tuple[str, ...]) -> Chosen:
    for call, by in witnesses(tree):
        if call.program in {"pytest", "py.test"}:
            return "pytest", _joined(PYTEST, _choosing(tree, call)), by
        if call.program == "unittest" and not _uses_pytest(tree):
            return _unittest(tree, tests, call, by)
    by = _uses_pytest(tree)
    if by:
        return "pytest", PYTEST, by
    if tree.has("manage.py"):
        return "Django", "manage.py test", "manage.py"
    sample = [tree.text(it) for it in tests if tree.text(it)]
    if sample and all(
        re.search(r"\bunittest\b|TestCase\b", it) or "def test" not in it for it in sample
    ):
        return _unittest(tree, tests, None, tests[0])
    return "pytest", PYTEST, tests[0]


def witnesses(tree: Tree) -> Iterator[tuple[Call, str]]:
    """The commands that test this project, the best witness first: CI, tox, nox, make, just."""
    for it in tree.said:
        yield from ((call, it.by) for call in calls_in(it.command))
    sections = ("testenv", "testenv:test", "testenv:tests", "testenv:py")
    yield from ((call, "tox.ini") for call in _of_tox(tree, sections))
    yield from ((call, "noxfile.py") for call in _of_nox(tree))
    scripts = table(tree.toml("pyproject.toml"), "tool", "hatch", "envs", "test", "scripts")
    for line in (line for script in scripts.values() for line in strings(script)):
        yield from ((it, "tool.hatch in pyproject.toml") for it in calls_in(line))
    for file, recipe in recipes(tree):
        yield from ((it, file) for it in calls_in(recipe))


def _of_tox(tree: Tree, sections: tuple[str, ...]) -> Iterator[Call]:
    for section in sections:
        text = ini(tree.text("tox.ini"), section).get("commands", "")
        plain = re.sub(r"\{posargs:?([^}]*)\}", r"\1", text)
        plain = re.sub(r"\{tox_?ini_?dir\}/?", "", plain).replace("{envpython}", "python")
        for line in strings(plain):
            yield from calls_in(line)


def _of_nox(tree: Tree) -> Iterator[Call]:
    for name, body in sessions(tree.text("noxfile.py")):
        if "test" in name:
            for found in re.findall(r"session\.run\(([^)]*)\)", body, re.DOTALL):
                words = re.findall(r"""["']([^"'\n]*)["']""", found)
                yield from calls_in(" ".join(quote(it) for it in words))


def recipes(tree: Tree) -> Iterator[tuple[str, str]]:
    """What `make test` and `just test` would run, as far as it is written there."""
    for file in tree.has("Makefile", "makefile", "GNUmakefile", "justfile", "Justfile"):
        for match in re.finditer(
            r"^(?:tests?|check|unit)\b[^\n=]*:(?!=)[^\n]*\n((?:[ \t]+[^\n]*\n?)+)",
            tree.text(file),
            re.MULTILINE,
        ):
            yield file, "\n".join(it.strip() for it in match[1].splitlines())


def _uses_pytest(tree: Tree) -> str:
    """The file that says so; empty where none does."""
    marks = (*tree.has("pytest.ini", ".pytest.ini", "pytest.toml"), *tree.like(*CONFTEST))
    if marks:
        return marks[0]
    named = ("pyproject.toml", "tox.ini", "setup.cfg", "setup.py", "noxfile.py", "Pipfile")
    files = (*named, *tree.like("*requirements*", "requirements/*", "tests/*requirements*"))
    for name in dict.fromkeys(files):
        if mentions(tree.text(name), "pytest"):
            return name
    samples = (
        it
        for it in test_files(tree)
        if re.search(r"^\s*(?:import|from) pytest\b", tree.text(it), re.MULTILINE)
    )
    return next(samples, "")


def _unittest(tree: Tree, tests: tuple[str, ...], call: Call | None, by: str) -> Chosen:
    """With a report that names the tests, by a runner that takes what unittest takes."""
    words = [it for it in (call.arguments if call else ()) if it not in {"-v", "--verbose", "-b"}]
    words = [] if any("$" in it or "{" in it for it in words) else words
    if not words or words[0] != "discover":
        plain = [it for it in words if not it.startswith("-")]
        if plain:
            return "unittest-xml-reporting", _joined("-m xmlrunner", (*plain, "-o", "$OUT")), by
        words = ["discover", *words]
    if len(words) == 1:
        top = next((it for it in ("tests", "test") if tree.folder(it)), _folder(tests[0]))
        words += ["-s", top]
        words += ["-t", "."] if f"{top}/__init__.py" in tree.paths else []
    return "unittest-xml-reporting", _joined("-m xmlrunner", (*words, "-o", "$OUT")), by


def _folder(path: str) -> str:
    return path.rpartition("/")[0] or "."


def _joined(start: str, words: tuple[str, ...]) -> str:
    return " ".join((start, *(it if it == "$OUT" else quote(it) for it in words)))


def _choosing(tree: Tree, call: Call) -> tuple[str, ...]:
    """The arguments that choose which tests are run."""
    kept: list[str] = []
    words = list(call.arguments)
    while words:
        word = words.pop(0)
        name = word.partition("=")[0]
        if word in _TAKES_NO_VALUE or (name in _CHOOSES and "=" in word):
            kept.append(word)
        elif name in _CHOOSES and words:
            kept += [word, words.pop(0)]
        elif word.startswith("-") and "=" not in word and words and _is_value(word, words[0], tree):
            words.pop(0)
        elif _is_path(word, tree):
            kept.append(word)
    return () if any("$" in it or "{" in it for it in kept) else tuple(kept)


def _is_path(word: str, tree: Tree) -> bool:
    plain = word.partition("::")[0].rstrip("/").removeprefix("./")
    return not word.startswith("-") and (plain in tree.paths or tree.folder(plain))


def _is_value(option: str, word: str, tree: Tree) -> bool:
    return (
        len(option) == len("-x")
        and option not in {"-v", "-q", "-s", "-x", "-l"}
        and not _is_path(word, tree)
    )


# --- types --------------------------------------------------------------------------------------


def _types(tree: Tree) -> Chosen | None:
    """Only where the project has configured it."""
    tools = table(tree.toml("pyproject.toml"), "tool")
    configured = tree.has("mypy.ini", ".mypy.ini") or ("pyproject.toml",) * ("mypy" in tools)
    if configured or ini(tree.text("setup.cfg"), "mypy"):
        by = (*configured, "setup.cfg")[0]
        return "mypy", _joined("-m mypy", _checked(tree)), by
    if tree.has("pyrightconfig.json") or "pyright" in tools:
        by = (*tree.has("pyrightconfig.json"), "pyproject.toml")[0]
        return "pyright[nodejs]", "-m pyright", by
    return None


TYPE_SECTIONS = tuple(f"testenv:{it}" for it in ("mypy", "type", "types", "typing", "lint"))


def _checked(tree: Tree) -> tuple[str, ...]:
    """What the project's own command names, else what its configuration leaves open."""
    tools = table(tree.toml("pyproject.toml"), "tool")
    written = (ini(tree.text(it), "mypy") for it in ("mypy.ini", ".mypy.ini", "setup.cfg"))
    known = {key for it in (table(tools, "mypy"), *written) for key in it}
    if known & {"files", "packages", "modules"}:
        return ()
    for call in (*(it for it, _ in witnesses(tree)), *_of_tox(tree, TYPE_SECTIONS)):
        if call.program == "mypy":
            named = tuple(it for it in call.arguments if _is_path(it, tree))
            if named:
                return named
    return ("src",) if tree.folder("src") else tuple(_top_packages(tree)) or (".",)


def _top_packages(tree: Tree) -> Iterator[str]:
    for it in tree.like("*/__init__.py"):
        name = it.partition("/")[0]
        if name not in {"tests", "test", "docs", "examples"}:
            yield name


# --- set-up -------------------------------------------------------------------------------------


def _set_up(tree: Tree, needed: tuple[Need, ...]) -> Seen | None:
    project = tree.toml("pyproject.toml")
    tools = table(project, "tool")
    if "uv.lock" in tree.paths and "uv" in tree.tools:
        return Seen(" ".join((f"{_versioned(tree)}uv sync", *_uv_words(needed))), "uv.lock")
    poetry = table(tools, "poetry")
    if tree.has("poetry.lock") or {"group", "dev-dependencies"} & poetry.keys():
        return Seen(_poetry(tree, poetry), (*tree.has("poetry.lock"), "pyproject.toml")[0])
    words = pip_words(needed)
    if not words:
        return None
    newer = " && .venv/bin/pip install -q -U pip" if "--group" in words else ""
    install = f"python3 -m venv .venv{newer} && {_versioned(tree)}.venv/bin/pip install {words}"
    return Seen(install, needed[-1].by)


def _versioned(tree: Tree) -> str:
    """A version for what takes it from git's tags, of which a checkout of ours has none."""
    text = "\n".join(tree.text(it) for it in ("pyproject.toml", "setup.py", "setup.cfg"))
    version = tree.version or _written_version(tree) or "99.0"
    if re.search(r"setuptools[-_]scm|hatch-vcs|vcs-versioning", text):
        return f"SETUPTOOLS_SCM_PRETEND_VERSION={version} "
    scm = table(tree.toml("pyproject.toml"), "tool", "pdm", "version").get("source") == "scm"
    return f"PDM_BUILD_SCM_VERSION={version} " if scm else ""


def _written_version(tree: Tree) -> str:
    """What a source distribution or the newest entry of a changelog says.

    A version that is made up may be one that the project's own dependencies do not allow.
    """
    found = re.search(r"^Version: (\d[\w.]*)$", tree.text("PKG-INFO"), re.MULTILINE)
    entries = (_ENTRY.search(tree.text(it)) for it in tree.like(*CHANGELOGS))
    newest = next(filter(None, entries), None)
    return (found and found[1]) or (newest and newest[1]) or ""


CHANGELOGS = ("CHANGELOG*", "CHANGES*", "HISTORY*", "NEWS*", "docs/change*", "docs/history*")
_ENTRY = re.compile(r"^(?:[\w#*=-]+\s+){0,3}\[?v?(\d+\.\d+(?:\.\d+)*)\b(?!\.x)", re.MULTILINE)


def _uv_words(needed: tuple[Need, ...]) -> Iterator[str]:
    for need in needed:
        if need.words[0] == "--group":
            yield from need.words
        if need.words[0] == "-e" and "[" in need.words[1]:
            for extra in need.words[1][2:-1].split(","):
                yield from ("--extra", extra)


def _poetry(tree: Tree, poetry: object) -> str:
    """In a virtual environment beside the sources; where poetry is missing, it gets another."""
    groups = table({"": poetry}, "", "group")
    optional = [
        it for it, group in groups.items() if table({"": group}, "").get("optional") is True
    ]
    wanted = [it for it in optional if it in {"test", "tests", "testing", "dev"}]
    words = f" --with {','.join(wanted)}" if wanted else ""
    start = "python3 -m venv .venv"
    program = "poetry"
    if "poetry" not in tree.tools:
        start += " && python3 -m venv .poetry && .poetry/bin/pip install -q poetry"
        program = ".poetry/bin/poetry"
    return f"{start} && VIRTUAL_ENV=$PWD/.venv {program} install -n --all-extras{words}"


def _adds_with(setup: Seen | None) -> str:
    if setup and "uv sync" in setup.command:
        return "uv pip install"
    return ".venv/bin/pip install"


def _adds(tree: Tree, runner: Chosen | None, types: Chosen | None, text: str) -> Iterator[str]:
    """The runner, its plug-ins and the type checker, where nothing else installs them."""
    poetry = (
        tree.text("pyproject.toml")
        if tree.has("poetry.lock") or "tool.poetry" in tree.text("pyproject.toml")
        else ""
    )
    known = f"{text}\n{poetry}"
    if runner and not mentions(known, runner[0]):
        yield runner[0]
    if runner and runner[0] == "pytest":
        yield from (it for it in _plugins(tree) if not mentions(known, it))
    if types and not mentions(known, types[0].partition("[")[0]):
        yield types[0]


def _plugins(tree: Tree) -> Iterator[str]:
    """By what the configuration says and a few tests use."""
    options = table(tree.toml("pyproject.toml"), "tool", "pytest", "ini_options")
    options = options or table(tree.toml("pyproject.toml"), "tool", "pytest")
    lines = [f"{key} = {value}" for key, value in options.items()]
    own = toml(tree.text("pytest.toml"))
    lines += [f"{key} = {value}" for key, value in table(own, "pytest").items()]
    for name, section in (
        ("pytest.ini", "pytest"),
        ("tox.ini", "pytest"),
        ("setup.cfg", "tool:pytest"),
    ):
        lines += [f"{key} = {value}" for key, value in ini(tree.text(name), section).items()]
    text = "\n".join(lines)
    required = re.search(r"^required_plugins = (.*)$", text, re.MULTILINE)
    if required:
        yield from re.findall(r"pytest[\w-]+", required[1])
    used = "\n".join(tree.text(it) for it in (*tree.like(*CONFTEST), *test_files(tree)))
    for table_of, where in ((PLUGINS, text), (USES, used)):
        for pattern, package in table_of.items():
            if re.search(pattern, where, re.MULTILINE):
                yield package


def _inputs(tree: Tree, needed: tuple[Need, ...]) -> Iterator[str]:
    """The files whose change asks for a new set-up."""
    yield from tree.has(
        "uv.lock", "poetry.lock", "pdm.lock", "pyproject.toml", "setup.py", "setup.cfg"
    )
    yield from dict.fromkeys(
        need.words[n + 1] for need in needed for n, it in enumerate(need.words) if it == "-r"
    )
