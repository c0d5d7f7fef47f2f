"""Which source file `init` breaks to see that the tests notice, and the shell command for it."""

import ast
import re
from collections.abc import Iterator, Mapping

from lockgate.core.discovery.found import Package, Tree, quote

WORD = "planted by lockgate init"
MOST_EDITS = 300
MOST_FILES = 20
_ENDINGS = {
    "python": (".py",),
    "node": (".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".mts", ".cts"),
    "go": (".go",),
    "rust": (".rs",),
}
_ANY: tuple[str, ...] = (
    *(".c", ".cc", ".cpp", ".h", ".hpp", ".java", ".kt", ".rb", ".php", ".cs", ".swift", ".ex"),
    *(".sh", ".lua", ".pl", ".pm", ".scala", ".hs", ".ml", ".erl", ".clj", ".dart", ".zig"),
)
_NOT_SOURCE = re.compile(
    r"(?:^|/)(?:tests?|__tests__|spec|docs?|examples?|benchmarks?|bench|scripts?|node_modules|vendor"
    r"|dist|build|testing|testdata|fixtures|tools|\.[^/]*)/"
    r"|(?:^|/)(?:test_[^/]*|[^/]*_test|[^/]*[.-](?:test|spec)|conftest|setup|noxfile|tasks|__main__"
    r"|_?version|[^/]*\.config|[^/]*\.d|gulpfile|Gruntfile|build)\.\w+$"
)
_JS = re.compile(
    r"\bfunction\b[^;]*\{\s*$|=>\s*\{\s*$"
    r"|^\s+(?!(?:if|for|while|switch|catch|else|do|try|with|return)\b)"
    r"(?:(?:async|static|get|set|public|private|protected)\s+)*[\w$#]+\s*\([^;]*\)[^;={}]*\{\s*$"
)
_GO = re.compile(r"^func\b.*\{\s*$")
_RUST = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:(?:async|const|unsafe)\s+)*fn\b.*\{\s*$")


def sources(package: Package, paths: frozenset[str]) -> tuple[str, ...]:
    """The files that hold what is tested, those that a test is named after first."""
    start = f"{package.path}/" if package.path else ""
    runs_any = package.test is not None and package.test.command.startswith(("make ", "just "))
    language = "" if runs_any else package.language
    endings = _ENDINGS.get(language, (*_ANY, *(it for us in _ENDINGS.values() for it in us)))
    own = [it for it in paths if it.startswith(start) and it.endswith(endings)]
    found = [it for it in own if not _NOT_SOURCE.search(it[len(start) :])]
    named = {_stem(it) for it in own if it not in found}

    def order(path: str) -> tuple[bool, bool, int, str]:
        return _stem(path) not in named, _stem(path).startswith("_"), path.count("/"), path

    return tuple(sorted(found, key=order))


def _stem(path: str) -> str:
    name = path.rpartition("/")[2].partition(".")[0]
    return re.sub(r"^tests?_|_tests?$", "", name).strip("_").lower()


def planted(path: str, text: str) -> str:
    """A shell command that breaks each function of the file; what has none is no longer code."""
    chosen = tuple(edits(path, text))[:MOST_EDITS]
    if not chosen:
        return f"printf '\\n)) {WORD} ((\\n' >>{quote(path)}"
    words = " ".join(f"-e {quote(it)}" for it in chosen)
    return f"sed -i {words} {quote(path)}"


# Options that end a run at the first failure: with a file broken, most tests fail.
_HURRY = (
    ("--junitxml=$OUT/junit.xml", " -x"),
    ("--outputFile.junit=$OUT/junit.xml", " --bail=1"),
    ("--reporters=jest-junit", " --bail"),
    ("--reporter-option=output=$OUT/junit.xml", " --bail"),
    ("-m unittest discover", " -f"),
    ("-m xmlrunner discover", " -f"),
    ("go test -json", " -failfast"),
)


def hurried(command: str) -> str:
    for words, more in _HURRY:
        if words in command:
            return command.replace(words, f"{words}{more}", 1)
    return command


LEAST_PATIENCE = 60  # seconds


def patience(seconds: float) -> int:
    """How long a command gets with a file broken that took so long without: it may never end."""
    return max(LEAST_PATIENCE, round(5 * seconds))


def to_break(texts: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Files with functions; where there are none, those that are not empty."""
    filled = [(path, text) for path, text in texts.items() if text.strip()]
    return tuple(it for it in filled if any(edits(*it))) or tuple(filled)


def edits(path: str, text: str) -> Iterator[str]:
    """One command of sed for each function: it fails as soon as it is called."""
    if path.endswith(".py"):
        yield from _python(text)
    elif path.endswith(_ENDINGS["node"]):
        yield from _behind(text, _JS, f' throw new Error("{WORD}");')
    elif path.endswith(".go"):
        yield from _behind(text, _GO, f' panic("{WORD}");')
    elif path.endswith(".rs"):
        yield from _behind(text.partition("#[cfg(test)]")[0], _RUST, f' panic!("{WORD}");')


def _behind(text: str, pattern: re.Pattern[str], more: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), start=1):
        if len(line) < 300 and pattern.search(line):  # noqa: PLR2004 - a line that people wrote
            yield f"{number}s/[[:space:]]*$/{more}/"


def _python(text: str) -> Iterator[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            line = min((first.lineno, *(it.lineno for it in getattr(first, "decorator_list", ()))))
            if line > node.lineno and not _is_abstract(node):
                yield f'{line}s/^/{" " * first.col_offset}raise AssertionError("{WORD}")\\n/'


def _is_abstract(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A body that does nothing, as in a protocol: nobody calls it."""
    return len(node.body) == 1 and isinstance(node.body[0], ast.Expr | ast.Pass)


def choice(package: Package, tree: Tree) -> tuple[str, ...]:
    return sources(package, tree.paths)[:MOST_FILES]
