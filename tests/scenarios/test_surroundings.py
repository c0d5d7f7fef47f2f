"""Failures of the surroundings are told apart from failures of the work, and never counted."""

from collections.abc import Iterator

import pytest

from lockgate.core.lifecycle.moves import Move
from lockgate.core.model.limits import SAME_FAILURES
from lockgate.core.model.task import Cause, Status, TaskId
from tests.given import HANDOFF, needs_human
from tests.scenarios.stage import Stage
from tests.scenarios.test_loop import TESTS_FIRST

S = Status


CONFIG = TESTS_FIRST.partition('[[gates.list]]\nname = "review"')[0]


@pytest.fixture
def stage(tmp_path) -> Iterator[Stage]:
    made = Stage(tmp_path, CONFIG)
    yield made
    made.app.store.close()


def judged(stage: Stage) -> TaskId:
    """A task whose agent has handed in; its gates have been run once."""
    id = stage.world.create()
    stage.turn()
    hands_in(stage, id)
    return id


def hands_in(stage: Stage, id: TaskId, text: str = HANDOFF) -> None:
    [session] = stage.alive(id)
    (stage.workspaces.place(id) / "TASK.md").write_text(text)
    stage.dies(session)
    stage.event(session)
    stage.turn()


def counters(stage: Stage, id: TaskId) -> tuple[int, int, int]:
    task = stage.world.task(id)
    return task.iteration, task.failed_attempts, task.crash_count


UNTOUCHED = (1, 0, 0)


def test_a_clone_that_was_killed_is_made_again_and_the_task_goes_on(stage) -> None:
    stage.workspaces.not_checked_out = ["git was killed"]
    id = judged(stage)

    assert stage.world.task(id).status is S.AGENT_REVIEW
    assert counters(stage, id) == UNTOUCHED

    stage.turn(20)

    assert stage.world.task(id).status is S.REVIEWING
    assert counters(stage, id) == UNTOUCHED
    assert stage.loop.troubles == {}


def test_what_keeps_failing_is_tried_ever_more_rarely_and_needs_a_human_with_its_cause(
    stage,
) -> None:
    stage.workspaces.not_checked_out = ["the disk is full"] * 100
    id = judged(stage)
    for _ in range(600):
        stage.turn(1)

    tried = 100 - len(stage.workspaces.not_checked_out)
    assert SAME_FAILURES < tried < 10  # 600 seconds, with waits that grow
    assert stage.world.task(id).status is S.AGENT_REVIEW
    assert counters(stage, id) == UNTOUCHED
    assert "the disk is full" in needs_human(stage.world.task(id))

    stage.workspaces.not_checked_out = []
    stage.turn(400)

    assert stage.world.task(id).status is S.REVIEWING
    assert needs_human(stage.world.task(id)).startswith("all gates passed")


def test_a_sandbox_that_fails_is_tried_again(stage) -> None:
    stage.gates.results = ["the sandbox failed"] * 3 + ["pass"]
    id = judged(stage)
    assert stage.world.task(id).status is S.AGENT_REVIEW

    stage.turn(20)

    assert stage.world.task(id).status is S.REVIEWING
    assert counters(stage, id) == UNTOUCHED


def test_a_command_that_was_killed_is_no_finding_unless_it_is_killed_again(stage) -> None:
    stage.gates.results = ["killed"] * 3 + ["pass"]
    id = judged(stage)
    assert (stage.world.task(id).status, counters(stage, id)) == (S.AGENT_REVIEW, UNTOUCHED)

    stage.turn(20)

    assert stage.world.task(id).status is S.REVIEWING


def test_a_command_that_is_killed_time_and_again_goes_back_to_its_author(stage) -> None:
    stage.gates.results = ["killed"]
    id = judged(stage)
    stage.turn(20)

    task = stage.world.task(id)
    assert (task.status, task.iteration, task.failed_attempts) == (S.WORKING, 2, 1)
    assert "exited 137" in task.history[-1].feedback.findings[0].issue


def test_a_crash_of_the_tests_own_process_is_the_works_fault_at_once(stage) -> None:
    stage.gates.results = ["segfault"]
    id = judged(stage)

    task = stage.world.task(id)
    assert (task.status, task.failed_attempts) == (S.WORKING, 1)


def test_a_handoff_that_no_gate_could_judge_is_not_used_up(stage) -> None:
    stage.gates.results = ["memory"]
    id = judged(stage)
    assert stage.world.task(id).cause is Cause.GATE_BROKEN
    stage.gates.results = ["pass"]

    stage.world.move(id, S.WORKING)
    stage.turn()
    hands_in(stage, id)  # the same Handoff

    assert stage.world.task(id).crash_count == 0
    assert stage.world.task(id).status is S.REVIEWING


def test_a_handoff_that_a_gate_has_judged_stays_used_up(stage) -> None:
    stage.gates.results = ["fail"]
    id = judged(stage)
    stage.turn(20)
    hands_in(stage, id)

    assert stage.world.task(id).status is S.WORKING
    assert stage.world.task(id).iteration == 2


def test_a_human_can_have_it_judged_once_more_after_a_gate_could_not(stage) -> None:
    stage.gates.results = ["memory"]
    id = judged(stage)
    stage.gates.results = ["pass"]

    stage.app.coordinator.move(id, Move(S.AGENT_REVIEW), stage.app.caller)
    stage.turn()

    assert stage.world.task(id).status is S.REVIEWING
