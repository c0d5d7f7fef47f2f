"""Tokens of languages with braces: enough to know strings and comments from code."""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import islice

from msgspec import Struct

TOKENS = 150_000  # of one file
DEPTH = 20  # of groups and sub-tests that are told apart


class Mark(StrEnum):
    NAME = "name"
    TEXT = "text"
    PATTERN = "pattern"  # a regular expression
    NUMBER = "number"
    SIGN = "sign"


class Token(Struct, frozen=True):
    mark: Mark
    text: str
    line: int


_COMMON = r"""
    (?P<space>\s+|//[^\n]*|/\*.*?(?:\*/|\Z))
  | (?P<text>"(?:[^"\\\n]|\\.)*(?:"|(?=\n)|\Z)|'(?:[^'\\\n]|\\.)*(?:'|(?=\n)|\Z){raw})
  | (?P<name>[^\W\d][\w$]*|[$#@][\w$]+)
  | (?P<number>\d[\w.]*)
  | (?P<sign>=>|.)
"""
_FLAGS = re.VERBOSE | re.DOTALL
_GO = re.compile(_COMMON.replace("{raw}", r"|`[^`]*(?:`|\Z)"), _FLAGS)
_SCRIPT = re.compile(_COMMON.replace("{raw}", ""), _FLAGS)
_REGEX = re.compile(r"/(?![*/])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.){0,200}\]){1,1000}/\w*")
_IN_TEMPLATE = re.compile(r"\\.|`|\$\{|[{}]", re.DOTALL)
_BEFORE_VALUE = frozenset("(,=:[!&|?{};+-*%<>~^") | {"=>", "return", "typeof", "case", "of", "in"}
_ENDS = frozenset({";", "{", "}"})  # of a statement
_PAIRS = {"(": ")", "[": "]", "{": "}"}


def go_tokens(text: str) -> list[Token]:
    """Every character is part of a match: what is nothing else is a sign."""
    found: list[Token] = []
    line = 1
    for it in islice(_GO.finditer(text), TOKENS):
        piece = it[0]
        if it.lastgroup is not None and it.lastgroup != "space":
            found.append(Token(Mark(it.lastgroup), piece, line))
        line += piece.count("\n")
    return found


def script_tokens(text: str) -> list[Token]:
    return list(_tokens(text))


def closing(tokens: Sequence[Token]) -> dict[int, int]:
    """For each opening bracket the place of its end; those that never close are not in it."""
    ends: dict[int, int] = {}
    waiting: list[tuple[int, str]] = []
    for at, token in enumerate(tokens):
        if token.mark is not Mark.SIGN:
            continue
        if token.text in _PAIRS:
            waiting.append((at, _PAIRS[token.text]))
        elif waiting and waiting[-1][1] == token.text:
            ends[waiting.pop()[0]] = at
    return ends


def joined(tokens: Sequence[Token]) -> str:
    """One statement a line, whatever the lines were."""
    return body_of([piece(it) for it in tokens])


def piece(token: Token) -> str:
    """A token as one statement a line wants it: with what stands behind it."""
    return token.text + ("\n" if token.text in _ENDS else " ")


def body_of(pieces: Sequence[str]) -> str:
    return "".join(pieces).replace(" \n", "\n").strip()


def literal(text: str) -> str:
    """What a quoted text says, as far as a name needs it."""
    inside = text[1:-1] if len(text) > 1 and text[-1] == text[0] else text[1:]
    return inside if text[0] == "`" else re.sub(r"\\(.)", r"\1", inside)


def _tokens(text: str) -> Iterator[Token]:
    at, line, last = 0, 1, ""
    for _ in range(TOKENS):
        if at >= len(text):
            return
        mark, end = _next(text, at, last)
        piece = text[at:end]
        if mark:
            yield Token(mark, piece, line)
            last = piece
        line += piece.count("\n")
        at = end


def _next(text: str, at: int, last: str) -> tuple[Mark | None, int]:
    """`last` is the token before: it says whether a slash begins a pattern."""
    if text[at] == "`":
        return Mark.TEXT, _template_end(text, at)
    if text[at] == "/" and (not last or last in _BEFORE_VALUE):
        regex = _REGEX.match(text, at)
        if regex:
            return Mark.PATTERN, regex.end()
    found = _SCRIPT.match(text, at)
    if found is None or found.lastgroup is None:
        return None, at + 1
    return (None if found.lastgroup == "space" else Mark(found.lastgroup)), found.end()


def _template_end(text: str, at: int) -> int:
    """Behind a template's last backtick; templates may stand in its `${…}` again."""
    inside = ["`"]
    position = at + 1
    while inside:
        found = _IN_TEMPLATE.search(text, position)
        if found is None:
            return len(text)
        _step(inside, found[0])
        position = found.end()
    return position


def _step(inside: list[str], sign: str) -> None:
    in_text = inside[-1] == "`"
    if sign == "`":
        if in_text:
            inside.pop()
        else:
            inside.append("`")
    elif (sign == "${" and in_text) or (sign == "{" and not in_text):
        inside.append("{")
    elif sign == "}" and not in_text:
        inside.pop()
