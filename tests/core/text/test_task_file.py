"""Artifacts: what of TASK.md counts, what is said of the rest, how sections are carried over."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lockgate.core.text.markdown import sections
from lockgate.core.text.task_file import (
    REVIEWER_SECTIONS,
    WORKER_SECTIONS,
    Artifacts,
    BrokenFrontmatter,
    Verdict,
    count_in,
    digest,
    merge_sections,
    parse_task_artifacts,
    replace_section,
    section_text,
    text_of_hosts,
    without_old,
    without_section,
)

EMPTY = [
    "",
    "\n",
    "\n\n \t\n",
    "\n<!-- say what you did -->\n",
    "\n<!-- never closed\n",
    "\n<!-- a --><!-- b -->\n",
    "\n---\n\n***\n",
    "\n- \n",
    "\n\u200b\n",
    "\n## Notes\ntext\n",
    "\n# Other\ntext\n",
]

LINES = st.sampled_from(
    [
        "## Handoff", "## Notes", "## Review", "## Context", "# Top", "text", "- item", "  more",
        "```", "~~~", "<!--", "-->", "<div>", "<pre>", "> quote", "PASS", "", "", "1. one",
        "    code",
    ]
)  # fmt: skip
BODIES = st.lists(LINES, max_size=12).map("\n".join)


@pytest.mark.req("R68", "R73")
def test_a_handoff_with_content_is_there() -> None:
    found = parse_task_artifacts("## Context\nx\n\n## Handoff\n\nDONE: all\n\n## Notes\ny\n")

    assert found.has_handoff
    assert found.handoff == "DONE: all"
    assert not found.has_review
    assert found.problems == ()


@pytest.mark.req("R74")
@pytest.mark.parametrize("content", EMPTY)
def test_a_heading_with_no_content_counts_as_missing(content):
    found = parse_task_artifacts(f"## Handoff{content}")

    assert not found.has_handoff
    assert found.handoff_digest is None
    assert found.problems == ("TASK.md has a '## Handoff' section with nothing in it",)


@pytest.mark.req("R74")
def test_an_empty_review_is_no_review() -> None:
    found = parse_task_artifacts("## Review\n<!-- PASS -->\n")

    assert not found.has_review
    assert found.verdict is None


@pytest.mark.req("R69", "R73")
def test_a_review_says_its_verdict() -> None:
    found = parse_task_artifacts("## Review\n\nPASS\n\nfine\n")

    assert found.has_review
    assert found.review == "PASS\n\nfine"
    assert found.verdict is Verdict.PASS


@pytest.mark.req("R70", "R73")
def test_a_review_that_fails_says_so() -> None:
    assert parse_task_artifacts("## Review\nFAIL: tests\n").verdict is Verdict.FAIL


@pytest.mark.req("R75")
def test_a_review_without_a_verdict_is_named_as_a_problem() -> None:
    found = parse_task_artifacts("## Review\nfine, I think\n")

    assert found.has_review
    assert found.verdict is None
    assert "without a verdict" in found.problems[0]


@pytest.mark.parametrize("first", ["PASS", "FAIL"])
def test_two_reviews_are_none(first):
    found = parse_task_artifacts(f"## Review\n{first}\n\n## Review\nPASS\n")

    assert not found.has_review
    assert found.verdict is None
    assert found.problems == ("TASK.md has two '## Review' sections; keep one",)


def test_three_handoffs_are_none() -> None:
    found = parse_task_artifacts("## Handoff\na\n" * 3)

    assert found.problems == ("TASK.md has 3 '## Handoff' sections; keep one",)


@pytest.mark.req("R76")
@pytest.mark.parametrize(
    "body",
    [
        "I wrote the ## Handoff section\n",
        "### Handoff\ndone\n",
        "# Handoff\ndone\n",
        "##Handoff\ndone\n",
        "## handoff\ndone\n",
        "## Handoff notes\ndone\n",
        "## **Handoff**\ndone\n",
        "## H\u0430ndoff\ndone\n",
        "> ## Handoff\n> done\n",
        "- ## Handoff\n  done\n",
        "    ## Handoff\n    done\n",
        "```\n## Handoff\ndone\n```\n",
        "<!--\n## Handoff\ndone\n-->\n",
        "<pre>\n## Handoff\ndone\n</pre>\n",
        "\\## Handoff\ndone\n",
    ],
)
def test_what_only_looks_like_a_handoff_is_none(body):
    assert parse_task_artifacts(body) == Artifacts()


@pytest.mark.req("R68")
@pytest.mark.parametrize(
    "body",
    [
        "## Handoff ##\ndone\n",
        "   ## \tHandoff\t\ndone\n",
        "Handoff\n-------\ndone\n",
        "- a list\n## Handoff\ndone\n",
        "- ```\n  code\n## Handoff\ndone\n",
        "> ```\n## Handoff\ndone\n",
        "## Handoff\r\ndone\r\n",
        "## Handoff\rdone\r",
        "## Handoff\ndone",
        "x <!--\n## Handoff\ndone\n",
    ],
)
def test_a_handoff_may_be_written_in_any_way_of_commonmark(body):
    assert parse_task_artifacts(body).handoff == "done"


def test_a_digest_does_not_see_line_endings_and_white_space_at_line_ends() -> None:
    texts = ["a\n\nb\n", "a\r\n\r\nb\r\n", "a  \n \nb", "\na\r\rb\t\n\n\n"]

    assert len({digest(text) for text in texts}) == 1
    assert digest("a\nb") != digest("a\n\nb")


def test_the_same_artifact_elsewhere_has_the_same_digest() -> None:
    one = parse_task_artifacts("## Handoff\nDONE\n\n## Notes\n")
    other = parse_task_artifacts("## Notes\n\n## Handoff\nDONE")

    assert one.handoff_digest == other.handoff_digest


@given(st.text())
def test_any_text_can_be_read(text):
    found = parse_task_artifacts(text)

    assert found.has_handoff is (found.handoff is not None)
    assert found.verdict is None or found.has_review


# --- carrying sections over ---------------------------------------------------------------------


def test_sections_of_the_role_are_taken_and_all_else_stays() -> None:
    ours = "intro\n\n## Context\nours\n\n## Handoff\nold\n\n## Review\nFAIL\n"
    theirs = "## Context\ntheirs\n\n## Handoff\nnew\n\n## Review\nPASS\n"

    merged = merge_sections(ours, theirs, WORKER_SECTIONS)

    assert merged == "intro\n\n## Context\nours\n\n## Handoff\nnew\n\n## Review\nFAIL\n"


def test_a_section_that_is_new_is_added_at_the_end() -> None:
    merged = merge_sections("## Context\nours", "## Handoff\ndone\n", WORKER_SECTIONS)

    assert merged == "## Context\nours\n\n## Handoff\ndone\n"


def test_a_section_that_the_other_side_lacks_stays() -> None:
    ours = "## Handoff\ndone\n"

    assert merge_sections(ours, "## Review\nPASS\n", WORKER_SECTIONS) == ours


def test_the_first_section_of_an_empty_file() -> None:
    assert merge_sections("", "## Review\nPASS\n", REVIEWER_SECTIONS) == "## Review\nPASS\n"


def test_a_double_section_is_carried_double_so_that_it_is_seen() -> None:
    merged = merge_sections("## Handoff\nx\n", "## Handoff\na\n## Handoff\nb\n", WORKER_SECTIONS)

    assert merged == "## Handoff\na\n## Handoff\nb\n"
    assert "two '## Handoff'" in parse_task_artifacts(merged).problems[0]


@pytest.mark.parametrize(
    ("body", "becomes"),
    [
        ("## Handoff\nold\n\n## Handoff\nnew\n", "## Handoff\n\nnew\n"),
        ("## Handoff\nnew\n\n## Handoff\nold\n", "## Handoff\n\nnew\n"),
        ("## Handoff\nnew\n\n## Handoff\nnew  \n", "## Handoff\n\nnew\n"),
        ("## Handoff\n\n## Handoff\nnew\n", "## Handoff\n\nnew\n"),
        ("## Handoff\n<!-- x -->\n## Handoff\nnew\n", "## Handoff\n\nnew\n"),
        (
            "## Handoff\none\n## Notes\nn\n## Handoff\ntwo\n",
            "## Handoff\n\none\n\ntwo\n\n## Notes\nn\n",
        ),
        ("## Handoff\nold\n## Handoff\nold\n", "## Handoff\n\nold\n"),
        ("## Questions\nold\n## Questions\nnew\n", "## Questions\n\nnew\n"),
    ],
)
def test_of_several_handoffs_or_questions_what_is_new_is_left_as_one(body, becomes) -> None:
    assert without_old(body, {digest("\nold\n")}) == becomes


@pytest.mark.parametrize(
    "body",
    [
        "## Handoff\nold\n",
        "## Handoff\nnew: no other Handoff\n",
        "```\n## Handoff\na\n```\n\n## Handoff\nold\n",
        "## Context\nsay hello\n",
    ],
)
def test_a_text_with_without_old_or_none_stays_as_it_is(body) -> None:
    assert without_old(body, {digest("\nold\n")}) == body


def test_our_double_section_becomes_one() -> None:
    ours = "## Review\na\n## Notes\nn\n## Review\nb\n## Context\nc\n"

    merged = merge_sections(ours, "## Review\nFAIL\n", REVIEWER_SECTIONS)

    assert merged == "## Review\nFAIL\n\n## Notes\nn\n\n## Context\nc\n"


@pytest.mark.parametrize(
    "open_end", ["```\ncode", "~~~~\n", "<!-- x", "<pre>", "<?x", "<![CDATA[", "<!X", "<div>"]
)
def test_a_block_left_open_cannot_swallow_what_follows(open_end):
    ours = "## Handoff\nold\n\n## Review\nFAIL\n"

    merged = merge_sections(ours, f"## Handoff\nnew\n{open_end}", WORKER_SECTIONS)

    assert parse_task_artifacts(merged).verdict is Verdict.FAIL


def test_a_verdict_cut_short_stays_so_when_copied() -> None:
    merged = merge_sections("## Context\n", "## Review\nPASS", REVIEWER_SECTIONS)

    assert "PASS <!--" in merged
    assert parse_task_artifacts(merged).verdict is None


@example("## Handoff\n## Notes\n## Handoff", "## Notes\n## Handoff")
@given(BODIES, BODIES)
def test_carrying_over_keeps_the_others_and_brings_the_named(ours, theirs):
    merged = merge_sections(ours, theirs, WORKER_SECTIONS)

    brought = {it.title for it in sections(theirs)} & WORKER_SECTIONS
    kept = [digest(it.text) for it in sections(ours) if it.title not in brought]
    now = [digest(it.text) for it in sections(merged) if it.title not in brought]
    assert brought <= {it.title for it in sections(merged)}
    assert len(now) == len(kept)
    assert merge_sections(merged, theirs, WORKER_SECTIONS) == merged


@given(BODIES, BODIES)
def test_a_worker_never_changes_the_verdict(ours, theirs):
    before = parse_task_artifacts(ours).verdict
    after = parse_task_artifacts(merge_sections(ours, theirs, WORKER_SECTIONS)).verdict

    assert after is not Verdict.PASS or before is Verdict.PASS


def test_a_section_can_be_written() -> None:
    body = "## Context\nc\n\n## Review\nold\n\n## Notes\nn\n"

    written = replace_section(body, "Review", "PASS\n\nAll gates passed.")

    assert written == ("## Context\nc\n\n## Review\n\nPASS\n\nAll gates passed.\n\n## Notes\nn\n")
    assert parse_task_artifacts(written).verdict is Verdict.PASS


@pytest.mark.req("R97")
@pytest.mark.parametrize(("fields", "count"), [({}, 0), ({"crash_count": 2}, 2)])
def test_a_counter_that_is_missing_reads_as_zero(fields, count):
    assert count_in(fields, "crash_count") == count


@pytest.mark.req("R97")
@pytest.mark.parametrize("value", ["2", True, -1, None, [1]])
def test_a_counter_that_is_no_whole_number_is_refused(value):
    found = count_in({"crash_count": value}, "crash_count")

    assert isinstance(found, BrokenFrontmatter)
    assert "crash_count" in found.why


def test_the_text_of_a_section_is_read_without_its_heading() -> None:
    body = "## Context\n\nSay\nhello.\n\n## Notes\nn\n"

    assert section_text(body, "Context") == "Say\nhello."
    assert section_text(body, "Handoff") == ""


@pytest.mark.parametrize(
    ("shared", "here", "is_copy", "counts"),
    [
        ("new", "old", True, "new"),
        ("new", "edited", False, "edited"),
        ("new", None, False, "new"),
        (None, "first", False, "first"),
        (None, None, False, None),
    ],
)
def test_of_a_text_that_hosts_share_an_edited_copy_counts_and_an_old_one_does_not(
    shared, here, is_copy, counts
) -> None:
    assert text_of_hosts(shared, here, is_copy=is_copy) == counts


@given(st.lists(st.sampled_from(["Context", "Handoff", "Review"]), max_size=5), st.booleans())
def test_a_section_goes_with_its_heading_and_all_others_stay(titles, twice) -> None:
    text = "".join(f"## {it}\n\nof {n}\n\n" for n, it in enumerate(titles))
    text += "## Handoff\n\nagain\n" if twice else ""

    left = without_section(text, "Handoff")

    kept = [(it.title, it.text.strip()) for it in sections(text) if it.title != "Handoff"]
    assert [(it.title, it.text.strip()) for it in sections(left)] == kept
