"""The last checkpoint of a task, on both databases."""

import pytest

from lockgate.adapters.store.checkpoints import SqlCheckpoints
from lockgate.adapters.store.sql_store import SqlStore
from lockgate.core.lifecycle.decision import Decision
from lockgate.core.model.task import TaskId
from lockgate.core.text.checkpoints import ONE_BYTES
from lockgate.errors import Unavailable
from tests.store.conftest import Place
from tests.store.samples import a_task, moved

T1, T2 = TaskId("t1"), TaskId("t2")
FACTS = {
    "work_summary": "é – \u2028 \0 \ud800 ' %",
    "files_modified": ("a", "b"),
    "confidence": 0.5,
}


@pytest.fixture
def checkpoints(store: SqlStore) -> SqlCheckpoints:
    """Of a store that knows two tasks."""
    for id in (T1, T2):
        store.create(Decision(a_task(id)))
    return SqlCheckpoints(store.database)


def test_a_checkpoint_is_read_as_it_was_put(checkpoints: SqlCheckpoints) -> None:
    assert checkpoints.of(T1) is None

    checkpoints.put(T1, 3, FACTS)

    assert checkpoints.of(T1) == {**FACTS, "sequence": 3, "files_modified": ["a", "b"]}
    assert checkpoints.of(T2) is None


def test_one_of_a_lower_number_that_comes_late_does_not_count(checkpoints: SqlCheckpoints) -> None:
    for number, summary in ((1, "a"), (3, "c"), (2, "b")):
        checkpoints.put(T1, number, {"work_summary": summary})

    assert checkpoints.of(T1) == {"work_summary": "c", "sequence": 3}


def test_a_checkpoint_goes_with_its_task_and_none_comes_after_it(
    store: SqlStore, checkpoints: SqlCheckpoints
) -> None:
    for id in (T1, T2):
        checkpoints.put(id, 1, FACTS)

    store.delete(moved(store.load(T1)))
    checkpoints.put(T1, 2, FACTS)

    assert checkpoints.of(T1) is None
    assert checkpoints.of(T2) is not None


def test_a_checkpoint_takes_no_more_room_than_its_file(checkpoints: SqlCheckpoints) -> None:
    checkpoints.put(T1, 1, {"work_summary": "y" * 3 * ONE_BYTES})

    found = checkpoints.of(T1) or {}
    assert len(str(found["work_summary"])) < ONE_BYTES
    assert "left out" in str(found["work_summary"])


@pytest.mark.parametrize("text", ["no JSON", "[1]"])
def test_a_damaged_checkpoint_is_named(
    place: Place, checkpoints: SqlCheckpoints, text: str
) -> None:
    checkpoints.put(T1, 1, FACTS)
    place.execute(f"UPDATE checkpoints SET facts = '{text}'")  # noqa: S608 - the test's own

    with pytest.raises(Unavailable, match="the last checkpoint of task t1 was not read"):
        checkpoints.of(T1)
