"""Tests of go test: functions by their names, and sub-tests with a literal one."""

import re
from collections.abc import Iterator, Sequence

from lockgate.adapters.test_sources.lexing import (
    DEPTH,
    Mark,
    Token,
    closing,
    go_tokens,
    joined,
    literal,
)
from lockgate.core.differential.table import SourceTest

_TEST = re.compile(r"\A(?:Test|Fuzz|Example)(?![a-z])\w*\Z")
_CHECKING = re.compile(r"\A(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\Z")
_LIBRARIES = frozenset({"assert", "require", "check", "qt", "is", "must"})
SETUP = "TestMain"


def tests_in(path: str, text: str) -> list[SourceTest]:
    tokens = go_tokens(text)
    ends = closing(tokens)
    found: list[SourceTest] = []
    behind = 0
    for at in _functions(tokens):
        opened = ends.get(at + 1, len(tokens)) + 1
        if at > behind and opened in ends and tokens[opened].text == "{":
            behind = ends[opened]
            found.extend(_function(path, tokens, ends, (at, opened)))
    return found


def has_setup(text: str) -> bool:
    """The file has its own way to run all tests of its package."""
    tokens = go_tokens(text)
    return any(
        token.text == SETUP and tokens[at - 1].text == "func"
        for at, token in enumerate(tokens)
        if at
    )


def _functions(tokens: Sequence[Token]) -> Iterator[int]:
    """The places of the names of test functions."""
    for at in range(1, len(tokens) - 1):
        name = tokens[at]
        plain = tokens[at - 1].text == "func" and tokens[at + 1].text == "("
        if plain and name.mark is Mark.NAME and name.text != SETUP and _TEST.match(name.text):
            yield at


def _function(
    path: str, tokens: Sequence[Token], ends: dict[int, int], where: tuple[int, int]
) -> Iterator[SourceTest]:
    """The function with its name and its body at these places, then its sub-tests."""
    at, opened = where
    end = ends[opened]
    yield _source(path, (tokens[at].text,), tokens[at], tokens[at + 1 : end])
    groups: list[tuple[str, int]] = []
    for place in range(opened, end):
        while groups and groups[-1][1] <= place:
            groups.pop()
        title = _run(tokens, place) if len(groups) < DEPTH else None
        if title is not None and place + 1 in ends:
            close = ends[place + 1]
            groups.append((title, close))
            names = (tokens[at].text, *(name for name, _ in groups))
            yield _source(path, names, tokens[place], tokens[place + 3 : close])


def _run(tokens: Sequence[Token], at: int) -> str | None:
    """The name of the sub-test that `.Run("…"` begins here."""
    *call, title = tokens[at - 1 : at + 3]
    if [it.text for it in call] != [".", "Run", "("] or title.mark is not Mark.TEXT:
        return None
    return re.sub(r"\s", "_", literal(title.text))


def _source(path: str, names: tuple[str, ...], first: Token, tokens: Sequence[Token]) -> SourceTest:
    return SourceTest(
        file=path,
        line=first.line,
        names=names,
        body=joined(tokens),
        checks=sum(_is_check(tokens, at) for at in range(1, len(tokens))),
    )


def _is_check(tokens: Sequence[Token], at: int) -> bool:
    if tokens[at].text != "." or at + 1 >= len(tokens):
        return False
    return tokens[at - 1].text in _LIBRARIES or bool(_CHECKING.match(tokens[at + 1].text))
