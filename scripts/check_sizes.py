"""Sizes of modules and functions: prints the totals, names what is too big, exits 1 for that."""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

PACKAGE = "lockgate"
MODULE_LINES = 500
FUNCTION_LINES = 45
LONG_FUNCTION = 30
LONG_SHARE = 0.03
ARGUMENTS = 6
FAN_OUT = 8  # packages of ours outside its own
PUBLIC_NAMES = 12  # reported, not enforced: a union of many small types may need more
CHOOSERS = (
    "bootstrap/app.py",
    "bootstrap/gates.py",
    "bootstrap/orchestrator.py",
)  # the files that wire everything import everything

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    name: str
    line: int
    lines: int
    arguments: int
    command: bool  # of the command line: an argument for each option, given by nobody by hand


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    path: str
    lines: int
    functions: tuple[Function, ...]
    packages: frozenset[str]
    public: tuple[str, ...]


def main(arguments: list[str]) -> int:
    root = Path(arguments[0] if arguments else f"src/{PACKAGE}")
    modules = [measure(path, root) for path in sorted(root.rglob("*.py"))]
    complaints = judge(modules)
    print("\n".join(report(modules)))
    for complaint in complaints:
        print(f"too big: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


def measure(path: Path, root: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text, filename=str(path))
    return Module(
        path=path.relative_to(root).as_posix(),
        lines=len(text.splitlines()),
        functions=tuple(_functions(tree)),
        packages=frozenset(_packages(tree, path, root)),
        public=tuple(_public_names(tree)),
    )


def judge(modules: list[Module]) -> list[str]:
    """What is too big, in words; an empty list when nothing is."""
    complaints = [words for module in modules for words in _module_complaints(module)]
    functions = [function for module in modules for function in module.functions]
    long = [function for function in functions if function.lines > LONG_FUNCTION]
    if len(long) > LONG_SHARE * len(functions):
        complaints.append(
            f"{len(long)} of {len(functions)} functions have more than {LONG_FUNCTION} lines, "
            f"at most {LONG_SHARE:.0%} may: {', '.join(sorted(it.name for it in long))}"
        )
    return complaints


def report(modules: list[Module]) -> list[str]:
    lines = [module.lines for module in modules] or [0]
    sizes = [function.lines for module in modules for function in module.functions] or [0]
    core = sum(module.lines for module in modules if module.path.startswith("core/"))
    crowded = [it for it in modules if len(it.public) > PUBLIC_NAMES]
    all_lines = f"{sum(lines)} lines ({core} in the core)"
    return [
        f"{len(modules)} modules, {all_lines}, median {median(lines):g}, longest {max(lines)}",
        f"{len(sizes)} functions, median {median(sizes):g} lines, longest {max(sizes)}",
        *(f"note: {it.path} has {len(it.public)} public names" for it in crowded),
    ]


def _module_complaints(module: Module) -> Iterator[str]:
    if module.lines > MODULE_LINES:
        yield f"{module.path} has {module.lines} lines, at most {MODULE_LINES}"
    if len(module.packages) > FAN_OUT and module.path not in CHOOSERS:
        yield f"{module.path} imports {len(module.packages)} of our packages, at most {FAN_OUT}"
    for function in module.functions:
        where = f"{module.path}:{function.line} {function.name}"
        if function.lines > FUNCTION_LINES:
            yield f"{where} has {function.lines} lines, at most {FUNCTION_LINES}"
        if function.arguments > ARGUMENTS and not function.command:
            yield f"{where} takes {function.arguments} arguments, at most {ARGUMENTS}"


def _functions(tree: ast.Module) -> Iterator[Function]:
    methods = {
        id(node) for it in ast.walk(tree) if isinstance(it, ast.ClassDef) for node in it.body
    }
    for node in ast.walk(tree):
        if isinstance(node, FunctionNode):
            yield Function(
                name=node.name,
                line=node.lineno,
                lines=(node.end_lineno or node.lineno) - node.lineno + 1,
                arguments=_arguments(node, method=id(node) in methods),
                command=any("click.command" in ast.unparse(it) for it in node.decorator_list),
            )


def _arguments(node: FunctionNode, *, method: bool) -> int:
    """How many a caller gives: `self` and `cls` are not given."""
    asked = node.args
    named = [it.arg for it in (*asked.posonlyargs, *asked.args, *asked.kwonlyargs)]
    bound = method and bool(named) and named[0] in {"self", "cls"}
    return len(named) - bound + (asked.vararg is not None) + (asked.kwarg is not None)


def _packages(tree: ast.Module, path: Path, root: Path) -> Iterator[str]:
    """The packages of ours, other than its own, from which this module imports."""
    own = ".".join((PACKAGE, *path.relative_to(root).parent.parts))
    for name in _own_imports(tree, root):
        folder = root.joinpath(*name.split(".")[1:])
        package = name if folder.is_dir() else name.rpartition(".")[0]
        if package != own:
            yield package


def _own_imports(tree: ast.Module, root: Path) -> Iterator[str]:
    """Our modules that this one names; `from package import a, b` may name two."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [_module_of(node.module, alias.name, root) for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == PACKAGE)


def _module_of(source: str, name: str, root: Path) -> str:
    """`from source import name` names a module of the package `source`, or `source` itself."""
    folder = root.joinpath(*source.split(".")[1:])
    is_module = (folder / f"{name}.py").exists() or (folder / name / "__init__.py").exists()
    return f"{source}.{name}" if is_module else source


def _public_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, FunctionNode | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id]
        else:
            continue
        yield from (name for name in names if not name.startswith("_"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
