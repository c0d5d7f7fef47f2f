"""Sizes of modules, packages and functions, and who imports whom.

Prints the figures, and exits 1 where something is too big, too small to stand alone or in a cycle.
"""

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

PACKAGE = "lockgate"
MODULE_LINES = 500
MEDIAN_LINES = 200
LEAST_LINES = 25
PACKAGE_FILES = 20
SMALL = 60  # lines; such a module with one importer is part of that one, or is named below
FEW_LINES = 50
FUNCTION_LINES = 45
LONG_FUNCTION = 30
LONG_SHARE = 0.03
ARGUMENTS = 6
FAN_OUT = 8  # packages of ours outside its own
PUBLIC_NAMES = 12  # reported, not enforced: a union of many small types may need more
CHOOSERS = (
    "bootstrap/app.py",
    "bootstrap/forge.py",
    "bootstrap/gates.py",
    "bootstrap/orchestrator.py",
    "bootstrap/worker.py",
)  # the files that wire everything import everything

REGISTRIES = (  # what one of these tables names is found there, however few import it
    "adapters/harnesses/registry.py",
    "adapters/reports/read.py",
)
STANDS_ALONE: Mapping[str, str] = {}  # small modules with one importer, and why

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
    imports: frozenset[str] = frozenset()  # dotted names of modules of ours
    names: frozenset[str] = frozenset()  # texts in it, by which a registry may load a module

    @property
    def name(self) -> str:
        parts = self.path.removesuffix(".py").split("/")
        return ".".join((PACKAGE, *(parts[:-1] if parts[-1] == "__init__" else parts)))

    @property
    def package(self) -> str:
        return ".".join((PACKAGE, *self.path.split("/")[:-1]))

    @property
    def is_init(self) -> bool:
        return self.path.endswith("__init__.py")


def main(arguments: list[str]) -> int:
    root = Path(arguments[0] if arguments else f"src/{PACKAGE}")
    modules = [measure(path, root) for path in sorted(root.rglob("*.py"))]
    complaints = [*judge(modules), *judge_tree(modules)]
    print("\n".join(report(modules)))
    for complaint in complaints:
        print(f"sizes: {complaint}", file=sys.stderr)
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
        imports=frozenset(_own_imports(tree, root)),
        names=frozenset(
            it.value.partition(":")[0]
            for it in ast.walk(tree)
            if isinstance(it, ast.Constant) and isinstance(it.value, str)
        ),
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


def judge_tree(modules: list[Module]) -> list[str]:
    """What is wrong with the modules as a whole: too many in a package, too small, in a cycle."""
    own = [it for it in modules if not it.is_init]
    importers = importers_of(modules)
    found = [
        f"package {name} has {count} modules, at most {PACKAGE_FILES}"
        for name, count in Counter(it.package for it in own).items()
        if count > PACKAGE_FILES
    ]
    middle = median(it.lines for it in own) if own else 0
    if middle > MEDIAN_LINES:
        found.append(f"half of the modules have more than {middle:g} lines, at most {MEDIAN_LINES}")
    found += [
        f"{it.path} has {it.lines} lines, at least {LEAST_LINES}: put it where it is used"
        for it in own
        if it.lines < LEAST_LINES and it.path != "__main__.py"
    ]
    small = [it.path for it in own if it.lines < SMALL and len(importers[it.name]) == 1]
    found += [
        f"{path} is small and only {next(iter(importers[_dotted(path)]))} imports it: "
        "put it there, or name it in STANDS_ALONE"
        for path in small
        if path not in STANDS_ALONE
    ]
    needless = {it.path for it in own} & STANDS_ALONE.keys() - {*small}
    found += [f"{path} stands in STANDS_ALONE for no reason" for path in sorted(needless)]
    return found + [f"these import each other: {', '.join(sorted(it))}" for it in cycles(own)]


def cycles(modules: Iterable[Module]) -> Iterator[frozenset[str]]:
    """The modules and packages beside each other in one package that import each other."""
    graphs: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for module in modules:
        for name in module.imports:
            ours, theirs = module.name.split("."), name.split(".")
            depth = next(
                (n for n, it in enumerate(zip(ours, theirs, strict=False)) if it[0] != it[1]), None
            )
            if depth is not None:
                parent = ".".join(ours[:depth])
                graphs[parent][f"{parent}.{ours[depth]}"].add(f"{parent}.{theirs[depth]}")
    for graph in graphs.values():
        yield from _cycles(graph)


def importers_of(modules: Sequence[Module]) -> Mapping[str, set[str]]:
    """Of each module, those that import it; a name that a package passes on counts for its module.

    A module that a registry loads by its name, or that is a program, has none.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        if not module.is_init:
            for name in module.imports:
                found[name].add(module.name)
    for name in {it for module in modules for it in _loaded_by_name(module)}:
        found[name] = set()
    return found


def _loaded_by_name(module: Module) -> Iterator[str]:
    """The modules that this one loads from a table, by their texts or by importing them."""
    yield from (it for it in module.names if it.startswith(f"{PACKAGE}."))
    if module.path in REGISTRIES:
        yield from (it for it in module.imports if it.startswith(module.package))
        yield from (f"{module.package}.{it}" for it in module.names)


def _dotted(path: str) -> str:
    return ".".join((PACKAGE, *path.removesuffix(".py").split("/")))


def _cycles(graph: Mapping[str, Iterable[str]]) -> Iterator[frozenset[str]]:
    """The sets of nodes that reach each other."""
    reached = {it: _reached(graph, it) for it in graph}
    found = {
        frozenset(other for other in reached[it] if it in reached.get(other, ())) | {it}
        for it in graph
        if it in reached[it]
    }
    yield from found


def _reached(graph: Mapping[str, Iterable[str]], start: str) -> set[str]:
    seen, left = set[str](), [*graph.get(start, ())]
    while left:
        node = left.pop()
        if node not in seen:
            seen.add(node)
            left += graph.get(node, ())
    return seen


def report(modules: list[Module]) -> list[str]:
    lines = [module.lines for module in modules] or [0]
    sizes = [function.lines for module in modules for function in module.functions] or [0]
    core = sum(module.lines for module in modules if module.path.startswith("core/"))
    crowded = [it for it in modules if len(it.public) > PUBLIC_NAMES]
    all_lines = f"{sum(lines)} lines ({core} in the core)"
    return [
        f"{len(modules)} modules, {all_lines}, median {median(lines):g}, longest {max(lines)}",
        f"{len(sizes)} functions, median {median(sizes):g} lines, longest {max(sizes)}",
        *_rooms(modules),
        *(f"note: {it.path} has {len(it.public)} public names" for it in crowded),
    ]


def _rooms(modules: list[Module]) -> Iterator[str]:
    """The house at a glance: how many modules, how large, how they hang together."""
    own = [it for it in modules if not it.is_init]
    lines = [it.lines for it in own] or [0]
    importers = importers_of(modules)
    once = [it for it in own if len(importers[it.name]) == 1]
    packages = Counter(it.package for it in own)
    largest, files = packages.most_common(1)[0] if packages else ("none", 0)
    wide = [len(it.packages) for it in own if it.path not in CHOOSERS] or [0]
    yield (
        f"without __init__: {len(own)} modules, median {median(lines):g}, longest {max(lines)}; "
        f"{len(packages)} packages, the largest {largest} with {files}; "
        f"one importer: {len(once)} ({len(once) / max(len(own), 1):.0%}); "
        f"under {FEW_LINES} lines: {sum(it < FEW_LINES for it in lines)}, "
        f"under {LEAST_LINES}: {sum(it < LEAST_LINES for it in lines)}; "
        f"fan-out: at most {max(wide)} packages"
    )


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


def _passed_on(tree: ast.Module) -> dict[str, str]:
    """The names that a package takes from its modules: name → module."""
    return {
        alias.asname or alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(PACKAGE)
        for alias in node.names
    }


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
    return f"{source}.{name}" if is_module else _passed_on_by(folder).get(name, source)


@cache
def _passed_on_by(folder: Path) -> Mapping[str, str]:
    """The names that a package's __init__ takes from its modules: name → module."""
    init = folder / "__init__.py"
    return _passed_on(ast.parse(init.read_text(encoding="utf-8"))) if init.exists() else {}


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
