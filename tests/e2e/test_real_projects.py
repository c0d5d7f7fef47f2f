"""`lockgate init` on real projects, from their source distributions, and the first task there."""

import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from lockgate.adapters.sandbox import trouble
from tests.e2e.real_project import measured, placed
from tests.faces.shell import Shell

WHY_NOT = trouble()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(WHY_NOT is not None, reason=f"needs a sandbox: {WHY_NOT}"),
]

LONG = 900  # seconds

# A distribution, and the command that its tox.ini or its workflows test it by
PROJECTS = [
    ("iniconfig==2.3.1", "pytest"),
    ("xmltodict==1.0.4", "pytest"),
    ("pyflakes==4.1.0", "python -m unittest discover pyflakes"),
    ("tomlkit==0.15.2", "pytest"),
    ("humanize==4.16.0", "pytest"),
]

SCRIPT = """
[[worker]]
steps = [
  { append = "FILE", text = "\\nQuestions are welcome in the issue tracker.\\n" },
  { section = "Handoff", text = "DONE: it says where to ask" },
  { signal = "complete" },
]

[[reviewer]]
steps = [ { section = "Review", text = "PASS" }, { signal = "update working" } ]
"""
GOAL = "Say where to ask"


def unpacked(name: str, place: Path) -> Path:
    """Its source distribution; skipped where it cannot be had."""
    place.mkdir()
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:"]
    got = subprocess.run([*pip, name], cwd=place, capture_output=True, timeout=300, check=False)
    archives = list(place.glob("*.tar.gz"))
    if got.returncode != 0 or not archives:
        pytest.skip(f"needs the source distribution of {name} from the package index")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(place, filter="data")
    return next(it for it in place.iterdir() if (it / "PKG-INFO").is_file())


@pytest.mark.parametrize(("name", "own"), PROJECTS)
def test_a_real_project_counts_after_init_alone(tmp_path: Path, name: str, own: str) -> None:
    shell = placed(unpacked(name, tmp_path / "sources"), tmp_path / "project")

    found = measured(shell, name, [own])

    sys.stdout.write(f"{found.row}\n")
    assert found.counts, found


@pytest.mark.parametrize("name", [name for name, _ in PROJECTS])
def test_the_first_task_changes_one_file_and_lands_by_one_approval(
    tmp_path: Path, name: str
) -> None:
    shell = placed(unpacked(name, tmp_path / "sources"), tmp_path / "project")
    readme = next(it.name for it in sorted(shell.repo.iterdir()) if it.name.startswith("README"))
    script = tmp_path / "script.toml"
    script.write_text(SCRIPT.replace("FILE", readme), encoding="utf-8")
    shell.alone = False
    env = {"LOCKGATE_SCRIPT": str(script)}
    try:
        made = shell.program("init", "--agent", "scripted", "--json", seconds=LONG)
        ran = shell.program("run", GOAL, "--json", env=env, seconds=LONG)
        shell.program("approve", ran.facts["id"])
        landed = _landed(shell, ran.facts["id"])
    finally:
        shell.program("down")

    assert (made.facts["ready"], ran.code, landed) == (True, 0, True), (made, ran)
    change = ("log", "--no-merges", "-1", "main")
    assert shell.git(*change, "--format=%an <%ae>: %s").strip() == f"Test <test@localhost>: {GOAL}"
    assert "Co-authored-by: scripted" in shell.git(*change, "--format=%b")
    assert shell.git(*change, "--format=", "--name-only").split() == [readme]


def _landed(shell: Shell, id: str) -> bool:
    until = time.monotonic() + LONG
    while time.monotonic() < until:
        if shell.program("task", "show", id, "--json").facts["status"] == "done":
            return True
        time.sleep(1)
    return False
