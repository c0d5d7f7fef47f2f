"""Changes that bring dependencies, through the command line with what `init` writes."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from lockgate.adapters.sandbox import trouble
from tests.e2e.test_first_day import project
from tests.faces.shell import Shell
from tests.wheels import RUNNER, installed, wheel

WHY_NOT = trouble()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"needs a sandbox: {WHY_NOT}")

# A build backend without dependencies, as a project may bring one: it writes what pip wants.
BACKEND = """\
import os, pathlib, tomllib, zipfile

def _made(directory, inside):
    about = tomllib.loads(pathlib.Path("pyproject.toml").read_text())["project"]
    name, version = about["name"], about["version"]
    meta = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {it}\\n" for it in about.get("dependencies", ()))
    points = about.get("entry-points", {})
    text = "".join(
        f"[{group}]\\n" + "".join(f"{k} = {v}\\n" for k, v in them.items())
        for group, them in points.items()
    )
    inside = dict(inside) | {
        f"{meta}/METADATA": f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n{needs}",
        f"{meta}/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        f"{meta}/RECORD": "",
    } | ({f"{meta}/entry_points.txt": text} if text else {})
    file = f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, file), "w") as made:
        for path, content in inside.items():
            made.writestr(path, content)
    return file

def build_editable(directory, config_settings=None, metadata_directory=None):
    here = pathlib.Path.cwd()
    place = here / "src" if (here / "src").is_dir() else here
    return _made(directory, {"app-places.pth": f"{place}\\n"})

def build_wheel(directory, config_settings=None, metadata_directory=None):
    return _made(directory, {})
"""
PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["building"]

[project]
name = "app"
version = "1.0"
"""
CODE = "from lib import VALUE\n\n\ndef doubled():\n    return 2 * VALUE\n"
TESTS = "from app.numbers import doubled\n\n\ndef test_doubled():\n    assert doubled() in (2, 4)\n"
NEEDED = "--no-index\n--find-links ./wheels\n" + "".join(f"{it}\n" for it in RUNNER)


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project on which `init` was run; each test has a copy."""
    place = tmp_path_factory.mktemp("ready")
    wheels = place / "repo" / "wheels"
    installed(wheels, *RUNNER)
    for version in ("1.0", "2.0"):
        wheel(wheels, "lib", version, {"lib/__init__.py": f"VALUE = {version[0]}\n"})
    wheel(wheels, "extra", "1.0", {"extra.py": "def one():\n    return 1\n"})
    fixture = "import pytest\n\n\n@pytest.fixture\ndef seven():\n    return 7\n"
    plugin = "[pytest11]\nseven = pytest_seven\n"
    wheel(wheels, "pytest_seven", "1.0", {"pytest_seven.py": fixture}, entry_points=plugin)
    files = {
        "pyproject.toml": PYPROJECT,
        "building/backend.py": BACKEND,
        "requirements-test.txt": f"{NEEDED}lib==1.0\n",
        "app/__init__.py": "",
        "app/numbers.py": CODE,
        "tests/test_numbers.py": TESTS,
        ".gitignore": ".venv\n__pycache__\n*.egg-info\n",
    }
    shell = project(place, files)
    made = shell.program("init", "--json", seconds=300)
    assert made.facts["ready"] is True, made
    return place


@pytest.fixture
def shell(ready: Path, tmp_path: Path) -> Shell:
    shutil.copytree(ready, tmp_path / "copy", symlinks=True)
    return Shell(tmp_path / "copy")


def branched(shell: Shell, files: Mapping[str, str | None]) -> None:
    shell.git("checkout", "--quiet", "-b", "change")
    for name, text in files.items():
        path = shell.repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.unlink()
        else:
            path.write_text(text, encoding="utf-8")
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "--message", "The change")


def test_a_dependency_is_added_and_used(shell: Shell) -> None:
    branched(
        shell,
        {
            "requirements-test.txt": f"{NEEDED}lib==1.0\nextra\n",
            "app/numbers.py": CODE.replace("2 * VALUE", "2 * VALUE * one()").replace(
                "from lib", "from extra import one\nfrom lib"
            ),
        },
    )

    said = shell.program("gate", "run", seconds=300)

    assert said.code == 0, said
    assert "adds extra 1.0" in said.out


@pytest.mark.slow
def test_a_test_plug_in_is_added_and_is_one_question(shell: Shell) -> None:
    branched(
        shell,
        {
            "requirements-test.txt": f"{NEEDED}lib==1.0\npytest-seven\n",
            "tests/test_seven.py": "def test_seven(seven):\n    assert seven == 7\n",
        },
    )

    said = shell.program("gate", "run", seconds=300)

    assert said.code == 0, said
    assert said.out.count("it adds pytest-seven 1.0 (entry points: pytest11)") == 1
    assert "a task would ask you to approve: requirements-test.txt\n" in said.out


@pytest.mark.slow
def test_a_dependency_is_upgraded_that_the_code_relies_on(shell: Shell) -> None:
    branched(
        shell,
        {
            "requirements-test.txt": f"{NEEDED}lib==2.0\n",
            "tests/test_upgrade.py": (
                "from app.numbers import doubled\n\n\n"
                "def test_upgraded():\n    assert doubled() == 4\n"
            ),
        },
    )

    said = shell.program("gate", "run", seconds=300)

    assert said.code == 0, said
    assert "lib 1.0 → 2.0; what judges is as on base" in said.out


@pytest.mark.slow
def test_a_project_moves_to_a_src_layout(shell: Shell) -> None:
    branched(
        shell,
        {
            "app/__init__.py": None,
            "app/numbers.py": None,
            "src/app/__init__.py": "",
            "src/app/numbers.py": CODE,
        },
    )

    said = shell.program("gate", "run", seconds=300)

    assert said.code == 0, said
    assert "what judges is as on base" in said.out


@pytest.mark.slow
def test_a_dependency_that_is_nowhere_fails_with_the_installer_s_words(shell: Shell) -> None:
    branched(shell, {"requirements-test.txt": f"{NEEDED}lib==3.0\n"})

    said = shell.program("gate", "run", seconds=300)

    assert said.code == 1, said
    assert said.out.count("No matching distribution found for lib==3.0") == 1, said
