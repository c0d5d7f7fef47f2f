"""The part of a conftest.py that acts on a run by itself; fixtures only help the tests."""

import ast
from collections.abc import Iterator, Mapping

from lockgate.adapters.test_sources.python import parsed, unparsed
from lockgate.core.differential.table import HarnessChange

FILE = 1_000_000
_ACTING_NAMES = ("collect_ignore", "collect_ignore_glob", "pytest_plugins", "pytestmark")

Part = Mapping[str, tuple[str, int]]  # what acts → its text and line


def changed_hooks(path: str, before: str, after: str) -> Iterator[HarnessChange]:
    old, new = _acting(before), _acting(after)
    for name, (text, line) in new.items():
        if name not in old:
            yield HarnessChange(path, f"{path} adds {name}", line)
        elif old[name][0] != text:
            yield HarnessChange(path, f"{path} changes {name}", line)
    for name in old:
        if name not in new:
            yield HarnessChange(path, f"{path} no longer has {name}")


def _acting(text: str) -> Part:
    module = parsed(text) if len(text) <= FILE else None
    if module is None:
        return {"what cannot be read": (text, 1)}
    found: dict[str, tuple[str, int]] = {}
    for number, it in enumerate(module.body):
        name = _name(it, number)
        if name:
            known, line = found.get(name, ("", it.lineno))
            found[name] = (f"{known}\n{unparsed(it)}", line)
    return found


def _name(node: ast.stmt, number: int) -> str | None:
    """None for what does nothing until a test asks for it."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name if name.startswith("pytest_") or _is_hook(node) else None
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name if name in _ACTING_NAMES or _calls(node) else None
        case ast.Import() | ast.ImportFrom() | ast.ClassDef() | ast.Pass():
            return None
        case ast.Expr(value=ast.Constant()):
            return None
        case _:
            return "statements that run when it is loaded"


def _is_hook(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("hookimpl" in unparsed(it) for it in node.decorator_list)


def _calls(node: ast.stmt) -> bool:
    """A value that is computed may do anything on the way."""
    return any(isinstance(it, ast.Call) for it in ast.walk(node))
