"""The simple commands of a shell text, in order, as far as plain reading finds them.

It is read with tolerance: what is not known (a loop, a function, a here-document) is passed over
word by word, so that commands inside of it are found too. Nothing is run and nothing expanded.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

LONGEST = 200_000  # characters that are read
MOST = 20_000  # tokens

_TOKEN = re.compile(
    r"""(?:[ \t\r]|\\\r?\n)*(?:
      (?P<note>  (?<![^\s;&|(])\#[^\n]* )
    | (?P<mark>  && | \|\| | \|& | ;;&? | ;& | [|;&\n()] )
    | (?P<into>  &?[0-9]*(?:<<<|<<-?|<&|<>|>&|>>|>\||<|>) )
    | (?P<word>  (?: [^\s|;&()<>'"\\`$] | \\[\s\S] | '[^']*' | "(?:[^"\\]|\\[\s\S])*"
                   | \$\((?:[^()]|\([^()]*\))*\) | \$\{[^{}]*\} | `[^`]*` | \$ | ['"`\\] )+ )
    )""",
    re.VERBOSE,
)
_INNER = re.compile(r"\$\(((?:[^()]|\([^()]*\))*)\)|`([^`]*)`")
_PIECE = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|\\([\s\S])|([^'"\\]+)|(['"\\])""")
_ESCAPED = re.compile(r'\\(["\\$`\n])')


class Command(Struct, frozen=True):
    """Its words without quotes, what is read into it, and how deep in brackets it is."""

    words: tuple[str, ...]
    given: tuple[str, ...] = ()
    depth: int = 0


def commands_in(text: str) -> Iterator[Command]:
    """Those within `$(…)` come before the command that they are a word of."""
    words: list[str] = []
    given: list[str] = []
    depth, into = 0, ""
    for kind, token in _tokens(text):
        if kind == "into":
            into = token
            continue
        if kind == "word":
            for inner in _INNER.finditer(token):
                yield from _deeper(inner[1] or inner[2] or "", depth)
            if into:
                given += [unquoted(token)] if into.endswith("<") else []
            else:
                words.append(unquoted(token))
            into = ""
            continue
        if words or given:
            yield Command(tuple(words), tuple(given), depth)
        words, given, into = [], [], ""
        depth += (token == "(") - (token == ")")
    if words or given:
        yield Command(tuple(words), tuple(given), depth)


def unquoted(word: str) -> str:
    return "".join(_unquoted(word))


def quoted_in(text: str, ending: str) -> Iterator[str]:
    """The strings of a program's text that end so: `'…'` and `"…"` of path characters alone."""
    for found in re.finditer(rf"""["']([\w./+-]{{1,300}}(?:{ending}))["']""", text[:LONGEST]):
        yield found[1]


def without_options(words: Sequence[str], valued: frozenset[str]) -> Iterator[str]:
    """The words that are neither options nor the values of those that take one."""
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word.startswith("-") and len(word) > 1:
            skip = word in valued
        else:
            yield word


def _deeper(text: str, depth: int) -> Iterator[Command]:
    for it in commands_in(text):
        yield Command(it.words, it.given, depth + it.depth + 1)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    place, end = 0, min(len(text), LONGEST)
    for _ in range(MOST):
        match = _TOKEN.match(text, place, end)
        if match is None or match.end() == place:
            return
        place = match.end()
        if match.lastgroup and match.lastgroup != "note":
            yield match.lastgroup, match[match.lastgroup]


def _unquoted(word: str) -> Iterator[str]:
    for single, double, escaped, plain, _ in _PIECE.findall(word):
        yield single or _ESCAPED.sub(r"\1", double) or escaped.strip("\n") or plain
