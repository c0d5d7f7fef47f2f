"""The Makefile's Pythons: those that the package claims, each in an environment of its own."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    place = tmp_path / "checkout"
    (place / "scripts").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "scripts/find_python.sh"):
        shutil.copy(ROOT / name, place / name)
    return place


def would(checkout: Path, *argv: str) -> str:
    """What make would run."""
    done = ask(checkout, *argv)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ask(checkout: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "-n", *argv],
        cwd=checkout,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_suite_runs_on_the_pythons_that_the_package_claims() -> None:
    [listed] = re.findall(r"^PYTHONS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    claimed = [it.rpartition(" ")[2] for it in project["classifiers"] if ":: 3." in it]

    assert listed.split() == claimed


def test_a_python_that_is_named_has_an_environment_beside_the_common_one(checkout: Path) -> None:
    (checkout / ".venv" / "bin").mkdir(parents=True)
    (checkout / ".venv" / "bin" / "python").touch()

    common = would(checkout, "suite")
    named = would(checkout, "suite", f"PYTHON={sys.executable}")

    assert ".venv/bin/pytest" in common
    assert " -m venv " not in common
    assert f"{sys.executable} -m venv .venv-{VERSION}\n" in named
    assert f".venv-{VERSION}/bin/pytest" in named
    assert ".venv/" not in named.replace(sys.executable, "")


def test_a_python_that_does_not_run_is_named(checkout: Path) -> None:
    done = ask(checkout, "suite", "PYTHON=no-such-python")

    assert done.returncode == 2
    assert "no-such-python does not run here; name another" in done.stderr


def test_where_a_name_on_the_path_does_not_run_pyenvs_own_is_taken(tmp_path: Path) -> None:
    shims, pyenvs = tmp_path / "shims", tmp_path / "versions" / "3.99.0" / "bin"
    for folder, text in ((shims, "exit 127"), (pyenvs, f'exec "{sys.executable}" "$@"')):
        folder.mkdir(parents=True)
        (folder / "python3.99").write_text(f"#!/bin/sh\n{text}\n")
        (folder / "python3.99").chmod(0o755)

    found = subprocess.run(
        ["sh", str(ROOT / "scripts" / "find_python.sh"), "python3.99"],
        env={"PATH": f"{shims}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert found.stdout == f"{sys.executable} {VERSION}\n"


def test_to_ask_what_soak_would_do_runs_nothing(checkout: Path) -> None:
    asked = would(checkout, "soak")

    assert "make pythons" in asked
    assert "scripts/find_python.sh" not in asked
