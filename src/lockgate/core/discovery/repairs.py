"""What a red command asks for: a package that is missing, a plug-in, tests that fail on base.

After a run on base `init` tries again with a repair, leaves the command out, or calls it ready.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.config.baseline import Baseline, Colour
from lockgate.core.discovery.found import (
    Package,
    Plan,
    Seen,
    Tree,
    gate_name,
    quote,
    strings,
    table,
)
from lockgate.core.discovery.node import joined, manager_of, tests_alone
from lockgate.core.discovery.python import PLUGINS, PYTEST
from lockgate.core.discovery.python_installs import mentions, poetry_words
from lockgate.core.model.findings import headline
from lockgate.core.model.results import FAILING, Outcome, TestResult

MOST_RED = 200
_NETWORK = re.compile(
    r"Temporary failure in name resolution|Name or service not known|Network is unreachable"
    r"|nodename nor servname|getaddrinfo|ENOTFOUND|EAI_AGAIN|ENETUNREACH|Could not resolve host"
    r"|no such host|dial tcp",
    re.IGNORECASE,
)


class Ran(Struct, frozen=True, kw_only=True):
    """What a command came to on base: its colour, what it said, the tests that it named."""

    colour: Colour
    seconds: float = 0.0
    said: str = ""
    tests: tuple[TestResult, ...] | None = None
    why: str = ""  # it could not be run, or was cut
    set_up_failed: bool = False
    late: bool = False

    @property
    def failing(self) -> tuple[TestResult, ...]:
        return tuple(it for it in self.tests or () if it.outcome in FAILING)

    @property
    def total(self) -> int:
        """Tests that ran, by whatever outcome."""
        return sum(it.outcome is not Outcome.SKIPPED for it in self.tests or ())


def repaired(package: Package, ran: Ran, tree: Tree) -> Package | None:
    """With the usual repairs for what it said; None where none is known."""
    here = tree.below(package.path)
    if ran.set_up_failed:
        return _set_up_again(package, ran.why, here)
    if package.language == "python":
        return _python(package, f"{ran.said}\n{ran.why}", here)
    return _node(package, ran.said, here) if package.language == "node" else None


# --- Python -------------------------------------------------------------------------------------

MODULES = {
    "yaml": "PyYAML",
    "PIL": "Pillow",
    "bs4": "beautifulsoup4",
    "dateutil": "python-dateutil",
    "attr": "attrs",
    "sklearn": "scikit-learn",
    "pkg_resources": "setuptools<81",
    "setuptools": "setuptools",
    "distutils": "setuptools",
    "dotenv": "python-dotenv",
    "jwt": "PyJWT",
    "git": "GitPython",
    "pytest": "pytest",
    "pytest_cov": "pytest-cov",
    "xdist": "pytest-xdist",
    "pytest_asyncio": "pytest-asyncio",
    "pytest_mock": "pytest-mock",
    "pytest_benchmark": "pytest-benchmark",
    "hypothesis": "hypothesis",
    "mock": "mock",
    "freezegun": "freezegun",
    "numpy": "numpy",
    "pandas": "pandas",
    "mypy": "mypy",
    "xmlrunner": "unittest-xml-reporting",
    "typing_extensions": "typing-extensions",
    "tomli": "tomli",
}
FIXTURES = {
    "mocker": "pytest-mock",
    "benchmark": "pytest-benchmark",
    "httpx_mock": "pytest-httpx",
    "requests_mock": "requests-mock",
    "httpserver": "pytest-httpserver",
    "snapshot": "syrupy",
    "subtests": "pytest-subtests",
    "freezer": "pytest-freezer",
    "faker": "faker",
    "event_loop": "pytest-asyncio",
    "datadir": "pytest-datadir",
    "regressions": "pytest-regressions",
    "data_regression": "pytest-regressions",
    "file_regression": "pytest-regressions",
    "testdir": "",
    "fs": "pyfakefs",
    "cov": "pytest-cov",
    "anyio_backend": "anyio",
    "db": "pytest-django",
    "django_db_setup": "pytest-django",
}
_LISTS = ("pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "noxfile.py")


def _python(package: Package, said: str, here: Tree) -> Package | None:
    added = tuple(dict.fromkeys(it for it in _missing(said, here) if it not in package.adds))
    if added:
        with_setup = package.setup or Seen("python3 -m venv .venv", "what is missing")
        return replace(package, setup=with_setup, adds=(*package.adds, *added))
    test = package.test
    if test and "-m xmlrunner" in test.command:
        plain = test.command.replace("-m xmlrunner", "-m unittest").replace(" -o $OUT", "")
        adds = tuple(it for it in package.adds if it != "unittest-xml-reporting")
        return replace(package, test=Seen(plain, test.by), adds=adds)
    if test and "-m unittest" in test.command:
        command = re.sub(r"-m unittest.*", PYTEST, test.command)
        return replace(package, test=Seen(command, test.by), adds=(*package.adds, "pytest"))
    own = {it.partition("/")[0] for it in here.paths if it.startswith("src/")} and "src"
    if test and own and "PYTHONPATH" not in test.command and _own_module(said, here):
        return replace(package, test=Seen(f"PYTHONPATH=src {test.command}", test.by))
    return None


def _missing(said: str, here: Tree) -> Iterator[str]:
    """Packages that the project names itself, or that are known by the name of their module."""
    for name in re.findall(r"No module named '?([A-Za-z_][\w.]*)", said):
        yield from _distribution(name.partition(".")[0], here)
    for name in re.findall(r"fixture '(\w+)' not found", said):
        yield from filter(None, (FIXTURES.get(name),))
    unknown = " ".join(re.findall(r"unrecognized arguments: (.*)", said))
    yield from (it for pattern, it in PLUGINS.items() if unknown and re.search(pattern, unknown))
    if _ASYNC.search(said):
        yield "pytest-asyncio"
    if "declared in the hookimpl but can not be found in the hookspec" in said:
        yield "pytest<9"  # which took away arguments of hooks


_ASYNC = re.compile(
    r"async def functions are not natively supported|'asyncio' not found in `markers`"
)


def _distribution(module: str, here: Tree) -> Iterator[str]:
    """What is neither known nor named by the project is not installed: anybody may own the name."""
    if here.has(f"{module}.py", f"{module}/__init__.py", f"src/{module}/__init__.py"):
        return
    files = (*_LISTS, *here.like("*requirements*", "**/*requirements*.txt"))
    named = "\n".join(here.text(it) for it in files)
    dashed = module.replace("_", "-")
    if module in MODULES:
        yield MODULES[module]
    elif mentions(named, dashed) or mentions(named, module):
        yield dashed


def _own_module(said: str, here: Tree) -> bool:
    names = re.findall(r"No module named '?([A-Za-z_]\w*)", said)
    return any(here.folder(f"src/{it}") or here.has(f"src/{it}.py") for it in names)


# --- set-up -------------------------------------------------------------------------------------


def _set_up_again(package: Package, why: str, here: Tree) -> Package | None:
    setup = package.setup
    if setup is None:
        return None
    command = _other_python(setup.command, why, here) or _other_set_up(
        package, setup.command, why, here
    )
    if command is None or command == setup.command:
        return None
    return replace(package, setup=Seen(command, setup.by))


def _other_python(command: str, why: str, here: Tree) -> str | None:
    """Where the one that is here is too old, a newer one if there is one."""
    wanted = re.search(r"not in '[^']*>=?\s*3\.(\d+)|requires Python >=\s*3\.(\d+)", why)
    if not wanted or "python3 -m venv" not in command:
        return None
    least = int(wanted[1] or wanted[2])
    newer = [f"python3.{n}" for n in range(30, least - 1, -1) if f"python3.{n}" in here.tools]
    return command.replace("python3 -m venv", f"{newer[0]} -m venv") if newer else None


def _other_set_up(package: Package, command: str, why: str, here: Tree) -> str | None:
    if package.language == "node":
        return _other_npm(command, why)
    if package.language != "python" or "pip install " not in command:
        return None
    if "poetry install" in command:
        return f"python3 -m venv .venv && .venv/bin/pip install {poetry_words(here)}"
    if "-e ." in command and "top-level packages discovered" in why:
        listed = strings(table(here.toml("pyproject.toml"), "project").get("dependencies"))
        plain = " ".join(quote(it) for it in listed)
        without = re.sub(r"""-e (?:'\.\[[^']*\]'|\.\S*)""", plain, command)
        return re.sub(r" && \.venv/bin/pip install\s*$", "", without)
    if "-e " in command and re.search(r"pip install (?!-e \.(?: |$)|-q -U pip)", command):
        return "python3 -m venv .venv && .venv/bin/pip install -e ."
    return None


_TOO_NEW = re.compile(r"ERR_UNKNOWN_BUILTIN_MODULE|requires at least Node|requires Node\.js")


def _older_pnpm(command: str, why: str) -> str | None:
    """Where Node is too old for the pnpm that the project names: the one of the release before."""
    named = re.search(r"npx --yes pnpm@(\d+)\S*", command)
    if not named or not _TOO_NEW.search(why):
        return None
    older = f"npx --yes pnpm@{int(named[1]) - 1}"
    keeps = "npm_config_manage_package_manager_versions=false"  # else it starts the named one
    return f"{keeps} {command.replace(named[0], older)}"


def _other_npm(command: str, why: str) -> str | None:
    older = _older_pnpm(command, why)
    if older:
        return older
    if "ERESOLVE" in why and "--legacy-peer-deps" not in command:
        return command.replace("npm ci", "npm ci --legacy-peer-deps").replace(
            "npm install", "npm install --legacy-peer-deps"
        )
    if re.search(r"npm ci\b", command) and re.search(r"in sync|package-lock\.json", why):
        return re.sub(r"npm ci\b", "npm install --no-package-lock", command)
    unbuilt = "--mode=skip-build" if "YARN_NODE_LINKER" in command else "--ignore-scripts"
    if "ERR_PNPM_IGNORED_BUILDS" in why and unbuilt not in command:
        return f"{command} {unbuilt}"
    if re.search(r"lockfile", why, re.IGNORECASE) and re.search(
        "--frozen-lockfile|--immutable", command
    ):
        return re.sub(r" --frozen-lockfile| --immutable", "", command)
    return f"{command} {unbuilt}" if unbuilt not in command else None


# --- Node ---------------------------------------------------------------------------------------


def _node(package: Package, said: str, here: Tree) -> Package | None:
    test, scripts = package.test, table(here.json("package.json"), "scripts")
    if test is None:
        return None
    missing = re.search(
        r"Cannot find (?:module|package)|ERR_MODULE_NOT_FOUND|Failed to resolve", said
    )
    if missing and isinstance(scripts.get("build"), str) and "run build" not in test.command:
        run = re.search(r"\b(?:npm|pnpm|yarn|bun) run\b", test.command)
        start = run[0] if run else "npm run"
        return replace(package, test=Seen(f"{start} build && {test.command}", test.by))
    alone = joined(tests_alone(here, manager_of(here), "test"))
    if alone and alone[0].command not in test.command and test.by != "tests alone":
        more = tuple(dict.fromkeys((*package.adds, *alone[1])))
        return replace(package, test=Seen(alone[0].command, "tests alone"), adds=more)
    if " -- " in test.command or "--reporter" in test.command:
        plain = re.sub(r"^JEST_JUNIT_OUTPUT_DIR=\$OUT ", "", test.command)
        plain = re.sub(r"(?: --)?(?: --\S*report\S*(?: (?!-)\S+)?| --outputFile\S*)+$", "", plain)
        if plain != test.command and _unknown_option(said):
            return replace(package, test=Seen(plain, test.by))
    return None


def _unknown_option(said: str) -> bool:
    return bool(
        re.search(
            r"unknown option|Unknown option|invalid reporter|bad option|jest-junit",
            said,
            re.IGNORECASE,
        )
    )


# --- tests that are red on base -----------------------------------------------------------------


def without_red(package: Package, ran: Ran, tree: Tree) -> Package | None:
    """The same command without the tests that fail on base; None where that cannot be said."""
    failing = [it.id for it in ran.failing]
    alone = all("::" not in it for it in failing)  # files that could not be collected
    most = ran.total // 2 if not alone else MOST_RED
    if package.test is None or not failing or len(failing) > min(MOST_RED, max(most, 1)):
        return None
    here = tree.below(package.path)
    if "pytest" in package.test.command:
        words = [_deselected(it, here) for it in failing]
    elif "go test" in package.test.command:
        words = _skipped(failing)
    else:
        return None
    if not all(words):
        return None
    more = " ".join(dict.fromkeys(it for it in words if it not in package.test.command))
    if not more:
        return None
    command = package.test.command
    at = command.find(PYTEST)
    split = at + len(PYTEST) if at >= 0 else len(command)
    changed = f"{command[:split]} {more}{command[split:]}"
    return replace(package, test=Seen(changed, package.test.by), red=(*package.red, *failing))


def _deselected(id: str, here: Tree) -> str:
    """An option of pytest, by the file that the dotted name of a class or module leads to."""
    dotted, _, name = id.rpartition("::")
    parts = (dotted or name).replace("/", ".").split(".")
    for end in range(len(parts), 0, -1):
        file = f"{'/'.join(parts[:end])}.py"
        if file in here.paths:
            if not dotted:
                return f"--ignore={quote(file)}"
            test = name if re.fullmatch(r"[\w.\-+=:/,\[\]]*", name) else name.partition("[")[0]
            return f"--deselect={quote('::'.join((file, *parts[end:], test)))}"
    return ""


def _skipped(ids: Sequence[str]) -> list[str]:
    names = sorted({it.rpartition("::")[2].partition("/")[0] for it in ids})
    plain = [it for it in names if re.fullmatch(r"\w+", it)]
    return [f"-skip '^({'|'.join(plain)})$'"] if len(plain) == len(names) else [""]


# What `init` does after a run on base.


_ENDLESS = "did not end within"  # what a set-up is said to have done: another would take as long


class Tried(Struct, frozen=True, kw_only=True):
    """One command on base, as it was run last: how many tests, which of them were left out.

    `broke` is the file that was broken for a trial, `noticed` whether the command turned red.
    `faults` is how often that was seen, of `wanted` times.
    """

    baseline: Baseline
    total: int = 0
    red: int = 0
    networked: bool = False
    late: bool = False
    broke: str = ""
    noticed: bool = False
    faults: int = 0
    wanted: int = 1

    @property
    def ready(self) -> bool:
        return self.baseline.colour is Colour.GREEN and self.noticed


def next_try(package: Package, ran: Ran, tree: Tree) -> Package | None:
    """A repair, else the command without what fails on base; None where it stays as it is."""
    if ran.late or _ENDLESS in ran.why:
        return None
    return repaired(package, ran, tree) or without_red(package, ran, tree)


def left_out(package: Package, kind: str, why: str) -> Package:
    """Without that command, and with a note of it: somebody may want it back."""
    seen = package.test if kind == "tests" else package.typecheck
    note = f"Left out: {gate_name(kind, package)}, `{seen.command if seen else ''}`: {why}"
    notes = (*package.notes, note)
    if kind == "tests":
        return replace(package, test=None, notes=notes)
    return replace(package, typecheck=None, notes=notes)


def why_left_out(tried: Tried) -> str:
    """One line: the error that it ended with, where it was run."""
    base = tried.baseline
    said = base.why or (headline(base.findings) if base.findings else "it fails on base")
    return " ".join(said.split())[:200]


def without_idle(packages: tuple[Package, ...]) -> tuple[Package, ...]:
    """A package of several that has no command left is not set up: that may be what fails."""
    if len(packages) == 1:
        return packages
    return tuple(
        it if it.test or it.typecheck else replace(it, setup=None, adds=(), inputs=())
        for it in packages
    )


def needs_network(ran: Ran) -> bool:
    return bool(_NETWORK.search(ran.said) or any(_NETWORK.search(it.message) for it in ran.failing))


def held(package: Package, ran: Ran, base: str) -> Package:
    """With a note of the tests that are left out."""
    if not package.red:
        return package
    count, total = len(package.red), len(package.red) + ran.total
    rest = f"changes are held to the other {ran.total}"
    note = f"{count} of {total} tests fail on {base} already; {rest}."
    return replace(package, notes=(*package.notes, note))


def asked_for(plan: Plan, test: str, setup: str) -> Plan:
    """With the commands that a human named, which are for the top."""
    if not test and not setup:
        return plan
    top = plan.packages[0] if plan.packages and not plan.packages[0].path else Package()
    if test:
        top = replace(top, test=Seen(test, "--test-command"), red=(), others=())
    if setup:
        top = replace(top, setup=Seen(setup, "--setup"), adds=())
    return Plan((top,))


def doubtful(plan: Plan) -> tuple[Seen, ...] | None:
    """Commands to choose from, where none is known to test this; None where one is."""
    if any(it.test for it in plan.packages):
        return None
    return tuple(other for it in plan.packages for other in it.others)


def told(plan: Plan) -> dict[str, str]:
    """What was found, for people."""
    found: dict[str, str] = {}
    for package in plan.packages:
        where = f"{package.path}: " if package.path else ""
        parts = {"test": package.test, "typecheck": package.typecheck}
        set_up = Seen(package.set_up, package.setup.by if package.setup else "what is missing")
        for key, seen in (*parts.items(), ("setup", set_up if set_up.command else None)):
            found[f"{where}{key}"] = f"{seen.command} (found in {seen.by})" if seen else "not found"
    for it in plan.services:
        absent = "" if it.installed else ", not installed here"
        found[f"service {it.kind}"] = f"one for each session and gate (found in {it.by}{absent})"
    return found
