"""The layers: every import contract holds on the tree and breaks on a planted violation."""

import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.unmeasured

ROOT = Path(__file__).parents[2]
PYPROJECT = ROOT / "pyproject.toml"
CONTRACTS = {
    contract["id"]: contract["name"]
    for contract in tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
}


@dataclass(frozen=True, slots=True)
class Planted:
    """A line that breaks one contract, added at the end of one file (made where it is missing)."""

    contract: str
    file: str
    line: str
    also: tuple[tuple[str, str], ...] = ()


PLANTED = [
    Planted("inward", "core/planted.py", "import lockgate.errors"),
    Planted("inward", "errors.py", "import lockgate.ports"),
    Planted("inward", "ports.py", "import lockgate.services"),
    Planted("inward", "services/planted.py", "import lockgate.adapters"),
    Planted("inward", "adapters/run.py", "import lockgate.services"),
    Planted("inward", "bootstrap/app.py", "import lockgate.faces"),
    Planted("inward", "unplaced.py", "import lockgate.core"),
    Planted("core", "core/planted.py", "import os"),
    Planted("core", "core/planted.py", "def hidden(): import time"),
    Planted("core", "core/planted.py", "from pathlib import Path"),
    Planted("core-rooms", "core/model/task.py", "import lockgate.core.text.steering"),
    Planted("core-rooms", "core/review/guides.py", "import lockgate.core.train.plan"),
    Planted("core-rooms", "core/unplaced.py", "import lockgate.core.model.task"),
    Planted("services", "services/planted.py", "import sqlite3"),
    Planted("services", "ports.py", "import subprocess"),
    Planted("services-rooms", "services/task/tasks.py", "import lockgate.services.gates.runner"),
    Planted("services-rooms", "services/unplaced.py", "import lockgate.core"),
    Planted("processes", "adapters/store/planted.py", "from subprocess import run"),
    Planted("processes", "faces/cli/planted.py", "import subprocess"),
    Planted("processes", "adapters/sessions/sessions.py", "import subprocess"),
    Planted("temporal", "bootstrap/planted.py", "def hidden(): import temporalio.client"),
    Planted("faces", "faces/words/task.py", "import lockgate.faces.cli"),
    Planted("faces", "faces/client.py", "import lockgate.faces.words"),
    Planted("faces", "faces/unplaced.py", "import lockgate.core"),
    Planted("laptop", "faces/laptop/planted.py", "def hidden(): import fcntl"),
    Planted("laptop", "faces/client.py", "import lockgate.bootstrap"),
    Planted("laptop", "faces/pipe.py", "import click"),
    Planted("through-app", "faces/cli/look/tasks.py", "from lockgate.ports import Store"),
    Planted("through-app", "faces/demo/story.py", "import lockgate.ports.work"),
    Planted("adapters", "adapters/store/planted.py", "import lockgate.adapters.config"),
    Planted("adapters", "adapters/run.py", "import lockgate.adapters.store"),
    Planted("adapters", "adapters/run.py", "import lockgate.adapters.sandbox"),
    Planted(
        "adapters", "adapters/sandbox/probe.py", "import lockgate.adapters.sessions.runner.proc"
    ),
    Planted("adapters", "adapters/unplaced.py", "import lockgate.core"),
    Planted("bootstrap", "faces/cli/planted.py", "import lockgate.adapters.run"),
    Planted("bootstrap", "services/planted.py", "from lockgate.adapters import run"),
    Planted(
        "cycles",
        "core/planted.py",
        "import lockgate.core.planted_too",
        also=(("core/planted_too.py", "import lockgate.core.planted"),),
    ),
]


def lint_imports(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """What import-linter says of the package in `folder`, by the contracts of pyproject.toml."""
    command = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command as it; it()",
    ]
    return subprocess.run(
        [*command, "--config", str(PYPROJECT), "--no-cache", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def copy_of_the_tree(folder: Path) -> Path:
    return shutil.copytree(
        ROOT / "src" / "lockgate",
        folder / "lockgate",
        ignore=shutil.ignore_patterns("__pycache__"),
    )


def test_the_contracts_hold_on_the_tree() -> None:
    said = lint_imports(ROOT / "src")

    assert said.returncode == 0, said.stdout
    assert f"{len(CONTRACTS)} kept, 0 broken" in said.stdout


def test_every_contract_has_a_violation_to_break_it() -> None:
    assert {planted.contract for planted in PLANTED} == set(CONTRACTS)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda it: f"{it.contract}: {it.file}: {it.line}")
def test_a_planted_import_breaks_its_contract(planted: Planted, tmp_path: Path) -> None:
    package = copy_of_the_tree(tmp_path)

    for file, line in ((planted.file, planted.line), *planted.also):
        with (package / file).open("a", encoding="utf-8") as end:
            end.write(f"\n{line}\n")
    said = lint_imports(tmp_path, "--contract", planted.contract)

    assert said.returncode == 1, said.stdout + said.stderr
    assert f"{CONTRACTS[planted.contract]} BROKEN" in said.stdout
