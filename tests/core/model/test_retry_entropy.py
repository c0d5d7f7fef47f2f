"""Entropy: when a failure counts as the same one again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.core.model.findings import (
    Finding,
    GateFeedback,
    Identity,
    Location,
    Priority,
    identity,
    normalise,
)
from lockgate.core.model.retry import (
    Command,
    EntropyDetector,
    Streak,
    ToolCall,
    findings_repeat,
    fingerprint,
)
from lockgate.core.model.task import AgentPhase

GREEN, VERIFY = AgentPhase.GREEN, AgentPhase.VERIFY


def a_call(id: str = "call-1", *argv: str) -> ToolCall:
    return ToolCall(id, argv or ("pytest", "-q"))


def feedback(*issues: str, gate: str = "tests", summary: str = "red") -> GateFeedback:
    return GateFeedback(
        gate_name=gate,
        findings=tuple(Finding(Priority.P1_MAJOR, issue) for issue in issues),
        summary=summary,
        suggested_action="fix it",
    )


@pytest.mark.req("R49")
def test_the_third_identical_failure_in_a_row_triggers() -> None:
    detector = EntropyDetector()

    triggered = [detector.record(a_call(), GREEN, "boom") for _ in range(3)]

    assert triggered == [False, False, True]
    assert detector.triggered


def test_another_failure_in_between_starts_the_row_again() -> None:
    detector = EntropyDetector()

    triggered = [
        detector.record(a_call(), GREEN, output) for output in ("boom", "boom", "bang", "boom")
    ]

    assert not any(triggered)
    assert not detector.triggered


def test_a_call_has_a_new_id_each_time_and_is_still_the_same_call() -> None:
    detector = EntropyDetector()

    triggered = [detector.record(a_call(f"call-{turn}"), GREEN, "boom") for turn in range(3)]

    assert triggered[-1]


def test_other_commands_and_other_phases_have_rows_of_their_own() -> None:
    detector = EntropyDetector()

    triggered = [
        detector.record(a_call(), GREEN, "boom"),
        detector.record(a_call(), VERIFY, "boom"),
        detector.record(a_call("call-2", "mypy"), GREEN, "boom"),
        detector.record(a_call(), GREEN, "boom"),
    ]

    assert not any(triggered)
    assert detector.streaks[Command(("pytest", "-q"), GREEN)].length == 2


@pytest.mark.req("R49")
def test_it_is_enough_to_name_the_call_and_its_phase() -> None:
    detector = EntropyDetector()

    detector.record(a_call(), GREEN)

    assert detector.streaks == {Command(("pytest", "-q"), GREEN): Streak(fingerprint(""))}


def test_a_detector_goes_on_from_the_streaks_that_were_kept() -> None:
    before = EntropyDetector()
    before.record(a_call(), GREEN, "boom")
    before.record(a_call(), GREEN, "boom")

    triggered = EntropyDetector(before.streaks).record(a_call(), GREEN, "boom")

    assert triggered
    assert not before.triggered


@given(st.lists(st.sampled_from("ab"), max_size=12))
def test_it_triggers_exactly_when_the_last_three_are_alike(outputs: list[str]) -> None:
    detector = EntropyDetector()

    triggered = [detector.record(a_call(), GREEN, output) for output in outputs]

    assert triggered == [
        at >= 2 and len(set(outputs[at - 2 : at + 1])) == 1 for at in range(len(outputs))
    ]


@pytest.mark.parametrize(
    ("once", "again"),
    [
        ("3 failed in 0.12s", "4 failed in 11.5s"),
        ("took 900 ms", "took 1.1 s"),
        ("<Session object at 0x7f3a91>", "<Session object at 0xDEADBEEF>"),
        ("id 6f1c9a34-8e21-4a7b-9f00-0123456789ab", "id 00000000-8e21-4a7b-9f00-abcdefabcdef"),
        ("HEAD is a1b2c3d", "HEAD is 9f8e7d6"),
        ("a.py:9:5: boom", "a.py:112:41: boom"),
        ("2024-01-02T03:04:05Z boom", "2025-11-12T13:14:15Z boom"),
        ("at 9:59 AM", "at 1:00 PM"),
        ("boom\n\n  here ", "boom here"),
    ],
)
def test_what_differs_from_run_to_run_does_not_make_another_failure(once: str, again: str) -> None:
    assert fingerprint(once) == fingerprint(again)


def test_words_do_make_another_failure() -> None:
    assert fingerprint("KeyError: name") != fingerprint("KeyError: title")


def test_a_word_of_hex_letters_is_a_word() -> None:
    assert normalise("a defaced facade") == "a defaced facade"


def test_the_workspaces_path_is_taken_out() -> None:
    once = fingerprint("/home/me/w/t1/src/a.py failed", ["/home/me/w/t1"])
    again = fingerprint("/var/w/t2/src/a.py failed", ["/var/w/t2/"])

    assert once == again == fingerprint("src/a.py failed")


def test_a_directory_that_only_begins_like_the_workspace_stays() -> None:
    assert normalise("/w/task-b/x", ["/w/task"]) == "/w/task-b/x"


def test_an_empty_workspace_takes_nothing_out() -> None:
    assert normalise("/a/b", ["", "/"]) == "/a/b"


@given(st.text())
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    once = normalise(text)

    assert normalise(once) == once


@given(st.text(st.characters()), st.integers(0, 10**6), st.integers(0, 10**6))
def test_no_number_survives(text: str, one: int, other: int) -> None:
    first, second = normalise(f"{text} {one} end"), normalise(f"{text} {other} end")

    assert first == second
    assert not any(character.isdecimal() for character in first)


@given(st.text(st.characters(exclude_categories=())))
def test_any_output_has_a_fingerprint(output: str) -> None:
    assert len(fingerprint(output)) == 64


@pytest.mark.req("R140")
def test_the_same_set_of_findings_twice_in_a_row_repeats() -> None:
    history = [feedback("x"), feedback("a 1", "b"), feedback("b", "a 2")]

    assert findings_repeat(history)


@pytest.mark.req("R140")
@pytest.mark.parametrize(
    "history",
    [
        [],
        [feedback("a")],
        [feedback("a"), feedback("b")],
        [feedback("a"), feedback("a", "b")],
        [feedback("a"), feedback("b"), feedback("a")],
        [feedback("a", gate="tests"), feedback("a", gate="lint")],
        [feedback(summary="red"), feedback(summary="blue")],
    ],
)
def test_other_findings_do_not_repeat(history: list[GateFeedback]) -> None:
    assert not findings_repeat(history)


def test_failures_without_findings_repeat_by_their_summary() -> None:
    assert findings_repeat([feedback(summary="red in 3s"), feedback(summary="red in 4s")])


def test_a_finding_is_itself_wherever_its_line_went_and_whatever_its_priority() -> None:
    once = Finding(Priority.P0_CRITICAL, "Query  built by hand", Location("a.py", 3))
    again = Finding(Priority.P2_MINOR, "query built by hand", Location("a.py", 90, 4), "bind it")

    assert identity("review", once) == identity("review", again)
    assert identity("review", once) == Identity("review", "a.py", "query built by hand")


def test_gate_file_and_text_each_tell_findings_apart() -> None:
    base = Finding(Priority.P1_MAJOR, "boom", Location("a.py"))
    others = [
        identity("lint", base),
        identity("review", Finding(Priority.P1_MAJOR, "boom")),
        identity("review", Finding(Priority.P1_MAJOR, "bang", Location("a.py"))),
    ]

    assert len({identity("review", base), *others}) == 4
