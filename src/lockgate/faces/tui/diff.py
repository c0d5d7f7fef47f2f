"""A change as people read it: files and lines of a diff, and the comments at them.

Nothing here shows anything: the review screen draws what these functions make.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

MANY_LINES = 2_000  # changed lines from which a file is one line until somebody opens it
MANY_BYTES = 200_000
LOCK_FILES = frozenset(
    {"package-lock.json", "yarn.lock", "pnpm-lock.yaml", "poetry.lock", "uv.lock", "Cargo.lock"}
    | {"Gemfile.lock", "composer.lock", "go.sum", "flake.lock", "Pipfile.lock", "bun.lock"}
)
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)")
_TEST = re.compile(r"(^|/)(tests?|specs?|__tests__)/|(^|/)test_[^/]*$|[._-](test|spec)\.[^/]*$")
_ESCAPED = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


class Side(StrEnum):
    """Which of the two files a line is in."""

    OLD = "old"
    NEW = "new"


class DiffLine(Struct, frozen=True):
    """`kind` is the first character of the line in the diff: space, plus, minus or @."""

    kind: str
    old: int
    new: int
    text: str

    @property
    def side(self) -> Side:
        return Side.OLD if self.kind == "-" else Side.NEW

    @property
    def number(self) -> int:
        return self.old if self.kind == "-" else self.new


class DiffFile(Struct, frozen=True, kw_only=True):
    name: str
    before: str = ""  # its name until now, where it has another
    lines: tuple[DiffLine, ...] = ()
    binary: bool = False
    size: int = 0  # characters of its diff

    @property
    def added(self) -> int:
        return sum(it.kind == "+" for it in self.lines)

    @property
    def removed(self) -> int:
        return sum(it.kind == "-" for it in self.lines)

    @property
    def folded(self) -> bool:
        """Whether it is one line until somebody opens it."""
        large = self.size > MANY_BYTES or self.added + self.removed > MANY_LINES
        return self.binary or large or self.name.rpartition("/")[2] in LOCK_FILES


class Note(Struct, frozen=True, kw_only=True):
    """A comment at a line: a reviewer's finding, or a human's draft."""

    text: str
    by: str
    priority: str
    file: str = ""
    line: int = 0
    side: Side = Side.NEW
    quote: str = ""  # the line as it was when the comment was written
    draft: str = ""  # the id of a draft; empty for a finding of others


class Row(Struct, frozen=True, kw_only=True):
    """One line of the review: a file's head, a line of it (or a pair of lines), or a note."""

    file: int
    head: bool = False
    line: DiffLine | None = None
    beside: DiffLine | None = None  # what stands at the right, where the two files are side by side
    note: Note | None = None


def parsed(text: str) -> tuple[DiffFile, ...]:
    return tuple(_file(part) for part in _parts(text))


def in_order(files: Sequence[DiffFile], protected: Iterable[str]) -> tuple[DiffFile, ...]:
    """What is protected first, then tests, then the rest; each as git has them."""
    first = frozenset(protected)

    def place(file: DiffFile) -> int:
        return 0 if file.name in first or file.before in first else 1 if is_test(file.name) else 2

    return tuple(sorted(files, key=place))


def is_test(name: str) -> bool:
    return _TEST.search(name) is not None


def _parts(text: str) -> Iterator[list[str]]:
    part: list[str] = []
    for line in text.split("\n"):
        if line.startswith("diff --git "):
            if part:
                yield part
            part = [line]
        elif part:
            part.append(line)
    if part:
        yield part


def _file(part: list[str]) -> DiffFile:
    name, before, binary, begin = _named(part[0]), "", False, len(part)
    for at, line in enumerate(part):
        if line.startswith("@@"):
            begin = at
            break
        if line.startswith("+++ ") and line != "+++ /dev/null":
            name = _name(line[4:])
        elif line.startswith(("--- ", "rename from ")) and line != "--- /dev/null":
            before = _name(line.removeprefix("--- ").removeprefix("rename from "))
        elif line.startswith(("Binary files ", "GIT binary patch")):
            binary = True
    size = sum(map(len, part))
    lines = () if binary else tuple(_lines(part[begin:]))
    other = before if before != name else ""
    return DiffFile(name=name, before=other, lines=lines, binary=binary, size=size)


def _named(line: str) -> str:
    """From the first line of a file's diff, where no other names it."""
    quoted = line.rpartition(' "b/')
    return _name(f'"b/{quoted[2]}' if quoted[1] else line.rpartition(" b/")[2])


def _name(said: str) -> str:
    said = said.rstrip("\t")
    if said.startswith('"'):
        said = _unquoted(said[1:].removesuffix('"'))
    return said[2:] if said[:2] in {"a/", "b/"} else said


def _unquoted(text: str) -> str:
    """As git quotes a name: C's escapes, bytes in octal."""

    def one(found: re.Match[bytes]) -> bytes:
        code = found[1].decode()
        return bytes([int(code, 8)]) if code.isdigit() else _ESCAPED.get(code, code).encode()

    raw = re.sub(rb"\\([0-3][0-7]{2}|.)", one, text.encode(errors="surrogateescape"))
    return raw.decode(errors="replace")


def _lines(part: Iterable[str]) -> Iterator[DiffLine]:
    old = new = 0
    for line in part:
        begins = _HUNK.match(line)
        if begins:
            old, new = int(begins[1]), int(begins[2])
            yield DiffLine("@", old, new, begins[3].strip())
        elif line[:1] == "+":
            yield DiffLine("+", 0, new, line[1:])
            new += 1
        elif line[:1] == "-":
            yield DiffLine("-", old, 0, line[1:])
            old += 1
        elif line[:1] == " ":
            yield DiffLine(" ", old, new, line[1:])
            old, new = old + 1, new + 1


# Comments: where they stand, also when the change has moved below them.


def placed(files: Sequence[DiffFile], notes: Iterable[Note]) -> tuple[list[Note], list[Note]]:
    """The notes at a line that is shown, moved by their quote; and those whose line is gone."""
    there: list[Note] = []
    gone: list[Note] = []
    by_name = {file.name: file for file in files} | {it.before: it for it in files if it.before}
    for note in notes:
        file = by_name.get(note.file)
        line = _place(file, note) if file else None
        if line is None:
            gone.append(note)
        else:
            there.append(_at(note, line))
    return there, gone


def _at(note: Note, line: int) -> Note:
    from msgspec.structs import replace

    return note if note.line == line else replace(note, line=line)


def _place(file: DiffFile, note: Note) -> int | None:
    same = [it for it in file.lines if it.kind != "@" and _number(it, note.side)]
    exact = [it for it in same if _number(it, note.side) == note.line]
    if exact and (not note.quote or exact[0].text.strip() == note.quote.strip()):
        return note.line
    alike = [_number(it, note.side) for it in same if it.text.strip() == note.quote.strip()]
    if not note.quote.strip() or not alike:
        return None
    return min(alike, key=lambda number: abs(number - note.line))


def _number(line: DiffLine, side: Side) -> int:
    return line.old if side is Side.OLD else line.new


# The rows of the review.


def rows(
    files: Sequence[DiffFile], notes: Sequence[Note], opened: Iterable[int], *, split: bool
) -> list[Row]:
    """`opened` are the folded files, by their place, that somebody wants to see."""
    shown, found = frozenset(opened), list[Row]()
    at = _by_line(notes)
    for n, file in enumerate(files):
        found.append(Row(file=n, head=True))
        if file.folded and n not in shown:
            continue
        lines = _pairs(file.lines) if split else ((it, None) for it in file.lines)
        for left, right in lines:
            found.append(Row(file=n, line=left, beside=right))
            told = [*_notes(at, file, left), *_notes(at, file, right)]
            found += [Row(file=n, note=it) for it in dict.fromkeys(told)]
    return found


At = Mapping[tuple[str, Side, int], list[Note]]


def _by_line(notes: Iterable[Note]) -> dict[tuple[str, Side, int], list[Note]]:
    found: dict[tuple[str, Side, int], list[Note]] = {}
    for note in notes:
        found.setdefault((note.file, note.side, note.line), []).append(note)
    return found


def _notes(at: At, file: DiffFile, line: DiffLine | None) -> list[Note]:
    if line is None or line.kind == "@":
        return []
    sides = [Side.OLD] if line.kind == "-" else [Side.NEW]
    sides += [Side.OLD] if line.kind == " " and line.old != line.new else []
    found = (at.get((file.name, side, _number(line, side)), []) for side in sides)
    return [note for them in found for note in them]


def _pairs(lines: Iterable[DiffLine]) -> Iterator[tuple[DiffLine | None, DiffLine | None]]:
    """What goes at the left, what comes at the right; what stays is at both."""
    gone: list[DiffLine] = []
    come: list[DiffLine] = []
    for line in lines:
        if line.kind == "-":
            gone.append(line)
        elif line.kind == "+":
            come.append(line)
        else:
            yield from _matched(gone, come)
            gone, come = [], []
            yield line, (line if line.kind == " " else None)
    yield from _matched(gone, come)


def _matched(
    gone: list[DiffLine], come: list[DiffLine]
) -> Iterator[tuple[DiffLine | None, DiffLine | None]]:
    for n in range(max(len(gone), len(come))):
        yield gone[n] if n < len(gone) else None, come[n] if n < len(come) else None
