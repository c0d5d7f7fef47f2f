"""What reading a TASK.md gives: its text, nothing, or why it is not to be read."""

from collections.abc import Mapping
from dataclasses import dataclass

MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class Readable:
    """The text of one reading; `digest` is of the very bytes."""

    frontmatter: str | None
    body: str
    digest: str


@dataclass(frozen=True, slots=True)
class Missing:
    """There is no such file."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Something is there that is no honest text file. Three parts, as in an error's message."""

    what: str
    why: str
    fix: str


TaskText = Readable | Missing | Unreadable


@dataclass(frozen=True, slots=True)
class BrokenFrontmatter:
    """Why the frontmatter is not what TASK.md may hold, and the line of the file, from 1."""

    why: str
    line: int


def count_in(fields: Mapping[str, object], name: str) -> int | BrokenFrontmatter:
    """A counter such as `crash_count`; missing reads as 0."""
    found = fields.get(name, 0)
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= MOST:
        why = f"{name} is {found!r}, and must be a whole number from 0 to {MOST:,}"
        return BrokenFrontmatter(why, 1)
    return found
