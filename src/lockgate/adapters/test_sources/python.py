"""Tests of pytest and unittest, found by reading the syntax tree."""

import ast
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lockgate.adapters.test_sources.python_checks import checkers, count_checks
from lockgate.core.differential.matching import SourceTest

DEPTH = 20
INHERITED = 10_000  # tests that one file may have

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class _File:
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
    return SourceTest(
        file=file.path,
        line=node.lineno,
        names=names,
        body=_body(node),
        checks=count_checks(node, file.checkers),
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
