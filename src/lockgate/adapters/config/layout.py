"""The line of each key in a TOML text, by a linear scan that also refuses what costs too much."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field

MAX_CHARACTERS = 256 * 1024
MAX_TOKENS = 10_000
MAX_TOKEN_CHARACTERS = 20_000
MAX_KEY_PARTS = 8
MAX_NESTING = 8

Path = tuple[str | int, ...]
Complaint = tuple[Path, Callable[[], str]]  # worded only where it is shown: suggestions cost time


class TooCostly(Struct, frozen=True):
    """The text was not given to the parser."""

    line: int
    says: str


class Token(NamedTuple):
    kind: str
    text: str
    line: int


_TOKEN = re.compile(
    r"""
      (?P<space>   [ \t\r]++ | \#[^\n]*+ )
    | (?P<newline> \n )
    | (?P<string>  \"{3} [^"\\]*+ (?: (?: \\. | "(?!"") ) [^"\\]*+ )* "{3,5}
                 | '{3} [^']*+ (?: '(?!'') [^']*+ )* '{3,5}
                 | \"(?!"") [^"\\\n]*+ (?: \\. [^"\\\n]*+ )* \"
                 | '(?!'') [^'\n]*+ ' )
    | (?P<open>    [\[{] )
    | (?P<close>   [\]}] )
    | (?P<mark>    [=,.] )
    | (?P<word>    [^\s\[\]{}=,."'\#]++ )
    """,
    re.VERBOSE | re.DOTALL,
)


def lines_of(text: str) -> Mapping[Path, int] | TooCostly:
    """Key paths and the line each begins on; a text that is not TOML is followed while it is."""
    if len(text) > MAX_CHARACTERS:
        return TooCostly(1, f"it has {len(text):,} characters, and {MAX_CHARACTERS:,} are allowed")
    found = _tokens_within_limits(text)
    return found if isinstance(found, TooCostly) else _Follower().follow(found)


def nearest_line(lines: Mapping[Path, int], path: Path) -> int:
    """The line of the key, or of the nearest table around it that is there."""
    for end in range(len(path), 0, -1):
        if path[:end] in lines:
            return lines[path[:end]]
    return 1


def _tokens(text: str) -> Iterator[Token]:
    """Stops where TOML would: at a string without an end. A long rest is one token, so refused."""
    place, line = 0, 1
    while match := _TOKEN.match(text, place):
        kind, found = str(match.lastgroup), match[0]
        if kind != "space":
            yield Token(kind, found, line)
        line += found.count("\n")
        place = match.end()
    if len(text) - place > MAX_TOKEN_CHARACTERS:
        yield Token("rest", text[place:], line)


def _tokens_within_limits(text: str) -> list[Token] | TooCostly:
    """Long dotted keys cost the parser quadratic time, deep nesting its stack."""
    found: list[Token] = []
    depth = dots = 0
    for token in _tokens(text):
        found.append(token)
        depth += (token.kind == "open") - (token.kind == "close")
        if token.text == ".":
            dots += 1
        elif token.kind not in {"word", "string"}:
            dots = 0
        if len(found) > MAX_TOKENS:
            return TooCostly(token.line, f"there are more than {MAX_TOKENS:,} words and marks")
        if len(token.text) > MAX_TOKEN_CHARACTERS:
            return TooCostly(
                token.line, f"a value is longer than {MAX_TOKEN_CHARACTERS:,} characters"
            )
        if depth > MAX_NESTING:
            return TooCostly(token.line, f"lists and tables nest deeper than {MAX_NESTING} levels")
        if dots >= MAX_KEY_PARTS:
            return TooCostly(token.line, f"a dotted key has more than {MAX_KEY_PARTS} parts")
    return found


class _Frame(Struct):
    """An open list or inline table inside a value."""

    path: Path
    index: int | None
    key: list[str] = field(default_factory=list[str])

    def here(self) -> Path:
        return (*self.path, self.index) if self.index is not None else (*self.path, *self.key)


class _Follower(Struct):
    """Goes through the statements of a file: headers, and keys with their values."""

    lines: dict[Path, int] = field(default_factory=dict[Path, int])
    counts: dict[tuple[str, ...], int] = field(default_factory=dict[tuple[str, ...], int])
    table: Path = ()

    def follow(self, tokens: Sequence[Token]) -> Mapping[Path, int]:
        statement: list[Token] = []
        depth = 0
        for token in (*tokens, Token("newline", "\n", 0)):
            depth += (token.kind == "open") - (token.kind == "close")
            if token.kind == "newline" and depth <= 0:
                self._statement(statement)
                statement, depth = [], 0
            elif token.kind != "newline":
                statement.append(token)
        self._statement(statement)
        return self.lines

    def _statement(self, tokens: Sequence[Token]) -> None:
        if tokens and tokens[0].text == "[":
            parts = [_name(it) for it in tokens if it.kind in {"word", "string"}]
            self._header(tuple(parts), tokens[0].line, array=tokens[:2][-1].text == "[")
        elif tokens:
            self._pairs(tokens)

    def _header(self, parts: tuple[str, ...], line: int, *, array: bool) -> None:
        if array:
            self.counts[parts] = self.counts.get(parts, -1) + 1
        path: Path = ()
        for end, part in enumerate(parts, start=1):
            index = self.counts.get(parts[:end])
            path = (*path, part) if index is None else (*path, part, index)
        self.table = path
        self.lines.setdefault(path, line)

    def _pairs(self, tokens: Sequence[Token]) -> None:
        """A key and its value; the frames are the lists and inline tables that are open."""
        frames = [_Frame(self.table, None)]
        before_value, dotted = True, False
        for token in tokens:
            frame = frames[-1]
            if token.kind == "open":
                index = 0 if token.text == "[" else None
                self.lines.setdefault(frame.here(), token.line)
                frames.append(_Frame(frame.here(), index))
                before_value = index is None
            elif token.kind == "close":
                frames = frames[:-1] or frames
                before_value = False
            elif token.text == ",":
                frame.key.clear()
                frame.index = None if frame.index is None else frame.index + 1
                before_value = frame.index is None
            elif token.text == "=":
                before_value = False
            elif token.text == ".":
                dotted = True
            else:
                if before_value and (dotted or not frame.key):
                    frame.key.append(_name(token))
                dotted = False
                self.lines.setdefault(frame.here(), token.line)


def _name(token: Token) -> str:
    """The key that a bare or quoted token names; escapes in quoted keys are left as written."""
    return token.text[1:-1] if token.kind == "string" else token.text
