"""The program that plants faults in JavaScript, with node's own test runner."""

import json
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from lockgate.adapters.test_sources import FileTestSources
from lockgate.core.differential.faults import Fault
from lockgate.core.differential.script_faults import equal_lines, script_faults_in
from lockgate.core.differential.test_files import Runner

COMMAND = 'node --test --test-reporter=junit --test-reporter-destination="$OUT/r.xml"'
CODE = "export const add = (a, b) => a + b;\nexport const sub = (a, b) => a - b;\n"
TESTS = """\
import assert from "node:assert";
import test from "node:test";
import { add, sub } from "./calc.mjs";

test("adds", () => assert.equal(add(1, 2), 3));
test("subtracts", () => assert.equal(sub(3, 2), 1));
"""
pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for folder in (".n", "out"):
        (tmp_path / folder).mkdir()
    (tmp_path / "calc.mjs").write_text(CODE)
    (tmp_path / "calc.test.mjs").write_text(TESTS)
    (tmp_path / ".n/xn.mjs").write_text(FileTestSources().probe(Runner.NODE))
    (tmp_path / ".n/at").write_text(str(tmp_path / "out"))
    return tmp_path


def told(
    tree: Path,
    faults: tuple[Fault, ...],
    known: Mapping[Fault, tuple[str, ...]] = MappingProxyType({}),
    **more: object,
) -> Mapping[str, ET.Element]:
    """What it left, by name."""
    plan: dict[str, object] = {
        "nonce": "n",
        "tests": ["calc.test.mjs::adds"],
        "support": [],
        "seconds": 60,
        "side": "base",
        "enough": 12,
        "command": COMMAND,
        **more,
    }
    plan["faults"] = [
        {
            "path": it.path,
            "span": (it.span.line, it.span.column, it.span.end_line, it.span.end_column),
            "new": it.new,
            "known": known.get(it),
        }
        for it in faults
    ]
    (tree / ".n/xn.json").write_text(json.dumps(plan))
    subprocess.run(["node", ".n/xn.mjs"], cwd=tree, capture_output=True, check=True)
    return {str(it.get("name")): it for it in ET.parse(tree / "out/n.xml").getroot()}  # noqa: S314


def faults() -> tuple[Fault, ...]:
    every = script_faults_in("calc.mjs", CODE, equal_lines({"calc.mjs": CODE}))
    return tuple(it for it in every if it.new == "*")


def outcome(it: ET.Element) -> str:
    return it[0].tag if len(it) else "passed"


def test_faults_that_a_chosen_test_notices_are_told_from_those_it_does_not(tree: Path) -> None:
    seen = told(tree, faults())

    assert [outcome(seen[str(it)]) for it in range(2)] == ["failure", "passed"]
    assert str(seen["0"][0].get("message")).startswith("adds | ")
    assert {"test adds", "all"} < seen.keys()
    assert (tree / "calc.mjs").read_text() == CODE, "nothing is left of them"


def test_a_weaker_test_misses_faults_and_no_more_than_are_enough_are_tried(tree: Path) -> None:
    weaker = TESTS.replace("assert.equal(add(1, 2), 3)", "assert.ok(add(1, 2))")
    (tree / "calc.test.mjs").write_text(weaker)

    seen = told(tree, faults(), side="change", enough=1)

    assert outcome(seen["0"]) == "passed"
    assert "1" not in seen
    assert "all" not in seen


def test_what_is_no_javascript_any_more_and_what_never_ends_is_left_out(tree: Path) -> None:
    [first, *_] = faults()
    span = first.span
    odd = Fault(path="calc.mjs", function="f", starts=1, span=span, old="+", new="+ )")

    seen = told(tree, (odd,))
    late = told(tree, (first,), command="sleep 9", seconds=0)

    assert [*seen] == ["test adds", "all"], "it is no fault, and none is left out"
    assert outcome(late["trouble"]) == "error"


def test_what_is_known_of_a_fault_is_told_and_not_tried_again(tree: Path) -> None:
    one, two = faults()

    seen = told(tree, (one, two), {one: ("passed", ""), two: ("failed", "adds | known")})

    assert [outcome(seen[str(it)]) for it in range(2)] == ["passed", "failure"]
    assert seen["1"][0].get("message") == "adds | known"


def test_files_that_tests_use_make_every_test_count(tree: Path) -> None:
    seen = told(tree, faults(), tests=[], support=["golden.json"])

    assert [outcome(seen[str(it)]) for it in range(2)] == ["failure", "failure"]
