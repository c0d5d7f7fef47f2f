"""`when`: a condition in CEL over the task and the change, checked before the library sees it.

The subset is small on purpose. Comparisons, `&& || ! ?:`, `in`, arithmetic, `size`, the string
predicates and `all`, `exists`, `exists_one` over `change.paths` cost linear time; `map`, `filter`,
`matches` and a comprehension inside another do not, and are refused.
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Sized
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

MAX_CHARACTERS = 1_000
MAX_TOKENS = 200  # the library recurses for each operator, and a full stack ends the process
MAX_NESTING = 20
MAX_COMPREHENSIONS = 8
MAX_PATHS = 5_000

# Every name there is, with the kind of its values and one that is ordinary.
NAMES: Mapping[str, Mapping[str, tuple[str, object]]] = {
    "task": {
        "id": ("string", "fix-login-3f9a"),
        "summary": ("string", "Fix the login redirect"),
        "branch": ("string", "fix-login"),
        "priority": ("number", 3),
        "agent": ("string", "claude"),
        "iteration": ("number", 1),
    },
    "change": {"paths": ("list", ["src/login.py"]), "files_changed": ("number", 1)},
}
COMPREHENSIONS = frozenset({"all", "exists", "exists_one"})
METHODS = COMPREHENSIONS | {"startsWith", "endsWith", "contains", "size"}
FUNCTIONS = frozenset({"size", "string", "int"})
WORDS = frozenset({"true", "false", "in"})


class Unfit(Struct, frozen=True):
    """The expression cannot be used; `says` is for the owner of the config."""

    says: str


class Program(Protocol):
    """A compiled expression of the library."""

    def execute(self, context: dict[str, Any], /) -> object: ...


class When(Struct, frozen=True):
    expression: str
    program: Program

    def holds(self, task: Mapping[str, object], change: Mapping[str, object]) -> bool:
        """Whether the gate runs. It fails closed: a condition that has no answer holds.

        No answer is an error while it is evaluated, an answer that is neither true nor false, or
        a change of more than MAX_PATHS paths, which an agent could make only to cost time.
        """
        paths = change.get("paths")
        if isinstance(paths, Sized) and len(paths) > MAX_PATHS:
            return True
        return _answer(self.program, task, change) is not False


class Token(NamedTuple):
    kind: str
    text: str


_TOKEN = re.compile(
    r"""\s*+(?:
      (?P<string> r"[^"\n]*+" | r'[^'\n]*+' | "[^"\\\n]*+(?:\\.[^"\\\n]*+)*"
                | '[^'\\\n]*+(?:\\.[^'\\\n]*+)*' )
    | (?P<number> \d++(?:\.\d++)?(?:[eE][+-]?\d++)?u?+ )
    | (?P<name>   [A-Za-z_]\w*+ )
    | (?P<mark>   && | \|\| | [=!<>]= | /(?!/) | [-+*%<>!?:.,()\[\]] )
    )""",
    re.VERBOSE | re.ASCII,
)
_END = Token("end", "")


def compile_when(expression: str) -> When | Unfit:
    if len(expression) > MAX_CHARACTERS:
        return Unfit(f"it has {len(expression):,} characters, {MAX_CHARACTERS:,} are allowed")
    tokens = _tokens(expression)
    if isinstance(tokens, Unfit):
        return tokens
    for problem in (*_shape(tokens), *_names(tokens), *_comparisons(tokens)):
        return Unfit(problem)
    return _tried(expression)


class CelConditions:
    """The Conditions port. What the configuration let through compiles; what does not, holds."""

    def hold(self, when: str, task: Mapping[str, object], change: Mapping[str, object]) -> bool:
        compiled = compile_when(when)
        return isinstance(compiled, Unfit) or compiled.holds(task, change)


def _tried(expression: str) -> When | Unfit:
    """Evaluated once on an ordinary task: what fails or answers no boolean there is refused."""
    from cel import compile as cel_compile  # noqa: PLC0415 - it imports a whole command line

    ordinary = {
        root: {name: value for name, (_, value) in fields.items()} for root, fields in NAMES.items()
    }
    try:
        program = cel_compile(expression)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a panic in the library's Rust is no Exception
        return Unfit(_first_line(error))
    answer = _answer(program, ordinary["task"], ordinary["change"])
    if isinstance(answer, BaseException):
        return Unfit(f"on an ordinary task it fails: {_first_line(answer)}")
    if not isinstance(answer, bool):
        return Unfit(f"it answers {type(answer).__name__}, and a condition is true or false")
    return When(expression, program)


def _answer(program: Program, task: Mapping[str, object], change: Mapping[str, object]) -> object:
    try:
        return program.execute({"task": dict(task), "change": dict(change)})
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a panic in the library's Rust is no Exception
        return error


def _tokens(expression: str) -> list[Token] | Unfit:
    found: list[Token] = []
    place, end = 0, len(expression.rstrip())
    while place < end:
        match = _TOKEN.match(expression, place, end)
        if match is None:
            return Unfit(f"it is not understood from character {place + 1} on")
        kind = str(match.lastgroup)
        found.append(Token(kind, match[kind]))
        place = match.end()
    return found or Unfit("it is empty")


def _shape(tokens: Sequence[Token]) -> Iterator[str]:
    if len(tokens) > MAX_TOKENS:
        yield f"it has more than {MAX_TOKENS} words and marks"
    depth = 0
    for token, following in pairwise((*tokens, _END)):
        depth += (token.text in {"(", "["}) - (token.text in {")", "]"})
        if depth > MAX_NESTING:
            yield f"brackets nest deeper than {MAX_NESTING} levels"
        if token.kind == following.kind == "string":
            yield "two strings stand side by side"
    if (
        sum(token.kind == "name" and token.text in COMPREHENSIONS for token in tokens)
        > MAX_COMPREHENSIONS
    ):
        yield f"it goes over lists more than {MAX_COMPREHENSIONS} times"


def _names(tokens: Sequence[Token]) -> Iterator[str]:
    """Every name is one of ours, or the variable of the comprehension it stands in."""
    depth = 0
    inside: tuple[int, str] | None = None  # the depth of the open comprehension, its variable
    padded = (_END, _END, *tokens, _END, _END)
    for n, token in enumerate(tokens):
        owner, before, after, further = padded[n], padded[n + 1], padded[n + 3], padded[n + 4]
        depth += (token.text in {"(", "["}) - (token.text in {")", "]"})
        if inside and depth < inside[0]:
            inside = None
        if token.kind != "name":
            continue
        called = after.text == "("
        if before.text == ".":
            yield from _member(token, owner, called=called)
            if called and token.text in COMPREHENSIONS:
                if inside:
                    yield f"{token.text}() stands inside another comprehension"
                inside = (depth + 1, further.text)
        else:
            yield from _root(token, after, called=called, inside=inside)


def _member(token: Token, owner: Token, *, called: bool) -> Iterator[str]:
    if called:
        if token.text not in METHODS:
            yield f"there is no {token.text}(); there are {', '.join(sorted(METHODS))}"
    elif token.text not in NAMES.get(owner.text, {}):
        known = [f"{root}.{name}" for root, fields in NAMES.items() for name in fields]
        yield f"there is no {owner.text}.{token.text}; there are {', '.join(known)}"


def _root(
    token: Token, after: Token, *, called: bool, inside: tuple[int, str] | None
) -> Iterator[str]:
    if inside and token.text == "change":
        yield "change stands inside a comprehension, which would go over its paths once for each"
    elif called:
        if token.text not in FUNCTIONS | WORDS:
            yield f"there is no {token.text}(); there are {', '.join(sorted(FUNCTIONS))}"
    elif token.text in NAMES:
        if after.text != ".":
            yield f"{token.text} alone says nothing; name a field of it, as {token.text}.…"
    elif token.text not in WORDS and not (inside and token.text == inside[1]):
        yield f"{token.text} is unknown; a condition knows task and change"


def _comparisons(tokens: Sequence[Token]) -> Iterator[str]:
    """A number never equals a string: CEL would answer false for ever, and the gate never run."""
    padded = (*tokens, _END, _END, _END)
    for n, token in enumerate(tokens):
        if token.text not in {"==", "!="}:
            continue
        left = _kind(tokens[max(0, n - 3) : n])
        after = padded[n + 1 : n + 5]
        right = _kind(after[:3]) if after[1].text == "." else _kind(after[:1])
        goes_on = after[3 if after[1].text == "." else 1].text in {".", "["}
        if left and right and left != right and not goes_on:
            yield f"a {left} is compared with a {right}"


def _kind(side: Sequence[Token]) -> str | None:
    """Of a value, where its last tokens tell: a literal, or a field such as task.priority."""
    match side:
        case [*_, Token(kind=("string" | "number") as kind)]:
            return kind
        case [Token(text=root), Token(text="."), Token(text=name)] if root in NAMES:
            return NAMES[root].get(name, (None, None))[0]
        case _:
            return None


def _first_line(error: BaseException) -> str:
    text = str(error)
    return text.splitlines()[0][:200] if text else type(error).__name__
