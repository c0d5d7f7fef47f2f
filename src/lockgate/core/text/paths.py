"""Which paths a pattern names: `*` within a directory, `**` over any number of them."""

import re
from collections.abc import Iterable, Sequence
from functools import cache

from lockgate.core.model.gates import CommandGate, DifferentialGate, Gate

MOST_FILES = 5_000  # of a change, that are compared with `paths`


def matching(paths: Iterable[str], patterns: Sequence[str]) -> tuple[str, ...]:
    return tuple(path for path in paths if any(_regex(it).fullmatch(path) for it in patterns))


def touched(gate: Gate, gates: Sequence[Gate], files: Sequence[str]) -> bool:
    """Whether a change of these files is for the gate, by its `paths`.

    A file that no command gate names by its `paths` is for all of them: a shared file, such as a
    lock file at the top, may break any package. So is a change of no file, or of too many.
    """
    if not gate.place.paths or not files or len(files) > MOST_FILES:
        return True
    if matching(files, gate.place.paths):
        return True
    others = (it for it in gates if isinstance(it, CommandGate | DifferentialGate))
    named = [path for it in others if not it.place.when for path in it.place.paths]
    return len(matching(files, named)) < len(files)


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    """`docs/**` names everything below docs; `**/conftest.py` one at the top as well."""
    parts: list[str] = []
    for piece in re.split(r"(\*\*/|\*\*|\*|\?)", pattern):
        match piece:
            case "**/":
                parts.append("(?:[^/]+/)*")
            case "**":
                parts.append(".*")
            case "*":
                parts.append("[^/]*")
            case "?":
                parts.append("[^/]")
            case text:
                parts.append(re.escape(text))
    return re.compile("".join(parts), re.DOTALL)
