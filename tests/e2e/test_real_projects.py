"""`lockgate init` on real projects, from their source distributions: green, red on a fault."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from lockgate.adapters.sandbox import trouble
from tests.e2e.test_first_day import broken
from tests.faces.shell import Shell

WHY_NOT = trouble()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(WHY_NOT is not None, reason=f"needs a sandbox: {WHY_NOT}"),
]

LONG = 900  # seconds

# A distribution, tests that it has at least, a fault: the file, and what is changed in it
PROJECTS = [
    ("iniconfig==2.3.1", 50, "src/iniconfig/__init__.py", "return ", "raise ValueError; return "),
    ("xmltodict==1.0.4", 100, "xmltodict.py", "return ", "raise ValueError; return "),
    ("pyflakes==4.1.0", 700, "pyflakes/checker.py", "return ", "raise ValueError; return "),
    ("tomlkit==0.15.2", 500, "tomlkit/parser.py", "return ", "raise ValueError; return "),
    ("humanize==4.16.0", 700, "src/humanize/filesize.py", "return ", "raise ValueError; return "),
]


def unpacked(name: str, place: Path) -> Shell:
    """Its source distribution as a repository; skipped where it cannot be had."""
    place.mkdir()
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:"]
    got = subprocess.run([*pip, name], cwd=place, capture_output=True, timeout=300, check=False)
    archives = list(place.glob("*.tar.gz"))
    if got.returncode != 0 or not archives:
        pytest.skip(f"needs the source distribution of {name} from the package index")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(place, filter="data")
    shell = Shell(place)
    next(it for it in place.iterdir() if (it / "PKG-INFO").is_file()).rename(shell.repo)
    shell.git("init", "--quiet", "--initial-branch=main")
    shell.git("config", "user.name", "Test")
    shell.git("config", "user.email", "test@localhost")
    shell.git("add", "--all", "--force")
    shell.git("commit", "--quiet", "--message", "A release")
    return shell


@pytest.mark.parametrize(("name", "tests", "file", "before", "after"), PROJECTS)
def test_a_real_project_is_ready_after_init_alone(
    tmp_path: Path, name: str, tests: int, file: str, before: str, after: str
) -> None:
    shell = unpacked(name, tmp_path / "project")

    made = shell.program("init", "--json", seconds=LONG).facts

    assert made["ready"] is True, made
    assert made["baseline"][0]["tests"] >= tests
    assert shell.program("gate", "run", seconds=LONG).code == 0
    broken(shell, file, before, after)
    assert shell.program("gate", "run", "--gate", "tests", seconds=LONG).code == 1
