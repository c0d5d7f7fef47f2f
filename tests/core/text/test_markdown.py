"""Sections: what markdown-it-py finds, on any text, in time that grows with its size only."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from lockgate.core.text.markdown import DEEPEST, closer, sections

ORACLE = MarkdownIt("commonmark")

PIECES = [
    "## A", "## B ##", "##", "## ##", "# One", "### C", "####### no", "#x", "##\tTab\t##", "## a#",
    "text", "more text", "  text", "   text", "    lazy", "\f", "**bold** x", "*e* x", "_u_ x",
    "- a", "- ", "-", " - a", "  - b", "    - c", "* s", "+ p", "-\tx", "- - z", "-     code",
    "1. x", "2. y", "3) z", "10. k", "1.\tq", "1.", "1234567890. n", "3.5 x", "*   \tz",
    "- ## L", "  ## L2", "- ```", "- `c`", "- > q", "> - x", ">  - y", "- <div>", "- [ ] t",
    "> q", "> ## Q", ">", "> ```", ">\tcode", "  > z", "> <!--", ">q",
    "```", "```py", "````", "``` a`b", "   ```", "  ```", "    ```", "~~~", "~~~~ x", "`code`",
    "~x",
    "<!-- x", "-->", "<!-- y -->", "x <!-- z", "<!-->", "<div>", "</div>", "<DIV a", "<pre>",
    "</pre>", "<b>", "<b> x", "</b>", "<a href=\"x\" b='c' d=e f>", '<a href="x>', "<?php", "?>",
    "<!X", "x>", "<![CDATA[", "]]>", "<script>x</script>", "<textarea>", "<x-y />", "<1>", "<",
    "---", "===", "- - -", "***", "___", "--", "=", "= =", " ---", "-- -", "* * x",
    "    code", "\tcode", "\t## T", " \t## T", "  ## I", "    ## no",
    "| a | b |", "|---|---|", "", "", "", "", " ", "\t", "\u00e9", "## \u00e9", "2 x", "+x", "--x",
]  # fmt: skip
DOCUMENTS = st.lists(st.sampled_from(PIECES), max_size=14).map("\n".join)
ENDINGS = ["\n", "\r\n", "\r"]


def found(text: str) -> list[tuple[str, int]]:
    """Title and line of each section."""
    lines = re.compile(r"\r\n|\r|\n")
    return [(it.title.strip(), len(lines.findall(text[: it.start]))) for it in sections(text)]


def expected(text: str) -> list[tuple[str, int]]:
    tokens = ORACLE.parse(text)
    return [
        (re.sub(r"[ \t]*\n[ \t]*", "\n", tokens[n + 1].content), (it.map or [0])[0])
        for n, it in enumerate(tokens)
        if it.type == "heading_open" and it.level == 0 and it.tag == "h2"
    ]


@settings(max_examples=600)
@given(DOCUMENTS, st.sampled_from(ENDINGS), st.booleans())
@pytest.mark.unmeasured
def test_sections_are_those_of_commonmark(text, ending, ended):
    text = (text + "\n" * ended).replace("\n", ending)

    assert found(text) == expected(text)


@given(st.text(alphabet="#`~<>-=*+_1. \t\nab!/?[]\"'\\", max_size=80))
def test_sections_are_those_of_commonmark_on_noise(text):
    if "]:" in text:
        return  # a link reference, see below

    assert found(text) == expected(text)


def test_a_section_goes_from_its_heading_to_the_next_of_level_one_or_two() -> None:
    body = "before\n## A\none\n### deep\ntwo\n# Top\nthree\n\nB\n---\nfour"

    first, second = sections(body)

    assert (first.title, first.text) == ("A", "one\n### deep\ntwo\n")
    assert body[first.start : first.end] == "## A\none\n### deep\ntwo\n"
    assert (second.title, second.text) == ("B", "four")
    assert body[second.start :] == "B\n---\nfour"


def test_offsets_hold_with_any_line_ending() -> None:
    body = "x\r\n## A\r\none\r## B\r\ntwo"

    first, second = sections(body)

    assert body[first.start : first.end] == "## A\r\none\r"
    assert body[second.start : second.end] == "## B\r\ntwo"
    assert second.text == "two"


@pytest.mark.parametrize(
    ("body", "titles"),
    [
        ("[a]: /url\n---\n## B\n", ["B"]),
        ("[a]: /url 'title'\nC\n---\n", ["C"]),
        ("[a]:\n/url\n[b]: <x> (y)\nC\n---\n", ["C"]),
        ("[a] x\n---\n", ["[a] x"]),
    ],
)
def test_a_link_reference_is_no_title(body, titles):
    assert [it.title for it in sections(body)] == titles
    assert [title for title, _ in expected(body)] == titles


def test_a_real_file_with_lists_fences_quotes_and_tables_is_read_right() -> None:
    body = (
        "## Context\n1. Run\n\n   ```sh\n   ## not this\n   make\n   ```\n2. Look\n   - a\n"
        "     ```\n     ## nor this\n     ```\n\n> quote\n> ## nor that\n\n| a | b |\n|---|---|\n"
        "<details>\n<summary>log</summary>\n\n```\n## no\n```\n\n</details>\n\n## Handoff\nDONE\n"
    )

    assert [it.title for it in sections(body)] == ["Context", "Handoff"]


@pytest.mark.parametrize(
    ("body", "titles"),
    [
        ("-\n\n  ## A\n", ["A"]),  # an empty item ends at a blank line
        ("-\n  ## A\n", []),  # else it goes on
        ("- x\n\n  ## A\n", []),
        ("1. x\n  ## A\n", ["A"]),
        ("> x\n\n## A\n", ["A"]),
        ("x\n2. y\n---\n", ["x\n2. y"]),  # only 1 breaks into a paragraph
        ("> x\n---\n## A\n", ["A"]),
    ],
)
def test_where_a_list_item_or_a_quote_ends(body, titles):
    assert [it.title for it in sections(body)] == titles
    assert [title for title, _ in expected(body)] == titles


def test_markers_nested_too_deep_are_text_and_hide_no_heading() -> None:
    body = "> " * (DEEPEST + 9) + "x\n\n" + "- " * (DEEPEST + 9) + "y\n\n## A\n"

    assert [it.title for it in sections(body)] == ["A"]


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("text\n", ""),
        ("```\nx\n```\n", ""),
        ("```\nx\n", "```"),
        ("~~~~\n```\n", "~~~~"),
        ("<!-- a\n", "-->"),
        ("<!-- a -->\n", ""),
        ("<style>\n", "</pre>"),
        ("- ```\n", ""),
        ("<div>\n", ""),
    ],
)
def test_what_is_open_at_the_end_can_be_closed(body, line):
    assert closer(body) == line


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    "unit",
    [
        "> a\n", "> ```\n", "<!--\n", "<!-- a\n\n", "```\n", "``` `\n", "- ", "- \n", "> ", "1. ",
        "`", "~~~\n~\n", "<a ", "<a b=", "[", "[a]: b\n", "[a\n", "\t", " ", " \n", "\n\n ", "#",
        "## ",
        "a\n---\n", "a\n", "=\n", "-\n", "- a\n\n      b\n", "* * ", "<div>\n", "<b>\n", "</",
        "-->", "<!-", "<![CDATA[\n", "\r", "\r\n", "0", "0. ", "_ ", "    x\n", "- ```\n", "\\",
        "|-",
    ],
)  # fmt: skip
@pytest.mark.unmeasured
def test_time_grows_with_size_only(unit):
    text = unit * (100_000 // len(unit))

    began = time.thread_time()
    sections(text)

    assert time.thread_time() - began < 5
