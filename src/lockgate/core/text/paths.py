"""Which paths a pattern names: `*` within a directory, `**` over any number of them."""

import re
from collections.abc import Iterable, Sequence
from functools import cache


def matching(paths: Iterable[str], patterns: Sequence[str]) -> tuple[str, ...]:
    return tuple(path for path in paths if any(_regex(it).fullmatch(path) for it in patterns))


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
