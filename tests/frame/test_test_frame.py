"""What conftest.py promises: the record of requirements, strictness in CI, a home for each test."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNWANTED = ("CI", "COVERAGE_", "PYTEST_")
SAMPLE = """
import pytest

@pytest.mark.req("R1", "R2")
def test_passes(): ...

@pytest.mark.req("R2")
def test_fails(): assert False

@pytest.mark.req("R3")
def test_is_skipped(): pytest.skip("needs a moon")

@pytest.fixture
def breaks_at_the_end():
    yield
    raise RuntimeError

@pytest.mark.req("R4")
def test_breaks_at_the_end(breaks_at_the_end): ...

@pytest.mark.req("R5")
@pytest.mark.parametrize("number", [1, 2])
def test_has_rows(number): ...
"""


def run_sample(
    folder: Path, text: str, *options: str, ci: bool = False
) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_bytes((ROOT / "tests" / "conftest.py").read_bytes())
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = req\n", encoding="utf-8")
    (folder / "test_sample.py").write_text(text, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(UNWANTED)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options],
        cwd=folder,
        env={**kept, **({"CI": "true"} if ci else {})},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_run_records_the_outcome_of_every_test_that_names_an_id(
    tmp_path: Path, workers: str
) -> None:
    said = run_sample(tmp_path, SAMPLE, "-n", workers, "--req-results=build/results.json")

    file = "test_sample.py::"
    assert json.loads((tmp_path / "build" / "results.json").read_text(encoding="utf-8")) == {
        "R1": [[f"{file}test_passes", "passed"]],
        "R2": [[f"{file}test_fails", "failed"], [f"{file}test_passes", "passed"]],
        "R3": [[f"{file}test_is_skipped", "skipped"]],
        "R4": [[f"{file}test_breaks_at_the_end", "failed"]],
        "R5": [[f"{file}test_has_rows[1]", "passed"], [f"{file}test_has_rows[2]", "passed"]],
    }, said.stdout


MISSING_PARTS = """
import pytest

def test_skips_itself(): pytest.skip("needs a moon")

@pytest.mark.skipif(True, reason="needs a sun")
def test_is_marked(): ...
"""


def test_a_missing_part_is_a_skip_at_home_and_a_failure_in_ci(tmp_path: Path) -> None:
    whole = 'import pytest\npytest.skip("needs a star", allow_module_level=True)'
    (tmp_path / "test_whole_module.py").write_text(whole, encoding="utf-8")
    options = ("--continue-on-collection-errors",)

    at_home = run_sample(tmp_path, MISSING_PARTS, *options)
    in_ci = run_sample(tmp_path, MISSING_PARTS, *options, ci=True)

    assert "3 skipped" in at_home.stdout
    assert in_ci.returncode == 1
    assert "1 failed, 2 errors" in in_ci.stdout
    for part in ("moon", "sun", "star"):
        assert f"nothing may be missing: needs a {part}" in in_ci.stdout


def test_in_ci_any_other_skip_stays_a_skip(tmp_path: Path) -> None:
    text = 'import pytest\ndef test_it(): pytest.skip("only on another system")'

    assert run_sample(tmp_path, text, ci=True).returncode == 0


def test_every_test_has_a_home_of_its_own(home: Path, tmp_path: Path) -> None:
    assert os.environ["LOCKGATE_HOME"] == str(home)
    assert Path.home().parent == tmp_path
    assert "LOCKGATE_TOKEN" not in os.environ


def test_the_default_data_folder_cannot_be_made() -> None:
    with pytest.raises(NotADirectoryError):
        Path(os.environ["XDG_STATE_HOME"], "lockgate").mkdir(parents=True)
