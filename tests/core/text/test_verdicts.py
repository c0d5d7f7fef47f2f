"""Verdicts: a corpus of TASK.md files, each also cut at every byte, and hostile forms."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.adapters.task_file import split_frontmatter
from lockgate.core.text.task_file import (
    REVIEWER_SECTIONS,
    Artifacts,
    Verdict,
    extract_review_verdict,
    merge_sections,
    parse_task_artifacts,
)

CORPUS = Path(__file__).parent / "verdicts"
EXPECTED = dict(line.split() for line in (CORPUS / "expected.txt").read_text().splitlines())

VERDICTS = [
    # what a reviewer may write
    ("PASS\n", "pass"),
    ("FAIL\n", "fail"),
    ("\n\nPASS\n", "pass"),
    ("pass\n", "pass"),
    ("Fail\n", "fail"),
    ("**PASS**.\n", "pass"),
    ("*PASS*\n", "pass"),
    ("__PASS__\n", "pass"),
    ("### PASS ###\n", "pass"),
    ("* PASS\n", "pass"),
    ("+ PASS!\n", "pass"),
    ("2) PASS\n", "pass"),
    ("VERDICT: pass\n", "pass"),
    ("**Verdict**: `PASS`\n", "pass"),
    ("- **Verdict:** **PASS**\n", "pass"),
    ("**PASS!**\n", "pass"),
    ("PASS.  \n", "pass"),
    ("PASS/FAIL: PASS\n", "pass"),
    ("- **PASS/FAIL:** PASS.\n", "pass"),
    ("PASS\n\n- P2: a name\n- the P1 of round 1 is fixed\n", "pass"),
    ("PASS\n\nNothing can fail here. No verdict is missing.\n", "pass"),
    ("PASS\n\n```\nFAIL\nVerdict: FAIL\nP0: x\n```\n", "pass"),
    ("PASS\n\n    FAIL\n", "pass"),
    ("PASS\n\n> FAIL\n> Verdict: FAIL\n> P0: that was round 1\n", "pass"),
    ("PASS\r\nand more\r\n", "pass"),
    ("PASS\rand more\r", "pass"),
    ("Looks good.\nPASS\n", "pass"),
    ("Read it all:\nPASS\n", "pass"),
    ("A line\nVerdict: PASS\n", "pass"),
    ("text <!-- FAIL --> text\n\nPASS\n", "pass"),
    ("<!-- FAIL\n\nFAIL -->\n\nPASS\n", "pass"),
    ("~~~\nFAIL\n~~~\nPASS\n", "pass"),
    ("It will fail\n", "fail"),
    ("PASSED? No: FAIL\n", "fail"),
    ("__FAIL__\n\nPASS: the tests\n", "fail"),
    ("<b>FAIL</b>\n", "fail"),
    ("<!-- x --> FAIL\n\nPASS\n", "fail"),
    ("FAIL", "fail"),
]

HOSTILE = [
    # not finished
    "PASS",
    "**PASS**",
    "Verdict: PASS",
    "FAILURE is not seen\nPASS",
    # not a verdict line
    "PASS if you fix it\n",
    "PASS unless the tests are red\n",
    "PASS?\n",
    "PASS/\n",
    "PASS-ish\n",
    "PASS-through is broken\n",
    "PASS.md is missing\n",
    "PASS's\n",
    "PASS)\n",
    "PASS = false\n",
    "PASS(es)\n",
    "PASS 3 of 9\n",
    "not PASS\n",
    "NO PASS\n",
    "!PASS\n",
    "~PASS\n",
    "(PASS)\n",
    '"PASS"\n',
    "[PASS]\n",
    "[PASS](http://example.org)\n",
    "![PASS](x.png)\n",
    "\\PASS\n",
    "Result: PASS\n",
    "Previous verdict: PASS\n",
    "Verdict PASS\n",
    "Verdict: not PASS\n",
    "Verdict: (PASS)\n",
    "Verdict: Verdict: PASS\n",
    "MUST_PASS: yes\n",
    "test_pass\n",
    "This does not\nPASS\n",
    "- this does not\n  pass.\n",
    "nearly a **hard\nPASS**\n",
    "| PASS | all |\n",
    "- [x] PASS\n",
    "~~PASS~~\n",
    # a verdict line has nothing behind the word
    "`PASS`: good\n",
    "PASS: fixed what made it slow\n",
    "PASS, with two remarks\n",
    "PASS, but only after P0 is fixed\n",
    "PASS - NOT\n",
    "PASS -- fine\n",
    "PASS \u2013 fine\n",
    "PASS \u2014 no\n",
    "PASS (two remarks below)\n",
    "PASS. Actually no.\n",
    "PASS!?\n",
    "PASS..\n",
    "PASS; not\n",
    "PASS PASS\n",
    "Verdict: PASS, but not yet\n",
    "PASS/FAIL: PASS, but not yet\n",
    "PASS/FAIL PASS\n",
    "PASS/FAIL:\n",
    "FAIL/PASS: PASS\n",
    # both words
    "PASS/FAIL: FAIL\n",
    "PASS or FAIL\n",
    "PASS. FAIL.\n",
    "Verdict: PASS, not FAIL\n",
    "FAIL -> PASS\n",
    # words that only look like it
    "PASSED\n",
    "passing\n",
    "BYPASS\n",
    "PASS1\n",
    "1PASS\n",
    "P A S S\n",
    "P\u200bASS\n",
    "\u200bPASS\n",
    "PASS\u200b\n",
    "\ufeffPASS\n",
    "PASS\u202e\n",
    "\u00a0PASS\n",
    "PASS\u00a0\n",
    "\u0420ASS\n",
    "P\u0391SS\n",
    "PA\u0405\u0405\n",
    "PA\u017f\u017f\n",
    "\uff30\uff21\uff33\uff33\n",
    "\U0001d40f\U0001d400\U0001d412\U0001d412\n",
    "PASS\u0301\n",
    "\u00e9PASS\n",
    "PASS\u00e9\n",
    "PASS\u2705\n",
    "\u2705 PASS\n",
    "&#80;ASS\n",
    "P&shy;ASS\n",
    "PASS\0\n",
    "PASS\x1b[8m FAIL\n",
    "PASS\x08\x08\x08\x08FAIL\n",
    # seen by nobody, or no text of the reviewer's own
    "```\nPASS\n```\n",
    "```\nPASS\n",
    "~~~ text\nPASS\n~~~~~\n",
    "````\n```\nPASS\n````\n",
    "    PASS\n",
    "\tPASS\n",
    "- item\n\n      PASS\n",
    "- ```\n  PASS\n  ```\n",
    "> PASS\n",
    ">PASS\n",
    "> said\nPASS\n",
    "- > PASS\n",
    "1. x\n   > PASS\n",
    "<!-- PASS -->\n",
    "<!--\nPASS\n-->\n",
    "<!--\nPASS\n",
    "<!--\n\nPASS\n\n",
    "text <!--\nPASS\n-->\n",
    "text `<!--` and\nPASS\n",
    "`<!--` FAIL `-->`\n\nPASS\n",
    "<!-- x --> PASS\n",
    "PASS <!-- no -->\n",
    "<!-- a --> <!-- b\nPASS\n-->\n",
    "<div>\nPASS\n</div>\n",
    "<pre>\nPASS\n</pre>\n",
    "<script>\nPASS\n</script>\n",
    "<b>PASS</b>\n",
    "<del>\nPASS\n</del>\n",
    "<?php\nPASS\n?>\n",
    "<![CDATA[\nPASS\n]]>\n",
    "",
    "\n",
    "no word at all\n",
]

TAKEN_BACK = [
    "PASS.\n\nActually no. FAIL.\n",
    "PASS.\nActually no. FAIL.\n",
    "PASS\nFAIL\n",
    "Verdict: PASS\n\nVerdict: FAIL\n",
    "Verdict: PASS\n\n**Verdict**: not yet\n",
    "Verdict: PASS\n\nFinal verdict: no\n",
    "PASS\n\nPASS/FAIL: see below\n",
    "PASS\n\nit FAILED again\n",
    "PASS\n\n__FAIL__\n",
    "PASS\n\nnever mind: FAIL",
    "PASS\n\n<b>FAIL</b>\n",
    "PASS\n\n<!-- FAIL -->\n",
    "PASS\n\n# FAIL\n",
    "PASS\n\n| tests | FAIL |\n",
    "PASS\n\n> it was red\nand FAIL it does again\n",
    "PASS\n\nP0: the token is logged\n",
    "PASS\nP1 the token is logged\n",
    "PASS\n\n- P0: the token is logged\n",
    "PASS\n\n1. **P1** the token is logged\n",
    "PASS\n\n- [P1] the token is logged\n",
    "PASS\n\n- [ ] P1 the token is logged\n",
    "PASS\n\n### P0 Critical\n\nthe token is logged\n",
    "PASS\n\n| P0 | the token is logged |\n",
    "PASS\n\n* 2) _P0_\n",
    "PASS\n\np1: the token is logged\n",
    "PASS\n\n- P2: a name\n  P1: the token is logged\n",
]
MARKUP = st.sampled_from(["", "- ", "* ", "1. ", "**", "`", "### ", "_", "- **", "  "])
WORDS = st.text(st.characters(exclude_characters="\r\n"), max_size=20)
LATER = st.lists(
    st.sampled_from(
        ["fine", "- P2: a name", "", "> FAIL", "    x", "1. one", "# a", "it may fail", "the P0"]
    ),
    max_size=5,
).map(lambda lines: "\n".join(["", *lines, ""]))


def body_of(name: str) -> str:
    _, body = split_frontmatter((CORPUS / f"{name}.md").read_bytes().decode())
    return body


@pytest.mark.req("R73", "R75")
@pytest.mark.parametrize(("name", "expected"), EXPECTED.items())
def test_a_realistic_file_has_the_verdict_that_a_reader_sees(name, expected):
    found = parse_task_artifacts(body_of(name))

    assert (found.verdict or "none") == expected
    assert found.has_handoff


def test_the_corpus_and_its_table_name_the_same_files():
    files = {it.stem for it in CORPUS.glob("*.md")}

    assert files == set(EXPECTED)
    assert len(files) >= 50


@pytest.mark.req("R75")
@pytest.mark.parametrize(
    "name",
    [
        name
        for name, verdict in EXPECTED.items()
        if verdict != "pass" and name != "pass-then-fail-later"
    ],
)
@pytest.mark.unmeasured
def test_a_file_cut_at_any_byte_never_passes(name):
    data = (CORPUS / f"{name}.md").read_bytes()

    passed = [cut for cut in range(len(data)) if _verdict_of(data[:cut]) is Verdict.PASS]

    assert passed == []


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.unmeasured
def test_a_review_cut_inside_a_line_does_not_pass_by_being_copied(name):
    data = (CORPUS / f"{name}.md").read_bytes()
    start = data.rfind(b"## Review")
    cuts = [cut for cut in range(start, len(data)) if data[cut - 1 : cut] not in (b"\n", b"\r")]

    for cut in cuts:
        _, body = split_frontmatter(data[:cut].decode("utf-8", "ignore"))
        copied = merge_sections("## Context\n\n## Notes\n", body, REVIEWER_SECTIONS)

        assert parse_task_artifacts(copied).verdict == parse_task_artifacts(body).verdict


@pytest.mark.parametrize("name", [name for name, verdict in EXPECTED.items() if verdict == "pass"])
def test_a_file_that_passes_does_so_only_once_its_verdict_line_is_whole(name):
    data = (CORPUS / f"{name}.md").read_bytes()
    start = data.rfind(b"## Review")
    cuts = range(start, len(data) + 1)

    first = next(cut for cut in cuts if _verdict_of(data[:cut]) is Verdict.PASS)

    assert data[:first].endswith((b"\n", b"\r"))
    assert b"pass" in data[:first].splitlines()[-1].lower()


@pytest.mark.parametrize("name", ["plain-pass", "table", "quote-fail"])
def test_a_file_cut_above_its_handoff_has_none_and_breaks_nothing(name):
    data = (CORPUS / f"{name}.md").read_bytes()
    handoff = data.index(b"\n## Handoff")

    found = [_artifacts_of(data[:cut]) for cut in range(handoff + len(b"\n## Handoff") + 1)]

    assert not any(it.has_handoff or it.has_review for it in found)


@pytest.mark.req("R75")
@pytest.mark.parametrize(("text", "expected"), VERDICTS)
def test_the_first_line_with_the_word_decides(text, expected):
    assert extract_review_verdict(text) == expected


@pytest.mark.req("R75")
@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_but_a_whole_verdict_line_passes(text):
    assert extract_review_verdict(text) is None


@pytest.mark.parametrize(
    "text", [text for text, verdict in VERDICTS if verdict == "fail"] + HOSTILE
)
def test_no_beginning_of_a_text_without_pass_passes(text):
    found = {extract_review_verdict(text[:cut]) for cut in range(len(text) + 1)}

    assert Verdict.PASS not in found


@pytest.mark.req("R75")
@pytest.mark.parametrize("text", TAKEN_BACK)
def test_a_pass_that_the_text_takes_back_later_is_no_verdict(text):
    assert extract_review_verdict(text) is None


def test_a_file_that_takes_its_pass_back_does_not_pass_however_much_follows() -> None:
    data = (CORPUS / "pass-then-fail-later.md").read_bytes()
    taken_back = data.rindex(b"FAIL") + len(b"FAIL")

    passed = [
        cut for cut in range(taken_back, len(data) + 1) if _verdict_of(data[:cut]) is Verdict.PASS
    ]

    assert passed == []


@given(MARKUP, WORDS, st.sampled_from(["FAIL", "Verdict:", "verdict :", "**Verdict:**"]), WORDS)
def test_no_text_passes_with_fail_or_a_verdict_in_a_paragraph_below(markup, before, word, after):
    text = f"PASS\n\n{markup}x{before}{word}{after}\n"

    assert extract_review_verdict(text) is None


@given(LATER, MARKUP, st.sampled_from(["P0", "P1", "p0", "P1:", "[P0]", "(P1)"]), LATER)
def test_no_text_passes_with_a_line_below_that_starts_with_p0_or_p1(above, markup, word, below):
    text = f"PASS\n{above}\n# next\n{markup}{word} x{below}"

    assert extract_review_verdict(text) is None


@given(WORDS.filter(lambda it: it.strip(" \t*_`#") not in ("", ".", "!")))
def test_no_text_passes_with_words_behind_pass_on_its_line(rest):
    assert extract_review_verdict(f"PASS {rest}\n\nfine\n") is not Verdict.PASS


@given(LATER)
def test_what_neither_takes_it_back_nor_blocks_leaves_a_pass_as_it_is(later):
    assert extract_review_verdict(f"Verdict: PASS\n{later}") is Verdict.PASS


def _artifacts_of(data: bytes) -> Artifacts:
    _, body = split_frontmatter(data.decode("utf-8", "ignore"))
    return parse_task_artifacts(body)


def _verdict_of(data: bytes) -> Verdict | None:
    return _artifacts_of(data).verdict
