"""A change as people read it: a diff taken apart into files, hunks and numbered lines."""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

LARGE_LINES, LARGE_BYTES = 2_000, 200_000  # of one file's diff; more is shown when asked for
LOCKS = frozenset(
    {"package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock"}
    | {"poetry.lock", "uv.lock", "Pipfile.lock", "Cargo.lock", "go.sum", "Gemfile.lock"}
    | {"composer.lock", "flake.lock"}
)
TESTS = re.compile(r"(^|/)(tests?|spec|__tests__)/|(^|/)test_|_test\.|\.(test|spec)\.")
_HEAD = "diff --git "
_AT = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\([0-7]{3}|.)")
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class Line(Struct, frozen=True):
    """`mark` is `+`, `-`, a space, or a backslash for a note of git's; 0 is no line there."""

    mark: str
    old: int
    new: int
    text: str

    @property
    def side(self) -> str:
        return "old" if self.mark == "-" else "new"

    @property
    def number(self) -> int:
        return self.old if self.mark == "-" else self.new


class Hunk(Struct, frozen=True):
    """`where` is what git names above it, often a function."""

    old: int
    new: int
    where: str
    lines: tuple[Line, ...]

    def blocks(self) -> Iterator[tuple[Line, ...]]:
        """Lines that stay, one each; lines that go and come together, those that go first."""
        block: list[Line] = []
        for line in self.lines:
            if line.mark == " ":
                if block:
                    yield tuple(block)
                    block = []
                yield (line,)
            else:
                block.append(line)
        if block:
            yield tuple(block)


class FileChange(Struct, frozen=True, kw_only=True):
    """One file of a change; `how` says what became of it where it was not only edited."""

    name: str
    before: str
    how: str
    added: int
    removed: int
    text: str

    @property
    def binary(self) -> bool:
        return self.how == "binary"

    @property
    def folded(self) -> str:
        """Why it is shown as one line until somebody opens it; empty where it is not."""
        if self.binary:
            return "binary"
        if self.name.rpartition("/")[2] in LOCKS:
            return "lock file"
        large = self.added + self.removed > LARGE_LINES or len(self.text) > LARGE_BYTES
        return "large" if large else ""

    def hunks(self) -> tuple[Hunk, ...]:
        return tuple(_hunks(self.text.split("\n")))


def files_of(diff: str) -> tuple[FileChange, ...]:
    """In the order of the diff."""
    parts = re.split(rf"(?m)^(?={re.escape(_HEAD)})", diff)
    return tuple(_file(part) for part in parts if part.startswith(_HEAD))


def in_reading_order(
    files: Sequence[FileChange], protected: Sequence[str]
) -> tuple[FileChange, ...]:
    """What a human must see first, then tests, then the rest."""
    first = set(protected)

    def rank(it: FileChange) -> tuple[bool, bool]:
        return (it.name not in first, not TESTS.search(it.name))

    return tuple(sorted(files, key=rank))


def _file(part: str) -> FileChange:
    head, at, body = part.partition("\n@@ ")
    lines = head.split("\n")
    facts = dict(_facts(lines[1:]))
    before, after = facts.get("before", ""), facts.get("after", "")
    if not (before or after):
        before = after = _same_name(lines[0])
    text = f"@@ {body}" if at else ""
    marks = [it[:1] for it in text.split("\n")]
    return FileChange(
        name=after or before,
        before=before,
        how=facts.get("how", ""),
        added=marks.count("+"),
        removed=marks.count("-"),
        text=text,
    )


def _facts(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        for start, name in _NAMES.items():
            if line.startswith(start):
                yield name, _path(start, line)
        for start, how in _HOW.items():
            if line.startswith(start):
                yield "how", how


_NAMES = {"--- ": "before", "+++ ": "after", "rename from ": "before", "rename to ": "after"}
_HOW = {
    "new file": "new",
    "deleted file": "deleted",
    "rename to": "renamed",
    "new mode": "mode",
    "Binary files ": "binary",
    "GIT binary patch": "binary",
}


def _path(start: str, line: str) -> str:
    path = _unquoted(line[len(start) :].removesuffix("\t"))
    if start in {"--- ", "+++ "}:
        return "" if path == "/dev/null" else path[2:]
    return path


def _same_name(head: str) -> str:
    """Of a file that git names only in its first line, twice."""
    rest = head[len(_HEAD) :]
    if rest.startswith('"'):
        return _unquoted(rest[: rest.index('" ') + 1] if '" ' in rest else rest)[2:]
    half = rest[: len(rest) // 2]
    return half[2:]


def _unquoted(path: str) -> str:
    """As git writes a name that has more than plain characters in it."""
    if not (path.startswith('"') and path.endswith('"') and len(path) > 1):
        return path

    def plain(found: re.Match[str]) -> str:
        it = found[1]
        return chr(int(it, 8)) if len(it) > 1 else _NAMED.get(it, it)

    raw = _ESCAPED.sub(plain, path[1:-1])
    return raw.encode("latin-1", "replace").decode("utf-8", "replace")


def _hunks(lines: Sequence[str]) -> Iterator[Hunk]:
    found: list[Line] = []
    head: re.Match[str] | None = None
    old = new = 0
    for text in lines[:-1] if lines and not lines[-1] else lines:
        at = _AT.match(text)
        if at:
            if head:
                yield Hunk(int(head[1]), int(head[2]), head[3], tuple(found))
            head, found, old, new = at, [], int(at[1]), int(at[2])
            continue
        mark = text[:1] or " "
        goes, comes = mark in " -", mark in " +"
        found.append(Line(mark, old if goes else 0, new if comes else 0, text[1:]))
        old, new = old + goes, new + comes
    if head:
        yield Hunk(int(head[1]), int(head[2]), head[3], tuple(found))
