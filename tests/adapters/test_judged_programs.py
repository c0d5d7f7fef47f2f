"""The programs that are copied into judged trees: reports of unittest, files that tests open."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lockgate.adapters.reports import read_reports
from lockgate.adapters.test_sources import FileTestSources
from lockgate.core.differential.plan import opened, watched
from lockgate.core.differential.test_files import Runner
from lockgate.core.model.results import Outcome, ReportRead

CASES = """\
import unittest
from pathlib import Path

import app


class Cases(unittest.TestCase):
    def test_green(self):
        self.assertEqual(app.data(), "own")

    def test_gold(self):
        with open("gold/a.txt") as file:
            self.assertEqual(file.read(), "a")

    def test_red(self):
        self.assertEqual(1, 2)

    def test_error(self):
        raise ValueError("one\\ntwo")

    @unittest.skip("later")
    def test_skipped(self):
        pass

    @unittest.expectedFailure
    def test_known(self):
        self.fail()

    @unittest.expectedFailure
    def test_unknown(self):
        pass

    def test_parts(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertEqual(number, 1)
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for folder in (".n", "out", "gold", "tests"):
        (tmp_path / folder).mkdir()
    (tmp_path / "gold/a.txt").write_text("a")
    (tmp_path / "own.txt").write_text("own")
    (tmp_path / "app.py").write_text(
        "from pathlib import Path\n\n\ndef data():\n    return Path('own.txt').read_text()\n"
    )
    (tmp_path / "tests/__init__.py").write_text("")
    (tmp_path / "tests/test_cases.py").write_text(CASES)
    (tmp_path / ".n/at").write_text(str(tmp_path / "out"))
    (tmp_path / ".n/wn.json").write_text(
        json.dumps({"nonce": "wn", "tests": ["tests/test_cases.py"]})
    )
    return tmp_path


def ran(tree: Path, *words: str, **variables: str) -> ReportRead:
    environ = {"PYTHONPATH": str(tree / ".n"), **variables}
    subprocess.run(
        [sys.executable, *words], cwd=tree, env=environ, capture_output=True, check=False
    )
    read = read_reports(tree / "out", "", None)
    assert isinstance(read, ReportRead)
    return read


def test_unittest_reports_every_outcome_by_name(tree: Path) -> None:
    (tree / ".n/sitecustomize.py").write_text(FileTestSources().reporter(Runner.UNITTEST, "x"))

    read = ran(tree, "-m", "unittest")

    assert read.tests is not None
    found = {it.id.rpartition("::")[2]: it.outcome for it in read.tests}
    assert found == {
        "test_green": Outcome.PASSED,
        "test_gold": Outcome.PASSED,
        "test_red": Outcome.FAILED,
        "test_error": Outcome.ERROR,
        "test_skipped": Outcome.SKIPPED,
        "test_known": Outcome.XFAILED,
        "test_unknown": Outcome.FAILED,
        "test_parts": Outcome.FAILED,
    }
    assert read.tests[0].id.startswith("tests.test_cases.Cases::")


def test_files_that_tests_open_are_noted_and_those_that_the_code_opens_are_not(tree: Path) -> None:
    (tree / ".n/wn.py").write_text(FileTestSources().watch(Runner.UNITTEST))
    (tree / ".n/sitecustomize.py").write_text(FileTestSources().reporter(Runner.UNITTEST, "x"))

    read = ran(tree, "-m", "unittest", UNITTEST_WATCH="wn")

    assert opened(read, "wn") == ("gold/a.txt",)
    assert isinstance(watched(read, "wn"), ReportRead)


def test_pytest_is_watched_too_whatever_its_command_is(tree: Path) -> None:
    (tree / ".n/wn.py").write_text(FileTestSources().watch(Runner.PYTEST))
    (tree / ".n/sitecustomize.py").write_text("import wn\n")

    read = ran(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=out/report.xml")

    assert opened(read, "wn") == ("gold/a.txt",)


@pytest.mark.parametrize(
    ("runner", "command"),
    [(Runner.PYTEST, "pytest"), (Runner.UNITTEST, "-m xmlrunner"), (None, "x")],
)
def test_a_command_that_reports_by_itself_needs_no_other(runner, command) -> None:
    assert FileTestSources().reporter(runner, command) == ""


def test_only_python_is_watched() -> None:
    assert FileTestSources().watch(Runner.GO) == ""
