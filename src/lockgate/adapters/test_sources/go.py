"""Tests of go test: functions by their names, and sub-tests with a literal one."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from msgspec import Struct

from lockgate.adapters.test_sources.lexing import (
    DEPTH,
    Mark,
    Token,
    body_of,
    closing,
    go_tokens,
    literal,
    piece,
)
from lockgate.core.differential.table import SourceTest

_TEST = re.compile(r"\A(?:Test|Fuzz|Example)(?![a-z])\w*\Z")
_CHECKING = re.compile(r"\A(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\Z")
_LIBRARIES = frozenset({"assert", "require", "check", "qt", "is", "must"})
SETUP = "TestMain"


class Code(Struct, frozen=True):
    """The tokens of a file with what is asked of any part of them, worked out once.

    Tests stand in each other, so that a token is part of many.
    """

    tokens: Sequence[Token]
    ends: dict[int, int]
    pieces: list[str]  # each token as `body_of` joins it
    checks: list[int]  # how many checks there are in front of each token


def tests_in(path: str, text: str) -> list[SourceTest]:
    tokens = go_tokens(text)
    pieces, checks = [piece(it) for it in tokens], list(accumulate(_checks(tokens), initial=0))
    code = Code(tokens, closing(tokens), pieces, checks)
    found: list[SourceTest] = []
    behind = 0
    for at in _functions(tokens):
        opened = code.ends.get(at + 1, len(tokens)) + 1
        if at > behind and opened in code.ends and tokens[opened].text == "{":
            behind = code.ends[opened]
            found.extend(_function(path, code, at, opened))
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


def _function(path: str, code: Code, at: int, opened: int) -> Iterator[SourceTest]:
    """The function with its name and its body at these places, then its sub-tests."""
    tokens, end = code.tokens, code.ends[opened]
    yield _source(path, (tokens[at].text,), code, (at, at + 1, end))
    groups: list[tuple[str, int]] = []
    for place in range(opened, end):
        if tokens[place].text != "Run":
            continue
        while groups and groups[-1][1] <= place:
            groups.pop()
        title = _run(tokens, place) if len(groups) < DEPTH else None
        if title is not None and place + 1 in code.ends:
            close = code.ends[place + 1]
            groups.append((title, close))
            names = (tokens[at].text, *(name for name, _ in groups))
            yield _source(path, names, code, (place, place + 3, close))


def _run(tokens: Sequence[Token], at: int) -> str | None:
    """The name of the sub-test that `.Run("…"` begins here."""
    *call, title = tokens[at - 1 : at + 3]
    if [it.text for it in call] != [".", "Run", "("] or title.mark is not Mark.TEXT:
        return None
    return re.sub(r"\s", "_", literal(title.text))


def _source(
    path: str, names: tuple[str, ...], code: Code, where: tuple[int, int, int]
) -> SourceTest:
    """The test that is named at the first place and whose body lies between the other two."""
    first, begin, end = where
    inside = code.checks[max(begin + 1, end - 1)] - code.checks[begin + 1]
    return SourceTest(
        file=path,
        line=code.tokens[first].line,
        names=names,
        body=body_of(code.pieces[begin:end]),
        checks=inside,
    )


def _checks(tokens: Sequence[Token]) -> Iterator[bool]:
    """Of each token whether a check begins there: a dot behind a library or before a verdict."""
    texts = ("", *(it.text for it in tokens), "")
    for before, text, after in zip(texts, texts[1:], texts[2:], strict=False):
        yield text == "." and (before in _LIBRARIES or bool(_CHECKING.match(after)))
