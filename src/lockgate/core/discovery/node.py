"""A JavaScript or TypeScript package: its package manager, its scripts, its test runner."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from lockgate.core.discovery.found import Package, Seen, Tree, quote, strings, table
from lockgate.core.discovery.shell import Call, calls_in

NODE_REPORT = (
    "--test-reporter=junit --test-reporter-destination=$OUT/junit.xml"
    " --test-reporter=spec --test-reporter-destination=stdout"
)
VITEST_REPORT = "--reporter=default --reporter=junit --outputFile.junit=$OUT/junit.xml"
JEST_REPORT = "--reporters=default --reporters=jest-junit"
MOCHA_REPORT = "--reporter=xunit --reporter-option=output=$OUT/junit.xml"
TYPES = (
    "typecheck",
    "type-check",
    "check-types",
    "check:types",
    "types:check",
    "test:types",
    "tsc",
)


class Manager(Struct, frozen=True, kw_only=True):
    """A package manager: how it installs, adds one package, and starts scripts and programs."""

    name: str
    install: str
    adds: str
    script: str  # starts a script; more words may follow
    program: str

    def words(self, script: str, more: str = "") -> str:
        behind = f" {more}" if more else ""
        return f"{self.script} {script}{' --' if more and self.name == 'npm' else ''}{behind}"


def node(tree: Tree, top: Tree | None = None) -> Package | None:
    """`top` is the repository's, where a workspace there installs for this package too."""
    package = tree.json("package.json")
    if not package:
        return None
    manager = manager_of(top or tree)
    found = _test(tree, package, manager)
    test, adds = found or (None, ())
    return Package(
        name=str(package.get("name", "")),
        language="node",
        setup=None if top else Seen(manager.install, (*locks(tree), "package.json")[0]),
        adds_with=manager.adds,
        adds=adds,
        inputs=(*locks(tree), "package.json"),
        test=test,
        typecheck=_types(tree, package, manager),
    )


LOCKS = ("pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb", "package-lock.json")


def locks(tree: Tree) -> tuple[str, ...]:
    return tree.has(*LOCKS, "npm-shrinkwrap.json")


def manager_of(tree: Tree) -> Manager:
    """The one whose lock file is there; a manager that is not installed here is fetched by npm."""
    found = locks(tree)
    named = str(tree.json("package.json").get("packageManager", ""))
    name = named.partition("@")[0] or (_OF_LOCK[found[0]] if found else "npm")
    if name in {"pnpm", "yarn", "bun"}:
        return _other(name, named, tree)
    quiet, lock = "--no-audit --no-fund", "" if found else " --no-package-lock"
    return Manager(
        name="npm",
        install=f"npm ci {quiet}" if found else f"npm install {quiet}{lock}",
        adds=f"npm install {quiet} --no-save{lock}",
        script="npm run",
        program="npx --no-install",
    )


_OF_LOCK = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
}


def _other(name: str, named: str, tree: Tree) -> Manager:
    there = name in tree.tools
    version = named.partition("+")[0] or name
    modern = name == "yarn" and (tree.has(".yarnrc.yml") or re.match(r"yarn@[2-9]", named))
    fetched = f"npx --yes {version}"
    if modern:  # npm has the versions from 2 on under another name
        number = version.partition("@")[2]
        fetched = f"npx --yes --package=@yarnpkg/cli-dist{'@' if number else ''}{number} yarn"
    program = name if there else fetched
    frozen = "--immutable" if modern else "--frozen-lockfile"
    install = f"{program} install {frozen}" if locks(tree) else f"{program} install"
    if modern:  # programs are started from node_modules, which its own default does not make
        install = f"YARN_NODE_LINKER=node-modules {install}"
    adds = {
        "pnpm": f"{program} add -D",
        "yarn": f"{program} add --dev",
        "bun": f"{program} add --dev",
    }[name]
    run = f"{name} run" if there else "npm run"
    execute = {"pnpm": "pnpm exec", "yarn": "yarn run", "bun": "bunx"}[name]
    return Manager(
        name=name if there else "npm",
        install=install,
        adds=adds,
        script=run,
        program=execute if there else "npx --no-install",
    )


def workspaces(tree: Tree) -> tuple[str, ...]:
    """The patterns of the packages that are installed together."""
    listed = tree.json("package.json").get("workspaces")
    if isinstance(listed, Mapping):
        listed = table({"": listed}, "").get("packages")
    own = [] if isinstance(listed, str) else [*strings(listed)]
    text = tree.text("pnpm-workspace.yaml")
    _, _, rest = text.partition("packages:")
    own += re.findall(r"""^\s*-\s*["']?([^"'\s#]+)["']?\s*$""", rest, re.MULTILINE)
    return tuple(it.rstrip("/") for it in own if not it.startswith("!"))


# --- tests --------------------------------------------------------------------------------------

Found = tuple[Seen, tuple[str, ...]]


def _test(tree: Tree, package: Mapping[str, Any], manager: Manager) -> Found | None:
    scripts = table(package, "scripts")
    for name in ("test:unit", "test:ci", "test"):
        said = any(re.search(rf"\b(?:run )?{name}\b", it.command) for it in tree.said)
        if (name == "test" or said) and _is_real(scripts.get(name)):
            return _of_script(tree, manager, name)
    installed = _installed(package)
    for program, words in (("vitest", "vitest run"), ("jest", "jest"), ("mocha", "mocha")):
        if program in installed:
            command = f"{manager.program} {words}"
            return _reported(Call(program, ()), command), (
                ("jest-junit",) if program == "jest" and "jest-junit" not in installed else ()
            )
    if any(
        re.search(r"(?:^|/)[^/]*[._-]test\.[cm]?js$|(?:^|/)tests?/[^/]*\.[cm]?js$", it)
        for it in tree.paths
    ):
        return Seen(f"node --test {NODE_REPORT}", "test files"), ()
    return None


def _is_real(script: object) -> bool:
    return isinstance(script, str) and bool(script.strip()) and "no test specified" not in script


def _of_script(tree: Tree, manager: Manager, name: str) -> Found:
    """With a report in $OUT, where one test runner is all that the script's tests come to."""
    found = tests_alone(tree, manager, name)
    if len(found) == 1:
        return found[0]
    return Seen(manager.words(name), f"scripts.{name} in package.json"), ()


_ODD = re.compile(r"[|<>`$()]|(?<!&)&(?!&)")  # no plain list of commands
RUNNERS = frozenset({"mocha", "_mocha", "jest", "vitest", "ava", "tape", "tap", "uvu", "jasmine"})
MOST_SCRIPTS = 20


def tests_alone(tree: Tree, manager: Manager, start: str) -> tuple[Found, ...]:
    """Each test runner that a script comes to, without linters, browsers and types."""
    package = tree.json("package.json")
    scripts = table(package, "scripts")
    todo, seen, found = [start], list[str](), list[Found]()
    while todo and len(seen) < MOST_SCRIPTS:
        name = todo.pop(0)
        script = scripts.get(name)
        if name in seen or not isinstance(script, str) or _ODD.search(script):
            continue
        seen.append(name)
        calls = [_named(it, scripts) for it in calls_in(script)]
        whole = len(calls) == 1
        found += [_alone(package, manager, (name, it), whole=whole) for it in calls if _runs(it)]
        todo += [it for call in calls for it in _started_by(call, scripts)]
    return tuple(found)


def joined(found: tuple[Found, ...]) -> Found | None:
    """All of them, one after the other, each with a report of its own."""
    if len(found) <= 1:
        return found[0] if found else None
    commands = (_report_named(it.command, n) for n, (it, _) in enumerate(found, start=1))
    adds = dict.fromkeys(add for _, adds in found for add in adds)
    return Seen(" && ".join(commands), found[0][0].by), tuple(adds)


def _report_named(command: str, number: int) -> str:
    name = f"junit-{number}.xml"
    plain = command.replace("$OUT/junit.xml", f"$OUT/{name}")
    jest = "JEST_JUNIT_OUTPUT_DIR=$OUT "
    return plain.replace(jest, f"{jest}JEST_JUNIT_OUTPUT_NAME={name} ")


_MANAGERS = frozenset({"npm", "pnpm", "yarn", "bun"})


def _named(call: Call, scripts: Mapping[str, Any]) -> Call:
    """`pnpm vitest` and `yarn exec jest` run the program, where no script has its name."""
    words = call.arguments
    if call.program not in _MANAGERS | {"bunx"}:
        return call
    rest = words[1:] if words[:1] in {("exec",), ("x",)} else words
    if not rest or rest[0] not in RUNNERS or rest[0] in scripts:
        return call
    return Call(rest[0], rest[1:], call.variables)


def _runs(call: Call) -> bool:
    return call.program in RUNNERS or (call.program == "node" and "--test" in call.arguments)


def _started_by(call: Call, scripts: Mapping[str, Any]) -> tuple[str, ...]:
    """The scripts that a command names: `npm run a`, `npm-run-all a b`, `run-s test:*`."""
    if call.program not in _MANAGERS | {"npm-run-all", "run-s", "run-p"}:
        return ()
    words = [it.strip("/^") for it in call.arguments if it != "run" and not it.startswith("-")]
    starts = tuple(it.rstrip("*") for it in words if it.endswith((":", "*")))
    return tuple(it for it in scripts if it in words or (starts and it.startswith(starts)))


def _alone(
    package: Mapping[str, Any], manager: Manager, at: tuple[str, Call], *, whole: bool
) -> Found:
    name, call = at
    by = f"scripts.{name} in package.json"
    before, more = _report(call)
    junit = (
        ("jest-junit",) if "jest-junit" in more and "jest-junit" not in _installed(package) else ()
    )
    if whole:
        return Seen(f"{before}{manager.words(name, more)}", by), junit
    started = call.program if call.program == "node" else f"{manager.program} {call.program}"
    words = " ".join((*call.variables, started, *(quote(it) for it in call.arguments), more))
    return Seen(f"{before}{words.strip()}", by), junit


def _report(call: Call | None) -> tuple[str, str]:
    """What goes before the command, and what behind it."""
    words: tuple[str, ...] = call.arguments if call else ()
    program = call.program if call else ""
    if program == "node" and "--test" in words and "".join(words[-1:]).startswith("--"):
        return "", NODE_REPORT
    if program == "vitest":
        return "", VITEST_REPORT if {"run", "--run"} & {*words} else f"--run {VITEST_REPORT}"
    if program == "jest" and not any(it.startswith("--reporters") for it in words):
        return "JEST_JUNIT_OUTPUT_DIR=$OUT ", JEST_REPORT
    return "", MOCHA_REPORT if program in {"mocha", "_mocha"} else ""


def _reported(call: Call, command: str) -> Seen:
    before, behind = _report(call)
    behind = behind.removeprefix("--run ")
    return Seen(f"{before}{command} {behind}", f"{call.program} in package.json")


def _installed(package: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**table(package, "dependencies"), **table(package, "devDependencies")}


def dependencies(package: Mapping[str, Any]) -> frozenset[str]:
    return frozenset({*_installed(package), *table(package, "peerDependencies")})


# --- types --------------------------------------------------------------------------------------


def _types(tree: Tree, package: Mapping[str, Any], manager: Manager) -> Seen | None:
    for name in TYPES:
        if _is_real(table(package, "scripts").get(name)):
            return Seen(manager.words(name), f"scripts.{name} in package.json")
    if tree.has("tsconfig.json") and "typescript" in _installed(package):
        return Seen(f"{manager.program} tsc --noEmit", "tsconfig.json")
    return None
