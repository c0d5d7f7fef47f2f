"""The record of requirements: only a passed test that names an id covers it."""

import json
from pathlib import Path

import pytest

from scripts import verify_req_coverage as script
from scripts.verify_req_coverage import judge, read_catalogue, render, scan

pytestmark = pytest.mark.unmeasured

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "scripts" / "requirements.toml").read_text(encoding="utf-8")
CATALOGUE = read_catalogue(TEXT)
ROW = 'pytest.param(1, marks=pytest.mark.req("R1"))'
SOURCE_IDS = [
    pytest.param("3_MCP-TAS-041", marks=pytest.mark.req("R31")),
    pytest.param("3_MCP-TAS-090", marks=pytest.mark.req("R58")),
    pytest.param("UNKNOWN-802", marks=pytest.mark.req("R58")),
    pytest.param("5_SECURITY_DESIGN-REQ-SEC-SD-083", marks=pytest.mark.req("R199")),
]


def passed(*ids: str) -> dict[str, list[tuple[str, str]]]:
    return {id: [("tests/test_it.py::test_it", "passed")] for id in ids}


def due(source_id: str) -> list[str]:
    return [id for id in CATALOGUE.source_ids[source_id] if not CATALOGUE.requirements[id].later]


def with_a_later_part() -> script.Catalogue:
    title = 'title = "Resume is an MCP tool"'
    text = TEXT.replace(title, f'{title}, later = "part"')
    return read_catalogue(text.replace("[later]", "[later]\npart = 'a part'"))


def write_tests(folder: Path, text: str) -> Path:
    (folder / "test_it.py").write_text("import pytest\n" + text, encoding="utf-8")
    return folder


def test_every_requirement_is_in_the_catalogue_once_and_in_order() -> None:
    assert list(CATALOGUE.requirements) == [f"R{number}" for number in range(1, 200)]


@pytest.mark.parametrize("source_id", SOURCE_IDS)
def test_a_source_id_is_covered_when_all_its_due_requirements_are(
    source_id: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.json"
    results.write_text(json.dumps(passed(*CATALOGUE.source_ids[source_id])), encoding="utf-8")

    code = script.main(["--ids", source_id, "--results", str(results)])

    assert code == 0
    assert capsys.readouterr().out.startswith(f"{source_id}: ")


@pytest.mark.parametrize("source_id", SOURCE_IDS)
def test_one_due_requirement_without_a_passed_test_is_missed(source_id: str) -> None:
    for missing in due(source_id):
        results = passed(*CATALOGUE.source_ids[source_id])
        results[missing] = [("tests/test_it.py::test_it", "failed")]

        verdict = judge(CATALOGUE, {}, results, source_id)

        assert not verdict.covered
        assert missing in verdict.words


@pytest.mark.parametrize(
    ("outcomes", "covered"),
    [
        (["passed"], True),
        (["passed", "skipped"], True),
        (["passed", "failed"], False),
        (["failed"], False),
        (["skipped"], False),
        (["not run"], False),
        ([], False),
    ],
)
def test_only_a_passed_test_covers_a_requirement(outcomes: list[str], covered: bool) -> None:
    results = {"R1": [(f"test_{outcome}", outcome) for outcome in outcomes]}

    assert judge(CATALOGUE, {}, results, "R1").covered is covered


def test_what_comes_later_is_not_due_until_a_test_names_it() -> None:
    source = "5_SECURITY_DESIGN-REQ-SEC-SD-083"
    catalogue = with_a_later_part()
    results = passed(*(id for id in catalogue.source_ids[source] if id != "R192"))

    without = judge(catalogue, {}, results, source)
    named = judge(catalogue, {"R192": ("test_it",)}, results, source)

    assert without.covered
    assert not named.covered


def test_what_comes_later_is_not_covered_when_it_is_asked_for() -> None:
    assert not judge(CATALOGUE, {}, {}, "R21").covered


def test_what_only_ci_proves_is_covered_with_its_reason() -> None:
    verdict = judge(CATALOGUE, {}, {}, "R26")

    assert verdict.covered
    assert verdict.words.startswith("proved by CI: ")


def test_an_unknown_id_is_not_covered() -> None:
    assert not judge(CATALOGUE, {}, {}, "R200").covered


def test_without_a_recorded_run_nothing_is_covered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = script.main(["--ids", "R1", "--results", str(tmp_path / "none.json")])

    assert code == 1
    assert "make test" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('@pytest.mark.req("R1", "R2")\ndef test_a(): ...', {"R1": "test_a", "R2": "test_a"}),
        ('pytestmark = pytest.mark.req("R1")\ndef test_a(): ...', {"R1": "test_a"}),
        ('pytestmark = [pytest.mark.req("R1")]\ndef test_a(): ...', {"R1": "test_a"}),
        ('@pytest.mark.req("R1")\nclass TestA:\n  def test_b(self): ...', {"R1": "TestA::test_b"}),
        ('TestA = A.TestCase\nTestA.pytestmark = [pytest.mark.req("R1")]', {"R1": "TestA"}),
        (f'@pytest.mark.parametrize("a", [{ROW}])\ndef test_a(a): ...', {"R1": "test_a"}),
        (f'R = [{ROW}]\n@pytest.mark.parametrize("a", R)\ndef test_a(a): ...', {"R1": "test_a"}),
        ('@pytest.mark.req("R1")\ndef helper(): ...', {}),
        ("def test_a(): ...", {}),
    ],
)
def test_markers_are_found_wherever_they_stand(
    tmp_path: Path, text: str, found: dict[str, str]
) -> None:
    assert scan(write_tests(tmp_path, text)) == {
        id: (f"test_it.py::{test}",) for id, test in found.items()
    }


@pytest.mark.req("R57")
def test_the_page_lists_the_sources_ids_and_every_requirement() -> None:
    page = (ROOT / "docs" / "requirements-coverage.md").read_text(encoding="utf-8")

    assert all(f"| `{id}` |" in page for id in CATALOGUE.source_ids)
    assert all(f"\n| {id} |" in page for id in CATALOGUE.requirements)


def test_the_page_says_what_proves_a_requirement_and_what_is_open() -> None:
    page = render(with_a_later_part(), {"R1": ("core/test_a.py::test_b",)})

    assert "| `core/test_a.py::test_b` |" in page
    assert "| **open** |" in page
    assert "| CI: " in page
    assert "| later: " in page


def test_a_stale_page_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(script, "PAGE", tmp_path / "page.md")
    (tmp_path / "tests").mkdir()

    before = script.main(["--check"])
    script.main(["--write"])
    after = script.main(["--check"])

    assert (before, after) == (1, 0)
    assert "make docs" in capsys.readouterr().err


def test_a_marker_with_an_unknown_id_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(script, "ROOT", tmp_path)
    (tmp_path / "tests").mkdir()
    write_tests(tmp_path / "tests", '@pytest.mark.req("R1000")\ndef test_a(): ...')

    assert script.main(["--check"]) == 1
    assert "R1000" in capsys.readouterr().err


@pytest.mark.req("R156")
def test_the_modules_that_the_page_names_are_there() -> None:
    package = ROOT / "src" / "lockgate"
    named = {
        word.strip("`:")
        for ours in (text for names in CATALOGUE.names.values() for text in names.values())
        for part in ours.split(";")
        if "later" not in part
        for word in part.replace(",", " ").split()
        if "/" in word
    }

    missing = {name for name in named if not list(package.glob(name))}

    assert missing == set()
