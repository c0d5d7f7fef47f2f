"""Small faults for JavaScript, each one edit of a token; nothing is parsed beyond tokens.

An edit that is no JavaScript any more is left out by the program that tries it.
"""

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from lockgate.core.differential.faults import FILE, TEXT, Fault, Span

_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?(?:\*/|\Z)|`(?:[^`\\]|\\.)*(?:`|\Z))
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<number>\d[\w.]*)
    |(?P<name>[A-Za-z_$][\w$]*)
    |(?P<sign>[=!]==?|<=|>=|=>|&&|\|\||\?\?|\+\+|--|\*\*|[-+*/%]=|<<|>>>?|.)""",
    re.VERBOSE | re.DOTALL,
)
_PATTERN = re.compile(r"/(?![*/])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.){0,200}\]){1,500}/\w*")
_FUNCTION = re.compile(
    r"(?:function\s*\*?\s*|(?:const|let|var|static|async|get|set|exports\.)\s*)?([\w$]+)\s*"
    r"(?:=\s*(?:async\s*)?(?:function\b|\([^()]*\)\s*=>|\w+\s*=>)|\([^()]*\)\s*\{)"
)
_LOADS = re.compile(r"^\s*(?:import|export\s*[*{])|\brequire\s*\(|\bfrom\s*[\"']")
_NO_FUNCTION = frozenset({"if", "for", "while", "switch", "catch", "function", "return"})
_BEFORE_VALUE = frozenset("(,=:[!&|?{};+-*%<>~^") | {"=>", "return", "&&", "||", "==", "===", "!=="}
_SIGNS = {
    "===": ("!==",), "!==": ("===",), "==": ("!=",), "!=": ("==",), "&&": ("||",), "||": ("&&",),
    "<=": ("<", ">"), ">=": (">", "<"), "+": ("-", "*"), "-": ("+", "*"), "*": ("+", "/"),
    "/": ("*", "-"), "%": ("*", "+"), "+=": ("-=",), "-=": ("+=",), "<": ("<=", ">="),
    ">": (">=", "<="), "++": ("--",), "--": ("++",), "??": ("&&",),
}  # fmt: skip
_NAMES = {"true": ("false",), "false": ("true",)}
_UNARY = frozenset("+-")
_BEFORE_TEXT = _BEFORE_VALUE - {"{"}
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_KEY = re.compile(r"\s*:")
_RETURN = re.compile(r"return\s+([^;{}\n]+)(?=;)")
_RETURNED = ("undefined", "null", "0", "1", "''", "[]", "true")


class _Token(Struct, frozen=True):
    kind: str
    text: str
    at: int
    before: str  # the token before it


def equal_lines(files: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Each line of base's code by its file."""
    return frozenset((path, it.strip()) for path, text in files.items() for it in text.splitlines())


def script_faults_in(
    path: str, text: str, equal: frozenset[tuple[str, str]], *, edited: bool = False
) -> Iterator[Fault]:
    """In those lines of one file that base has too, or in the others."""
    if len(text) > FILE:
        return
    lines = text.split("\n")
    starts = _starts(text)
    functions = _functions(lines)
    for token in _tokens(text):
        number = _line_at(starts, token.at)
        line = lines[number]
        if ((path, line.strip()) in equal) is edited or _LOADS.search(line):
            continue
        column = token.at - starts[number]
        name, begin = functions[number]
        for old, new in _edits(token, line[column:], typed=path.endswith(("ts", "tsx"))):
            yield Fault(
                path=path,
                function=name,
                starts=begin,
                span=_span(number, line, column, len(old)),
                old=old[:TEXT],
                new=new,
            )


def _edits(token: _Token, rest: str, *, typed: bool) -> Iterator[tuple[str, str]]:
    """What stands there and what it becomes; `rest` is the line from the token on."""
    match token.kind:
        case "sign":
            yield from ((token.text, it) for it in _signs(token, typed=typed))
        case "number" if _NUMBER.fullmatch(token.text):
            yield token.text, f"({token.text} + 1)"
        case "text" if token.before in _BEFORE_TEXT and not _KEY.match(rest[len(token.text) :]):
            yield token.text, f"{token.text[:-1]}x{token.text[0]}"
        case "name" if token.text == "return":
            whole = _RETURN.match(rest)
            yield from ((whole[0], f"return {it}") for it in _RETURNED if whole and it != whole[1])
        case _:
            yield from ((token.text, it) for it in _NAMES.get(token.text, ()))


def _signs(token: _Token, *, typed: bool) -> tuple[str, ...]:
    """None for what is no operator: a sign before a number, brackets of a type."""
    before_number = token.text in _UNARY and _may_begin(token.before)
    of_a_type = typed and token.text in {"<", ">"}
    return () if before_number or of_a_type else _SIGNS.get(token.text, ())


def _tokens(text: str) -> Iterator[_Token]:
    at, last = 0, ""
    while at < len(text):
        pattern = _PATTERN.match(text, at) if text[at] == "/" and _may_begin(last) else None
        end, kind = _next(text, at, pattern)
        if kind not in {"skip", "pattern"}:
            yield _Token(kind, text[at:end], at, last)
        last = last if kind == "skip" else text[at:end]
        at = end


def _next(text: str, at: int, pattern: re.Match[str] | None) -> tuple[int, str]:
    """Where the token ends and what it is; what is nothing else is a sign."""
    if pattern:
        return pattern.end(), "pattern"
    found = _TOKEN.match(text, at)
    return (found.end(), found.lastgroup or "sign") if found else (at + 1, "sign")


def _may_begin(last: str) -> bool:
    """Whether a slash behind this begins a pattern."""
    return not last or last in _BEFORE_VALUE


def _starts(text: str) -> list[int]:
    return [0, *(it.end() for it in re.finditer("\n", text))]


def _line_at(starts: list[int], at: int) -> int:
    low, high = 0, len(starts)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if starts[middle] <= at else (low, middle)
    return low


def _functions(lines: list[str]) -> list[tuple[str, int]]:
    """For each line the function that began last before it, and where."""
    found: list[tuple[str, int]] = []
    last = ("the file", 1)
    for number, line in enumerate(lines, 1):
        names = [it[1] for it in _FUNCTION.finditer(line) if it[1] not in _NO_FUNCTION]
        last = (names[0], number) if names else last
        found.append(last)
    return found


def _span(number: int, line: str, column: int, length: int) -> Span:
    """Columns in bytes."""
    begin = len(line[:column].encode())
    return Span(number + 1, begin, number + 1, begin + len(line[column : column + length].encode()))
