"""The table "Where do I change" of ARCHITECTURE.md, as far as a program can hold it."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path

import pytest

from lockgate.adapters.harnesses.registry import MODULES
from lockgate.adapters.reports import read
from lockgate.adapters.store.sqlite import SqliteStore
from lockgate.core.config.settings import HARNESSES
from lockgate.core.lifecycle.map import RULES
from lockgate.core.model.gates import Report
from lockgate.core.model.task import GateKind, Status
from lockgate.faces.words import gate, task

pytestmark = pytest.mark.unmeasured

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "lockgate"
PACKAGE = ROOT / "src" / "lockgate"
BY_CONTENT = {Report.JUNIT, Report.SARIF}  # known by their first bytes, not by what they print


def test_every_path_that_the_page_names_is_there() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")

    named = set(re.findall(r"`((?:core|services|adapters|faces|bootstrap|ports)/[\w/.]*)`", page))

    assert len(named) > 30
    modules = {it for it in named if not (PACKAGE / it).exists()}
    assert {it for it in modules if not (PACKAGE / f"{it}.py").exists()} == set()


def test_every_status_has_a_mark_and_stands_in_a_rule() -> None:
    assert set(task.MARKS) == set(Status)
    assert {it for rule in RULES for it in (rule.source, rule.target)} == set(Status)


@pytest.mark.req("R191")
def test_the_database_takes_every_status_and_no_other(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "lockgate.db")) as store:
        [row] = store.database.read("SELECT sql FROM sqlite_master WHERE name = 'tasks'", {})

    allowed = re.search(r"status IN \(([^)]*)\)", str(row["sql"]))

    assert allowed is not None
    assert set(re.findall(r"'(\w+)'", allowed[1])) == {it.name for it in Status}


@pytest.mark.parametrize("table", [gate.DOES, gate.PASSES, gate.FAILS])
def test_every_kind_of_gate_has_its_words(table) -> None:
    assert set(table) == set(GateKind)


@pytest.mark.parametrize("module", MODULES.values())
def test_every_agent_of_the_registry_has_a_harness(module) -> None:
    assert import_module(f"lockgate.adapters.harnesses.{module}").HARNESS.install


def test_the_registry_has_the_agents_that_a_configuration_may_name_and_no_others() -> None:
    assert set(MODULES) == set(HARNESSES)


def test_every_report_format_has_a_reader() -> None:
    by_words = {report for report, _, _ in read.SPOKEN}

    assert by_words | BY_CONTENT == set(Report) - {Report.GENERIC}


def test_a_task_is_made_only_where_one_is_created_or_read_from_its_row() -> None:
    makers = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Task"
    }

    assert makers == {"services/task/tasks.py", "adapters/store/rows.py"}


BEHIND_APP = {
    *("store", "sessions", "workspaces", "coordinator", "harnesses", "credentials"),
    *("repository", "witness", "database"),
}


def test_no_face_reaches_behind_the_services_of_app() -> None:
    found = {
        f"{path.name}: {ast.unparse(node)}"
        for path, node in _in_faces()
        if isinstance(node, ast.Attribute)
        and node.attr in BEHIND_APP
        and ast.unparse(node.value) != "view"  # a TaskView, whose sessions are rows
    }

    assert found == set()


def test_no_face_builds_a_service() -> None:
    ports = {
        node.name
        for path in (SOURCE / "ports").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and "Protocol" in map(ast.unparse, node.bases)
    }
    services = {
        node.name
        for path in (SOURCE / "services").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        and {ast.unparse(it.annotation) for it in node.body if isinstance(it, ast.AnnAssign)}
        & {*ports, "Coordinator", "GateRunner", "BaseConfiguration"}
    }
    built = {
        ast.unparse(node.func)
        for _, node in _in_faces()
        if isinstance(node, ast.Call) and ast.unparse(node.func) in services
    }

    assert {"Views", "Repinning", "Trial", "Initialiser"} <= services
    assert built == set()


def _in_faces() -> Iterator[tuple[Path, ast.AST]]:
    for path in (SOURCE / "faces").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            yield path, node


# What has no closed list of kinds: text, JSON, Python's syntax, tokens; and pairs of statuses, of
# which a match names those that differ.
OPEN = {
    "adapters/config/load.py",
    "adapters/config/when.py",
    "adapters/test_sources/read.py",
    "adapters/test_sources/python.py",
    "adapters/train/repository.py",
    "core/config/shell_masks.py",
    "core/differential/faults.py",  # kinds of syntax, which Python adds to
    "core/differential/script_faults.py",  # kinds of words, of which few can be a fault
    "core/lifecycle/moves.py",
    "core/lifecycle/transition.py",
    "core/review/submission.py",
    "faces/tui/actions/on_tasks.py",  # these: a key asks for anything
    "faces/tui/screens/base.py",
    "faces/tui/screens/board.py",
    "faces/tui/screens/output.py",
    "faces/tui/screens/review.py",
}


def test_a_default_arm_stands_only_over_what_has_no_closed_list_of_kinds() -> None:
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.match_case) and ast.unparse(node.pattern) == "_"
    }

    assert found == OPEN


ALONE = (
    "adapters/harnesses/claude_live.py",
    "adapters/harnesses/scripted_player.py",
    "adapters/sandbox/cgroup.py",  # the runner loads it where it needs it
    "adapters/sandbox/launch.py",
    "adapters/sandbox/port_proxy.py",
    "adapters/sessions/runner/main.py",
    "faces/client.py",
)


@pytest.mark.parametrize("program", ALONE)
def test_a_program_that_is_started_by_its_path_loads_only_the_standard_library(program) -> None:
    """Without site-packages, as it is started: fast, and from wherever its sandbox shows it."""
    script = (
        "import runpy, sys; runpy.run_path(sys.argv[1], run_name='loaded'); print(*sys.modules)"
    )

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, str(SOURCE / program)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert not {"msgspec", "pydantic", "click"} & {*done.stdout.split()}
