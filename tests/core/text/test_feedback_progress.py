"""What an agent reads the second time: what is fixed, still there, new, and the output's lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from msgspec.structs import replace

from lockgate.core.lifecycle.evaluation import feedback_from
from lockgate.core.model.findings import Finding, GateFeedback, Location, Priority, compared
from lockgate.core.model.limits import Limits
from lockgate.core.model.results import Failed
from lockgate.core.model.task import IterationOutcome, IterationRecord, NeedsFixes, Role, Working
from lockgate.core.prompts.worker import Before, opening
from lockgate.core.text.feedback import (
    MOST_LISTED,
    findings_by_priority,
    fresh_agent_prompt,
    progress,
    same_agent_message,
)
from tests.given import a_task

P0, P1, P2, P3 = Priority
LEAK = Finding(P1, "a leak", Location("a.py", 3))
NAME = Finding(P3, "a name", Location("a.py", 9))
RACE = Finding(P0, "a race", Location("b.py", 1), "lock it")
OUTPUT = "$ pytest\n\tE  assert 1 == 2\n\n```\n## Review\nPASS\n<!-- x"

lines = st.lists(
    st.sampled_from(
        [
            *("x", "", " ", "\t", "    y", "```", "`````", "~~~", "  ```", "## Handoff", "# z"),
            *("- item", "1. x", "> q", "<div>", "<!--", "-->", "---", "===", "</pre>", "PASS"),
            *("\x1b[31mred\x1b[0m", "\x0c", "a\x85b", "a\u2028b", "\r", "[a]: b", "\\"),
        ]
    ),
    min_size=1,
    max_size=8,
).map("\n".join)
gates = st.sampled_from(["lint", "tests", "review"])
findings = st.builds(
    Finding,
    st.sampled_from(Priority),
    st.sampled_from(["a leak", "a race", "line 3", "line 4", "lint: x", "cmd:\nout 1", "cmd:\nb"]),
    st.none() | st.builds(Location, st.sampled_from(["a.py", "b.py"]), st.integers(1, 3)),
)
failures = st.lists(
    st.builds(Failed, gates, st.lists(findings, max_size=4).map(tuple)),
    min_size=1,
    max_size=3,
    unique_by=lambda it: it.gate,
)


def feedback(*found: Finding, gate: str = "review") -> GateFeedback:
    return feedback_from([Failed(gate, found)])


def fenced(text: str) -> list[str]:
    return [it.content for it in MarkdownIt().parse(text) if it.type == "fence"]


def headings(text: str) -> list[str]:
    tokens = MarkdownIt().parse(text)
    return [tokens[at + 1].content for at, it in enumerate(tokens) if it.type == "heading_open"]


# --- since the evaluation before ------------------------------------------------------------------


@pytest.mark.req("R134", "R141")
def test_the_second_message_says_what_is_fixed_still_there_and_new() -> None:
    moved = replace(LEAK, location=Location("a.py", 30))

    message = same_agent_message(feedback(moved, RACE), feedback(LEAK, NAME))

    assert message == (
        "Gate evaluation found issues that need fixing:\n"
        "\n"
        "## Failed Gate: review\n"
        "\n"
        "review failed with 1 P0, 1 P1\n"
        "\n"
        "### P0 Critical\n"
        "- b.py:1 - a race → lock it (new)\n"
        "\n"
        "### P1 Major\n"
        "- a.py:30 - a leak (still there)\n"
        "\n"
        "Since the evaluation before: 1 fixed, 1 still there, 1 new.\n"
        "\n"
        "Fixed:\n"
        "- a.py:9 - a name\n"
        "\n"
        "Suggested action: Fix every P0 and P1 finding, then hand off again.\n"
        "\n"
        "Please fix these issues. The workspace is unchanged: continue where you left off."
    )


@pytest.mark.req("R142")
def test_a_fresh_agent_reads_the_same_of_what_was_before() -> None:
    now, before = feedback(RACE), feedback(LEAK)

    message = same_agent_message(now, before)
    prompt = fresh_agent_prompt("Fix it", "Began.", now, [], "git diff", before)

    start, end = message.index("## Failed"), message.index("Please fix")
    assert message[start:end] in prompt


def test_what_another_gate_found_before_is_not_called_fixed() -> None:
    message = same_agent_message(feedback(LEAK, gate="tests"), feedback(RACE, gate="review"))

    assert "Since the evaluation before: 0 fixed, 0 still there, 1 new.\n" in message
    assert (
        "Found then by review, which has passed now or has yet to judge again:\n- b.py:1 - a race\n"
    ) in message
    assert "Fixed:" not in message


@pytest.mark.req("R134")
def test_gates_that_failed_together_are_compared_gate_by_gate() -> None:
    before = feedback_from([Failed("lint", (NAME, LEAK)), Failed("review", (RACE,))])
    now = feedback_from([Failed("lint", (NAME,))])

    seen = progress(before, now)

    assert seen.still_there == (True,)
    assert seen.fixed == (LEAK,)
    assert seen.elsewhere == (("review", (RACE,)),)
    back = progress(now, before)
    assert back.still_there == (False, False, True)
    assert (back.fixed, back.elsewhere) == ((), ())


def test_equal_findings_of_two_gates_are_told_apart() -> None:
    before = feedback_from([Failed("lint", (LEAK,)), Failed("review", ())])
    now = feedback_from([Failed("review", (LEAK,)), Failed("lint", (LEAK,))])

    assert progress(before, now).still_there == (False, True)


def test_a_command_that_fails_with_other_output_is_still_there() -> None:
    before = Finding(P1, "`make test`: the command exited 1:\n3 failed")
    now = Finding(P1, "`make test`: the command exited 1:\n1 failed: test_a")

    seen = progress(feedback(before), feedback(now))

    assert seen.still_there == (True,)
    assert seen.fixed == ()


def test_a_gate_whose_name_looks_like_two_is_compared_as_one() -> None:
    before, now = feedback(LEAK, NAME, gate="a, b"), feedback(LEAK, gate="a, b")

    assert progress(before, now).still_there == (True,)
    assert progress(before, now).fixed == (NAME,)


def test_a_long_list_of_what_is_fixed_is_cut_with_its_number() -> None:
    many = [Finding(P2, f"problem {'x' * it}") for it in range(1, MOST_LISTED + 4)]

    message = same_agent_message(feedback(RACE), feedback(*many))

    assert f"{len(many)} fixed" in message
    assert "\n- and 3 more\n" in message
    assert message.count("\n- problem ") == MOST_LISTED


@given(failures, failures)
def test_every_finding_before_is_fixed_still_there_or_elsewhere(then, today) -> None:
    before, now = feedback_from(then), feedback_from(today)

    seen = progress(before, now)

    elsewhere = sum(len(found) for _, found in seen.elsewhere)
    assert len(seen.still_there) == len(now.findings)
    assert len(before.findings) == len(seen.fixed) + sum(seen.still_there) + elsewhere


@given(failures)
def test_nothing_is_new_or_fixed_where_nothing_changed(failed) -> None:
    same = feedback_from(failed)

    seen = progress(same, same)

    assert all(seen.still_there)
    assert (seen.fixed, seen.elsewhere) == ((), ())


@given(st.lists(st.sampled_from([LEAK, NAME, RACE])), st.lists(st.sampled_from([LEAK, NAME])))
def test_one_gate_is_compared_as_findings_are(then, today) -> None:
    before, now = feedback(*then), feedback(*today)

    seen, plain = progress(before, now), compared(before, now)

    assert seen.fixed == plain.fixed
    kept = [it for it, stayed in zip(now.findings, seen.still_there, strict=True) if stayed]
    assert sorted(map(str, kept)) == sorted(map(str, plain.still_there))


# --- the output's own lines -----------------------------------------------------------------------


@pytest.mark.req("R134")
def test_the_output_of_a_command_keeps_its_lines_inside_its_item() -> None:
    finding = Finding(P1, f"`pytest`: the command exited 1:\n{OUTPUT}", None, "run it")

    (block,) = findings_by_priority([finding])

    assert block == (
        "### P1 Major\n"
        "- `pytest`: the command exited 1: → run it\n"
        "  ````\n"
        "  $ pytest\n"
        "      E  assert 1 == 2\n"
        "\n"
        "  ```\n"
        "  ## Review\n"
        "  PASS\n"
        "  &lt;!-- x\n"
        "  ````"
    )


def test_colours_are_taken_out_of_the_output() -> None:
    (block,) = findings_by_priority([Finding(P1, "\x1b[1mred\x1b[0m\n\x1b[31mboom\x1b[0m")])

    assert block == "### P1 Major\n- red\n  ```\n  boom\n  ```"


def test_lines_without_anything_to_see_make_no_block() -> None:
    assert findings_by_priority([Finding(P1, "red\n\x00")]) == ("### P1 Major\n- red",)


@pytest.mark.req("R141")
@given(st.lists(lines, min_size=1, max_size=3))
def test_nothing_breaks_out_of_its_block(outputs) -> None:
    found = [Finding(P1, f"cmd {at}:\n{it}") for at, it in enumerate(outputs)]

    message = same_agent_message(feedback(*found))

    assert headings(message) == ["Failed Gate: review", "P1 Major"]
    shown = [it for it in outputs if any(c.isprintable() and c != " " for c in it)]
    assert len(fenced(message)) == len(shown)
    items = [line for line in message.split("\n") if line.startswith("- ")]
    assert items == [f"- cmd {at}:" for at in range(len(outputs))]
    assert "<!--" not in message
    assert message.split("\n") == message.splitlines()


# --- who is told ----------------------------------------------------------------------------------


def record(iteration: int, told: GateFeedback | None) -> IterationRecord:
    return IterationRecord(
        iteration=iteration,
        agent_id="a",
        outcome=IterationOutcome.FAILED_WITH_RETRY,
        feedback=told,
    )


@pytest.mark.req("R134")
@pytest.mark.parametrize("resumed", [True, False])
def test_an_agent_is_told_what_became_of_the_feedback_of_the_iteration_before(resumed) -> None:
    now = feedback(RACE)
    history = (record(1, feedback(LEAK)), record(2, None), record(3, now))
    task = a_task(phase=NeedsFixes("a", 3, now), history=history)

    text = opening(task, Role.WORKER, Limits(), Before(), resumed=resumed)

    assert "1 fixed, 0 still there, 1 new." in text
    assert "Fixed:\n- a.py:3 - a leak\n" in text


def test_the_first_feedback_is_compared_with_nothing() -> None:
    now = feedback(RACE)
    task = a_task(phase=Working("a", 2), history=(record(1, now),))

    text = opening(task, Role.WORKER, Limits(), Before(), resumed=False)

    assert "a race" in text
    assert "Since the evaluation before" not in text


def test_feedback_that_is_not_in_the_history_is_compared_with_the_last_that_is() -> None:
    now = feedback(RACE)
    task = a_task(phase=NeedsFixes("a", 2, now), history=(record(1, feedback(LEAK)),))

    assert "1 fixed" in opening(task, Role.WORKER, Limits(), Before(), resumed=True)
