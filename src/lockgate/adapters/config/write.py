"""Writes a config.toml for what was detected. What it writes always loads."""

from collections.abc import Iterable, Mapping
from typing import Any

from lockgate.adapters.config.detect import Detected, Seen, names_tests
from lockgate.adapters.config.formulas import GATE_FORMULAS, formula_gates
from lockgate.core.config.settings import HARNESSES
from lockgate.errors import BadConfig

_NEEDS = {"tests": "test", "typecheck": "typecheck", "differential": "test"}


def render_config(
    detected: Detected, *, formula: str = "", agent: str = "claude", base: str = "main"
) -> str:
    """A formula whose commands were not all found is spelled out, without the gates that lack one.

    No formula is the one that fits: `solo`, or `plain` where no report would name tests. A gate is
    never given an empty command or one that always passes.
    """
    chosen = formula or ("solo" if _can_compare(detected) else "plain")
    _refuse_unknown("formula", chosen, GATE_FORMULAS)
    _refuse_unknown("agent", agent, HARNESSES)
    blocks = (
        ("# How Lockgate judges and lands changes of this repository.",
         "# It is read from the base branch's commit, never from a workspace."),
        ("[project]", f"base = {quoted(base)}", f"agent = {quoted(agent)}"),
        ("[commands]", _command("test", detected.test), _command("typecheck", detected.typecheck)),
        _env(detected),
        ("[tests]", f"paths = {_list(detected.test_paths)}") if detected.test_paths else (),
        () if formula or chosen == "solo" else _why_plain(detected),
        *_gates(detected, chosen),
        ("[merge]", 'mode = "manual"  # a change that passed waits for you to merge it'),
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


def _command(key: str, seen: Seen | None) -> str:
    if seen is None or not seen.command.strip():
        return f'# {key} = "…"  # not found: set it, then name its gate below'
    return f"{key} = {quoted(seen.command)}  # seen by {_comment(seen.by)}"


def _env(detected: Detected) -> tuple[str, ...]:
    if detected.setup is None:
        return ()
    setup = f"setup = {quoted(detected.setup.command)}  # with network, once per hash of inputs"
    return ("[env]", setup, f"inputs = {_list(detected.inputs)}")


def _can_compare(detected: Detected) -> bool:
    return detected.test is not None and names_tests(detected.test.command)


def _why_plain(detected: Detected) -> tuple[str, ...]:
    if detected.test is None or not detected.test.command.strip():
        return ()
    return (
        "# Not solo: its differential gate compares tests one by one, and the test command has no",
        "# report that names them. Let it write JUnit into $OUT, then say solo below.",
    )


def _gates(detected: Detected, formula: str) -> Iterable[tuple[str, ...]]:
    found = {
        "test": detected.test and detected.test.command.strip(),
        "typecheck": detected.typecheck and detected.typecheck.command.strip(),
    }
    gates = formula_gates(formula)
    left_out = [
        it["name"] for it in gates if it["name"] in _NEEDS and not found[_NEEDS[it["name"]]]
    ]
    if not left_out:
        yield ("[gates]", f"formula = {quoted(formula)}")
        return
    yield (
        f"# The formula {formula} without {', '.join(left_out)}: no command was found for that.",
        "[gates]",
        'formula = "none"',
    )
    for gate in gates:
        if gate["name"] not in left_out:
            yield ("[[gates.list]]", *_entries(gate))


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
