"""The plug-in that plants faults, loaded by a pytest of its own as in a judged tree."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from xml.etree import ElementTree as ET

import pytest

from lockgate.adapters.test_sources import FileTestSources
from lockgate.core.differential.faults import Fault, drawn, equal_functions, faults_in
from lockgate.core.differential.test_files import Runner

CODE = """\
def double(x):
    return x * 2


def page(rows):
    return "\\n".join(rows)
"""
TESTS = """\
from pathlib import Path

from app import double, page


def test_double():
    assert double(4) == 8


def test_page():
    wanted = (Path(__file__).parent / "gold.txt").read_text().strip()
    assert page(["a", "b"]) == wanted
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    (tmp_path / ".probe").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "app.py").write_text(CODE)
    (tmp_path / "tests/test_app.py").write_text(TESTS)
    (tmp_path / "tests/gold.txt").write_text("a\nb\n")
    (tmp_path / ".probe/xprobe.py").write_text(FileTestSources().probe(Runner.PYTEST))
    return tmp_path


def told(
    faults: tuple[Fault, ...],
    tree: Path,
    known: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    **more: object,
) -> Mapping[str, ET.Element]:
    """What it left, by name."""
    plan: dict[str, object] = {
        "nonce": "n",
        "tests": [],
        "support": [],
        "seconds": 20,
        "side": "base",
        "enough": 12,
        **more,
    }
    spans = [
        (it, (it.span.line, it.span.column, it.span.end_line, it.span.end_column)) for it in faults
    ]
    plan["faults"] = [
        {
            "path": it.path,
            "starts": it.starts,
            "span": span,
            "new": it.new,
            "neutral": it.neutral,
            "known": known.get(it.mark),
        }
        for it, span in spans
    ]
    (tree / ".probe/xprobe.json").write_text(json.dumps(plan))
    (tree / ".probe/at").write_text(str(tree / "out"))
    environ = {
        "PYTHONPATH": f"{tree}/.probe:{tree}",
        "PATH": "/usr/bin:/bin",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "xprobe"]
    ran = subprocess.run(command, cwd=tree, env=environ, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stdout
    return {str(it.get("name")): it for it in ET.parse(tree / "out/n.xml").getroot()}  # noqa: S314


def faults() -> tuple[Fault, ...]:
    return drawn(faults_in("app.py", CODE, equal_functions({"app.py": CODE})), "seed")


def outcomes(seen: Mapping[str, ET.Element], every: tuple[Fault, ...]) -> dict[Fault, str]:
    numbered = {name: it for name, it in seen.items() if name.isdigit()}
    return {every[int(name)]: (it[0].tag if len(it) else "unseen") for name, it in numbered.items()}


def test_faults_that_a_test_notices_name_the_line_that_did(tree: Path) -> None:
    every = faults()

    seen = told(every, tree, tests=["tests/test_app.py::test_double"])

    assert "test tests/test_app.py::test_double" in seen
    found = outcomes(seen, every)
    assert {it.function for it in found if not it.neutral} == {"double"}
    assert {word for it, word in found.items() if it.neutral} == {"unseen"}
    noticed = [
        seen[name]
        for name, it in zip(map(str, range(99)), every, strict=False)
        if found.get(it) == "failure"
    ]
    assert noticed
    assert all("assert double(4) == 8" in str(it[0].get("message")) for it in noticed)
    assert (tree / "app.py").read_text() == CODE


def test_what_is_known_of_a_fault_is_told_and_not_tried_again(tree: Path) -> None:
    every = tuple(it for it in faults() if it.function == "double")[:2]
    one, two = (it.mark for it in every)
    known = {one: ("failed", "t | known", "t"), two: ("passed", "")}

    seen = told(every, tree, known, tests=["tests/test_app.py::test_double"])

    assert list(outcomes(seen, every).values()) == ["failure", "unseen"]
    assert seen["0"][0].get("message") == "t | known"
    assert "0 by t" in seen


def test_a_file_that_tests_read_names_the_tests_that_read_it(tree: Path) -> None:
    seen = told((), tree, support=["tests/gold.txt"])

    assert [it for it in seen if it.startswith("test ")] == ["test tests/test_app.py::test_page"]


def test_code_that_the_changes_tests_do_not_run_any_more_is_tried_first(tree: Path) -> None:
    (tree / "tests/test_app.py").write_text(TESTS.replace("double(4) == 8", "double"))
    every = tuple(sorted(faults(), key=lambda it: it.function != "page"))
    tests = ["tests/test_app.py::test_double", "tests/test_app.py::test_page"]

    seen = told(every, tree, tests=tests, side="change", enough=1)

    assert {it.function for it in outcomes(seen, every) if not it.neutral} == {"double"}


def test_a_weaker_test_of_the_change_misses_faults_and_that_is_enough_soon(tree: Path) -> None:
    (tree / "tests/test_app.py").write_text(TESTS.replace("double(4) == 8", "double(4)"))
    every = tuple(it for it in faults() if it.function == "double" and not it.neutral)

    seen = told(every, tree, tests=["tests/test_app.py::test_double"], side="change", enough=1)

    found = outcomes(seen, every)
    assert list(found.values())[-1] == "unseen"
    assert list(found.values()).count("unseen") == 1


def test_a_fault_in_what_a_test_starts_as_a_program_is_noticed(tree: Path) -> None:
    (tree / "tests/test_app.py").write_text(
        "import subprocess, sys\n\n\ndef test_program():\n"
        "    code = 'import app; raise SystemExit(app.double(4) != 8)'\n"
        "    subprocess.run([sys.executable, '-c', code], check=True)\n"
    )
    every = tuple(it for it in faults() if it.function == "double" and it.new == "(x)")

    seen = told(every, tree, tests=["tests/test_app.py::test_program"])

    assert outcomes(seen, every) == {every[0]: "failure"}


def test_tests_that_do_not_end_are_said_to_be_trouble(tree: Path) -> None:
    (tree / "tests/test_app.py").write_text("import time\n\n\ndef test_x():\n    time.sleep(60)\n")

    seen = told((), tree, tests=["tests/test_app.py::test_x"], seconds=1)

    assert "do not end" in str(seen["trouble"][0].get("message"))


def test_there_is_none_for_other_runners() -> None:
    assert FileTestSources().probe(Runner.GO) == ""


def test_every_test_that_notices_a_fault_is_named_where_that_is_asked(tree: Path) -> None:
    every = faults()
    names = ["tests/test_app.py::test_double", "tests/test_app.py::test_again"]
    file = tree / "tests/test_app.py"
    file.write_text(file.read_text() + "\n\ndef test_again():\n    assert double(2) == 4\n")

    seen = told(every, tree, tests=names, each=True)

    by = [name.partition(" by ")[2] for name in seen if " by " in name]
    assert {*names} <= {*by}
    assert not any(" by " in name for name in told(every, tree, tests=names))
