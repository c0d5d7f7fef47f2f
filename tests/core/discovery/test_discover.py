"""What `init` would write for a repository, from its files alone."""

import json

import pytest

from lockgate.core.discovery.found import (
    Package,
    Plan,
    Said,
    Seen,
    Tree,
    at_top,
    gate_name,
    names_tests,
    quote,
    remarks,
    set_up_of,
    strings,
)
from lockgate.core.discovery.packages import discover, wanted

PYTEST = ".venv/bin/python -m pytest -q --junitxml=$OUT/junit.xml"
XML = ".venv/bin/python -m xmlrunner"
PIP = "python3 -m venv .venv && .venv/bin/pip install"
PIPS = "python3 -m venv .venv && .venv/bin/pip install -q -U pip && .venv/bin/pip install"
NPM = "npm install --no-audit --no-fund --no-package-lock"
CI = "npm ci --no-audit --no-fund"
VITEST = "--reporter=default --reporter=junit --outputFile.junit=$OUT/junit.xml"
JEST = "--reporters=default --reporters=jest-junit"
MOCHA = "--reporter=xunit --reporter-option=output=$OUT/junit.xml"
NODE = (
    "--test-reporter=junit --test-reporter-destination=$OUT/junit.xml"
    " --test-reporter=spec --test-reporter-destination=stdout"
)
TEST = "def test_a():\n    assert True\n"
UNIT = "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): pass\n"
PROJECT = "[project]\nname = 'x'\n"
PACKAGE = {"pyproject.toml": PROJECT, "tests/test_a.py": TEST}


def tree(files: dict[str, str], *said: str, tools: tuple[str, ...] = (), version: str = "") -> Tree:
    spoken = tuple(Said(it, ".github/workflows/ci.yml") for it in said)
    paths = frozenset(files)
    return Tree(paths=paths, texts=files, said=spoken, tools=frozenset(tools), version=version)


def package(**keys: object) -> str:
    return json.dumps(keys)


def only(found: Tree) -> Package:
    one = discover(found).only
    assert one is not None
    return one


# --- Python: files → test, set-up ---------------------------------------------------------------

PYTHON = {
    "nothing": ({}, None, ""),
    "a package and its tests": (PACKAGE, PYTEST, f"{PIP} -e . && .venv/bin/pip install pytest"),
    "an extra for tests": (
        {**PACKAGE, "pyproject.toml": f"{PROJECT}optional-dependencies.test = ['pytest']\n"},
        PYTEST,
        f"{PIP} -e '.[test]'",
    ),
    "an extra for development": (
        {**PACKAGE, "setup.py": "setup(extras_require={'dev': ['pytest']})", "pyproject.toml": ""},
        PYTEST,
        f"{PIP} -e '.[dev]'",
    ),
    "extras in setup.cfg": (
        {"setup.cfg": "[metadata]\n[options.extras_require]\ntesting = pytest\n", "test_a.py": ""},
        PYTEST,
        f"{PIP} -e '.[testing]'",
    ),
    "a group that includes another": (
        {
            **PACKAGE,
            "pyproject.toml": PROJECT + "[dependency-groups]\ntests=[{include-group='t'}]\n"
            "t=['pytest',{include-group='tests'},3]\n",
        },
        PYTEST,
        f"{PIPS} -e . --group tests",
    ),
    "a group that is no list": (
        {**PACKAGE, "pyproject.toml": PROJECT + "[dependency-groups]\ntest = 3\n"},
        PYTEST,
        f"{PIPS} -e . --group test && .venv/bin/pip install pytest",
    ),
    "tox's own list": (
        {
            **PACKAGE,
            "tox.ini": "[testenv]\ndeps =\n    py39: mock\n    pytest\n    {x}y\n    -rr.txt\n"
            "    -r{toxinidir}/more.txt\nextras = a\ndependency_groups = g\n"
            "commands = pytest {posargs:tests} --cov x\n",
            "more.txt": "",
        },
        f"{PYTEST} tests",
        f"{PIPS} mock pytest -r more.txt -e '.[a]' --group g",
    ),
    "tox in pyproject, in the old form": (
        {
            **PACKAGE,
            "pyproject.toml": f"{PROJECT}[tool.tox]\nlegacy_tox_ini = "
            '"""\n[testenv]\ndeps = pytest\n"""\n',
        },
        PYTEST,
        f"{PIP} -e . pytest",
    ),
    "tox in pyproject, in the new form": (
        {
            **PACKAGE,
            "pyproject.toml": PROJECT
            + "[tool.tox.env_run_base]\ndeps=['pytest']\nextras=['a']\ndependency_groups=['g']\n",
        },
        PYTEST,
        f"{PIPS} pytest --group g -e '.[a]'",
    ),
    "tox without anything to install": (
        {**PACKAGE, "tox.ini": "[testenv]\ncommands = pytest\n"},
        PYTEST,
        f"{PIP} -e . && .venv/bin/pip install pytest",
    ),
    "nox, which is read and not run": (
        {
            **PACKAGE,
            "noxfile.py": "def lint(session):\n    session.install('ruff')\n"
            "def tests(session):\n"
            "    session.install('-r', 'r.txt', '-e', '.[a]', '-c', 'c', 'pytest')\n"
            "    session.install('--group', 'g', '.')\n"
            "    session.run('pytest', 'tests', *session.posargs)\n"
            "def test_none(session):\n    session.run('mypy')\n    session.run(tool)\n",
            "r.txt": "",
        },
        f"{PYTEST} tests",
        f"{PIPS} -r r.txt -e '.[a]' pytest --group g",
    ),
    "hatch's environment": (
        {
            **PACKAGE,
            "pyproject.toml": PROJECT + "[tool.hatch.envs.test]\ndependencies=['pytest']\n"
            "features=['a']\ndependency-groups=['g']\n"
            "[tool.hatch.envs.test.scripts]\nrun = 'pytest {args} tests'\n",
        },
        f"{PYTEST} tests",
        f"{PIPS} pytest -e '.[a]' --group g",
    ),
    "pdm's own groups": (
        {
            **PACKAGE,
            "pyproject.toml": PROJECT + "[tool.pdm.dev-dependencies]\ntest = ['pytest', '-e x']\n",
        },
        PYTEST,
        f"{PIP} -e . pytest",
    ),
    "uv's older list": (
        {**PACKAGE, "pyproject.toml": PROJECT + "[tool.uv]\ndev-dependencies = ['pytest']\n"},
        PYTEST,
        f"{PIP} -e . pytest",
    ),
    "requirements for tests": (
        {"requirements.txt": "flask", "requirements/test.txt": "pytest", "tests/test_a.py": TEST},
        PYTEST,
        f"{PIP} -r requirements/test.txt -r requirements.txt",
    ),
    "requirements for development, compiled": (
        {**PACKAGE, "requirements-dev.in": "pytest", "requirements-dev.txt": "pytest==9"},
        PYTEST,
        f"{PIP} -e . -r requirements-dev.txt",
    ),
    "no package by its own word": (
        {"pyproject.toml": "[project]\n[tool.uv]\npackage = false\n", "test_a.py": TEST},
        PYTEST,
        "python3 -m venv .venv && .venv/bin/pip install pytest",
    ),
    "no package of poetry's": (
        {"pyproject.toml": "[tool.poetry]\npackage-mode = false\n", "test_a.py": TEST},
        PYTEST,
        "python3 -m venv .venv && .venv/bin/pip install pytest",
    ),
    "poetry, which is not here": (
        {
            **PACKAGE,
            "pyproject.toml": "[tool.poetry.group.dev.dependencies]\npytest='*'\n"
            "[tool.poetry.group.test]\noptional = true\n",
        },
        PYTEST,
        (
            "python3 -m venv .venv && python3 -m venv .poetry && .poetry/bin/pip install -q poetry"
            " && VIRTUAL_ENV=$PWD/.venv .poetry/bin/poetry install -n --all-extras --with test"
        ),
    ),
    "a version from git's tags": (
        {**PACKAGE, "pyproject.toml": "build-system.requires = ['setuptools-scm']\n" + PROJECT},
        PYTEST,
        (
            "python3 -m venv .venv && SETUPTOOLS_SCM_PRETEND_VERSION=99.0"
            " .venv/bin/pip install -e ."
            " && .venv/bin/pip install pytest"
        ),
    ),
    "a version that a source distribution says": (
        {
            **PACKAGE,
            "pyproject.toml": "build-system.requires = ['setuptools-scm']\n" + PROJECT,
            "PKG-INFO": "Metadata-Version: 2.4\nName: x\nVersion: 1.7.0\n",
            "CHANGELOG.rst": "x 1.8.0\n=======\n",
        },
        PYTEST,
        (
            "python3 -m venv .venv && SETUPTOOLS_SCM_PRETEND_VERSION=1.7.0"
            " .venv/bin/pip install -e ."
            " && .venv/bin/pip install pytest"
        ),
    ),
    "a version that a changelog says": (
        {
            **PACKAGE,
            "pyproject.toml": "build-system.requires = ['setuptools-scm']\n" + PROJECT,
            "CHANGELOG.md": "# Changes\n\n## Unreleased\n\n## [v1.8.0] - 2024-01-01\n## 1.7\n",
        },
        PYTEST,
        (
            "python3 -m venv .venv && SETUPTOOLS_SCM_PRETEND_VERSION=1.8.0"
            " .venv/bin/pip install -e ."
            " && .venv/bin/pip install pytest"
        ),
    ),
    "the same by pdm": (
        {**PACKAGE, "pyproject.toml": PROJECT + "[tool.pdm.version]\nsource = 'scm'\n"},
        PYTEST,
        (
            "python3 -m venv .venv && PDM_BUILD_SCM_VERSION=99.0 .venv/bin/pip install -e ."
            " && .venv/bin/pip install pytest"
        ),
    ),
    "plug-ins that the configuration asks for": (
        {
            **PACKAGE,
            "pyproject.toml": PROJECT + "[tool.pytest.ini_options]\naddopts = '--cov x -n auto'\n"
            "required_plugins = 'pytest-randomly'\n",
            "pytest.ini": "[pytest]\nasyncio_mode = auto\n",
            "pytest.toml": "[pytest]\ntimeout = 3\n",
            "tests/conftest.py": "from hypothesis import given\n",
        },
        PYTEST,
        (
            f"{PIP} -e . && .venv/bin/pip install pytest pytest-randomly pytest-cov pytest-xdist"
            " pytest-timeout pytest-asyncio hypothesis"
        ),
    ),
    "unittest": (
        {"setup.py": "", "tests/test_a.py": UNIT, "tests/__init__.py": ""},
        f"{XML} discover -s tests -t . -o $OUT",
        f"{PIP} -e . && .venv/bin/pip install unittest-xml-reporting",
    ),
    "unittest beside the code": (
        {"setup.py": "", "x/test_a.py": UNIT},
        f"{XML} discover -s x -o $OUT",
        f"{PIP} -e . && .venv/bin/pip install unittest-xml-reporting",
    ),
    "unittest by make": (
        {
            "setup.py": "",
            "x/test_a.py": UNIT,
            "Makefile": "test: a\n\t@python -m unittest -v x.y\n",
        },
        f"{XML} x.y -o $OUT",
        f"{PIP} -e . && .venv/bin/pip install unittest-xml-reporting",
    ),
    "unittest with variables": (
        {
            "setup.py": "",
            "test/a_test.py": UNIT,
            "Makefile": "tests:\n\tpython3 -m unittest ${X}\n",
        },
        f"{XML} discover -s test -o $OUT",
        f"{PIP} -e . && .venv/bin/pip install unittest-xml-reporting",
    ),
    "Django": (
        {
            "requirements.txt": "Django",
            "manage.py": "",
            "app/tests.py": "from django.test import X",
        },
        ".venv/bin/python manage.py test",
        f"{PIP} -r requirements.txt",
    ),
    "tests without a word of a runner": (
        {"requirements.txt": "flask", "tests/test_a.py": TEST},
        PYTEST,
        f"{PIP} -r requirements.txt && .venv/bin/pip install pytest",
    ),
    "tests that import pytest": (
        {"requirements.txt": "", "tests/test_a.py": f"import pytest\n{UNIT}"},
        PYTEST,
        f"{PIP} -r requirements.txt && .venv/bin/pip install pytest",
    ),
    "what is no TOML": ({"pyproject.toml": "[[["}, None, ""),
    "no tests": ({"pyproject.toml": PROJECT}, None, f"{PIP} -e ."),
}


@pytest.mark.parametrize("name", PYTHON)
def test_a_python_project_is_tested_and_set_up_as_its_files_say(name) -> None:
    files, test, setup = PYTHON[name]

    found = only(tree(files))

    assert (found.test and found.test.command) == test
    assert found.set_up == setup


def test_uv_is_used_where_its_lock_and_its_program_are_there() -> None:
    project = (
        "build-system.requires = ['hatch-vcs']\n[project]\nname='x'\n"
        "optional-dependencies.tests = ['pytest']\n[dependency-groups]\ndev=['mypy']\n[tool.mypy]\n"
    )
    files = {"uv.lock": "", "pyproject.toml": project, "test_a.py": TEST}

    found = only(tree(files, tools=("uv",), version="1.2"))

    assert found.setup == Seen(
        "SETUPTOOLS_SCM_PRETEND_VERSION=1.2 uv sync --extra tests --group dev", "uv.lock"
    )
    assert found.adds_with == "uv pip install"
    assert found.inputs == ("uv.lock", "pyproject.toml")


def test_poetry_that_is_here_is_used_and_a_lock_names_it() -> None:
    files = {"poetry.lock": "", "pyproject.toml": "[tool.poetry]\n", "test_a.py": TEST}

    found = only(tree(files, tools=("poetry",)))

    assert found.set_up == (
        "python3 -m venv .venv && VIRTUAL_ENV=$PWD/.venv poetry install -n --all-extras"
        " && .venv/bin/pip install pytest"
    )


# What CI says → the arguments that choose tests
CHOSEN = {
    "pytest": "",
    "pytest tests": " tests",
    "uv run --group t pytest -q tests/unit": " tests/unit",
    "python -m pytest -n 4 -x tests -m 'not slow' --cov=x": " tests -m 'not slow'",
    "coverage run --source x -m pytest ./tests/": " ./tests/",
    "python -X dev -m pytest tests": " tests",
    "PYTHONPATH=. pytest --ignore=tests/unit --pyargs -k a": " --ignore=tests/unit --pyargs -k a",
    "pytest -r a tests/unit/test_a.py::b": " tests/unit/test_a.py::b",
    "pytest ${{ matrix.x }} tests -m '${{ y }}'": "",
    "pytest no-such -o x": "",
    "pytest 'unclosed": "",
    "pip install x\nexec env A=b pytest tests \\\n  -v": " tests",
    "python script.py": "",
    "python": "",
    "python -W error": "",
}


@pytest.mark.parametrize("said", CHOSEN)
def test_ci_is_the_best_witness_of_which_tests_are_run(said) -> None:
    files = {**PACKAGE, "tests/unit/test_a.py": TEST, "conftest.py": ""}

    found = only(tree(files, said))

    assert found.test is not None
    assert found.test.command == f"{PYTEST}{CHOSEN[said]}"


def test_unittest_in_ci_is_run_as_it_is_said_there() -> None:
    files = {"setup.py": "", "tests/test_a.py": UNIT}

    found = only(tree(files, "python -m unittest discover -s tests -p 'test*.py'"))

    assert found.test == Seen(
        f"{XML} discover -s tests -p 'test*.py' -o $OUT", ".github/workflows/ci.yml"
    )
    plain = only(tree(files, "python -m unittest"))
    assert plain.test is not None
    assert plain.test.command == f"{XML} discover -s tests -o $OUT"


TYPES = {
    "none": ({}, None),
    "mypy with files": ({"pyproject.toml": f"{PROJECT}[tool.mypy]\nfiles=['x']\n"}, "mypy"),
    "mypy of src": ({"mypy.ini": "", "src/x/__init__.py": ""}, "mypy src"),
    "mypy of a package": ({"setup.cfg": "[mypy]\na=b\n", "x/__init__.py": ""}, "mypy x"),
    "mypy of all": ({".mypy.ini": "", "tests/__init__.py": ""}, "mypy ."),
    "mypy as tox has it": (
        {"mypy.ini": "", "x/a.py": "", "tox.ini": "[testenv:mypy]\ncommands = mypy x --strict\n"},
        "mypy x",
    ),
    "mypy as tox does not say": (
        {"mypy.ini": "", "tox.ini": "[testenv:mypy]\ncommands = mypy --strict\n"},
        "mypy .",
    ),
    "mypy as nobody says": (
        {
            "mypy.ini": "",
            "noxfile.py": "def test_a(session):\n    session.run('pytest')\ndef b(s):\n    x\n",
            "Makefile": "test:\n\tpytest\n",
            "justfile": "lint:\n    ruff\n",
        },
        "mypy .",
    ),
    "pyright": ({"pyrightconfig.json": ""}, "pyright"),
    "pyright in pyproject": ({"pyproject.toml": f"{PROJECT}[tool.pyright]\n"}, "pyright"),
}


@pytest.mark.parametrize("name", TYPES)
def test_types_are_checked_only_where_the_project_has_that_configured(name) -> None:
    files, command = TYPES[name]

    found = only(tree({**PACKAGE, **files}))

    assert (found.typecheck and found.typecheck.command) == (
        command and f".venv/bin/python -m {command}"
    )
    assert bool({"mypy", "pyright[nodejs]"} & {*found.adds}) is (command is not None)


# --- JavaScript: package.json, other files → test, set-up ---------------------------------------

JAVASCRIPT = [
    ({"scripts": {"test": "vitest"}}, ["package-lock.json"], f"npm run test -- --run {VITEST}", CI),
    ({"scripts": {"test": "vitest run"}}, [], f"npm run test -- {VITEST}", NPM),
    (
        {"scripts": {"test": "eslint . && vitest run"}},
        ["pnpm-lock.yaml"],
        f"npx --no-install vitest run {VITEST}",
        "npx --yes pnpm install --frozen-lockfile",
    ),
    (  # pnpm need not be here: the program that it starts is started by npx
        {"scripts": {"test": "pnpm lint && pnpm vitest run", "lint": "x"}},
        ["pnpm-lock.yaml"],
        f"npx --no-install vitest run {VITEST}",
        "npx --yes pnpm install --frozen-lockfile",
    ),
    ({"scripts": {"test": "x && yarn exec mocha"}}, [], f"npx --no-install mocha {MOCHA}", NPM),
    ({"scripts": {"test": "x && yarn mocha", "mocha": "y"}}, [], "npm run test", NPM),
    ({"scripts": {"test": "x && pnpm"}}, [], "npm run test", NPM),
    ({"scripts": {"test": "mocha -r a test/"}}, [], f"npm run test -- {MOCHA}", NPM),
    (
        {"scripts": {"test": "jest"}},
        [],
        f"JEST_JUNIT_OUTPUT_DIR=$OUT npm run test -- {JEST}",
        f"{NPM} && npm install --no-audit --no-fund --no-save --no-package-lock jest-junit",
    ),
    (  # without the lock file npm would take other versions of all the rest
        {"scripts": {"test": "jest"}},
        ["package-lock.json"],
        f"JEST_JUNIT_OUTPUT_DIR=$OUT npm run test -- {JEST}",
        f"{CI} && npm install --no-audit --no-fund --no-save jest-junit",
    ),
    (
        {"scripts": {"test": "jest --reporters=x"}, "devDependencies": {"jest-junit": "1"}},
        ["yarn.lock"],
        "npm run test",
        "npx --yes yarn install --frozen-lockfile",
    ),
    ({"scripts": {"test": "node --test"}}, [], f"npm run test -- {NODE}", NPM),
    ({"scripts": {"test": "node --test test/"}}, [], "npm run test", NPM),
    ({"scripts": {"test": "tape 'test/*.js' | faucet"}}, [], "npm run test", NPM),
    (
        {"scripts": {"test": "npm run lint && npm run unit", "lint": "x", "unit": "mocha"}},
        [],
        f"npm run unit -- {MOCHA}",
        NPM,
    ),
    ({"scripts": {"test": "npm run unit", "unit": "mocha | x"}}, [], "npm run test", NPM),
    ({"scripts": {"test": "ava && tape x"}}, [], "npm run test", NPM),
    ({"scripts": {"test": "node --test && npm run t", "t": "x"}}, [], f"node --test {NODE}", NPM),
    ({"scripts": {"test": "npm run no-such"}}, [], "npm run test", NPM),
    ({"scripts": {"test": "npm run a b"}}, [], "npm run test", NPM),
    ({"scripts": {"test": "echo 'no test specified'"}}, [], None, NPM),
    ({"scripts": {"test": 7}}, [], None, NPM),
    ({"scripts": [1]}, ["a.test.js"], f"node --test {NODE}", NPM),
    ({"devDependencies": {"vitest": "1"}}, [], f"npx --no-install vitest run {VITEST}", NPM),
    ({"dependencies": {"mocha": "1"}}, [], f"npx --no-install mocha {MOCHA}", NPM),
    (
        {"dependencies": {"jest": "1", "jest-junit": "1"}},
        [],
        f"JEST_JUNIT_OUTPUT_DIR=$OUT npx --no-install jest {JEST}",
        NPM,
    ),
    (
        {"packageManager": "yarn@4.1.0+sha", "scripts": {"test": "ava"}},
        ["yarn.lock"],
        "npm run test",
        (
            "YARN_NODE_LINKER=node-modules npx --yes --package=@yarnpkg/cli-dist@4.1.0 yarn"
            " install --immutable"
        ),
    ),
    (
        {"scripts": {"test": "ava"}},
        ["yarn.lock", ".yarnrc.yml"],
        "npm run test",
        (
            "YARN_NODE_LINKER=node-modules npx --yes --package=@yarnpkg/cli-dist yarn"
            " install --immutable"
        ),
    ),
    (
        {"scripts": {"test": "bun test"}},
        ["bun.lock"],
        "npm run test",
        "npx --yes bun install --frozen-lockfile",
    ),
    (
        {"packageManager": "pnpm@9", "scripts": {"test": "x"}},
        [],
        "npm run test",
        "npx --yes pnpm@9 install",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "more", "test", "setup"), JAVASCRIPT, ids=range(len(JAVASCRIPT)))
def test_a_javascript_package_is_tested_by_its_scripts(keys, more, test, setup) -> None:
    found = only(tree({"package.json": package(**keys), **dict.fromkeys(more, "")}))

    assert (found.test and found.test.command) == test
    assert found.set_up == setup


@pytest.mark.parametrize(
    ("lock", "tool", "test", "exec_"),
    [
        ("pnpm-lock.yaml", "pnpm", f"pnpm run test {VITEST}", "pnpm exec tsc --noEmit"),
        ("yarn.lock", "yarn", f"yarn run test {VITEST}", "yarn run tsc --noEmit"),
        ("bun.lockb", "bun", f"bun run test {VITEST}", "bunx tsc --noEmit"),
    ],
)
def test_a_package_manager_that_is_here_runs_the_scripts(lock, tool, test, exec_) -> None:
    keys = {"scripts": {"test": "vitest run"}, "devDependencies": {"typescript": "5"}}
    files = {"package.json": package(**keys), lock: "", "tsconfig.json": ""}

    found = only(tree(files, tools=(tool,)))

    assert found.test == Seen(test, "scripts.test in package.json")
    assert found.typecheck == Seen(exec_, "tsconfig.json")
    assert found.setup == Seen(f"{tool} install --frozen-lockfile", lock)


def test_a_script_for_units_is_preferred_where_ci_runs_it_and_a_script_checks_types() -> None:
    keys = {"scripts": {"test": "x", "test:unit": "mocha", "type-check": "tsc"}}
    files = {"package.json": package(**keys)}

    found = only(tree(files, "npm run test:unit"))

    assert found.test == Seen(f"npm run test:unit -- {MOCHA}", "scripts.test:unit in package.json")
    assert found.typecheck == Seen("npm run type-check", "scripts.type-check in package.json")


@pytest.mark.parametrize("text", ["{", "[1]", "[" * 100_000])
def test_what_is_no_package_json_counts_as_none(text) -> None:
    assert only(tree({"package.json": text})) == Package()


# --- Go, Rust, make, just, and CI for every other -----------------------------------------------

OTHERS = [
    ({"go.mod": "module x\n", "a_test.go": ""}, "go test -json ./...", ""),
    ({"go.mod": "module x\n"}, None, ""),
    (
        {"go.mod": "module x\nrequire y v1\n", "a_test.go": ""},
        "GOMODCACHE=$PWD/.go-modules go test -json ./...",
        "GOMODCACHE=$PWD/.go-modules GOFLAGS=-modcacherw go mod download",
    ),
    (
        {"go.mod": "require y v1\n", "vendor/modules.txt": "", "a_test.go": ""},
        "go test -json ./...",
        "",
    ),
    ({"Cargo.toml": "[package]\nname='x'\n[dependencies]\ny={path='y'}\n"}, "cargo test", ""),
    (
        {"Cargo.toml": "[workspace]\n[workspace.dependencies]\ny='1'\n"},
        "CARGO_HOME=$PWD/.cargo-home cargo test --workspace --offline",
        "CARGO_HOME=$PWD/.cargo-home cargo fetch",
    ),
    ({"Makefile": ".PHONY: check\ntest := 1\ncheck: a\n\tx\n"}, "make check", ""),
    ({"Makefile": "test := 1\nlint:\n"}, None, ""),
    ({"justfile": "@test *args:\n    x\n"}, "just test", ""),
    (
        {"requirements.txt": "flask", "Makefile": "test:\n\tx\n"},
        "make test",
        f"{PIP} -r requirements.txt",
    ),
]


@pytest.mark.parametrize(("files", "test", "setup"), OTHERS, ids=range(len(OTHERS)))
def test_go_rust_make_and_just_are_known(files, test, setup) -> None:
    found = only(tree(files))

    assert (found.test and found.test.command) == test
    assert found.set_up == setup


def test_what_checks_types_is_what_ci_or_make_runs() -> None:
    go = only(tree({"go.mod": "module x\n", "a_test.go": ""}, "go vet ./..."))
    rust = only(tree({"Cargo.toml": ""}, "cargo clippy"))
    made = only(tree({"Makefile": "mypy:\n\tx\n"}))

    assert [it.typecheck and it.typecheck.command for it in (go, rust, made)] == [
        "go vet ./...",
        "cargo check --all-targets",
        "make mypy",
    ]


def test_for_every_other_ecosystem_what_ci_runs_is_offered() -> None:
    said = "sudo apt-get install maven\nmvn -B test\necho ${{ x }} test\n# test\n'test"
    spoken = (Said(said, "ci.yml"), Said("gradle check", "ci.yml", "app"))

    found = only(Tree(paths=frozenset({"pom.xml"}), said=spoken))

    assert found.test is None
    assert found.others == (Seen("mvn -B test", "ci.yml"), Seen("cd app && gradle check", "ci.yml"))


# --- monorepos ----------------------------------------------------------------------------------


def test_a_monorepo_has_one_set_of_commands_for_each_package() -> None:
    files = {
        "services/api/pyproject.toml": "[project]\nname='api'\ndependencies=['Shared_lib>1']\n",
        "services/api/tests/test_a.py": TEST,
        "libs/shared/pyproject.toml": "[tool.poetry]\nname='shared-lib'\n",
        "libs/shared/test_b.py": TEST,
        "web/package.json": package(name="web", scripts={"test": "vitest run"}),
        "tools/gen/Cargo.toml": "[package]\nname='gen'\n[dependencies]\napi={path='x'}\n",
        "examples/x/package.json": package(scripts={"test": "vitest run"}),
        "docs/package.json": package(),
    }

    found = {it.path: it for it in discover(tree(files)).packages}

    assert [*found] == ["web", "libs/shared", "services/api", "tools/gen"]
    assert found["services/api"].needs == ("libs/shared",)
    assert found["services/api"].set_up == (
        f"{PIP} -e ../../libs/shared -e . && .venv/bin/pip install pytest"
    )
    assert found["services/api"].inputs == ("services/api/pyproject.toml",)
    assert found["tools/gen"].needs == ("services/api",)
    assert [it.name for it in found.values()] == ["web", "shared", "api", "gen"]


def test_packages_of_one_workspace_are_installed_at_its_top() -> None:
    files = {
        "package.json": package(workspaces={"packages": ["packages/*", "!x"]}),
        "package-lock.json": "",
        "packages/a/package.json": package(scripts={"test": "mocha"}),
        "packages/b/package.json": package(scripts={"test": "mocha"}),
        "other/a/package.json": package(scripts={"test": "mocha"}),
    }

    found = discover(tree(files))

    assert [(it.name, it.set_up) for it in found.packages] == [
        ("other-a", NPM),
        ("packages-a", CI),
        ("b", CI),
    ]
    assert set_up_of(found) == f"(cd other/a && {NPM}) && ({CI})"


def test_pnpm_s_workspace_is_read_from_its_file() -> None:
    files = {
        "pnpm-lock.yaml": "",
        "package.json": "{}",
        "pnpm-workspace.yaml": "packages:\n  - 'packages/*'\n",
        "packages/a/package.json": package(scripts={"test": "mocha"}),
    }

    [found] = discover(tree({**files, "package.json": package(name="top")})).packages

    assert (found.shared, set_up_of(Plan((found,)))) == (
        True,
        "npx --yes pnpm install --frozen-lockfile",
    )


def test_what_the_top_tests_is_no_package_of_its_own_but_another_language_is() -> None:
    top = {"package.json": package(scripts={"test": "mocha"}), "conftest.py": ""}
    inner = {
        "a/package.json": package(scripts={"test": "mocha"}),
        "b/go.mod": "",
        "b/x_test.go": "",
    }

    found = discover(tree({**top, **inner}))

    assert [(it.path, it.name, it.language) for it in found.packages] == [
        ("", "top", "node"),
        ("b", "b", "go"),
    ]
    made = {"Makefile": "test:\n\tx\n", "a/package.json": package(scripts={"test": "x"})}
    assert [it.path for it in discover(tree(made)).packages] == [""]


def test_a_command_of_ci_in_a_directory_is_that_package_s() -> None:
    files = {"a/pyproject.toml": PROJECT, "a/tests/test_a.py": TEST, "a/x/test_b.py": TEST}
    said = (
        Said("pytest x", "ci.yml", "a"),
        Said("cd a && pytest tests", "ci.yml"),
        Said("pytest y", "ci.yml", "b"),
    )

    [found] = discover(Tree(paths=frozenset(files), texts=files, said=said)).packages

    assert found.test == Seen(f"{PYTEST} x", "ci.yml")


# --- small parts --------------------------------------------------------------------------------


def test_only_what_says_how_a_project_is_built_is_read_and_a_few_tests() -> None:
    paths = {
        "pyproject.toml",
        "a/b/c/d/package.json",
        "a/b/c/d/e/package.json",
        "node_modules/x/setup.py",
        "src/x.py",
        "requirements/a.txt",
        "dev-requirements.txt",
        "justfile",
    }
    tests = {f"tests/test_{n:02}.py" for n in range(50)}

    found = wanted(frozenset(paths | tests))

    assert found[:3] == ("dev-requirements.txt", "justfile", "pyproject.toml")
    assert {*found} - tests == paths - {
        "a/b/c/d/e/package.json",
        "node_modules/x/setup.py",
        "src/x.py",
    }
    assert len({*found} & tests) == 12


def test_names_and_words_for_the_file() -> None:
    inner = Package(path="a b/c", name="c", setup=Seen("x", ""))

    assert (gate_name("tests", inner), gate_name("tests", Package())) == ("tests-c", "tests")
    assert at_top(inner, "make") == "cd 'a b/c' && make"
    assert quote("it's") == "'it'\"'\"'s'"
    assert Plan((inner,)).only is None
    assert set_up_of(Plan((Package(setup=Seen("x", "")),))) == "x"
    assert strings(3) == ()
    assert strings([1, "a"]) == ("a",)


def test_what_a_checkout_lacks_is_remarked_upon() -> None:
    lacking = Tree(
        paths=frozenset(),
        texts={".gitattributes": "*.bin filter=lfs"},
        modules=("vendor/x",),
    )

    assert remarks(tree({})) == ()
    assert [it.split(" are ")[0] for it in remarks(lacking)] == ["submodules", "files of git-lfs"]


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (PYTEST, True),
        ("go test -json ./...", True),
        ("gotestsum --junitfile $OUT/x.xml", True),
        (f"node --test {NODE}", True),
        (f"npx jest {JEST}", True),
        (f"vitest run {VITEST}", True),
        ("pytest -q", True),
        (".venv/bin/python -m unittest", True),
        (".venv/bin/python -m xmlrunner discover -o $OUT", True),
        ("cargo test", False),
        ("make test", False),
        (f"mocha {MOCHA}", False),
    ],
)
def test_a_report_that_names_the_tests_is_known_by_its_option(command, names) -> None:
    assert names_tests(command) is names


@pytest.mark.parametrize(
    ("recipe", "names"),
    [
        ("python -m unittest", True),
        ("PYTHONPATH=. python -m unittest", False),
        ("PYTHONPATH=. pytest", True),
        ("./run", False),
    ],
)
def test_a_rule_is_known_by_what_it_runs(recipe, names) -> None:
    assert names_tests("make test", recipe) is names
    found = discover(tree({"Makefile": f"test:\n\t{recipe}\n"}))
    assert found.packages[0].recipe.strip() == recipe
