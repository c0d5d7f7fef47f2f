"""The coverage floors: each one is shown to break on its own."""

import json
from pathlib import Path

import pytest

from scripts import check_coverage
from scripts.check_coverage import MODULES, Counts, judge, read

CORE = "src/lockgate/core/"
FULL = Counts(100, 100, 100, 100)


def everything() -> dict[str, Counts]:
    files = {f"{CORE}{module}.py": FULL for module in MODULES}
    return {**files, f"{CORE}model.py": Counts(10, 10), "src/lockgate/faces/cli.py": FULL}


def test_full_coverage_is_enough() -> None:
    assert judge(everything()) == []


@pytest.mark.req("R25", "R54", "R195")
@pytest.mark.parametrize("module", MODULES)
def test_each_named_module_needs_90_percent_of_its_branches(module: str) -> None:
    at_the_floor = {**everything(), f"{CORE}{module}.py": Counts(100, 100, 90, 100)}
    below = {**everything(), f"{CORE}{module}.py": Counts(100, 100, 89, 100)}
    unmeasured = everything()
    del unmeasured[f"{CORE}{module}.py"]

    assert not [words for words in judge(at_the_floor) if "of branches" in words]
    assert [words for words in judge(below) if f"core/{module}.py: 89.00 % of branches" in words]
    assert judge(unmeasured) == [f"core/{module}.py was not measured"]


def test_the_core_may_miss_nothing() -> None:
    files = {**everything(), f"{CORE}model.py": Counts(100, 100, 9, 10)}

    assert judge(files) == [f"{CORE}model.py: 99.09 %, the core's floor is 100 %"]


def test_all_of_it_needs_95_percent() -> None:
    files = {**everything(), "src/lockgate/faces/cli.py": Counts(0, 100, 0, 100)}

    assert judge(files) == ["all of it: 80.20 %, floor 95 %"]


def test_the_report_of_coverage_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = {
        "covered_lines": 1,
        "num_statements": 2,
        "covered_branches": 3,
        "num_branches": 4,
    }
    text = json.dumps({"files": {"src/lockgate/a.py": {"summary": summary}}})
    report = tmp_path / "coverage.json"
    report.write_text(text, encoding="utf-8")

    assert read(text) == {"src/lockgate/a.py": Counts(1, 2, 3, 4)}
    assert check_coverage.main([str(report)]) == 1
    assert "all of it: 66.67 %" in capsys.readouterr().err
