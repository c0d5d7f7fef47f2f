"""Go, Rust, make and just; for every other ecosystem what the CI definition says."""

import re
from collections.abc import Iterator

from lockgate.core.discovery.found import Package, Said, Seen, Tree, strings, table
from lockgate.core.discovery.shell import calls_in

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
        test_paths=("**/*_test.go", "**/testdata/**"),
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
        test_paths=("tests/**", "**/tests/**"),
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
                )
    return None


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
