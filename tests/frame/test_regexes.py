"""What may stand in a regular expression of ours."""

import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{\d*,?\d*\})\+")


def test_no_group_is_possessive_because_early_3_11_matches_those_wrongly() -> None:
    """CPython gh-106052, mended in 3.11.5; Debian 12 has 3.11.2."""
    found = [
        f"{path.relative_to(SOURCE)}:{number}"
        for path in sorted(SOURCE.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if POSSESSIVE_GROUP.search(line)
    ]

    assert found == []
