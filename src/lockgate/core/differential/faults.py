"""Small faults for Python functions, each one edit of a source text; nothing is executed.

They are planted to see which tests notice them. Which are taken first is drawn from a seed.
"""

import ast
import hashlib
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

FILE = 500_000  # characters of one file that are looked at
OFFERED = 1_500  # faults that one measurement may choose from
NEUTRAL = 6  # edits among them that change nothing
TEXT = 80  # characters of a fault that people read

_COMPARED: Mapping[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_COMPUTED: Mapping[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add, ast.Mult),
    ast.Mult: (ast.Add, ast.Sub),
    ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Mult, ast.Div),
    ast.Mod: (ast.Mult, ast.Add),
    ast.Pow: (ast.Mult, ast.Add),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.BitXor: (ast.BitAnd,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
}
_RETURNED = ("None", "0", "1", "-1", "''", "[]", "True")
_RAISING = "raise RuntimeError"
_LOOKING_AROUND = frozenset({"locals", "vars", "eval", "exec", "dir"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Span(Struct, frozen=True):
    """Lines count from one, columns in bytes from 0, as Python's own trees have them."""

    line: int
    column: int
    end_line: int
    end_column: int


class Fault(Struct, frozen=True, kw_only=True):
    """One edit. `starts` is the line where the function begins, with its decorators."""

    path: str
    function: str
    starts: int
    span: Span
    old: str
    new: str
    neutral: bool = False  # it must make no difference: a test that sees it looks at the text

    @property
    def mark(self) -> str:
        """By which it is known again in the same text."""
        at = (self.span.line, self.span.column, self.span.end_line, self.span.end_column)
        return f"{self.path} {at} {self.new}"

    @property
    def raises(self) -> bool:
        """Any test that comes by notices it, whatever it asserts."""
        return self.new == _RAISING

    @property
    def words(self) -> str:
        return f"{self.path}:{self.span.line} ({self.function}): {self.old} → {self.new}"


class _Known(Struct, frozen=True):
    """One function of a file."""

    name: str
    node: Function
    shape: str


def equal_functions(files: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Each function of base by its name and what it does, wherever it stands."""
    every = (it for text in files.values() for it in _functions(text))
    return frozenset((it.name, it.shape) for it in every)


def faults_in(
    path: str, text: str, equal: frozenset[tuple[str, str]], *, edited: bool = False
) -> Iterator[Fault]:
    """In those functions of one file that base has too, or in the others."""
    for it in _functions(text):
        if ((it.name, it.shape) in equal) is not edited:
            yield from _of(path, text, it)


def drawn(faults: Iterable[Fault], seed: str) -> tuple[Fault, ...]:
    """In the order of the seed: each function's first, then each second one, and so on."""
    groups: dict[tuple[str, int], list[Fault]] = defaultdict(list)
    neutral: list[Fault] = []
    for it in sorted(faults, key=lambda it: _lot(seed, it)):
        group = neutral if it.neutral else groups[it.path, it.starts]
        group.append(it)
    turns = (
        (turn, at, it) for at, own in enumerate(groups.values()) for turn, it in enumerate(own)
    )
    ordered = (it for _, _, it in sorted(turns, key=lambda it: it[:2]))
    return (*neutral[:NEUTRAL], *tuple(ordered)[:OFFERED])


def _lot(seed: str, it: Fault) -> str:
    span = f"{it.span.line} {it.span.column} {it.span.end_line} {it.span.end_column}"
    return hashlib.sha256(f"{seed} {it.path} {span} {it.new}".encode()).hexdigest()


def _functions(text: str) -> tuple[_Known, ...]:
    """Functions of the file and methods of its classes; what stands in them belongs to them."""
    if len(text) > FILE:
        return ()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(_named(module.body, ""))


def _named(body: Iterable[ast.stmt], within: str) -> Iterator[_Known]:
    for it in body:
        if isinstance(it, Function):
            yield _Known(f"{within}{it.name}", it, ast.dump(it))
        elif isinstance(it, ast.ClassDef):
            yield from _named(it.body, f"{within}{it.name}.")
        elif isinstance(it, ast.If | ast.Try | ast.With):
            yield from _named(it.body, within)


def _of(path: str, text: str, it: _Known) -> Iterator[Fault]:
    starts = min((it.node.lineno, *(one.lineno for one in it.node.decorator_list)))
    lines = text.encode().split(b"\n")
    for node, new, neutral in _edits(it.node):
        span = _span(node, insert=neutral)
        old = _clipped(" ".join(_cut(lines, span).split()))
        yield Fault(
            path=path,
            function=it.name,
            starts=starts,
            span=span,
            old=old,
            new=new,
            neutral=neutral,
        )


Edit = tuple[ast.expr | ast.stmt, str, bool]  # what, its new text, whether it changes nothing


def _edits(function: Function) -> Iterator[Edit]:
    plain = not _looks_around(function)
    for node in _inside(function):
        if isinstance(node, ast.stmt):
            yield from ((node, new, False) for new in _statement(node))
            if plain and isinstance(node, ast.Return | ast.Assign | ast.AugAssign):
                yield node, "_q = 0; ", True
        if isinstance(node, ast.expr):
            yield from ((node, new, False) for new in _expression(node))


def _inside(function: Function) -> Iterator[ast.AST]:
    """What runs when the function is called: no defaults, no annotations, no documentation."""
    documented = ast.get_docstring(function, clean=False) is not None
    waiting: list[ast.AST] = [*function.body[1:]] if documented else [*function.body]
    while waiting:
        node = waiting.pop(0)
        yield node
        if isinstance(node, ast.JoinedStr):
            continue
        if isinstance(node, Function | ast.ClassDef | ast.Lambda):
            body = node.body if isinstance(node.body, list) else [node.body]
            waiting.extend(body)
        elif isinstance(node, ast.AnnAssign):
            waiting.extend([node.value] if node.value else [])
        else:
            waiting.extend(ast.iter_child_nodes(node))


def _looks_around(function: Function) -> bool:
    names = (it.id for it in ast.walk(function) if isinstance(it, ast.Name))
    return not _LOOKING_AROUND.isdisjoint(names)


def _statement(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.Return(value=ast.expr() as value):
            was = ast.unparse(value)
            yield from (f"return {it}" for it in _RETURNED if it != was)
            yield _RAISING
        case ast.Raise() | ast.AugAssign():
            yield "pass"
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield "pass"
        case ast.Break():
            yield "continue"
        case ast.Continue():
            yield "break"
        case _:
            return


def _expression(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Compare() | ast.BinOp() | ast.BoolOp() | ast.UnaryOp():
            yield from _operator(node)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield _written(ast.IfExp(test, orelse, body))
        case ast.Call(func=func, args=[first, second, *rest], keywords=keywords):
            yield _written(ast.Call(func, [second, first, *rest], keywords))
        case ast.Constant(value=value):
            yield from _constant(value)
        case _:
            return


def _operator(node: ast.Compare | ast.BinOp | ast.BoolOp | ast.UnaryOp) -> Iterator[str]:
    match node:
        case ast.Compare(ops=[op], left=left, comparators=[right]):
            others = _COMPARED[type(op)]
            yield from (_written(ast.Compare(left, [other()], [right])) for other in others)
            yield from ("True", "False")
        case ast.Compare():
            yield from ("True", "False")
        case ast.BinOp(left=left, op=op, right=right):
            computed = _COMPUTED.get(type(op), ())
            yield from (_written(ast.BinOp(left, other(), right)) for other in computed)
            yield from (_written(left), _written(right))
        case ast.BoolOp(op=op, values=values):
            either = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield _written(ast.BoolOp(either, values))
            yield from (_written(values[0]), _written(values[-1]))
        case ast.UnaryOp(operand=operand):
            yield _written(operand)


def _constant(value: object) -> Iterator[str]:
    match value:
        case bool():
            yield str(not value)
        case int() | float():
            yield f"({value} + 1)"
        case str():
            yield repr(f"{value}x"[:TEXT])
        case _:
            return


def _written(node: ast.expr) -> str:
    return f"({ast.unparse(ast.fix_missing_locations(node))})"


def _span(node: ast.expr | ast.stmt, *, insert: bool) -> Span:
    """Every node that was read from a text has its end."""
    if insert:
        return Span(node.lineno, node.col_offset, node.lineno, node.col_offset)
    return Span(node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)


def _cut(lines: list[bytes], span: Span) -> str:
    """What the span covers; of many lines the first."""
    first = lines[span.line - 1]
    end = span.end_column if span.line == span.end_line else len(first)
    return first[span.column : end].decode(errors="replace")


def _clipped(text: str) -> str:
    return text if len(text) <= TEXT else text[: TEXT - 1] + "…"
