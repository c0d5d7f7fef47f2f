"""Which requirements are covered: a requirement is when a test that names its id has passed.

`--ids R1,3_MCP-TAS-041` reads what the last `make test` recorded; exit 0 only if all are covered.
`--write` and `--check` deal with docs/requirements-coverage.md, from the markers in tests/ alone.
"""

import argparse
import ast
import json
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
CATALOGUE = ROOT / "scripts" / "requirements.toml"
RESULTS = ROOT / "build" / "req-results.json"
PAGE = ROOT / "docs" / "requirements-coverage.md"
KINDS = {
    "B": "behaviour",
    "C": "property",
    "T": "test",
    "D": "documentation",
    "M": "migration",
}

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Marks = Mapping[str, tuple[str, ...]]  # requirement id → the tests that name it
Results = Mapping[str, list[tuple[str, str]]]  # requirement id → (test, outcome)


@dataclass(frozen=True, slots=True)
class Requirement:
    source: str
    kind: str
    title: str
    later: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """All requirements, what the sources call them, and what only CI can prove."""

    requirements: dict[str, Requirement]
    sources: dict[str, str]
    source_ids: dict[str, tuple[str, ...]]
    proved_by_ci: dict[str, str]
    later: dict[str, str]
    names: dict[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class Verdict:
    id: str
    covered: bool
    words: str


def main(arguments: list[str]) -> int:
    asked = _parse(arguments)
    catalogue = read_catalogue(CATALOGUE.read_text(encoding="utf-8"))
    marks = scan(ROOT / "tests")
    if asked.ids:
        return _answer(catalogue, marks, asked.ids.split(","), Path(asked.results))
    unknown = sorted(set(marks) - set(catalogue.requirements) - set(catalogue.source_ids))
    if unknown:
        print(f"tests name requirements that do not exist: {', '.join(unknown)}", file=sys.stderr)
        return 1
    page = render(catalogue, marks)
    if asked.write:
        PAGE.write_text(page, encoding="utf-8")
        return 0
    return _compare(page)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--ids", help="requirement ids or the sources' own ids, with commas")
    what.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    what.add_argument("--check", action="store_true", help=f"exit 1 when {PAGE.name} is stale")
    parser.add_argument("--results", default=str(RESULTS), help="what `make test` recorded")
    return parser.parse_args(arguments)


def _answer(catalogue: Catalogue, marks: Marks, ids: list[str], results: Path) -> int:
    if not results.exists():
        print(
            f"nothing is known to have passed: no {results.name}. Run: make test", file=sys.stderr
        )
        return 1
    outcomes: Results = json.loads(results.read_text(encoding="utf-8"))
    verdicts = [judge(catalogue, marks, outcomes, id.strip()) for id in ids]
    for verdict in verdicts:
        print(f"{verdict.id}: {verdict.words}")
    return 0 if all(verdict.covered for verdict in verdicts) else 1


def _compare(page: str) -> int:
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page:
        return 0
    print(f"{PAGE.relative_to(ROOT)} is stale. Run: make docs", file=sys.stderr)
    return 1


# --- what is asked ------------------------------------------------------------------------------


def read_catalogue(text: str) -> Catalogue:
    raw = tomllib.loads(text)
    return Catalogue(
        requirements={id: Requirement(**row) for id, row in raw["requirements"].items()},
        sources=raw["sources"],
        source_ids={id: _range(span) for id, span in raw["source_ids"].items()},
        proved_by_ci=raw["proved_by_ci"],
        later=raw["later"],
        names=raw["names"],
    )


def _range(span: str) -> tuple[str, ...]:
    """`R1-R3` is R1, R2, R3."""
    first, last = (int(end.removeprefix("R")) for end in span.split("-"))
    return tuple(f"R{number}" for number in range(first, last + 1))


# --- which tests name it ------------------------------------------------------------------------


@cache
def scan(folder: Path) -> Marks:
    """The tests that name each id, found by reading their source once; nothing is run."""
    found: dict[str, set[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        for test, ids in _Reader(tree).marked():
            for id in ids:
                found.setdefault(id, set()).add(f"{path.relative_to(folder).as_posix()}::{test}")
    return {id: tuple(sorted(tests)) for id, tests in found.items()}


class _Reader:
    """Finds the `req` markers of one module, in all the places where pytest lets them stand."""

    def __init__(self, tree: ast.Module) -> None:
        self.body = tree.body
        self.values = {
            ast.unparse(target): node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
        }

    def marked(self) -> Iterator[tuple[str, set[str]]]:
        """Every test and the ids it names. `TestIt.pytestmark = …` is a state machine's way."""
        for name, value in self.values.items():
            if name.endswith(".pytestmark"):
                yield name.removesuffix(".pytestmark"), self._ids([value])
        mark = self.values.get("pytestmark")
        yield from self._tests(self.body, self._ids([mark] if mark else []), "")

    def _tests(
        self, body: list[ast.stmt], inherited: set[str], prefix: str
    ) -> Iterator[tuple[str, set[str]]]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                own = inherited | self._ids(node.decorator_list)
                yield from self._tests(node.body, own, f"{prefix}{node.name}::")
            elif isinstance(node, FunctionNode) and node.name.startswith("test"):
                yield f"{prefix}{node.name}", inherited | self._ids(node.decorator_list)

    def _ids(self, nodes: Iterable[ast.expr]) -> set[str]:
        """Every literal id of a `req` marker; names of the module's own tables are followed."""
        found: set[str] = set()
        for node in (inner for outer in nodes for inner in ast.walk(outer)):
            if isinstance(node, ast.Name) and node.id in self.values:
                found |= self._ids([self.values[node.id]])
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.req":
                found |= {str(it.value) for it in node.args if isinstance(it, ast.Constant)}
        return found


# --- whether it is covered ----------------------------------------------------------------------


def judge(catalogue: Catalogue, marks: Marks, results: Results, id: str) -> Verdict:
    """One requirement, or one of the sources' ids: all of its requirements that are due."""
    if id not in catalogue.source_ids:
        return _judge_one(catalogue, results, id)
    due = [it for it in catalogue.source_ids[id] if _due(catalogue, marks, it)]
    missing = [it for it in due if not _judge_one(catalogue, results, it).covered]
    waiting = len(catalogue.source_ids[id]) - len(due)
    words = f"{len(due) - len(missing)} of {len(due)} due requirements covered"
    words += f", {waiting} come later" if waiting else ""
    words += f"; not covered: {', '.join(missing)}" if missing else ""
    return Verdict(id, not missing, words)


def _judge_one(catalogue: Catalogue, results: Results, id: str) -> Verdict:
    if id not in catalogue.requirements:
        return Verdict(id, covered=False, words="no such requirement")
    outcomes = dict(results.get(id, []))
    passed = [test for test, outcome in outcomes.items() if outcome == "passed"]
    failed = [test for test, outcome in outcomes.items() if outcome == "failed"]
    if failed:
        return Verdict(id, covered=False, words=f"failed: {', '.join(failed)}")
    if passed:
        return Verdict(id, covered=True, words=f"covered by {len(passed)} passed")
    if id in catalogue.proved_by_ci:
        return Verdict(id, covered=True, words=f"proved by CI: {catalogue.proved_by_ci[id]}")
    return Verdict(id, covered=False, words="no test that names it has passed")


def _due(catalogue: Catalogue, marks: Marks, id: str) -> bool:
    """What a later part brings is not due, unless a test names it already."""
    return catalogue.requirements[id].later is None or id in marks


# --- the page -----------------------------------------------------------------------------------


def render(catalogue: Catalogue, marks: Marks) -> str:
    lines = [
        "# Requirements and their tests",
        "",
        "Generated by `make docs`. A test names what it proves (`@pytest.mark.req`); whether it",
        "passed is what `scripts/verify_req_coverage.py --ids …` answers after `make test`.",
        "",
        *_totals(catalogue, marks),
        *_source_ids(catalogue, marks),
    ]
    for source, name in catalogue.sources.items():
        lines += ["", f"## {source}: {name}", "", "| id | kind | asks | proved by |"]
        lines += ["|---|---|---|---|"]
        for id, asked in catalogue.requirements.items():
            if asked.source == source:
                proof = _proof(catalogue, marks, id)
                lines.append(f"| {id} | {KINDS[asked.kind]} | {asked.title} | {proof} |")
    for id, names in catalogue.names.items():
        lines += ["", f"## Names of {id}", "", "| in the source | here |", "|---|---|"]
        lines += [f"| {theirs} | {ours} |" for theirs, ours in names.items()]
    return "\n".join(lines) + "\n"


def _totals(catalogue: Catalogue, marks: Marks) -> list[str]:
    everything = catalogue.requirements
    tested = sum(id in marks for id in everything)
    by_ci = sum(id in catalogue.proved_by_ci and id not in marks for id in everything)
    later = sum(not _due(catalogue, marks, id) for id in everything)
    left = len(everything) - tested - by_ci - later
    known = f"{len(everything)} requirements: {tested} named by tests, {by_ci} proved by CI"
    return [f"{known}, {later} come with later parts, {left} open."]


def _source_ids(catalogue: Catalogue, marks: Marks) -> list[str]:
    lines = ["", "## The sources' own ids", "", "| id | requirements | due | with proof |"]
    lines += ["|---|---|---|---|"]
    for id, requirements in catalogue.source_ids.items():
        due = [it for it in requirements if _due(catalogue, marks, it)]
        proved = [it for it in due if it in marks or it in catalogue.proved_by_ci]
        span = f"{requirements[0]} to {requirements[-1]}"
        lines.append(f"| `{id}` | {span} | {len(due)} | {len(proved)} |")
    return lines


def _proof(catalogue: Catalogue, marks: Marks, id: str) -> str:
    if id in marks:
        return "<br>".join(f"`{test}`" for test in marks[id])
    if id in catalogue.proved_by_ci:
        return f"CI: {catalogue.proved_by_ci[id]}"
    part = catalogue.requirements[id].later
    return f"later: {catalogue.later[part]}" if part else "**open**"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
