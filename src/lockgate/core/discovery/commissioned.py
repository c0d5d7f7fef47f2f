"""A set-up that an agent proposes: what it is asked for, how that is read, when it is accepted."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from lockgate.core.config.baseline import Baseline, Colour
from lockgate.core.discovery.found import Package, Plan, Seen, strings
from lockgate.core.discovery.packages import named
from lockgate.core.discovery.repairs import Tried, told

PROPOSAL = "lockgate-setup.toml"
RUNS = 3  # on base, all of which must be green
FAULTS = 3  # that must turn it red, as far as there are so many source files

_ASKED = f"""\
Find out how the tests of this repository are run, and write that into {PROPOSAL} at the top of it:

    test = "…"                # one shell command that runs the tests; exit code 0 where they pass
    setup = "…"               # one shell command that installs what they need
    inputs = ["…"]            # the files that the set-up depends on: manifests and lock files
    typecheck = "…"           # only where the project itself has a type check that passes

Only `test` is needed. Where the repository has several packages that are tested each by itself,
write one table for each instead, with the same keys and its directory:

    [[package]]
    path = "services/api"
    test = "…"                # both run in that directory

Your commands will be run in a clean checkout of this commit, without what you do here: first
`setup`, once, with the network; then `test`, without the network, where $OUT is a directory for
reports. Install into the checkout (for example into .venv or node_modules), for nothing outside of
it is kept. Let the tests write a JUnit report to $OUT/junit.xml if their runner can.

They are accepted only if `test` passes {RUNS} times on this commit and fails when source files are
broken. Run all tests, do not change any other file, and try your commands before you end.
"""


def asked(found: Plan) -> str:
    """The prompt, with what was found without an agent, which may be wrong."""
    lines = [f"- {key}: {value}" for key, value in told(found).items()]
    return "\n".join((_ASKED, "What a look at the files suggests, which may be wrong:", *lines, ""))


def proposed(text: str, agent: str) -> Plan | str:
    """What it comes to, or why it cannot be tried."""
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        return f"{PROPOSAL} is no TOML: {error}"
    listed = found.get("package", [found])
    tables = cast("list[object]", listed) if isinstance(listed, list) else []
    packages = tuple(
        _package(cast("Mapping[str, Any]", it), agent) for it in tables if isinstance(it, Mapping)
    )
    if not packages or not all(it.test for it in packages):
        return f"{PROPOSAL} names no `test`"
    if any(it.path.startswith("/") or ".." in it.path.split("/") for it in packages):
        return f"{PROPOSAL} names a `path` outside of the repository"
    return Plan(named(packages) if packages[0].path or len(packages) > 1 else packages)


def _package(it: Mapping[str, Any], agent: str) -> Package:
    def seen(key: str) -> Seen | None:
        value = it.get(key)
        return Seen(value.strip(), agent) if isinstance(value, str) and value.strip() else None

    path = it.get("path")
    folder = path.strip().removeprefix("./").rstrip("/") if isinstance(path, str) else ""
    start = f"{folder}/" if folder else ""
    return Package(
        path="" if folder == "." else folder,
        setup=seen("setup"),
        inputs=tuple(f"{start}{name}" for name in strings(it.get("inputs"))),
        test=seen("test"),
        typecheck=seen("typecheck"),
    )


def why_not(tried: Sequence[Tried], base: str) -> str:
    """Empty where it is accepted."""
    return next(_objections(tried, base), "")


def _objections(tried: Sequence[Tried], base: str) -> Iterator[str]:
    tests = [it for it in tried if it.baseline.name.startswith("tests")]
    for it in tests:
        command = f"`{it.baseline.command}`"
        yield from (f"{command} {why}" for why in _on_base(it.baseline, base))
        if not it.broke:
            yield "no source file was found to break, so nobody saw the tests fail"
        if not it.noticed:
            yield f"{command} passes with the source broken, so it does not test it"
        if it.faults < it.wanted:
            yield f"{command} turned red on {it.faults} faults, not on {it.wanted}"
    if not tests:
        yield "no command of it tests anything"


def _on_base(found: Baseline, base: str) -> Iterator[str]:
    if found.why:
        yield f"could not be run: {found.why}"
    if found.colour is Colour.RED:
        first = "".join(f": {it.issue}" for it in found.findings[:1])
        yield f"fails on {base}{first}"
    if found.colour is Colour.FLAKY:
        yield f"passed in {found.passed} of {found.runs} runs on {base}"
