"""Letting coverage see into a program of ours that runs alone."""

import os
from collections.abc import Sequence
from pathlib import Path

import lockgate

SOURCE = Path(lockgate.__file__).parents[1]


def watched() -> dict[str, str]:
    """What a program gets, so that it is measured; nothing where no measuring was asked for."""
    return {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}


def measured(argv: Sequence[str], env: dict[str, str]) -> tuple[str, ...]:
    """The same line; while coverage is measured, by the module's name, which coverage goes by."""
    more = watched()
    if not more:
        return tuple(argv)
    env |= more
    python, _, _, program, *rest = argv
    module = ".".join(Path(program).relative_to(SOURCE).with_suffix("").parts)
    return (python, "-m", module, *rest)
