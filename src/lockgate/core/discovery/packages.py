"""The packages of a repository: one for most, several for a monorepo, each with its commands.

Here are those of Go, Rust, make and just; for every other ecosystem what the CI definition says.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from lockgate.core.discovery import node as npm
from lockgate.core.discovery.found import Package, Plan, Said, Seen, Tree, strings, table
from lockgate.core.discovery.node import node
from lockgate.core.discovery.python import python
from lockgate.core.discovery.shell import calls_in
from lockgate.core.text.steering import matching

MANIFESTS = ("pyproject.toml", "setup.py", "package.json", "go.mod", "Cargo.toml")
MOST_PACKAGES = 20
DEEPEST = 4
# Directories whose packages are no part of what is tested here.
_ELSEWHERE = frozenset(
    {"node_modules", "vendor", "third_party", "thirdparty", "example", "examples", "docs", "doc"}
    | {"test", "tests", "testdata", "fixtures", "__fixtures__", "benchmark", "benchmarks", "bench"}
    | {"template", "templates", "website", "site", "demo", "demos", "samples", "sample", "e2e"}
)

# What says how a project is built, by the end of its path; others are not read.
_WANTED = re.compile(
    r"(?:^|/)(?:pyproject\.toml|setup\.py|setup\.cfg|tox\.ini|tox\.toml|noxfile\.py|hatch\.toml"
    r"|\.?pytest\.ini|pytest\.toml|\.?mypy\.ini|pyrightconfig\.json|Pipfile|conftest\.py|manage\.py"
    r"|package\.json|pnpm-workspace\.yaml|tsconfig\.json|go\.mod|go\.work|Cargo\.toml"
    r"|[Mm]akefile|GNUmakefile|\.?[jJ]ustfile|[^/]*requirements[^/]*\.(?:txt|in|pip))$"
    r"|(?:^|/)requirements/[^/]*\.(?:txt|in|pip)$|(?:^|/)PKG-INFO$"
    r"|(?:^|/)(?:docs/)?(?:CHANGE|change|HISTORY|history|NEWS)[^/]*\.(?:md|rst|txt)$"
)
MOST_TEXTS = 400
SOME_TESTS = 12
MAKEFILES = ("Makefile", "makefile", "GNUmakefile")
JUSTFILES = ("justfile", "Justfile", ".justfile")
# Where what is downloaded is kept: beside the sources, for nothing else outlives the set-up.
GO_MODULES = "GOMODCACHE=$PWD/.go-modules"
CARGO_HOME = "CARGO_HOME=$PWD/.cargo-home"

_TESTS = re.compile(
    r"\b(?:test|tests|check|spec|verify)\b|\b(?:rspec|phpunit|pest|ctest|prove|bats|busted|tasty)\b"
    r"|\b(?:mvn|mvnw|gradle|gradlew|sbt|rake|rebar3|lein|bazel|nimble)\b"
)
_NOT_TESTS = re.compile(
    r"\b(?:apt|apt-get|brew|pip|npm ci|install|docker|git|curl|echo|codecov|upload|lint|fmt)\b"
)


def wanted(paths: frozenset[str]) -> tuple[str, ...]:
    """The files that `discover` reads, the outermost first, and a few tests."""
    near = sorted((it for it in paths if _is_near(it)), key=lambda it: (it.count("/"), it))
    named = [it for it in near if _WANTED.search(it)][:MOST_TEXTS]
    tests = [it for it in near if re.search(r"(?:^|/)test_[^/]*\.py$|_test\.py$", it)]
    return tuple(dict.fromkeys((*named, *_spread(tests))))


def _spread(tests: list[str]) -> list[str]:
    step = max(1, len(tests) // SOME_TESTS)
    return tests[::step][:SOME_TESTS]


def _is_near(path: str) -> bool:
    parts = path.split("/")
    return len(parts) <= DEEPEST + 1 and not {"node_modules", "vendor"} & {*parts[:-1]}


def discover(tree: Tree) -> Plan:
    """The top alone where that is tested as one, else each package that has tests."""
    top = at(tree, "")
    folders = [it for it in _folders(tree) if not _covered(tree, top, it)]
    inner = [it for it in (at(tree, folder) for folder in folders) if it.test]
    if not inner:
        return Plan((top,))
    found = _connected(tree, named((*((top,) if top.test else ()), *inner)))
    return Plan(_installing(top, found))


def at(tree: Tree, folder: str) -> Package:
    """The first language with a test command; make and just fill what is missing."""
    here = tree.below(folder)
    shared = tree if folder and _in_workspace(tree, folder) else None
    found = [it for it in (python(here), node(here, shared), go(here), rust(here)) if it]
    made = make(here)
    best = next((it for it in found if it.test), None)
    if best is None and made and made.test:
        best = replace(next(iter(found), made), test=made.test)
    best = best or next(iter(found), None) or made or Package()
    types = best.typecheck or (made.typecheck if made else None)
    others = from_ci(here) if best.test is None else ()
    start = f"{folder}/" if folder else ""
    return replace(
        best,
        path=folder,
        typecheck=types,
        others=others,
        inputs=tuple(f"{start}{it}" for it in best.inputs),
    )


def _folders(tree: Tree) -> tuple[str, ...]:
    """Where a manifest lies, below the top."""
    found = {
        it.rpartition("/")[0]
        for it in tree.texts
        if it.rpartition("/")[2] in MANIFESTS and not _ELSEWHERE & {*it.split("/")[:-1]}
    } - {""}
    return tuple(sorted(found, key=lambda it: (it.count("/"), it)))[: 5 * MOST_PACKAGES]


def _covered(tree: Tree, top: Package, folder: str) -> bool:
    """Whether the test command at the top tests it too, or it is no package by itself."""
    here = tree.below(folder)
    same = {
        "python": ("pyproject.toml", "setup.py"),
        "node": ("package.json",),
        "rust": ("Cargo.toml",),
    }
    if not top.test:
        return False
    return bool(here.has(*same.get(top.language, ()))) or top.language in {"make", "just"}


def _in_workspace(tree: Tree, folder: str) -> bool:
    return bool(matching([folder], npm.workspaces(tree)))


def named(packages: tuple[Package, ...]) -> tuple[Package, ...]:
    """By the last part of their path, or by all of it where two are the same."""
    last = [it.path.rpartition("/")[2] or "top" for it in packages]
    names = [
        name if last.count(name) == 1 else it.path.replace("/", "-")
        for name, it in zip(last, packages, strict=True)
    ]
    clean = [re.sub(r"[^A-Za-z0-9_-]+", "-", it).strip("-_")[:28] or "package" for it in names]
    return tuple(
        replace(it, name=name) for it, name in zip(packages[:MOST_PACKAGES], clean, strict=False)
    )


def _connected(tree: Tree, packages: tuple[Package, ...]) -> tuple[Package, ...]:
    """Each with the directories of the other packages that it depends on."""
    names = {_project_name(tree.below(it.path)): it.path for it in packages}
    return tuple(
        _with_needs(
            it, tuple(sorted({names[n] for n in _depends(tree, it) if n in names} - {it.path}))
        )
        for it in packages
    )


def _with_needs(package: Package, needs: tuple[str, ...]) -> Package:
    """A Python package is given its siblings first: no index has them as they are here."""
    setup = package.setup
    if package.language == "python" and needs and setup and "pip install " in setup.command:
        up = "../" * (package.path.count("/") + 1)
        siblings = " ".join(f"-e {up}{it}" for it in needs)
        before, _, rest = setup.command.rpartition(".venv/bin/pip install ")
        setup = Seen(f"{before}.venv/bin/pip install {siblings} {rest}", setup.by)
    return replace(package, setup=setup, needs=needs)


def _project_name(here: Tree) -> str:
    project = here.toml("pyproject.toml")
    python_name = table(project, "project").get("name") or table(project, "tool", "poetry").get(
        "name"
    )
    found = (
        python_name,
        here.json("package.json").get("name"),
        table(here.toml("Cargo.toml"), "package").get("name"),
    )
    return next((_plain(it) for it in found if isinstance(it, str) and it), "")


def _depends(tree: Tree, package: Package) -> Iterator[str]:
    here = tree.below(package.path)
    project = here.toml("pyproject.toml")
    listed = strings(table(project, "project").get("dependencies"))
    yield from (_plain(re.split(r"[^\w.-]", it, maxsplit=1)[0]) for it in listed)
    yield from (_plain(it) for it in table(project, "tool", "poetry", "dependencies"))
    yield from (_plain(it) for it in npm.dependencies(here.json("package.json")))
    yield from (_plain(it) for it in _crates_of(here.toml("Cargo.toml")))


def _crates_of(manifest: Mapping[str, Any]) -> Iterator[str]:
    for key in ("dependencies", "dev-dependencies"):
        yield from table(manifest, key)


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _installing(top: Package, packages: tuple[Package, ...]) -> tuple[Package, ...]:
    """What a workspace installs at the top serves each of its packages."""
    if top.setup is None or top.language != "node":
        return packages
    return tuple(
        replace(it, setup=top.setup, shared=True, inputs=(*it.inputs, *top.inputs))
        if it.language == "node" and it.setup is None
        else it
        for it in packages
    )


# Go, Rust, make and just; for every other ecosystem what the CI definition says.


def go(tree: Tree) -> Package | None:
    if not tree.has("go.mod", "go.work"):
        return None
    downloads = bool(re.search(r"^\s*require\b", tree.text("go.mod"), re.MULTILINE))
    vendored = tree.has("vendor/modules.txt")
    cached = f"{GO_MODULES} " if downloads and not vendored else ""
    setup = Seen(f"{GO_MODULES} GOFLAGS=-modcacherw go mod download", "go.mod") if cached else None
    vets = any(re.search(r"\bgo vet\b", it.command) for it in tree.said)
    name = re.search(r"^module\s+(\S+)", tree.text("go.mod"), re.MULTILINE)
    return Package(
        name=name[1] if name else "",
        language="go",
        setup=setup,
        inputs=tree.has("go.mod", "go.sum"),
        test=Seen(f"{cached}go test -json ./...", "go.mod") if tree.like("**/*_test.go") else None,
        typecheck=Seen(f"{cached}go vet ./...", "go vet in CI") if vets else None,
    )


def rust(tree: Tree) -> Package | None:
    manifest = tree.toml("Cargo.toml")
    if not tree.has("Cargo.toml"):
        return None
    every = " --workspace" if "workspace" in manifest else ""
    needs = _crates(tree)
    before, offline = (f"{CARGO_HOME} ", " --offline") if needs else ("", "")
    checks = [it for it in tree.said if re.search(r"\bcargo (?:check|clippy)\b", it.command)]
    check = f"{before}cargo check --all-targets{every}{offline}"
    return Package(
        name=str(table(manifest, "package").get("name", "")),
        language="rust",
        setup=Seen(f"{CARGO_HOME} cargo fetch", "Cargo.toml") if needs else None,
        inputs=tree.has("Cargo.toml", "Cargo.lock"),
        test=Seen(f"{before}cargo test{every}{offline}", "Cargo.toml"),
        typecheck=Seen(check, checks[0].by) if checks else None,
    )


def _crates(tree: Tree) -> bool:
    """Whether anything has to be downloaded."""
    for name in tree.like("Cargo.toml", "**/Cargo.toml"):
        manifest = tree.toml(name)
        for key in ("dependencies", "dev-dependencies", "build-dependencies"):
            shared = table(manifest, "workspace", key)
            for it in (*table(manifest, key).values(), *shared.values()):
                if not {"path", "workspace"} & table({"": it}, "").keys():
                    return True
    return False


def make(tree: Tree) -> Package | None:
    """`make test` or `make check`, `just test`, as far as such a rule is there."""
    for files, program in ((MAKEFILES, "make"), (JUSTFILES, "just")):
        for file in tree.has(*files):
            rules = _rules(tree.text(file))
            test = next((it for it in ("test", "tests", "check", "unit") if it in rules), "")
            types = next((it for it in ("typecheck", "types", "mypy") if it in rules), "")
            if test or types:
                return Package(
                    language=program,
                    test=Seen(f"{program} {test}", file) if test else None,
                    typecheck=Seen(f"{program} {types}", file) if types else None,
                    recipe=_recipe(tree.text(file), test),
                )
    return None


def _recipe(text: str, rule: str) -> str:
    """The indented lines below a rule."""
    found = re.search(
        rf"^{re.escape(rule)}\b[^\n=]*:(?!=)[^\n]*\n((?:[ \t]+[^\n]*\n?)+)", text, re.MULTILINE
    )
    return found[1] if rule and found else ""


def _rules(text: str) -> frozenset[str]:
    found = re.findall(
        r"^@?([A-Za-z_][\w-]*)(?:[ \t]+[\w*+=\"'.-]+)*[ \t]*:(?![=:])", text, re.MULTILINE
    )
    phony = re.findall(r"^\.PHONY:(.*)$", text, re.MULTILINE)
    return frozenset({*found, *(it for line in phony for it in line.split())})


def from_ci(tree: Tree) -> tuple[Seen, ...]:
    """Commands that seem to test, for a human to choose from."""
    return tuple(dict.fromkeys(_from(tree.said)))[:5]


def _from(said: tuple[Said, ...]) -> Iterator[Seen]:
    for it in said:
        inside = f"cd {it.directory} && " if it.directory else ""
        lines = (line for line in strings(it.command) if "${{" not in line and any(calls_in(line)))
        for line in lines:
            if _TESTS.search(line) and not _NOT_TESTS.search(line):
                yield Seen(f"{inside}{line}", it.by)
