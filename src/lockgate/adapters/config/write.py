"""Writes a config.toml for what was found. What it writes always loads."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lockgate.adapters.config.schema import GATE_FORMULAS, formula_gates
from lockgate.core.config.settings import HARNESSES, INSTALLED_BY
from lockgate.core.discovery.found import (
    Needed,
    Package,
    Plan,
    Seen,
    at_top,
    gate_name,
    names_tests,
    set_up_of,
)
from lockgate.errors import BadConfig

_NEEDS = {"tests": "test", "typecheck": "typecheck", "differential": "test"}
# Written, the key would replace what test runners know by name, so it is not.
_TESTS = (
    "# [tests] paths = [...] names the files that are tests. Without it, every name that a test",
    "# runner knows is one (tests/**, test_*.py, *.test.ts, *_test.go ...).",
)
_PULLS = ('target = "pull_request"  # the base branch takes no push',)
_RUNS = ("command", "differential")
Block = tuple[str, ...]


def render_config(
    plan: Plan,
    *,
    formula: str = "",
    agent: str = "claude",
    base: str = "main",
    pulls: bool = False,
) -> str:
    """A gate whose command was not found is skipped by name; none is given an empty command.

    No formula is the one that fits: `solo`, or `plain` where no report would name tests.
    """
    _refuse_unknown("formula", formula or "solo", GATE_FORMULAS)
    _refuse_unknown("agent", agent, HARNESSES)
    only = plan.only
    blocks = (
        ("# How Lockgate judges and lands changes of this repository.",
         "# It is read from the base branch's commit, never from a workspace."),
        ("[project]", f"base = {quoted(base)}", f"agent = {quoted(agent)}"),
        *((_commands(only),) if only else ()),
        _env(plan),
        _TESTS,
        tuple(f"# {_comment(it)}" for package in plan.packages for it in package.notes),
        *(_one(only, formula) if only else _many(plan, formula)),
        *(_service(it) for it in plan.services),
        ("[merge]", *(_PULLS if pulls else ()),
         'mode = "manual"  # a change that passed waits for you to merge it'),
    )  # fmt: skip
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def quoted(text: str) -> str:
    """A TOML basic string; what TOML does not allow in one is escaped, lone surrogates replaced."""
    clean = text.encode(errors="replace").decode()
    return '"' + "".join(_escaped(it) for it in clean) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    control = character < " " or character == "\x7f"
    return f"\\u{ord(character):04x}" if control else character


def _commands(package: Package) -> Block:
    return (
        "[commands]",
        _command("test", package.test),
        _command("typecheck", package.typecheck),
    )


def _command(key: str, seen: Seen | None) -> str:
    if seen is None or not seen.command.strip():
        return f'# {key} = "…"  # none: set it, and take its gate out of `skip` below'
    return f"{key} = {quoted(seen.command)}  # found in {_comment(seen.by)}"


def _env(plan: Plan) -> Block:
    setup = set_up_of(plan)
    if not setup.strip():
        return ()
    inputs = dict.fromkeys(it for package in plan.packages for it in package.inputs)
    return (
        "[env]",
        f"setup = {quoted(setup)}  # with network, once per hash of inputs",
        f"inputs = {_list(inputs)}",
    )


def _service(it: Needed) -> Block:
    """One whose program is not here would break every gate: it stands there to be taken in."""
    pairs = ", ".join(f"{name} = {quoted(value)}" for name, value in it.env)
    lines = (
        "[[services]]",
        f"service = {quoted(it.kind)}  # found in {_comment(it.by)}",
        *((f"env = {{ {pairs} }}",) if it.env else ()),
    )
    if it.installed:
        return lines
    told = f"# Not installed here: apt-get install {INSTALLED_BY[it.kind]}, then take these in."
    return (told, *(f"# {line}" for line in lines))


def _one(package: Package, formula: str) -> Iterator[Block]:
    """The formula by its name, without the gates that have no command."""
    found = {
        "test": package.test and package.test.command.strip(),
        "typecheck": package.typecheck and package.typecheck.command.strip(),
    }
    compares = bool(found["test"]) and names_tests(str(found["test"]), package.recipe)
    chosen = formula or ("solo" if compares else "plain")
    if not formula and found["test"] and not compares:
        yield (
            "# Not solo: its differential gate compares tests one by one, and the test command has",
            "# no report that names them. A CHANGE CAN DELETE OR EMPTY TESTS, and no gate asks.",
            "# Let the command write JUnit into $OUT, then say solo below.",
        )
    names = [str(it["name"]) for it in formula_gates(chosen)]
    skip = [it for it in names if it in _NEEDS and not found[_NEEDS[it]]]
    more = (f"skip = {_list(skip)}  # no command for these",) if skip else ()
    yield ("[gates]", f"formula = {quoted(chosen)}", *more)


def _many(plan: Plan, formula: str) -> Iterator[Block]:
    """One set of gates for each package, then those of the formula that run no command."""
    yield (
        "# Each package has its own gates. There is no differential gate: it needs one command.",
        "[gates]",
        'formula = "none"',
    )
    for package in plan.packages:
        for kind, seen in (("tests", package.test), ("typecheck", package.typecheck)):
            if seen and seen.command.strip():
                yield _listed(package, kind, seen)
    for gate in formula_gates(formula or "plain"):
        if gate["type"] not in _RUNS:
            yield ("[[gates.list]]", *_entries(gate))


def _listed(package: Package, kind: str, seen: Seen) -> Block:
    folders = (package.path, *package.needs) if package.path else ()
    paths = (f"paths = {_list(f'{it}/**' for it in folders)}",) if folders else ()
    return (
        "[[gates.list]]",
        f"name = {quoted(gate_name(kind, package))}",
        'type = "command"',
        f"command = {quoted(at_top(package, seen.command))}  # found in {_comment(seen.by)}",
        *paths,
    )


def _entries(gate: Mapping[str, Any]) -> Iterable[str]:
    for key, value in gate.items():
        if isinstance(value, bool):
            yield f"{key} = {str(value).lower()}"
        elif isinstance(value, str):
            yield f"{key} = {quoted(value)}"
        else:
            yield f"{key} = {_list(value)}"


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(quoted(it) for it in texts if it)}]"


def _comment(text: str) -> str:
    return "".join(it if it.isprintable() else "?" for it in text)


def _refuse_unknown(kind: str, name: str, known: Iterable[str]) -> None:
    if name not in known:
        raise BadConfig(
            "the config was not written",
            why=f"no {kind} is called {name!r}",
            fix=f"choose one of {', '.join(known)}",
        )
