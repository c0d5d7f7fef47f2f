"""What an agent reads after a failed evaluation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from msgspec.structs import replace

from lockgate.core.model.findings import Finding, GateFeedback, Location, Priority, by_priority
from lockgate.core.text.feedback import fresh_agent_prompt, one_line, same_agent_message, verdict_of
from lockgate.core.text.task_file import Verdict

P0, P1, P2, P3 = Priority
REVIEW = GateFeedback(
    gate_name="code_review",
    findings=(
        Finding(P3, "a shorter name would do"),
        Finding(P1, "a time-out of the database is not caught", Location("src/user.py", 15, 9)),
        Finding(P0, "the query is built from user input", Location("src/auth.py", 42), "bind it"),
        Finding(P2, "no test for the empty list", Location("src/list.py")),
    ),
    summary="code_review failed with 1 P0, 1 P1, 1 P2, 1 P3",
    suggested_action="Fix every P0 and P1 finding, then hand off again.",
)

# Text that tries: line breaks of every kind, headings, fences, quotes, comments, tags.
hostile = st.lists(
    st.sampled_from(
        [
            *("\n", "\r", "\x85", "\u2028", "\t", " ", "\x1b", "\x1b[2J", "\u200b", "x", "PASS"),
            *("#", "## Review", "```", "~~~", ">", "- ", "* ", "1. ", "2)", "===", "---", "|"),
            *("<!--", "-->", "<div>", "</pre>", "\\", "[a]: b", "&#35; ", "'"),
        ]
    ),
    max_size=8,
).map("".join)
locations = st.none() | st.builds(Location, hostile, st.none() | st.integers(1, 99))
findings = st.builds(Finding, st.sampled_from(Priority), hostile, locations, st.none() | hostile)
feedbacks = st.builds(
    GateFeedback,
    gate_name=hostile,
    findings=st.lists(findings, max_size=5).map(tuple),
    summary=hostile,
    suggested_action=hostile,
)


def blocks_of(text: str, kind: str) -> list[str]:
    """The texts of all blocks of a kind that are not inside a quote."""
    found: list[str] = []
    quotes = 0
    tokens = MarkdownIt().parse(text)
    for at, token in enumerate(tokens):
        quotes += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        if token.type == kind and not quotes:
            found.append(tokens[at + 1].content)
    return found


def heading_words(feedback: GateFeedback) -> list[str]:
    words = {P0: "P0 Critical", P1: "P1 Major", P2: "P2 Minor", P3: "P3 Suggestion"}
    return [words[it] for it in Priority if any(f.priority is it for f in feedback.findings)]


@pytest.mark.req("R141")
def test_the_same_agent_reads_what_failed_in_order_and_that_its_workspace_is_as_it_was() -> None:
    message = same_agent_message(REVIEW)

    assert message == (
        "Gate evaluation found issues that need fixing:\n"
        "\n"
        "## Failed Gate: code_review\n"
        "\n"
        "code_review failed with 1 P0, 1 P1, 1 P2, 1 P3\n"
        "\n"
        "### P0 Critical\n"
        "- src/auth.py:42 - the query is built from user input → bind it\n"
        "\n"
        "### P1 Major\n"
        "- src/user.py:15:9 - a time-out of the database is not caught\n"
        "\n"
        "### P2 Minor\n"
        "- src/list.py - no test for the empty list\n"
        "\n"
        "### P3 Suggestion\n"
        "- a shorter name would do\n"
        "\n"
        "Suggested action: Fix every P0 and P1 finding, then hand off again.\n"
        "\n"
        "Please fix these issues. The workspace is unchanged: continue where you left off."
    )


@pytest.mark.req("R142")
def test_a_fresh_agent_reads_all_that_it_needs_to_continue() -> None:
    prompt = fresh_agent_prompt(
        "Fix the login",
        "Moved the check.\nTests are red.",
        REVIEW,
        ["src/auth.py", "src/user.py"],
        "git diff main...HEAD",
    )

    assert prompt.startswith(
        "Continue task: Fix the login\n"
        "\n"
        "Previous work summary:\n"
        "> Moved the check.\n"
        "> Tests are red.\n"
        "\n"
        "Gate evaluation found issues:\n"
        "\n"
        "## Failed Gate: code_review\n"
    )
    assert prompt.endswith(
        "Files modified so far:\n"
        "- src/auth.py\n"
        "- src/user.py\n"
        "\n"
        "Please fix the issues identified above.\n"
        "\n"
        "Review the current state with: git diff main...HEAD"
    )


@pytest.mark.req("R142")
def test_a_fresh_agent_is_told_when_there_is_no_summary_and_no_file() -> None:
    prompt = fresh_agent_prompt("Fix it", "", REVIEW, [], "git diff")

    assert "Previous work summary:\n> (none)\n" in prompt
    assert "Files modified so far:\n- (none)\n" in prompt


@pytest.mark.req("R142")
def test_the_findings_a_fresh_agent_reads_are_those_the_same_agent_would() -> None:
    message = same_agent_message(REVIEW)
    prompt = fresh_agent_prompt("Fix it", "Began.", REVIEW, [], "git diff")

    start, end = message.index("## Failed"), message.index("Please fix")
    assert message[start:end] in prompt


@pytest.mark.req("R141")
@given(feedbacks)
def test_no_text_of_a_finding_forges_a_section_or_a_second_item(feedback: GateFeedback) -> None:
    message = same_agent_message(feedback)

    headings = blocks_of(message, "heading_open")
    assert headings[0].startswith("Failed Gate:")
    assert headings[1:] == heading_words(feedback)
    items = [line for line in message.split("\n") if line.startswith("- ")]
    assert len(items) == len(feedback.findings)
    assert message.split("\n") == message.splitlines()


@pytest.mark.req("R142")
@given(hostile, hostile, feedbacks, st.lists(hostile, max_size=3))
def test_nothing_an_earlier_agent_wrote_forges_a_section(
    title: str, summary: str, feedback: GateFeedback, files: list[str]
) -> None:
    prompt = fresh_agent_prompt(title, summary, feedback, files, "git diff")

    headings = blocks_of(prompt, "heading_open")
    assert len(headings) == 1 + len(heading_words(feedback))
    assert "<!--" not in prompt
    assert prompt.endswith("Review the current state with: git diff")


@pytest.mark.req("R141")
@pytest.mark.parametrize(
    "file", ["__init__.py", ".github/ci.yml", "~/x", "#notes", "2.txt", "-x", "a b/c.py"]
)
def test_a_place_is_written_as_it_is(file: str) -> None:
    finding = Finding(P1, "`name` is *unused*", Location(file, 3))

    message = same_agent_message(replace(REVIEW, findings=(finding,)))

    assert f"\n- {file}:3 - `name` is *unused*\n" in message


@given(st.text())
def test_one_line_is_one_printable_line(text: str) -> None:
    line = one_line(text)

    assert line.isprintable()
    assert line.splitlines() == [line]


@pytest.mark.parametrize(
    ("priorities", "all_passed", "verdict"),
    [
        ((), True, Verdict.PASS),
        ((P2, P3), True, Verdict.PASS),
        ((P3, P1), True, Verdict.FAIL),
        ((P0,), True, Verdict.FAIL),
        ((), False, Verdict.FAIL),
        ((P3,), False, Verdict.FAIL),
    ],
)
def test_the_verdict_is_pass_only_when_all_passed_and_nothing_blocks(
    priorities: tuple[Priority, ...], all_passed: bool, verdict: Verdict
) -> None:
    found = [Finding(priority, "boom") for priority in priorities]

    assert verdict_of(found, all_passed=all_passed) is verdict


@given(st.lists(findings))
def test_ordering_by_priority_keeps_every_finding_and_the_order_of_equals(
    found: list[Finding],
) -> None:
    ordered = by_priority(found)

    assert [it.priority for it in ordered] == sorted(it.priority for it in found)
    for priority in Priority:
        assert [it for it in ordered if it.priority is priority] == [
            it for it in found if it.priority is priority
        ]
