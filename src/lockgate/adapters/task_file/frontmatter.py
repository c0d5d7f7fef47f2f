"""TASK.md's frontmatter: a small part of YAML, read with suspicion and written by hand."""

import re
from collections.abc import Mapping

from lockgate.core.text.task_file import BrokenFrontmatter

LARGEST = 16 * 1024  # what PyYAML scans in well under 100 ms, whatever it is
FIRST_LINE = 2  # of the file: the first is the fence
_FENCE = re.compile(r"---[ \t]*+(?:\r\n|\n|\r)")
_END = re.compile(r"(?:\A|(?<=[\r\n]))---[ \t]*+(?:\r\n|\n|\r|\Z)")
_BARE = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*+(?: [A-Za-z0-9_./-]++)*")
_WORDS = frozenset({"y", "yes", "n", "no", "true", "false", "on", "off", "null"})


def split_frontmatter(text: str) -> tuple[str | None, str]:
    """The text between the fences at the top, and all below; a fence never closed leaves none."""
    fence = _FENCE.match(text)
    if fence is None:
        return None, text
    end = _END.search(text, fence.end())
    if end is None:
        return text[fence.end() :], ""
    return text[fence.end() : end.start()], text[end.end() :]


def parse_frontmatter(text: str) -> dict[str, object] | BrokenFrontmatter:
    """Names with a string, a whole number, true, false, null, or a list of those; no more YAML."""
    # PyYAML is slow to import, and hot commands do without it.
    from lockgate.adapters.task_file.little_yaml import read_fields  # noqa: PLC0415

    if len(text) > LARGEST:
        return BrokenFrontmatter(f"it is longer than {LARGEST} characters", FIRST_LINE)
    return read_fields(text, FIRST_LINE)


def render_frontmatter(fields: Mapping[str, str | int]) -> str:
    """The frontmatter with its fences, such that any YAML reader gets the same values back."""
    lines = [f"{_scalar(name)}: {_scalar(value)}\n" for name, value in fields.items()]
    return f"---\n{''.join(lines)}---\n"


def _scalar(value: str | int) -> str:
    if isinstance(value, int):
        return str(value)
    if _BARE.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return '"' + "".join(_escaped(char) for char in value) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if char.isprintable():
        return char
    code = ord(char)
    if code <= 0xFF:  # noqa: PLR2004
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004
