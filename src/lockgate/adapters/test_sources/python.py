"""Tests of pytest and unittest, found by reading the syntax tree."""

import ast
import builtins
import copy
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from msgspec import Struct

from lockgate.core.differential.strength import ACTS
from lockgate.core.differential.table import SourceTest

# How many things a Python test asserts; what can never fail does not count.


_CHECKING = re.compile(
    r"(?i:assert|expect|raises|warns|should|verify|ensure)|check|\Afail|deprecated_call"
)
_SWALLOWING = frozenset({"AssertionError", "Exception", "BaseException"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


def checkers(module: ast.Module) -> frozenset[str]:
    """Functions of the file that assert something themselves."""
    own = (it for it in ast.walk(module) if isinstance(it, Function))
    return frozenset(it.name for it in own if _count(it.body, frozenset()))


def checks_of(node: Function, local: frozenset[str]) -> tuple[str, ...]:
    """As text, in the order of the file."""
    found = [it for it in _living(node.body) if _is_check(it, local - {node.name})]
    checks = cast("list[ast.Assert | ast.Call]", found)
    named = _named_once(node)
    ordered = sorted(checks, key=lambda it: (it.lineno, it.col_offset))
    return tuple(_plainly(_spelled_out(it, named)) for it in ordered)


def _named_once(node: Function) -> dict[str, ast.expr]:
    """Values that have a name of their own in a test, which only makes them easier to read."""
    stored = [it.id for it in ast.walk(node) if isinstance(it, ast.Name) and _is_stored(it)]
    return {
        it.targets[0].id: it.value
        for it in node.body
        if isinstance(it, ast.Assign)
        and isinstance(it.targets[0], ast.Name)
        and stored.count(it.targets[0].id) == 1
    }


def _is_stored(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _spelled_out(
    node: ast.Assert | ast.Call, named: Mapping[str, ast.expr]
) -> ast.Assert | ast.Call:
    """With the values in place of their names; what names itself stays."""
    if not named:
        return node
    made = copy.deepcopy(node)
    for _ in range(SPELLED):
        made = cast("ast.Assert | ast.Call", _Spelling(named).visit(made))
    return made


SPELLED = 2  # names within values


class _Spelling(ast.NodeTransformer):
    def __init__(self, named: Mapping[str, ast.expr]) -> None:
        self.named = named

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self.named.get(node.id)
        return copy.deepcopy(value) if value and len(unparsed(value)) < LONG else node


LONG = 200  # characters of a value that are spelled out


def _compared(test: ast.expr) -> str:
    """The same for both orders of two sides that are to be equal."""
    match test:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            return " == ".join(sorted((unparsed(left), unparsed(right))))
        case _:
            return unparsed(test)


_COMPARING = {
    "assertNotEqual": "!=",
    "assertIs": "is",
    "assertIsNot": "is not",
    "assertIn": "in",
    "assertNotIn": "not in",
    "assertGreater": ">",
    "assertLess": "<",
}


def _plainly(node: ast.Assert | ast.Call) -> str:
    """A method of unittest's as the statement that says the same."""
    if isinstance(node, ast.Assert):
        return f"assert {_compared(node.test)}"
    given = [unparsed(it) for it in node.args]
    match _called(node), given:
        case ("assertEqual", [left, right, *_]):
            return f"assert {' == '.join(sorted((left, right)))}"
        case (name, [left, right, *_]) if name in _COMPARING:
            return f"assert {left} {_COMPARING[name]} {right}"
        case ("assertTrue", [value, *_]):
            return f"assert {value}"
        case ("assertFalse", [value, *_]):
            return f"assert not {value}"
        case ("assertIsNone", [value, *_]):
            return f"assert {value} is None"
        case ("assertRaises" | "raises", [kind, *_]):
            return f"raises {kind}"
        case _:
            return unparsed(node)


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


DEPTH = 20
INHERITED = 10_000  # tests that one file may have


class _File(Struct, frozen=True):
    path: str
    classes: Mapping[str, ast.ClassDef]
    checkers: frozenset[str]


def parsed(text: str) -> ast.Module | None:
    """None for what is not Python, or nests deeper than any program."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def unparsed(node: ast.AST) -> str:
    try:
        return ast.unparse(node)
    except (RecursionError, ValueError):
        return "(nested too deeply)"


def tests_in(path: str, text: str) -> list[SourceTest]:
    module = parsed(text)
    if module is None:
        return []
    try:
        return _tests(path, module)
    except RecursionError:
        return []


def _tests(path: str, module: ast.Module) -> list[SourceTest]:
    statements = list(_flat(module.body))
    classes = {it.name: it for it in statements if isinstance(it, ast.ClassDef)}
    file = _File(path, classes, checkers(module))
    found: list[SourceTest] = []
    for it in statements:
        if isinstance(it, Function) and it.name.startswith("test"):
            found.append(_source(file, (it.name,), it))
        elif isinstance(it, ast.ClassDef) and _is_case(it, file, DEPTH):
            found.extend(_methods(file, (it.name,), it))
        if len(found) > INHERITED:
            break
    return found[:INHERITED]


def _flat(body: Sequence[ast.stmt], depth: int = DEPTH) -> Iterator[ast.stmt]:
    """Statements that run when the file is loaded, also those under a condition."""
    for it in body:
        yield it
        if isinstance(it, ast.If | ast.Try | ast.With) and depth:
            yield from _flat(it.body, depth - 1)
        if isinstance(it, ast.If | ast.Try) and depth:
            yield from _flat(it.orelse, depth - 1)
        if isinstance(it, ast.Try) and depth:
            handlers = [inner for handler in it.handlers for inner in handler.body]
            yield from _flat([*handlers, *it.finalbody], depth - 1)


def _is_case(node: ast.ClassDef, file: _File, depth: int) -> bool:
    """What pytest takes by its name, or unittest by its kind."""
    bases = [_last_name(base) for base in node.bases]
    if node.name.startswith("Test") or any(base.endswith("TestCase") for base in bases):
        return True
    return depth > 0 and any(
        _is_case(file.classes[base], file, depth - 1)
        for base in bases
        if base in file.classes and base != node.name and not base.startswith("Test")
    )


def _methods(file: _File, names: tuple[str, ...], node: ast.ClassDef) -> Iterator[SourceTest]:
    for it in _members(file, node, DEPTH).values():
        if isinstance(it, Function):
            yield _source(file, (*names, it.name), it)
        elif len(names) < DEPTH:
            yield from _methods(file, (*names, it.name), it)


def _members(file: _File, node: ast.ClassDef, depth: int) -> dict[str, Function | ast.ClassDef]:
    """Its tests and inner test classes, with those of bases in the same file."""
    found: dict[str, Function | ast.ClassDef] = {}
    for base in reversed(node.bases):
        parent = file.classes.get(_last_name(base))
        if parent and parent is not node and depth:
            found.update(_members(file, parent, depth - 1))
    for it in _flat(node.body):
        is_test = isinstance(it, Function) and it.name.startswith("test")
        is_class = isinstance(it, ast.ClassDef) and it.name.startswith("Test")
        if isinstance(it, Function | ast.ClassDef) and (is_test or is_class):
            found[it.name] = it
    return found


def _source(file: _File, names: tuple[str, ...], node: Function) -> SourceTest:
    checks = checks_of(node, file.checkers)
    return SourceTest(
        file=file.path,
        line=node.lineno,
        names=names,
        body=_body(node),
        checks=len(checks),
        asserts=checks,
    )


def _body(node: Function) -> str:
    """Decorators, arguments and statements, without the name and the docstring."""
    statements = node.body[1:] if ast.get_docstring(node, clean=False) else node.body
    decorators = [f"@{unparsed(it)}" for it in node.decorator_list]
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    lines = [f"{kind} ({unparsed(node.args)})", *(unparsed(it) for it in statements)]
    return "\n".join((*decorators, *lines))


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


# What stands in a test file and is no test, by name.


_ACTING = re.compile(r"set_?up|tear_?down|pytest|load_tests|asyncSet", re.IGNORECASE)
_BUILT_IN = frozenset(dir(builtins))


def beside_tests(text: str) -> dict[str, str]:
    """Its statements by the name that they bind; what acts on every test begins with a mark."""
    module = parsed(text)
    found: dict[str, str] = {}
    for number, it in enumerate(module.body if module else ()):
        for name, said in _beside(it, number):
            acts = not name or name in _BUILT_IN or bool(_ACTING.match(name))
            found[f"{ACTS}{name or number}" if acts else name] = said
    return found


def _beside(node: ast.stmt, number: int) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            source = getattr(node, "module", None) or ""
            for it in names:
                yield it.asname or it.name.replace("*", ""), f"{source} {it.name}"
        case ast.Expr(value=ast.Constant()):
            return
        case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name.startswith("test"):
            return
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield "" if node.decorator_list else node.name, unparsed(node)
        case ast.ClassDef():
            yield node.name, unparsed(_without_tests(node))
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            yield name, unparsed(node)
        case _:
            yield "", unparsed(node)


def _without_tests(node: ast.ClassDef) -> ast.ClassDef:
    kept = [it for it in node.body if not (isinstance(it, Function) and it.name.startswith("test"))]
    copied = copy.copy(node)
    copied.body = kept or [ast.Pass()]
    return copied


# Tests in which a failure is planted.


_HARMLESS = re.compile(r"\A(?:pytest\.mark\.|(?:unittest\.)?(?:mock\.)?patch\b)")


def broken(
    text: str, names: Iterable[tuple[str, ...]], word: str
) -> tuple[str, frozenset[tuple[str, ...]]]:
    """The file with a failure at the beginning of these tests, and of which that was possible."""
    module = parsed(text)
    wanted = frozenset(names)
    lines = text.split("\n")
    found = list(_named_functions(module.body, ())) if module else []
    done: set[tuple[str, ...]] = set()
    for own, node in sorted(found, key=lambda it: it[1].lineno, reverse=True):
        if own in wanted and all(_HARMLESS.match(unparsed(it)) for it in node.decorator_list):
            _break(lines, node, f"assert {len(word)} == {len(own[-1]) + len(word)}")
            done.add(own)
    return "\n".join(lines), frozenset(done)


def _break(lines: list[str], node: Function, failure: str) -> None:
    first = node.body[0]
    start = lines[first.lineno - 1]
    before = start[: len(start.encode()[: first.col_offset].decode(errors="replace"))]
    if before.strip():
        lines[first.lineno - 1] = f"{before}{failure}; {start[len(before) :]}"
    else:
        lines.insert(first.lineno - 1, f"{before}{failure}")


def _named_functions(
    body: Sequence[ast.stmt], within: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Function]]:
    for it in _flat(body):
        if isinstance(it, Function):
            yield (*within, it.name), it
        elif isinstance(it, ast.ClassDef) and len(within) < DEPTH:
            yield from _named_functions(it.body, (*within, it.name))
