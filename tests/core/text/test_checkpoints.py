"""Which of two checkpoints the next agent is told of."""

import json

import pytest

from lockgate.core.text.checkpoints import ONE_BYTES, checkpoint_text, newer, number_of

HERE, OLDER, NEWER = ({"sequence": it, "work_summary": "s"} for it in (2, 1, 3))
KEPT = {"sequence": 2, "work_summary": "of the database"}


@pytest.mark.parametrize(
    ("kept", "file", "told"),
    [
        (KEPT, None, KEPT),
        (KEPT, OLDER, KEPT),
        (KEPT, HERE, KEPT),
        (KEPT, NEWER, NEWER),  # a release wrote it that knew files only
        (None, HERE, HERE),
        (None, None, {}),
    ],
)
def test_the_newer_checkpoint_is_told_and_else_the_one_of_the_database(kept, file, told) -> None:
    assert newer(kept, file) == told


@pytest.mark.parametrize(("facts", "number"), [(KEPT, 2), ({}, 0), ({"sequence": "7"}, 0)])
def test_a_checkpoint_without_a_number_is_below_all_others(facts, number) -> None:
    assert number_of(facts) == number


def test_a_checkpoint_as_text_has_its_number_and_a_largest_size() -> None:
    long = {"work_summary": "é" * ONE_BYTES, "files_modified": ("z" * 100,) * 50_000}

    assert json.loads(checkpoint_text(4, {"commit": "c"})) == {"sequence": 4, "commit": "c"}
    assert len(checkpoint_text(4, long)) <= ONE_BYTES
    assert json.loads(checkpoint_text(4, long))["files_left_out"] == 49_000
