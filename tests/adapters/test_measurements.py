"""What base came to, on disk: as it was, or not there."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lockgate.adapters.measurements import DAY, FileMeasurements
from lockgate.core.differential.runs import Canaries, Run
from lockgate.core.model.findings import Location
from lockgate.core.model.results import Outcome, TestResult

KEY = ("p1", "tree", "rules", "pytest \udcff", "")
BASE = Run(
    exit_code=0,
    tests=(
        TestResult(id="a\udcff", outcome=Outcome.PASSED),
        TestResult(id="b", outcome=Outcome.FAILED, location=Location("t.py", 3, 4), message="no"),
        TestResult(id="c", outcome=Outcome.SKIPPED, location=Location("t.py")),
    ),
)
AGAIN = replace(BASE, exit_code=1, canaries=Canaries(("x", "y"), ("z",)))


@pytest.fixture
def kept(tmp_path: Path) -> FileMeasurements:
    made = FileMeasurements(tmp_path / "measurements")
    made.keep(KEY, BASE, AGAIN)
    return made


def the_file(kept: FileMeasurements) -> Path:
    [file] = kept.directory.iterdir()
    return file


def test_what_was_kept_is_found_by_its_key_alone(kept) -> None:
    assert kept.find(KEY) == (BASE, AGAIN)
    assert kept.find(("p1", "tree", "rules", "pytest", "")) is None


def test_what_base_notices_is_kept_and_whatever_is_not_as_we_wrote_it_is_not_there(kept) -> None:
    known = {"a.py (1, 0, 1, 1) 0": ("failed", "t | assert a", "t"), "b": ("passed", "")}
    kept.keep_known((*KEY, "faults"), known)

    assert kept.find_known((*KEY, "faults")) == known
    assert kept.find_known(("other",)) == {}
    assert kept.find_known(KEY) == {}, "a run is no such thing"
    kept.keep_known((*KEY, "faults"), {"a": ("certainly", "")})
    assert kept.find_known((*KEY, "faults")) == {}


def test_a_place_that_is_not_there_or_cannot_be_written_holds_nothing(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    nowhere = FileMeasurements(tmp_path / "file" / "measurements")

    nowhere.keep(KEY, BASE, AGAIN)

    assert nowhere.find(KEY) is None
    assert FileMeasurements(tmp_path / "none").find(KEY) is None


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"\xff",
        b"null",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"form": 2}',
        b'{"form": 1, "key": []}',
    ],
)
def test_a_damaged_file_is_as_good_as_none_and_is_replaced(kept, damage) -> None:
    the_file(kept).write_bytes(damage)

    assert kept.find(KEY) is None
    kept.keep(KEY, BASE, AGAIN)
    assert kept.find(KEY) == (BASE, AGAIN)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("exit_code", None),
        ("exit_code", "0"),
        ("complete", False),
        ("overtime", "long"),
        ("tests", None),
        ("tests", [{}]),
        ("tests", [{"id": 1, "outcome": "passed", "location": None, "message": ""}]),
        ("tests", [{"id": "a", "outcome": "fine", "location": None, "message": ""}]),
        ("tests", ["a"]),
        ("canaries", []),
        ("canaries", {"must_fail": "x", "must_pass": []}),
    ],
)
def test_a_run_that_would_never_have_been_kept_is_not_read(kept, field, value) -> None:
    file = the_file(kept)
    facts = json.loads(file.read_text())
    facts["again"][field] = value
    file.write_text(json.dumps(facts))

    assert kept.find(KEY) is None


@given(st.data())
def test_a_file_that_was_cut_off_anywhere_is_as_good_as_none(data) -> None:
    directory = Path(os.environ["HOME"]) / "measurements"
    made = FileMeasurements(directory)
    made.keep(KEY, BASE, AGAIN)
    file = the_file(made)
    whole = file.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    file.write_bytes(whole[:at])

    assert made.find(KEY) is None


def test_a_link_in_its_place_is_not_followed(kept, tmp_path) -> None:
    file = the_file(kept)
    file.rename(tmp_path / "elsewhere.json")
    file.symlink_to(tmp_path / "elsewhere.json")

    assert kept.find(KEY) is None


def test_what_is_a_day_old_is_measured_anew_and_goes_with_the_next_that_is_kept(kept) -> None:
    file = the_file(kept)
    past = file.stat().st_mtime - DAY - 60
    os.utime(file, (past, past))

    assert kept.find(KEY) is None
    kept.keep(("other",), BASE, AGAIN)
    assert the_file(kept) != file


def test_the_files_that_base_opened_are_kept_too(tmp_path) -> None:
    kept = FileMeasurements(tmp_path)
    run = Run(exit_code=0, tests=(), opened=("golden/a.txt",))

    kept.keep(("key",), run, run)

    assert kept.find(("key",)) == (run, run)
