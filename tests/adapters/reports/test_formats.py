"""Reports of real tools, as findings and test results."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lockgate.adapters.reports import read_reports
from lockgate.core.model.findings import Finding, Location, Priority
from lockgate.core.model.gates import Report
from lockgate.core.model.results import Outcome, ReportRead, Unreadable

SAMPLES = Path(__file__).parent / "samples"
P0, P1, P2, P3 = Priority


def filed(tmp_path: Path, *names: str, wanted: Report | None = None) -> ReportRead:
    out = tmp_path / "out"
    out.mkdir()
    for name in names:
        shutil.copy(SAMPLES / name, out)
    read = read_reports(out, "", wanted)
    assert isinstance(read, ReportRead)
    return read


def printed(output: str, wanted: Report | None = None) -> ReportRead:
    read = read_reports(Path("/nonexistent"), output, wanted)
    assert isinstance(read, ReportRead)
    return read


def sample(name: str) -> str:
    return (SAMPLES / name).read_text(encoding="utf-8")


def by_outcome(read: ReportRead) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for test in read.tests or ():
        found.setdefault(test.outcome.value, []).append(test.id)
    return found


# --- files: format, tests by outcome, places of what failed ---------------------------------------

T = "tests.test_sample"
Expected = tuple[dict[str, list[str]], list[tuple[str, int] | None]]
FILES: dict[str, Expected] = {
    "pytest.xml": (
        {
            "passed": [f"{T}::test_passes", f"{T}::test_is_one[1]", f"{T}::test_xpasses"],
            "failed": [f"{T}::test_fails", f"{T}::test_is_one[2]", f"{T}.TestGroup::test_raises"],
            "error": [f"{T}::test_errors", f"{T}::test_falls"],
            "skipped": [f"{T}::test_skipped"],
            "xfailed": [f"{T}::test_xfails"],
        },
        [("tests/test_sample.py", line) for line in (23, 28, 33, 8, 14)],
    ),
    "node.xml": (
        {
            "passed": ["test::adds", "test::group::inner passes"],
            "failed": ["test::adds wrongly", "test::group::inner fails"],
            "skipped": ["test::later"],
            "xfailed": ["test::some day"],
        },
        [("node.test.mjs", 4), ("node.test.mjs", 7)],
    ),
    "vitest.xml": (
        {
            "passed": ["src/sum.test.js::sum > adds", "src/sum.test.js::sum > is 1"],
            "failed": ["src/sum.test.js::sum > adds wrongly", "src/sum.test.js::sum > is 2"],
            "skipped": ["src/sum.test.js::sum > later"],
        },
        [("src/sum.test.js", 4), ("src/sum.test.js", 6)],
    ),
    "jest.xml": (
        {
            "passed": ["src/sum.test.js::sum adds::sum adds"],
            "failed": ["src/sum.test.js::sum adds wrongly::sum adds wrongly"],
            "skipped": ["src/sum.test.js::sum later::sum later"],
        },
        [("src/sum.test.js", 4)],
    ),
    "gotestsum.xml": (
        {
            "passed": ["example.com/mod/sum::TestAdds"],
            "failed": ["example.com/mod/sum::TestTable/two", "example.com/mod/sum::TestTable"],
        },
        [None],
    ),
    "surefire.xml": (
        {
            "passed": ["com.example.SumTest::adds"],
            "failed": ["com.example.SumTest::addsWrongly"],
            "error": ["com.example.SumTest::throwsUp"],
        },
        [None, None],
    ),
    "node.tap": (
        {
            "passed": ["adds", "group/inner passes"],
            "failed": ["adds wrongly", "group/inner fails", "group"],
            "skipped": ["later"],
            "xfailed": ["some day"],
        },
        [("node.test.mjs", 4), ("node.test.mjs", 7)],
    ),
    "vitest.tap": (
        {
            "passed": ["src/sum.test.js/sum/adds", "src/sum.test.js/sum/is 1"],
            "failed": [
                "src/sum.test.js/sum/adds wrongly",
                "src/sum.test.js/sum/is 2",
                "src/sum.test.js/sum",
                "src/sum.test.js",
            ],
            "skipped": ["src/sum.test.js/sum/later"],
        },
        [("src/sum.test.js", 4), ("src/sum.test.js", 6)],
    ),
    "subtests.tap": (
        {
            "passed": ["group/inner # one"],
            "failed": ["group/inner two", "group"],
            "skipped": ["windows"],
            "xfailed": ["hard"],
        },
        [("lib/a.pl", 12)],
    ),
    "go.json": (
        {
            "passed": ["example.com/mod/sum/TestAdds"],
            "failed": ["example.com/mod/sum/TestTable/two", "example.com/mod/sum/TestTable"],
            "skipped": ["example.com/mod/sum/TestLater"],
        },
        [None, ("bad/bad.go", 5), None],
    ),
}
FORMATS = {".xml": Report.JUNIT, ".tap": Report.TAP, ".json": Report.GO}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("way", ["file", "output", "wanted"])
def test_a_test_report_names_its_tests_and_places_its_failures(name, way, tmp_path) -> None:
    format = FORMATS[Path(name).suffix]
    wanted = format if way == "wanted" else None
    read = printed(sample(name)) if way == "output" else filed(tmp_path, name, wanted=wanted)

    tests, places = FILES[name]
    assert (read.format, read.complete) == (format, True)
    assert {key: set(ids) for key, ids in by_outcome(read).items()} == {
        key: set(ids) for key, ids in tests.items()
    }
    assert [it.priority for it in read.findings] == [P1] * len(places)
    found = [it.location and (it.location.file, it.location.line) for it in read.findings]
    assert found == places


def test_nodes_tests_with_one_title_are_told_apart_by_the_suites_around_them() -> None:
    case = '<testcase name="a &amp;quot;b&amp;quot; " classname="test"/>'
    inner = f'<testsuite name="has &amp;quot;in&amp;quot;">{case}</testsuite>'
    read = printed(
        f'<testsuites><testsuite name="out">{inner}{case}</testsuite>{case}</testsuites>'
    )

    assert by_outcome(read) == {
        "passed": ['test::out::has "in"::a "b"', 'test::out::a "b"', 'test::a "b"']
    }


@pytest.mark.req("R160")
@pytest.mark.parametrize(
    ("name", "format", "findings"),
    [
        ("ruff.json", Report.RUFF, [(P2, 1, 8, "Remove unused import: `os`")]),
        ("ruff.sarif", Report.SARIF, [(P1, 1, 8, "Remove unused import: `os`")]),
        ("ruff-full.txt", Report.RUFF, [(P2, 1, 8, "Remove unused import: `os`")]),
        ("ruff-concise.txt", Report.RUFF, [(P2, 1, 8, None)]),
        ("mypy.txt", Report.MYPY, [(P1, 8, None, None)]),
        ("pyright.txt", Report.MYPY, [(P1, 1, 8, None)]),
        ("pyright.json", Report.MYPY, [(P1, 1, 8, None)]),
        ("eslint.txt", Report.ESLINT, [(P2, 1, 7, None)]),
        ("eslint.json", Report.ESLINT, [(P2, 1, 7, "Remove unused variable 'unused'.")]),
        ("tsc.txt", Report.TSC, [(P1, 1, 14, None)]),
        ("tsc-pretty.txt", Report.TSC, [(P1, 1, 14, None)]),
        ("go-vet.txt", Report.GO, [(P2, 7, 2, None)]),
    ],
)
def test_a_linters_first_complaint_has_priority_place_and_suggestion(
    name, format, findings, tmp_path
) -> None:
    for read in (filed(tmp_path, name), printed(sample(name)), printed(sample(name), format)):
        first = read.findings[0]
        place = first.location
        assert place
        assert (read.format, read.complete, read.tests) == (format, True, None)
        assert [(first.priority, place.line, place.column, first.suggestion)] == findings
        assert place.file in {"bad.py", "src/a.js", "src/a.ts", "sum/sum.go"}


@pytest.mark.parametrize(
    ("name", "count"),
    [
        *(("ruff.json", 3), ("ruff-full.txt", 3), ("ruff-concise.txt", 3), ("mypy.txt", 3)),
        *(("pyright.txt", 5), ("pyright.json", 5), ("tsc.txt", 2), ("tsc-pretty.txt", 2)),
        *(("eslint.txt", 4), ("eslint.json", 4)),
    ],
)
def test_no_complaint_is_lost(name, count) -> None:
    assert len(printed(sample(name)).findings) == count


def test_the_rest_of_a_long_complaint_of_pyright_belongs_to_it() -> None:
    issue = printed(sample("pyright.txt")).findings[1].issue

    assert issue.startswith('Type "int" is not assignable')
    assert issue.endswith('"int" is not assignable to "str" (reportAssignmentType)')


def test_a_note_of_mypy_is_the_suggestion_of_the_error_above_it() -> None:
    read = printed(
        "a.py:3: error: No overload fits  [call]\na.py:3: note: use str()\nb.py:1: note: seen\n"
        "Found 1 error in 1 file (checked 2 source files)\n"
    )

    assert read.findings == (
        Finding(P1, "No overload fits [call]", Location("a.py", 3), "use str()"),
        Finding(P3, "seen", Location("b.py", 1)),
    )


# --- pytest and go as they print -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["pytest-q.txt", "pytest-v.txt", "pytest-colour.txt"])
def test_pytests_summary_says_what_failed_where_and_why(name) -> None:
    read = printed(sample(name))

    assert (read.format, read.complete) == (Report.PYTEST, True)
    assert (
        Finding(
            P1,
            "tests/test_sample.py::test_fails: AssertionError: they differ",
            Location("tests/test_sample.py", 23),
        )
        in read.findings
    )
    assert len(read.findings) == 5


@pytest.mark.parametrize("name", ["pytest-v.txt", "pytest-x.txt"])
def test_pytest_names_its_tests_only_when_it_is_asked_to(name) -> None:
    loud, quiet = printed(sample(name)), printed(sample("pytest-q.txt"))

    assert quiet.tests is None
    assert {key: len(ids) for key, ids in by_outcome(loud).items()} == {
        "passed": 2, "failed": 3, "error": 2, "skipped": 1, "xfailed": 1, "xpassed": 1,
    }  # fmt: skip


def test_a_pass_whose_teardown_broke_is_no_pass() -> None:
    for name in ("pytest-v.txt", "pytest-x.txt"):
        tests = {it.id: it.outcome for it in printed(sample(name)).tests or ()}
        assert tests["tests/test_sample.py::test_falls"] is Outcome.ERROR


@pytest.mark.parametrize("line", ["no tests ran in 0.01s", "=== 3 deselected in 0.01s ==="])
def test_pytest_that_ran_nothing_names_no_test(line) -> None:
    read = printed(f"\n{line}\n")

    assert (read.format, read.tests, read.complete) == (Report.PYTEST, (), True)


def test_go_with_v_names_its_tests_and_without_it_only_its_failures() -> None:
    loud, quiet = printed(sample("go-v.txt")), printed(sample("go-quiet.txt"))

    module = "example.com/mod/sum"
    assert by_outcome(loud) == {
        "passed": [f"{module}/TestAdds"],
        "failed": [f"{module}/TestTable", f"{module}/TestTable/two"],
        "skipped": [f"{module}/TestLater"],
    }
    assert [it.issue for it in loud.findings] == [
        f"{module}/TestTable/two: sum_test.go:12: want 3, got 2"
    ]
    assert quiet.tests is None
    assert Finding(P1, "undefined: x", Location("bad/bad.go", 5, 2)) in quiet.findings
    assert (loud.complete, quiet.complete) == (True, True)


def test_a_go_test_that_never_ended_has_not_passed() -> None:
    read = printed("=== RUN   TestA\nexit status 1\nFAIL\texample.com/m\t0.1s\n")
    cut = printed("=== RUN   TestA\n--- PASS: TestA (0.00s)\nok  \tm\t1s\n=== RUN   TestB\n")

    assert by_outcome(read) == {"error": ["example.com/m/TestA"]}
    assert not cut.complete


def test_go_packages_without_tests_name_none() -> None:
    assert printed("?   \texample.com/m\t[no test files]\n").tests == ()


# --- SARIF ---------------------------------------------------------------------------------------


def test_sarif_levels_and_security_decide_the_priority(tmp_path) -> None:
    (tmp_path / "a.sarif").write_text(
        """{"version": "2.1.0", "runs": [{
        "originalUriBaseIds": {"SRC": {"uri": "file:///workspace/"}},
        "artifacts": [{"location": {"uri": "lib/b%20c.py", "uriBaseId": "SRC"}}],
        "tool": {"driver": {"rules": [
          {"id": "sql", "properties": {"tags": ["security"], "security-severity": "9.8"},
           "messageStrings": {"m": {"text": "built from {0}"}}},
          {"id": "style", "defaultConfiguration": {"level": "note"}}]}},
        "results": [
          {"ruleIndex": 1, "message": {"text": "long"}},
          {"ruleId": "x", "message": {"text": "odd"}},
          {"ruleId": "y", "level": "error", "message": {"text": "wrong"},
           "locations": [{"physicalLocation": {"artifactLocation": {"uri": "/etc/passwd"}}}]},
          {"ruleId": "z", "kind": "pass", "message": {"text": "fine"}},
          {"ruleId": "z", "suppressions": [{"kind": "inSource"}], "message": {"text": "known"}},
          {"rule": {"index": 0}, "message": {"id": "m", "arguments": ["input"]},
           "locations": [{"physicalLocation": {"artifactLocation": {"index": 0},
             "region": {"startLine": 3, "startColumn": true}}}]}]}]}"""
    )
    read = read_reports(tmp_path, "", None)

    assert isinstance(read, ReportRead)
    assert read.findings == (
        Finding(P0, "sql: built from input", Location("lib/b c.py", 3)),
        Finding(P1, "y: wrong"),
        Finding(P2, "x: odd"),
        Finding(P3, "style: long"),
    )


def test_a_sarif_tool_that_says_it_did_not_finish_is_not_believed(tmp_path) -> None:
    (tmp_path / "a.sarif").write_text(
        '{"version": "2.1.0", "runs": [{"results": [], "tool": {"driver": {}},'
        ' "invocations": [{"executionSuccessful": false}]}]}'
    )

    assert not filed_here(tmp_path).complete


def filed_here(out: Path, wanted: Report | None = None) -> ReportRead:
    read = read_reports(out, "", wanted)
    assert isinstance(read, ReportRead)
    return read


def test_what_a_go_test_logged_is_why_it_failed(tmp_path) -> None:
    issues = [it.issue for it in filed(tmp_path, "gotestsum.xml").findings]

    assert issues == ["example.com/mod/sum::TestTable/two: sum_test.go:12: want 3, got 2"]


# --- several, none, prose ------------------------------------------------------------------------


def test_several_reports_are_joined(tmp_path) -> None:
    read = filed(tmp_path, "vitest.xml", "ruff.sarif", "gotestsum.xml")

    assert read.format is Report.JUNIT
    assert len(read.tests or ()) == 8
    assert len(read.findings) == 6


def test_only_the_wanted_report_counts(tmp_path) -> None:
    read = filed(tmp_path, "vitest.xml", "ruff.sarif", wanted=Report.SARIF)

    assert (read.format, read.tests, len(read.findings)) == (Report.SARIF, None, 3)


@pytest.mark.parametrize("wanted", [Report.JUNIT, Report.SARIF, Report.TAP, Report.PYTEST])
def test_a_wanted_report_that_is_not_there_is_said_so(tmp_path, wanted) -> None:
    read = read_reports(tmp_path, "all is well\n", wanted)

    assert isinstance(read, Unreadable)
    assert wanted in read.why


@pytest.mark.parametrize("wanted", [Report.ESLINT, Report.TSC, Report.RUFF, Report.GENERIC])
def test_the_silence_of_a_tool_that_says_nothing_when_it_is_content_is_a_report(wanted) -> None:
    assert printed("", wanted) == ReportRead(format=wanted)


def test_a_green_report_does_not_hide_what_another_tool_printed(tmp_path) -> None:
    (tmp_path / "j.xml").write_text('<testsuite><testcase name="a"/></testsuite>')
    read = read_reports(tmp_path, sample("mypy.txt") + "1 failed, 3 passed in 0.1s\n", None)

    assert isinstance(read, ReportRead)
    assert (read.format, read.complete, len(read.tests or ())) == (Report.JUNIT, True, 1)
    assert len(read.findings) == 3


def test_text_files_are_read_like_output(tmp_path) -> None:
    (tmp_path / "sub").mkdir()
    shutil.copy(SAMPLES / "mypy.txt", tmp_path / "sub" / "mypy.log")

    assert filed_here(tmp_path).format is Report.MYPY


def test_any_file_and_line_is_a_place() -> None:
    read = printed(
        "src/a.c:3:5: error: expected ';'\n./b.rb:7: warning: odd\nMakefile:2: missing tab\n"
        "c.c:1: note: here\n12:30:45: tick\nhttp://a.b:80: up\n/etc/x.conf:1: outside\n"
        "../d.c:1: up\n"
    )

    assert (read.format, read.tests, read.complete) == (Report.GENERIC, None, True)
    assert read.findings == (
        Finding(P1, "error: expected ';'", Location("src/a.c", 3, 5)),
        Finding(P2, "warning: odd", Location("b.rb", 7)),
        Finding(P2, "missing tab", Location("Makefile", 2)),
        Finding(P3, "note: here", Location("c.c", 1)),
    )


def test_prose_beside_a_known_tools_report_does_not_block() -> None:
    read = printed("x.c:3: error: in a log\n2 passed in 0.1s\n")

    assert [(it.priority, it.issue) for it in read.findings] == [(P2, "error: in a log")]


# --- the real tools, now -------------------------------------------------------------------------


def test_what_pytest_writes_today_is_read(tmp_path) -> None:
    (tmp_path / "test_now.py").write_text("def test_a(): pass\ndef test_b(): assert 1 == 2\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null"]
    out = tmp_path / "out"
    ran = subprocess.run(
        [*command, f"--junitxml={out}/j.xml", "--rootdir=.", "test_now.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    read = read_reports(out, ran.stdout, None, str(tmp_path))
    spoken = read_reports(tmp_path / "none", ran.stdout, None, str(tmp_path))

    assert isinstance(read, ReportRead)
    assert isinstance(spoken, ReportRead)
    assert by_outcome(read) == {"passed": ["test_now::test_a"], "failed": ["test_now::test_b"]}
    assert read.findings[0].location == Location("test_now.py", 2)
    assert spoken.findings[0].location == Location("test_now.py", 2)


@pytest.mark.parametrize("form", ["json", "sarif", "full", "concise"])
def test_what_ruff_writes_today_is_read(tmp_path, form) -> None:
    (tmp_path / "a.py").write_text("import os\n")
    ruff = Path(sys.executable).parent / "ruff"
    if not ruff.exists():
        pytest.skip("needs ruff beside the interpreter")
    ran = subprocess.run(
        [ruff, "check", "--isolated", "--no-cache", f"--output-format={form}", "a.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    read = read_reports(tmp_path / "none", ran.stdout, None, str(tmp_path))

    assert isinstance(read, ReportRead)
    assert [it.location for it in read.findings] == [Location("a.py", 1, 8)]
