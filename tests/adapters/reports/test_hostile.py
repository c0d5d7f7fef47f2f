"""Reports made to mislead, to hang or to break their reader."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.adapters.reports import read as reading
from lockgate.adapters.reports import read_reports
from lockgate.core.model.findings import Priority
from lockgate.core.model.gates import Report
from lockgate.core.model.results import NoJudgement, Outcome, ReportRead, Unreadable, believed

pytestmark = pytest.mark.unmeasured

SAMPLES = Path(__file__).parent / "samples"
MB = 1_000_000
EVERY = 1 if os.environ.get("HYPOTHESIS_PROFILE") == "soak" else 13  # bytes between two cuts
AT_ONCE = 0.3  # seconds


def read(out: Path, output: str = "", wanted: Report | None = None) -> ReportRead:
    found = read_reports(out, output, wanted)
    assert isinstance(found, ReportRead)
    return found


def put(out: Path, name: str, content: bytes | str) -> Path:
    path = out / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def passes(found: ReportRead | Unreadable) -> set[str]:
    tests = found.tests if isinstance(found, ReportRead) else None
    return {it.id for it in tests or () if it.outcome is Outcome.PASSED}


def fastest(act: Callable[[], object]) -> float:
    """Seconds of this thread, the best of three: other work on the machine does not count."""
    taken: list[float] = []
    for _ in range(3):
        begun = time.thread_time()
        act()
        taken.append(time.thread_time() - begun)
    return min(taken)


# --- cut off ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["pytest.xml", "surefire.xml", "ruff.sarif", "eslint.json", "go.json", "subtests.tap"]
)
def test_a_report_that_is_cut_off_never_says_more_good_than_the_whole(name, tmp_path):
    whole = (SAMPLES / name).read_bytes().rstrip()
    path = put(tmp_path, name, whole + b"\n")
    complete = read(tmp_path)
    endless = name == "go.json"  # a stream of packages has no last one

    for length in range(0, len(whole), EVERY):
        path.write_bytes(whole[:length])
        found = read_reports(tmp_path, "", None)

        assert passes(found) <= passes(complete)
        named = isinstance(found, ReportRead) and found.complete and found.tests is not None
        assert endless or not named
    assert complete.complete


@pytest.mark.parametrize("name", ["pytest-v.txt", "subtests.tap", "go-v.txt", "vitest.xml"])
def test_an_output_that_is_cut_off_never_says_more_good_than_the_whole(name, tmp_path):
    whole = (SAMPLES / name).read_text()
    complete = read(tmp_path, whole)

    for length in range(0, len(whole), 7):
        assert passes(read_reports(tmp_path, whole[:length], None)) <= passes(complete)


# --- bombs --------------------------------------------------------------------------------------

LAUGHS = "".join(f'<!ENTITY a{it} "{f"&a{it - 1};" * 10}">' for it in range(1, 10))
RUNS = b'{"version": "2.1.0", "runs": '
BOMBS: dict[str, bytes | str] = {
    "laughs.xml": f'<!DOCTYPE testsuites [<!ENTITY a0 "ha">{LAUGHS}]>'
    '<testsuites><testcase name="&a9;"/></testsuites>',
    "quadratic.xml": f'<!DOCTYPE testsuites [<!ENTITY a "{"a" * 100_000}">]>'
    f"<testsuites>{'&a;' * 100_000}</testsuites>",
    "outside.xml": '<!DOCTYPE testsuite SYSTEM "file:///etc/passwd"><testsuite/>',
    "nested.xml": "<testsuites>" + "<testsuite>" * 100_000,
    "strange.xml": "<testsuites>" + "<a/>" * 200_000,
    "attribute.xml": f'<testsuites><testcase name="{"a" * 5 * MB}"/></testsuites>',
    "attributes.xml": "<testsuites><testcase "
    + " ".join(f'a{it}=""' for it in range(300_000))
    + "/></testsuites>",
    "nameless.xml": "<testsuites>" + "<testcase/>" * 200_000,
    "codec.xml": '<?xml version="1.0" encoding="punycode"?><testsuites/>',
    "nested.sarif": RUNS + b"[" * 100_000,
    "objects.sarif": RUNS + b'{"a":' * 100_000,
    "number.sarif": RUNS + b"[" + b"9" * 5 * MB + b"]}",
    "crowd.sarif": RUNS + b"[" + b"[]," * 2 * MB + b"[]]}",
    "runs.sarif": RUNS + b"[" + b"{}," * 2000 + b"{}]}",
    "nested.tap": "TAP version 14\n"
    + "".join("    " * it + "not ok 1 - x {\n" for it in range(500)),
    "lines.tap": "TAP version 14\n1..3\n" + "\n" * 5 * MB,
    "lines.json": '{"Action":"start","Package":"p"}\n' + "\n" * 3 * MB,
    "deep.json": '{"Action":"start","Package":"p"}\n{"Action":"run","x":' + "[" * 90_000 + "\n",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_at_once(name, tmp_path):
    path = put(tmp_path, name, BOMBS[name])

    found = read(tmp_path)
    reading = fastest(path.read_bytes)

    assert not found.complete
    assert not passes(found)
    assert fastest(lambda: read_reports(tmp_path, "", None)) - reading < AT_ONCE


@pytest.mark.parametrize(
    "line",
    [
        *(
            "\n",
            "\x1b[",
            "\x1ba",
            "\x1b]",
            "a.",
            "_",
            "a:1:",
            "a/",
            " ",
            "___ x _",
            "1 passed, ",
            "[",
        ),
        *("FAILED a.py::x ", "ok 1 - # ", "{", "<testsuite ", " 1:1 error ", "a.go:1: ", "\t"),
    ],
)
def test_no_text_takes_more_than_linear_time(line, tmp_path):
    hints = " in ok  \tFAIL\tFound 1 TS problem short test summary info\n"

    small, big = hints + line * (MB // 32 // len(line)), hints + line * (MB // 4 // len(line))
    once = fastest(lambda: read_reports(tmp_path, small, None))
    eight = fastest(lambda: read_reports(tmp_path, big, None))
    assert eight < 20 * once + 0.2


def test_twenty_thousand_results_are_read_and_a_thousand_kept(tmp_path):
    place = {"physicalLocation": {"artifactLocation": {"uri": "a.py"}, "region": {"startLine": 1}}}
    many = [
        {
            "ruleId": f"r{it}",
            "level": "error" if it == 19_999 else "note",
            "message": {"text": "x"},
            "locations": [place],
        }
        for it in range(20_000)
    ]
    put(tmp_path, "a.sarif", json.dumps({"version": "2.1.0", "runs": [{"results": many}]}))
    found = read(tmp_path)

    assert found.complete
    assert len(found.findings) == 1001
    assert found.findings[0].priority is Priority.P1_MAJOR
    assert found.findings[-1].issue == "19000 more findings are not listed"


# --- what lies in $OUT --------------------------------------------------------------------------

GREEN = '<testsuite><testcase name="a"/></testsuite>'


def test_links_pipes_sockets_and_directories_are_not_read(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    secret = put(tmp_path, "secret.xml", GREEN)
    (out / "link.xml").symlink_to(secret)
    (out / "loop").symlink_to(out, target_is_directory=True)
    os.mkfifo(out / "pipe.xml")
    (out / "folder.xml").mkdir()

    assert isinstance(read_reports(out, "", Report.JUNIT), Unreadable)


def test_an_out_that_is_a_link_or_a_file_or_missing_holds_nothing(tmp_path):
    (tmp_path / "real").mkdir()
    put(tmp_path / "real", "j.xml", GREEN)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    put(tmp_path, "file", GREEN)

    for name in ("link", "file", "missing"):
        assert isinstance(read_reports(tmp_path / name, "", Report.JUNIT), Unreadable)


@pytest.mark.parametrize(("name", "start"), [("j.xml", GREEN), ("g.json", '{"Action":"start"}')])
def test_a_file_that_is_too_big_is_not_read_but_known(tmp_path, name, start):
    path = put(tmp_path, name, start)
    os.truncate(path, 500 * MB)

    begun = time.thread_time()
    found = read(tmp_path)

    assert time.thread_time() - begun < AT_ONCE
    assert not found.complete


def test_too_many_reports_or_entries_or_bytes_are_no_whole_report(tmp_path, monkeypatch):
    for number in range(6):
        put(tmp_path, f"{number}.xml", GREEN)
    assert read(tmp_path).complete

    for limit, value in (("FILES", 5), ("ENTRIES", 5), ("TOTAL", 100)):
        with monkeypatch.context() as patch:
            small = {"files": reading.FILES, "entries": reading.ENTRIES, "total": reading.TOTAL}
            small[limit.lower()] = value
            patch.setattr(
                reading, "_Budget", lambda made=reading._Budget, given=small: made(**given)
            )
            assert not read(tmp_path).complete
            assert limit != "ENTRIES" or not read(tmp_path, wanted=Report.SARIF).complete


def test_reports_are_found_five_folders_deep_and_no_deeper(tmp_path):
    at = tmp_path
    for number in range(7):
        at = at / "d"
        at.mkdir()
        put(at, "j.xml", f'<testsuite><testcase name="{number}"/></testsuite>')

    assert passes(read(tmp_path)) == {"0", "1", "2", "3", "4"}


@pytest.mark.parametrize("name", ["coverage.xml", "page.html", "data.json", "list.json", "a.bin"])
def test_files_of_other_kinds_are_passed_over(tmp_path, name):
    contents = {
        "coverage.xml": '<!DOCTYPE coverage SYSTEM "x"><coverage/>',
        "page.html": "<!DOCTYPE html><html>",
        "data.json": '{"runs": 3, "version": 1}',
        "list.json": '[{"filename": 1}, 2]',
        "a.bin": "\0\1\2",
    }
    put(tmp_path, name, contents[name])
    put(tmp_path, "other.xml", "<coverage/>")

    assert read(tmp_path) == ReportRead(format=Report.GENERIC)


FAILING_SUITE = '<testsuite><testcase name="a"><failure/></testcase></testsuite>'
UNREADABLE: dict[str, bytes | str] = {
    "another-name.xml": f"<!DOCTYPE report>{FAILING_SUITE}",
    "outside.xml": f'<!DOCTYPE coverage SYSTEM "x.dtd">{FAILING_SUITE}',
    "entities.xml": f'<!DOCTYPE x [<!ENTITY a "b">]>{FAILING_SUITE}',
    "commented.xml": f"<!DOCTYPE x><!--{'-x' * 4000}-->{FAILING_SUITE}",
    "prefixed.xml": '<j:testsuite xmlns:j="x"><j:testcase name="a"/></j:testsuite>',
    "version.sarif": '{"version": "3.0", "runs": []}',
    "another.sarif": '{"results": []}',
    "list.sarif": "[]",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_report_file_that_is_there_and_cannot_be_read_gives_no_judgement(tmp_path, name):
    put(tmp_path, name, UNREADABLE[name])
    put(tmp_path, "green.xml", GREEN)

    found = read(tmp_path)

    assert (found.complete, found.flaw) == (False, name)
    judged = believed(0, found, expected_some=False)
    assert isinstance(judged, NoJudgement)
    assert name in judged.why


# --- content ------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_encodings_that_runners_use_are_read(tmp_path, codec):
    declared = "utf-8" if codec.startswith("utf-8") else codec
    text = f'<?xml version="1.0" encoding="{declared}"?><testsuite><testcase name="é"/></testsuite>'
    put(tmp_path, "j.xml", text.encode(codec))

    assert passes(read(tmp_path)) == {"é"}
    assert read(tmp_path).complete


def test_bytes_that_are_not_what_was_declared_make_it_incomplete(tmp_path):
    put(tmp_path, "j.xml", b'<testsuite><testcase name="a"/><testcase name="\xff"/></testsuite>')

    found = read(tmp_path)

    assert (found.complete, passes(found)) == (False, {"a"})


@pytest.mark.parametrize("name", ["j.xml", "a.sarif", "a.tap"])
def test_an_empty_report_is_incomplete(tmp_path, name):
    put(tmp_path, name, "")

    assert not read(tmp_path).complete


def test_a_report_of_no_tests_is_complete_and_names_none(tmp_path):
    put(tmp_path, "j.xml", "<testsuites><testsuite/></testsuites>")

    assert (read(tmp_path).tests, read(tmp_path).complete) == ((), True)


def test_totals_that_speak_of_failures_which_are_not_listed_are_not_believed(tmp_path):
    put(tmp_path, "j.xml", '<testsuites failures="1"><testcase name="a"/></testsuites>')

    assert not read(tmp_path).complete


def test_a_suite_that_fails_as_a_whole_is_a_test_that_failed(tmp_path):
    suite = (
        '<testsuite name="s"><skipped/><error message="import"/><testcase name="a"/></testsuite>'
    )
    put(tmp_path, "j.xml", suite)

    outcomes = {it.id: it.outcome for it in read(tmp_path).tests or ()}
    assert outcomes == {"s": Outcome.ERROR, "a": Outcome.PASSED}


def test_an_id_that_occurs_twice_has_passed_only_if_it_passed_twice(tmp_path):
    failed = '<testcase name="a"><failure/></testcase>'
    put(tmp_path, "j.xml", f'<testsuite><testcase name="a"/>{failed}</testsuite>')
    put(tmp_path, "k.xml", GREEN)

    assert [it.outcome for it in read(tmp_path).tests or ()] == [Outcome.FAILED]


def test_a_skip_does_not_cover_a_failure_in_any_order(tmp_path):
    for number, inside in enumerate(("<failure/><skipped/>", "<skipped/><failure/>")):
        put(
            tmp_path,
            f"{number}.xml",
            f'<testsuite><testcase name="{number}">{inside}</testcase></testsuite>',
        )

    assert {it.outcome for it in read(tmp_path).tests or ()} == {Outcome.FAILED}


def test_escapes_and_control_characters_are_taken_out():
    found = read(
        Path("/nonexistent"), "a.c:1: \x1b[31mred\x1b[0m \x1b]0;title\x07and\x08 \udc80b\n"
    )

    assert found.findings[0].issue == "red and b"


def test_long_names_stay_apart_and_short(tmp_path):
    cases = "".join(f'<testcase name="{"x" * 3000}{it}"/>' for it in range(3))
    put(tmp_path, "j.xml", f"<testsuite>{cases}</testsuite>")

    assert len(passes(read(tmp_path))) == 3
    assert all(len(it) <= 500 for it in passes(read(tmp_path)))


def test_a_tap_stream_that_bails_out_is_incomplete():
    assert not read(Path("/nonexistent"), "TAP version 13\n1..1\nok 1 - a\nBail out! no\n").complete


pieces = st.sampled_from(
    [
        *("<testsuite>", '<testcase name="a">', "<failure", "/>", "</testcase>", "<![CDATA[", "&"),
        *('{"version":"2.1.0","runs":[', '{"results":[', '{"Action":"fail"', "]", "}", ",", ":"),
        *('[{"filePath":1,"messages":[', '{"line":-1,"message":3}', '"generalDiagnostics":[', "["),
        *("TAP version 13\n", "ok 1 - a\n", "not ok 2 {\n", "    ", "1..2\n", "  ---\n", "  ...\n"),
        *("=== 1 passed in 1s ===\n", "FAILED a.py::b - c\n", "___ b ___\n", "a.py:1: E\n", "\n"),
        *(
            "Found 1 error.\n",
            "F401 x\n",
            " --> a.py:1:1\n",
            "help: x\n",
            "a.ts(1,2): error TS1: x\n",
        ),
        *(
            "✖ 1 problem (1 error, 0 warnings)\n",
            "  1:1  error  x\n",
            "FAIL\tp\t1s\n",
            "\x1b[",
            "\0",
        ),
        *("--- FAIL: T (0.00s)\n", "=== RUN   T\n", "a.go:1:1: x\n", "\udcff", "٣", "1" * 30),
    ]
)


@settings(max_examples=300)
@given(st.lists(pieces, max_size=25).map("".join), st.none() | st.sampled_from(Report))
def test_nothing_that_is_printed_or_left_breaks_the_reader(tmp_path_factory, text, wanted):
    out = tmp_path_factory.mktemp("out")
    for name in ("a.xml", "a.json", "a.sarif", "a.tap", "a.txt"):
        put(out, name, text.encode("utf-8", "surrogateescape"))

    for found in (read_reports(out, text, wanted), read_reports(out / "none", text, wanted)):
        for finding in found.findings if isinstance(found, ReportRead) else ():
            assert finding.issue.isprintable()
            place = finding.location
            assert place is None or not place.file.startswith(("/", ".."))
