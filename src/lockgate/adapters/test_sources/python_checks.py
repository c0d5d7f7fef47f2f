"""How many things a Python test asserts; what can never fail does not count."""

import ast
import re
from collections.abc import Iterator, Sequence

_CHECKING = re.compile(
    r"(?i:assert|expect|raises|warns|should|verify|ensure)|check|\Afail|deprecated_call"
)
_SWALLOWING = frozenset({"AssertionError", "Exception", "BaseException"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


def checkers(module: ast.Module) -> frozenset[str]:
    """Functions of the file that assert something themselves."""
    own = (it for it in ast.walk(module) if isinstance(it, Function))
    return frozenset(it.name for it in own if _count(it.body, frozenset()))


def count_checks(node: Function, local: frozenset[str]) -> int:
    return _count(node.body, local - {node.name})


def _count(body: Sequence[ast.stmt], local: frozenset[str]) -> int:
    return sum(_is_check(it, local) for it in _living(body))


def _living(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """All that may run and may fail: nothing behind a return, an `if False`, a swallowing try."""
    waiting: list[ast.AST] = list(_until_return(body))
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(_inside(node))


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    dead: list[ast.stmt] = []
    if isinstance(node, ast.If | ast.While) and _is_constant(node.test):
        dead = node.body if not _truth(node.test) else node.orelse
    if isinstance(node, ast.Try) and any(_swallows(it) for it in node.handlers):
        dead = node.body
    if isinstance(node, ast.With) and any(_suppresses(it) for it in node.items):
        dead = node.body
    skipped = {id(it) for it in dead}
    for child in ast.iter_child_nodes(node):
        if id(child) not in skipped:
            yield child


def _until_return(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for it in body:
        yield it
        if isinstance(it, ast.Return):
            return


def _swallows(handler: ast.ExceptHandler) -> bool:
    quiet = all(isinstance(it, ast.Pass | ast.Expr | ast.Return) for it in handler.body)
    return quiet and (handler.type is None or bool(_names(handler.type) & _SWALLOWING))


def _suppresses(item: ast.withitem) -> bool:
    call = item.context_expr
    if not isinstance(call, ast.Call) or _called(call) != "suppress":
        return False
    return any(_names(it) & _SWALLOWING for it in call.args)


def _is_check(node: ast.AST, local: frozenset[str]) -> bool:
    if isinstance(node, ast.Assert):
        return not _is_always(node.test)
    if isinstance(node, ast.Call):
        name = _called(node)
        if name in local:
            return True
        given = (*node.args, *(it.value for it in node.keywords))
        return bool(_CHECKING.search(name)) and not (given and all(map(_is_always, given)))
    return False


def _is_always(node: ast.expr) -> bool:
    """True without any help of the code under test."""
    match node:
        case ast.Constant() | ast.Tuple() | ast.Lambda() | ast.JoinedStr():
            return True
        case ast.Compare(left=left, comparators=[right]):
            same = ast.dump(left) == ast.dump(right)
            return same or (_is_constant(left) and _is_constant(right))
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(_is_constant(it) and _truth(it) for it in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _is_constant(operand)
        case _:
            return False


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def _truth(node: ast.expr) -> bool:
    return bool(node.value) if isinstance(node, ast.Constant) else False


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def _names(node: ast.expr) -> frozenset[str]:
    return frozenset(it.id for it in ast.walk(node) if isinstance(it, ast.Name))
