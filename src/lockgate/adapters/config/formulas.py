"""The formulas that ship with Lockgate, read from their data files."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

GATE_FORMULAS = ("plain", "solo", "code-review", "security-audit", "quick-review", "none")
STEP_FORMULAS = ("tdd",)


@cache
def formula_text(name: str) -> str:
    return (files("lockgate.adapters") / "formulas" / f"{name}.toml").read_text(encoding="utf-8")


def formula_gates(name: str) -> list[dict[str, Any]]:
    """Its gates, as `[[gates.list]]` of a config would have them."""
    entries: list[dict[str, Any]] = (
        tomllib.loads(formula_text(name)).get("gates", {}).get("list", [])
    )
    return entries


def formula_steps(name: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = tomllib.loads(formula_text(name))["steps"]
    return entries
