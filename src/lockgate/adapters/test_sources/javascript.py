"""Tests of jest, vitest and node's own runner: calls of describe, it and test."""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from lockgate.adapters.test_sources.lexing import (
    DEPTH,
    Mark,
    Token,
    closing,
    joined,
    literal,
    script_tokens,
)
from lockgate.core.differential.strength import ACTS
from lockgate.core.differential.table import SourceTest

GROUPS = frozenset({"describe", "xdescribe", "fdescribe", "suite", "context"})
CASES = frozenset({"it", "test", "xit", "xtest", "fit", "specify"})
_DYNAMIC = re.compile(r"\$\{|%[sdifjop#$%]|\$\w")
_ASSERTING = re.compile(r"(?i)\b(?:expect|assert\w*|should)\b")
_CHECKING = re.compile(r"(?i)\A(?:expect|assert\w*|should|throws|rejects|equal|deepEqual|ok)\Z")
_DECLARES = frozenset({"import", "const", "let", "var", "function", "class", "export", "async"})
_GO_ON = frozenset({".", "+", "-", "*", "?", ":", "&", "|", "=", ",", ")", "]"})
NAME = 60  # characters by which a statement is known
_CONSTANTS = frozenset({"true", "false", "null", "undefined"})


class _Call(Struct, frozen=True):
    word: str
    modifiers: tuple[str, ...]
    title: str
    flexible: bool
    begin: int
    open: int  # the place of its bracket
    line: int


class _Walk(Struct):
    path: str
    tokens: list[Token]
    ends: dict[int, int]
    groups: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])


def tests_in(path: str, text: str) -> list[SourceTest]:
    tokens = script_tokens(text)
    return list(_tests(_Walk(path, tokens, closing(tokens))))


def beside_tests(text: str) -> dict[str, str]:
    """Statements at the top of a file that are no tests; what acts on every test has a mark."""
    found: dict[str, str] = {}
    for statement in _statements(script_tokens(text)):
        said = joined(statement)
        if statement[0].text == "import":
            source = "".join(it.text for it in statement if it.mark is Mark.TEXT)
            names = (it.text for it in statement[1:] if it.mark is Mark.NAME)
            found |= {f"import {it}": f"{it} {source}" for it in names}
        elif statement[0].text in _DECLARES:
            found[said[:NAME]] = said
        elif statement[0].text not in GROUPS | CASES:
            found[f"{ACTS}{said[:NAME]}"] = said
    return found


def _statements(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """They end with a semicolon, or where a line ends and no bracket is open."""
    depth, own = 0, list[Token]()
    for token, after in zip(tokens, (*tokens[1:], None), strict=True):
        own.append(token)
        depth += (token.text in "([{") - (token.text in ")]}") if token.mark is Mark.SIGN else 0
        ends = token.text == ";" or after is None or after.line > token.line
        if depth <= 0 and ends and not (after and after.text in _GO_ON):
            yield own
            depth, own = 0, []


def _tests(walk: _Walk) -> Iterator[SourceTest]:
    at = 0
    while at < len(walk.tokens):
        while walk.groups and walk.groups[-1][1] <= at:
            walk.groups.pop()
        call = _call(walk, at)
        if call is None:
            at += 1
        elif call.word in GROUPS:
            if len(walk.groups) < DEPTH:
                walk.groups.append((call.title, walk.ends[call.open]))
            at = call.open + 1
        else:
            yield _source(walk, call)
            at = walk.ends[call.open] + 1


def _call(walk: _Walk, at: int) -> _Call | None:
    """A call of ours, with a literal title and an end, that begins here."""
    token = walk.tokens[at]
    before = walk.tokens[at - 1].text if at else ""
    if token.mark is not Mark.NAME or token.text not in GROUPS | CASES or before == ".":
        return None
    modifiers, opened = _modifiers(walk, at + 1)
    if opened not in walk.ends:
        return None
    title = walk.tokens[opened + 1]
    if title.mark is not Mark.TEXT:
        return None
    name = literal(title.text)
    dynamic = _DYNAMIC.search(name) if "each" in modifiers or title.text[0] == "`" else None
    known = name[: dynamic.start()] if dynamic else name
    return _Call(token.text, modifiers, known, dynamic is not None, at, opened, token.line)


def _modifiers(walk: _Walk, at: int) -> tuple[tuple[str, ...], int]:
    """Words such as `.skip` and `.each(…)`, then where the call's own bracket must be."""
    found: list[str] = []
    while _text(walk, at) == "." and at + 1 < len(walk.tokens):
        found.append(walk.tokens[at + 1].text)
        at += 2
        table = found[-1] in {"each", "for"}
        if table and _text(walk, at) == "(":
            at = walk.ends.get(at, len(walk.tokens)) + 1
        elif table and at < len(walk.tokens) and walk.tokens[at].mark is Mark.TEXT:
            at += 1
    return tuple(found), at if _text(walk, at) == "(" else -1


def _source(walk: _Walk, call: _Call) -> SourceTest:
    inside = walk.tokens[call.open + 2 : walk.ends[call.open]]
    how = joined(walk.tokens[call.begin : call.open])
    body = joined(inside)
    return SourceTest(
        file=walk.path,
        line=call.line,
        names=(*(title for title, _ in walk.groups), call.title),
        body=f"{how}\n{body}",
        checks=_checks(inside),
        asserts=tuple(it for it in body.splitlines() if _ASSERTING.search(it)),
        flexible=call.flexible,
    )


def _checks(tokens: Sequence[Token]) -> int:
    return sum(_is_check(tokens, at) for at in range(len(tokens)))


def _is_check(tokens: Sequence[Token], at: int) -> bool:
    """A checking word that is called, with more than a constant."""
    token = tokens[at]
    bracket = tokens[at + 1].text if at + 1 < len(tokens) else ""
    if token.mark is not Mark.NAME or not _CHECKING.match(token.text) or bracket != "(":
        return False
    ends = tokens[at + 3].text in {")", ","} if at + 3 < len(tokens) else False
    return not (ends and _is_constant(tokens[at + 2]))


def _is_constant(token: Token) -> bool:
    return token.mark in {Mark.TEXT, Mark.NUMBER} or token.text in _CONSTANTS


def _text(walk: _Walk, at: int) -> str:
    return walk.tokens[at].text if at < len(walk.tokens) else ""
