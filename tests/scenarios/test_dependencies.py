"""A task whose dependency will not be done by itself needs a human, who has three choices."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from lockgate.core.lifecycle.needs import NeedKind, lost_dependencies, need_of
from lockgate.core.lifecycle.transition import stay
from lockgate.core.model.task import Status, TaskId
from lockgate.errors import TurnDeclined
from lockgate.services.task.callers import HUMAN
from tests.scenarios.stage import Stage
from tests.scenarios.test_surroundings import CONFIG, hands_in
from tests.scenarios.train.fake_yard import Railway, opened

S = Status


@pytest.fixture
def stage(tmp_path) -> Iterator[Stage]:
    made = Stage(tmp_path, CONFIG)
    yield made
    made.app.store.close()


@pytest.fixture
def auto(tmp_path) -> Iterator[Railway]:
    yield from opened(tmp_path)


def two(stage: Stage) -> tuple[TaskId, TaskId]:
    """A task at work, and one that waits for it."""
    first = stage.world.create("a")
    second = stage.world.create("b", depends_on=(first,))
    stage.turn()
    assert stage.world.task(second).status is S.PENDING
    assert need_of(stage.world.task(second)) is None
    return first, second


def commands(stage: Stage, id: TaskId) -> list[str]:
    need = need_of(stage.world.task(id))
    assert need is not None
    assert need.kind is NeedKind.DEPENDENCY
    return [it.command for it in need.actions]


def test_a_task_that_waits_for_a_cancelled_one_needs_a_human_with_the_choices(stage) -> None:
    first, second = two(stage)

    stage.world.move(first, S.CANCELLED)
    stage.turn()

    assert commands(stage, second) == [
        f"lockgate task drop-dependency {second} {first}",
        f"lockgate task cancel {second}",
        f"lockgate task why {first}",
    ]
    [need] = stage.app.boards.inbox().needs
    assert (need.task, f"{first} is cancelled" in need.ask) == (second, True)
    assert f"{first} is cancelled" in stage.app.views.why(second).advice.why
    stage.turn()
    assert stage.world.types(second).count("dependency.lost") == 1


def test_once_the_dependency_is_dropped_the_task_starts(stage) -> None:
    first, second = two(stage)
    stage.world.move(first, S.CANCELLED)
    stage.turn()

    stage.app.tasks.drop_dependency(second, first, HUMAN)
    stage.turn()

    assert stage.world.task(second).depends_on == ()
    assert stage.alive(second)


def test_a_dependency_that_goes_on_is_waited_for_again(stage) -> None:
    first, second = two(stage)
    stage.gates.results = ["memory"]
    hands_in(stage, first)
    assert stage.world.task(first).status is S.STUCK
    stage.turn()
    assert f"{first} is stuck" in stage.world.task(second).in_vain

    stage.gates.results = ["pass"]
    stage.world.move(first, S.AGENT_REVIEW)
    stage.turn()

    assert stage.world.task(second).in_vain == ""
    assert need_of(stage.world.task(second)) is None
    assert stage.world.types(second).count("dependency.back") == 1


def test_a_deleted_dependency_is_not_a_fulfilled_one(stage) -> None:
    first = stage.world.create("a", auto_start=False)
    second = stage.world.create("b", depends_on=(first,))
    stage.app.tasks.delete(first, HUMAN)

    stage.turn()

    assert stage.world.task(second).status is S.PENDING
    assert f"{first} was deleted" in stage.world.task(second).in_vain
    stage.app.tasks.drop_dependency(second, first, HUMAN)
    stage.turn()
    assert stage.alive(second)


def test_a_dependency_that_the_task_does_not_have_is_not_dropped(stage) -> None:
    _, second = two(stage)

    with pytest.raises(TurnDeclined, match="does not depend on other"):
        stage.app.tasks.drop_dependency(second, "other", HUMAN)


def test_a_change_that_waits_to_land_behind_a_deleted_one_does_not_land_by_itself(auto) -> None:
    first = auto.stage.world.create("a", auto_start=False)
    second = auto.ready("b")
    app = auto.stage.app
    app.coordinator.turn(second, lambda seen: _after(seen, first))
    app.tasks.delete(first, HUMAN)

    auto.opens()
    assert auto.task(second).status is S.REVIEWING
    app.tasks.drop_dependency(second, first, HUMAN)
    auto.turn()

    assert auto.task(second).status is S.DONE


def _after(seen, first):
    return stay(seen, replace(seen.task, depends_on=(first,)))


def test_only_tasks_that_cannot_go_on_by_themselves_are_lost() -> None:
    stand = {TaskId(it.value): it for it in S} | {TaskId("gone"): None}

    told = lost_dependencies(stand)

    assert told == (
        "stuck is stuck, paused-for-intervention is paused-for-intervention,"
        " cancelled is cancelled, gone was deleted"
    )
