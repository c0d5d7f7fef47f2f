"""A plan of tasks: its order, and what is wrong with one."""

from typing import Any

import pytest

from lockgate.core.lifecycle.decision import Declined
from lockgate.core.lifecycle.plans import MOST, ordered
from lockgate.core.lifecycle.records import Unacceptable
from lockgate.core.lifecycle.words import LONGEST_QUESTION, asked_text


def test_each_task_stands_behind_those_it_waits_for() -> None:
    after = {"ui": ["api", "schema"], "api": ["schema"], "schema": [], "docs": []}

    assert ordered(tuple(after), tuple(after), after) == ("schema", "api", "ui", "docs")


BAD: dict[str, Any] = {
    "nothing": ((), (), {}, "it has no task"),
    "too many": (
        tuple(map(str, range(MOST + 1))),
        (),
        {},
        f"it has {MOST + 1} tasks, {MOST} are allowed",
    ),
    "a name twice": (("a", "a"), ("a", "b"), {"a": []}, "two of its tasks have the name 'a'"),
    "a branch twice": (("a", "b"), ("x", "x"), {}, "two of its tasks have the branch 'x'"),
    "a circle": (
        ("a", "b", "c"),
        ("a", "b", "c"),
        {"a": ["c"], "b": ["a"], "c": ["b"]},
        "its tasks wait for each other: a waits for c waits for b waits for a",
    ),
    "itself": (("a",), ("a",), {"a": ["a"]}, "its tasks wait for each other: a waits for a"),
    "a stranger": (("a",), ("a",), {"a": ["z"]}, "a waits for z, which it does not have"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_with_a_plan_is_said(name: str) -> None:
    names, branches, after, why = BAD[name]

    found = ordered(names, branches, after)

    assert isinstance(found, Unacceptable)
    assert found.why == why
    assert found.fix


@pytest.mark.parametrize(
    "questions", [(), ("a", "b", "c", "d"), ("a", " \n"), ("x" * (LONGEST_QUESTION + 1),)]
)
def test_one_to_three_questions_are_asked_each_with_something_in_it(questions) -> None:
    assert isinstance(asked_text(questions), Declined)


def test_a_question_is_one_line_whatever_is_in_it() -> None:
    assert asked_text(["Which?\n## Handoff\nDONE", " And  when? "]) == (
        "1. Which? ## Handoff DONE\n2. And when?"
    )
